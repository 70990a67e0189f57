//! A directory that holds the sockets of one process and nothing else, so that what this process starts
//! can be kept from them wherever the directory lies.

use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags};
use rustix::io::Errno;

use super::{ListenError, SOCKET_PREFIX, open_to_group, random, writable};

/// The directory. It is removed when this is dropped, with what is in it: the runtime's tasks may have
/// left sockets.
#[must_use = "dropping this removes the directory"]
pub(crate) struct OwnDirectory(PathBuf);

impl OwnDirectory {
    /// Makes one in `within`. Only its owner may enter it, and the group that the host names.
    pub(super) fn make(within: &Path, group: Option<&str>) -> Result<Self, ListenError> {
        let within = writable(within)?;
        // Short, because the path of a socket has little room.
        let name = format!("{SOCKET_PREFIX}{}-{:08x}", std::process::id(), random() as u32);
        let path = within.join(name);
        rustix::fs::mkdir(&path, Mode::RWXU)
            .map_err(|errno| ListenError::Directory { path: path.clone(), source: errno.into() })?;
        let made = Self(path);
        if let Some(group) = group {
            open_to_group(made.path(), group, Mode::RWXU | Mode::XGRP)?;
        }
        Ok(made)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for OwnDirectory {
    fn drop(&mut self) {
        // The next start removes what this cannot.
        let _ = remove(&self.0);
    }
}

/// Removes a directory of sockets.
pub(super) fn remove(path: &Path) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = rustix::fs::open(path, flags, Mode::empty())?;
    for entry in Dir::read_from(&handle)? {
        let entry = entry?;
        if ![c".", c".."].contains(&entry.file_name()) {
            rustix::fs::unlinkat(&handle, entry.file_name(), AtFlags::empty())?;
        }
    }
    rustix::fs::unlinkat(CWD, path, AtFlags::REMOVEDIR)
}
