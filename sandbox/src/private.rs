//! A jail's private directories. They live as long as the jail. Those that a killed provider left
//! behind are removed in the background, from when the next jail is built.
//!
//! `BASE/provider-workspace-UID/` belongs to the user alone. In it each jail has a directory with a
//! `lock` file, which the provider keeps locked while it lives: a lock that can be taken means a
//! dead provider. A lock on `BASE/provider-workspace-UID/lock` orders making and removing.
//!
//! A provider removes files here with all its rights, and a command of another jail may have placed
//! them as a trap. So every step starts from a handle on a directory that is known to be the user's
//! own, and none follows a link.

use std::collections::hash_map::RandomState;
use std::ffi::CString;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat, fstat, mkdirat, openat, statat, unlinkat};
use rustix::io::Errno;

use crate::home::Home;
use crate::kept_home::KeptHome;
use lock::{Locked, TRIES, open_lock};
use remove::{each, empty, remove_dead, set_aside};

pub(crate) mod lock;
pub(crate) mod remove;

/// The paths of a jail's private directories, as commands and file jobs name them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Private {
    /// For `TMPDIR`.
    pub tmp: PathBuf,
    /// For `XDG_CACHE_HOME`.
    pub cache: PathBuf,
    /// For `HOME`. `None` where a root holds the operator's home, or there is none: then `HOME` stays as it
    /// is.
    pub home: Option<Home>,
    /// For kept output: file jobs may write here, commands may only read.
    pub spool: PathBuf,
}

/// Whether a jail is the first of those that have one HOME at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// It is, or nobody else can have this HOME.
    First,
    /// Another one was there before.
    Later,
}

/// The directories on disk. Dropping this removes them.
#[derive(Debug)]
pub(crate) struct PrivateDirs {
    /// The user's own directory, and its path.
    own: OwnedFd,
    own_at: PathBuf,
    /// The name, handle and path of this jail's directory within it.
    name: String,
    handle: OwnedFd,
    at: PathBuf,
    _lock: Locked,
    /// In place of `home`, where one is kept.
    kept: Option<KeptHome>,
    /// Disconnects when what dead providers left is removed.
    removal: Mutex<Receiver<()>>,
}

/// A private directory could not be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot make the jail's private directory {}", path.display())]
pub struct PrivateError {
    /// The directory.
    pub path: PathBuf,
    /// What the system said.
    #[source]
    pub source: io::Error,
}

const LOCK: &str = "lock";
const PRIVATE: Mode = Mode::RWXU;

/// How long the end waits for the removal of what dead providers left. A longer one is continued by the
/// next provider.
const REMOVAL: Duration = Duration::from_millis(500);

/// Removes what dead providers left.
type Removal = Box<dyn FnOnce() + Send>;

impl PrivateDirs {
    /// Makes the directories in `base` and starts to remove those that dead providers left there, which
    /// may be hundreds of thousands of files.
    pub(crate) fn make(base: &Path) -> Result<Self, PrivateError> {
        Self::make_and(base, in_background)
    }

