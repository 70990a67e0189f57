//! Commands that try to have a person's own git run something.

use std::path::Path;
use std::process::Command;

use sandbox::Level;

use super::fixture::{Fixture, notice, read};
use super::protect::{at, each_level, git, in_repository, repository};
use crate::trials::{Need, Trial};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        no_command_has_git_outside_run_something needs [Need::Program("git")],
        nothing_that_two_commands_do_one_after_the_other_gets_through needs [Need::Program("git")],
        what_runs_beside_it_is_no_way_around needs [Need::Program("git")],
        what_is_too_large_is_bounded needs [Need::Program("git")],
        a_call_that_is_cancelled_is_compared_too needs [Need::Program("git")],
        no_link_on_the_way_leads_git_to_other_places needs [Need::Program("git")],
        many_submodules_crowd_out_no_repository needs [Need::Program("git")],
        a_mapping_that_was_written_before_changes_nothing_unseen needs [Need::Program("git"), Need::Program("python3")],
        a_mode_hides_nothing needs [Need::Program("git")],
    ]
}

/// What an attacker's config says: git runs it at the next look.
fn trap(fixture: &Fixture) -> String {
    format!("git config -f CONFIG core.fsmonitor 'touch {}; false'", sprung(fixture).display())
}

fn sprung(fixture: &Fixture) -> std::path::PathBuf {
    fixture.outside.join("sprung")
}

/// Looks with git, as a person does who does not think of anything bad.
fn looks(fixture: &Fixture, directory: &Path, context: &str) {
    let status = Command::new("timeout")
        .current_dir(directory)
        .args(["60", "git", "status", "--short"])
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(!sprung(fixture).exists(), "{context}: git ran the trap: {status:?}");
    assert_ne!(status.status.code(), Some(124), "{context}: git waits for ever");
}

const ATTACKS: [&str; 16] = [
    "TRAP:.git/config",
    "cp .git/config c; TRAP:c; mv c .git/config",
    "cp -r .git g; TRAP:g/config; rm -rf .git; mv g .git",
    "mv .git g; cp -r g .git; TRAP:.git/config",
    "cp -r .git g; TRAP:g/config; mv .git old; ln -s g .git",
    "cp -r .git g; TRAP:g/config; mv .git old; echo gitdir: g > .git",
    "mkdir -p deep; mv .git deep/g; cp -r deep/g .git; TRAP:.git/config",
    "cp .git/config c; TRAP:c; rm .git/config; ln -s ../c .git/config",
    "ln .git/config hard; TRAP:hard; cat hard > .git/config",
    "mkdir evil; cp -r .git/. evil; TRAP:evil/config; echo ../evil > .git/commondir",
    "HOOK:.git/hooks/post-index-change; touch a",
    "mkdir h; HOOK:h/post-index-change; rm -rf .git/hooks; ln -s ../h .git/hooks; touch a",
    "mkdir h; HOOK:h/post-index-change; mv .git/hooks .git/x; mv h .git/hooks; touch a",
    "for n in $(seq 2000); do : > .git/hooks/a$n; done; HOOK:.git/hooks/post-index-change; touch a",
    "chmod 777 .git/config .git/hooks; TRAP:.git/config",
    "rm .git/config; mkfifo .git/config",
];

/// Spells out what a line of [`ATTACKS`] stands for.
fn attack(fixture: &Fixture, line: &str) -> String {
    let steps = line.split("; ").map(|step| {
        if let Some(config) = step.strip_prefix("TRAP:") {
            return trap(fixture).replace("CONFIG", config);
        }
        match step.strip_prefix("HOOK:") {
            Some(hook) => format!(
                "printf '#!/bin/sh\\ntouch {}\\n' > {hook}; chmod +x {hook}",
                sprung(fixture).display()
            ),
            None => step.to_owned(),
        }
    });
    steps.collect::<Vec<_>>().join("; ")
}

fn no_command_has_git_outside_run_something() {
    each_level(|level| {
        for line in ATTACKS {
            let fixture = in_repository(level);
            let config = read(fixture.root.join(".git/config"));
            let result = fixture.result(&attack(&fixture, line));
            looks(&fixture, &fixture.root, &format!("{level}: {line}: {result:?}"));
            if fixture.root.join(".git").exists() {
                let now = read(fixture.root.join(".git/config"));
                assert_eq!(now, config, "{level}: {line}: {result:?}");
            }
            let notice = notice(&result);
            let is_said =
                notice.contains("protect = \"git\"") || notice.contains("gone from its place");
            assert!(is_said || level == Level::Full, "{level}: {line}: {result:?}");
        }
    });
}

