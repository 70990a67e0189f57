//! What commands and file jobs cannot reach. Each refusal has its errno, and a twin that is allowed.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use libc::{EACCES, ENOENT, ENOSYS, EPERM, EROFS, ESRCH, EXDEV};
use sandbox::Level;

use crate::support::{Story, at_each_level, await_file, installed, is_root, skip, with_policy};

impl Story {
    /// The errno of one Perl expression in the jail, 0 where it succeeds.
    fn errno(&self, expression: &str) -> i32 {
        let outcome = self.run(&perl(expression));
        assert_eq!(outcome.err, "", "{expression}");
        outcome.code()
    }

    /// The errno of a file job.
    fn job_errno<T>(&self, job: impl FnOnce() -> io::Result<T> + Send + 'static) -> i32 {
        let error = self.job(move || job().err());
        error.map_or(0, |error| error.raw_os_error().unwrap())
    }
}

fn perl(expression: &str) -> String {
    format!(
        "exec perl -e 'sub done {{ exit($_[0] < 0 ? $! + 0 : 0) }}
         sub try {{ exit($_[0] ? 0 : $! + 0) }} {expression}'"
    )
}

/// The errno of the same expression without a jail.
fn bare_errno(expression: &str) -> i32 {
    let shell = std::process::Command::new("bash").args(["-c", &perl(expression)]).status();
    shell.unwrap().code().unwrap()
}

