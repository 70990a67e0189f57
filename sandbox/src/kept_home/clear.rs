//! Lists HOMEs and removes them: those that a person names, and those that nobody will use again.

use std::ffi::{CString, OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use rustix::fs::{FileType, FlockOperation, flock, renameat};
use rustix::io::Errno;

use super::{HOME, HomeError, Homes, LOCK, LastUse, last_use, own_directory, rights, unusable};
use crate::beneath::{kind, status};
use crate::private::lock::open_lock;
use crate::private::remove::{DEAD, each, remove_dead};
use crate::private::{enter, random};

/// A HOME that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeEntry {
    /// The name of its directory.
    pub key: String,
    /// Where it lies.
    pub at: PathBuf,
    /// The roots of the jails that it is for, the read-only ones among them.
    pub roots: Vec<PathBuf>,
    /// What else these jails have in common, as lines.
    pub rights: Vec<String>,
    /// When a jail last began or ended with it.
    pub last_used: Option<SystemTime>,
    /// Whether a jail has it now.
    pub in_use: bool,
}

/// What became of a HOME that was to be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cleared {
    /// It is gone.
    Removed,
    /// A jail has it: it stays.
    InUse,
    /// There is none.
    Missing,
}

/// How much a HOME takes on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Bytes, as far as they were counted.
    pub bytes: u64,
    /// Whether everything was counted.
    pub complete: bool,
}

/// After how long without use a HOME is removed whose roots are gone.
const FORGOTTEN: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// The most HOMEs that one provider removes. The next one goes on.
const MOST_REMOVED: usize = 8;

/// The most entries that are counted, and how deep.
const MOST_COUNTED: u32 = 2_000_000;
const DEEPEST: u32 = 200;

const ROOTS: [&str; 2] = ["root", "read_only_root"];

impl Homes {
    /// All HOMEs, the last used first.
    ///
    /// # Errors
    /// When the directory cannot be listed. An entry that is no HOME is left out.
    pub fn list(&self) -> Result<Vec<HomeEntry>, HomeError> {
        let mut keys = Vec::new();
        each(&self.directory, |name| {
            keys.extend(name.to_str().ok().filter(|name| is_key(name)).map(str::to_owned));
            Ok(())
        })
        .map_err(unusable(&self.at))?;
        // A look whether a HOME is in use must not keep a jail from taking it.
        let _order = self.in_order().map_err(unusable(&self.at))?;
        let mut entries: Vec<_> = keys.iter().filter_map(|key| self.entry(key).ok()).collect();
        entries.sort_by(|a, b| b.last_used.cmp(&a.last_used).then_with(|| a.key.cmp(&b.key)));
        Ok(entries)
    }

    fn entry(&self, key: &str) -> rustix::io::Result<HomeEntry> {
        let own = own_directory(&self.directory, key)?;
        let rights = rights::read(&own)?;
        let lock = status(&own, OsStr::new(LOCK)).ok();
        Ok(HomeEntry {
            key: key.to_owned(),
            at: self.at.join(key).join(HOME),
            roots: rights.paths(&ROOTS),
            rights: rights.others(&["root", "read_only_root", "home"]),
            last_used: lock.and_then(|found| {
                let seconds = u64::try_from(found.st_mtime).ok()?;
                SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
            }),
            in_use: is_locked(&open_lock(&own, LOCK)?)?,
        })
    }

    /// What a HOME takes on the disk. Links are counted, not followed.
    ///
    /// # Errors
    /// When there is no such HOME.
    pub fn size(&self, key: &str) -> Result<Size, HomeError> {
        let counted = (|| {
            let own = own_directory(&self.directory, key)?;
            let home = own_directory(&own, HOME)?;
            let mut count = Count { blocks: 0, left: MOST_COUNTED, complete: true };
            count.add(&home, OsStr::new("."), DEEPEST);
            Ok(Size { bytes: count.blocks.saturating_mul(512), complete: count.complete })
        })();
        counted.map_err(unusable(&self.at.join(key)))
    }

    /// Removes a HOME with all that it holds, unless a jail has it.
    ///
    /// # Errors
    /// [`HomeError::Unusable`] when something of it cannot be removed.
    pub fn clear(&self, key: &str) -> Result<Cleared, HomeError> {
        let aside = self.set_aside(key, |_| true).map_err(unusable(&self.at.join(key)));
        match aside? {
            Ok(name) => self.removed(&name),
            Err(cleared) => Ok(cleared),
        }
    }

