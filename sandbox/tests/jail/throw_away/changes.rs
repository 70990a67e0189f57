//! What layers take, and what is reported of it.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use sandbox::{Change, ChangeKind, Changes, Level, Space};

use crate::case::{Case, Need, stories};
use crate::fixture::{Fixture, Outcome};
use crate::support::until;

pub(crate) fn stories() -> Vec<Case> {
    stories!["throw_away::changes":
        a_command_works_with_what_it_wrote_and_nothing_stays,
        each_change_is_named_with_its_kind,
        what_is_as_it_was_is_no_change,
        attributes_and_the_mode_of_a_root_are_changes_too needs [Need::Program("setfattr")],
        it_finds_what_others_did_before_it,
        full_layers_refuse_writes_and_are_empty_for_the_next,
        it_needs_no_more_than_four_processes_in_readiness,
        a_file_system_within_a_root_has_its_own_layer needs [Need::Root, Need::Program("mount")],
        a_single_file_that_may_be_written_is_read_only,
    ]
}

fn changes(outcome: &Outcome) -> &Changes {
    outcome.report.changes.as_ref().unwrap_or_else(|| panic!("{outcome:#?}"))
}

/// The changes within a directory, by their paths there.
fn within<'a>(changes: &'a Changes, directory: &Path) -> Vec<(&'a str, ChangeKind)> {
    let inner = |change: &'a Change| {
        Some((change.path.strip_prefix(directory).ok()?.to_str().unwrap(), change.kind))
    };
    changes.first.iter().filter_map(inner).collect()
}

fn a_command_works_with_what_it_wrote_and_nothing_stays(level: Level) {
    let fixture = Fixture::new(level);
    let script = "echo more >> own && mkdir new && echo x > new/file && cat own new/file && \
         echo h > ~/h && cat ~/h && echo t > $TMPDIR/t && cat $TMPDIR/t";
    let outcome = fixture.run(&fixture.thrown_away(script));
    if level == Level::Full {
        assert_eq!(outcome.stdout, "ownmore\nx\nh\nt\n", "{outcome:#?}");
        assert!(outcome.stderr.is_empty(), "{outcome:#?}");
        assert_eq!(changes(&outcome).count, 4, "{outcome:#?}");
        assert_eq!(
            within(changes(&outcome), &fixture.dirs.root),
            [("new", ChangeKind::Created), ("own", ChangeKind::Changed)]
        );
    } else {
        assert!(outcome.stderr.contains("own: Permission denied"), "{outcome:#?}");
        assert_eq!(outcome.report.changes, None);
        let scratch = "cat own && echo t > $TMPDIR/t && mkdir $TMPDIR/d && mv $TMPDIR/t $TMPDIR/d && \
             cat $TMPDIR/d/t && rm -r $TMPDIR/d && ls -A $TMPDIR";
        let outcome = fixture.run(&fixture.thrown_away(scratch));
        assert_eq!(outcome.succeeded("scratch"), "ownt\n");
    }
    // Where other commands look.
    let left = fixture.succeeds("cat own; ls -A . ; ls -A ~ | grep -x h; ls -A $TMPDIR; true");
    assert!(left.starts_with("ownown\n"), "{left}");
    assert!(!left.lines().any(|line| ["new", "h", "t"].contains(&line)), "{left}");
}

fn each_change_is_named_with_its_kind(level: Level) {
    if level != Level::Full {
        return;
    }
    let fixture = Fixture::new(level);
    let root = &fixture.dirs.root;
    for directory in ["kept", "gone", "again", "deep/er"] {
        fs::create_dir_all(root.join(directory)).unwrap();
        fs::write(root.join(directory).join("file"), "content").unwrap();
    }
    symlink("kept", root.join("link")).unwrap();
    fs::write(root.join("mode"), "").unwrap();
    let script = "rm -r gone && rm -r again && mkdir again && chmod 700 mode && \
         echo x >> deep/er/file && touch deep/er/new && rm kept/file && ln -sfn deep link && \
         mkdir -p made/below && touch made/below/file && : > empty && rm empty";
    let outcome = fixture.run(&fixture.thrown_away(script));
    assert!(outcome.stderr.is_empty(), "{outcome:#?}");
    let found = changes(&outcome);
    assert_eq!(
        within(found, root),
        [
            ("again", ChangeKind::Changed),
            ("deep/er/file", ChangeKind::Changed),
            ("deep/er/new", ChangeKind::Created),
            ("gone", ChangeKind::Deleted),
            ("kept/file", ChangeKind::Deleted),
            ("link", ChangeKind::Changed),
            ("made", ChangeKind::Created),
            ("mode", ChangeKind::Changed),
        ]
    );
    assert_eq!(found.count, 8);
    // A command's own mark covers nothing.
    let outcome = fixture.run(&fixture.thrown_away(
        "setfattr -n user.overlay.opaque -v y kept 2>/dev/null; \
         touch kept/new",
    ));
    let found = changes(&outcome);
    assert!(within(found, root).contains(&("kept/new", ChangeKind::Created)), "{outcome:#?}");
    let outcome = fixture.run(&fixture.thrown_away(
        "mkdir many && cd many && cd .. && \
         for n in $(seq 200); do : > n$n; done; printf '%0300d' 0 > x; mkdir $(printf '%0200d' 0)",
    ));
    let found = changes(&outcome);
    assert_eq!((found.count, found.first.len()), (203, 50), "{outcome:#?}");
    // The first of all, in order.
    assert_eq!(within(found, root)[..3].iter().map(|(path, _)| path.len()).max(), Some(200));
}

