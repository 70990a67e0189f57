//! A jail's private folders: made at build, gone with the jail, and swept by the next one where a
//! killed provider left them behind.
//!
//! `BASE/provider-workspace-UID/` belongs to the user alone. In it each jail has a folder whose
//! `lock` file its provider keeps locked for as long as it lives: what can be locked is dead. A
//! lock on `BASE/provider-workspace-UID/lock` orders making and sweeping.

use std::collections::hash_map::RandomState;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};

/// Where a jail's private folders are, as commands and file jobs name them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Private {
    /// For `TMPDIR`.
    pub tmp: PathBuf,
    /// For `XDG_CACHE_HOME`.
    pub cache: PathBuf,
    /// For `HOME`: a folder that can be written, with what is granted of the operator's home in
    /// it. At the full level it has the operator's own path. `None` where a root holds the
    /// operator's home, or there is none: then `HOME` stays as it is.
    pub home: Option<PathBuf>,
    /// For output that is kept: file jobs may write here, commands may read.
    pub spool: PathBuf,
}

/// The folders on the disk. Dropping them removes them.
#[derive(Debug)]
pub(crate) struct PrivateFolders {
    at: PathBuf,
    _lock: File,
}

/// Why the private folders could not be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot make the jail's private folder {}", path.display())]
pub struct PrivateError {
    /// The folder.
    pub path: PathBuf,
    /// What the system said.
    #[source]
    pub source: io::Error,
}

const LOCK: &str = "lock";

impl PrivateFolders {
    /// Makes the folders beneath `base` and removes what dead providers left there.
    pub(crate) fn make(base: &Path) -> Result<Self, PrivateError> {
        let own = own_folder(base)?;
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| PrivateError { path, source }
        };
        let order = open_lock(&own.join(LOCK)).map_err(failed(&own))?;
        flock(&order, FlockOperation::LockExclusive).map_err(|e| failed(&own)(e.into()))?;
        sweep(&own);
        let at = own.join(format!("jail-{:016x}", random()));
        make_folder(&at).map_err(failed(&at))?;
        let lock = open_lock(&at.join(LOCK)).map_err(failed(&at))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|e| failed(&at)(e.into()))?;
        let folders = Self { at, _lock: lock };
        let all =
            [folders.tmp(), folders.cache(), folders.home(), folders.spool(), folders.staging()];
        for path in all {
            make_folder(&path).map_err(failed(&path))?;
        }
        Ok(folders)
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

    /// Makes a folder in one of them.
    pub(crate) fn add(&self, path: &Path) -> Result<(), PrivateError> {
        make_folder(path).map_err(|source| PrivateError { path: path.to_owned(), source })
    }

    /// The empty folder that a new root is mounted on.
    pub(crate) fn staging(&self) -> PathBuf {
        self.at.join("root")
    }
}

impl Drop for PrivateFolders {
    fn drop(&mut self) {
        // What cannot be removed now is left to the next provider's sweep.
        let _ = remove(&self.at);
    }
}

/// The user's own folder in `base`, which others may be able to write: one that is there already
/// must be a folder, and the user's alone.
fn own_folder(base: &Path) -> Result<PathBuf, PrivateError> {
    let uid = rustix::process::geteuid();
    let path = base.join(format!("provider-workspace-{}", uid.as_raw()));
    let failed = |source| PrivateError { path: path.clone(), source };
    match make_folder(&path) {
        Ok(()) => return path.canonicalize().map_err(failed),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(failed(error)),
    }
    let found = fs::symlink_metadata(&path).map_err(failed)?;
    if found.is_dir() && found.uid() == uid.as_raw() && found.mode() & 0o077 == 0 {
        return path.canonicalize().map_err(failed);
    }
    let other = base.join(format!("provider-workspace-{}-{:016x}", uid.as_raw(), random()));
    make_folder(&other)
        .and_then(|()| other.canonicalize())
        .map_err(|source| PrivateError { path: other, source })
}

fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

fn open_lock(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
}

/// Removes the folders whose provider is dead. The caller holds the order lock, so that a folder
/// without a lock file is not one in the making.
fn sweep(own: &Path) {
    let Ok(entries) = fs::read_dir(own) else { return };
    for entry in entries.flatten() {
        if !entry.file_name().as_encoded_bytes().starts_with(b"jail-") {
            continue;
        }
        let at = entry.path();
        let dead = open_lock(&at.join(LOCK))
            .is_ok_and(|lock| flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok());
        if dead {
            let _ = remove(&at);
        }
    }
}

/// Removes a folder with all that is in it, also what a command left without permissions.
fn remove(at: &Path) -> io::Result<()> {
    match fs::remove_dir_all(at) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_up(at)?;
            fs::remove_dir_all(at)
        }
        other => other,
    }
}

fn open_up(folder: &Path) -> io::Result<()> {
    fs::set_permissions(folder, Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
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
    use super::*;

    #[test]
    fn they_are_there_and_go_with_their_owner() {
        let base = tempfile::tempdir().unwrap();
        let folders = PrivateFolders::make(base.path()).unwrap();
        fs::create_dir_all(folders.tmp().join("a/b")).unwrap();
        fs::set_permissions(folders.tmp().join("a/b"), Permissions::from_mode(0o000)).unwrap();
        fs::set_permissions(folders.tmp().join("a"), Permissions::from_mode(0o000)).unwrap();
        let at = folders.at.clone();
        drop(folders);
        assert!(!at.exists());
    }

    #[test]
    fn a_dead_owners_folders_are_swept_and_a_living_ones_are_not() {
        let base = tempfile::tempdir().unwrap();
        let living = PrivateFolders::make(base.path()).unwrap();
        let own = living.at.parent().unwrap().to_owned();
        fs::create_dir_all(own.join("jail-dead/tmp")).unwrap();
        fs::write(own.join("jail-dead/lock"), "").unwrap();
        let next = PrivateFolders::make(base.path()).unwrap();
        assert!(!own.join("jail-dead").exists());
        assert!(living.spool().is_dir() && next.spool().is_dir());
    }

    #[test]
    fn a_folder_that_someone_else_prepared_is_not_used() {
        let base = tempfile::tempdir().unwrap();
        let uid = rustix::process::geteuid().as_raw();
        let trap = base.path().join(format!("provider-workspace-{uid}"));
        let elsewhere = base.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &trap).unwrap();
        let folders = PrivateFolders::make(base.path()).unwrap();
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
        assert!(!folders.at.starts_with(&trap));
    }
}
