//! The file that holds new content until it takes its place.
//!
//! It has no name (`O_TMPFILE`), so it goes when its process ends, however that ends. Where it
//! takes the place of another file it has one for the moment between a link and a rename, because a
//! link cannot replace; and where a file system makes no files without a name it has one from the
//! start. Such a name is listed in the journal.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, MemfdFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::journal::{Journal, Record, Slot, Written, fresh_number, temporary_name};
use crate::{FileId, FileStat};

/// How a file without a name can be given one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linking {
    /// By its handle alone (`AT_EMPTY_PATH`): as root, and since Linux 6.10 for the process that
    /// opened it.
    ByHandle,
    /// By its handle's link in `/proc`.
    ThroughProc,
    /// Not at all: an older kernel without `/proc`.
    Never,
}

impl Linking {
    /// Finds out how, with the help of any directory. The name `.` exists everywhere: an error that
    /// says so means that the file itself was found.
    pub(crate) fn find_out(directory: BorrowedFd<'_>) -> Self {
        let ways = [Self::ByHandle, Self::ThroughProc].into_iter();
        ways.into_iter()
            .find(|way| way.link(directory, directory, OsStr::new(".")) == Err(Errno::EXIST))
            .unwrap_or(Self::Never)
    }

    fn link(
        self,
        file: BorrowedFd<'_>,
        directory: BorrowedFd<'_>,
        name: &OsStr,
    ) -> rustix::io::Result<()> {
        match self {
            Self::ByHandle => rustix::fs::linkat(file, "", directory, name, AtFlags::EMPTY_PATH),
            Self::ThroughProc => {
                let path = format!("/proc/thread-self/fd/{}", file.as_raw_fd());
                rustix::fs::linkat(CWD, path, directory, name, AtFlags::SYMLINK_FOLLOW)
            }
            Self::Never => Err(Errno::OPNOTSUPP),
        }
    }
}

/// Where a temporary file is made, and how.
#[derive(Clone, Copy)]
pub(super) struct Site<'a> {
    pub(super) directory: &'a Arc<OwnedFd>,
    /// The directory's path.
    pub(super) path: &'a Path,
    pub(super) linking: Linking,
    pub(super) journal: Option<&'a Arc<Journal>>,
}

impl Site<'_> {
    fn record(&self, written: Written) -> rustix::io::Result<Record> {
        let directory = FileStat::of(self.directory)?.id;
        Ok(Record { directory, path: self.path.to_owned(), written })
    }

    /// Lists a temporary file in `slot`. Where that fails it is written all the same: then nobody
    /// clears it away should the process be killed just now.
    fn list(
        &self,
        slot: &mut Option<Slot>,
        number: u64,
        file: Option<FileId>,
    ) -> rustix::io::Result<()> {
        if let Some(listed) = slot
            && let Err(error) = listed.write(&self.record(Written::Temporary { number, file })?)
        {
            tracing::warn!(%error, "a temporary file cannot be listed in the journal");
        }
        Ok(())
    }
}

/// A temporary file in a directory, or in memory where the directory takes no files. It is gone when
/// this is dropped.
#[derive(Debug)]
pub(super) struct Temp {
    file: OwnedFd,
    name: Option<Name>,
}

/// A name in a directory. It is removed when this is dropped.
#[derive(Debug)]
struct Name {
    directory: Arc<OwnedFd>,
    name: OsString,
    slot: Option<Slot>,
    is_kept: bool,
}

/// How often a name is tried that somebody else has.
const ATTEMPTS: usize = 16;

/// The longest name of a file (`NAME_MAX`).
const MAX_NAME: usize = 255;

impl Temp {
    /// A file in a directory, with the permission bits `mode` less the umask from its first moment.
    pub(super) fn in_directory(site: Site<'_>, mode: u32) -> rustix::io::Result<Self> {
        if site.linking == Linking::Never {
            return Self::with_name(site, mode);
        }
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        match rustix::fs::openat(site.directory, ".", flags, Mode::from_raw_mode(mode)) {
            Ok(file) => Ok(Self { file, name: None }),
            // Not every file system can. (A kernel or a file system in user space that does not know
            // the flag takes it for opening a directory, or for an invalid one.)
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => {
                Self::with_name(site, mode)
            }
            Err(errno) => Err(errno),
        }
    }

