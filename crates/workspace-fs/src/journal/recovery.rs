//! Removes what killed processes left, as their journals list it.
//!
//! A journal says where to look; what is found there decides. A file goes, or gets its old content
//! back, only if it is the very file that is listed (device, inode and name, in the very directory),
//! and only beneath a root that may be written. Any other file there stays.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::record::{EMPTY, Record, SLOT, Written};
use super::torn::{self, Content};
use super::{
    JOURNAL, Journal, MOST_SLOTS, NEW, OLD, StateDirectory, copy_name, keep_copy, offset,
    temporary_name, write_at,
};
use crate::replace::{Turn, copy_all};
use crate::{
    Access, Fault, FileId, FileKind, FileStat, LockKey, Mode as LockMode, Wait, Workspace,
};

/// What a recovery did.
#[derive(Debug, Default)]
pub struct Recovered {
    /// How many temporary files were removed.
    pub removed: usize,
    /// Files whose writing in place had been cut short, and that have their old content again.
    pub restored: Vec<PathBuf>,
    /// Files of the same kind that were left as they are.
    pub kept: Vec<Kept>,
    /// How many listed writes lie outside the roots that may be written, and stay listed.
    pub waiting: usize,
}

/// A file whose writing in place was cut short, and that was left as it is.
#[derive(Debug)]
pub struct Kept {
    /// The file.
    pub file: PathBuf,
    /// Where its old content is.
    pub copy: PathBuf,
    /// Why it was not put back.
    pub reason: Reason,
}

/// Why an old content was not put back.
#[derive(Debug, thiserror::Error)]
pub enum Reason {
    /// It is not there any more, or another file is.
    #[error("another file, or none, is there now")]
    AnotherFile,
    /// It has another name, which may be outside the roots.
    #[error("the file has {0} names")]
    Shared(u64),
    /// Its content is neither what the write left nor the old nor the new one.
    #[error("the file was changed since")]
    Changed,
    /// The journal is damaged, so that the file is not known.
    #[error("the journal is damaged")]
    Damaged,
    /// A call uses the file, or the system failed.
    #[error(transparent)]
    Failed(#[from] Fault),
}

impl From<Errno> for Reason {
    fn from(errno: Errno) -> Self {
        Self::Failed(errno.into())
    }
}

/// How long a file is waited for that a call uses.
const LONGEST_LOCK: Duration = Duration::from_millis(100);

/// How many journals of dead processes one start looks at.
const MOST_JOURNALS: usize = 256;

impl Workspace {
    /// Clears away what writes of dead processes left beneath the roots that may be written, as far
    /// as their journals list it. What is listed elsewhere stays so, for a start that has its root.
    #[must_use]
    pub fn recover(&self) -> Recovered {
        let mut done = Recovered::default();
        let Some(journal) = &self.journal else { return done };
        if let Err(error) = self.recover_beside(journal, &mut done) {
            tracing::warn!(%error, "the journals of earlier processes cannot be listed");
        }
        done
    }

    fn recover_beside(&self, own: &Journal, done: &mut Recovered) -> io::Result<()> {
        let directory = &own.directory;
        let names = directory.names()?;
        let ids = names.iter().filter_map(|name| name.strip_suffix(JOURNAL));
        for id in ids.filter(|id| *id != own.id).take(MOST_JOURNALS) {
            let dead = match Dead::open(directory, id) {
                Ok(Some(dead)) => dead,
                Ok(None) => continue,
                Err(error) => {
                    tracing::debug!(%error, id, "a journal cannot be read");
                    continue;
                }
            };
            let is_copy = |ending, name: &str| index_of(name, id, ending).is_some();
            let copies = names.iter().filter(|name| is_copy(OLD, name) || is_copy(NEW, name));
            if let Err(error) = dead.settle(self, copies, done) {
                tracing::debug!(%error, id, "a journal cannot be finished");
            }
        }
        Ok(())
    }

