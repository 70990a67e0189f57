//! Writing a file so that at every instant, also if the process or the machine dies, its content is
//! the old one or the new one.
//!
//! In two steps. [`Workspace::stage`] puts the new content on the disk, in a file without a name in
//! the target's directory, and may be given up at any time. [`Staged::commit`] then puts that file
//! in the target's place, which takes a link, and a rename where there is something to replace.
//! Where that is impossible the target is written in place, with a copy of the old content kept
//! meanwhile.

mod attributes;
mod directories;
mod in_place;
mod temp;

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use directories::Directories;
pub(super) use directories::Turn;
pub use in_place::InPlace;
pub(super) use temp::Linking;
use temp::{Site, Temp};

use super::permit::{self, ENDS_IN_SLASH};
use super::{
    Action, Fault, FileKind, FileStat, OpenFile, ResolvedPath, Target, Workspace, WorkspaceError,
};

/// What to write, and what the caller knows to be there.
#[derive(Clone, Copy)]
pub struct Replacement<'a> {
    /// The path as the caller wrote it, for messages.
    pub text: &'a str,
    /// The file as the caller read it; absent when there must be none. The commit fails if it is
    /// another one, or has changed, by then.
    pub base: Option<&'a OpenFile>,
    /// The new content, in pieces.
    pub content: &'a [&'a [u8]],
    /// Asked now and then while the content is written; true gives it up.
    pub should_stop: &'a dyn Fn() -> bool,
}

/// New content that is on the disk but not in its place. Dropping this removes every trace of it.
#[derive(Debug)]
#[must_use = "nothing is written before it is committed"]
pub struct Staged<'w> {
    workspace: &'w Workspace,
    // In this order: the file has to go before its directories can.
    temp: Temp,
    directories: Directories,
    resolved: ResolvedPath<'w>,
    base: Option<FileStat>,
    in_place: Option<InPlace>,
    text: String,
}

/// What a write did.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    /// The file as it is now.
    pub stat: FileStat,
    /// How it was written.
    pub how: How,
}

/// How a file was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// There was none before.
    Created,
    /// Another file took its place.
    Replaced {
        /// How many other names (hard links) still have the old content.
        parted_names: u64,
    },
    /// It is the same file with another content.
    InPlace(InPlace),
}

/// The largest content that is held in memory while a file in an unwritable directory is written.
const MAX_IN_MEMORY: u64 = 64 * 1024 * 1024;

/// Pieces up to this size are gathered, so that many small ones cost few calls.
const GATHER: usize = 128 * 1024;