    /// Removes a HOME that no jail has taken since.
    pub(super) fn clear_if_unused(&self, key: &str, since: LastUse) -> rustix::io::Result<()> {
        let unused = |lock: &OwnedFd| last_use(lock) == Ok(since);
        if let Ok(name) = self.set_aside(key, unused)? {
            remove_dead(&self.directory, &[name]);
        }
        Ok(())
    }

    fn removed(&self, name: &CString) -> Result<Cleared, HomeError> {
        remove_dead(&self.directory, std::slice::from_ref(name));
        match status(&self.directory, OsStr::from_bytes(name.as_bytes())) {
            Err(Errno::NOENT) => Ok(Cleared::Removed),
            found => {
                let path = self.at.join(OsStr::from_bytes(name.as_bytes()));
                let left = io::Error::other("a part of it cannot be removed");
                let source = found.err().map_or(left, io::Error::from);
                Err(HomeError::Unusable { path, source })
            }
        }
    }

    /// Gives a HOME that no jail has another name, under which none will find it, if that is `wanted`.
    fn set_aside(
        &self,
        key: &str,
        wanted: impl FnOnce(&OwnedFd) -> bool,
    ) -> rustix::io::Result<Result<CString, Cleared>> {
        if !is_key(key) {
            return Ok(Err(Cleared::Missing));
        }
        let _order = self.in_order()?;
        let own = match own_directory(&self.directory, key) {
            Err(Errno::NOENT) => return Ok(Err(Cleared::Missing)),
            other => other?,
        };
        let lock = open_lock(&own, LOCK)?;
        if is_locked(&lock)? || !wanted(&lock) {
            return Ok(Err(Cleared::InUse));
        }
        let aside = format!("{DEAD}{:016x}", random());
        renameat(&self.directory, key, &self.directory, &aside)?;
        CString::new(aside).map(Ok).map_err(|_| Errno::INVAL)
    }
}

/// Removes the HOMEs whose roots are all gone and that were not used for long, and the rest of those whose
/// removal was cut short.
pub(super) fn forgotten(homes: &Homes) {
    let now = SystemTime::now();
    let old = homes.list().unwrap_or_default().into_iter().filter(|entry| {
        let unused = entry.last_used.and_then(|used| now.duration_since(used).ok());
        !entry.in_use
            && unused.is_some_and(|unused| unused > FORGOTTEN)
            && entry.roots.iter().all(|root| {
                let found = fs::symlink_metadata(root);
                found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
            })
    });
    let mut dead = Vec::new();
    let _ = each(&homes.directory, |name| {
        if name.to_bytes().starts_with(DEAD.as_bytes()) {
            dead.push(name.to_owned());
        }
        Ok(())
    });
    for entry in old.take(MOST_REMOVED) {
        dead.extend(homes.set_aside(&entry.key, |_| true).ok().and_then(Result::ok));
    }
    dead.truncate(MOST_REMOVED);
    remove_dead(&homes.directory, &dead);
}

fn is_key(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a jail has the HOME. If not, none gets it while the order lock is held, which alone is why the
/// lock can be given up again: a process that starts at this moment has a copy of its descriptor.
fn is_locked(lock: &OwnedFd) -> rustix::io::Result<bool> {
    match flock(lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => flock(lock, FlockOperation::Unlock).map(|()| false),
        Err(Errno::WOULDBLOCK) => Ok(true),
        Err(error) => Err(error),
    }
}

struct Count {
    blocks: u64,
    left: u32,
    complete: bool,
}

impl Count {
    /// Adds what is in a directory, and in those below it, to some depth: each level keeps a handle open.
    fn add(&mut self, at: &OwnedFd, name: &OsStr, deeper: u32) {
        let opened = CString::new(name.as_bytes()).map_err(|_| Errno::INVAL);
        let Some(directory) = opened.and_then(|name| enter(at, name.as_c_str())).ok() else {
            self.complete = false;
            return;
        };
        let mut below: Vec<OsString> = Vec::new();
        let listed = each(&directory, |name| {
            self.left = self.left.checked_sub(1).ok_or(Errno::TOOBIG)?;
            let name = OsStr::from_bytes(name.to_bytes());
            let Ok(found) = status(&directory, name) else { return Ok(()) };
            self.blocks = self.blocks.saturating_add(u64::try_from(found.st_blocks).unwrap_or(0));
            if kind(&found) == FileType::Directory {
                below.push(OsString::from_vec(name.as_bytes().to_vec()));
            }
            Ok(())
        });
        self.complete &= listed.is_ok() && (below.is_empty() || deeper > 0);
        for name in below.iter().filter(|_| deeper > 0) {
            self.add(&directory, name, deeper - 1);
        }
    }
}
