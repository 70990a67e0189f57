//! HOMEs that are kept between jails of the same rights.
//!
//! `HOMES/KEY/` belongs to the provider: in it are `home`, which commands write, `rights`, which says for
//! whom it is ([`rights`]), and two locks. Nothing of it but `home` is ever within reach of a command.
//! What is in `home` was written by commands, so only handles lead into it and none follows a link.
//!
//! A jail holds a shared lock on `lock` while it lives: nobody removes its HOME then. The time of change of
//! that file is the time of its last use. Of several jails the first also holds `first`, for programs that
//! cannot share a HOME with those of another jail ([`Sharing`]). A lock on `HOMES/lock` orders making and
//! removing.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::fs::{
    AtFlags, CWD, FlockOperation, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, flock, fstat,
    futimens, mkdirat, openat, renameat, unlinkat,
};
use rustix::io::Errno;

use crate::grants::Grants;
use crate::policy::Policy;
use crate::private::lock::{Locked, open_lock};
use crate::private::remove::opened_up;
use crate::private::{Sharing, enter, is_own};
use crate::rights::Rights as Granted;

pub use clear::{Cleared, HomeEntry, Size};
pub(crate) use rights::{Means, Rights};

mod clear;
mod rights;

/// What is in each of these directories.
const HOME: &str = "home";
const RIGHTS: &str = "rights";
const LOCK: &str = "lock";
const FIRST: &str = "first";

/// The directory of all HOMEs that are kept.
#[derive(Debug)]
pub struct Homes {
    directory: OwnedFd,
    at: PathBuf,
}

/// A HOME that is in use. Dropping it releases it.
#[derive(Debug)]
pub(crate) struct KeptHome {
    pub(crate) at: PathBuf,
    pub(crate) handle: OwnedFd,
    pub(crate) sharing: Sharing,
    /// Whether a command has run with it.
    pub(crate) used: Arc<AtomicBool>,
    /// Where it was made just now.
    new: Option<New>,
    lock: OwnedFd,
    first: Option<Locked>,
}

/// A HOME that is removed again if nobody uses it: a jail may be built to read a file, or to be asked what
/// the machine can enforce.
#[derive(Debug)]
struct New {
    homes: Homes,
    key: String,
    taken: LastUse,
}

/// The time of change of a lock, in seconds and nanoseconds.
type LastUse = (i64, i64);

/// Why a HOME is not kept.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// Commands reach the directory of all HOMEs by another way.
    #[error("commands reach {}, which lies in {}", path.display(), granted.display())]
    InReach {
        /// The directory.
        path: PathBuf,
        /// The grant.
        granted: PathBuf,
    },
    /// A grant lies among the HOMEs.
    #[error("{} lies in {}", granted.display(), path.display())]
    Among {
        /// The directory.
        path: PathBuf,
        /// The grant.
        granted: PathBuf,
    },
    /// A file or a directory cannot be used.
    #[error("cannot use {}: {source}", path.display())]
    Unusable {
        /// What it is.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The directory of this key is one for other rights.
    #[error("{} is for other rights", path.display())]
    OtherRights {
        /// The directory.
        path: PathBuf,
    },
}

/// The HOME of jails with these rights, where the policy has it kept, and the jail has one at all.
pub(crate) fn of(
    policy: &Policy,
    grants: &Grants,
    means: Means,
) -> Option<Result<KeptHome, HomeError>> {
    let (path, home) = (policy.homes.as_ref()?, grants.home.as_deref()?);
    Some(checked(path, grants).and_then(|()| {
        let homes = Homes::open(path)?;
        let kept = homes.take(&Rights::of(policy, Some(home), means))?;
        homes.remove_forgotten();
        Ok(kept)
    }))
}

/// Refuses a directory that commands reach.
fn checked(homes: &Path, grants: &Grants) -> Result<(), HomeError> {
    let path = homes.to_owned();
    if let Some(granted) = grants.reachable(homes) {
        return Err(HomeError::InReach { granted: granted.to_owned(), path });
    }
    let real = grants.commands.iter().filter(|grant| grant.rights != Granted::List);
    match real.map(|grant| &grant.path).find(|granted| granted.starts_with(homes)) {
        Some(granted) => Err(HomeError::Among { granted: granted.clone(), path }),
        None => Ok(()),
    }
}

impl Homes {
    /// Opens the directory at `path`, which must be the user's own, and open to nobody else.
    ///
    /// # Errors
    /// [`HomeError::Unusable`].
    pub fn open(path: &Path) -> Result<Self, HomeError> {
        let opened = enter(CWD, path).and_then(|directory| {
            let found = is_own(&directory)?;
            if found.st_mode & 0o077 == 0 { Ok(directory) } else { Err(Errno::PERM) }
        });
        let directory = opened.map_err(unusable(path))?;
        Ok(Self { directory, at: path.to_owned() })
    }

