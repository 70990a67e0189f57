//! What an operator grants to commands outside the roots: checked, never opened.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, FileType};
use rustix::io::Errno;

/// Why a file is no program that a command could be run by.
#[derive(Debug, thiserror::Error)]
pub enum NotAProgram {
    /// Nothing is there.
    #[error("does not exist")]
    Missing,
    /// It is not a regular file.
    #[error("is not a program")]
    NotAFile,
    /// This user may not execute it.
    #[error("is not executable")]
    NotExecutable,
    /// It cannot be looked at.
    #[error("cannot be run")]
    Unknown(#[source] io::Error),
}

/// Whether something is at `path`, links followed.
///
/// # Errors
/// What keeps this user from finding out.
#[expect(clippy::disallowed_methods, reason = "only looks, at what lies outside every root")]
pub fn exists(path: &Path) -> io::Result<bool> {
    match rustix::fs::access(path, Access::EXISTS) {
        Ok(()) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// The target of the link at `path`. `None` where there is none.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "only looks, at what may lie outside every root")]
pub fn link(path: &Path) -> Option<PathBuf> {
    std::fs::read_link(path).ok()
}

/// Where `path` leads, links followed. `None` where that is nowhere, or cannot be known.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "only looks, at what lies outside every root")]
pub fn resolved(path: &Path) -> Option<PathBuf> {
    std::fs::canonicalize(path).ok()
}

/// The operator's home directory.
#[must_use]
pub fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
}

/// Whether the mode of what is at `path` lets every user read it.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "only looks, at what lies outside every root")]
pub fn is_readable_by_others(path: &Path) -> bool {
    rustix::fs::stat(path).is_ok_and(|found| found.st_mode & 0o004 != 0)
}

/// The device that what is at `path` lies on, links followed.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "only looks, at what an operator names")]
pub fn device(path: &Path) -> Option<u64> {
    rustix::fs::stat(path).ok().map(|found| found.st_dev)
}

/// The user that owns what is at `path`, links followed.
///
/// # Errors
/// What keeps this user from finding out.
#[expect(clippy::disallowed_methods, reason = "only looks, at what an operator names")]
pub fn owner(path: &Path) -> io::Result<u32> {
    Ok(rustix::fs::stat(path)?.st_uid)
}

/// Whether this user can run `path` as a program.
///
/// # Errors
/// [`NotAProgram`]
#[expect(clippy::disallowed_methods, reason = "only looks, at what lies outside every root")]
pub fn check_program(path: &Path) -> Result<(), NotAProgram> {
    let found = match rustix::fs::stat(path) {
        Ok(found) => found,
        Err(Errno::NOENT | Errno::NOTDIR) => return Err(NotAProgram::Missing),
        Err(errno) => return Err(NotAProgram::Unknown(errno.into())),
    };
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Err(NotAProgram::NotAFile);
    }
    rustix::fs::access(path, Access::EXEC_OK).map_err(|_| NotAProgram::NotExecutable)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests set up real files")]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_link_that_leads_nowhere_is_not_there() {
        let directory = tempfile::tempdir().unwrap();
        let link = directory.path().join("link");
        symlink("nowhere", &link).unwrap();
        assert!(exists(directory.path()).unwrap());
        assert!(!exists(&link).unwrap());
        assert!(!exists(&directory.path().join("missing")).unwrap());
        let beneath_a_file = Path::new("/proc/self/status/name");
        assert_eq!(exists(beneath_a_file).unwrap_err().kind(), io::ErrorKind::NotADirectory);
    }

    #[test]
    fn only_a_file_that_may_be_executed_is_a_program() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        assert!(matches!(check_program(&file), Err(NotAProgram::Missing)));
        fs::write(&file, "").unwrap();
        assert!(matches!(check_program(&file), Err(NotAProgram::NotExecutable)));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o700)).unwrap();
        assert!(check_program(&file).is_ok());
        assert!(matches!(check_program(directory.path()), Err(NotAProgram::NotAFile)));
        let endless = directory.path().join("endless");
        symlink(&endless, &endless).unwrap();
        assert!(matches!(check_program(&endless), Err(NotAProgram::Unknown(_))));
    }
}
