//! Whether the system would let a path be written, asked without trying.

use std::ffi::OsStr;
use std::os::fd::BorrowedFd;

use rustix::fs::{Access, AtFlags};
use rustix::io::Errno;

use super::{Action, Fault, ResolvedPath, Target, WorkspaceError};

pub(super) const ENDS_IN_SLASH: &str = "the path ends in a slash, so it can only name a directory";

impl ResolvedPath<'_> {
    /// Refuses a path that the system would not let be written: a file that says so, or a new file
    /// in a directory that does.
    ///
    /// # Errors
    /// When writing would be refused for want of a permission.
    pub fn check_permitted(&self, text: &str) -> Result<(), WorkspaceError> {
        let permitted = match (&self.target, self.directory()) {
            (Target::Missing { ends_in_slash: true, .. }, _) => Err(Fault::NoPath(ENDS_IN_SLASH)),
            (_, None) => Ok(()),
            (Target::Found { .. }, Some(directory)) => check_file(directory, self.name()),
            (Target::Missing { .. }, Some(directory)) => check_directory(directory),
        };
        permitted.map_err(|fault| fault.of(Action::Write, text).at(&self.path))
    }
}

/// Refuses a file that may not be written to. A rename over it asks for the directory's permission
/// alone, so it is this that keeps a file that says "read only" as it is.
pub(super) fn check_file(directory: BorrowedFd<'_>, name: &OsStr) -> Result<(), Fault> {
    let flags = AtFlags::EACCESS | AtFlags::SYMLINK_NOFOLLOW;
    known(rustix::fs::accessat(directory, name, Access::WRITE_OK, flags))
}

/// Refuses a directory in which no file may be made.
fn check_directory(directory: BorrowedFd<'_>) -> Result<(), Fault> {
    let wanted = Access::WRITE_OK | Access::EXEC_OK;
    known(rustix::fs::accessat(directory, ".", wanted, AtFlags::EACCESS))
}

/// The system's answer where it has one: before Linux 5.8 it has none, and a running program
/// can be replaced, only not written to.
fn known(answer: rustix::io::Result<()>) -> Result<(), Fault> {
    match answer {
        Ok(()) | Err(Errno::NOSYS | Errno::TXTBSY) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}
