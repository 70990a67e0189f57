//! Writing a file in place, for when it cannot be replaced: with a copy of the old content beside
//! it, from which it is restored when writing fails, or by a sweep when the process dies meanwhile.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{FallocateFlags, Mode, OFlags};
use rustix::io::Errno;

use super::attributes;
use super::folders::sync;
use super::temp::Temp;
use crate::leftovers::{is_name_kept, recovery_name};
use crate::{Fault, FileId, FileKind, FileStat, Place};

/// Why a file was written in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InPlace {
    /// Its folder takes no new file.
    FolderNotWritable,
    /// It is a mount of its own, as files that are handed to a container often are.
    Mounted,
    /// Its owner, mode or extended attributes could not be given to another file.
    AttributesNotKept,
    /// The folder lets nobody but the file's owner rename it.
    RenameRefused,
}

impl fmt::Display for InPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            InPlace::FolderNotWritable => "its folder takes no new file",
            InPlace::Mounted => "it is mounted by itself",
            InPlace::AttributesNotKept => {
                "a new file could not get its owner, mode or extended attributes"
            }
            InPlace::RenameRefused => "its folder lets nobody replace it",
        })
    }
}

/// Overwrites the file at `place`, which was `base`, with what is in `new`.
pub(super) fn overwrite(
    place: &Place<'_>,
    folder: &Arc<OwnedFd>,
    base: &FileStat,
    new: BorrowedFd<'_>,
    why: InPlace,
) -> Result<(), Fault> {
    let flags =
        OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let target = rustix::fs::openat(folder, place.name(), flags, Mode::empty())?;
    let now = FileStat::of(&target)?;
    if now.id != base.id || now.kind != FileKind::Regular {
        return Err(Fault::Changed);
    }
    // Another name may be outside the roots.
    if now.links > 1 {
        return Err(Fault::Shared { why, links: now.links });
    }
    let mut recovery = save(place, folder, target.as_fd(), now.id)?;
    let length = FileStat::of(new)?.size;
    if let Err(errno) = reserve(&target, length) {
        let _ = rustix::fs::ftruncate(&target, now.size);
        return Err(errno.into());
    }
    let Err(failed) = write_over(new, &target, length) else {
        // Only its owner may; for anyone else the system's own rule stands.
        let _ = attributes::keep_set_id(&now, target.as_fd());
        drop(recovery);
        sync(folder);
        return Ok(());
    };
    match write_over(recovery.as_fd(), &target, now.size) {
        Ok(()) => Err(failed.into()),
        Err(_) => {
            let copy = recovery.name().map(|name| place.path.with_file_name(name));
            recovery.keep();
            Err(Fault::Torn { recovery: copy.unwrap_or_default(), source: failed.into() })
        }
    }
}

/// Copies the old content beside the file, or into memory where the folder takes no files. Beside,
/// the copy gets the name that a sweep restores from only once it is complete and on the disk.
fn save(
    place: &Place<'_>,
    folder: &Arc<OwnedFd>,
    target: BorrowedFd<'_>,
    id: FileId,
) -> Result<Temp, Fault> {
    let beside = if is_name_kept(place.name()) {
        Temp::beside(folder, place.name(), 0o600)
    } else {
        Err(Errno::NAMETOOLONG)
    };
    let mut copy = match beside {
        Ok(copy) => copy,
        Err(Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::NAMETOOLONG) => Temp::in_memory()?,
        Err(errno) => return Err(errno.into()),
    };
    super::copy_all(target, copy.as_fd())?;
    if let Some(name) = copy.name() {
        rustix::fs::fsync(&copy)?;
        let complete = recovery_name(place.name(), id);
        rustix::fs::renameat(folder, name, folder, &complete)?;
        copy.renamed(complete);
        sync(folder);
    }
    Ok(copy)
}

/// Takes the room for the content beforehand: a full disk is found out with nothing changed.
fn reserve(target: &OwnedFd, length: u64) -> rustix::io::Result<()> {
    if length == 0 {
        return Ok(());
    }
    match rustix::fs::fallocate(target, FallocateFlags::KEEP_SIZE, 0, length) {
        Err(errno @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => Err(errno),
        // Not every file system can; then writing finds out, and the old content is restored.
        Ok(()) | Err(_) => Ok(()),
    }
}

fn write_over(from: BorrowedFd<'_>, target: &OwnedFd, length: u64) -> rustix::io::Result<()> {
    super::copy_all(from, target.as_fd())?;
    rustix::fs::ftruncate(target, length)?;
    rustix::fs::fsync(target)
}
