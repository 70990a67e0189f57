//! Resolves a path, as a caller wrote it, to a handle beneath a root.
//!
//! There are two ways. The fast one is a single `openat2` that refuses every link and every step
//! above the root; it serves nearly all paths. A file to be read is opened by it; of a
//! [`ResolvedPath`] it opens the directory, in which the last name is looked up. If it refuses, the
//! path is walked in this process: each component is opened as a handle that follows nothing, links
//! are read and their targets matched against all roots again. Neither way looks at anything
//! outside: a path or a link that leads out is refused by its text alone, whether or not something
//! is there.
//!
//! Paths arrive as text, in which a name that is not UTF-8 stands between quotes ([`name`]).

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::text::name;

use super::walk::{Directory, Walk};
use super::{
    Access, Action, Fault, FileKind, FileStat, Link, LockKey, Mode as LockMode, Root, Wait,
    Workspace, WorkspaceError,
};

mod nothing_there;

/// A path as a caller wrote it.
#[derive(Clone, Copy, Debug)]
pub struct PathArgument<'a> {
    /// The path: absolute, or relative to the working directory; also in the quoted form of
    /// [`name::encode`].
    pub text: &'a str,
    /// The directory that relative paths start from; the first root where there is none. It must be
    /// absolute. A call that names an absolute path does not use it.
    pub working_directory: Option<&'a str>,
}

/// Where a path leads: a handle of the directory, the name in it, and what is there.
#[derive(Debug)]
pub struct ResolvedPath<'w> {
    /// The path without links, `.` and `..`.
    pub path: PathBuf,
    /// The innermost root that contains the path.
    pub root: &'w Root,
    /// What is there; never a link, which is followed.
    pub target: Target,
    /// The directory that contains it, or would; absent where the path is itself a directory.
    pub(super) directory: Option<Directory<'w>>,
}

/// What is at a [`ResolvedPath`].
#[derive(Debug)]
pub enum Target {
    /// This file, as a handle that can neither read nor write (`O_PATH`).
    Found {
        /// The handle.
        handle: OwnedFd,
        /// What it is.
        stat: FileStat,
    },
    /// Nothing yet, though it could be made.
    Missing {
        /// The directories that would have to be made in its directory first, outermost first.
        directories: Vec<OsString>,
        /// Whether the path ends in a slash, so that it can only name a directory.
        ends_in_slash: bool,
        /// The link whose target is missing, where the path leads through one.
        link: Option<Link>,
    },
}

/// The longest path in bytes (`PATH_MAX`).
const MAX_PATH: usize = 4096;

