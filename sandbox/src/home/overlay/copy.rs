//! A file of the operator's that a program writes in place: a database.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, openat, renameat, unlinkat};

use super::anywhere;
use crate::beneath::{self, status};

/// The largest that is copied: it takes a jail's start, and is in each HOME.
const LARGEST: u64 = 256 << 20;
/// What a database of SQLite's keeps beside itself, which belongs to that one file.
const BESIDE: [&str; 2] = ["index.db-wal", "index.db-shm"];
const UNFINISHED: &str = ".unfinished-copy";

/// Copies `real` to `within` in HOME where that one is missing or older.
pub(super) fn renew(home: &OwnedFd, real: &Path, within: &Path) -> io::Result<()> {
    let mut from = File::open(real)?;
    let found = from.metadata()?;
    let name = within.file_name().unwrap_or(OsStr::new(""));
    let at = within.parent().unwrap_or(Path::new(""));
    let at = beneath::directory(home.as_fd(), at, anywhere())?;
    let is_new = |own: rustix::fs::Stat| {
        (own.st_mtime, own.st_mtime_nsec as i64) >= (found.mtime(), found.mtime_nsec())
    };
    if !found.is_file() || found.len() > LARGEST || status(&at, name).is_ok_and(is_new) {
        return Ok(());
    }
    let _ = unlinkat(&at, UNFINISHED, AtFlags::empty());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mut to = File::from(openat(&at, UNFINISHED, flags, Mode::from_raw_mode(0o600))?);
    io::copy(&mut from, &mut to)?;
    for beside in BESIDE {
        let _ = unlinkat(&at, beside, AtFlags::empty());
    }
    Ok(renameat(&at, UNFINISHED, &at, name)?)
}
