//! Where a walk begins.

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::directory::{Below, Directory, LeftOut, OPENING, Scratch};
use super::rules::{Names, Rules};
use super::selection::{IgnoreRules, Scope};
use crate::{Action, Fault, FileKind, ResolvedPath, Target, WorkspaceError};

/// Where a walk begins: a directory, or one file.
///
/// It is looked at even where an ignore rule leaves it out, because somebody named it.
#[derive(Debug)]
pub struct Start {
    kind: FileKind,
    /// The start's directory; the start itself where it is one.
    directory: OwnedFd,
    name: CString,
    /// From the root to the start, where the start is a directory.
    path: Box<[u8]>,
    rules: Option<Arc<Rules>>,
    /// Ignore files above it of which only the first rules are known.
    cut_rules: u32,
}

impl ResolvedPath<'_> {
    /// A walk's start at this path.
    ///
    /// # Errors
    /// When nothing is there any more or it cannot be opened, and for what is neither a directory
    /// nor a regular file.
    pub fn start(&self, text: &str, rules: IgnoreRules) -> Result<Start, WorkspaceError> {
        let fail = |fault: Fault| fault.of(Action::List, text).at(&self.path);
        let Target::Found { handle, stat } = &self.target else {
            return Err(fail(Errno::NOENT.into()));
        };
        match stat.kind {
            FileKind::Directory => {
                let directory = rustix::fs::openat(handle, ".", OPENING, Mode::empty())
                    .map_err(|errno| fail(errno.into()))?;
                let way = self.way_from_root(rules);
                let Way { path, rules, cut_rules } = way;
                let name = c".".to_owned();
                Ok(Start { kind: stat.kind, directory, name, path, rules, cut_rules })
            }
            FileKind::Regular => {
                let directory = self.directory().ok_or_else(|| fail(Errno::NOENT.into()))?;
                let directory =
                    directory.try_clone_to_owned().map_err(|error| fail(Fault::System(error)))?;
                let name =
                    CString::new(self.name().as_bytes()).map_err(|_| fail(Errno::INVAL.into()))?;
                Ok(Start::of_one(directory, name))
            }
            FileKind::Special(special) => Err(fail(Fault::Special(special))),
            FileKind::Link => Err(fail(Fault::Changed)),
        }
    }

    fn way_from_root(&self, mode: IgnoreRules) -> Way {
        let path = self.path.strip_prefix(self.root.path()).unwrap_or(&self.path);
        let bytes: Box<[u8]> = path.as_os_str().as_bytes().into();
        let mut way = Way { path: bytes, rules: None, cut_rules: 0 };
        if mode == IgnoreRules::Disregard {
            return way;
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(mut here) = rustix::fs::openat(self.root.directory(), ".", flags, Mode::empty())
        else {
            return way;
        };
        let mut walked = 0;
        for name in path {
            let above = way.rules.take();
            let (rules, cut) = Rules::of_directory(&here, Names::unknown(), walked, above, mode);
            way.cut_rules += cut;
            walked += usize::from(walked > 0) + name.len();
            way.rules = rules.filter(|rules| !rules.ignore(&way.path[..walked], true));
            // The path is free of links; a directory that was swapped has no say.
            let Ok(next) = rustix::fs::openat(&here, name, flags, Mode::empty()) else { break };
            here = next;
        }
        way
    }
}

/// What leads from a root to a start.
struct Way {
    /// The path from the root.
    path: Box<[u8]>,
    /// The rules that hold for the directory there.
    rules: Option<Arc<Rules>>,
    cut_rules: u32,
}

impl Start {
    /// The regular file of this name alone.
    fn of_one(directory: OwnedFd, name: CString) -> Self {
        let (kind, path) = (FileKind::Regular, Box::default());
        Self { kind, directory, name, path, rules: None, cut_rules: 0 }
    }

    /// Whether it is a directory or a file.
    #[must_use]
    pub fn kind(&self) -> FileKind {
        self.kind
    }

    /// A start at the file that has this path from here, to look at it once more. No link is
    /// followed to it.
    ///
    /// # Errors
    /// As the system.
    pub fn file_beneath(&self, path: &[u8]) -> rustix::io::Result<Start> {
        let mut directory = self.directory.try_clone().map_err(|_| Errno::MFILE)?;
        let mut names = path.split(|byte| *byte == b'/').peekable();
        let mut last: &[u8] = self.name.to_bytes();
        while let Some(name) = names.next().filter(|name| !name.is_empty()) {
            if names.peek().is_some() {
                directory = rustix::fs::openat(&directory, name, OPENING, Mode::empty())?;
            }
            last = name;
        }
        let name = CString::new(last).map_err(|_| Errno::INVAL)?;
        Ok(Self::of_one(directory, name))
    }

    /// Opens the directory, or makes one of the file alone.
    pub(super) fn open(
        &self,
        scope: &Scope<'_>,
        scratch: &mut Scratch,
    ) -> rustix::io::Result<(Directory, LeftOut)> {
        if self.kind != FileKind::Directory {
            let directory = self.directory.try_clone().map_err(|_| Errno::MFILE)?;
            return Ok((Directory::of_one(directory, &self.name, self.kind), LeftOut::default()));
        }
        let below = Below {
            handle: self.directory.as_fd(),
            name: &self.name,
            path: self.path.clone(),
            start: self.path.len(),
            rules: self.rules.clone(),
            depth: 0,
        };
        let (directory, mut left_out) = Directory::open(below, scope, scratch)?;
        left_out.cut_rules += self.cut_rules;
        Ok((directory, left_out))
    }
}
