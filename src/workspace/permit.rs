//! Whether the system would let a place be written, asked without trying.

use rustix::fs::{Access, AtFlags};
use rustix::io::Errno;

use super::{Action, Fault, Place, Target, WorkspaceError};

pub(super) const ENDS_IN_SLASH: &str = "the path ends in a slash, so it can only name a folder";

impl Place<'_> {
    /// Refuses a place that the system would not let be written: a file that says so, or a new file
    /// in a folder that does.
    ///
    /// # Errors
    /// When writing would be refused for want of a permission.
    pub fn check_permitted(&self, text: &str) -> Result<(), WorkspaceError> {
        if let Target::Missing { ends_in_slash: true, .. } = self.target {
            return Err(Fault::NoPath(ENDS_IN_SLASH).of(Action::Write, text).at(&self.path));
        }
        let Some(folder) = self.folder() else { return Ok(()) };
        let flags = AtFlags::EACCESS | AtFlags::SYMLINK_NOFOLLOW;
        let asked = match self.target {
            Target::Found { .. } => {
                rustix::fs::accessat(folder, self.name(), Access::WRITE_OK, flags)
            }
            Target::Missing { .. } => {
                let wanted = Access::WRITE_OK | Access::EXEC_OK;
                rustix::fs::accessat(folder, ".", wanted, AtFlags::EACCESS)
            }
        };
        match asked {
            // Before Linux 5.8 nobody can tell; a running program can be replaced.
            Ok(()) | Err(Errno::NOSYS | Errno::TXTBSY) => Ok(()),
            Err(errno) => Err(Fault::from(errno).of(Action::Write, text).at(&self.path)),
        }
    }
}
