//! The journal of writes in progress: what a killed process would leave behind, listed where no
//! command can read or write it, so that the next start removes what is listed and does not go by
//! the names of files.
//!
//! Each configuration in force has one file, `ID.journal`, in a private directory, and an exclusive
//! `flock` on it while it lives. The kernel releases that lock when the process ends, however it
//! ends: a journal whose lock is free belongs to a dead process. The file has a slot for
//! each write in progress, which is written before what it lists exists and cleared when that is gone.
//! Between the two it needs no sync: what a killed process wrote is in the kernel's hands. Only a
//! machine that loses power loses it, and then a temporary file may be left.
//!
//! A file that is written in place has its old and its new content beside the journal meanwhile, as
//! `ID-SLOT.old` and `ID-SLOT.new`. These are synced, and so is their slot.

mod record;
mod recovery;
mod torn;

use std::ffi::{OsStr, OsString};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cap_std::fs::File;
use rustix::fs::FlockOperation;
use rustix::io::Errno;

use record::{EMPTY, SLOT};
pub(super) use record::{Record, Written};
pub use recovery::{Kept, Recovered};

use super::replace::copy_all;
use super::{FileStat, StateDirectory};

/// The ending of a journal's name.
const JOURNAL: &str = ".journal";
const OLD: &str = ".old";
const NEW: &str = ".new";

/// How many slots a journal has at most. More writes at once than that are not listed.
const MOST_SLOTS: usize = 1024;

/// How often a name is tried that somebody else has, or that was taken for abandoned.
const ATTEMPTS: usize = 16;

/// A journal that is written. Dropping it removes its file, unless something is still listed.
#[derive(Debug)]
pub struct Journal {
    directory: StateDirectory,
    id: String,
    file: File,
    /// Which slots are in use.
    slots: Mutex<Vec<bool>>,
}

/// A slot of a journal, for one write. Dropping it clears it.
#[derive(Debug)]
pub(super) struct Slot {
    journal: Arc<Journal>,
    index: usize,
    is_written: bool,
    is_left: bool,
}

/// The old and the new content of a file that is written in place. Dropping it removes them.
#[derive(Debug)]
pub(super) struct Saved {
    slot: Slot,
    old: File,
}

/// A number that no other file's name has.
pub(super) fn fresh_number() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// The name that a temporary file with this number has while it takes another file's place.
pub(super) fn temporary_name(number: u64) -> String {
    format!(".provider-workspace-{number:016x}.tmp")
}

impl Journal {
    /// Creates a journal in a directory that commands cannot reach.
    ///
    /// # Errors
    /// When the file cannot be made or locked.
    pub fn begin(directory: StateDirectory) -> io::Result<Self> {
        for _ in 0..ATTEMPTS {
            let id = format!("{:016x}", fresh_number());
            let name = format!("{id}{JOURNAL}");
            let file = match directory.create(&name) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            };
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                // Another start was quicker, took it for abandoned, and removes it.
                Err(Errno::AGAIN) => continue,
                Ok(()) if FileStat::of(&file)?.links == 0 => continue,
                Ok(()) => {}
                Err(errno) => {
                    // Without a lock a later start would take a living journal for a dead one's.
                    let _ = directory.remove(&name);
                    return Err(errno.into());
                }
            }
            return Ok(Self { directory, id, file, slots: Mutex::default() });
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Takes a slot. `None` where all are in use.
    pub(super) fn slot(self: &Arc<Self>) -> Option<Slot> {
        let mut slots = self.slots();
        let index = match slots.iter().position(|is_used| !is_used) {
            Some(free) => free,
            None if slots.len() < MOST_SLOTS => {
                slots.push(false);
                slots.len() - 1
            }
            None => return None,
        };
        slots[index] = true;
        Some(Slot { journal: self.clone(), index, is_written: false, is_left: false })
    }

    fn slots(&self) -> MutexGuard<'_, Vec<bool>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        let slots = self.slots.get_mut().unwrap_or_else(PoisonError::into_inner);
        if !slots.iter().any(|is_used| *is_used) {
            // What stays is empty, and goes at the next start.
            let _ = self.directory.remove(&format!("{}{JOURNAL}", self.id));
        }
    }
}