fn what_is_as_it_was_is_no_change(level: Level) {
    if level != Level::Full {
        return;
    }
    let fixture = Fixture::new(level);
    let root = &fixture.dirs.root;
    fs::create_dir(root.join("dir")).unwrap();
    fs::write(root.join("dir/file"), "content").unwrap();
    let same =
        "exec 3<>own; exec 3>&-; exec 3>>dir/file; chmod 600 own; chmod 644 own; : > t; rm t";
    let outcome = fixture.run(&fixture.thrown_away(same));
    assert_eq!(changes(&outcome).first, [], "{outcome:#?}");
    // The same time and size, and another content.
    let hidden = "cp -p own kept; printf new > own; touch -r kept own; rm kept";
    let outcome = fixture.run(&fixture.thrown_away(hidden));
    assert_eq!(within(changes(&outcome), root), [("own", ChangeKind::Changed)], "{outcome:#?}");
}

fn attributes_and_the_mode_of_a_root_are_changes_too(level: Level) {
    if level != Level::Full {
        return;
    }
    let fixture = Fixture::new(level);
    let root = &fixture.dirs.root;
    fs::create_dir(root.join("dir")).unwrap();
    fs::write(root.join("dir/file"), "content").unwrap();
    let sets = "setfattr -n user.x -v y";
    let found = |script: &str| {
        let outcome = fixture.run(&fixture.thrown_away(script));
        assert!(outcome.stderr.is_empty(), "{outcome:#?}");
        let paths = changes(&outcome).first.iter().map(|change| {
            assert_eq!(change.kind, ChangeKind::Changed, "{outcome:#?}");
            change.path.strip_prefix(root).unwrap().to_str().unwrap().to_owned()
        });
        paths.collect::<Vec<_>>()
    };
    assert_eq!(
        found(&format!("{sets} own; {sets} dir; {sets} dir/file")),
        ["dir", "dir/file", "own"]
    );
    assert_eq!(found(&format!("chmod 700 .; {sets} own")), ["", "own"]);
    assert_eq!(found(&format!("{sets} .")), [""]);
    assert_eq!(found("chmod 700 .; chmod 755 ."), [""; 0]);
    // A name like a layer's own mark, and more names than a list of them holds.
    assert_eq!(found("setfattr -n user.overlay.x -v y own"), ["own"]);
    let name = "n".repeat(240);
    assert_eq!(found(&format!("for i in $(seq 300); do setfattr -n user.{name}$i .; done")), [""]);
    // What has attributes already, and keeps them.
    fixture.succeeds(&format!("{sets} own; {sets} dir"));
    assert_eq!(found("exec 3>>own; chmod 700 dir; chmod 755 dir"), [""; 0]);
    assert_eq!(found("setfattr -x user.x own; setfattr -n user.x -v z dir"), ["dir", "own"]);
}

/// Layers are made before the command comes, and are to show what is there when it comes.
fn it_finds_what_others_did_before_it(level: Level) {
    let fixture = Fixture::new(level);
    let root = &fixture.dirs.root;
    fs::create_dir(root.join("dir")).unwrap();
    for name in ["dir/removed", "dir/replaced", "dir/changed"] {
        fs::write(root.join(name), "old").unwrap();
    }
    let read = "stat -c %a . ; ls dir; cat dir/*; cat ~/h 2>/dev/null";
    for round in 0..4 {
        let seen = fixture.run(&fixture.thrown_away(read));
        assert!(seen.stdout.contains("removed"), "{round}: {seen:#?}");
        assert!(seen.stdout.starts_with("755\n"), "{seen:#?}");
    }
    fs::remove_file(root.join("dir/removed")).unwrap();
    fs::write(root.join("new"), "new").unwrap();
    fs::rename(root.join("new"), root.join("dir/replaced")).unwrap();
    fs::write(root.join("dir/changed"), "changed").unwrap();
    fs::write(root.join("dir/made"), "made").unwrap();
    fs::set_permissions(root, Permissions::from_mode(0o700)).unwrap();
    fixture.succeeds("echo home > ~/h");
    for _ in 0..4 {
        let seen = fixture.run(&fixture.thrown_away(read)).stdout;
        assert_eq!(seen, "700\nchanged\nmade\nreplaced\nchangedmadenewhome\n");
    }
    assert_eq!(root.metadata().unwrap().mode() & 0o777, 0o700);
}

