//! The metadata of an open file.

use std::fmt;
use std::os::fd::AsFd;

use rustix::fs::{FileType, Stat};

/// Which file a handle refers to, whatever it is called. Hard links share it; a replaced file has a
/// new one; the number of a deleted file may be used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    /// The device number of the file system.
    pub device: u64,
    /// The inode number on it.
    pub inode: u64,
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    Regular,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// Something that is neither read nor written by the file tools.
    Special(Special),
}

impl From<FileType> for FileKind {
    fn from(known: FileType) -> Self {
        match known {
            FileType::RegularFile => FileKind::Regular,
            FileType::Directory => FileKind::Directory,
            FileType::Symlink => FileKind::Link,
            FileType::Fifo => FileKind::Special(Special::Fifo),
            FileType::Socket => FileKind::Special(Special::Socket),
            FileType::CharacterDevice => FileKind::Special(Special::CharacterDevice),
            FileType::BlockDevice => FileKind::Special(Special::BlockDevice),
            FileType::Unknown => FileKind::Special(Special::Unknown),
        }
    }
}

/// The kinds of files that are not read or written: they may block, or act when opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// A named pipe.
    Fifo,
    /// A unix socket.
    Socket,
    /// A character device.
    CharacterDevice,
    /// A block device.
    BlockDevice,
    /// Something that this program does not know.
    Unknown,
}

impl fmt::Display for Special {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Special::Fifo => "a FIFO (named pipe)",
            Special::Socket => "a socket",
            Special::CharacterDevice => "a character device",
            Special::BlockDevice => "a block device",
            Special::Unknown => "of a kind that cannot be read or written here",
        })
    }
}

/// The facts about a file that the tools use.
#[derive(Clone, Copy, Debug)]
pub struct FileStat {
    /// Which file it is.
    pub id: FileId,
    /// What it is.
    pub kind: FileKind,
    /// Its size in bytes. 0 for files that a kernel file system makes up when they are read.
    pub size: u64,
    /// The permission bits, with set-id and sticky bits.
    pub mode: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// How many names the file has.
    pub links: u64,
    /// Last change of the content: nanoseconds since 1970.
    pub modified_ns: i128,
    /// Last change of content or attributes: nanoseconds since 1970.
    pub changed_ns: i128,
}

/// Shows cheaply that a file did not change: equal stamps mean an equal file (as far as its file
/// system's clock can show), different ones mean nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    id: FileId,
    size: u64,
    modified_ns: i128,
    changed_ns: i128,
}

impl FileStat {
    pub(super) fn of(handle: impl AsFd) -> rustix::io::Result<Self> {
        rustix::fs::fstat(handle).map(|stat| Self::from_raw(&stat))
    }

    pub(super) fn from_raw(stat: &Stat) -> Self {
        Self {
            id: FileId { device: wide(stat.st_dev), inode: wide(stat.st_ino) },
            kind: FileType::from_raw_mode(stat.st_mode).into(),
            size: u64::try_from(stat.st_size).unwrap_or(0),
            mode: stat.st_mode & 0o7777,
            uid: stat.st_uid,
            gid: stat.st_gid,
            links: wide(stat.st_nlink),
            modified_ns: nanoseconds(stat.st_mtime, stat.st_mtime_nsec),
            changed_ns: nanoseconds(stat.st_ctime, stat.st_ctime_nsec),
        }
    }

    /// The stamp to compare with later.
    #[must_use]
    pub fn stamp(&self) -> Stamp {
        Stamp {
            id: self.id,
            size: self.size,
            modified_ns: self.modified_ns,
            changed_ns: self.changed_ns,
        }
    }
}

/// The fields' own types differ between architectures.
fn wide(field: impl Into<u64>) -> u64 {
    field.into()
}

fn nanoseconds(seconds: impl Into<i128>, nanoseconds: impl Into<i128>) -> i128 {
    seconds.into() * 1_000_000_000 + nanoseconds.into()
}