impl Slot {
    /// Lists a write, in place of what this slot listed before.
    pub(super) fn write(&mut self, record: &Record) -> io::Result<()> {
        let bytes = record.encode().ok_or(Errno::NAMETOOLONG)?;
        self.is_written = true;
        write_at(&self.journal.file, &bytes, offset(self.index))
    }

    /// Leaves what is listed to the next start.
    pub(super) fn leave(mut self) {
        self.is_left = true;
    }

    fn clear(&mut self) -> io::Result<()> {
        if self.is_written {
            write_at(&self.journal.file, &EMPTY, offset(self.index))?;
            self.is_written = false;
        }
        Ok(())
    }

    /// Saves a file's `old` and `new` content and lists, with `record`, that it is written in place.
    /// All of it is on the disk when this returns.
    pub(super) fn save(
        self,
        record: &Record,
        old: BorrowedFd<'_>,
        new: BorrowedFd<'_>,
    ) -> io::Result<Saved> {
        let old = match self.copy(OLD, old).and_then(|copy| self.copy(NEW, new).map(|_| copy)) {
            Ok(old) => old,
            Err(error) => {
                self.remove_copies();
                return Err(error);
            }
        };
        // From here on what fails is cleared away by dropping it.
        let mut saved = Saved { slot: self, old };
        saved.slot.journal.directory.sync()?;
        saved.slot.write(record)?;
        rustix::fs::fdatasync(&saved.slot.journal.file)?;
        Ok(saved)
    }

    fn copy(&self, ending: &str, from: BorrowedFd<'_>) -> io::Result<File> {
        let copy = self.journal.directory.create(&self.name(ending))?;
        copy_all(from, copy.as_fd())?;
        rustix::fs::fsync(&copy)?;
        Ok(copy)
    }

    fn name(&self, ending: &str) -> String {
        copy_name(&self.journal.id, self.index, ending)
    }

    fn remove_copies(&self) {
        for ending in [OLD, NEW] {
            // One that is not there is what is wanted; any other goes at the next start.
            let _ = self.journal.directory.remove(&self.name(ending));
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // One that cannot be cleared, or is left to the next start, stays in use.
        if !self.is_left
            && self.clear().is_ok()
            && let Some(is_used) = self.journal.slots().get_mut(self.index)
        {
            *is_used = false;
        }
    }
}

impl Saved {
    /// The old content.
    pub(super) fn old(&self) -> BorrowedFd<'_> {
        self.old.as_fd()
    }

    /// Keeps the old content of the file called `name`, and returns where it is.
    pub(super) fn keep(mut self, name: &OsStr) -> PathBuf {
        let Slot { journal, index, .. } = &self.slot;
        match keep_copy(&journal.directory, &journal.id, *index, name) {
            Ok(kept) => kept,
            Err(_) => {
                let copy = journal.directory.path().join(self.slot.name(OLD));
                self.slot.is_left = true;
                copy
            }
        }
    }
}

impl Drop for Saved {
    fn drop(&mut self) {
        // First the record: copies that nothing lists go at the next start.
        if !self.slot.is_left && self.slot.clear().is_ok() {
            self.slot.remove_copies();
        }
    }
}

fn offset(index: usize) -> u64 {
    (index * SLOT) as u64
}

fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match rustix::io::pwrite(file, &bytes[done..], offset + done as u64) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => done += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

fn copy_name(id: &str, index: usize, ending: &str) -> String {
    format!("{id}-{index}{ending}")
}

/// Gives the copy of the old content of the file called `name` a name under which it stays, and
/// returns where it is.
fn keep_copy(
    directory: &StateDirectory,
    id: &str,
    index: usize,
    name: &OsStr,
) -> io::Result<PathBuf> {
    const LONGEST: usize = 200;
    let copy = copy_name(id, index, OLD);
    let mut kept = name.as_bytes()[..name.len().min(LONGEST)].to_vec();
    kept.extend_from_slice(format!(".{id}-{index}.kept").as_bytes());
    let kept = OsString::from_vec(kept);
    directory.rename(&copy, &kept)?;
    Ok(directory.path().join(kept))
}
