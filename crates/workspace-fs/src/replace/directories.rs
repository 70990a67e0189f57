//! The missing parent directories of a new file.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

/// The directory that a file is written to, and those of its parents that were made for it. They are
/// removed again when this is dropped, unless they are kept.
#[derive(Debug)]
pub(super) struct Directories {
    made: Vec<Made>,
    innermost: Arc<OwnedFd>,
}

#[derive(Debug)]
struct Made {
    parent: Arc<OwnedFd>,
    name: OsString,
}

impl Directories {
    /// Makes the directories `names`, each in the one before it and the first in `directory`, with the
    /// permission bits 0777 less the umask.
    pub(super) fn make(directory: BorrowedFd<'_>, names: &[OsString]) -> rustix::io::Result<Self> {
        let directory = directory
            .try_clone_to_owned()
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::MFILE))?;
        let mut directories = Self { made: Vec::new(), innermost: Arc::new(directory) };
        for name in names {
            directories.make_one(name)?;
        }
        Ok(directories)
    }

    fn make_one(&mut self, name: &OsStr) -> rustix::io::Result<()> {
        let parent = self.innermost.clone();
        match rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o777)) {
            Ok(()) => self.made.push(Made { parent: parent.clone(), name: name.to_owned() }),
            // Another call or program made it meanwhile: it is theirs to remove.
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        self.innermost = Arc::new(rustix::fs::openat(&parent, name, flags, Mode::empty())?);
        Ok(())
    }

    /// The directory to write to.
    pub(super) fn innermost(&self) -> &Arc<OwnedFd> {
        &self.innermost
    }

    /// Keeps all directories, and makes it durable that the innermost has what was put in it.
    pub(super) fn keep(&mut self, turn: Turn) {
        turn.end_and_sync();
        for made in self.made.drain(..).rev() {
            sync(&made.parent);
        }
    }
}

/// The turn to change what a name in a directory stands for.
///
/// Calls of this process take turns by their lock on the file. Another provider, of another host
/// in the same directory, knows nothing of that lock; between the look whether a file is still the one
/// that was read and the rename, its own rename would be lost. So that moment, and no more, is
/// held by a `flock` on the directory.
pub(crate) struct Turn {
    /// Readable. Absent where the directory cannot be read.
    directory: Option<OwnedFd>,
}

/// How long the directory's lock is waited for. Who holds it for longer is no provider, which needs
/// microseconds, but somebody who could hold it for ever: then it is done without.
const LONGEST_TURN: Duration = Duration::from_millis(200);

impl Turn {
    /// Waits for the turn in this directory.
    pub(crate) fn take(directory: &OwnedFd) -> Self {
        let Some(readable) = readable(directory) else { return Self { directory: None } };
        let give_up = Instant::now() + LONGEST_TURN;
        let mut pause = Duration::from_micros(50);
        // Another error than that somebody has it: a file system without locks.
        while rustix::fs::flock(&readable, FlockOperation::NonBlockingLockExclusive)
            == Err(Errno::AGAIN)
            && Instant::now() < give_up
        {
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(5));
        }
        Self { directory: Some(readable) }
    }

    /// Lets others have their turn, then writes the directory's entries to the disk.
    pub(super) fn end_and_sync(self) {
        if let Some(directory) = self.directory {
            let _ = rustix::fs::flock(&directory, FlockOperation::Unlock);
            let _ = rustix::fs::fsync(directory);
        }
    }
}

impl Drop for Directories {
    fn drop(&mut self) {
        for made in self.made.drain(..).rev() {
            // It stays if somebody else put something in it.
            let _ = rustix::fs::unlinkat(&made.parent, &made.name, AtFlags::REMOVEDIR);
        }
    }
}

/// Writes a directory's entries to the disk. What it holds is right already; a file system that cannot
/// do this, or a directory that may not be read, only leaves open whether that survives a power cut.
pub(super) fn sync(directory: &OwnedFd) {
    if let Some(readable) = readable(directory) {
        let _ = rustix::fs::fsync(readable);
    }
}

fn readable(directory: &OwnedFd) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(directory.as_fd(), ".", flags, Mode::empty()).ok()
}
