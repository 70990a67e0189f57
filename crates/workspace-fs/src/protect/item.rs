//! What is at a protected place, remembered so that a change is seen and can be undone.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use rustix::io::Errno;

use crate::git_places;
use crate::{FileId, FileKind, FileStat, Stamp};

/// The largest file that is remembered, how many bytes of one directory of hooks, and how many entries.
/// Of what is larger, a change is seen and cannot be undone.
pub(super) const MOST_BYTES: u64 = 1 << 20;
const MOST_IN_DIRECTORY: u64 = 8 << 20;
pub(super) const MOST_ENTRIES: usize = 256;

/// What is at a place.
#[derive(Clone, Debug)]
pub(super) enum Item {
    Missing,
    File(File),
    /// A directory of hooks.
    Directory {
        mode: u32,
        entries: BTreeMap<OsString, Item>,
        /// Whether there are more entries than are remembered.
        is_cut: bool,
    },
    Link(Vec<u8>),
    /// A directory whose content is not looked at.
    Folder {
        id: FileId,
        mode: u32,
    },
    /// A pipe, a socket, a device.
    Special,
}

#[derive(Clone, Debug)]
pub(super) struct File {
    stamp: Stamp,
    pub(super) mode: u32,
    pub(super) owner: (u32, u32),
    /// `None` where it is too large, or cannot be read.
    pub(super) content: Option<Arc<[u8]>>,
}

/// How a directory at a place is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// By its identity.
    Itself,
    /// With the files in it.
    Entries,
}

impl Item {
    /// What is at `name`. Files are read each time: a stamp does not show what is written by a mapping whose
    /// page was changed before.
    pub(super) fn at(directory: BorrowedFd<'_>, name: &OsStr, depth: Depth) -> Item {
        let mut left = MOST_BYTES;
        Self::look(directory, name, depth, &mut left)
    }

    fn look(directory: BorrowedFd<'_>, name: &OsStr, depth: Depth, left: &mut u64) -> Item {
        let stat = match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => FileStat::from_raw(&stat),
            Err(_) => return Item::Missing,
        };
        match (stat.kind, depth) {
            (FileKind::Regular, _) => Item::File(File::look(directory, name, &stat, left)),
            (FileKind::Link, _) => {
                let target = rustix::fs::readlinkat(directory, name, Vec::new());
                target.map_or(Item::Missing, |target| Item::Link(target.into_bytes()))
            }
            (FileKind::Directory, Depth::Itself) => Item::Folder { id: stat.id, mode: stat.mode },
            (FileKind::Directory, Depth::Entries) => entries(directory, name, &stat),
            (FileKind::Special(_), _) => Item::Special,
        }
    }

    /// Whether it can be mounted on itself.
    pub(super) fn is_mountable(&self) -> bool {
        matches!(self, Item::File(_) | Item::Directory { .. })
    }

    /// Whether git would find the same in both.
    pub(super) fn is_same(&self, other: &Item) -> bool {
        match (self, other) {
            (Item::Missing, Item::Missing) | (Item::Special, Item::Special) => true,
            (Item::Folder { id, mode }, Item::Folder { id: other, mode: other_mode }) => {
                id == other && mode == other_mode
            }
            (Item::Link(one), Item::Link(other)) => one == other,
            (Item::File(one), Item::File(other)) => one.is_same(other),
            (
                Item::Directory { mode, entries, .. },
                Item::Directory { mode: other_mode, entries: others, .. },
            ) => {
                mode == other_mode
                    && entries.len() == others.len()
                    && entries.iter().zip(others).all(|((name, item), (other_name, other))| {
                        name == other_name && item.is_same(other)
                    })
            }
            _ => false,
        }
    }
}

impl File {
    fn look(directory: BorrowedFd<'_>, name: &OsStr, stat: &FileStat, left: &mut u64) -> File {
        let content = (stat.size <= *left).then(|| read(directory, name, stat)).flatten();
        *left -= content.as_ref().map_or(0, |content| content.len() as u64);
        File { stamp: stat.stamp(), mode: stat.mode, owner: (stat.uid, stat.gid), content }
    }

    fn is_same(&self, other: &File) -> bool {
        self.mode == other.mode
            && match (&self.content, &other.content) {
                (Some(one), Some(other)) => one == other,
                (None, None) => self.stamp == other.stamp,
                _ => false,
            }
    }
}

/// Reads a file, if it is the one that was looked at and has not grown since.
fn read(directory: BorrowedFd<'_>, name: &OsStr, stat: &FileStat) -> Option<Arc<[u8]>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(directory, name, flags, Mode::empty()).ok()?;
    if FileStat::of(&file).ok()?.id != stat.id {
        return None;
    }
    let size = usize::try_from(stat.size).ok()?;
    let mut content = vec![0; size + 1];
    let mut filled = 0;
    while filled < content.len() {
        match rustix::io::read(&file, &mut content[filled..]) {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
    (filled <= size).then(|| content[..filled].into())
}

fn entries(directory: BorrowedFd<'_>, name: &OsStr, stat: &FileStat) -> Item {
    let mut item = Item::Directory { mode: stat.mode, entries: BTreeMap::new(), is_cut: false };
    let Ok((handle, list)) = list(directory, name) else { return item };
    let Item::Directory { entries, is_cut, .. } = &mut item else { return item };
    let mut left = MOST_IN_DIRECTORY;
    for entry in list.flatten() {
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." || git_places::is_sample(name) {
            continue;
        }
        if entries.len() == MOST_ENTRIES {
            *is_cut = true;
            break;
        }
        let mut allowed = left.min(MOST_BYTES);
        let offered = allowed;
        let item = Item::look(handle.as_fd(), name, Depth::Itself, &mut allowed);
        left -= offered - allowed;
        entries.insert(name.to_owned(), item);
    }
    item
}

/// A directory's handle, and its entries.
pub(super) fn list(directory: BorrowedFd<'_>, name: &OsStr) -> rustix::io::Result<(OwnedFd, Dir)> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = rustix::fs::openat(directory, name, flags, Mode::empty())?;
    let entries = Dir::read_from(&handle)?;
    Ok((handle, entries))
}
