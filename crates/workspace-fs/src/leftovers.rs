//! Files that a write leaves beside its target when its process dies in the middle: how they are
//! named, how they are told from files in use, and how they are cleared away.
//!
//! Whoever makes such a file holds an exclusive `flock` on it until it is gone, and the kernel lets
//! go of that lock when the process ends, however it ends. So a lock that can be taken means that
//! the maker is dead, in every container that shares the folder.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::replace::copy_all;
use super::{
    Access, Fault, FileId, FileKind, FileStat, LockKey, LockTable, Mode as LockMode, Wait,
    Workspace,
};

/// What a file beside the target is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// New content, to be renamed over the target. Worthless without its maker.
    New,
    /// Complete old content, while the target is written in place. The target may be torn.
    Old,
}

impl Purpose {
    fn ending(self) -> &'static str {
        match self {
            Purpose::New => ".tmp",
            Purpose::Old => ".old",
        }
    }
}

const MARK: &[u8] = b".pw";
const DIGITS: usize = 16;
const ENDING: usize = 4;

/// What a name gains by becoming a leftover's.
const OVERHEAD: usize = 1 + MARK.len() + DIGITS + ENDING;

/// The longest name of a file (`NAME_MAX`).
const MAX_NAME: usize = 255;

/// Whether a file's name (not its path) says that it belongs to a write under way, or to one that
/// was cut short. Such files are no part of what a user has in a folder.
#[must_use]
pub fn is_leftover(name: &OsStr) -> bool {
    parse(name).is_some()
}

/// A fresh name for new content beside `target`: `.TARGET.pw0123456789abcdef.tmp`.
pub(super) fn fresh_name(target: &OsStr) -> OsString {
    name(target, RandomState::new().build_hasher().finish(), Purpose::New)
}

/// The name for the old content of `target`, which is the file `id`:
/// `.TARGET.pw0123456789abcdef.old`. Another file of that name is not the one that was torn, so the
/// old content is never put into it.
pub(super) fn recovery_name(target: &OsStr, id: FileId) -> OsString {
    name(target, id.inode, Purpose::Old)
}

fn name(target: &OsStr, number: u64, purpose: Purpose) -> OsString {
    let kept = target.len().min(MAX_NAME - OVERHEAD);
    let mut name = b".".to_vec();
    name.extend_from_slice(&target.as_bytes()[..kept]);
    name.extend_from_slice(MARK);
    name.extend_from_slice(format!("{number:016x}").as_bytes());
    name.extend_from_slice(purpose.ending().as_bytes());
    OsString::from_vec(name)
}

/// Whether a leftover's name can tell all of the target's.
pub(super) fn is_name_kept(target: &OsStr) -> bool {
    target.len() <= MAX_NAME - OVERHEAD
}

/// What a leftover's name tells.
struct Parsed<'a> {
    target: &'a OsStr,
    number: u64,
    purpose: Purpose,
}

fn parse(name: &OsStr) -> Option<Parsed<'_>> {
    let name = name.as_bytes();
    let rest = name.strip_prefix(b".")?;
    let (rest, ending) = rest.split_at(rest.len().checked_sub(ENDING)?);
    let purpose =
        [Purpose::New, Purpose::Old].into_iter().find(|p| p.ending().as_bytes() == ending)?;
    let (rest, digits) = rest.split_at(rest.len().checked_sub(DIGITS)?);
    let is_ours = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let digits = std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|b| is_ours(&b)));
    let number = u64::from_str_radix(digits?, 16).ok()?;
    let target = rest.strip_suffix(MARK).filter(|target| !target.is_empty())?;
    Some(Parsed { target: OsStr::from_bytes(target), number, purpose })
}

/// How much a sweep may look at. A tree of millions of files must not hold up a start for the sake
/// of a file that was hardly ever left.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// The most entries of folders to look at.
    pub entries: usize,
    /// The most time to take.
    pub time: Duration,
}

impl Default for Budget {
    fn default() -> Self {
        Self { entries: 500_000, time: Duration::from_secs(2) }
    }
}

/// What a sweep did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// How many leftovers were removed.
    pub removed: usize,
    /// Files whose writing in place had been cut short, and that have their old content again.
    pub restored: Vec<PathBuf>,
    /// Whether the budget ended the sweep before everything was looked at.
    pub is_partial: bool,
}