    /// The HOME for `rights`, which is made where there is none.
    pub(crate) fn take(&self, rights: &Rights) -> Result<KeptHome, HomeError> {
        let key = rights.key();
        let at = self.at.join(&key);
        let _order = self.in_order().map_err(unusable(&self.at))?;
        let own = make(&self.directory, &key).map_err(unusable(&at))?;
        let lock = open_lock(&own, LOCK).map_err(unusable(&at.join(LOCK)))?;
        flock(&lock, FlockOperation::NonBlockingLockShared).map_err(unusable(&at.join(LOCK)))?;
        make(&own, HOME).map_err(unusable(&at.join(HOME)))?;
        let is_new = match rights::read(&own) {
            Ok(found) if found == *rights => false,
            Ok(_) => return Err(HomeError::OtherRights { path: at }),
            // Without this file no command has had it.
            Err(Errno::NOENT) => {
                rights.write(&own).map_err(unusable(&at.join(RIGHTS)))?;
                true
            }
            Err(error) => return Err(unusable(&at.join(RIGHTS))(error)),
        };
        let handle = opened_up(&own, c"home").map_err(unusable(&at.join(HOME)))?;
        let first = open_lock(&own, FIRST).map_err(unusable(&at.join(FIRST)))?;
        let first = Locked::at_once(first).ok();
        let sharing = if first.is_some() { Sharing::First } else { Sharing::Later };
        touch(&lock);
        let new = match is_new {
            true => Some(self.note_as_new(key, &lock).map_err(unusable(&self.at))?),
            false => None,
        };
        let (at, used) = (at.join(HOME), Arc::default());
        Ok(KeptHome { at, handle, sharing, used, new, lock, first })
    }

    fn note_as_new(&self, key: String, lock: &OwnedFd) -> rustix::io::Result<New> {
        let directory = enter(&self.directory, ".")?;
        let homes = Self { directory, at: self.at.clone() };
        Ok(New { homes, key, taken: last_use(lock)? })
    }

    /// Takes the lock that orders making and removing.
    fn in_order(&self) -> rustix::io::Result<Locked> {
        open_lock(&self.directory, LOCK).and_then(Locked::soon)
    }

    /// Removes what nobody will use again, in the background.
    fn remove_forgotten(self) {
        let thread = thread::Builder::new().name("home-removal".to_owned()).stack_size(256 * 1024);
        // Where no thread is to be had, it is left to the next provider.
        drop(thread.spawn(move || clear::forgotten(&self)));
    }
}

impl Drop for KeptHome {
    fn drop(&mut self) {
        match self.new.take() {
            Some(new) if !self.used.load(Ordering::Relaxed) => {
                self.release();
                // One that stays is as good.
                let _ = new.homes.clear_if_unused(&new.key, new.taken);
            }
            _ => {
                touch(&self.lock);
                self.release();
            }
        }
    }
}

impl KeptHome {
    /// Gives up the locks. Closing the file of the shared one is not enough either ([`Locked`]).
    fn release(&mut self) {
        let _ = flock(&self.lock, FlockOperation::Unlock);
        self.first = None;
    }
}

/// Opens a directory of the provider's own, which is made where it is missing.
fn make(at: &OwnedFd, name: &str) -> rustix::io::Result<OwnedFd> {
    match mkdirat(at, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error),
    }
    own_directory(at, name)
}

/// Opens a directory of the provider's own, as a place only (`O_PATH`).
fn own_directory(at: &OwnedFd, name: &str) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = openat(at, name, flags, Mode::empty())?;
    is_own(&found)?;
    Ok(found)
}

/// Writes a file of the provider's own, whole or not at all.
fn write_whole(at: &OwnedFd, name: &str, content: &[u8]) -> rustix::io::Result<()> {
    let temporary = format!("{name}.new");
    match unlinkat(at, &temporary, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error),
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = openat(at, &temporary, flags, Mode::RUSR | Mode::WUSR)?;
    let mut rest = content;
    while !rest.is_empty() {
        let written = rustix::io::write(&file, rest)?;
        rest = rest.get(written..).unwrap_or_default();
    }
    renameat(at, &temporary, at, name)
}

/// Notes that a HOME is used now. Where that fails, it seems to be used less.
fn touch(lock: &OwnedFd) {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let _ = futimens(lock, &Timestamps { last_access: now, last_modification: now });
}

fn last_use(lock: &OwnedFd) -> rustix::io::Result<LastUse> {
    let found = fstat(lock)?;
    Ok((found.st_mtime, i64::try_from(found.st_mtime_nsec).unwrap_or(0)))
}

fn unusable(path: &Path) -> impl FnOnce(Errno) -> HomeError {
    let path = path.to_owned();
    move |source| HomeError::Unusable { path, source: source.into() }
}

#[cfg(test)]
mod tests;