    /// The directory that a record names, beneath a root that may be written. `None` where no root
    /// holds it.
    fn directory_of(&self, record: &Record) -> Option<Result<Arc<OwnedFd>, Reason>> {
        let writable = self.roots().iter().filter(|root| root.access() == Access::ReadWrite);
        let holds = |root: &&crate::Root| record.path.starts_with(root.path());
        let root = writable.filter(holds).max_by_key(|root| root.path().as_os_str().len())?;
        let rest = record.path.strip_prefix(root.path()).unwrap_or(Path::new(""));
        let rest = if rest.as_os_str().is_empty() { Path::new(".") } else { rest };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let opened = rustix::fs::openat2(root.directory(), rest, flags, Mode::empty(), within);
        Some(match opened.and_then(|opened| Ok((FileStat::of(&opened)?.id, opened))) {
            Ok((id, opened)) if id == record.directory => Ok(Arc::new(opened)),
            Ok(_) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Err(Reason::AnotherFile),
            Err(errno) => Err(errno.into()),
        })
    }
}

/// The slot that a copy belongs to, where it is one of this journal with this ending.
fn index_of(name: &str, id: &str, ending: &str) -> Option<usize> {
    name.strip_prefix(id)?.strip_prefix('-')?.strip_suffix(ending)?.parse().ok()
}

/// What became of a listed write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Listed {
    Settled,
    /// It stays listed.
    Waits,
}

/// The journal of a dead process, locked.
struct Dead<'d> {
    directory: &'d StateDirectory,
    id: &'d str,
    file: cap_std::fs::File,
    content: Vec<u8>,
}