fn full_layers_refuse_writes_and_are_empty_for_the_next(level: Level) {
    if level != Level::Full {
        return;
    }
    let fixture = Fixture::with(level, |_, policy| policy.layer_bytes = Some(8 << 20));
    let fill = "head -c 64M /dev/zero > big";
    let outcome = fixture.run(&fixture.thrown_away(fill));
    assert!(outcome.stderr.contains("No space left on device"), "{outcome:#?}");
    assert_eq!(changes(&outcome).space, Space::Used);
    // The memory is freed a moment after the report.
    until("there is space again", || {
        let outcome = fixture.run(&fixture.thrown_away("head -c 6M /dev/zero > big"));
        outcome.stderr.is_empty() && changes(&outcome).space == Space::Left
    });
    // The limit is that of the layers, not of other commands.
    fixture.succeeds("head -c 16M /dev/zero > big && rm big");
}

/// Calls at the same time: those beyond what is ready wait for a process, and all are served.
fn it_needs_no_more_than_four_processes_in_readiness(level: Level) {
    let fixture = Fixture::new(level);
    let start = || fixture.start(&fixture.thrown_away("echo up; exec sleep 1000"));
    let mut calls: Vec<_> = (0..6).map(|_| start()).collect();
    for call in &mut calls {
        assert_eq!(call.line(), "up");
    }
    for call in calls {
        let outcome = call.killed();
        assert_eq!(outcome.report.status, sandbox::ExitStatus::Signaled(libc::SIGKILL));
    }
    assert_eq!(fixture.run(&fixture.thrown_away("echo after")).stdout, "after\n");
}

fn a_file_system_within_a_root_has_its_own_layer(level: Level) {
    if level != Level::Full {
        return;
    }
    let mount = |arguments: &[&str], program: &str| {
        let done = std::process::Command::new(program).args(arguments).status().unwrap();
        assert!(done.success(), "{program} {arguments:?}");
    };
    let dirs = crate::fixture::Directories::new();
    let inner = dirs.root.join("inner");
    fs::create_dir(&inner).unwrap();
    mount(&["-t", "tmpfs", "none", inner.to_str().unwrap()], "mount");
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        fs::write(inner.join("file"), "inner").unwrap();
        let policy = dirs.policy(level);
        let jail = sandbox::Jail::build(&policy).unwrap();
        drop(jail);
        let fixture = Fixture::of(dirs, &policy, level);
        let script = "cat inner/file; echo x > inner/file; echo y > inner/new; echo z > new; \
             cat inner/file";
        let outcome = fixture.run(&fixture.thrown_away(script));
        assert_eq!(outcome.stdout, "innerx\n", "{outcome:#?}");
        let mut found = within(changes(&outcome), &fixture.dirs.root);
        found.sort_unstable_by_key(|(path, _)| *path);
        assert_eq!(
            found,
            [
                ("inner/file", ChangeKind::Changed),
                ("inner/new", ChangeKind::Created),
                ("new", ChangeKind::Created),
            ]
        );
        assert_eq!(fs::read_to_string(inner.join("file")).unwrap(), "inner");
        fixture
    }));
    mount(&["-l", inner.to_str().unwrap()], "umount");
    drop(outcome.unwrap());
}

fn a_single_file_that_may_be_written_is_read_only(level: Level) {
    let fixture = Fixture::with(level, |dirs, policy| {
        policy.command_write.push(dirs.secret());
    });
    let secret = fixture.dirs.secret();
    let named = secret.to_str().unwrap();
    let script = format!("cat {named}; echo x >> {named}; chmod 600 {named}; touch {named}");
    let outcome = fixture.run(&fixture.thrown_away(&script));
    assert!(outcome.stdout.starts_with(crate::fixture::SECRET), "{outcome:#?}");
    assert_eq!(outcome.stderr.lines().count(), 3, "{outcome:#?}");
    if level == Level::Full {
        assert_eq!(changes(&outcome).read_only, std::slice::from_ref(&secret));
    }
    assert_eq!(fs::read_to_string(&secret).unwrap(), crate::fixture::SECRET);
    // Other commands may write it.
    fixture.succeeds(&format!("printf '' >> {named}"));
}
