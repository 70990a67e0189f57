//! The directory that a command runs in, and the git directory that belongs to it.

use crate::classify::Classify as _;
use std::path::{Component, Path, PathBuf};

use crate::Context;
use tool_provider::ToolError;
use workspace_fs::text::name;
use workspace_fs::{AccessTime, Action, Fault, FileKind, PathArgument, Target, lexically_clean};

/// The longest `.git` file that is looked at.
const POINTER_BYTES: usize = 4096 + 16;

/// The directory that a command runs in: its argument, else the call's working directory, else the
/// first root; absolute, without links, and inside a root.
///
/// # Errors
/// As for any path argument, and when it is no directory.
pub(crate) fn working_directory(
    context: &Context<'_>,
    cwd: Option<&str>,
) -> Result<PathBuf, ToolError> {
    let text = cwd.or(context.working_directory).unwrap_or(".");
    let path = PathArgument { text, working_directory: context.working_directory };
    let resolved = context.state.workspace.locate_existing(path, Action::Inspect).classified()?;
    match &resolved.target {
        Target::Found { stat, .. } if stat.kind != FileKind::Directory => {
            Err(ToolError::execution_failed(format!(
                "cannot run in {}: it is not a directory",
                name::shown(text)
            ))
            .with_detail("path", text))
        }
        // A handle keeps a deleted directory, and whatever a command did there would be lost.
        Target::Found { stat, .. } if stat.links == 0 => Err(ToolError::not_found(format!(
            "cannot run in {}: the directory was deleted",
            name::shown(text)
        ))
        .with_detail("path", text)
        .with_hint("a root that was made anew has to be configured anew")),
        _ => Ok(resolved.path),
    }
}

/// The git directory that a `.git` file names in the command's directory or in one above it, where
/// that lies outside every root. It is only named to people: whatever the file says grants nothing.
pub(super) fn git_directory_outside(context: &Context<'_>, cwd: &Path) -> Option<PathBuf> {
    let roots = context.state.workspace.roots();
    let inside = |path: &Path| roots.iter().any(|root| path.starts_with(root.path()));
    for directory in cwd.ancestors().take_while(|directory| inside(directory)) {
        let pointer = directory.join(".git");
        let path = PathArgument { text: pointer.to_str()?, working_directory: None };
        let file = match context.state.workspace.open_file(path, AccessTime::Keep) {
            Ok(file) => file,
            Err(error) => match *error.fault {
                Fault::NotFound { .. } => continue,
                Fault::Outside { link: Some(link), .. } => {
                    return Some(git_directory(&lexically_clean(&directory.join(link.target))));
                }
                _ => return None,
            },
        };
        let mut text = [0; POINTER_BYTES];
        let length = file.fill(&mut text).ok()?;
        let target = std::str::from_utf8(&text[..length]).ok()?.strip_prefix("gitdir:")?.trim();
        let target = lexically_clean(&directory.join(target));
        return (!inside(&target)).then(|| git_directory(&target));
    }
    None
}

/// The directory to grant: a worktree or a submodule has its own part in its repository's git
/// directory and needs the rest of it too.
fn git_directory(target: &Path) -> PathBuf {
    let parts: Vec<Component<'_>> = target.components().collect();
    match parts.iter().rposition(|part| part.as_os_str() == ".git") {
        Some(at) => parts[..=at].iter().collect(),
        None => target.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_to_grant_is_the_repositorys_own() {
        for (target, grant) in [
            ("/b/main/.git/worktrees/wt", "/b/main/.git"),
            ("/b/super/.git/modules/lib/sub", "/b/super/.git"),
            ("/b/store/repo.git", "/b/store/repo.git"),
        ] {
            assert_eq!(git_directory(Path::new(target)), Path::new(grant));
        }
    }
}
