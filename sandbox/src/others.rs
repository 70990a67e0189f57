//! What others may read of a directory: for commands of root, from whom no mode keeps anything.
//!
//! The first way is a mount in which no owner has a name. The kernel then takes root for a stranger,
//! whatever is made or replaced there later. Where the file system or the machine refuses such a mount
//! (overlayfs, a user namespace), and without mounts, the second way is to grant entry by entry what the
//! modes show to others at this moment.

use std::fs::{self, DirEntry};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use libc::{CLONE_NEWUSER, MOUNT_ATTR_NODEV, MOUNT_ATTR_NOSUID, MOUNT_ATTR_RDONLY};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{MoveMountFlags, OpenTreeFlags, move_mount, open_tree};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{getgid, getuid};

use crate::rights::{Grant, Rights};
use crate::sys::{self, Fork, Wait};

/// What narrows [`Rights::AsOthers`] to what others may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Narrowed {
    /// The mount, for as long as the jail lives.
    ByMount,
    /// The rules of the domain, as the modes were when it was made.
    ByEntry,
}

/// An id that no file has: all other ids have no name in a mount that maps this one only.
const NOBODYS_ID: u32 = u32::MAX - 1;

/// Mounts `source` at `target` so that every process is a stranger to its files. `proc` is where the
/// processes of this namespace are mounted.
pub(crate) fn mount(source: &Path, target: &Path, proc: &Path) -> io::Result<()> {
    let owners = nobodys_namespace(proc)?;
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let tree = open_tree(CWD, source, flags | OpenTreeFlags::AT_RECURSIVE)?;
    let closed = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
    sys::map_owners(tree.as_fd(), closed, owners.as_fd())?;
    Ok(move_mount(tree, "", CWD, target, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
}

/// A user namespace in which only [`NOBODYS_ID`] has a name. It is made by a child, since the maker of
/// a user namespace moves into it.
fn nobodys_namespace(proc: &Path) -> io::Result<std::os::fd::OwnedFd> {
    let (made, make) = pipe_with(PipeFlags::CLOEXEC)?;
    let (hold, release) = pipe_with(PipeFlags::CLOEXEC)?;
    let pid = match sys::fork()? {
        Fork::Child => {
            drop((made, release));
            if name_nobody().is_ok() {
                let _ = rustix::io::write(&make, &[0]);
            }
            drop(make);
            let _ = rustix::io::read(&hold, &mut [0]);
            sys::exit_now(0)
        }
        Fork::Parent(pid) => pid,
    };
    drop((make, hold));
    let ready = rustix::io::read(&made, &mut [0]);
    let path = proc.join(format!("{pid}/ns/user"));
    let opened = match ready {
        Ok(1) => rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()),
        _ => Err(rustix::io::Errno::PERM),
    };
    drop(release);
    sys::reap(Wait::Block)?;
    Ok(opened?)
}

fn name_nobody() -> io::Result<()> {
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    sys::unshare(CLONE_NEWUSER)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{NOBODYS_ID} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{NOBODYS_ID} {group} 1"))
}

/// The most entries that are looked at. What is beyond is not granted.
const MOST: usize = 16_384;

/// The entries of a directory, by what their modes show to others.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    /// Files that others may read.
    pub(crate) shown: Vec<Grant>,
    /// Files that others may not read, and directories that they may not list or enter.
    pub(crate) hidden: Vec<PathBuf>,
}

/// Looks at everything in `dir`. A link is no entry: what it leads to has its own rights.
pub(crate) fn entries(dir: &Path) -> Entries {
    let mut entries = Entries::default();
    let mut rest = vec![dir.to_owned()];
    let mut looked_at = 0;
    while let Some(dir) = rest.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            looked_at += 1;
            if looked_at > MOST {
                return entries;
            }
            entries.sort_out(&entry, &mut rest);
        }
    }
    entries
}

impl Entries {
    fn sort_out(&mut self, entry: &DirEntry, directories: &mut Vec<PathBuf>) {
        const READ: u32 = 0o4;
        const LIST_AND_ENTER: u32 = 0o5;
        let Ok(found) = entry.metadata() else { return };
        let path = entry.path();
        let may = |all: u32| found.mode() & all == all;
        if found.is_dir() && may(LIST_AND_ENTER) {
            directories.push(path);
        } else if found.is_file() && may(READ) {
            let identity = Some((found.dev(), found.ino()));
            self.shown.push(Grant { path, rights: Rights::ReadExecute, identity });
        } else if !found.is_symlink() {
            self.hidden.push(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn the_modes_say_what_is_shown() {
        let base = tempfile::tempdir().unwrap();
        let make = |name: &str, mode| {
            let path = base.path().join(name);
            fs::write(&path, "").unwrap();
            fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        };
        for (name, mode) in [("open", 0o755), ("closed", 0o750), ("blind", 0o751)] {
            let dir = base.path().join(name);
            fs::create_dir(&dir).unwrap();
            make(&format!("{name}/file"), 0o644);
            fs::set_permissions(dir, PermissionsExt::from_mode(mode)).unwrap();
        }
        make("shown", 0o644);
        make("secret", 0o640);
        make("odd", 0o606);
        symlink("secret", base.path().join("link")).unwrap();
        let Entries { shown, hidden } = entries(base.path());
        let names = |paths: Vec<PathBuf>| {
            let within = |path: PathBuf| path.strip_prefix(base.path()).unwrap().to_owned();
            let mut names: Vec<_> = paths.into_iter().map(within).collect();
            names.sort();
            names
        };
        let shown = names(shown.into_iter().map(|grant| grant.path).collect());
        assert_eq!(shown, ["odd", "open/file", "shown"].map(PathBuf::from));
        assert_eq!(names(hidden), ["blind", "closed", "secret"].map(PathBuf::from));
    }
}