impl<'d> Dead<'d> {
    /// `None` where its process lives, or another start is at it.
    fn open(directory: &'d StateDirectory, id: &'d str) -> io::Result<Option<Self>> {
        let file = directory.file(&format!("{id}{JOURNAL}"))?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::AGAIN) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        }
        let stat = FileStat::of(&file)?;
        if stat.links == 0 {
            return Ok(None);
        }
        let size = usize::try_from(stat.size).unwrap_or(usize::MAX).min(MOST_SLOTS * SLOT);
        let mut content = vec![0; size];
        let mut filled = 0;
        while filled < size {
            match rustix::io::pread(&file, &mut content[filled..], filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        content.truncate(filled);
        Ok(Some(Self { directory, id, file, content }))
    }

    /// Settles every write that is listed, and removes the journal if none is left.
    fn settle<'n>(
        &self,
        workspace: &Workspace,
        copies: impl Iterator<Item = &'n String>,
        done: &mut Recovered,
    ) -> io::Result<()> {
        let (mut is_damaged, mut is_waiting) = (false, false);
        for (index, slot) in self.content.chunks(SLOT).enumerate() {
            match Record::decode(slot) {
                Ok(None) => continue,
                Ok(Some(record)) => {
                    if self.settle_one(workspace, index, &record, done)? == Listed::Waits {
                        done.waiting += 1;
                        is_waiting = true;
                        continue;
                    }
                }
                Err(error) => {
                    tracing::debug!(id = self.id, index, %error, "a slot of a journal");
                    is_damaged = true;
                }
            }
            write_at(&self.file, &EMPTY, offset(index))?;
        }
        if is_waiting {
            return Ok(());
        }
        // What no record names was never complete, or is done with; unless the record is damaged.
        for copy in copies {
            match index_of(copy, self.id, OLD) {
                Some(index) if is_damaged => {
                    let file = PathBuf::from("unknown");
                    let copy = self.keep(index, file.as_os_str())?;
                    done.kept.push(Kept { file, copy, reason: Reason::Damaged });
                }
                _ => match self.directory.remove(copy) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                },
            }
        }
        self.directory.remove(&format!("{}{JOURNAL}", self.id))
    }

    fn settle_one(
        &self,
        workspace: &Workspace,
        index: usize,
        record: &Record,
        done: &mut Recovered,
    ) -> io::Result<Listed> {
        let Some(directory) = workspace.directory_of(record) else { return Ok(Listed::Waits) };
        match &record.written {
            Written::Temporary { number, file } => {
                let name = temporary_name(*number);
                match directory.and_then(|directory| Ok(remove(&directory, &name, *file)?)) {
                    Ok(removed) => done.removed += usize::from(removed),
                    Err(Reason::Failed(_)) => return Ok(Listed::Waits),
                    Err(_) => {}
                }
            }
            Written::InPlace { name, file } => {
                let path = record.path.join(name);
                let restored = directory
                    .and_then(|directory| self.restore(workspace, index, &directory, name, *file));
                match restored {
                    Ok(Content::Torn) => done.restored.push(path),
                    Ok(_) => {}
                    Err(reason) => {
                        let copy = self.keep(index, name)?;
                        done.kept.push(Kept { file: path, copy, reason });
                    }
                }
            }
        }
        Ok(Listed::Settled)
    }

    fn keep(&self, index: usize, name: &OsStr) -> io::Result<PathBuf> {
        keep_copy(self.directory, self.id, index, name)
    }

    /// Puts the old content back into the file called `name`, if the file is torn. Returns what it
    /// was.
    fn restore(
        &self,
        workspace: &Workspace,
        index: usize,
        directory: &Arc<OwnedFd>,
        name: &OsStr,
        file: FileId,
    ) -> Result<Content, Reason> {
        let flags =
            OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        // Calls may run already.
        let wait = Wait { limit: LONGEST_LOCK, should_stop: &|| false };
        let _lock = workspace.locks.lock(LockKey::File(file), LockMode::Exclusive, wait)?;
        let _turn = Turn::take(directory);
        let handle = match rustix::fs::openat(directory, name, flags, Mode::empty()) {
            Ok(handle) => handle,
            Err(Errno::NOENT | Errno::LOOP | Errno::ISDIR | Errno::NXIO) => {
                return Err(Reason::AnotherFile);
            }
            Err(errno) => return Err(errno.into()),
        };
        let stat = FileStat::of(&handle)?;
        if stat.kind != FileKind::Regular || stat.id != file {
            return Err(Reason::AnotherFile);
        }
        if stat.links != 1 {
            return Err(Reason::Shared(stat.links));
        }
        let copy = |ending| {
            let opened = self.directory.file(&copy_name(self.id, index, ending));
            opened.map_err(|error| Reason::Failed(Fault::System(error)))
        };
        let (old, new) = (copy(OLD)?, copy(NEW)?);
        let content = torn::content(handle.as_fd(), old.as_fd(), new.as_fd())?;
        match content {
            Content::Torn => {
                let length = copy_all(old.as_fd(), handle.as_fd())?;
                rustix::fs::ftruncate(&handle, length)?;
                rustix::fs::fsync(&handle)?;
                Ok(content)
            }
            Content::Old | Content::New => Ok(content),
            Content::Other => Err(Reason::Changed),
        }
    }
}

/// Removes a temporary file, if it is the one that is listed, and returns whether it was. One that was
/// about to be made is known by having been given nothing yet.
fn remove(directory: &OwnedFd, name: &str, file: Option<FileId>) -> rustix::io::Result<bool> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let stat = match rustix::fs::openat(directory, name, flags, Mode::empty()) {
        Ok(found) => FileStat::of(found)?,
        Err(Errno::NOENT) => return Ok(false),
        Err(errno) => return Err(errno),
    };
    let is_listed = match file {
        Some(file) => stat.id == file,
        None => {
            let us = rustix::process::geteuid().as_raw();
            stat.size == 0 && stat.links == 1 && stat.uid == us
        }
    };
    if stat.kind != FileKind::Regular || !is_listed {
        return Ok(false);
    }
    rustix::fs::unlinkat(directory, name, AtFlags::empty())?;
    Ok(true)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests set up real files")]
mod tests;
