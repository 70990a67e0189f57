//! Homes on a real disk, without a jail.

use std::fs::{self, File, FileTimes, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::{Duration, SystemTime};

use super::*;

struct Store {
    base: tempfile::TempDir,
}

impl Store {
    fn new() -> Self {
        let store = Self { base: tempfile::tempdir().unwrap() };
        for name in ["homes", "root"] {
            fs::create_dir(store.at(name)).unwrap();
        }
        fs::set_permissions(store.at("homes"), Permissions::from_mode(0o700)).unwrap();
        store
    }

    fn at(&self, name: &str) -> PathBuf {
        self.base.path().join(name)
    }

    fn homes(&self) -> Homes {
        Homes::open(&self.at("homes")).unwrap()
    }

    /// The rights of a jail whose one root is `root`.
    fn rights(&self, root: &str) -> Rights {
        let policy = Policy { roots: vec![self.at(root)], ..Policy::default() };
        Rights::of(&policy, None, Means::Landlock)
    }

    /// Takes the HOME of `root`, and uses it.
    fn take(&self, root: &str) -> KeptHome {
        let kept = self.unused(root);
        kept.used.store(true, Ordering::Relaxed);
        kept
    }

    fn unused(&self, root: &str) -> KeptHome {
        self.homes().take(&self.rights(root)).unwrap()
    }

    /// Makes the HOME of `root` look as if it was last used so many days ago.
    fn age(&self, root: &str, days: u64) {
        let lock = File::open(self.at("homes").join(self.rights(root).key()).join(LOCK)).unwrap();
        let then = SystemTime::now() - Duration::from_secs(days * 24 * 60 * 60);
        lock.set_times(FileTimes::new().set_modified(then)).unwrap();
    }

    fn keys(&self) -> Vec<String> {
        self.homes().list().unwrap().into_iter().map(|entry| entry.key).collect()
    }
}

#[test]
fn what_was_written_is_there_for_the_next_of_the_same_rights() {
    let store = Store::new();
    let first = store.take("root");
    fs::write(first.at.join("file"), "kept").unwrap();
    let second = store.take("root");
    assert_eq!((first.sharing, second.sharing), (Sharing::First, Sharing::Later));
    assert_eq!(second.at, first.at);
    drop((first, second));
    let third = store.take("root");
    assert_eq!(third.sharing, Sharing::First);
    assert_eq!(fs::read_to_string(third.at.join("file")).unwrap(), "kept");
    assert_ne!(store.take("other").at, third.at);
}

#[test]
fn one_that_no_command_had_leaves_nothing() {
    let store = Store::new();
    drop(store.unused("root"));
    assert_eq!(store.keys(), [""; 0]);
    let first = store.unused("root");
    drop(store.take("root"));
    drop(first);
    assert_eq!(store.keys().len(), 1, "a later one has used it");
    drop(store.unused("root"));
    assert_eq!(store.keys().len(), 1);
}

#[test]
fn one_that_is_in_use_stays_and_others_go_with_all_they_hold() {
    let store = Store::new();
    let kept = store.take("root");
    let key = store.rights("root").key();
    fs::write(store.at("precious"), "precious").unwrap();
    symlink(store.at("root"), kept.at.join("link")).unwrap();
    symlink(store.at("precious"), kept.at.join("file")).unwrap();
    fs::create_dir_all(kept.at.join("closed/in")).unwrap();
    fs::write(kept.at.join("closed/in/file"), "x").unwrap();
    for closed in ["closed/in", "closed", ""] {
        fs::set_permissions(kept.at.join(closed), Permissions::from_mode(0o000)).unwrap();
    }
    assert_eq!(store.homes().clear(&key).unwrap(), Cleared::InUse);
    assert!(store.homes().list().unwrap()[0].in_use);
    drop(kept);
    assert_eq!(store.homes().clear("../root").unwrap(), Cleared::Missing);
    assert_eq!(store.homes().clear(&key).unwrap(), Cleared::Removed);
    assert_eq!(store.homes().clear(&key).unwrap(), Cleared::Missing);
    assert!(store.at("root").is_dir() && store.at("precious").is_file());
    assert_eq!(fs::read_dir(store.at("homes")).unwrap().count(), 1, "its lock");
}

/// No jail misses a HOME, or has one taken away, because others come, go and clear it at the same time.
#[test]
fn jails_that_come_and_go_while_somebody_clears_have_a_home_for_as_long_as_they_live() {
    let store = &Store::new();
    thread::scope(|scope| {
        for number in 0..3 {
            scope.spawn(move || {
                for _ in 0..50 {
                    let kept = store.take("root");
                    let file = kept.at.join(number.to_string());
                    fs::write(&file, "").unwrap();
                    assert!(file.exists());
                }
            });
        }
        scope.spawn(|| {
            for key in std::iter::repeat_with(|| store.keys()).take(100).flatten() {
                store.homes().clear(&key).unwrap();
            }
        });
    });
    for key in store.keys() {
        assert_eq!(store.homes().clear(&key).unwrap(), Cleared::Removed);
    }
    assert_eq!(store.keys(), [""; 0]);
}

#[test]
fn what_nobody_will_use_again_goes_by_itself() {
    let store = Store::new();
    let in_use = store.take("used");
    for root in ["root", "gone", "gone lately"] {
        drop(store.take(root));
    }
    for (root, days) in [("used", 91), ("root", 91), ("gone", 91), ("gone lately", 89)] {
        store.age(root, days);
    }
    let own = store.at("homes");
    fs::create_dir_all(own.join("dead-0123/home/left")).unwrap();
    clear::forgotten(&store.homes());
    let mut left = ["used", "root", "gone lately"].map(|root| store.rights(root).key());
    left.sort();
    let mut keys = store.keys();
    keys.sort();
    assert_eq!(keys, left);
    assert!(!own.join("dead-0123").exists());
    drop(in_use);
}

#[test]
fn a_home_for_other_rights_and_a_directory_open_to_others_are_refused() {
    let store = Store::new();
    drop(store.take("root"));
    let rights = store.at("homes").join(store.rights("root").key()).join(RIGHTS);
    fs::write(&rights, "form 1\nroot /elsewhere\n").unwrap();
    let error = store.homes().take(&store.rights("root")).unwrap_err();
    assert!(matches!(error, HomeError::OtherRights { .. }), "{error}");
    assert_eq!(store.homes().list().unwrap()[0].roots, [Path::new("/elsewhere")]);
    fs::set_permissions(store.at("homes"), Permissions::from_mode(0o750)).unwrap();
    Homes::open(&store.at("homes")).unwrap_err();
}

#[test]
fn the_size_is_that_of_what_is_in_it_and_not_of_what_links_lead_to() {
    let store = Store::new();
    let kept = store.take("root");
    let key = store.rights("root").key();
    fs::write(store.at("large"), vec![1; 1 << 20]).unwrap();
    let empty = store.homes().size(&key).unwrap();
    symlink(store.at("large"), kept.at.join("link")).unwrap();
    symlink(store.base.path(), kept.at.join("directory")).unwrap();
    let linked = store.homes().size(&key).unwrap();
    assert!(linked.bytes < empty.bytes + (64 << 10), "{linked:?}");
    fs::create_dir_all(kept.at.join("a/b")).unwrap();
    fs::write(kept.at.join("a/b/large"), vec![1; 1 << 20]).unwrap();
    let filled = store.homes().size(&key).unwrap();
    assert!(filled.complete && filled.bytes >= linked.bytes + (1 << 20), "{filled:?}");
}
