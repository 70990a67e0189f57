//! The walk in this process: one component at a time, following nothing that was not checked.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::resolve::{HANDLE, ResolvedPath, Target, open_beneath};
use super::{Fault, FileKind, FileStat, Link, Root, Workspace};

/// How many links a path may lead through, as in the kernel (`MAXSYMLINKS`).
const MAX_LINKS: usize = 40;

/// A directory's handle: a root's own, or one opened on the way.
#[derive(Debug)]
pub(super) enum Directory<'w> {
    Root(BorrowedFd<'w>),
    Own(OwnedFd),
}

impl AsFd for Directory<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Directory::Root(handle) => *handle,
            Directory::Own(handle) => handle.as_fd(),
        }
    }
}

/// A walk by hand. Only the directory where it stands is open, however deep that is; of those above it
/// the identities are known, so that `..` leads back to the very directory that was left, or nowhere.
pub(super) struct Walk<'w> {
    workspace: &'w Workspace,
    /// The root that the walk started from or jumped to.
    base: usize,
    /// The directories from there down to where it stands.
    levels: Vec<Level>,
    /// The last of them; the root itself where there is none.
    here: Directory<'w>,
    /// What is still to be walked, the next one last.
    rest: Vec<Step>,
    links: Vec<Link>,
}

struct Level {
    name: OsString,
    stat: FileStat,
    /// The innermost root that contains it.
    root: usize,
}

struct Step {
    name: OsString,
    /// The link whose target it is part of.
    link: Option<usize>,
}

impl<'w> Walk<'w> {
    pub(super) fn new(workspace: &'w Workspace, base: usize, rest: &[u8]) -> Self {
        let mut walk = Self {
            workspace,
            base,
            levels: Vec::new(),
            here: Directory::Root(workspace.roots[base].directory()),
            rest: Vec::new(),
            links: Vec::new(),
        };
        walk.push(rest, None);
        walk
    }

