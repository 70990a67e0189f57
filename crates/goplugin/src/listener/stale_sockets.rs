//! The sockets that killed plugins left behind.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::SocketAddrUnix;
use rustix::process::Pid;

use super::{SOCKET_PREFIX, unix_socket};

/// Removes the sockets that killed plugins of this user left in `directory`: named like ours, of a
/// process that is gone, and refusing connections (which excludes a process of another namespace that
/// shares the directory). Others' files are not touched, and living plugins are not connected to.
pub(crate) fn remove_stale_sockets(directory: &Path) {
    if let Err(errno) = remove_stale(directory) {
        tracing::debug!(directory = %directory.display(), error = %errno, "leftover sockets stay");
    }
}

fn remove_stale(directory: &Path) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let handle = rustix::fs::open(directory, flags, Mode::empty())?;
    let own = rustix::process::geteuid().as_raw();
    for entry in Dir::read_from(&handle)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(pid) = name.to_str().ok().and_then(owner_of) else { continue };
        let Ok(found) = rustix::fs::statat(&handle, name, AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        let is_own_socket =
            FileType::from_raw_mode(found.st_mode) == FileType::Socket && found.st_uid == own;
        if is_own_socket
            && is_gone(pid)
            && refuses(&directory.join(OsStr::from_bytes(name.to_bytes())))
        {
            rustix::fs::unlinkat(&handle, name, AtFlags::empty())?;
        }
    }
    Ok(())
}

/// The process that made a socket of this name.
fn owner_of(name: &str) -> Option<Pid> {
    let (pid, _) = name.strip_prefix(SOCKET_PREFIX)?.split_once('-')?;
    Pid::from_raw(pid.parse().ok()?)
}

fn is_gone(pid: Pid) -> bool {
    rustix::process::test_kill_process(pid) == Err(Errno::SRCH)
}

fn refuses(path: &Path) -> bool {
    let attempt = || {
        let address = SocketAddrUnix::new(path)?;
        rustix::net::connect(&unix_socket()?, &address)
    };
    attempt() == Err(Errno::CONNREFUSED)
}
