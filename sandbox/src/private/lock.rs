//! Lock files of the provider's own directories.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread;
use std::time::Duration;

use rustix::fs::{FileType, FlockOperation, Mode, OFlags, flock, openat};
use rustix::io::Errno;

use super::is_own;

/// An exclusive lock. Dropping it gives it up.
///
/// Closing the file is not enough: a process that another thread starts at this moment has a copy of it
/// until it runs its program.
#[derive(Debug)]
pub(crate) struct Locked(OwnedFd);

/// How often to try a lock that others hold for a moment, 10 ms apart. A holder that never releases it
/// must not keep a jail from being built for ever.
pub(super) const TRIES: usize = 1000;

impl Locked {
    /// Takes the lock unless somebody has it (`WOULDBLOCK`).
    pub(crate) fn at_once(file: OwnedFd) -> rustix::io::Result<Self> {
        flock(&file, FlockOperation::NonBlockingLockExclusive).map(|()| Self(file))
    }

    /// Takes a lock that others hold for a moment only.
    pub(crate) fn soon(file: OwnedFd) -> rustix::io::Result<Self> {
        let mut tries = 1;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::WOULDBLOCK) if tries < TRIES => {
                    tries += 1;
                    thread::sleep(Duration::from_millis(10));
                }
                Err(Errno::INTR) => {}
                other => return other.map(|()| Self(file)),
            }
        }
    }
}

impl AsFd for Locked {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// Opens or makes a lock file of a directory: a regular file that belongs to the user.
pub(crate) fn open_lock(dir: &OwnedFd, name: &str) -> rustix::io::Result<OwnedFd> {
    // Without NONBLOCK, opening a named pipe of this name would block.
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW;
    let mode = Mode::RUSR | Mode::WUSR;
    let lock = openat(dir, name, flags | OFlags::NONBLOCK | OFlags::CLOEXEC, mode)?;
    let plain = FileType::from_raw_mode(is_own(&lock)?.st_mode) == FileType::RegularFile;
    if plain { Ok(lock) } else { Err(Errno::INVAL) }
}
