//! What commands cannot do to other processes and to the kernel. Each refusal has its errno, and a
//! twin that is allowed.

use std::fs;
use std::process::Stdio;

use libc::{EACCES, ENOENT, ENOSYS, EPERM, ESRCH};

use crate::support::{at_each_level, await_file, bare_errno, installed, is_root};

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
fn memory_that_is_shared_by_a_number_stays_within_the_jail() {
    at_each_level(|story| {
        let segment = "try(defined shmget(0x6a61696c, 4096, 0600 | 01000))";
        assert_eq!(story.errno(segment), story.refusal(0, EPERM));
        let bare = bare_errno("try(defined shmget(0x6a61696c, 4096, 0600))");
        assert_eq!(bare, ENOENT, "the machine has no such segment");
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