impl Workspace {
    /// Puts new content on the disk, ready to take its place. Directories that are missing are
    /// made, and removed again unless it is committed. The caller holds the lock on the path until
    /// then.
    ///
    /// # Errors
    /// When the path may not be written, is no file, or is not what the caller read; or the system
    /// fails. Then everything is as it was.
    pub fn stage<'w>(
        &'w self,
        resolved: ResolvedPath<'w>,
        replacement: Replacement<'_>,
    ) -> Result<Staged<'w>, WorkspaceError> {
        resolved.check_writable(self, replacement.text)?;
        let path = resolved.path.clone();
        let staged = match (&resolved.target, replacement.base) {
            (Target::Missing { .. }, None) => self.stage_new(resolved, replacement),
            (Target::Found { stat, .. }, Some(base)) if stat.id == base.stat().id => {
                self.stage_over(resolved, base, replacement)
            }
            (Target::Found { stat, .. }, _) => Err(match stat.kind {
                FileKind::Directory => Fault::IsDirectory,
                FileKind::Special(special) => Fault::Special(special),
                FileKind::Regular | FileKind::Link => Fault::Changed,
            }),
            (Target::Missing { .. }, Some(_)) => Err(Fault::Changed),
        };
        staged.map_err(|fault| fault.of(Action::Write, replacement.text).at(path))
    }

    fn stage_new<'w>(
        &'w self,
        resolved: ResolvedPath<'w>,
        new: Replacement<'_>,
    ) -> Result<Staged<'w>, Fault> {
        let Target::Missing { directories, ends_in_slash, .. } = &resolved.target else {
            return Err(Fault::Changed);
        };
        if *ends_in_slash {
            return Err(Fault::NoPath(ENDS_IN_SLASH));
        }
        let directory = resolved.directory().ok_or(Fault::IsDirectory)?;
        let directories = Directories::make(directory, directories)?;
        let temp = Temp::in_directory(self.site(&directories, &resolved), 0o666)?;
        write_all(temp.as_fd(), new)?;
        rustix::fs::fsync(&temp)?;
        let (base, in_place, text) = (None, None, new.text.to_owned());
        Ok(Staged { workspace: self, temp, directories, resolved, base, in_place, text })
    }

    fn stage_over<'w>(
        &'w self,
        resolved: ResolvedPath<'w>,
        base: &OpenFile,
        new: Replacement<'_>,
    ) -> Result<Staged<'w>, Fault> {
        let directory = resolved.directory().ok_or(Fault::IsDirectory)?;
        permit::check_file(directory, resolved.name())?;
        let directories = Directories::make(directory, &[])?;
        // For its owner alone until it is complete: the group is not the final one yet.
        let private = base.stat().mode & 0o700;
        let (temp, in_place) = match Temp::in_directory(self.site(&directories, &resolved), private)
        {
            Ok(temp) => {
                let kept = attributes::carry_over(base.as_fd(), base.stat(), temp.as_fd());
                (temp, kept.err().map(|_| InPlace::AttributesNotKept))
            }
            Err(errno @ (Errno::ACCESS | Errno::PERM | Errno::ROFS)) => {
                let length: u64 = new.content.iter().map(|piece| piece.len() as u64).sum();
                if length.max(base.stat().size) > MAX_IN_MEMORY {
                    return Err(errno.into());
                }
                (Temp::in_memory()?, Some(InPlace::DirectoryNotWritable))
            }
            Err(errno) => return Err(errno.into()),
        };
        write_all(temp.as_fd(), new)?;
        if in_place.is_none() {
            attributes::keep_set_id(base.stat(), temp.as_fd())?;
            rustix::fs::fsync(&temp)?;
        }
        let (base, text) = (Some(*base.stat()), new.text.to_owned());
        Ok(Staged { workspace: self, temp, directories, resolved, base, in_place, text })
    }

    fn site<'a>(
        &'a self,
        directories: &'a Directories,
        resolved: &'a ResolvedPath<'_>,
    ) -> Site<'a> {
        Site {
            directory: directories.innermost(),
            // A file is never the root directory.
            path: resolved.path.parent().unwrap_or(Path::new("/")),
            linking: self.linking,
            journal: self.journal.as_ref(),
        }
    }
}

