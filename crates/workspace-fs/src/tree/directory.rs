//! A directory of the walk: its handle and what is in it.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{FileType, Mode, OFlags, RawDir};
use rustix::io::Errno;

use super::order::Key;
use super::rules::{Names, Rules};
use super::selection::{Scope, Verdict};
use crate::{FileKind, FileStat, Special};

/// A directory with the entries that are looked at, sorted by name.
pub(super) struct Directory {
    handle: OwnedFd,
    /// From the walk's root, which is where the first ignore file may lie; empty for that root.
    path: Box<[u8]>,
    /// How much of the path leads to the walk's start.
    start: usize,
    /// Where the names begin in `names`, and what they name.
    entries: Vec<Listed>,
    /// Names, each with a NUL behind it.
    names: Vec<u8>,
    /// What holds for the directories in it.
    rules: Option<Arc<Rules>>,
    depth: usize,
}

#[derive(Clone, Copy)]
struct Listed {
    start: u32,
    len: u16,
    kind: FileKind,
    entered: Entered,
}

/// Whether a directory is walked through.
#[derive(Clone, Copy, PartialEq)]
enum Entered {
    Yes,
    No,
}

/// What was left out of a directory, and what was not because of a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LeftOut {
    /// Entries that an ignore rule leaves out.
    pub(super) ignored: u32,
    /// Ignore files of which only the first rules are known.
    pub(super) cut_rules: u32,
}

/// A directory that is to be opened.
pub(super) struct Below<'a> {
    /// The directory above it.
    pub(super) handle: BorrowedFd<'a>,
    pub(super) name: &'a CStr,
    /// Its own path.
    pub(super) path: Box<[u8]>,
    pub(super) start: usize,
    pub(super) rules: Option<Arc<Rules>>,
    pub(super) depth: usize,
}

/// The size of the buffer for a batch of directory entries (`getdents64`).
const BUFFER_SIZE: usize = 32 * 1024;

/// What a thread reuses from directory to directory.
pub(super) struct Scratch {
    buffer: Box<[MaybeUninit<u8>]>,
    path: Vec<u8>,
}

impl Scratch {
    pub(super) fn new() -> Self {
        Self {
            buffer: vec![MaybeUninit::uninit(); BUFFER_SIZE].into_boxed_slice(),
            path: Vec::new(),
        }
    }
}

