//! What git outside obeys in the roots' own repositories: daily work goes on, and only the operator
//! changes it.

use std::path::{Path, PathBuf};
use std::process::Command;

use sandbox::{Level, Namespaces};
use serde_json::{Value, json};
use tool_provider::{Category, Payload};
use workspace_tools::{BashSettings, EditFile, WriteFile};

use super::fixture::{Fixture, notice, read};
use crate::trials::{Need, Trial};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        daily_work_with_git_goes_on needs [Need::Program("git")],
        settings_are_the_operators_and_the_notice_says_so needs [Need::Program("git")],
        what_the_operator_changes_outside_stays_and_is_protected_again needs [Need::Program("git")],
        a_worktree_in_a_root_is_protected_with_its_repository needs [Need::Program("git")],
        submodules_and_worktrees_of_a_repository_are_protected needs [Need::Program("git")],
        what_programs_outside_obey_is_told needs [Need::Program("git")],
        the_file_tools_refuse_protected_paths_by_any_name needs [Need::Program("git")],
        nothing_is_protected_where_the_operator_says_so needs [Need::Program("git")],
    ]
}

/// Each level that this machine has.
pub(super) fn each_level(story: impl Fn(Level)) {
    story(Level::Kernel);
    let probe = Fixture::new();
    if probe.jail.enforcement().level == Level::Full {
        drop(probe);
        story(Level::Full);
    }
}

pub(super) fn at(level: Level, settings: &mut BashSettings) -> PathBuf {
    if level == Level::Kernel {
        settings.policy.namespaces = Namespaces::Never;
    }
    settings.policy.roots[0].clone()
}

