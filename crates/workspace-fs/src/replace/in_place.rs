//! Writing a file in place, for when it cannot be replaced: with a copy of the old content, from which
//! it is restored when writing fails, or at the next start when the process is killed meanwhile.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{FallocateFlags, Mode, OFlags};
use rustix::io::Errno;

use super::attributes;
use super::directories::sync;
use super::temp::{Site, Temp};
use crate::journal::{Record, Saved, Written};
use crate::{Fault, FileKind, FileStat, ResolvedPath};

/// Why a file was written in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InPlace {
    /// Its directory takes no new file.
    DirectoryNotWritable,
    /// It is a mount of its own, as files that are handed to a container often are.
    Mounted,
    /// Its owner, mode or extended attributes could not be given to another file.
    AttributesNotKept,
    /// The directory lets nobody but the file's owner rename it.
    RenameRefused,
}

impl fmt::Display for InPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            InPlace::DirectoryNotWritable => "its directory takes no new file",
            InPlace::Mounted => "it is mounted by itself",
            InPlace::AttributesNotKept => {
                "a new file could not get its owner, mode or extended attributes"
            }
            InPlace::RenameRefused => "its directory lets nobody replace it",
        })
    }
}

/// Overwrites the file at `resolved`, which was `base`, with what is in `new`.
pub(super) fn overwrite(
    resolved: &ResolvedPath<'_>,
    site: Site<'_>,
    base: &FileStat,
    new: BorrowedFd<'_>,
    why: InPlace,
) -> Result<(), Fault> {
    let flags =
        OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let target = rustix::fs::openat(site.directory, resolved.name(), flags, Mode::empty())?;
    let now = FileStat::of(&target)?;
    if now.id != base.id || now.kind != FileKind::Regular {
        return Err(Fault::Changed);
    }
    // Another name may be outside the roots.
    if now.links > 1 {
        return Err(Fault::Shared { why, links: now.links });
    }
    let recovery = Recovery::save(resolved, site, target.as_fd(), new)?;
    let length = FileStat::of(new)?.size;
    if let Err(errno) = reserve(&target, length) {
        let _ = rustix::fs::ftruncate(&target, now.size);
        return Err(errno.into());
    }
    let Err(failed) = write_over(new, &target, length) else {
        // Only its owner may; for anyone else the system's own rule stands.
        let _ = attributes::keep_set_id(&now, target.as_fd());
        drop(recovery);
        sync(site.directory);
        return Ok(());
    };
    match write_over(recovery.as_fd(), &target, now.size) {
        Ok(()) => Err(failed.into()),
        Err(_) => {
            let copy = recovery.keep(resolved).unwrap_or_default();
            Err(Fault::Torn { recovery: copy, source: failed.into() })
        }
    }
}

/// The old content while the file is written.
enum Recovery {
    /// In the private state directory, listed in the journal.
    Listed(Saved),
    /// Beside the file, or in memory where its directory takes no files.
    Unlisted(Temp),
}

impl Recovery {
    /// Copies the old content of `target`: to where the next start restores it from, and where that
    /// is impossible, beside the file.
    fn save(
        resolved: &ResolvedPath<'_>,
        site: Site<'_>,
        target: BorrowedFd<'_>,
        new: BorrowedFd<'_>,
    ) -> Result<Self, Fault> {
        if let Some(slot) = site.journal.and_then(crate::Journal::slot) {
            let file = FileStat::of(target)?.id;
            let record = Record {
                directory: FileStat::of(site.directory)?.id,
                path: site.path.to_owned(),
                written: Written::InPlace { name: resolved.name().to_owned(), file },
            };
            match slot.save(&record, target, new) {
                Ok(saved) => return Ok(Self::Listed(saved)),
                Err(error) => tracing::warn!(%error, "a file's old content cannot be kept aside"),
            }
        }
        let copy = match Temp::copy_beside(site.directory, resolved.name()) {
            Ok(copy) => copy,
            Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) => Temp::in_memory()?,
            Err(errno) => return Err(errno.into()),
        };
        super::copy_all(target, copy.as_fd())?;
        if copy.has_name() {
            rustix::fs::fsync(&copy)?;
            sync(site.directory);
        }
        Ok(Self::Unlisted(copy))
    }

    /// Keeps the copy, and returns where it is.
    fn keep(self, resolved: &ResolvedPath<'_>) -> Option<PathBuf> {
        match self {
            Self::Listed(saved) => Some(saved.keep(resolved.name())),
            Self::Unlisted(copy) => Some(resolved.path.with_file_name(copy.keep()?)),
        }
    }
}

impl AsFd for Recovery {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Listed(saved) => saved.old(),
            Self::Unlisted(copy) => copy.as_fd(),
        }
    }
}

/// Allocates the space for the content beforehand: a full disk is noticed with nothing changed.
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
