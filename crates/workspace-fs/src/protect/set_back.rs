//! Puts back what was at a place, and keeps what was found there instead.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Gid, Mode, OFlags, RenameFlags, Uid};
use rustix::io::Errno;

use super::item::{Depth, File, Item, list};
use super::{Finding, Outcome};
use crate::FileStat;
use crate::StateDirectory;
use crate::journal::fresh_number;

/// How many entries of a directory are looked at to find a repository that was moved away.
const MOST_SIBLINGS: usize = 4096;

/// One place that changed.
pub(super) struct Changed<'a> {
    pub(super) directory: BorrowedFd<'a>,
    pub(super) name: &'a OsStr,
    /// Its absolute path.
    pub(super) path: &'a Path,
    pub(super) before: &'a Item,
    pub(super) after: &'a Item,
    /// Where what is found is kept.
    pub(super) keep: Option<&'a StateDirectory>,
}

impl Changed<'_> {
    /// Undoes the change, and says what was done, of each file.
    pub(super) fn set_back(&self, findings: &mut Vec<Finding>) {
        let mut after = self.after;
        let later;
        if let (
            Item::Directory { mode, .. } | Item::Folder { mode, .. },
            Item::Directory { mode: found, .. } | Item::Folder { mode: found, .. },
        ) = (self.before, after)
            && mode != found
        {
            let outcome = match self.open().and_then(|handle| set_mode(handle.as_fd(), *mode)) {
                Ok(()) => Outcome::SetBack { kept: None },
                Err(errno) => Outcome::NotSetBack { why: errno.into(), kept: None },
            };
            findings.push(Finding { path: self.path.to_owned(), outcome });
            if let Item::Folder { .. } = after {
                return;
            }
            // Its mode may have hidden what is in it.
            later = Item::at(self.directory, self.name, Depth::Entries);
            after = &later;
        }
        if let (
            Item::Directory { entries: before, is_cut: before_is_cut, .. },
            Item::Directory { entries: after, is_cut, .. },
        ) = (self.before, after)
            && (*before_is_cut || !is_cut)
        {
            let Ok((directory, _)) = list(self.directory, self.name) else { return };
            let mut names: Vec<&OsString> = before.keys().chain(after.keys()).collect();
            names.sort();
            names.dedup();
            for name in names {
                let missing = &Item::Missing;
                let (before, after) =
                    (before.get(name).unwrap_or(missing), after.get(name).unwrap_or(missing));
                // Of more entries than are remembered, what is not known is no new one.
                let is_unknown = matches!(before, Item::Missing) && *before_is_cut;
                if !before.is_same(after) && !is_unknown {
                    let path = &self.path.join(name);
                    let directory = directory.as_fd();
                    Changed { directory, name, path, before, after, keep: self.keep }
                        .set_back(findings);
                }
            }
            return;
        }
        let mut kept = None;
        let outcome = match self.replace(&mut kept) {
            Ok(()) => Outcome::SetBack { kept },
            Err(why) => Outcome::NotSetBack { why, kept },
        };
        findings.push(Finding { path: self.path.to_owned(), outcome });
    }

    fn open(&self) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(self.directory, self.name, flags, Mode::empty())
    }

    /// Puts back what was there. `kept` becomes the path of what was found instead.
    fn replace(&self, kept: &mut Option<PathBuf>) -> io::Result<()> {
        match self.before {
            Item::File(File { content: None, .. }) => {
                return Err(io::Error::other("the earlier content was too large to be remembered"));
            }
            Item::Special => return Err(io::Error::other("it was no file")),
            _ => {}
        }
        *kept = self.clear()?;
        match self.before {
            Item::Missing | Item::Special => {}
            Item::File(file) => self.put_file(self.directory, self.name, file)?,
            Item::Link(target) => {
                rustix::fs::symlinkat(OsStr::from_bytes(target), self.directory, self.name)?;
            }
            Item::Directory { mode, entries, .. } => {
                rustix::fs::mkdirat(self.directory, self.name, Mode::from_raw_mode(*mode))?;
                let (directory, _) = list(self.directory, self.name)?;
                rustix::fs::fchmod(&directory, Mode::from_raw_mode(*mode))?;
                for (name, item) in entries {
                    match item {
                        Item::File(file) if file.content.is_some() => {
                            self.put_file(directory.as_fd(), name, file)?;
                        }
                        Item::Link(target) => {
                            rustix::fs::symlinkat(OsStr::from_bytes(target), &directory, name)?;
                        }
                        _ => {}
                    }
                }
            }
            Item::Folder { .. } => self.find_folder()?,
        }
        Ok(())
    }

    /// Takes away what is there now, and says where it is kept.
    fn clear(&self) -> io::Result<Option<PathBuf>> {
        let text = match self.after {
            Item::Missing => return Ok(None),
            Item::File(File { content, .. }) => content.as_deref(),
            Item::Link(target) => Some(target.as_slice()),
            // It holds nothing, and the jail lets no file job give one another name.
            Item::Special => {
                rustix::fs::unlinkat(self.directory, self.name, AtFlags::empty())?;
                return Ok(None);
            }
            Item::Directory { .. } | Item::Folder { .. } => None,
        };
        if let (Some(text), Some(keep)) = (text, self.keep)
            && let Ok(kept) = self.keep(keep, text)
        {
            // A file is replaced in one step.
            if !matches!((self.before, self.after), (Item::File(_), Item::File(_))) {
                rustix::fs::unlinkat(self.directory, self.name, AtFlags::empty())?;
            }
            return Ok(Some(kept));
        }
        let aside = aside(self.name);
        rustix::fs::renameat_with(
            self.directory,
            self.name,
            self.directory,
            &aside,
            RenameFlags::NOREPLACE,
        )?;
        Ok(Some(self.path.with_file_name(aside)))
    }

    fn keep(&self, keep: &StateDirectory, text: &[u8]) -> io::Result<PathBuf> {
        const LONGEST: usize = 100;
        let name = self.name.to_string_lossy();
        let name: String = name.chars().filter(char::is_ascii_graphic).take(LONGEST).collect();
        let name = format!("{name}.{:016x}.found", fresh_number());
        keep.create(&name)?.write_all(text)?;
        Ok(keep.path().join(name))
    }

    fn put_file(&self, directory: BorrowedFd<'_>, name: &OsStr, file: &File) -> io::Result<()> {
        let content = file.content.as_deref().unwrap_or_default();
        let temporary = crate::journal::temporary_name(fresh_number());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let handle = rustix::fs::openat(directory, &temporary, flags, Mode::RUSR | Mode::WUSR)?;
        let written = || -> io::Result<()> {
            let mut rest = content;
            while !rest.is_empty() {
                match rustix::io::write(&handle, rest) {
                    Ok(count) => rest = &rest[count..],
                    Err(Errno::INTR) => {}
                    Err(errno) => return Err(errno.into()),
                }
            }
            let (owner, group) = (Uid::from_raw(file.owner.0), Gid::from_raw(file.owner.1));
            // Only root can give a file away.
            let _ = rustix::fs::fchown(&handle, Some(owner), Some(group));
            rustix::fs::fchmod(&handle, Mode::from_raw_mode(file.mode))?;
            rustix::fs::fsync(&handle)?;
            Ok(rustix::fs::renameat(directory, &temporary, directory, name)?)
        };
        written().inspect_err(|_| {
            let _ = rustix::fs::unlinkat(directory, &temporary, AtFlags::empty());
        })
    }

    /// Moves a repository back that was moved within its directory.
    fn find_folder(&self) -> io::Result<()> {
        let Item::Folder { id, .. } = self.before else { return Ok(()) };
        let (_, entries) = list(self.directory, OsStr::new("."))?;
        for entry in entries.flatten().take(MOST_SIBLINGS) {
            let name = entry.file_name();
            let found = rustix::fs::statat(self.directory, name, AtFlags::SYMLINK_NOFOLLOW);
            if found.is_ok_and(|found| FileStat::from_raw(&found).id == *id) {
                let flags = RenameFlags::NOREPLACE;
                rustix::fs::renameat_with(self.directory, name, self.directory, self.name, flags)?;
                return Ok(());
            }
        }
        Err(io::Error::other("the directory that was there is not beside it any more"))
    }
}

/// A name for what cannot be kept elsewhere.
fn aside(name: &OsStr) -> OsString {
    let mut aside = name.as_bytes()[..name.len().min(200)].to_vec();
    aside.extend_from_slice(format!(".set-aside-{:016x}", fresh_number()).as_bytes());
    OsString::from_vec(aside)
}

/// Lets the owner of a directory list and change it again.
pub(super) fn give_owner_rights(directory: BorrowedFd<'_>) -> rustix::io::Result<()> {
    set_mode(directory, FileStat::of(directory)?.mode | 0o700)
}

/// Sets the mode of what a handle leads to, also one that cannot be opened to be read.
fn set_mode(handle: BorrowedFd<'_>, mode: u32) -> rustix::io::Result<()> {
    let path = format!("/proc/self/fd/{}", handle.as_raw_fd());
    rustix::fs::chmod(path, Mode::from_raw_mode(mode))
}
