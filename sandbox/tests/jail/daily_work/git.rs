//! git, in a root and in a worktree whose git directory lies outside.

use std::fs;
use std::path::Path;

use sandbox::{Access, Level, Subject};

use crate::case::{Case, Need, stories};
use crate::fixture::Fixture;

pub(crate) fn stories() -> Vec<Case> {
    stories!["daily_work":
        git_from_init_to_log needs [Need::Program("git")],
        git_worktree_with_its_directory_outside needs [Need::Program("git")],
        a_forged_git_file_widens_nothing needs [Need::Program("git")],
    ]
}

/// The operator's settings are read, so that commits carry the operator's name.
const SETTINGS: &str = "[user]\n\tname = A Name\n\temail = a@example.org\n";

fn git_from_init_to_log(level: Level) {
    let fixture = Fixture::with(level, |dirs, policy| {
        policy.home = Some(dirs.home().to_owned());
        fs::write(dirs.home().join(".gitconfig"), SETTINGS).unwrap();
    });
    let script = r#"
        set -e
        git init -q -b main repo && cd repo
        echo one > file && git add file && git commit -qm first
        echo two >> file && git commit -qam second
        git status --short; git stash list; git diff HEAD~1 --stat > /dev/null
        git worktree add -q ../tree -b side && (cd ../tree && echo x > y && git add y && git commit -qm third)
        git merge -q side && git gc -q && git fsck --no-progress
        git clone -q . ../clone
        git log --format='%an %s'"#;
    let log = "A Name third\nA Name second\nA Name first\n";
    assert_eq!(fixture.succeeds(script), log);
}

/// A repository outside, with a worktree of it inside the root.
fn with_worktree(level: Level, git_directory: GitDirectory) -> Fixture {
    Fixture::with(level, |dirs, policy| {
        policy.home = Some(dirs.home().to_owned());
        fs::write(dirs.home().join(".gitconfig"), SETTINGS).unwrap();
        let main = dirs.outside.join("main");
        let tree = dirs.root.join("tree");
        let script = format!(
            "set -e; export HOME={home}; git init -q -b main {main}; cd {main}
             git commit -q --allow-empty -m first; git worktree add -q {tree}",
            home = dirs.home().display(),
            main = main.display(),
            tree = tree.display(),
        );
        let made = std::process::Command::new("/bin/bash").args(["-c", &script]).status().unwrap();
        assert!(made.success());
        if git_directory == GitDirectory::Granted {
            policy.command_write.push(main.join(".git"));
        }
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum GitDirectory {
    Granted,
    NotGranted,
}

fn git_worktree_with_its_directory_outside(level: Level) {
    let commit =
        "cd tree && echo 1 > f && git add -A && git commit -qm t && git log --oneline | wc -l";
    let granted = with_worktree(level, GitDirectory::Granted);
    assert_eq!(granted.succeeds(commit).trim(), "2");

    let refused = with_worktree(level, GitDirectory::NotGranted);
    let outcome = refused.bash(commit);
    assert_eq!(outcome.report.status.shell_code(), 128, "{outcome:?}");
    let directory = refused.dirs.outside.join("main/.git");
    let why = refused.jail.explain(Subject::Command, Access::Write, &directory).unwrap();
    assert_eq!((why.setting.key(), &why.value), ("bash_write", &directory));
}

/// What a command writes into `.git` grants it nothing, now or in the next jail.
fn a_forged_git_file_widens_nothing(level: Level) {
    let fixture = Fixture::new(level);
    let forge = |directory: &Path| {
        format!("mkdir -p tree && echo 'gitdir: {}' > tree/.git && echo done", directory.display())
    };
    assert_eq!(fixture.succeeds(&forge(&fixture.dirs.outside)), "done\n");
    let read = format!("cat {}", fixture.dirs.secret().display());
    assert_eq!(fixture.bash(&read).report.status.shell_code(), 1);

    let policy = fixture.dirs.policy(level);
    let next = Fixture::of(fixture.dirs, &policy, level);
    assert_eq!(next.bash(&read).report.status.shell_code(), 1);
    let commit = "cd tree && git init -q . ; git add -A";
    assert_ne!(next.bash(commit).report.status.shell_code(), 0);
    assert_eq!(fs::read_dir(&next.dirs.outside).unwrap().count(), 1, "only the secret");
}
