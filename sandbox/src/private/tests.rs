//! The directories of providers that live, end, and were killed.

use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};

use rustix::fs::FileType;

use super::remove::DEAD;
use super::*;

/// What is in the user's own directory under `base` and starts with `prefix`.
fn beginning(base: &Path, prefix: &str) -> Vec<PathBuf> {
    let found = fs::read_dir(user_dir_path(base)).unwrap().map(|entry| entry.unwrap());
    let found = found.filter(|entry| entry.file_name().to_str().unwrap().starts_with(prefix));
    found.map(|entry| entry.path()).collect()
}

#[test]
fn the_directories_are_removed_with_their_owner() {
    let base = tempfile::tempdir().unwrap();
    let dirs = PrivateDirs::make(base.path()).unwrap();
    fs::create_dir_all(dirs.tmp().join("a/b/c/d")).unwrap();
    fs::write(dirs.tmp().join("a/b/c/file"), "").unwrap();
    for dir in ["a/b/c", "a/b", "a"] {
        let closed = Permissions::from_mode(0o000);
        fs::set_permissions(dirs.tmp().join(dir), closed).unwrap();
    }
    let second = PrivateDirs::make(base.path()).unwrap();
    let at = dirs.at.clone();
    drop(dirs);
    assert!(!at.exists() && second.at.exists());
    drop(second);
    assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0, "the last one leaves nothing");
    drop(PrivateDirs::make(base.path()).unwrap());
}

#[test]
fn providers_that_come_and_go_at_once_do_not_disturb_one_another() {
    let base = tempfile::tempdir().unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let dirs = PrivateDirs::make(base.path()).unwrap();
                    fs::write(dirs.tmp().join("file"), "").unwrap();
                }
            });
        }
    });
    assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
}

/// A process that begins has copies of all descriptors until it runs its program.
#[test]
fn a_lock_is_given_up_although_its_file_is_open_elsewhere() {
    let directory = tempfile::tempdir().unwrap();
    let own = enter(CWD, directory.path()).unwrap();
    let locked = try_order(&own).unwrap();
    let copy = locked.as_fd().try_clone_to_owned().unwrap();
    assert!(try_order(&own).is_err());
    drop(locked);
    assert!(try_order(&own).is_ok());
    drop(copy);
}

#[test]
fn a_very_deep_tree_is_removed_and_what_it_links_to_stays() {
    let base = tempfile::tempdir().unwrap();
    let elsewhere = base.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("file"), "").unwrap();
    let dirs = PrivateDirs::make(base.path()).unwrap();
    let mut deepest = enter(CWD, dirs.tmp()).unwrap();
    for _ in 0..5000 {
        rustix::fs::symlinkat(&elsewhere, &deepest, "link").unwrap();
        deepest = make_in(&deepest, "directory").unwrap();
    }
    let at = dirs.at.clone();
    drop(dirs);
    assert!(!at.exists());
    assert!(elsewhere.join("file").exists());
}

#[test]
fn directories_of_a_dead_owner_are_removed_and_those_of_a_living_one_stay() {
    let base = tempfile::tempdir().unwrap();
    let living = PrivateDirs::make(base.path()).unwrap();
    let own = living.at.parent().unwrap().to_owned();
    fs::create_dir_all(own.join("jail-dead/tmp")).unwrap();
    fs::write(own.join("jail-dead/lock"), "").unwrap();
    fs::create_dir_all(own.join("dead-left/tmp")).unwrap();
    let next = PrivateDirs::make(base.path()).unwrap();
    assert!(!own.join("jail-dead").exists());
    assert!(living.spool().is_dir() && next.spool().is_dir());
    let _ = next.removal.lock().unwrap().recv();
    assert!(beginning(base.path(), DEAD).is_empty());
    drop((living, next));
    assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
}

