//! A jail's private directories. They live as long as the jail. Those that a killed provider left
//! behind are removed when the next jail is built.
//!
//! `BASE/provider-workspace-UID/` belongs to the user alone. In it each jail has a directory with a
//! `lock` file, which the provider keeps locked while it lives: a lock that can be taken means a
//! dead provider. A lock on `BASE/provider-workspace-UID/lock` orders making and removing.
//!
//! A provider removes files here with all its rights, and a command of another jail may have placed
//! them as a trap. So every step starts from a handle on a directory that is known to be the user's
//! own, and none follows a link.

use std::collections::hash_map::RandomState;
use std::ffi::CStr;
use std::fs::{DirBuilder, Permissions, set_permissions};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, FlockOperation, Mode, OFlags, Stat, flock, fstat, mkdirat, openat,
    renameat, statat, unlinkat,
};
use rustix::io::Errno;

/// The paths of a jail's private directories, as commands and file jobs name them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Private {
    /// For `TMPDIR`.
    pub tmp: PathBuf,
    /// For `XDG_CACHE_HOME`.
    pub cache: PathBuf,
    /// For `HOME`: a writable directory that holds what is granted of the operator's home. At the
    /// full level it has the path of the operator's home. `None` where a root holds the operator's
    /// home, or there is none: then `HOME` stays as it is.
    pub home: Option<PathBuf>,
    /// For kept output: file jobs may write here, commands may only read.
    pub spool: PathBuf,
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
    _lock: OwnedFd,
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

/// How often to try the order lock, 10 ms apart. Others hold it while they remove directories; a
/// holder that never releases it must not keep a jail from being built for ever.
const TRIES: usize = 1000;

impl PrivateDirs {
    /// Makes the directories in `base` and removes those that dead providers left there.
    pub(crate) fn make(base: &Path) -> Result<Self, PrivateError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source: Errno| PrivateError { path, source: source.into() }
        };
        let (own, path, order) = enter_in_order(base)?;
        remove_abandoned(&own);
        let name = format!("jail-{:016x}", random());
        let at = path.join(&name);
        let handle = make_in(&own, &name).map_err(failed(&at))?;
        let lock = open_lock(&handle).map_err(failed(&at))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(failed(&at))?;
        let dirs = Self { own, own_at: path, name, handle, at, _lock: lock };
        for name in ["tmp", "cache", "home", "spool", "root"] {
            make_in(&dirs.handle, name).map_err(failed(&dirs.at.join(name)))?;
        }
        drop(order);
        Ok(dirs)
    }

    pub(crate) fn tmp(&self) -> PathBuf {
        self.at.join("tmp")
    }

    pub(crate) fn cache(&self) -> PathBuf {
        self.at.join("cache")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.at.join("home")
    }

    pub(crate) fn spool(&self) -> PathBuf {
        self.at.join("spool")
    }

    /// Makes a directory in one of these. Only safe before the first command runs.
    pub(crate) fn add(&self, path: &Path) -> Result<(), PrivateError> {
        let made = DirBuilder::new().mode(0o700).create(path);
        made.map_err(|source| PrivateError { path: path.to_owned(), source })
    }

    /// The empty directory to mount a new root on.
    pub(crate) fn staging(&self) -> PathBuf {
        self.at.join("root")
    }
}

impl Drop for PrivateDirs {
    fn drop(&mut self) {
        // The next provider removes what this one cannot.
        let _ = empty(&self.handle)
            .and_then(|()| unlinkat(&self.own, &self.name, AtFlags::REMOVEDIR))
            .and_then(|()| remove_if_last(&self.own, &self.own_at));
    }
}

