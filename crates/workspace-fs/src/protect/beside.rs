//! Files that programs outside run or obey without asking, and that commands may write all the same: that
//! one was made or changed is told. Only fixed names are looked at, by their metadata.

use std::ffi::OsStr;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use rustix::fs::AtFlags;

use crate::git_places::{DOT_GIT, Top};
use crate::{FileId, FileKind, FileStat, Stamp};

/// In a root's top: what direnv, shells and editors run. `HEAD` makes a bare repository of a directory,
/// whose `config` git obeys.
const FILES: [&str; 10] = [
    ".envrc",
    ".bashrc",
    ".bash_login",
    ".bash_profile",
    ".profile",
    ".zlogin",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    "HEAD",
];

/// Directories there, with what is looked at in them.
const DIRECTORIES: [(&str, &[&str]); 2] = [
    (".vscode", &["settings.json", "tasks.json", "launch.json", "extensions.json"]),
    (".idea", &["workspace.xml", "runConfigurations"]),
];

/// How many directories between a call's own and its root are looked at for repositories.
const MOST_LEVELS: usize = 16;

/// What was there before a call.
#[derive(Debug, Default)]
pub(super) struct Beside(Vec<(PathBuf, Trace)>);

/// What is known of one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trace {
    Missing,
    Stamp(Stamp),
    /// Of a repository, in which much changes.
    Id(FileId),
}

impl Beside {
    /// Looks at every root of `roots`, and at the directories from `cwd` up to its root.
    pub(super) fn of(roots: &[Top<'_>], cwd: &Path) -> Self {
        let mut seen = Vec::new();
        for root in roots {
            let mut see = |name: &Path| {
                let trace = trace(root.directory, name);
                seen.push((root.path.join(name), trace));
                trace
            };
            for name in FILES {
                see(Path::new(name));
            }
            for (directory, files) in DIRECTORIES {
                let directory = Path::new(directory);
                if see(directory) != Trace::Missing {
                    for file in files {
                        see(&directory.join(file));
                    }
                }
            }
            let Ok(inside) = cwd.strip_prefix(root.path) else { continue };
            let levels = inside.ancestors().filter(|level| !level.as_os_str().is_empty());
            for level in levels.take(MOST_LEVELS) {
                let repository = level.join(DOT_GIT);
                if see(&repository) != Trace::Missing {
                    for place in ["config", "commondir", "hooks"] {
                        see(&repository.join(place));
                    }
                }
            }
        }
        Self(seen)
    }

    /// What differs now, by its path.
    pub(super) fn changed(&self, roots: &[Top<'_>], cwd: &Path) -> Vec<PathBuf> {
        let before = |path: &Path| {
            let known = self.0.iter().find(|(known, _)| known == path);
            known.map_or(Trace::Missing, |(_, trace)| *trace)
        };
        let now = Self::of(roots, cwd);
        let is_head = |path: &Path| path.file_name() == Some(OsStr::new("HEAD"));
        let changed = now.0.iter().filter(|(path, trace)| {
            let before = before(path);
            // Nothing runs what is not there. Git itself changes a HEAD.
            *trace != Trace::Missing
                && *trace != before
                && (!is_head(path) || before == Trace::Missing)
        });
        let changed: Vec<&PathBuf> = changed.map(|(path, _)| path).collect();
        let has_part = |path: &Path| changed.iter().any(|part| part.parent() == Some(path));
        changed.iter().filter(|path| !has_part(path)).map(|path| (*path).clone()).collect()
    }
}

fn trace(root: BorrowedFd<'_>, name: &Path) -> Trace {
    match rustix::fs::statat(root, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(_) => Trace::Missing,
        Ok(stat) => {
            let stat = FileStat::from_raw(&stat);
            let is_repository = stat.kind == FileKind::Directory && name.ends_with(DOT_GIT);
            if is_repository { Trace::Id(stat.id) } else { Trace::Stamp(stat.stamp()) }
        }
    }
}