#[test]
fn reading_outside_is_refused_by_whatever_name() {
    at_each_level(|story| {
        fs::create_dir(story.root.join("in")).unwrap();
        fs::write(story.root.join("in/own"), "OWN").unwrap();
        symlink(story.outside.join("secret"), story.root.join("link")).unwrap();
        symlink("../outside", story.root.join("folder")).unwrap();
        symlink(story.root.join("in"), story.root.join("absolute")).unwrap();
        let hidden = story.refusal(ENOENT, EACCES);
        let outside = story.outside.display();
        for path in [
            format!("{outside}/secret"),
            "link".to_owned(),
            "folder/secret".to_owned(),
            "in/../../outside/secret".to_owned(),
            format!("/proc/self/root{outside}/secret"),
            "/proc/self/cwd/../outside/secret".to_owned(),
        ] {
            let open = format!(r#"try(open F, "<", "{path}")"#);
            assert_eq!(story.errno(&open), hidden, "{path} at level {}", story.level);
        }
        for path in ["in/own", "absolute/own", "in/../in/own", "/proc/self/cwd/in/own"] {
            assert_eq!(story.errno(&format!(r#"try(open F, "<", "{path}")"#)), 0, "{path}");
        }
    });
}

#[test]
fn writing_creating_renaming_and_removing_outside_are_refused() {
    at_each_level(|story| {
        let hidden = story.refusal(ENOENT, EACCES);
        for (refused, allowed) in [
            (r#"open F, ">", "$ENV{OUTSIDE}/new""#, r#"open F, ">", "new""#),
            (r#"open F, ">>", "$ENV{OUTSIDE}/secret""#, r#"open F, ">>", "new""#),
            (r#"mkdir "$ENV{OUTSIDE}/d""#, r#"mkdir "d""#),
            (r#"symlink "x", "$ENV{OUTSIDE}/l""#, r#"symlink "x", "l""#),
            (r#"truncate "$ENV{OUTSIDE}/secret", 0"#, r#"truncate "new", 0"#),
            (r#"unlink "$ENV{OUTSIDE}/secret""#, r#"unlink "l""#),
        ] {
            assert_eq!(story.errno(&format!("try({refused})")), hidden, "{refused}");
            assert_eq!(story.errno(&format!("try({allowed})")), 0, "{allowed}");
        }
        assert_eq!(fs::read_to_string(story.outside.join("secret")).unwrap(), "SECRET");
        assert_eq!(fs::read_dir(&story.outside).unwrap().count(), 1);
    });
}

#[test]
fn hard_links_and_renames_do_not_cross_the_border() {
    at_each_level(|story| {
        fs::write(story.root.join("own"), "OWN").unwrap();
        let crossing = story.refusal(ENOENT, EXDEV);
        for refused in [
            r#"link "$ENV{OUTSIDE}/secret", "h2""#,
            r#"link "own", "$ENV{OUTSIDE}/h""#,
            r#"rename "$ENV{OUTSIDE}/secret", "taken""#,
            r#"rename "own", "$ENV{OUTSIDE}/own""#,
        ] {
            let errno = story.errno(&format!("try({refused})"));
            let either = story.level == Level::Kernel && errno == EACCES;
            assert!(errno == crossing || either, "{refused}: {errno}");
        }
        for allowed in
            [r#"mkdir "a" and mkdir "b""#, r#"link "own", "a/own""#, r#"rename "a/own", "b/own""#]
        {
            assert_eq!(story.errno(&format!("try({allowed})")), 0, "{allowed}");
        }
        // A link that was made before stays what it is: a name in the root. Who may not write
        // through it replaces it, which is the file tools' business.
        fs::hard_link(story.outside.join("secret"), story.root.join("before")).unwrap();
        assert_eq!(story.errno(r#"try(open F, "<", "before")"#), 0);
    });
}

#[test]
fn a_read_only_root_is_read_only() {
    with_policy(
        |policy, outside| policy.read_only_roots.push(outside.to_owned()),
        |story| {
            let refused = story.refusal(EROFS, EACCES);
            assert_eq!(story.errno(r#"try(open F, "<", "$ENV{OUTSIDE}/secret")"#), 0);
            assert_eq!(story.errno(r#"try(open F, ">", "$ENV{OUTSIDE}/new")"#), refused);
            assert_eq!(story.errno(r#"try(open F, ">>", "$ENV{OUTSIDE}/secret")"#), refused);
            let secret = story.outside.join("secret");
            assert_eq!(story.job(move || fs::read_to_string(secret).unwrap()), "SECRET");
            let secret = story.outside.join("secret");
            assert_eq!(story.job_errno(move || fs::write(secret, "x")), EACCES);
        },
    );
}

#[test]
fn single_files_can_be_granted_to_commands() {
    with_policy(
        |policy, outside| {
            for name in ["readable", "writable"] {
                fs::write(outside.join(name), name).unwrap();
            }
            policy.command_read.push(outside.join("readable"));
            policy.command_write.push(outside.join("writable"));
        },
        |story| {
            assert_eq!(
                story.succeeds("cat $OUTSIDE/readable $OUTSIDE/writable"),
                "readablewritable"
            );
            assert_eq!(story.errno(r#"try(open F, ">", "$ENV{OUTSIDE}/writable")"#), 0);
            let refused = story.refusal(EROFS, EACCES);
            assert_eq!(story.errno(r#"try(open F, ">", "$ENV{OUTSIDE}/readable")"#), refused);
            let hidden = story.refusal(ENOENT, EACCES);
            assert_eq!(story.errno(r#"try(open F, "<", "$ENV{OUTSIDE}/secret")"#), hidden);
            // They are granted to commands, not to file jobs.
            let readable = story.outside.join("readable");
            assert_eq!(story.job_errno(move || fs::read(readable)), EACCES);
        },
    );
}

#[test]
fn metadata_of_outside_files_is_safe_at_the_full_level_and_said_to_be_open_below() {
    with_policy(
        |policy, outside| {
            fs::create_dir(outside.join("granted")).unwrap();
            fs::write(outside.join("granted/file"), "").unwrap();
            policy.command_read.push(outside.join("granted"));
        },
        |story| {
            let setxattr = |path: &str| {
                let number = libc::SYS_setxattr;
                format!(
                    r#"my ($p, $n, $v) = ("{path}", "user.k", "v");
                       done(syscall({number}, $p, $n, $v, 1, 0))"#
                )
            };
            let changes = |path: &str| {
                [
                    format!(r#"try(chmod 0600, "{path}")"#),
                    format!(r#"try(chown $<, $( + 0, "{path}")"#),
                    format!(r#"try(utime 1, 1, "{path}")"#),
                    setxattr(path),
                ]
            };
            let (secret, granted) = ("$ENV{OUTSIDE}/secret", "$ENV{OUTSIDE}/granted/file");
            // What Landlock has no right for stays open without namespaces, and is said to be.
            let open = story.jail.enforcement().left_open.iter();
            let said = open.clone().any(|text| text.contains("mode, owner, times"));
            assert_eq!(said, story.level == Level::Kernel);
            for change in changes(secret) {
                assert_eq!(story.errno(&change), story.refusal(ENOENT, 0), "{change}");
            }
            for change in changes(granted) {
                assert_eq!(story.errno(&change), story.refusal(EROFS, 0), "{change}");
            }
            fs::write(story.root.join("own"), "").unwrap();
            for change in changes("own") {
                assert_eq!(story.errno(&change), 0, "{change}");
            }
        },
    );
}

/// Perl that tries `attack` on the process `$p` and ends with its errno.
fn attacks() -> Vec<(&'static str, String)> {
    let call = |number: libc::c_long, rest: &str| format!("done(syscall({number}, {rest}))");
    let (seize, unbounded) = (0x4206, r#"my $l = pack("Q2", 99, 99);"#);
    vec![
        ("environ", r#"try(open F, "<", "/proc/$p/environ" and defined getc F)"#.to_owned()),
        ("memory", r#"try(open F, "<", "/proc/$p/mem")"#.to_owned()),
        ("memory, writing", r#"try(open F, "+<", "/proc/$p/mem")"#.to_owned()),
        ("descriptors", r#"try(defined readlink "/proc/$p/fd/0")"#.to_owned()),
        ("a descriptor", r#"try(open F, "<", "/proc/$p/fd/0")"#.to_owned()),
        ("its root", r#"try(opendir D, "/proc/$p/root/")"#.to_owned()),
        ("ptrace", call(libc::SYS_ptrace, &format!("{seize}, $p + 0, 0, 0"))),
        (
            "process_vm_writev",
            format!(
                r#"my $b = "x"; my $v = pack("PQ", $b, 1); {}"#,
                call(libc::SYS_process_vm_writev, "$p + 0, $v, 1, $v, 1, 0")
            ),
        ),
        (
            "pidfd_getfd",
            format!(
                "my $fd = syscall({}, $p + 0, 0); done($fd) if $fd < 0; {}",
                libc::SYS_pidfd_open,
                call(libc::SYS_pidfd_getfd, "$fd, 0, 0")
            ),
        ),
        ("signal", "try(kill 0, $p)".to_owned()),
        ("prlimit", format!("{unbounded} {}", call(libc::SYS_prlimit64, "$p + 0, 0, $l, 0"))),
        ("renice", call(libc::SYS_setpriority, "0, $p + 0, 5")),
    ]
}

/// What reaches a process, as errnos; 0 where it works.
fn reaches(errno: impl Fn(&str) -> i32, process: &str) -> Vec<(&'static str, i32)> {
    attacks()
        .into_iter()
        .map(|(name, attack)| (name, errno(&format!("my $p = {process}; {attack}"))))
        .filter(|(_, errno)| ![EPERM, EACCES, ESRCH, ENOENT].contains(errno))
        .collect()
}

#[test]
fn no_process_beyond_the_call_can_be_reached() {
    at_each_level(|story| {
        let mut bystander = std::process::Command::new("sleep");
        let mut bystander = bystander.arg("60").stdout(Stdio::null()).spawn().unwrap();
        let neighbour = story.start("touch up; exec sleep 1000");
        await_file(&story.root.join("up"));
        let targets = [
            ("provider", std::process::id().to_string()),
            ("bystander", bystander.id().to_string()),
            ("neighbour", neighbour.running.pid().to_string()),
            ("supervisor", "getppid".to_owned()),
            (
                "spawner",
                r#"do { open S, "<", "/proc/" . getppid . "/stat"; (split " ", <S>)[3] }"#
                    .to_owned(),
            ),
        ];
        for (name, process) in targets {
            let reached = reaches(|attack| story.errno(attack), &process);
            assert_eq!(reached, [], "{name} at level {}", story.level);
        }
        // The twins: one's own process can be read, traced and signalled.
        let own = r#"my $p = fork; if (!$p) { sleep 100 while 1 }"#;
        for (name, attack) in attacks() {
            if ["environ", "descriptors", "ptrace", "signal"].contains(&name) {
                assert_eq!(story.errno(&format!("{own} {attack}")), 0, "{name} of an own child");
            }
        }
        let prlimit = libc::SYS_prlimit64;
        let own = format!(r#"my $l = pack("Q2", 9, 9); done(syscall({prlimit}, 0, 4, $l, 0))"#);
        assert_eq!(story.errno(&own), 0, "own limits");
        // And without the jail, the bystander is open to whoever has the same user.
        let bare = reaches(bare_errno, &bystander.id().to_string());
        assert!(bare.contains(&("signal", 0)) && bare.contains(&("renice", 0)), "{bare:?}");
        neighbour.running.kill().unwrap();
        neighbour.end();
        bystander.kill().unwrap();
        bystander.wait().unwrap();
    });
}

#[test]
fn no_thread_of_the_provider_can_be_signalled() {
    at_each_level(|story| {
        // The file workers are threads in a domain of their own: they are there first.
        story.job(|| ());
        let provider = std::process::id();
        for task in fs::read_dir("/proc/self/task").unwrap() {
            let task = task.unwrap().file_name().into_string().unwrap();
            let tgkill = format!("done(syscall({}, {provider}, {task}, 0))", libc::SYS_tgkill);
            let errno = story.errno(&tgkill);
            // A thread of another test may have ended meanwhile.
            assert!(errno == EPERM || errno == ESRCH, "{task}: {errno}");
        }
        let own = format!("done(syscall({}, $$ + 0, $$ + 0, 0))", libc::SYS_tgkill);
        assert_eq!(story.errno(&own), 0);
    });
}

#[test]
fn the_kernel_is_closed_where_no_command_needs_it() {
    at_each_level(|story| {
        let call = |number: libc::c_long, arguments: &str| {
            format!(
                r#"my ($a, $b, $z, $dev, $fifo) = ("/proc", "/tmp", "", "dev", "fifo"); done(syscall({number}, {arguments}))"#
            )
        };
        let newuser = libc::CLONE_NEWUSER;
        for (name, refused, errno) in [
            ("mount", call(libc::SYS_mount, "$a, $b, $a, 4096, 0"), EPERM),
            ("umount", call(libc::SYS_umount2, "$a, 0"), EPERM),
            ("unshare", call(libc::SYS_unshare, &newuser.to_string()), EPERM),
            ("clone", call(libc::SYS_clone, &format!("{newuser} | 17, 0, 0, 0, 0")), EPERM),
            ("clone3", call(libc::SYS_clone3, "$z, 0"), ENOSYS),
            ("io_uring", call(libc::SYS_io_uring_setup, "1, $z"), ENOSYS),
            ("setns", call(libc::SYS_setns, "0, 0"), EPERM),
            ("bpf", call(libc::SYS_bpf, "0, $z, 0"), EPERM),
            ("keyctl", call(libc::SYS_keyctl, "0, -3, 0"), EPERM),
            ("userfaultfd", call(libc::SYS_userfaultfd, "1"), EPERM),
            ("handles", call(libc::SYS_open_by_handle_at, "0, $z, 0"), EPERM),
            ("a block device", call(libc::SYS_mknodat, "-100, $dev, 24576 | 0600, 1793"), EPERM),
            ("a terminal device", call(libc::SYS_mknodat, "-100, $dev, 8192 | 0600, 1025"), EPERM),
        ] {
            let found = story.errno(&refused);
            let either = name.ends_with("device") && found == EACCES;
            assert!(found == errno || either, "{name}: {found} at level {}", story.level);
        }
        assert_eq!(story.errno(&call(libc::SYS_mknodat, "-100, $fifo, 4096 | 0600, 0")), 0);
        assert_eq!(story.errno("try(defined fork)"), 0);
    });
}

#[test]
fn x32_calls_do_not_pass_by_the_filters() {
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    at_each_level(|story| {
        assert_eq!(story.errno("done(syscall(0x40000000 + 39))"), ENOSYS);
        assert_eq!(story.errno("done(syscall(39))"), 0, "the same call by its own number");
    });
}

#[test]
fn nothing_can_be_typed_into_a_terminal() {
    if !installed(&["script"]) {
        return;
    }
    at_each_level(|story| {
        let on_terminal = |expression: &str| {
            fs::write(story.root.join("ioctl.pl"), expression).unwrap();
            story.run("script -qec 'perl ioctl.pl' /dev/null < /dev/null").out.trim().to_owned()
        };
        let typing = r#"my $c = "x"; print ioctl(STDIN, 0x5412, $c) ? 0 : $! + 0"#;
        assert_eq!(on_terminal(typing), EPERM.to_string());
        let size = r#"my $s = "\0" x 8; print ioctl(STDIN, 0x5413, $s) ? 0 : $! + 0"#;
        assert_eq!(on_terminal(size), "0");
    });
}

#[test]
fn a_command_starts_clean() {
    at_each_level(|story| {
        let status = story.succeeds("cat /proc/self/status; ls /proc/self/fd | tr '\\n' ' '");
        for line in ["NoNewPrivs:\t1", "Seccomp:\t2", "SigBlk:\t0000000000000000"] {
            assert!(status.contains(line), "{line} is not in\n{status}");
        }
        assert!(status.contains("SigIgn:\t0000000000000000"), "{status}");
        // CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL for root; nothing for others.
        let capabilities = if is_root() { "000000000000003b" } else { "0000000000000000" };
        assert!(status.contains(&format!("CapEff:\t{capabilities}")), "{status}");
        assert!(!is_root() || status.contains(&format!("CapBnd:\t{capabilities}")), "{status}");
        // The fourth is ls's own, on the folder.
        assert!(status.ends_with("0 1 2 3 "), "{status}");
        let session = story.succeeds(
            "read -r _ _ _ _ group session _ < /proc/self/stat; \
                                      echo $(( group == $$ && session == $$ ))",
        );
        assert_eq!(session, "1\n");
    });
}

#[test]
fn a_file_job_reaches_the_roots_and_no_more() {
    at_each_level(|story| {
        fs::write(story.root.join("own"), "OWN").unwrap();
        symlink(story.outside.join("secret"), story.root.join("link")).unwrap();
        for path in [story.outside.join("secret"), story.root.join("link"), "/etc/hostname".into()]
        {
            assert_eq!(story.job_errno(move || fs::read(path)), EACCES);
        }
        let outside = story.outside.clone();
        assert_eq!(story.job_errno(move || fs::read_dir(outside)), EACCES);
        let (root, outside) = (story.root.clone(), story.outside.clone());
        let crossing =
            story.job_errno(move || fs::hard_link(outside.join("secret"), root.join("h")));
        assert!(crossing == EXDEV || crossing == EACCES, "{crossing}");
        let own = story.root.join("own");
        assert_eq!(story.job(move || fs::read_to_string(own).unwrap()), "OWN");
        let root = story.root.clone();
        story.job(move || {
            fs::create_dir(root.join("a")).unwrap();
            fs::rename(root.join("own"), root.join("a/own")).unwrap();
            fs::write(root.join("a/own"), "NEW").unwrap();
        });
        let spool = story.jail.private().spool.join("output");
        let there = spool.clone();
        story.job(move || fs::write(there, "kept").unwrap());
        assert_eq!(story.succeeds(&format!("cat {}", spool.display())), "kept");
        let write = format!(r#"try(open F, ">", "{}")"#, spool.display());
        assert_eq!(story.errno(&write), story.refusal(EROFS, EACCES));
    });
}

#[test]
fn a_file_job_executes_nothing_and_connects_nowhere() {
    at_each_level(|story| {
        let script = story.root.join("run");
        fs::write(&script, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        assert_eq!(story.job_errno(|| std::process::Command::new(script).status()), EACCES);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        if story.jail.enforcement().rights.contains(&"connect_tcp") {
            assert_eq!(story.job_errno(move || std::net::TcpStream::connect(address)), EACCES);
        } else {
            skip("TCP of file jobs: this kernel's Landlock does not know it");
        }
        assert_eq!(story.succeeds("./run && echo ran"), "ran\n");
        std::net::TcpStream::connect(address).unwrap();
    });
}

#[test]
fn every_file_worker_is_confined_and_no_other_thread_is() {
    with_policy(
        |policy, _| policy.file_workers = 64,
        |story| {
            let (say, hear) = channel();
            let gate = std::sync::Arc::new(std::sync::Barrier::new(64));
            for _ in 0..64 {
                let (say, gate) = (say.clone(), gate.clone());
                let secret = story.outside.join("secret");
                let job = move || {
                    gate.wait();
                    say.send(fs::read(secret).map_err(|error| error.raw_os_error())).unwrap();
                };
                story.jail.submit(Box::new(job)).unwrap();
            }
            for _ in 0..64 {
                assert_eq!(hear.recv().unwrap().unwrap_err(), Some(EACCES));
            }
            assert_eq!(fs::read_to_string(story.outside.join("secret")).unwrap(), "SECRET");
            assert_eq!(story.succeeds("echo still"), "still\n");
        },
    );
}

#[test]
fn a_link_that_is_swapped_ten_thousand_times_never_leads_out() {
    at_each_level(|story| {
        fs::create_dir(story.root.join("in")).unwrap();
        let link = story.root.join("w");
        symlink("in", &link).unwrap();
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let spare = story.root.join("spare");
                while !over.load(Ordering::Relaxed) {
                    for target in [story.outside.as_path(), Path::new("in")] {
                        symlink(target, &spare).unwrap();
                        fs::rename(&spare, &link).unwrap();
                    }
                }
            });
            let (job, command) = (link.join("job"), link.join("command"));
            story.job(move || (0..10_000).for_each(|_| drop(fs::write(&job, "x"))));
            story.succeeds(&format!(
                r#"perl -e 'for (1..10000) {{ open F, ">", "{}" }}'"#,
                command.display()
            ));
            over.store(true, Ordering::Relaxed);
        });
        let names: Vec<_> =
            fs::read_dir(&story.outside).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, ["secret"]);
        // The twin: the link as it was left, which leads inside.
        assert_eq!(fs::read_link(&link).unwrap(), Path::new("in"));
        let job = link.join("job");
        assert_eq!(story.job_errno(move || fs::write(job, "x")), 0);
        assert_eq!(story.errno(r#"try(open F, ">", "w/command")"#), 0);
    });
}

#[test]
fn what_only_root_may_read_is_hidden_from_root_at_the_full_level() {
    if !is_root() {
        return;
    }
    at_each_level(|story| {
        let bytes = story.succeeds("cat /etc/shadow | wc -c; cat /etc/passwd | wc -l");
        let empty = bytes.starts_with("0\n");
        assert_eq!(empty, story.level == Level::Full, "{bytes}");
        let said =
            story.jail.enforcement().left_open.iter().any(|text| text.contains("/etc/shadow"));
        assert_eq!(said, !empty);
    });
}

#[test]
fn a_call_cannot_reach_into_one_that_runs_beside_it() {
    at_each_level(|story| {
        let victim = story.start("echo $$ > pid; until [ -e go ]; do sleep 0.01; done; echo whole");
        await_file(&story.root.join("pid"));
        // By the number that calls of one jail know each other by.
        let found = r#"do { open S, "<", "pid"; my $n = <S> + 0; $n }"#;
        crate::support::until("the pid is written", || {
            fs::read_to_string(story.root.join("pid")).unwrap().ends_with('\n')
        });
        assert_eq!(reaches(|attack| story.errno(attack), found), []);
        assert_eq!(story.errno("kill(9, -1) or 1; try(1)"), 0, "to all that it may signal");
        fs::write(story.root.join("go"), "").unwrap();
        let outcome = victim.end();
        assert_eq!((outcome.code(), outcome.out.as_str()), (0, "whole\n"));
    });
}
