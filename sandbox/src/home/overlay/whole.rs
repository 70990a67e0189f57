//! Directories that a program takes for whole once they are there, file by file.

use std::cmp::Reverse;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{renameat, symlinkat};
use rustix::io::Errno;

use super::{Links, Time, anywhere};
use crate::beneath::{self, status};

impl Links {
    /// Makes the directories in `real` that are not in `at` yet, the newest first, each with a link to every
    /// file below it. One for which no links are left is missing.
    pub(super) fn whole(&mut self, real: &Path, at: &OwnedFd) {
        let Some(time) = Time::of(real).filter(|time| !time.is_of(at)) else { return };
        let mut missing: Vec<_> = fs::read_dir(real)
            .into_iter()
            .flatten()
            .flatten()
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .filter(|entry| status(at, &entry.file_name()).is_err())
            .collect();
        missing
            .sort_by_cached_key(|entry| Reverse(entry.metadata().and_then(|m| m.modified()).ok()));
        for entry in missing {
            let name = entry.file_name();
            let mut unfinished = OsString::from(".unfinished-");
            unfinished.push(&name);
            let made = beneath::directory(at.as_fd(), Path::new(&unfinished), anywhere());
            let Ok(inner) = made else { continue };
            if !self.files(&entry.path(), &inner) {
                return;
            }
            let _ = renameat(at, &unfinished, at, &name);
        }
        time.set(at);
    }

    /// Links every file below `real` at the same place below `at`. False where not all could be.
    fn files(&mut self, real: &Path, at: &OwnedFd) -> bool {
        let Ok(entries) = fs::read_dir(real) else { return false };
        entries.into_iter().all(|entry| {
            let Ok(entry) = entry else { return false };
            let name = entry.file_name();
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                return !self.is_stopped() && self.file(&entry.path(), at, &name);
            }
            let inner = beneath::directory(at.as_fd(), Path::new(&name), anywhere());
            inner.is_ok_and(|inner| self.files(&entry.path(), &inner))
        })
    }

    fn file(&mut self, real: &Path, at: &OwnedFd, name: &OsStr) -> bool {
        let Some(left) = self.left.checked_sub(1) else { return false };
        match symlinkat(real, at, name) {
            Ok(()) => self.left = left,
            // An earlier start made it.
            Err(Errno::EXIST) => {}
            Err(_) => return false,
        }
        true
    }
}
