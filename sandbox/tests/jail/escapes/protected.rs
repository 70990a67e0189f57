//! Paths in a root that commands must not change, although they may write around them.

use std::fs;

use sandbox::Level;

use crate::case::{Case, stories};
use crate::fixture::{Directories, Fixture};

pub(crate) fn stories() -> Vec<Case> {
    stories!["escapes::protected":
        a_protected_path_stays_and_what_lies_beside_it_does_not,
        a_path_under_two_grants_is_protected_in_both,
        a_mount_that_something_outside_took_away_is_made_anew,
    ]
}

fn directories() -> Directories {
    let dirs = Directories::new();
    for directory in ["deep/er/hooks", "other"] {
        fs::create_dir_all(dirs.root.join(directory)).unwrap();
    }
    fs::write(dirs.root.join("deep/er/config"), "old").unwrap();
    fs::write(dirs.root.join("deep/er/hooks/one"), "old").unwrap();
    fs::write(dirs.root.join("deep/er/free"), "old").unwrap();
    dirs
}

const PROTECTED: [&str; 3] = ["deep/er/config", "deep/er/hooks", "deep/er/none"];

fn a_protected_path_stays_and_what_lies_beside_it_does_not(level: Level) {
    let dirs = directories();
    let mut policy = dirs.policy(level);
    policy.protected = PROTECTED.map(|path| dirs.root.join(path)).to_vec();
    let fixture = Fixture::of(dirs, &policy, level);
    let says = |said: &str| fixture.jail.enforcement().left_open.iter().any(|s| s.contains(said));
    assert_eq!(says("protected paths"), level != Level::Full);
    fixture.succeeds(
        "cd deep/er && echo new > free && mv free moved && ln moved free && mkdir none && \
         cp config hooks/one ../../other && cat config hooks/one",
    );
    if level != Level::Full {
        assert!(!fixture.jail.protects(&fixture.dirs.root.join(PROTECTED[0])));
        assert!(!fixture.jail.protect(&policy.protected));
        fixture.succeeds("echo new > deep/er/config");
        return;
    }
    for (attempt, said) in [
        ("echo x > deep/er/config", "Read-only file system"),
        ("rm deep/er/config", "Device or resource busy"),
        ("mv other/config deep/er/config", "Device or resource busy"),
        ("mv deep/er/config other/", "Device or resource busy"),
        ("mv -T --exchange other/config deep/er/config || mv deep/er/config other/", "busy"),
        ("ln deep/er/config other/linked", "Invalid cross-device link"),
        ("chmod 777 deep/er/config", "Read-only file system"),
        ("touch -d 2001-01-01 deep/er/config", "Read-only file system"),
        ("setfattr -n user.a -v b deep/er/config || chmod 700 deep/er/config", "Read-only"),
        ("echo x > deep/er/hooks/one", "Read-only file system"),
        ("echo x > deep/er/hooks/two", "Read-only file system"),
        ("rm -r deep/er/hooks", "Read-only file system"),
        ("mv deep/er/hooks other/hooks", "Read-only file system"),
        ("mv deep/er other/er", "Device or resource busy"),
        ("mv deep other/deep", "Device or resource busy"),
        ("umount deep/er/config", "umount"),
        ("mount -o remount,rw,bind deep/er/config", "mount"),
        ("unshare -Urm true", "unshare"),
    ] {
        let outcome = fixture.bash(attempt);
        assert!(outcome.stderr.contains(said), "{attempt}: {outcome:?}");
        assert_ne!(outcome.report.status.shell_code(), 0, "{attempt}: {outcome:?}");
    }
    let read = |path: &str| fs::read_to_string(fixture.dirs.root.join(path)).unwrap();
    assert_eq!((read("deep/er/config"), read("deep/er/hooks/one")), ("old".into(), "old".into()));
}

fn a_path_under_two_grants_is_protected_in_both(level: Level) {
    if level != Level::Full {
        return;
    }
    let dirs = directories();
    let mut policy = dirs.policy(level);
    policy.roots = vec![dirs.root.join("deep")];
    policy.command_write = vec![dirs.root.clone()];
    policy.protected = vec![dirs.root.join(PROTECTED[0])];
    let fixture = Fixture::of(dirs, &policy, level);
    for attempt in ["echo x > deep/er/config", "mv deep other/", "mv deep/er other/"] {
        let root = fixture.dirs.root.display().to_string();
        let outcome = fixture.bash(&format!("cd {root} && {attempt}"));
        assert_ne!(outcome.report.status.shell_code(), 0, "{attempt}: {outcome:?}");
    }
    fixture.succeeds("touch other/new deep/er/new");
}

fn a_mount_that_something_outside_took_away_is_made_anew(level: Level) {
    if level != Level::Full {
        return;
    }
    let dirs = directories();
    let mut policy = dirs.policy(level);
    policy.protected = PROTECTED.map(|path| dirs.root.join(path)).to_vec();
    let fixture = Fixture::of(dirs, &policy, level);
    let [config, _, none] = [0, 1, 2].map(|index| policy.protected[index].clone());
    let mut running = fixture.start_bash("mkfifo go; echo up; read x < go; cat /tmp/kept");
    assert_eq!(running.line(), "up");
    assert!(fixture.jail.protects(&config) && !fixture.jail.protects(&none));
    fixture.succeeds("echo kept > /tmp/kept");

    // As `git config` does.
    fs::write(fixture.dirs.root.join("deep/er/config.lock"), "operator").unwrap();
    fs::rename(fixture.dirs.root.join("deep/er/config.lock"), &config).unwrap();
    fs::write(&none, "operator").unwrap();
    assert!(!fixture.jail.protects(&config));
    assert!(fixture.jail.protect(&policy.protected));
    assert!(fixture.jail.protects(&config) && fixture.jail.protects(&none));
    for path in ["config", "none", "hooks/one"] {
        let outcome = fixture.bash(&format!("echo x > deep/er/{path}"));
        assert!(outcome.stderr.contains("Read-only file system"), "{path}: {outcome:?}");
    }
    assert_eq!(fixture.succeeds("cat /tmp/kept deep/er/config"), "kept\noperator");
    // What ran before goes on, with the same private directories.
    fs::write(fixture.dirs.root.join("go"), "x\n").unwrap();
    assert_eq!(running.outcome().succeeded("the earlier command"), "kept\n");
    assert_eq!(fs::read_to_string(&config).unwrap(), "operator");
}
