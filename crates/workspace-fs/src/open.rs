//! Opening files for reading: regular ones only, and without ever waiting for another process.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::buffer::spare_capacity;
use rustix::fs::{Mode, OFlags, SeekFrom};
use rustix::io::Errno;

use super::resolve::Target;
use super::{
    Action, Fault, FileKind, FileStat, Guard, LockKey, Mode as LockMode, PathArgument,
    ResolvedPath, Wait, Workspace, WorkspaceError,
};

/// Whether reading may leave a trace in the file's access time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessTime {
    /// As usual.
    Touch,
    /// It stays as it is, where the system permits that (`O_NOATIME`: for a file's owner).
    Keep,
}

/// A regular file, open for reading.
#[derive(Debug)]
pub struct OpenFile {
    handle: OwnedFd,
    stat: FileStat,
    path: PathBuf,
    text: String,
}

/// How often a path is walked anew when its last part changes between looking and opening.
const ATTEMPTS: usize = 16;

impl Workspace {
    /// Opens the regular file that `path` names.
    ///
    /// # Errors
    /// When it cannot be found or opened, or is no regular file; a pipe, a socket and a device
    /// answer at once with what they are.
    pub fn open_file(
        &self,
        path: PathArgument<'_>,
        access_time: AccessTime,
    ) -> Result<OpenFile, WorkspaceError> {
        let mut flags = READING;
        flags.set(OFlags::NOATIME, access_time == AccessTime::Keep);
        let fail = |fault: Fault| fault.of(Action::Read, path.text);
        if let Some((handle, resolved)) = self.open_directly(path, flags).map_err(fail)? {
            return OpenFile::new(handle, resolved, path.text);
        }
        for _ in 0..ATTEMPTS {
            let resolved = self.locate_existing(path, Action::Read)?;
            match resolved.open(path.text, Action::Read, access_time) {
                Err(error) if matches!(*error.fault, Fault::Changed) => {}
                opened => return opened,
            }
        }
        Err(fail(Errno::AGAIN.into()))
    }
}

impl ResolvedPath<'_> {
    /// Opens the regular file that was found here for reading: this very one, or none. `action` is
    /// what an error says that it was meant for.
    ///
    /// # Errors
    /// When it is no regular file or cannot be opened; [`Fault::Changed`] when it is not there any
    /// more, be it that something else is.
    pub fn open(
        &self,
        text: &str,
        action: Action,
        access_time: AccessTime,
    ) -> Result<OpenFile, WorkspaceError> {
        let fail = |fault: Fault| fault.of(action, text).at(&self.path);
        let Target::Found { stat, .. } = &self.target else {
            return Err(fail(Errno::NOENT.into()));
        };
        let directory = match (stat.kind, self.directory()) {
            (FileKind::Regular, Some(directory)) => directory,
            (kind, _) => return Err(fail(irregular(kind))),
        };
        let mut flags = READING | OFlags::NOFOLLOW;
        flags.set(OFlags::NOATIME, access_time == AccessTime::Keep);
        let handle = match open_no_atime_if_permitted(directory, self.name(), flags) {
            Ok(handle) => handle,
            // Removed, or replaced by a link, since it was looked at.
            Err(Errno::NOENT | Errno::LOOP) => return Err(fail(Fault::Changed)),
            Err(errno) => return Err(fail(errno.into())),
        };
        let file = OpenFile::new(handle, self.path.clone(), text)?;
        if file.stat.id == stat.id { Ok(file) } else { Err(fail(Fault::Changed)) }
    }
}

/// O_NONBLOCK: a FIFO without a writer opens at once instead of waiting for one.
const READING: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC).union(OFlags::NOCTTY);

fn open_no_atime_if_permitted(
    directory: BorrowedFd<'_>,
    name: &std::ffi::OsStr,
    flags: OFlags,
) -> rustix::io::Result<OwnedFd> {
    match rustix::fs::openat(directory, name, flags, Mode::empty()) {
        Err(Errno::PERM) if flags.contains(OFlags::NOATIME) => {
            rustix::fs::openat(directory, name, flags - OFlags::NOATIME, Mode::empty())
        }
        other => other,
    }
}