impl Workspace {
    /// Resolves `path`. It is not opened for reading or writing, and nothing at
    /// it changes, not even its access time. A file that is not there is no error.
    ///
    /// # Errors
    /// When the path is no path, leads outside, or cannot be walked.
    pub fn locate(
        &self,
        path: PathArgument<'_>,
        action: Action,
    ) -> Result<ResolvedPath<'_>, WorkspaceError> {
        self.locate_fault(path).map_err(|fault| fault.of(action, path.text))
    }

    /// [`Workspace::locate`] for a path that must exist.
    ///
    /// # Errors
    /// As there, and when nothing is there; then similar names in the same directory are named.
    pub fn locate_existing(
        &self,
        path: PathArgument<'_>,
        action: Action,
    ) -> Result<ResolvedPath<'_>, WorkspaceError> {
        let resolved = self.locate(path, action)?;
        match resolved.target {
            Target::Found { .. } => Ok(resolved),
            Target::Missing { .. } => Err(self.not_found(&resolved, path, action)),
        }
    }

    /// Resolves `path` and locks the file there, or its name while there is no file. Once the lock
    /// is held the path is checked again from its directory's handle, because the previous holder
    /// of the lock may have replaced the file; if so, the path is resolved anew. So a lock on what
    /// is there is a lock on the path.
    ///
    /// # Errors
    /// As [`Workspace::locate`] and [`LockTable::lock`](super::LockTable::lock).
    pub fn lock_path(
        &self,
        path: PathArgument<'_>,
        action: Action,
        mode: LockMode,
        wait: Wait<'_>,
    ) -> Result<(ResolvedPath<'_>, super::Guard), WorkspaceError> {
        let give_up = Instant::now() + wait.limit;
        loop {
            let resolved = self.locate(path, action)?;
            let left = give_up.saturating_duration_since(Instant::now());
            let guard = self.locks.lock(resolved.lock_key(), mode, Wait { limit: left, ..wait });
            let guard = guard.map_err(|fault| match fault {
                Fault::Locked(_) => Fault::Locked(wait.limit).of(action, path.text),
                other => other.of(action, path.text),
            })?;
            if resolved.is_as_found() {
                return Ok((resolved, guard));
            }
        }
    }

    pub(super) fn locate_fault(&self, path: PathArgument<'_>) -> Result<ResolvedPath<'_>, Fault> {
        let beneath = self.beneath(path)?;
        let (root, rest) = self.start(&beneath)?;
        match self.find_directly(root, rest)? {
            Some(resolved) => Ok(resolved),
            None => Walk::new(self, root, rest).run(),
        }
    }

    /// Resolves the path with one `openat2` for its directory and one look at the name in it. `None`
    /// means that the path has to be walked.
    fn find_directly(&self, root: usize, rest: &[u8]) -> Result<Option<ResolvedPath<'_>>, Fault> {
        // The walk knows a root by its identity, wherever it has been moved to. That matters only
        // where one root permits what another does not.
        let access = self.roots().first().map(Root::access);
        let slash = rest.iter().rposition(|byte| *byte == b'/');
        let (directories, name) =
            slash.map_or((&[][..], rest), |at| (&rest[..at], &rest[at + 1..]));
        if matches!(name, b"" | b"." | b"..")
            || self.roots().iter().any(|root| Some(root.access()) != access)
        {
            return Ok(None);
        }
        let top = &self.roots[root];
        let directory = if directories.is_empty() {
            Directory::Root(top.directory())
        } else {
            match open_beneath(top.directory(), directories, HANDLE | OFlags::DIRECTORY) {
                Ok(directory) => Directory::Own(directory),
                Err(errno) => return walk_unless_exhausted(errno),
            }
        };
        let target = match rustix::fs::openat(&directory, name, HANDLE, Mode::empty()) {
            Ok(handle) => {
                let stat = FileStat::of(&handle)?;
                if stat.kind == FileKind::Link {
                    return Ok(None);
                }
                Target::Found { handle, stat }
            }
            Err(Errno::NOENT) => {
                Target::Missing { directories: Vec::new(), ends_in_slash: false, link: None }
            }
            Err(errno) => return walk_unless_exhausted(errno),
        };
        let is_directory =
            matches!(&target, Target::Found { stat, .. } if stat.kind == FileKind::Directory);
        let path = clean_join(top.path(), rest);
        let root = self.innermost(&path).unwrap_or(top);
        Ok(Some(ResolvedPath {
            path,
            root,
            target,
            directory: (!is_directory).then_some(directory),
        }))
    }

    /// The innermost root that contains a path without links; of equal ones the first.
    fn innermost(&self, path: &Path) -> Option<&Root> {
        let containing = self.roots.iter().filter(|root| path.starts_with(root.path()));
        containing.rev().max_by_key(|root| root.path().as_os_str().len())
    }

    /// Opens the file that `path` names in one step, if no link and no step above the root is on the
    /// way. `None` means that the path has to be walked, be it to find out what is wrong with it.
    pub(super) fn open_directly(
        &self,
        path: PathArgument<'_>,
        flags: OFlags,
    ) -> Result<Option<(OwnedFd, PathBuf)>, Fault> {
        let beneath = self.beneath(path)?;
        let (root, rest) = self.start(&beneath)?;
        let root = &self.roots[root];
        let path = clean_join(root.path(), rest);
        if path.starts_with("/dev") {
            // Some devices act when they are opened: there the walk looks first.
            return Ok(None);
        }
        let relative = if rest.is_empty() { b".".as_slice() } else { rest };
        match open_beneath(root.directory(), relative, flags) {
            Ok(handle) => Ok(Some((handle, path))),
            Err(errno) => walk_unless_exhausted(errno),
        }
    }

    /// Checks the text and makes it absolute, or relative to the first root.
    fn beneath<'a>(&self, path: PathArgument<'a>) -> Result<Beneath<'a>, Fault> {
        let PathArgument { text, working_directory } = path;
        let named = name::decode(text);
        check(&named)?;
        if named.starts_with(b"/") {
            return Ok(Beneath::Absolute(named));
        }
        let Some(directory) = working_directory else { return Ok(Beneath::First(named)) };
        check(directory.as_bytes())?;
        if !directory.starts_with('/') {
            return Err(Fault::NoPath("the working directory is not an absolute path"));
        }
        if self.enter(directory.as_bytes()).is_none() {
            return Err(Fault::WorkingDirectoryOutside {
                directory: directory.to_owned(),
                roots: self.names(),
            });
        }
        Ok(Beneath::Absolute([directory.as_bytes(), b"/", &named].concat().into()))
    }

    /// The root from which a path is walked, and the rest of the path from there.
    fn start<'b>(&self, beneath: &'b Beneath<'_>) -> Result<(usize, &'b [u8]), Fault> {
        match beneath {
            Beneath::First(rest) => Ok((0, rest)),
            Beneath::Absolute(text) => self.enter(text).ok_or_else(|| self.outside(None)),
        }
    }

    /// The innermost root that an absolute path enters before its first `..`, and the rest of the
    /// path from there. Before it enters one, `..` is taken as text: nobody may look at what it
    /// would mean.
    pub(super) fn enter<'p>(&self, path: &'p [u8]) -> Option<(usize, &'p [u8])> {
        let mut names: Vec<&[u8]> = Vec::new();
        let mut entered = self.root_at(&names).map(|root| (root, path));
        let mut start = 0;
        for piece in path.split(|byte| *byte == b'/') {
            let end = start + piece.len();
            start = end + 1;
            match piece {
                b"" | b"." => continue,
                b".." if entered.is_some() => break,
                b".." => drop(names.pop()),
                name => names.push(name),
            }
            if let Some(root) = self.root_at(&names) {
                entered = Some((root, &path[end..]));
            }
        }
        entered.map(|(root, rest)| {
            let slashes = rest.iter().take_while(|byte| **byte == b'/').count();
            (root, &rest[slashes..])
        })
    }

    /// The root with this very path. Of equal ones the first, which is writable if any is.
    fn root_at(&self, names: &[&[u8]]) -> Option<usize> {
        self.roots.iter().position(|root| {
            root.spellings().iter().any(|spelling| {
                let parts = spelling.as_os_str().as_bytes().split(|byte| *byte == b'/');
                parts.filter(|part| !part.is_empty()).eq(names.iter().copied())
            })
        })
    }

    pub(super) fn outside(&self, link: Option<Link>) -> Fault {
        Fault::Outside { roots: self.names(), link }
    }
}