    /// A file that has a temporary name, where none can be made without.
    fn with_name(site: Site<'_>, mode: u32) -> rustix::io::Result<Self> {
        for _ in 0..ATTEMPTS {
            let number = fresh_number();
            let mut slot = site.journal.and_then(Journal::slot);
            site.list(&mut slot, number, None)?;
            let name = OsString::from(temporary_name(number));
            let file = match create(site.directory, &name, mode) {
                Err(Errno::EXIST) => continue,
                created => created?,
            };
            let mut name = Name { directory: site.directory.clone(), name, slot, is_kept: false };
            let id = FileStat::of(&file)?.id;
            site.list(&mut name.slot, number, Some(id))?;
            return Ok(Self { file, name: Some(name) });
        }
        Err(Errno::EXIST)
    }

    /// A file beside `target` whose name says what it is a copy of: `.TARGET.0123456789abcdef.old`.
    /// No journal lists it. Should the process be killed it stays, for a person to find.
    pub(super) fn copy_beside(
        directory: &Arc<OwnedFd>,
        target: &OsStr,
    ) -> rustix::io::Result<Self> {
        let ending = format!(".{:016x}.old", fresh_number());
        let kept = target.len().min(MAX_NAME - 1 - ending.len());
        let bytes = [b".", &target.as_bytes()[..kept], ending.as_bytes()].concat();
        let name = OsString::from_vec(bytes);
        let file = create(directory, &name, 0o600)?;
        let name = Name { directory: directory.clone(), name, slot: None, is_kept: false };
        Ok(Self { file, name: Some(name) })
    }

    /// A file in memory.
    pub(super) fn in_memory() -> rustix::io::Result<Self> {
        let file = rustix::fs::memfd_create("provider-workspace", MemfdFlags::CLOEXEC)?;
        Ok(Self { file, name: None })
    }

    /// Gives the file its final name, unless somebody else has it.
    pub(super) fn put_new(&mut self, site: Site<'_>, target: &OsStr) -> rustix::io::Result<()> {
        let directory = site.directory.as_fd();
        let Some(name) = &mut self.name else {
            // No other name is there at any moment.
            return site.linking.link(self.file.as_fd(), directory, target);
        };
        let flags = RenameFlags::NOREPLACE;
        match rustix::fs::renameat_with(directory, &name.name, directory, target, flags) {
            // Not every file system can; a link never replaces either, and the first name is
            // removed when this is dropped.
            Err(Errno::INVAL | Errno::NOSYS) => {
                rustix::fs::linkat(directory, &name.name, directory, target, AtFlags::empty())
            }
            renamed => renamed.map(|()| name.is_kept = true),
        }
    }

    /// Puts the file in the place of another one.
    pub(super) fn put_over(&mut self, site: Site<'_>, target: &OsStr) -> rustix::io::Result<()> {
        let directory = site.directory.as_fd();
        let mut name = match self.name.take() {
            Some(name) => name,
            None => self.link(site)?,
        };
        rustix::fs::renameat(directory, &name.name, directory, target)?;
        name.is_kept = true;
        Ok(())
    }

    /// Gives the file a temporary name.
    fn link(&self, site: Site<'_>) -> rustix::io::Result<Name> {
        let id = FileStat::of(&self.file)?.id;
        for _ in 0..ATTEMPTS {
            let number = fresh_number();
            let mut slot = site.journal.and_then(Journal::slot);
            site.list(&mut slot, number, Some(id))?;
            let name = OsString::from(temporary_name(number));
            match site.linking.link(self.file.as_fd(), site.directory.as_fd(), &name) {
                Err(Errno::EXIST) => continue,
                linked => linked?,
            }
            return Ok(Name { directory: site.directory.clone(), name, slot, is_kept: false });
        }
        Err(Errno::EXIST)
    }

    /// Keeps the file under the name that it has, and returns that.
    pub(super) fn keep(mut self) -> Option<OsString> {
        let name = self.name.as_mut()?;
        name.is_kept = true;
        Some(name.name.clone())
    }

    /// Whether the file has a name in a directory.
    pub(super) fn has_name(&self) -> bool {
        self.name.is_some()
    }
}

fn create(directory: &OwnedFd, name: &OsStr, mode: u32) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(directory, name, flags, Mode::from_raw_mode(mode))
}

impl AsFd for Temp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        match rustix::fs::unlinkat(&self.directory, &self.name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            // The error has nobody to go to; the next start removes what cannot be removed now.
            Err(_) => {
                if let Some(slot) = self.slot.take() {
                    slot.leave();
                }
            }
        }
    }
}