fn nothing_that_two_commands_do_one_after_the_other_gets_through() {
    each_level(|level| {
        for lines in [
            ["mkdir d; mv .git d/g", "cp -r d/g .git; TRAP:.git/config"],
            [
                "mv .git/hooks .git/h",
                "mkdir -p .git/hooks; HOOK:.git/hooks/post-index-change; touch a",
            ],
            ["rm -rf .git", "git init -q .; git add .; TRAP:.git/config"],
            ["ln .git/config hard", "TRAP:hard; git config -f hard x.y z"],
        ] {
            let fixture = in_repository(level);
            let config = read(fixture.root.join(".git/config"));
            for line in lines {
                let result = fixture.result(&attack(&fixture, line));
                looks(&fixture, &fixture.root, &format!("{level}: {line}: {result:?}"));
            }
            let now = read(fixture.root.join(".git/config"));
            assert_eq!(now, config, "{level}: {lines:?}");
        }
    });
}

fn what_runs_beside_it_is_no_way_around() {
    each_level(|level| {
        let fixture = in_repository(level);
        git(&fixture.root, &["config", "operator.set", "yes"]);
        let config = read(fixture.root.join(".git/config"));
        std::thread::scope(|scope| {
            let long = "mkfifo go; echo 1 > started; read x < go; echo end";
            let long = scope.spawn(|| fixture.result(long));
            while !fixture.root.join("started").exists() {
                std::thread::yield_now();
            }
            // Another one changes it and ends while the first one runs, and a third one starts.
            fixture.result(&attack(&fixture, "TRAP:.git/config"));
            looks(&fixture, &fixture.root, &format!("{level}: beside another"));
            fixture.result(&attack(&fixture, "true; HOOK:.git/hooks/post-index-change"));
            looks(&fixture, &fixture.root, &format!("{level}: beside another, later"));
            std::fs::write(fixture.root.join("go"), "x\n").unwrap();
            assert_eq!(long.join().unwrap()["output"], "end\n");
        });
        assert_eq!(read(fixture.root.join(".git/config")), config, "{level}: the operator's stays");
    });
}

fn what_is_too_large_is_bounded() {
    let fixture = in_repository(Level::Kernel);
    let path = fixture.root.join(".git/config");
    let config = read(&path);
    let result = fixture.result("truncate -s 8G .git/config; truncate -s 8G .git/hooks/new");
    assert_eq!(read(&path), config, "{result:?}");
    assert!(!fixture.root.join(".git/hooks/new").exists());
    assert!(notice(&result).contains("set-aside"), "too large to be kept elsewhere: {result:?}");

    let large = Fixture::guarded(|settings| {
        let root = at(Level::Kernel, settings);
        repository(&root);
        let config = read(root.join(".git/config"));
        let comment = "# comment\n".repeat(200_000);
        std::fs::write(root.join(".git/config"), config + &comment).unwrap();
    });
    assert_eq!(notice(&large.result("git status")), "");
    let result = large.result("git config a.b c");
    assert!(notice(&result).contains("could NOT be set back"), "{result:?}");
}

fn a_call_that_is_cancelled_is_compared_too() {
    let fixture = in_repository(Level::Kernel);
    let path = fixture.root.join(".git/config");
    let config = read(&path);
    let command = format!("{}; echo done; sleep 100", attack(&fixture, "TRAP:.git/config"));
    let answer = fixture.cancelled(serde_json::json!({"command": command}), "done");
    assert_eq!(read(&path), config);
    let details = format!("{:?}", answer.error().details());
    assert!(details.contains("protect = "), "{details}");
}

/// A repository `top`, the only root, with a submodule `sub` and a worktree `../tree`.
fn with_submodule_and_worktree(level: Level) -> Fixture {
    Fixture::guarded(|settings| {
        let root = at(level, settings);
        let top = root.join("top");
        for directory in [&root.join("lib"), &top] {
            std::fs::create_dir(directory).unwrap();
            repository(directory);
        }
        git(&top, &["submodule", "add", "-q", "--name", "deep/name", "../lib", "sub"]);
        git(&top, &["worktree", "add", "-q", "../tree"]);
        settings.policy.roots = vec![top];
    })
}