/// How a directory of the walk is opened: the very directory, never what a link leads to.
pub(super) const OPENING: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl Directory {
    /// Opens and lists a directory.
    pub(super) fn open(
        below: Below<'_>,
        scope: &Scope<'_>,
        scratch: &mut Scratch,
    ) -> rustix::io::Result<(Self, LeftOut)> {
        let handle = rustix::fs::openat(below.handle, below.name, OPENING, Mode::empty())?;
        Self::list(handle, below, scope, scratch)
    }

    /// A directory that holds nothing but the one file where a walk starts.
    pub(super) fn of_one(handle: OwnedFd, name: &CStr, kind: FileKind) -> Self {
        Self {
            handle,
            path: Box::default(),
            start: 0,
            entries: vec![Listed {
                start: 0,
                len: short(name.to_bytes().len()),
                kind,
                entered: Entered::No,
            }],
            names: name.to_bytes_with_nul().to_vec(),
            rules: None,
            depth: usize::MAX,
        }
    }

    fn list(
        handle: OwnedFd,
        below: Below<'_>,
        scope: &Scope<'_>,
        scratch: &mut Scratch,
    ) -> rustix::io::Result<(Self, LeftOut)> {
        let mut names = Vec::new();
        let mut entries = Vec::new();
        let mut special = Names::default();
        let mut dir = RawDir::new(&handle, &mut scratch.buffer);
        while let Some(entry) = dir.next() {
            let entry = entry?;
            let name = entry.file_name();
            let bytes = name.to_bytes();
            if matches!(bytes, b"." | b"..") {
                continue;
            }
            special.note(bytes);
            // A repository's own store is no part of what is searched.
            if bytes == b".git" {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
                    match rustix::fs::statat(&handle, name, flags) {
                        Ok(stat) => FileStat::from_raw(&stat).kind,
                        // Gone since.
                        Err(Errno::NOENT) => continue,
                        Err(_) => FileKind::Special(Special::Unknown),
                    }
                }
                known => known.into(),
            };
            let start = u32::try_from(names.len()).map_err(|_| Errno::OVERFLOW)?;
            entries.push(Listed { start, len: short(bytes.len()), kind, entered: Entered::Yes });
            names.extend_from_slice(name.to_bytes_with_nul());
        }
        let (own, cut_rules) =
            Rules::of_directory(&handle, special, below.path.len(), below.rules, scope.rules());
        let mut directory = Self {
            handle,
            path: below.path,
            start: below.start,
            entries,
            names,
            rules: own,
            depth: below.depth,
        };
        let ignored = directory.select(scope, &mut scratch.path);
        let names = &directory.names;
        directory
            .entries
            .sort_unstable_by(|left, right| bytes_at(names, *left).cmp(bytes_at(names, *right)));
        Ok((directory, LeftOut { ignored, cut_rules }))
    }

    /// Drops the entries that are not looked at, and counts those that ignore rules leave out.
    fn select(&mut self, scope: &Scope<'_>, path: &mut Vec<u8>) -> u32 {
        path.clear();
        path.extend_from_slice(&self.path);
        if !path.is_empty() {
            path.push(b'/');
        }
        let base = path.len();
        let from = if self.start == 0 { 0 } else { self.start + 1 };
        let mut ignored = 0;
        let (names, rules) = (&self.names, self.rules.as_deref());
        self.entries.retain_mut(|entry| {
            path.truncate(base);
            path.extend_from_slice(bytes_at(names, *entry));
            match scope.verdict(path, from, entry.kind, rules) {
                Verdict::Take => true,
                Verdict::TakeAlone => {
                    entry.entered = Entered::No;
                    true
                }
                Verdict::Leave => false,
                Verdict::Ignored => {
                    ignored += 1;
                    false
                }
            }
        });
        ignored
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn name(&self, index: usize) -> &CStr {
        let entry = self.entries[index];
        let start = entry.start as usize;
        let with_nul = &self.names[start..=start + usize::from(entry.len)];
        // Every name was stored with its NUL.
        CStr::from_bytes_with_nul(with_nul).unwrap_or(c"")
    }

    pub(super) fn kind(&self, index: usize) -> FileKind {
        self.entries[index].kind
    }

    /// Whether this entry is a directory that is walked through.
    pub(super) fn is_entered(&self, index: usize) -> bool {
        self.entries[index].entered == Entered::Yes
    }

    /// An entry's path from the walk's start.
    pub(super) fn path_of(&self, index: usize) -> Vec<u8> {
        if self.depth == usize::MAX {
            return Vec::new();
        }
        let mut path = self.way_from_start().to_vec();
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(self.name(index).to_bytes());
        path
    }

    /// Where an entry stands in the order of the walk.
    pub(super) fn key(&self, index: usize) -> Key {
        Key::of(self.way_from_start(), self.name(index).to_bytes())
    }

    /// The directory's path from the walk's start.
    pub(super) fn way_from_start(&self) -> &[u8] {
        let rest = &self.path[self.start.min(self.path.len())..];
        rest.strip_prefix(b"/").unwrap_or(rest)
    }

    /// A directory in this one, which is to be opened.
    pub(super) fn below(&self, index: usize, scope: &Scope<'_>) -> Below<'_> {
        let name = self.name(index);
        let mut path = Vec::with_capacity(self.path.len() + 1 + name.to_bytes().len());
        path.extend_from_slice(&self.path);
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name.to_bytes());
        let from = if self.start == 0 { 0 } else { self.start + 1 };
        Below {
            handle: self.handle.as_fd(),
            name,
            rules: scope.rules_within(&path, from, self.rules.as_ref()),
            path: path.into_boxed_slice(),
            start: self.start,
            depth: self.depth + 1,
        }
    }

    /// How many directories lead to this one.
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// The length of an entry's path from the walk's root.
    pub(super) fn path_len(&self, index: usize) -> usize {
        self.path.len() + 1 + self.name(index).to_bytes().len()
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

fn bytes_at(names: &[u8], entry: Listed) -> &[u8] {
    let start = entry.start as usize;
    &names[start..start + usize::from(entry.len)]
}

/// No system has names as long as this can count.
fn short(len: usize) -> u16 {
    u16::try_from(len).unwrap_or(u16::MAX)
}
