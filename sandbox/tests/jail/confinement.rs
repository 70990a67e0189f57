//! What commands and file jobs cannot reach. Each refusal has its errno, and a twin that is allowed.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use libc::{EACCES, ENOENT, EROFS, EXDEV};
use sandbox::Level;

use crate::support::{at_each_level, is_root, skip, with_policy};

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
