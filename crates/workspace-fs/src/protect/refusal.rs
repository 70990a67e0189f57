//! Which paths the file tools do not write.

use std::path::Path;

use rustix::fs::AtFlags;

use super::places::Kind;
use super::{Protection, Top};
use crate::git_places::{self, HEAD};
use crate::{FileKind, FileStat, ResolvedPath, Target};

impl Protection {
    /// Whether a path is protected: by its name, or because it is the very file or directory.
    pub(crate) fn covers(&self, resolved: &ResolvedPath<'_>) -> bool {
        let by_name = |(index, top): (usize, &Top)| {
            let inside = resolved.path.strip_prefix(&top.path);
            inside.is_ok_and(|inside| match index < self.roots {
                true => git_places::is_gits_of_root(inside) || makes_bare(top, inside),
                false => git_places::is_gits(inside),
            })
        };
        if self.tops.iter().enumerate().any(by_name) {
            return true;
        }
        let ids = [
            match &resolved.target {
                Target::Found { stat, .. } => Some(stat.id),
                Target::Missing { .. } => None,
            },
            resolved.directory().and_then(|directory| FileStat::of(directory).ok()).map(|s| s.id),
        ];
        let known = self.renew_known();
        let mut places = self.places(&known).filter(|place| place.kind != Kind::Way);
        places.any(|place| {
            let is_repository = place.kind == Kind::DotGit;
            let stat = self.stat(&place);
            let id = stat.filter(|stat| !(is_repository && stat.kind == FileKind::Directory));
            id.is_some_and(|stat| ids.contains(&Some(stat.id)))
        }) || known.iter().any(|directory| {
            // A repository whose path is not that of its root's `.git`.
            let path = self.tops[directory.top].path.join(&directory.path);
            let inside = resolved.path.strip_prefix(&path);
            // A whole root is none of git's, whatever its `.git` says.
            match directory.path.as_os_str().is_empty() {
                true => inside.is_ok_and(git_places::is_place),
                false => inside.is_ok_and(git_places::is_gits),
            }
        })
    }
}

/// Whether a path, relative to a root, makes a bare repository of the root, or is what git runs in one.
fn makes_bare(root: &Top, inside: &Path) -> bool {
    let head = || rustix::fs::statat(&root.directory, HEAD, AtFlags::SYMLINK_NOFOLLOW);
    inside == Path::new(HEAD) || (git_places::is_place(inside) && head().is_ok())
}