enum Beneath<'a> {
    /// Relative to the first root.
    First(Cow<'a, [u8]>),
    /// Absolute.
    Absolute(Cow<'a, [u8]>),
}

impl<'w> ResolvedPath<'w> {
    /// The directory that contains the path, as a handle; the nearest one that exists where
    /// directories are missing. Absent where the path is itself a directory.
    #[must_use]
    pub fn directory(&self) -> Option<BorrowedFd<'_>> {
        self.directory.as_ref().map(AsFd::as_fd)
    }

    /// The name in the directory.
    #[must_use]
    pub fn name(&self) -> &OsStr {
        self.path.file_name().unwrap_or(OsStr::new("."))
    }

    /// Refuses a path that may only be read, or is protected.
    ///
    /// # Errors
    /// When the innermost root that contains it is a read-only one, or when a person's own git takes what
    /// it runs from there.
    pub fn check_writable(&self, workspace: &Workspace, text: &str) -> Result<(), WorkspaceError> {
        if self.root.access() == Access::ReadWrite {
            return match workspace.protection() {
                Some(protection) if protection.covers(self) => {
                    Err(Fault::Protected.of(Action::Write, text).at(&self.path))
                }
                _ => Ok(()),
            };
        }
        let writable = workspace.roots.iter().filter(|root| root.access() == Access::ReadWrite);
        let fault = Fault::ReadOnly {
            root: self.root.name(),
            writable: writable.map(Root::name).collect(),
        };
        Err(fault.of(Action::Write, text).at(&self.path))
    }

    /// What to lock before it is changed.
    #[must_use]
    pub fn lock_key(&self) -> LockKey {
        match &self.target {
            Target::Found { stat, .. } => LockKey::File(stat.id),
            Target::Missing { .. } => LockKey::Name(self.path.clone()),
        }
    }

    /// Whether what is there is still what was found. A directory is nothing that a tool replaces.
    fn is_as_found(&self) -> bool {
        let Some(directory) = self.directory() else { return true };
        let (_, name) = self.first_missing();
        let now = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
        match (&self.target, now.map(|now| FileStat::from_raw(&now).id)) {
            (Target::Found { stat, .. }, Ok(now)) => stat.id == now,
            (Target::Missing { .. }, now) => now == Err(Errno::NOENT),
            (Target::Found { .. }, Err(_)) => false,
        }
    }

    /// The first part of the path that is not there, and its name.
    fn first_missing(&self) -> (PathBuf, &OsStr) {
        match &self.target {
            Target::Missing { directories, .. } if !directories.is_empty() => {
                let missing = self.path.ancestors().nth(directories.len()).unwrap_or(&self.path);
                (missing.to_owned(), &directories[0])
            }
            _ => (self.path.clone(), self.name()),
        }
    }
}

