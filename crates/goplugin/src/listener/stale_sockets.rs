//! The sockets that killed plugins left behind.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::net::SocketAddrUnix;
use rustix::process::Pid;

use super::{SOCKET_PREFIX, own_directory, unix_socket};

/// Removes the sockets that killed plugins of this user left in `directory`, and the directories of
/// such: named like ours, of a process that is gone, and refusing connections (which excludes a process
/// of another namespace that shares the directory). Others' files are not touched, and living plugins
/// are not connected to.
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
        if found.st_uid != own || !is_gone(pid) {
            continue;
        }
        let path = directory.join(OsStr::from_bytes(name.to_bytes()));
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Socket if refuses(&path) => {
                rustix::fs::unlinkat(&handle, name, AtFlags::empty())?;
            }
            FileType::Directory if holds_only_dead_sockets(&path, &found)? => {
                own_directory::remove(&path)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether nobody listens in a directory. One without a socket counts only when it is no longer new: a
/// process of another namespace may be about to make its socket.
fn holds_only_dead_sockets(path: &Path, found: &Stat) -> Result<bool, Errno> {
    const NEW: Duration = Duration::from_secs(60);
    let mut empty = true;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for entry in Dir::read_from(rustix::fs::open(path, flags, Mode::empty())?)? {
        let entry = entry?;
        if [c".", c".."].contains(&entry.file_name()) {
            continue;
        }
        empty = false;
        if !refuses(&path.join(OsStr::from_bytes(entry.file_name().to_bytes()))) {
            return Ok(false);
        }
    }
    let made = UNIX_EPOCH + Duration::from_secs(u64::try_from(found.st_mtime).unwrap_or_default());
    Ok(!empty || made.elapsed().is_ok_and(|age| age > NEW))
}

/// The process that made a socket or a directory of this name.
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