impl Workspace {
    /// Clears away what writes of dead processes left in the writable roots, nearest to the top
    /// first. Only files of our own name pattern, that we made, and whose maker is dead.
    #[must_use]
    pub fn sweep_leftovers(&self, budget: Budget) -> Swept {
        let mut sweep = Sweep {
            locks: self.locks(),
            until: Instant::now() + budget.time,
            entries: budget.entries,
            done: Swept::default(),
        };
        for root in self.roots().iter().filter(|root| root.access() == Access::ReadWrite) {
            let mut folders = VecDeque::from([OsString::from(".")]);
            while let Some(folder) = folders.pop_front() {
                if sweep.is_over() {
                    sweep.done.is_partial = true;
                    return sweep.done;
                }
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
                let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
                let opened =
                    rustix::fs::openat2(root.folder(), &folder, flags, Mode::empty(), resolve);
                if let Ok(handle) = opened {
                    let path = root.path().join(&folder);
                    let inner = sweep.folder(&handle, &path);
                    folders.extend(
                        inner.into_iter().map(|name| PathBuf::from(&folder).join(name).into()),
                    );
                }
            }
        }
        sweep.done
    }
}

struct Sweep<'w> {
    locks: &'w Arc<LockTable>,
    until: Instant,
    entries: usize,
    done: Swept,
}

impl Sweep<'_> {
    fn is_over(&self) -> bool {
        self.entries == 0 || Instant::now() >= self.until
    }

    /// Clears one folder and returns the names of the folders in it.
    fn folder(&mut self, handle: &OwnedFd, path: &std::path::Path) -> Vec<OsString> {
        let mut inner = Vec::new();
        let Ok(listing) = Dir::read_from(handle) else { return inner };
        for entry in listing.flatten() {
            self.entries = self.entries.saturating_sub(1);
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if matches!(name.as_bytes(), b"." | b"..") {
                continue;
            }
            match entry.file_type() {
                FileType::Directory | FileType::Unknown => inner.push(name.to_owned()),
                _ => {}
            }
            if let Some(parsed) = parse(name) {
                self.leftover(handle.as_fd(), name, &parsed, path);
            }
            if self.entries == 0 {
                break;
            }
        }
        inner
    }

    fn leftover(
        &mut self,
        folder: BorrowedFd<'_>,
        name: &OsStr,
        parsed: &Parsed<'_>,
        path: &std::path::Path,
    ) {
        let Some(leftover) = open_abandoned(folder, name, parsed.purpose) else { return };
        if parsed.purpose == Purpose::Old {
            if self.restore(folder, parsed, &leftover).is_err() {
                // The copy is all that there is of the old content: it stays.
                return;
            }
            self.done.restored.push(path.join(parsed.target));
        }
        if rustix::fs::unlinkat(folder, name, AtFlags::empty()).is_ok() {
            self.done.removed += 1;
        }
    }

    /// Puts the old content back. The target is written through its own handle, and only if it is
    /// the file that was torn and has no other name, which might be outside the roots.
    fn restore(
        &self,
        folder: BorrowedFd<'_>,
        parsed: &Parsed<'_>,
        old: &OwnedFd,
    ) -> Result<(), Fault> {
        let flags =
            OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let handle = rustix::fs::openat(folder, parsed.target, flags, Mode::empty())?;
        // Calls may run already.
        let id = FileStat::of(&handle)?.id;
        let wait = Wait { limit: LONGEST_LOCK, should_stop: &|| false };
        let _guard = self.locks.lock(LockKey::File(id), LockMode::Exclusive, wait)?;
        let stat = FileStat::of(&handle)?;
        if stat.kind != FileKind::Regular || stat.links != 1 || stat.id.inode != parsed.number {
            return Err(Errno::MLINK.into());
        }
        let length = copy_all(old.as_fd(), handle.as_fd())?;
        rustix::fs::ftruncate(&handle, length)?;
        rustix::fs::fsync(&handle)?;
        Ok(())
    }
}

/// How long a sweep waits for a call that uses a file which is to get its old content back.
const LONGEST_LOCK: Duration = Duration::from_millis(100);