    /// [`Self::make`], with a way to run the removal.
    fn make_and(base: &Path, run: impl FnOnce(Removal)) -> Result<Self, PrivateError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source: Errno| PrivateError { path, source: source.into() }
        };
        let (own, path, order) = enter_in_order(base)?;
        let dead = set_aside(&own);
        let name = format!("jail-{:016x}", random());
        let at = path.join(&name);
        let handle = make_in(&own, &name).map_err(failed(&at))?;
        let lock = open_lock(&handle, LOCK).and_then(Locked::at_once).map_err(failed(&at))?;
        let removal = Mutex::new(start_removal(&own, &path, dead, run));
        let dirs = Self { own, own_at: path, name, handle, at, _lock: lock, kept: None, removal };
        let made = ["tmp", "cache", "home", "spool", "root"].iter().try_for_each(|name| {
            make_in(&dirs.handle, *name).map(drop).map_err(failed(&dirs.at.join(name)))
        });
        // Before `dirs` go, if not all were made: their end takes it too.
        drop(order);
        made.map(|()| dirs)
    }

    pub(crate) fn tmp(&self) -> PathBuf {
        self.at.join("tmp")
    }

    /// A handle of the temporary directory, of the caller's own.
    pub(crate) fn tmp_handle(&self) -> rustix::io::Result<OwnedFd> {
        enter(&self.handle, "tmp")
    }

    pub(crate) fn cache(&self) -> PathBuf {
        self.at.join("cache")
    }

    /// Takes this HOME in place of the one that is removed with them.
    pub(crate) fn use_home(&mut self, kept: KeptHome) {
        self.kept = Some(kept);
    }

    pub(crate) fn kept(&self) -> Option<&KeptHome> {
        self.kept.as_ref()
    }

    /// Where HOME lies on the machine.
    pub(crate) fn home(&self) -> PathBuf {
        self.kept.as_ref().map_or_else(|| self.at.join("home"), |kept| kept.at.clone())
    }

    /// A handle of it, of the caller's own.
    pub(crate) fn home_handle(&self) -> Result<OwnedFd, PrivateError> {
        let opened = match &self.kept {
            Some(kept) => enter(&kept.handle, "."),
            None => enter(&self.handle, "home"),
        };
        opened.map_err(|source| PrivateError { path: self.home(), source: source.into() })
    }

    pub(crate) fn spool(&self) -> PathBuf {
        self.at.join("spool")
    }

    /// Makes the directory in which commands get scratch directories of their own.
    pub(crate) fn make_scratch(&self) -> Result<PathBuf, PrivateError> {
        let path = self.at.join("scratch");
        make_in(&self.handle, "scratch")
            .map_err(|source| PrivateError { path: path.clone(), source: source.into() })?;
        Ok(path)
    }

    /// The empty directory to mount a new root on.
    pub(crate) fn staging(&self) -> PathBuf {
        self.at.join("root")
    }
}

impl Drop for PrivateDirs {
    fn drop(&mut self) {
        // The next provider removes what this one cannot.
        let _ =
            empty(&self.handle).and_then(|()| unlinkat(&self.own, &self.name, AtFlags::REMOVEDIR));
        let removal = self.removal.get_mut().unwrap_or_else(PoisonError::into_inner);
        let is_over = removal.recv_timeout(REMOVAL) == Err(RecvTimeoutError::Disconnected);
        if is_over && remove_if_last(&self.own, &self.own_at) == Err(Errno::NOTEMPTY) {
            // An earlier end of this process may have had no descriptor to remove anything with.
            let dead = try_order(&self.own).map(|_order| set_aside(&self.own)).unwrap_or_default();
            let removal = start_removal(&self.own, &self.own_at, dead, in_background);
            let _ = removal.recv_timeout(REMOVAL);
        }
    }
}

/// Has `run` remove what [`set_aside`] returned, and the user's own directory if that was the last in it. What
/// this returns disconnects at the end of that.
fn start_removal(
    own: &OwnedFd,
    at: &Path,
    dead: Vec<CString>,
    run: impl FnOnce(Removal),
) -> Receiver<()> {
    let (removing, removal) = sync_channel(0);
    if dead.is_empty() {
        return removal;
    }
    // What is left out here is the next provider's.
    if let Ok(own) = own.try_clone() {
        let at = at.to_owned();
        run(Box::new(move || {
            remove_dead(&own, &dead);
            let _ = remove_if_last(&own, &at);
            drop::<SyncSender<()>>(removing);
        }));
    }
    removal
}

fn in_background(removal: Removal) {
    let thread = thread::Builder::new().name("private-removal".to_owned());
    // Where no thread is to be had, it is left to the next provider.
    drop(thread.stack_size(128 * 1024).spawn(removal));
}

