//! What a package manager has got for the operator is used, and what a command gets comes beside it.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use sandbox::{Level, Network, Overlay, Policy};

use crate::case::{Case, stories};
use crate::fixture::{Directories, Fixture, SECRET};

pub(crate) fn stories() -> Vec<Case> {
    stories!["daily_work::overlays":
        crates_of_the_operator_are_read_and_others_come_beside_them,
        modules_of_the_operator_for_python_come_next,
        caches_of_the_operator_are_read_without_a_network_and_added_to,
        a_planted_overlay_is_not_followed,
        what_the_operator_removed_is_in_nobodys_way,
    ]
}

const CRATES: &str = ".cargo/registry/cache/index";

fn write(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn operator(dirs: &Directories) {
    let home = dirs.home();
    write(&home.join(CRATES).join("one.crate"), "one");
    write(&home.join(".cargo/registry/index/index/.cache/on/ne/one"), "known");
    write(&home.join(".cargo/credentials.toml"), SECRET);
    write(&home.join(".cargo/registry/index/index/.git/config"), "");
}

fn policy(dirs: &Directories, level: Level, network: Network) -> Policy {
    let home = Some(dirs.home().to_owned());
    Policy { home, network, ..dirs.policy(level) }
}

fn crates_of_the_operator_are_read_and_others_come_beside_them(level: Level) {
    let dirs = Directories::new();
    operator(&dirs);
    let allowed = policy(&dirs, level, Network::Allow);
    let fixture = Fixture::of(dirs, &allowed, level);
    let overlays = &fixture.jail.private().home.as_ref().unwrap().overlays;
    assert_eq!(overlays, &[Overlay::Cargo]);
    let script =
        "cd ~/.prefix/cargo/registry && cat cache/index/one.crate index/index/.cache/on/ne/one
        echo two > cache/index/two.crate && mkdir -p index/index/.cache/tw/o
        ! test -e index/index/.git && ! test -e ../credentials.toml
        ! (echo x > cache/index/one.crate) 2>/dev/null";
    assert_eq!(fixture.succeeds(script), "oneknown");
    let crates = fixture.dirs.home().join(CRATES);
    assert_eq!(fs::read_to_string(crates.join("one.crate")).unwrap(), "one");
    assert_eq!(fs::read_dir(crates).unwrap().count(), 1);
    // Without a network there is nothing to put beside it.
    let dirs = fixture.dirs;
    drop(fixture.jail);
    let denied = policy(&dirs, level, Network::Deny);
    let fixture = Fixture::of(dirs, &denied, level);
    assert!(!fixture.jail.private().home.as_ref().unwrap().overlays.contains(&Overlay::Cargo));
    assert_eq!(fixture.succeeds(&format!("cat ~/{CRATES}/one.crate")), "one");
}

fn modules_of_the_operator_for_python_come_next(level: Level) {
    let dirs = Directories::new();
    let packages = ".local/lib/python3.11/site-packages";
    write(&dirs.home().join(packages).join("mine.py"), "");
    write(&dirs.home().join(".local/bin/of-mine"), "");
    let denied = policy(&dirs, level, Network::Deny);
    let fixture = Fixture::of(dirs, &denied, level);
    let named = fixture.succeeds("cat ~/.prefix/lib/python3.11/site-packages/operator.pth");
    let packages = fixture.dirs.home().join(packages);
    assert_eq!(named, format!("import site; site.addsitedir('{}')\n", packages.display()));
    fixture.succeeds(&format!("test -e {}/mine.py", packages.display()));
}

fn caches_of_the_operator_are_read_without_a_network_and_added_to(level: Level) {
    let dirs = Directories::new();
    let home = dirs.home();
    for (path, content) in [
        (".cache/uv/archive-v0/one/pkg/token.py", "one"),
        (".cache/uv/wheels-v8/pypi/tokens/one.http", "two"),
        (".cache/uv/wheels-v8/pypi/tokens/one.lock", ""),
        (".cache/uv/git-v0/db/config", SECRET),
        (".cache/yarn/v6/npm-one/index.js", "three"),
        (".cache/yarn/v6/.tmp/x", ""),
        (".cache/pypoetry/auth.toml", SECRET),
        (".config/pnpm/rc", SECRET),
        (".local/share/pnpm/store/v3/files/aa/one", "four"),
        (".local/share/pnpm/store/v11/index.db", "five"),
    ] {
        write(&home.join(path), content);
    }
    let script = "grep -q package-import-method=clone-or-copy ~/.config/pnpm/rc
        cd ~/.prefix/cache && cat uv/*/*/pkg/token.py uv/*/*/*/one.http yarn/v6/npm-one/index.js
        cat ~/.prefix/pnpm/store/v3/files/aa/one ~/.prefix/pnpm/store/v11/index.db
        echo x >> ~/.prefix/pnpm/store/v11/index.db
        ! test -e uv/git-v0 && ! test -e pypoetry && ! test -e ~/.cache/uv/git-v0
        test ! -L uv/archive-v0/one/pkg && mkdir uv/archive-v0/two yarn/v6/.tmp yarn/v6/npm-two
        echo x > uv/wheels-v8/pypi/tokens/one.lock && echo x > ~/.prefix/pnpm/store/v3/files/aa/two
        ! (echo x > uv/archive-v0/one/pkg/token.py) 2>/dev/null";
    let denied = policy(&dirs, level, Network::Deny);
    let fixture = Fixture::of(dirs, &denied, level);
    let overlays = &fixture.jail.private().home.as_ref().unwrap().overlays;
    assert_eq!(overlays, &[Overlay::Uv, Overlay::Yarn, Overlay::Pnpm]);
    assert_eq!(fixture.succeeds(script), "onetwothreefourfive");
    // With a network all of that is got there.
    let dirs = fixture.dirs;
    drop(fixture.jail);
    let allowed = policy(&dirs, level, Network::Allow);
    let fixture = Fixture::of(dirs, &allowed, level);
    assert_eq!(fixture.jail.private().home.as_ref().unwrap().overlays, []);
    fixture.succeeds("! test -e ~/.cache/uv && ! test -e ~/.local/share/pnpm");
}

/// Keeps HOME, so that a story finds what an earlier one left there.
fn keeping(dirs: &Directories, level: Level) -> Policy {
    let homes = dirs.home().with_file_name("homes");
    fs::create_dir_all(&homes).unwrap();
    fs::set_permissions(&homes, PermissionsExt::from_mode(0o700)).unwrap();
    Policy { homes: Some(homes), ..policy(dirs, level, Network::Allow) }
}

/// Runs a script with HOME kept, and says where HOME lies.
fn keep(dirs: Directories, level: Level, script: &str) -> (Directories, PathBuf) {
    let policy = keeping(&dirs, level);
    let fixture = Fixture::of(dirs, &policy, level);
    fixture.succeeds(script);
    let home = fixture.jail.private().home.as_ref().unwrap().at.clone();
    drop(fixture.jail);
    (fixture.dirs, home)
}

fn a_planted_overlay_is_not_followed(level: Level) {
    for planted in [".prefix", ".prefix/cargo", ".prefix/cargo/registry", ".prefix/lib"] {
        let dirs = Directories::new();
        operator(&dirs);
        write(&dirs.home().join(".local/lib/python3.11/site-packages/mine.py"), "");
        write(&dirs.home().join(".local/bin/of-mine"), "");
        let (dirs, home) = keep(dirs, level, "true");
        fs::remove_dir_all(home.join(planted)).unwrap();
        symlink(&dirs.outside, home.join(planted)).unwrap();
        let before = dirs.outside_as_it_is();
        let script = format!("cat ~/.prefix/{}/one.crate", &CRATES[1..]);
        let (dirs, _) = keep(dirs, level, &script);
        assert_eq!(dirs.outside_as_it_is(), before, "{planted}");
    }
}

fn what_the_operator_removed_is_in_nobodys_way(level: Level) {
    let dirs = Directories::new();
    operator(&dirs);
    let (dirs, _) = keep(dirs, level, "echo two > ~/.prefix/cargo/registry/cache/index/two.crate");
    fs::remove_file(dirs.home().join(CRATES).join("one.crate")).unwrap();
    let script = "cd ~/.prefix/cargo/registry/cache/index && echo new > one.crate && cat two.crate";
    let (dirs, _) = keep(dirs, level, script);
    assert_eq!(fs::read_dir(dirs.home().join(CRATES)).unwrap().count(), 0);
    // What a command made stays when the operator has it again.
    fs::write(dirs.home().join(CRATES).join("one.crate"), "one").unwrap();
    keep(dirs, level, "grep -q new ~/.prefix/cargo/registry/cache/index/one.crate");
}