/// Opens a leftover, and holds its lock, if nobody else does.
fn open_abandoned(folder: BorrowedFd<'_>, name: &OsStr, purpose: Purpose) -> Option<OwnedFd> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let handle = rustix::fs::openat(folder, name, flags, Mode::empty()).ok()?;
    let stat = FileStat::of(&handle).ok()?;
    let us = rustix::process::geteuid();
    let is_ours = match purpose {
        // Root gives new content the owner of what it replaces. It may have a second name, if its
        // maker died between giving it the one and taking away the other.
        Purpose::New => stat.uid == us.as_raw() || us.is_root(),
        // What somebody else put here, or can still write, is not put into a file.
        Purpose::Old => stat.uid == us.as_raw() && stat.links == 1,
    };
    let is_abandoned = stat.kind == FileKind::Regular
        && is_ours
        && rustix::fs::flock(&handle, FlockOperation::NonBlockingLockExclusive).is_ok();
    is_abandoned.then_some(handle)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests set up real files")]
mod tests {
    use std::fs;

    use super::*;
    use crate::RootsSpec;

    fn workspace(root: &std::path::Path) -> Workspace {
        let roots = vec![root.display().to_string()];
        Workspace::open(&RootsSpec { roots, ..RootsSpec::default() }).unwrap()
    }

    #[test]
    fn names_are_told_from_those_of_users() {
        let target = OsStr::new("a.txt");
        let id = FileId { device: 1, inode: 0x1234 };
        for (name, purpose) in
            [(fresh_name(target), Purpose::New), (recovery_name(target, id), Purpose::Old)]
        {
            let parsed = parse(&name).unwrap();
            assert_eq!((parsed.target, parsed.purpose), (target, purpose));
            assert!(is_leftover(&name));
        }
        assert_eq!(recovery_name(target, id), ".a.txt.pw0000000000001234.old");
        let long = OsString::from("n".repeat(255));
        assert!(fresh_name(&long).len() == 255 && !is_name_kept(&long));
        for name in [
            ".a.tmp",
            "a.pw0123456789abcdef.tmp",
            ".a.pw0123456789abcdeg.tmp",
            ".tmp",
            "",
            ".pw0123456789abcdef.tmp",
            ".a.0123456789abcdef.tmp",
            ".a.pw0123456789abcdef.bak",
        ] {
            assert!(!is_leftover(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn a_sweep_takes_the_dead_and_leaves_the_living() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("deep/er")).unwrap();
        let at = |name: &OsStr| root.path().join("deep/er").join(name);
        let dead = fresh_name(OsStr::new("a"));
        let alive = fresh_name(OsStr::new("a"));
        fs::write(at(&dead), "half").unwrap();
        fs::write(at(&alive), "half").unwrap();
        fs::write(at(OsStr::new("a")), "whole").unwrap();
        let held = fs::File::open(at(&alive)).unwrap();
        rustix::fs::flock(&held, FlockOperation::NonBlockingLockExclusive).unwrap();

        let swept = workspace(root.path()).sweep_leftovers(Budget::default());
        assert_eq!((swept.removed, swept.is_partial), (1, false));
        assert!(!at(&dead).exists() && at(&alive).exists());
        assert_eq!(fs::read(at(OsStr::new("a"))).unwrap(), b"whole");
        drop(held);
        assert_eq!(workspace(root.path()).sweep_leftovers(Budget::default()).removed, 1);
    }

    #[test]
    fn a_torn_file_gets_its_old_content_back_but_never_through_a_hard_link() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().canonicalize().unwrap();
        let target = path.join("cfg");
        fs::write(&target, "torn, and longer than before").unwrap();
        let id = FileStat::of(fs::File::open(&target).unwrap()).unwrap().id;
        let old = path.join(recovery_name(OsStr::new("cfg"), id));
        fs::write(&old, "old").unwrap();
        fs::hard_link(&target, path.join("other")).unwrap();
        let workspace = workspace(&path);
        assert_eq!(workspace.sweep_leftovers(Budget::default()), Swept::default());
        assert!(old.exists());

        fs::remove_file(path.join("other")).unwrap();
        let swept = workspace.sweep_leftovers(Budget::default());
        assert_eq!(swept.restored, std::slice::from_ref(&target));
        assert_eq!(fs::read(&target).unwrap(), b"old");
        assert!(!old.exists());

        // Another file has come to its name: that one was not torn.
        let another = recovery_name(OsStr::new("cfg"), FileId { inode: id.inode + 1, ..id });
        fs::write(path.join(&another), "older").unwrap();
        assert_eq!(workspace.sweep_leftovers(Budget::default()), Swept::default());
        assert_eq!(fs::read(&target).unwrap(), b"old");
    }

    #[test]
    fn a_budget_ends_a_sweep() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("a/b")).unwrap();
        let budget = Budget { entries: 1, ..Budget::default() };
        assert!(workspace(root.path()).sweep_leftovers(budget).is_partial);
    }
}