fn check(path: &[u8]) -> Result<(), Fault> {
    if path.is_empty() {
        return Err(Fault::NoPath("the path is empty"));
    }
    if path.contains(&0) {
        return Err(Fault::NoPath("the path contains a NUL byte"));
    }
    if path.len() >= MAX_PATH {
        return Err(Errno::NAMETOOLONG.into());
    }
    Ok(())
}

/// A handle that can neither read nor write, of a link itself and not of what it leads to.
pub(super) const HANDLE: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens a path in one step, if it leads through no link and never above `directory`.
pub(super) fn open_beneath(
    directory: BorrowedFd<'_>,
    path: impl rustix::path::Arg,
    flags: OFlags,
) -> rustix::io::Result<OwnedFd> {
    #[cfg(any(test, feature = "count-lookups"))]
    crate::lookups::count();
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(directory, path, flags, Mode::empty(), resolve)
}

/// What follows where the quick way failed: the walk, also where `openat2` is missing or forbidden,
/// but not where the walk would find no more descriptors or memory either.
fn walk_unless_exhausted<T>(errno: Errno) -> Result<Option<T>, Fault> {
    match errno {
        Errno::MFILE | Errno::NFILE | Errno::NOMEM => Err(errno.into()),
        _ => Ok(None),
    }
}

/// `base` and a path beneath it that leads through no link: there `..` can be taken as text.
fn clean_join(base: &Path, rest: &[u8]) -> PathBuf {
    let mut path = base.to_owned();
    for name in rest.split(|byte| *byte == b'/') {
        match name {
            b"" | b"." => {}
            b".." => drop(path.pop()),
            name => path.push(OsStr::from_bytes(name)),
        }
    }
    path
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests set up real files")]
pub(crate) mod tests;