    /// Walks to the end.
    pub(super) fn run(mut self) -> Result<ResolvedPath<'w>, Fault> {
        while let Some(step) = self.rest.pop() {
            match step.name.as_bytes() {
                b"." => {}
                b".." => self.leave(&step)?,
                _ => {
                    if let Some(resolved) = self.descend(step)? {
                        return Ok(resolved);
                    }
                }
            }
        }
        self.directory_itself()
    }

    /// Opens one component. Returns the resolved path when the walk is over.
    fn descend(&mut self, step: Step) -> Result<Option<ResolvedPath<'w>>, Fault> {
        #[cfg(any(test, feature = "count-lookups"))]
        crate::lookups::count();
        let handle = match rustix::fs::openat(&self.here, &step.name, HANDLE, Mode::empty()) {
            Ok(handle) => handle,
            Err(Errno::NOENT) => return self.missing(step).map(Some),
            Err(errno @ Errno::ACCESS) => {
                let path = self.path().join(&step.name);
                return Err(Fault::Barred { path, source: errno.into() });
            }
            Err(errno) => return Err(errno.into()),
        };
        let stat = FileStat::of(&handle)?;
        match stat.kind {
            FileKind::Directory => {
                let same = |root: &Root| root.id() == stat.id;
                let nested = self.workspace.roots.iter().position(same);
                let root = nested.unwrap_or_else(|| self.root());
                self.levels.push(Level { name: step.name, stat, root });
                self.here = Directory::Own(handle);
                Ok(None)
            }
            FileKind::Link => self.follow(&step, &handle).map(|()| None),
            FileKind::Regular | FileKind::Special(_) => {
                let path = self.path().join(&step.name);
                if !self.rest.is_empty() {
                    return Err(Fault::NotADirectory(path));
                }
                let target = Target::Found { handle, stat };
                Ok(Some(self.resolved(path, target)))
            }
        }
    }

    fn follow(&mut self, step: &Step, handle: &OwnedFd) -> Result<(), Fault> {
        let path = self.path().join(&step.name);
        if self.links.len() == MAX_LINKS {
            return Err(Fault::TooManyLinks(path));
        }
        if self.is_magic(&step.name, handle) {
            return Err(Fault::MagicLink(path));
        }
        let target = rustix::fs::readlinkat(handle, "", Vec::new())?.into_bytes();
        self.links.push(Link { path, target: PathBuf::from(OsString::from_vec(target.clone())) });
        let link = self.links.len() - 1;
        if target.starts_with(b"/") {
            return self.jump(&target, Some(link));
        }
        self.push(&target, Some(link));
        Ok(())
    }

    /// Goes on at an absolute path.
    fn jump(&mut self, path: &[u8], link: Option<usize>) -> Result<(), Fault> {
        let Some((root, rest)) = self.workspace.enter(path) else {
            return Err(self.workspace.outside(link.map(|link| self.links[link].clone())));
        };
        self.base = root;
        self.levels.clear();
        self.here = Directory::Root(self.workspace.roots[root].directory());
        self.push(rest, link);
        Ok(())
    }

    /// Goes one directory up. Above the top of a root may be another root: paths decide that.
    fn leave(&mut self, step: &Step) -> Result<(), Fault> {
        if self.levels.pop().is_some() {
            return self.return_to_last();
        }
        let top = self.workspace.roots[self.base].path();
        let Some(above) = top.parent() else { return Ok(()) };
        let mut path = above.as_os_str().as_bytes().to_vec();
        // All that follows decides whether it comes back in: "../beside/file".
        let mut link = step.link;
        for next in self.rest.drain(..).rev() {
            path.push(b'/');
            path.extend_from_slice(next.name.as_bytes());
            link = link.or(next.link);
        }
        self.jump(&path, link)
    }

    /// Opens the last of the directories again.
    fn return_to_last(&mut self) -> Result<(), Fault> {
        let top = self.workspace.roots[self.base].directory();
        let Some(level) = self.levels.last() else {
            self.here = Directory::Root(top);
            return Ok(());
        };
        let path: PathBuf = self.levels.iter().map(|level| &level.name).collect();
        let directory = open_beneath(top, path, HANDLE | OFlags::DIRECTORY)?;
        if FileStat::of(&directory)?.id != level.stat.id {
            // Renamed or replaced in this moment.
            return Err(Errno::AGAIN.into());
        }
        self.here = Directory::Own(directory);
        Ok(())
    }

    /// The component is not there. That is an end as good as any if only names follow.
    fn missing(&mut self, step: Step) -> Result<ResolvedPath<'w>, Fault> {
        let mut path = self.path().join(&step.name);
        let ends_in_slash = self.rest.first().is_some_and(|last| last.name == ".");
        let link = step.link.map(|link| self.links[link].clone());
        let mut directories = vec![step.name];
        for next in self.rest.drain(..).rev() {
            match next.name.as_bytes() {
                b"." => {}
                b".." => {
                    return Err(Fault::NotFound {
                        missing: path,
                        link,
                        near: Vec::new(),
                        alike: None,
                    });
                }
                _ => {
                    path.push(&next.name);
                    directories.push(next.name);
                }
            }
        }
        directories.pop();
        Ok(self.resolved(path, Target::Missing { directories, ends_in_slash, link }))
    }

    /// The walk ended at a directory.
    fn directory_itself(self) -> Result<ResolvedPath<'w>, Fault> {
        let path = self.path();
        let root = &self.workspace.roots[self.root()];
        let (handle, stat) = match (self.here, self.levels.last()) {
            (Directory::Own(handle), Some(level)) => (handle, level.stat),
            (top, _) => {
                let handle = top.as_fd().try_clone_to_owned().map_err(Fault::System)?;
                let stat = FileStat::of(&handle)?;
                (handle, stat)
            }
        };
        Ok(ResolvedPath { path, root, target: Target::Found { handle, stat }, directory: None })
    }

    fn resolved(&mut self, path: PathBuf, target: Target) -> ResolvedPath<'w> {
        let root = &self.workspace.roots[self.root()];
        let top = Directory::Root(self.workspace.roots[self.base].directory());
        let directory = std::mem::replace(&mut self.here, top);
        ResolvedPath { path, root, target, directory: Some(directory) }
    }

    fn push(&mut self, path: &[u8], link: Option<usize>) {
        let step = |name: &[u8]| Step { name: OsStr::from_bytes(name).to_owned(), link };
        if path.ends_with(b"/") {
            // "file/" asks for a directory, as "file/." does.
            self.rest.push(step(b"."));
        }
        let names = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty());
        self.rest.extend(names.rev().map(step));
    }

    fn root(&self) -> usize {
        self.levels.last().map_or(self.base, |level| level.root)
    }

    fn path(&self) -> PathBuf {
        let mut path = self.workspace.roots[self.base].path().to_owned();
        path.extend(self.levels.iter().map(|level| &level.name));
        path
    }

    /// Whether a link is one of the kernel's own, whose text is only a description. They exist in
    /// the proc file system alone, beside ordinary links; the kernel refuses them with ELOOP.
    fn is_magic(&self, name: &OsStr, handle: &OwnedFd) -> bool {
        let on_proc = rustix::fs::fstatfs(handle)
            .is_ok_and(|stat| stat.f_type == rustix::fs::PROC_SUPER_MAGIC);
        if !on_proc {
            return false;
        }
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let opened = rustix::fs::openat2(&self.here, name, flags, Mode::empty(), resolve);
        !matches!(opened, Ok(_) | Err(Errno::XDEV | Errno::NOENT | Errno::NOTDIR))
    }
}
