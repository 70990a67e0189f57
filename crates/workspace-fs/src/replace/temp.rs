//! The file that holds new content until it takes its place.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{AtFlags, FlockOperation, MemfdFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::FileStat;
use crate::leftovers::fresh_name;

/// A temporary file: beside the target, or in memory where the folder takes no files. It is removed
/// when this is dropped.
#[derive(Debug)]
pub(super) struct Temp {
    file: OwnedFd,
    place: TempPlace,
}

#[derive(Debug)]
enum TempPlace {
    /// In this folder, under this name, locked.
    Beside { folder: Arc<OwnedFd>, name: OsString },
    /// Nowhere in any folder, or no longer under its own name.
    Nowhere,
}

/// How often a name is tried that somebody else has.
const ATTEMPTS: usize = 16;

impl Temp {
    /// A file beside `target`, with the permission bits `mode` less the umask from its first moment.
    pub(super) fn beside(
        folder: &Arc<OwnedFd>,
        target: &OsStr,
        mode: u32,
    ) -> rustix::io::Result<Self> {
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for _ in 0..ATTEMPTS {
            let name = fresh_name(target);
            let file = match rustix::fs::openat(folder, &name, flags, Mode::from_raw_mode(mode)) {
                Ok(file) => file,
                Err(Errno::EXIST) => continue,
                Err(errno) => return Err(errno),
            };
            let temp = Self { file, place: TempPlace::Beside { folder: folder.clone(), name } };
            if temp.hold()? {
                return Ok(temp);
            }
        }
        Err(Errno::EXIST)
    }

    /// A file in memory.
    pub(super) fn in_memory() -> rustix::io::Result<Self> {
        let file = rustix::fs::memfd_create("provider-workspace", MemfdFlags::CLOEXEC)?;
        Ok(Self { file, place: TempPlace::Nowhere })
    }

    /// Takes the lock that says that this process lives. False when a sweep was quicker and took the
    /// file for abandoned. File systems without locks do without.
    fn hold(&self) -> rustix::io::Result<bool> {
        let held = rustix::fs::flock(&self.file, FlockOperation::NonBlockingLockExclusive);
        if held == Err(Errno::AGAIN) {
            return Ok(false);
        }
        Ok(FileStat::of(&self.file)?.links > 0)
    }

    /// The file's name in the folder, while it has one.
    pub(super) fn name(&self) -> Option<&OsStr> {
        match &self.place {
            TempPlace::Beside { name, .. } => Some(name),
            TempPlace::Nowhere => None,
        }
    }

    /// The file was renamed to another leftover's name.
    pub(super) fn renamed(&mut self, to: OsString) {
        if let TempPlace::Beside { name, .. } = &mut self.place {
            *name = to;
        }
    }

    /// The file has its final name now: it is not removed any more.
    pub(super) fn keep(&mut self) {
        self.place = TempPlace::Nowhere;
    }
}

impl AsFd for Temp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        if let TempPlace::Beside { folder, name } = &self.place {
            // Nobody is left to tell; a sweep will find what cannot be removed now.
            let _ = rustix::fs::unlinkat(folder, name, AtFlags::empty());
        }
    }
}