fn no_link_on_the_way_leads_git_to_other_places() {
    const EVIL: &str = "cp -r .git evil; TRAP:evil/config";
    let evil = |step: &str| format!("{EVIL}; {step}");
    let attacks = [
        vec![evil(
            "mv .git/worktrees .git/wt0; ln -s wt0 .git/worktrees; echo ../../../evil > .git/wt0/tree/commondir",
        )],
        vec![evil(
            "mv .git/worktrees/tree .git/wt0; ln -s ../wt0 .git/worktrees/tree; echo ../../evil > .git/wt0/commondir",
        )],
        vec![evil(
            "mkdir d; mv .git/worktrees d/w; ln -s ../d/w .git/worktrees; echo ../../../evil > d/w/tree/commondir",
        )],
        vec![
            "mv .git/worktrees/tree x".to_owned(),
            evil("echo ../../../evil > x/commondir; mv x .git/worktrees/tree"),
        ],
        vec![
            "mv .git/modules .git/m0; ln -s m0 .git/modules; TRAP:.git/m0/deep/name/config"
                .to_owned(),
        ],
        vec![
            "mv .git/info .git/i0; ln -s i0 .git/info; echo '* x' > .git/i0/attributes".to_owned(),
        ],
    ];
    each_level(|level| {
        for lines in &attacks {
            let fixture = with_submodule_and_worktree(level);
            let top = fixture.root.join("top");
            for line in lines {
                let result = fixture.result_in(&top, &attack(&fixture, line));
                for directory in [top.clone(), top.join("sub"), fixture.root.join("tree")] {
                    looks(&fixture, &directory, &format!("{level}: {line}: {result:?}"));
                }
                let failed = result["exit_code"] != 0;
                let is_said = ["protect = \"git\"", "NOT be set back"]
                    .iter()
                    .any(|words| notice(&result).contains(words))
                    || lines.len() > 1;
                assert!(is_said || failed, "{level}: {line}: {result:?}");
            }
            assert!(!top.join(".git/info/attributes").exists(), "{level}: {lines:?}");
        }
    });
}

fn many_submodules_crowd_out_no_repository() {
    each_level(|level| {
        let fixture = Fixture::guarded(|settings| {
            let root = at(level, settings);
            settings.policy.roots = ["A", "B"].map(|name| root.join(name)).to_vec();
            for root in &settings.policy.roots {
                std::fs::create_dir(root).unwrap();
                repository(root);
            }
        });
        let (first, second) = (fixture.root.join("A"), fixture.root.join("B"));
        let many = "for n in $(seq 100); do mkdir -p .git/modules/$n/hooks; : > .git/modules/$n/config; done";
        fixture.result_in(&first, many);
        let config = read(second.join(".git/config"));
        for _ in 0..2 {
            let result = fixture.result_in(&second, &attack(&fixture, "TRAP:.git/config"));
            assert_eq!(read(second.join(".git/config")), config, "{level}: {result:?}");
            assert!(!notice(&result).contains("from outside"), "{level}: {result:?}");
        }
        // Of those that have no room, each is compared.
        let last = first.join(".git/modules/99/config");
        fixture.result_in(&first, "echo '[a]' >> .git/modules/99/config");
        assert_eq!(read(last), "", "{level}");
    });
}

fn a_mapping_that_was_written_before_changes_nothing_unseen() {
    let fixture = in_repository(Level::Kernel);
    let config = read(fixture.root.join(".git/config"));
    let write = "mkfifo go; python3 -c \"import mmap
f = open('.git/config', 'r+b'); m = mmap.mmap(f.fileno(), 0)
m[0:1] = m[0:1]; open('started', 'w').close(); open('go').read()
m[0:5] = b'#evil'\"";
    std::thread::scope(|scope| {
        let long = scope.spawn(|| fixture.result(write));
        while !fixture.root.join("started").exists() {
            std::thread::yield_now();
        }
        fixture.result("true");
        std::fs::write(fixture.root.join("go"), "x").unwrap();
        let result = long.join().unwrap();
        assert!(notice(&result).contains("protect = \"git\""), "{result:?}");
    });
    assert_eq!(read(fixture.root.join(".git/config")), config);
}

fn a_mode_hides_nothing() {
    use std::os::unix::fs::PermissionsExt as _;
    for line in [
        "mkdir evil; cp -r .git/. evil; TRAP:evil/config; echo ../evil > .git/commondir; chmod 555 .git",
        "mkdir evil; cp -r .git/. evil; TRAP:evil/config; echo ../evil > .git/commondir; chmod 311 .git",
        "HOOK:.git/hooks/post-index-change; touch a; chmod 311 .git/hooks",
        "echo '* x' > .git/info/attributes; chmod 0 .git/info",
    ] {
        let fixture = in_repository(Level::Kernel);
        let result = fixture.result(&attack(&fixture, line));
        looks(&fixture, &fixture.root, line);
        assert!(notice(&result).contains("set back"), "{line}: {result:?}");
        for directory in [".git", ".git/hooks", ".git/info"] {
            let mode =
                std::fs::metadata(fixture.root.join(directory)).unwrap().permissions().mode();
            assert_eq!(mode & 0o700, 0o700, "{line}: {directory}");
        }
        for made in [".git/commondir", ".git/hooks/post-index-change", ".git/info/attributes"] {
            assert!(!fixture.root.join(made).exists(), "{line}: {made}");
        }
    }
}