/// Opens the user's own directory and takes its order lock. The last provider that ends removes both,
/// so what is locked has to be there still.
fn enter_in_order(base: &Path) -> Result<(OwnedFd, PathBuf, Locked), PrivateError> {
    let mut tries = 1;
    loop {
        let (own, path) = user_dir(base)?;
        let locked = open_lock(&own, LOCK).and_then(Locked::soon).and_then(|order| {
            let (held, named) = (fstat(&order)?, statat(&own, LOCK, AtFlags::SYMLINK_NOFOLLOW)?);
            if held.st_ino == named.st_ino { Ok(order) } else { Err(Errno::NOENT) }
        });
        match locked {
            Ok(order) => return Ok((own, path, order)),
            Err(Errno::NOENT) if tries < TRIES => tries += 1,
            Err(source) => {
                return Err(PrivateError { path: path.join(LOCK), source: source.into() });
            }
        }
    }
}

/// Takes the order lock unless somebody has it.
fn try_order(own: &OwnedFd) -> rustix::io::Result<Locked> {
    open_lock(own, LOCK).and_then(Locked::at_once)
}

/// Removes the user's own directory if no other provider has a place in it (`NOTEMPTY`), nor begins to.
fn remove_if_last(own: &OwnedFd, at: &Path) -> rustix::io::Result<()> {
    let _order = try_order(own)?;
    let mut others = false;
    each(own, |name| {
        others |= name.to_bytes() != LOCK.as_bytes();
        Ok(())
    })?;
    if others {
        return Err(Errno::NOTEMPTY);
    }
    unlinkat(own, LOCK, AtFlags::empty())?;
    unlinkat(CWD, at, AtFlags::REMOVEDIR)
}

/// The path of the user's own directory in `base`, which need not exist.
pub(crate) fn user_dir_path(base: &Path) -> PathBuf {
    let base = base.canonicalize().unwrap_or_else(|_| base.to_owned());
    base.join(format!("provider-workspace-{}", rustix::process::geteuid().as_raw()))
}

/// Makes or opens the user's own directory in `base`, which others may be able to write. An
/// existing one must be a directory that belongs to the user alone; otherwise this makes one of
/// another name.
fn user_dir(base: &Path) -> Result<(OwnedFd, PathBuf), PrivateError> {
    let failed =
        |path: &Path, source: Errno| PrivateError { path: path.to_owned(), source: source.into() };
    let path = user_dir_path(base);
    let mut tries = 1;
    loop {
        match mkdirat(CWD, &path, PRIVATE) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(failed(&path, error)),
        }
        match enter(CWD, &path) {
            Ok(found) if is_own(&found).is_ok_and(|found| found.st_mode & 0o077 == 0) => {
                return Ok((found, path));
            }
            // The last provider has just removed it.
            Err(Errno::NOENT) if tries < TRIES => tries += 1,
            // It may well be the right one.
            Err(error @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM)) => {
                return Err(failed(&path, error));
            }
            Ok(_) | Err(_) => break,
        }
    }
    let mut other = path.into_os_string();
    other.push(format!("-{:016x}", random()));
    let other = PathBuf::from(other);
    make_in(CWD, &other).map(|found| (found, other.clone())).map_err(|error| failed(&other, error))
}

/// Opens an existing directory, and nothing else.
pub(crate) fn enter(at: impl AsFd, name: impl rustix::path::Arg) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(at, name, flags, Mode::empty())
}

/// Makes a new directory and opens it.
fn make_in(at: impl AsFd, name: impl rustix::path::Arg + Copy) -> rustix::io::Result<OwnedFd> {
    mkdirat(&at, name, PRIVATE)?;
    let made = enter(&at, name).and_then(|made| is_own(&made).map(|_| made));
    // One that cannot be used is not left behind.
    made.inspect_err(|_| {
        let _ = unlinkat(&at, name, AtFlags::REMOVEDIR);
    })
}

/// The status of an open file, if it belongs to the user.
pub(crate) fn is_own(file: &OwnedFd) -> rustix::io::Result<Stat> {
    let found = fstat(file)?;
    if found.st_uid == rustix::process::geteuid().as_raw() { Ok(found) } else { Err(Errno::PERM) }
}

/// Sixty-four random bits: std seeds its hashers from the system.
pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests;