/// Runs git outside, as the operator does.
pub(super) fn git(directory: &Path, arguments: &[&str]) {
    let status = Command::new("git")
        .arg("-C")
        .arg(directory)
        .args([
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@t.invalid",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(["-c", "protocol.file.allow=always"])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(status.status.success(), "{arguments:?}: {status:?}");
}

/// A repository with two commits, in `directory`.
pub(super) fn repository(directory: &Path) {
    git(directory, &["init", "-q", "."]);
    for name in ["a", "b"] {
        std::fs::write(directory.join(name), name).unwrap();
        git(directory, &["add", "."]);
        git(directory, &["commit", "-qm", name]);
    }
}

/// A root with a repository, and what is there at the beginning.
pub(super) fn in_repository(level: Level) -> Fixture {
    Fixture::guarded(|settings| {
        let root = at(level, settings);
        repository(&root);
    })
}

fn code(result: &Payload) -> i64 {
    result["exit_code"].as_i64().unwrap()
}

fn daily_work_with_git_goes_on() {
    each_level(|level| {
        let fixture = Fixture::guarded(|settings| {
            let root = at(level, settings);
            repository(&root);
            git(&root, &["clone", "-q", "--bare", ".", "up.git"]);
            git(&root, &["--git-dir", "up.git", "branch", "feature"]);
            git(&root, &["remote", "add", "origin", "./up.git"]);
            git(&root, &["fetch", "-q"]);
        });
        let config = read(fixture.root.join(".git/config"));
        let steps = "
            export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@t GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@t
            step() { \"$@\" || echo \"FAILED: $*\"; }
            step git status --short
            step git checkout -q feature; step git checkout -q -b other origin/feature
            echo c > c; step git add c; step git -c user.name=u commit -qm c
            step git branch third; step git tag v1; step git branch -D third
            echo d >> c; step git stash -q; step git stash pop -q; step git commit -qam d
            step git worktree add -q wt main; step git -C wt status --short
            step git worktree remove wt; step git worktree prune
            step git push -q origin HEAD:feature; step git push -q -u origin other
            step git fetch -q; step git pull -q --rebase origin feature
            step git rebase -q main; step git gc -q
            step git bisect start -q HEAD HEAD~2; step git bisect reset
            step git clone -q . clone; step git init -q fresh; step git -C fresh config a.b c
            step git log --oneline; step git diff HEAD~1 --stat; step git fsck --no-progress
            echo x > .git/info/exclude; step git reset -q --hard HEAD~1; step git merge -q main";
        let result = fixture.result(steps);
        assert_eq!(code(&result), 0, "{result:?}");
        assert!(!result["output"].as_str().unwrap().contains("FAILED"), "{level}: {result:?}");
        assert_eq!(read(fixture.root.join(".git/config")), config, "{level}");
        // What was set back is said; what a mount kept as it is needs no word where nothing failed.
        assert_eq!(
            notice(&result).contains("protect = \"git\""),
            level == Level::Kernel,
            "{result:?}"
        );
        assert_eq!(notice(&fixture.result("git status; true")), "");
    });
}

fn settings_are_the_operators_and_the_notice_says_so() {
    each_level(|level| {
        let fixture = in_repository(level);
        let config = fixture.root.join(".git/config");
        let before = read(&config);
        for command in [
            "git config core.fsmonitor 'touch /tmp/x; false'",
            "git remote add origin ../elsewhere",
            "git sparse-checkout init",
            "git init -q -b x --shared=all",
            "printf '#!/bin/sh\\n' > .git/hooks/post-checkout && chmod +x .git/hooks/post-checkout",
        ] {
            let result = fixture.result(command);
            assert_eq!(read(&config), before, "{level}: {command}");
            assert!(!fixture.root.join(".git/hooks/post-checkout").exists(), "{level}: {command}");
            let notice = notice(&result);
            assert!(notice.contains("protect = \"git\""), "{level}: {command}: {result:?}");
            assert!(notice.contains("operator"), "{level}: {command}: {result:?}");
            assert_eq!(
                code(&result) == 0,
                level == Level::Kernel,
                "{level}: {command}: {result:?}"
            );
        }
        // What was found is kept, where no command comes.
        let state = std::fs::read_dir(fixture.outside.join("state")).unwrap();
        let found: String = state.map(|entry| read(entry.unwrap().path())).collect();
        assert_eq!(found.contains("touch /tmp/x"), level == Level::Kernel, "{level}: {found}");
        fixture.result("git -c core.fsmonitor=false status");
    });
}

fn what_the_operator_changes_outside_stays_and_is_protected_again() {
    each_level(|level| {
        let fixture = in_repository(level);
        let config = fixture.root.join(".git/config");
        fixture.result("git status");
        git(&fixture.root, &["config", "operator.set", "yes"]);
        git(&fixture.root, &["config", "extensions.worktreeConfig", "true"]);
        git(&fixture.root, &["config", "--worktree", "operator.too", "yes"]);
        let before = read(&config);
        let result = fixture.result("git config --get operator.set; git config a.b c; git status");
        assert!(result["output"].as_str().unwrap().starts_with("yes\n"), "{result:?}");
        assert_eq!(read(&config), before, "{level}");
        let own = "git config --worktree a.b c || exit 7";
        assert_eq!(code(&fixture.result(own)) == 7, level == Level::Full, "a new place is mounted");
        assert!(!read(fixture.root.join(".git/config.worktree")).contains("b = c"), "{level}");

        // A change from outside while a command runs: with mounts it can only be the operator's.
        if level == Level::Full {
            std::fs::create_dir(fixture.root.join("sub")).unwrap();
            let outcome = std::thread::scope(|scope| {
                let running = scope.spawn(|| {
                    fixture.result("mkfifo go; echo 1 > started; read x < go; git status -s")
                });
                while !fixture.root.join("started").exists() {
                    std::thread::yield_now();
                }
                git(&fixture.root, &["config", "operator.late", "yes"]);
                std::fs::write(fixture.root.join("go"), "x\n").unwrap();
                running.join().unwrap()
            });
            assert!(notice(&outcome).contains("replaced from outside"), "{outcome:?}");
            assert!(read(&config).contains("late"), "it is left as it is");
        }
    });
}

fn a_worktree_in_a_root_is_protected_with_its_repository() {
    let base = tempfile::tempdir().unwrap();
    let base = base.path().canonicalize().unwrap();
    each_level(|level| {
        let main = base.join(level.name());
        std::fs::create_dir(&main).unwrap();
        repository(&main);
        let fixture = Fixture::guarded(|settings| {
            let root = at(level, settings);
            git(&main, &["worktree", "add", "-q", "-f", root.join("wt").to_str().unwrap()]);
            settings.policy.roots = vec![root.join("wt")];
            settings.policy.command_write = vec![main.join(".git")];
        });
        let tree = fixture.root.join("wt");
        let (config, pointer) = (read(main.join(".git/config")), read(tree.join(".git")));
        let own = main.join(".git/worktrees/wt");
        let common = read(own.join("commondir"));
        for command in [
            "git config a.b c".to_owned(),
            "echo 'gitdir: /elsewhere' > .git".to_owned(),
            "rm -f .git; git init -q".to_owned(),
            format!("echo ../../../evil > {}/commondir", own.display()),
            format!("echo '#!/bin/sh' > {}/hooks/pre-commit", main.join(".git").display()),
        ] {
            fixture.result_in(&tree, &command);
            assert_eq!(read(main.join(".git/config")), config, "{level}: {command}");
            assert_eq!(read(tree.join(".git")), pointer, "{level}: {command}");
            assert_eq!(read(own.join("commondir")), common, "{level}: {command}");
            assert!(!main.join(".git/hooks/pre-commit").exists(), "{level}: {command}");
        }
        let work = "echo 1 > f && git add f && git -c user.name=t -c user.email=t@t commit -qm f";
        assert_eq!(code(&fixture.result_in(&tree, work)), 0, "{level}");
    });
}

fn submodules_and_worktrees_of_a_repository_are_protected() {
    each_level(|level| {
        let fixture = Fixture::guarded(|settings| {
            let root = at(level, settings);
            std::fs::create_dir(root.join("lib")).unwrap();
            repository(&root.join("lib"));
            std::fs::create_dir(root.join("top")).unwrap();
            let top = root.join("top");
            repository(&top);
            git(&top, &["submodule", "add", "-q", "--name", "deep/name", "../lib", "sub"]);
            git(&top, &["worktree", "add", "-q", "../tree"]);
            settings.policy.roots = vec![top];
        });
        let top = fixture.root.join("top");
        let module = top.join(".git/modules/deep/name");
        let config = read(module.join("config"));
        for command in [
            "git -C sub config core.fsmonitor x",
            "echo '#!/bin/sh' > .git/modules/deep/name/hooks/post-index-change",
            "echo /elsewhere > .git/modules/deep/name/commondir",
            "echo '[core]' > .git/worktrees/tree/config.worktree",
            "echo '* x' > .git/modules/deep/name/info/attributes",
        ] {
            fixture.result_in(&top, command);
            assert_eq!(read(module.join("config")), config, "{level}: {command}");
            for made in [
                module.join("hooks/post-index-change"),
                module.join("commondir"),
                module.join("info/attributes"),
                top.join(".git/worktrees/tree/config.worktree"),
            ] {
                assert!(!made.exists(), "{level}: {command}: {}", made.display());
            }
        }
        assert_eq!(code(&fixture.result_in(&top, "git -C sub status; git status")), 0, "{level}");
    });
}

fn what_programs_outside_obey_is_told() {
    each_level(|level| {
        let fixture = Fixture::guarded(|settings| {
            let root = at(level, settings);
            std::fs::create_dir_all(root.join("deep/er/in")).unwrap();
            repository(&root.join("deep/er"));
        });
        for (command, path) in [
            ("echo x > .envrc", ".envrc"),
            ("mkdir .vscode && echo {} > .vscode/tasks.json", ".vscode/tasks.json"),
            ("echo x > .vscode/settings.json", ".vscode/settings.json"),
            ("echo x >> .bashrc", ".bashrc"),
            ("mkdir -p .idea && echo x > .idea/workspace.xml", ".idea/workspace.xml"),
            ("git init -q --bare .", "HEAD"),
            ("git init -q .", ".git"),
        ] {
            let result = fixture.result(command);
            let path = fixture.root.join(path).display().to_string();
            assert!(notice(&result).contains(&path), "{level}: {command}: {result:?}");
        }
        let deep = fixture.root.join("deep/er/in");
        let result = fixture.result_in(&deep, "git config a.b c");
        assert_eq!(code(&result), 0, "{level}");
        assert!(notice(&result).contains("deep/er/.git/config"), "{level}: {result:?}");
        let quiet = fixture.result_in(&deep, "git status; echo x > file; cat ../../../.envrc");
        assert_eq!(notice(&quiet), "", "{level}: {quiet:?}");
    });
}

fn the_file_tools_refuse_protected_paths_by_any_name() {
    let fixture = in_repository(Level::Kernel);
    let git_directory = fixture.root.join(".git");
    let links = "ln -s .git/config soft; ln -s .git dir; mkdir sub; ln -s ../.git sub/up";
    fixture.result(links);
    let paths = [
        ".git/config",
        "./sub/../.git/config",
        ".git/config.worktree",
        ".git/commondir",
        ".git/hooks/post-checkout",
        ".git/hooks/new/deep",
        ".git/info/attributes",
        ".git/modules/m/config",
        "soft",
        "dir/config",
        "sub/up/hooks/x",
        ".GIT/config",
        ".git/HEAD",
        ".git/objects/x",
        ".git/refs/x",
        ".git/description",
        "HEAD",
    ];
    let absolute = git_directory.join("config").display().to_string();
    for path in paths.iter().copied().chain([absolute.as_str()]) {
        let path = fixture.root.join(path).display().to_string();
        let write = json!({"path": path, "content": "x"});
        let tool = || Box::new(WriteFile::new(Default::default()));
        let error = fixture.other(tool(), write).expect_err(&path);
        assert_eq!(error.category(), Category::PermissionDenied, "{path}: {error:?}");
        assert!(error.message().contains("protect = \"git\""), "{path}: {error:?}");
        assert_eq!(error.details()["setting"], "protect", "{path}");
    }
    let edit = |path: &Path| json!({"path": path, "old_string": "core", "new_string": "x"});
    let error = fixture.other(Box::<EditFile>::default(), edit(&git_directory.join("config")));
    assert_eq!(error.expect_err("protected").category(), Category::PermissionDenied);
    // A second name of the same file.
    std::fs::hard_link(git_directory.join("config"), fixture.root.join("hard")).unwrap();
    let error = fixture.other(Box::<EditFile>::default(), edit(&fixture.root.join("hard")));
    assert_eq!(error.expect_err("the same file").category(), Category::PermissionDenied);
    for allowed in [
        ".git/info/exclude",
        ".git/MERGE_MSG",
        ".git/rebase-merge/git-rebase-todo",
        "config",
        "hooks/x",
        "objects/x",
        "sub/.git/config",
        "sub/HEAD",
    ] {
        let write: Value = json!({"path": fixture.root.join(allowed), "content": "x"});
        fixture.other(Box::new(WriteFile::new(Default::default())), write).expect(allowed);
    }
    // A command may make a bare repository of the root, which is told; no file tool gives it a config.
    assert!(notice(&fixture.result("cp .git/HEAD .")).contains("/HEAD"));
    let write: Value = json!({"path": fixture.root.join("config"), "content": "y"});
    let error = fixture.other(Box::new(WriteFile::new(Default::default())), write);
    assert_eq!(error.expect_err("beside a HEAD").category(), Category::PermissionDenied);
}

fn nothing_is_protected_where_the_operator_says_so() {
    each_level(|level| {
        let fixture = Fixture::with(|settings| {
            let root = at(level, settings);
            repository(&root);
        });
        let result = fixture.result("git config a.b c && echo x > .git/hooks/x && mv .git g");
        assert_eq!((code(&result), notice(&result)), (0, ""), "{level}");
        let path = fixture.root.join(".git/config");
        let write = json!({"path": path, "content": "x"});
        fixture.other(Box::new(WriteFile::new(Default::default())), write).unwrap();
    });
}