/// Opens the user's own directory and takes its order lock. The last provider that ends removes both,
/// so what is locked has to be there still.
fn enter_in_order(base: &Path) -> Result<(OwnedFd, PathBuf, OwnedFd), PrivateError> {
    let mut tries = 1;
    loop {
        let (own, path) = user_dir(base)?;
        let locked = open_lock(&own).and_then(|order| {
            take(&order)?;
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

/// Removes the user's own directory if no other provider has a place in it, nor begins to.
fn remove_if_last(own: &OwnedFd, at: &Path) -> rustix::io::Result<()> {
    let order = open_lock(own)?;
    flock(&order, FlockOperation::NonBlockingLockExclusive)?;
    let mut others = false;
    each(own, |name| {
        others |= name.to_bytes() != LOCK.as_bytes();
        Ok(())
    })?;
    if others {
        return Ok(());
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
    match mkdirat(CWD, &path, PRIVATE) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(failed(&path, error)),
    }
    if let Ok(found) = enter(CWD, &path)
        && is_own(&found).is_ok_and(|found| found.st_mode & 0o077 == 0)
    {
        return Ok((found, path));
    }
    let mut other = path.into_os_string();
    other.push(format!("-{:016x}", random()));
    let other = PathBuf::from(other);
    make_in(CWD, &other).map(|found| (found, other.clone())).map_err(|error| failed(&other, error))
}

/// Opens an existing directory, and nothing else.
fn enter(at: impl AsFd, name: impl rustix::path::Arg) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(at, name, flags, Mode::empty())
}

/// Makes a new directory and opens it.
fn make_in(at: impl AsFd, name: impl rustix::path::Arg + Copy) -> rustix::io::Result<OwnedFd> {
    mkdirat(&at, name, PRIVATE)?;
    let made = enter(&at, name)?;
    is_own(&made)?;
    Ok(made)
}

/// The status of an open file, if it belongs to the user.
fn is_own(file: &OwnedFd) -> rustix::io::Result<Stat> {
    let found = fstat(file)?;
    if found.st_uid == rustix::process::geteuid().as_raw() { Ok(found) } else { Err(Errno::PERM) }
}

/// Opens or makes the lock file of a directory: a regular file that belongs to the user.
fn open_lock(dir: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    // Without NONBLOCK, opening a named pipe of this name would block.
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW;
    let mode = Mode::RUSR | Mode::WUSR;
    let lock = openat(dir, LOCK, flags | OFlags::NONBLOCK | OFlags::CLOEXEC, mode)?;
    let plain = FileType::from_raw_mode(is_own(&lock)?.st_mode) == FileType::RegularFile;
    if plain { Ok(lock) } else { Err(Errno::INVAL) }
}

fn take(order: &OwnedFd) -> rustix::io::Result<()> {
    let mut tries = 1;
    loop {
        match flock(order, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) if tries < TRIES => {
                tries += 1;
                thread::sleep(Duration::from_millis(10));
            }
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

/// Removes the directories of dead providers. The caller holds the order lock, so a directory
/// without a lock file is not one that another provider is making.
fn remove_abandoned(own: &OwnedFd) {
    let _ = each(own, |name| {
        if name.to_bytes().starts_with(b"jail-") {
            let _ = remove_if_abandoned(own, name);
        }
        Ok(())
    });
}

fn remove_if_abandoned(own: &OwnedFd, name: &CStr) -> rustix::io::Result<()> {
    let dir = match opened_up(own, name) {
        // Not a directory, so no jail made it.
        Err(Errno::NOTDIR | Errno::LOOP) => return unlinkat(own, name, AtFlags::empty()),
        other => other?,
    };
    let lock = open_lock(&dir)?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
    empty(&dir)?;
    unlinkat(own, name, AtFlags::REMOVEDIR)
}

/// Opens a directory that belongs to the user, even one that a command left without permissions.
fn opened_up(at: &OwnedFd, name: &CStr) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = openat(at, name, flags, Mode::empty())?;
    if is_own(&handle).is_ok_and(|found| found.st_mode & 0o700 != 0o700) {
        // This path leads to the open directory, wherever it lies now.
        let path = format!("/proc/self/fd/{}", handle.as_raw_fd());
        set_permissions(path, Permissions::from_mode(0o700))
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::ACCESS))?;
    }
    enter(&handle, c".")
}

/// Removes everything in a directory. The tree may be too deep for recursion or for the limit of
/// open descriptors, so directories in a subdirectory of `top` that are not empty move up into
/// `top`.
fn empty(top: &OwnedFd) -> rustix::io::Result<()> {
    loop {
        let mut found = false;
        each(top, |name| {
            found = true;
            match unlinkat(top, name, AtFlags::empty()) {
                Err(Errno::ISDIR) => flatten(top, name),
                other => other,
            }
        })?;
        if !found {
            return Ok(());
        }
    }
}

/// Removes a subdirectory of `top`, or leaves it for the next round if an entry of it was missed.
fn flatten(top: &OwnedFd, name: &CStr) -> rustix::io::Result<()> {
    let dir = opened_up(top, name)?;
    each(&dir, |inner| {
        match unlinkat(&dir, inner, AtFlags::empty()) {
            Err(Errno::ISDIR) => {}
            other => return other,
        }
        match unlinkat(&dir, inner, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY) => {
                // A directory without permissions cannot be moved.
                opened_up(&dir, inner)?;
                renameat(&dir, inner, top, format!("moved-{:016x}", random()))
            }
            other => other,
        }
    })?;
    match unlinkat(top, name, AtFlags::REMOVEDIR) {
        Err(Errno::NOTEMPTY) => Ok(()),
        other => other,
    }
}

/// Visits the names in a directory. It may miss names that are added or removed meanwhile.
fn each(
    dir: &OwnedFd,
    mut visit: impl FnMut(&CStr) -> rustix::io::Result<()>,
) -> rustix::io::Result<()> {
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        if ![c".", c".."].contains(&entry.file_name()) {
            visit(entry.file_name())?;
        }
    }
    Ok(())
}

/// Sixty-four random bits: std seeds its hashers from the system.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

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
        let next = PrivateDirs::make(base.path()).unwrap();
        assert!(!own.join("jail-dead").exists());
        assert!(living.spool().is_dir() && next.spool().is_dir());
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
        drop(PrivateDirs::make(base.path()).unwrap());
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 1);
        assert_eq!(fs::metadata(&elsewhere).unwrap().permissions().mode() & 0o777, 0o750);
        assert!(own.join("jail-link").symlink_metadata().is_err());
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
}
