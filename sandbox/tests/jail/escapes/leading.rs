//! The directories between `/` and a root: what is moved there must fail to move, not vanish.

use std::fs;
use std::path::{Path, PathBuf};

use sandbox::Level;
use tempfile::TempDir;

use crate::case::{Case, Need, stories};
use crate::fixture::{Directories, Fixture};

pub(crate) fn stories() -> Vec<Case> {
    stories!["escapes::leading":
        a_file_that_is_moved_beside_a_root_stays_in_it,
        a_worktree_beside_a_root_fails_loudly needs [Need::Program("git")],
        the_directories_of_a_link_to_a_root_are_not_written,
        the_hidden_directories_above_a_root_stay,
        scratch_and_home_are_written,
    ]
}

/// Roots at the depths and in the places where operators have them, each with its jail. The last value
/// holds what the test made outside the directory for temporary files.
fn jails(level: Level) -> (Vec<(PathBuf, Fixture)>, TempDir) {
    let elsewhere = tempfile::tempdir_in(std::env::var_os("HOME").unwrap()).unwrap();
    let srv = elsewhere.path().canonicalize().unwrap().join("srv");
    let places: [&dyn Fn(&Directories) -> PathBuf; 4] = [
        &|dirs| dirs.root.clone(),
        &|dirs| dirs.root.with_file_name("a").join("b/root"),
        &|dirs| dirs.home().join("code/project"),
        &|_| srv.join("x"),
    ];
    let build = |place: &dyn Fn(&Directories) -> PathBuf| {
        let mut root = PathBuf::new();
        let fixture = Fixture::with(level, |dirs, policy| {
            root = place(dirs);
            fs::create_dir_all(&root).unwrap();
            fs::write(root.join("precious.txt"), "precious").unwrap();
            policy.home = Some(dirs.home().to_owned());
            policy.roots = vec![root.clone()];
        });
        (root, fixture)
    };
    (places.map(build).into(), elsewhere)
}

fn a_file_that_is_moved_beside_a_root_stays_in_it(level: Level) {
    let (jails, _elsewhere) = jails(level);
    for (root, fixture) in &jails {
        for script in [
            "mkdir -p ../backup && mv precious.txt ../backup/",
            "mv precious.txt ../",
            "cp precious.txt ../copy",
            "mkdir -p ../../backup && mv precious.txt ../../backup/",
            "mv precious.txt ../../",
            "mv \"$PWD\" ../renamed",
        ] {
            // Two steps above, a private directory may begin.
            let above = root.ancestors().nth(2).unwrap();
            let scratch = fixture.level == Level::Full
                && (above == Path::new("/tmp") || above == fixture.dirs.home());
            if scratch && script.contains("../../") {
                continue;
            }
            let outcome = fixture.bash_in(root, script);
            assert_ne!(outcome.report.status.shell_code(), 0, "{root:?}: {script}\n{outcome:?}");
            let reasons = ["Read-only file system", "Permission denied", "Device or resource busy"];
            let said = reasons.iter().any(|reason| outcome.stderr.contains(reason));
            assert!(said, "{root:?}: {script}\n{outcome:?}");
            assert_eq!(fs::read_to_string(root.join("precious.txt")).unwrap(), "precious");
        }
        let within = "mkdir -p backup && mv precious.txt backup/ && mv backup/precious.txt .";
        fixture.bash_in(root, within).succeeded(within);
    }
}

fn a_worktree_beside_a_root_fails_loudly(level: Level) {
    let (jails, _elsewhere) = jails(level);
    let script = "set -e; export GIT_CONFIG_GLOBAL=/dev/null; git init -q . &&
        git -c user.name=n -c user.email=e commit -q --allow-empty -m first
        git worktree add -q inner -b inner; ! git worktree add -q ../wt -b side";
    for (root, fixture) in &jails {
        let outcome = fixture.bash_in(root, script);
        assert!(outcome.stderr.contains("could not create"), "{root:?}: {outcome:?}");
        outcome.succeeded(script);
    }
}

fn the_directories_of_a_link_to_a_root_are_not_written(level: Level) {
    let mut link = PathBuf::new();
    let fixture = Fixture::with(level, |dirs, policy| {
        link = dirs.root.with_file_name("links").join("deep/link");
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(&dirs.root, &link).unwrap();
        policy.roots = vec![link.clone()];
    });
    let script = |to: &Path| format!("mv own {}", to.display());
    for beside in [link.with_file_name("lost"), link.parent().unwrap().with_file_name("lost")] {
        let outcome = fixture.bash_in(&link, &script(&beside));
        assert_ne!(outcome.report.status.shell_code(), 0, "{beside:?}: {outcome:?}");
    }
    fixture.bash_in(&link, &script(&link.join("kept"))).succeeded("within");
    assert!(fixture.dirs.root.join("kept").exists());
}

/// A root below a hidden directory of HOME, which is scratch itself, is found again by the next call.
fn the_hidden_directories_above_a_root_stay(level: Level) {
    for place in [".local/share/project", ".config/project", ".a/.b/c/project"] {
        let mut root = PathBuf::new();
        let fixture = Fixture::with(level, |dirs, policy| {
            root = dirs.home().join(place);
            fs::create_dir_all(&root).unwrap();
            policy.home = Some(dirs.home().to_owned());
            policy.roots = vec![root.clone()];
        });
        let first = Path::new(place).iter().next().unwrap();
        let hidden = fixture.dirs.home().join(first);
        let script = format!("D='{}'; mv -T \"$D\" \"$D.moved\"", hidden.display());
        let outcome = fixture.bash_in(&root, &script);
        let reason = if level == Level::Full { "resource busy" } else { "Permission denied" };
        assert!(outcome.stderr.contains(reason), "{place}: {outcome:?}");
        fixture.bash_in(&root, "echo kept > kept").succeeded("a later call");
        assert_eq!(fs::read_to_string(root.join("kept")).unwrap(), "kept\n", "{place}");
        let beside = "mkdir -p ~/.config/tool ~/.other && echo x > ~/.config/tool/x &&
            mv ~/.config/tool ~/.config/moved && mv ~/.other ~/.moved && rm -r ~/.config/moved";
        fixture.bash_in(&root, beside).succeeded(beside);
    }
}

fn scratch_and_home_are_written(level: Level) {
    let (jails, _elsewhere) = jails(level);
    for (root, fixture) in &jails {
        let script = "echo x > \"$TMPDIR/x\" && mkdir -p ~/.config/tool ~/new &&
            echo x > ~/.config/tool/x && echo x > ~/new/x && echo x > ~/x";
        fixture.bash_in(root, script).succeeded(script);
        if level == Level::Full {
            let script = "mkdir /tmp/new && echo x > /tmp/new/x && echo x > /var/tmp/x";
            fixture.bash_in(root, script).succeeded(script);
        }
    }
}
