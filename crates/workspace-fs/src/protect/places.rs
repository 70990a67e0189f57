//! The names that are protected, and the directories on the way to them.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::item::Depth;
use crate::git_places::{DOT_GIT, GitDirectory, Part};

/// A protected place, or a directory on the way to one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) top: usize,
    /// Its path beneath the top.
    pub(super) path: PathBuf,
    /// The git directory, or what the place lies in.
    pub(super) within: PathBuf,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `.git` in a root.
    DotGit,
    /// A directory that leads to places. A link in its stead leads git to others.
    Way,
    /// A name in a git directory.
    Part(Part),
}

impl Place {
    fn of_root(top: usize) -> Self {
        Self { top, path: DOT_GIT.into(), within: PathBuf::new(), kind: Kind::DotGit }
    }

    fn way((top, path): (usize, PathBuf)) -> Self {
        let within = path.parent().map(Path::to_owned).unwrap_or_default();
        Self { top, path, within, kind: Kind::Way }
    }

    /// The directory that holds it, and its name there.
    pub(super) fn split(&self) -> (&Path, &OsStr) {
        let parent = self.path.parent().unwrap_or(Path::new(""));
        (parent, self.path.file_name().unwrap_or(OsStr::new(".")))
    }

    pub(super) fn depth(&self) -> Depth {
        match self.kind {
            Kind::DotGit | Kind::Way => Depth::Itself,
            Kind::Part(_) => Depth::Entries,
        }
    }

    /// Whether the jail may mount it read-only. Worktrees are left out: `git worktree remove` removes theirs.
    pub(super) fn may_be_mounted(&self) -> bool {
        !matches!(self.kind, Kind::Way | Kind::Part(Part::Worktree))
    }
}

/// `.git` in each of the first `roots` tops, then the ways, each after what leads to it, then the places of
/// `known`: the roots' own repositories come before submodules.
pub(super) fn all(roots: usize, known: &BTreeSet<GitDirectory>) -> impl Iterator<Item = Place> {
    let mut ways = BTreeSet::new();
    for GitDirectory { part, top, path } in known {
        let inner = part.ways().iter().map(|name| path.join(name));
        let above = path.ancestors().map(Path::to_owned);
        ways.extend(inner.chain(above).map(|way| (*top, way)));
    }
    ways.retain(|(top, way)| {
        let is_root_or_place = *top < roots && way == Path::new(DOT_GIT);
        !is_root_or_place && !way.as_os_str().is_empty()
    });
    let places = known.iter().flat_map(|GitDirectory { part, top, path }| {
        let names = part.files().iter().copied().chain(part.hooks());
        names.map(|name| Place {
            top: *top,
            path: path.join(name),
            within: path.clone(),
            kind: Kind::Part(*part),
        })
    });
    (0..roots).map(Place::of_root).chain(ways.into_iter().map(Place::way)).chain(places)
}
