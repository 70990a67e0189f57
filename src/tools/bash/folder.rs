//! Where a command runs, and where git keeps what belongs to that place.

use std::path::{Component, Path, PathBuf};

use super::Arguments;
use crate::tools::{Context, ToolError};

/// The folder that a command runs in: its argument, else the call's working directory, else the
/// first root. Until the workspace can resolve paths this goes by their text alone: absolute, no
/// `..`, beneath a root; what a link leads to is left to the jail.
///
/// # Errors
/// `permission_denied` for everything else.
pub(super) fn working_folder(
    context: &Context<'_>,
    arguments: &Arguments<'_>,
    roots: &[PathBuf],
) -> Result<PathBuf, ToolError> {
    let first = roots.first().map(PathBuf::as_path).unwrap_or(Path::new("/nonexistent"));
    let start = context.working_directory.map_or(first, Path::new);
    let path = normal(&start.join(arguments.cwd.unwrap_or(".")));
    if roots.iter().any(|root| path.starts_with(root)) {
        return Ok(path);
    }
    let shown = path.display();
    Err(ToolError::permission_denied(format!("cannot run in {shown}: outside the roots")))
}

/// The git folder that a `.git` file names: not looked for until the workspace can read files.
pub(super) fn git_folder_outside(_context: &Context<'_>, _cwd: &Path) -> Option<PathBuf> {
    None
}

#[cfg(test)]
/// The folder to grant: a worktree or a submodule has its own part in its repository's git folder
/// and needs the rest of it too.
fn git_folder(target: &Path) -> PathBuf {
    let parts: Vec<Component<'_>> = target.components().collect();
    match parts.iter().rposition(|part| part.as_os_str() == ".git") {
        Some(at) => parts[..=at].iter().collect(),
        None => target.to_owned(),
    }
}

/// The path without `.` and `..`, by its text alone.
pub(super) fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_to_grant_is_the_repositorys_own() {
        for (target, grant) in [
            ("/b/main/.git/worktrees/wt", "/b/main/.git"),
            ("/b/super/.git/modules/lib/sub", "/b/super/.git"),
            ("/b/store/repo.git", "/b/store/repo.git"),
        ] {
            assert_eq!(git_folder(Path::new(target)), Path::new(grant));
        }
    }

    #[test]
    fn paths_are_made_normal_by_their_text() {
        assert_eq!(normal(Path::new("/a/b/../c/./d/../../e")), Path::new("/a/e"));
        assert_eq!(normal(Path::new("/../x")), Path::new("/x"));
    }
}
