//! Repositories whose git directory is somewhere else.

use std::process::Command;

use super::fixture::{Fixture, notice};
use crate::trials::{Need, Trial};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        git_goes_on_or_fails_at_once_where_it_would_open_an_editor needs [Need::Program("git")],
        a_worktree_needs_its_git_directory_granted_and_a_forged_pointer_grants_nothing
            needs [Need::Program("git")],
        a_repository_beyond_the_roots_is_named_with_what_lets_git_work needs [Need::Program("git")],
    ]
}

fn a_worktree_needs_its_git_directory_granted_and_a_forged_pointer_grants_nothing() {
    let base = tempfile::tempdir().unwrap();
    let base = base.path().canonicalize().unwrap();
    let git = |arguments: &[&str]| {
        let status = Command::new("git")
            .args(["-C", base.to_str().unwrap()])
            .args(["-c", "user.name=t", "-c", "user.email=t@t.invalid"])
            .args(arguments)
            .status()
            .unwrap();
        assert!(status.success(), "{arguments:?}");
    };
    git(&["init", "-q", "main"]);
    git(&["-C", "main", "commit", "-q", "--allow-empty", "-m", "x"]);
    git(&["-C", "main", "worktree", "add", "-q", "../wt"]);
    let commit = "git config user.name t; git config user.email t@t.invalid; \
                  echo 1 >f && git add -A && git commit -qm t && git log --oneline | wc -l";

    let worktree = base.join("wt");
    let denied = Fixture::with(|settings| settings.policy.roots = vec![worktree.clone()]);
    let result = denied.result_in(&worktree, commit);
    assert_ne!(result["exit_code"], 0);
    let directory = base.join("main/.git");
    assert!(
        notice(&result).contains(&format!("{} into bash_write", directory.display())),
        "{result:?}"
    );

    let granted = Fixture::with(|settings| {
        settings.policy.roots = vec![worktree.clone()];
        settings.policy.command_write = vec![directory.clone()];
    });
    let result = granted.result_in(&worktree, commit);
    assert_eq!(result["output"].as_str().unwrap().trim(), "2", "{result:?}");

    // A pointer that is forged from inside: the next call, and the next jail, grant no more.
    let victim = denied.outside.clone();
    std::fs::write(victim.join("HEAD"), "ref: refs/heads/x\n").unwrap();
    denied.result_in(&worktree, &format!("echo 'gitdir: {}' >.git", victim.display()));
    let read = format!("cat {}/HEAD", victim.display());
    assert_ne!(denied.result_in(&worktree, &read)["exit_code"], 0);
    drop(denied);
    let again = Fixture::with(|settings| settings.policy.roots = vec![worktree.clone()]);
    assert_ne!(again.result_in(&worktree, &read)["exit_code"], 0);
}

/// A root may be a part of a repository, and a repository may be cloned from beside it.
fn a_repository_beyond_the_roots_is_named_with_what_lets_git_work() {
    let base = tempfile::tempdir().unwrap();
    let base = base.path().canonicalize().unwrap();
    let (whole, part) = (base.join("whole"), base.join("whole/part"));
    std::fs::create_dir_all(&part).unwrap();
    let made = Command::new("git").args(["init", "-q"]).arg(&whole).status().unwrap();
    assert!(made.success());
    let clone = format!("git clone -q {} copy", whole.display());

    let denied = Fixture::with(|settings| settings.policy.roots = vec![part.clone()]);
    let result = denied.result_in(&part, "git status");
    assert_ne!(result["exit_code"], 0);
    let named = format!("in {}: git works here if the operator makes that a root", whole.display());
    assert!(notice(&result).contains(&named), "{result:?}");
    let shown = denied.result_in(&part, "echo 'fatal: not a git repository' >log; cat log; false");
    assert_eq!(notice(&shown), "", "{shown:?}");
    let result = denied.result_in(&part, &clone);
    assert_ne!(result["exit_code"], 0);
    assert!(notice(&result).contains(whole.to_str().unwrap()), "{result:?}");
    assert!(notice(&result).contains("bash_read"), "{result:?}");

    let granted = Fixture::with(|settings| settings.policy.roots = vec![whole.clone()]);
    assert_eq!(granted.result_in(&part, "git status")["exit_code"], 0);
    let beside = Fixture::with(|settings| settings.policy.command_read = vec![whole.clone()]);
    let result = beside.result(&clone);
    assert_eq!(result["exit_code"], 0, "{result:?}");
}

/// Nobody is there to write in an editor.
fn git_goes_on_or_fails_at_once_where_it_would_open_an_editor() {
    let fixture = Fixture::new();
    let prepare = "git init -q . && git config user.name t && git config user.email t@t.invalid && \
                   for n in 1 2 3; do echo $n >f; git add f; git commit -qm $n; done; echo $?";
    assert_eq!(fixture.result(prepare)["output"], "0\n");
    for (command, code) in [
        ("git commit -q --amend", 0),
        ("git rebase -q -i HEAD~2", 0),
        ("git commit -q --allow-empty", 1),
        ("git log --oneline | wc -l; test \"$(git log -1 --format=%s)\" = 3", 0),
    ] {
        let result = fixture.result(command);
        assert_eq!(result["exit_code"], code, "{command}: {result:?}");
    }
    let output = fixture.result("git config gc.autoDetach; tput cols 2>&1 | cat -v");
    assert!(output["output"].as_str().unwrap().starts_with("false\n"), "{output:?}");
    assert!(!output["output"].as_str().unwrap().contains("^["), "{output:?}");
}