impl<'w> Staged<'w> {
    /// Where the content will be.
    #[must_use]
    pub fn resolved(&self) -> &ResolvedPath<'w> {
        &self.resolved
    }

    /// Puts the new content in its place. This cannot be stopped and takes one rename, except where
    /// the file has to be written in place.
    ///
    /// # Errors
    /// When the file is no longer what the caller read, or the system fails. Then its content is
    /// the old one ([`Fault::Torn`] is the one exception) and nothing is left behind.
    pub fn commit(mut self) -> Result<Written, WorkspaceError> {
        self.put().map_err(|fault| fault.of(Action::Write, &self.text).at(&self.resolved.path))
    }

    fn put(&mut self) -> Result<Written, Fault> {
        let turn = Turn::take(self.directories.innermost());
        self.check_unchanged()?;
        let how = match (self.base, self.in_place) {
            (None, _) => self.create()?,
            (Some(base), Some(why)) => self.overwrite(&base, why)?,
            (Some(base), None) => self.replace(&base)?,
        };
        self.directories.keep(turn);
        let stat = match how {
            How::Created | How::Replaced { .. } => FileStat::of(&self.temp)?,
            How::InPlace(_) => self.stat_target()?,
        };
        Ok(Written { stat, how })
    }

    /// Another program's change between reading and now would be lost. Other providers wait for
    /// their turn; what any other program does in the moment that is left, nobody can exclude.
    fn check_unchanged(&self) -> Result<(), Fault> {
        match (self.stat_target(), self.base) {
            (Err(Errno::NOENT), None) => Ok(()),
            (Ok(now), Some(base)) if now.stamp() == base.stamp() => Ok(()),
            (Ok(_), _) | (Err(Errno::NOENT), Some(_)) => Err(Fault::Changed),
            (Err(errno), _) => Err(errno.into()),
        }
    }

    fn stat_target(&self) -> rustix::io::Result<FileStat> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = self.directories.innermost();
        let target = rustix::fs::openat(directory, self.resolved.name(), flags, Mode::empty())?;
        FileStat::of(target)
    }

    /// Gives the file its name unless somebody else has it by now.
    fn create(&mut self) -> Result<How, Fault> {
        let site = self.workspace.site(&self.directories, &self.resolved);
        match self.temp.put_new(site, self.resolved.name()) {
            Ok(()) => Ok(How::Created),
            Err(Errno::EXIST) => Err(Fault::Changed),
            Err(errno) => Err(errno.into()),
        }
    }

    fn replace(&mut self, base: &FileStat) -> Result<How, Fault> {
        let site = self.workspace.site(&self.directories, &self.resolved);
        let why = match self.temp.put_over(site, self.resolved.name()) {
            Ok(()) => return Ok(How::Replaced { parted_names: base.links.saturating_sub(1) }),
            Err(Errno::BUSY | Errno::XDEV) => InPlace::Mounted,
            Err(Errno::ACCESS | Errno::PERM) => InPlace::RenameRefused,
            Err(errno) => return Err(errno.into()),
        };
        self.overwrite(base, why)
    }

    fn overwrite(&mut self, base: &FileStat, why: InPlace) -> Result<How, Fault> {
        let site = self.workspace.site(&self.directories, &self.resolved);
        in_place::overwrite(&self.resolved, site, base, self.temp.as_fd(), why)?;
        Ok(How::InPlace(why))
    }
}

/// Writes the content's pieces one after another.
fn write_all(file: BorrowedFd<'_>, new: Replacement<'_>) -> Result<(), Fault> {
    let mut gathered = Vec::new();
    for (index, piece) in new.content.iter().enumerate() {
        let is_last = index + 1 == new.content.len();
        if piece.len() < GATHER && !(is_last && gathered.is_empty()) {
            if gathered.len() + piece.len() > GATHER {
                write_piece(file, &gathered, new)?;
                gathered.clear();
            }
            gathered.extend_from_slice(piece);
            continue;
        }
        write_piece(file, &gathered, new)?;
        gathered.clear();
        write_piece(file, piece, new)?;
    }
    write_piece(file, &gathered, new)
}

fn write_piece(file: BorrowedFd<'_>, mut bytes: &[u8], new: Replacement<'_>) -> Result<(), Fault> {
    const AT_ONCE: usize = 4 * 1024 * 1024;
    while !bytes.is_empty() {
        if (new.should_stop)() {
            return Err(Fault::Stopped);
        }
        match rustix::io::write(file, &bytes[..bytes.len().min(AT_ONCE)]) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// Copies all of one file over the beginning of another, and returns how much that was.
pub(super) fn copy_all(from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> rustix::io::Result<u64> {
    let mut buffer = vec![0; 256 * 1024];
    let mut position = 0;
    loop {
        let filled = match rustix::io::pread(from, &mut buffer, position) {
            Ok(0) => return Ok(position),
            Ok(filled) => filled,
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(errno),
        };
        let mut rest = &buffer[..filled];
        while !rest.is_empty() {
            match rustix::io::pwrite(to, rest, position) {
                Ok(count) => {
                    rest = &rest[count..];
                    position += count as u64;
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
    }
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "tests set up real files and processes, and say what they skip"
)]
mod tests;