/// The fault of a file that is not regular.
fn irregular(kind: FileKind) -> Fault {
    match kind {
        FileKind::Special(special) => Fault::Special(special),
        FileKind::Regular | FileKind::Directory | FileKind::Link => Fault::IsDirectory,
    }
}

/// Whether reading came to a file's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eof {
    /// There is nothing behind what was read.
    Reached,
    /// There may be more.
    NotReached,
}

impl OpenFile {
    fn new(handle: OwnedFd, path: PathBuf, text: &str) -> Result<Self, WorkspaceError> {
        let fail = |fault: Fault| fault.of(Action::Read, text).at(&path);
        let stat = FileStat::of(&handle).map_err(|errno| fail(errno.into()))?;
        if stat.kind != FileKind::Regular {
            return Err(fail(irregular(stat.kind)));
        }
        Ok(Self { handle, stat, path, text: text.to_owned() })
    }

    /// What the file was when it was opened.
    #[must_use]
    pub fn stat(&self) -> &FileStat {
        &self.stat
    }

    /// The path without links, `.` and `..`.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps the file from being rewritten in place while it is read. (A file that is replaced
    /// meanwhile stays whole in this handle.)
    ///
    /// # Errors
    /// As [`LockTable::lock`](super::LockTable::lock).
    pub fn lock_shared(
        &self,
        workspace: &Workspace,
        wait: Wait<'_>,
    ) -> Result<Guard, WorkspaceError> {
        let key = LockKey::File(self.stat.id);
        let guard = workspace.locks.lock(key, LockMode::Shared, wait);
        guard.map_err(|fault| fault.of(Action::Read, &self.text).at(&self.path))
    }

    /// What the file is now.
    ///
    /// # Errors
    /// When the system call fails.
    pub fn stat_now(&self) -> Result<FileStat, WorkspaceError> {
        FileStat::of(&self.handle).map_err(|errno| self.error(errno))
    }

    /// Reads on until `buffer` is full or the file ends, and returns how much that was.
    ///
    /// # Errors
    /// When the system fails to read.
    pub fn fill(&self, buffer: &mut [u8]) -> Result<usize, WorkspaceError> {
        let mut filled = 0;
        while filled < buffer.len() {
            match rustix::io::read(&self.handle, &mut buffer[filled..]) {
                Ok(0) => break,
                Ok(count) => {
                    filled += count;
                    // The whole of an ordinary small file in one call: asking again for its end
                    // would only confirm what its size says.
                    if filled == count && count as u64 == self.stat.size {
                        break;
                    }
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(self.error(errno)),
            }
        }
        Ok(filled)
    }

    /// Reads on into the spare capacity of `buffer`, until that is full or the file ends, and
    /// returns whether it ended. Does not grow the buffer.
    ///
    /// # Errors
    /// When the system fails to read.
    pub fn append(&self, buffer: &mut Vec<u8>) -> Result<Eof, WorkspaceError> {
        while buffer.len() < buffer.capacity() {
            let before = buffer.len();
            match rustix::io::read(&self.handle, spare_capacity(buffer)) {
                Ok(0) => return Ok(Eof::Reached),
                // As in `fill`: the size says where the end is.
                Ok(count) if before == 0 && count as u64 == self.stat.size => {
                    return Ok(Eof::Reached);
                }
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(self.error(errno)),
            }
        }
        Ok(Eof::NotReached)
    }

    /// Seeks to an offset in the file, in bytes from its start.
    ///
    /// # Errors
    /// When the file cannot seek.
    pub fn seek(&self, position: u64) -> Result<(), WorkspaceError> {
        let seek = rustix::fs::seek(&self.handle, SeekFrom::Start(position));
        seek.map(drop).map_err(|errno| self.error(errno))
    }

    fn error(&self, errno: Errno) -> WorkspaceError {
        Fault::from(errno).of(Action::Read, &self.text).at(&self.path)
    }
}

impl AsFd for OpenFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}