/// A start does not wait for what a killed provider left, nor do those that come meanwhile.
#[test]
fn what_a_dead_owner_left_does_not_hold_up_a_start() {
    let base = tempfile::tempdir().unwrap();
    drop(PrivateDirs::make(base.path()).unwrap());
    let dead = user_dir_path(base.path()).join("jail-dead");
    DirBuilder::new().mode(0o700).create(user_dir_path(base.path())).unwrap();
    fs::create_dir_all(dead.join("tmp")).unwrap();
    for number in 0..50_000 {
        fs::write(dead.join("tmp").join(number.to_string()), "").unwrap();
    }
    let mut removals = Vec::new();
    let first = PrivateDirs::make_and(base.path(), |removal| removals.push(removal)).unwrap();
    let second = PrivateDirs::make_and(base.path(), |removal| removals.push(removal)).unwrap();
    let aside = beginning(base.path(), DEAD);
    assert!(!dead.exists() && aside.len() == 1);
    assert_eq!(fs::read_dir(aside[0].join("tmp")).unwrap().count(), 50_000);
    // Whoever comes first, and both at once.
    thread::scope(|scope| {
        for removal in removals {
            scope.spawn(removal);
        }
    });
    assert!(beginning(base.path(), DEAD).is_empty());
    drop((first, second));
    assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
}

/// What a provider does not get to is there for the next one.
#[test]
fn a_removal_that_never_ran_is_the_next_providers() {
    let base = tempfile::tempdir().unwrap();
    let own = user_dir_path(base.path());
    DirBuilder::new().mode(0o700).create(&own).unwrap();
    fs::create_dir_all(own.join("jail-dead/tmp")).unwrap();
    let living = PrivateDirs::make_and(base.path(), drop).unwrap();
    assert_eq!(beginning(base.path(), DEAD).len(), 1);
    drop(PrivateDirs::make(base.path()).unwrap());
    assert!(beginning(base.path(), DEAD).is_empty());
    drop(living);
    assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
}

/// As one without descriptors ends, while another jail of the same process goes on.
#[test]
fn what_an_earlier_end_left_is_removed_at_the_last_one() {
    let base = tempfile::tempdir().unwrap();
    let (ended, last) = (PrivateDirs::make(base.path()), PrivateDirs::make(base.path()).unwrap());
    let left = ended.unwrap().at.clone();
    fs::create_dir_all(left.join("tmp")).unwrap();
    fs::write(left.join(LOCK), "").unwrap();
    drop(last);
    assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
}

#[test]
fn planted_links_and_pipes_have_no_effect() {
    let base = tempfile::tempdir().unwrap();
    let elsewhere = base.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("file"), "").unwrap();
    fs::set_permissions(&elsewhere, Permissions::from_mode(0o750)).unwrap();
    let own = user_dir_path(base.path());
    DirBuilder::new().mode(0o700).create(&own).unwrap();
    symlink(&elsewhere, own.join("jail-link")).unwrap();
    for name in ["jail-lock", "jail-inner", "jail-pipe"] {
        fs::create_dir(own.join(name)).unwrap();
    }
    symlink(elsewhere.join("made"), own.join("jail-lock/lock")).unwrap();
    symlink(&elsewhere, own.join("jail-inner/tmp")).unwrap();
    let pipe = own.join("jail-pipe/lock");
    rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, PRIVATE, 0).unwrap();
    symlink(&elsewhere, own.join("dead-link")).unwrap();
    drop(PrivateDirs::make(base.path()).unwrap());
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 1);
    assert_eq!(fs::metadata(&elsewhere).unwrap().permissions().mode() & 0o777, 0o750);
    for link in ["jail-link", "dead-link"] {
        assert!(own.join(link).symlink_metadata().is_err());
    }
    assert!(!own.join("jail-inner").exists());
}

#[test]
fn a_directory_that_someone_else_prepared_is_not_used() {
    let base = tempfile::tempdir().unwrap();
    let trap = user_dir_path(base.path());
    let elsewhere = base.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, &trap).unwrap();
    let dirs = PrivateDirs::make(base.path()).unwrap();
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    assert!(!dirs.at.starts_with(&trap));
}
