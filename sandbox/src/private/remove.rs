//! Removing directory trees that may be of any size and shape, as a command left them.

use std::ffi::{CStr, CString};
use std::fs::{Permissions, set_permissions};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;

use rustix::fs::{AtFlags, Dir, Mode, OFlags, openat, renameat, unlinkat};
use rustix::io::Errno;

use super::lock::{Locked, open_lock};
use super::{LOCK, enter, is_own, random};

/// Start of the name of a directory that belongs to no provider any more.
pub(crate) const DEAD: &str = "dead-";

/// Gives the directories of dead providers names of their own, which costs the same whatever they
/// hold. Returns those and what an earlier provider did not get to remove. The caller holds the order
/// lock, so a directory without a lock file is not one that another provider is making.
pub(super) fn set_aside(own: &OwnedFd) -> Vec<CString> {
    let (mut dead, mut jails) = (Vec::new(), Vec::new());
    let _ = each(own, |name| {
        if name.to_bytes().starts_with(DEAD.as_bytes()) {
            dead.push(name.to_owned());
        } else if name.to_bytes().starts_with(b"jail-") {
            jails.push(name.to_owned());
        }
        Ok(())
    });
    dead.extend(jails.iter().filter_map(|name| set_aside_if_dead(own, name).ok().flatten()));
    dead
}

fn set_aside_if_dead(own: &OwnedFd, name: &CStr) -> rustix::io::Result<Option<CString>> {
    let dir = match opened_up(own, name) {
        // Not a directory, so no jail made it.
        Err(Errno::NOTDIR | Errno::LOOP) => {
            return unlinkat(own, name, AtFlags::empty()).map(|()| None);
        }
        other => other?,
    };
    let _lock = open_lock(&dir, LOCK).and_then(Locked::at_once)?;
    let aside = format!("{DEAD}{:016x}", random());
    renameat(own, name, own, &aside)?;
    Ok(CString::new(aside).ok())
}

/// Removes what [`set_aside`] returned. Another provider may be removing the same.
pub(crate) fn remove_dead(own: &OwnedFd, dead: &[CString]) {
    for name in dead {
        let removed = opened_up(own, name)
            .and_then(|dir| empty(&dir))
            .and_then(|()| unlinkat(own, name, AtFlags::REMOVEDIR));
        // What one provider cannot remove, or does not get to, is the next one's.
        let _ = match removed {
            Err(Errno::NOTDIR | Errno::LOOP) => unlinkat(own, name, AtFlags::empty()),
            other => other,
        };
    }
}

/// Opens a directory that belongs to the user, even one that a command left without permissions.
pub(crate) fn opened_up(at: &OwnedFd, name: &CStr) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = openat(at, name, flags, Mode::empty())?;
    if is_own(&handle).is_ok_and(|found| found.st_mode & 0o700 != 0o700) {
        // This path leads to the open directory, wherever it lies now.
        let path = format!("/proc/self/fd/{}", handle.as_raw_fd());
        set_permissions(path, Permissions::from_mode(0o700))
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::ACCESS))?;
    }
    enter(&handle, c".")
}

/// Removes everything in a directory. The tree may be too deep for recursion or for the limit of
/// open descriptors, so directories in a subdirectory of `top` that are not empty move up into
/// `top`. Another process may be removing the same tree: what is gone already is as good.
pub(crate) fn empty(top: &OwnedFd) -> rustix::io::Result<()> {
    loop {
        let mut found = false;
        each(top, |name| {
            found = true;
            match unlinkat(top, name, AtFlags::empty()) {
                Err(Errno::ISDIR) => gone(flatten(top, name)),
                other => gone(other),
            }
        })?;
        if !found {
            return Ok(());
        }
    }
}

/// Removes a subdirectory of `top`, or leaves it for the next round if an entry of it was missed.
fn flatten(top: &OwnedFd, name: &CStr) -> rustix::io::Result<()> {
    let dir = opened_up(top, name)?;
    each(&dir, |inner| {
        gone(match unlinkat(&dir, inner, AtFlags::empty()) {
            Err(Errno::ISDIR) => move_up(top, &dir, inner),
            other => other,
        })
    })?;
    match unlinkat(top, name, AtFlags::REMOVEDIR) {
        Err(Errno::NOTEMPTY) => Ok(()),
        other => other,
    }
}

/// Removes a subdirectory of `dir` if it is empty, and otherwise moves it into `top`.
fn move_up(top: &OwnedFd, dir: &OwnedFd, name: &CStr) -> rustix::io::Result<()> {
    match unlinkat(dir, name, AtFlags::REMOVEDIR) {
        Err(Errno::NOTEMPTY) => {
            // A directory without permissions cannot be moved.
            opened_up(dir, name)?;
            renameat(dir, name, top, format!("moved-{:016x}", random()))
        }
        other => other,
    }
}

fn gone(removed: rustix::io::Result<()>) -> rustix::io::Result<()> {
    if removed == Err(Errno::NOENT) { Ok(()) } else { removed }
}

/// Visits the names in a directory. It may miss names that are added or removed meanwhile.
pub(crate) fn each(
    dir: &OwnedFd,
    mut visit: impl FnMut(&CStr) -> rustix::io::Result<()>,
) -> rustix::io::Result<()> {
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        if ![c".", c".."].contains(&entry.file_name()) {
            visit(entry.file_name())?;
        }
    }
    Ok(())
}
