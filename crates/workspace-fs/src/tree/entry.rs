//! One entry of a directory, as a visitor sees it.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::directory::Directory;
use crate::{FileKind, FileStat};

/// An entry that a walk came by. It is not open.
pub struct Entry<'a> {
    pub(super) directory: &'a Directory,
    pub(super) index: usize,
}

impl Entry<'_> {
    /// The path from the walk's start, names parted by slashes; empty where the start itself is the
    /// entry.
    #[must_use]
    pub fn path(&self) -> Vec<u8> {
        self.directory.path_of(self.index)
    }

    /// The name in its directory.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        self.directory.name(self.index).to_bytes()
    }

    /// What it was when its directory was listed. A link is a link: it is never followed.
    #[must_use]
    pub fn kind(&self) -> FileKind {
        self.directory.kind(self.index)
    }

    /// What the kernel says of it now. A link is not followed.
    ///
    /// # Errors
    /// As the system.
    pub fn stat(&self) -> rustix::io::Result<FileStat> {
        let name = self.directory.name(self.index);
        rustix::fs::statat(self.directory, name, AtFlags::SYMLINK_NOFOLLOW)
            .map(|stat| FileStat::from_raw(&stat))
    }

    /// Opens a regular file for reading. Nothing is waited for and no link followed, whatever came
    /// in the file's place since its directory was listed.
    ///
    /// # Errors
    /// As the system, and `ELOOP` for what is no regular file any more.
    pub fn open(&self) -> rustix::io::Result<Content> {
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let name = self.directory.name(self.index);
        let handle = rustix::fs::openat(self.directory, name, flags, Mode::empty())?;
        let stat = FileStat::of(&handle)?;
        if stat.kind != FileKind::Regular {
            return Err(Errno::LOOP);
        }
        Ok(Content { handle, size: stat.size })
    }
}

/// A regular file of the tree, open for reading.
#[derive(Debug)]
pub struct Content {
    handle: OwnedFd,
    size: u64,
}

impl Content {
    /// Its size in bytes when it was opened. It may be more or less by now, and files that a kernel
    /// file system makes up say 0.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Reads on. 0 means the end.
    ///
    /// # Errors
    /// As the system.
    pub fn read(&self, buffer: &mut [u8]) -> rustix::io::Result<usize> {
        loop {
            match rustix::io::read(self.handle.as_fd(), &mut *buffer) {
                Err(Errno::INTR) => {}
                other => return other,
            }
        }
    }
}
