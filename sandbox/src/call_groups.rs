//! A control group for each call, where the operator has delegated one: what one call may start then takes
//! nothing from another.
//!
//! systemd marks a group that it leaves to a service with an extended attribute (systemd.resource-control(5),
//! `Delegate=`). Controllers can be had only in a group without processes of its own (cgroups(7)), so the
//! program has to be in one below it (`DelegateSubgroup=`). Moving a process into a group takes milliseconds,
//! since the kernel waits for all processors; a fork into one does not (clone(2), `CLONE_INTO_CGROUP`).

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::cgroup;
use crate::sys::{self, Fork};

/// The supervisor and the keeper of a call, which are in its group too.
const OWN_PROCESSES: u64 = 2;

const PREFIX: &str = "provider-workspace-call.";

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Why calls have no groups.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoGroups {
    #[error("this program is in no control group of the second version")]
    None,
    #[error("no control group is delegated to this program")]
    NotDelegated,
    #[error("the delegated control group cannot limit processes: {0}")]
    Controller(#[source] io::Error),
}

/// The delegated group, and the calls' groups in it.
#[derive(Debug)]
pub(crate) struct CallGroups {
    directory: OwnedFd,
    processes: u64,
    /// Of this spawner, so that several share the directory.
    prefix: String,
    made: u64,
    groups: Vec<Group>,
}

#[derive(Debug)]
struct Group {
    name: String,
    pid: libc::pid_t,
    /// Locked, so that the next spawner takes the group for one in use.
    _directory: OwnedFd,
}

impl CallGroups {
    /// The group that is delegated to this process. Each call in it may have `processes`.
    pub(crate) fn find(processes: u64) -> Result<Self, NoGroups> {
        let own = cgroup::own_directory().ok_or(NoGroups::None)?;
        let delegated = own.parent().ok_or(NoGroups::NotDelegated)?;
        Self::at(delegated, processes)
    }

    fn at(delegated: &Path, processes: u64) -> Result<Self, NoGroups> {
        if !is_delegated(delegated) {
            return Err(NoGroups::NotDelegated);
        }
        let enabled = fs::read_to_string(delegated.join("cgroup.subtree_control"));
        if !enabled.is_ok_and(|names| names.split_whitespace().any(|name| name == "pids")) {
            fs::write(delegated.join("cgroup.subtree_control"), "+pids")
                .map_err(NoGroups::Controller)?;
        }
        let directory = rustix::fs::openat(CWD, delegated, DIRECTORY, Mode::empty())
            .map_err(|errno| NoGroups::Controller(errno.into()))?;
        let prefix = format!("{PREFIX}{}.", std::process::id());
        let groups = Self { directory, processes, prefix, made: 0, groups: Vec::new() };
        groups.remove_left();
        Ok(groups)
    }

    /// Removes what spawners that were killed have left.
    fn remove_left(&self) {
        let Ok(entries) = Dir::read_from(&self.directory) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if !name.to_bytes().starts_with(PREFIX.as_bytes()) {
                continue;
            }
            let locked = rustix::fs::openat(&self.directory, name, DIRECTORY, Mode::empty())
                .and_then(|group| {
                    rustix::fs::flock(&group, FlockOperation::NonBlockingLockExclusive)
                        .map(|()| group)
                });
            if locked.is_ok() {
                let _ = rustix::fs::unlinkat(&self.directory, name, AtFlags::REMOVEDIR);
            }
        }
    }

    /// Forks the process into a new group.
    pub(crate) fn fork(&mut self) -> io::Result<Fork> {
        let name = format!("{}{}", self.prefix, self.made);
        self.made += 1;
        rustix::fs::mkdirat(&self.directory, &name, Mode::from_raw_mode(0o755))?;
        self.fork_into(&name).inspect_err(|_| {
            let _ = rustix::fs::unlinkat(&self.directory, &name, AtFlags::REMOVEDIR);
        })
    }

    fn fork_into(&mut self, name: &str) -> io::Result<Fork> {
        let group = rustix::fs::openat(&self.directory, name, DIRECTORY, Mode::empty())?;
        rustix::fs::flock(&group, FlockOperation::NonBlockingLockShared)?;
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let limit = rustix::fs::openat(&group, "pids.max", flags, Mode::empty())?;
        let most = self.processes.saturating_add(OWN_PROCESSES);
        rustix::io::write(&limit, most.to_string().as_bytes())?;
        let forked = sys::fork_into(group.as_fd())?;
        if let Fork::Parent(pid) = forked {
            self.groups.push(Group { name: name.to_owned(), pid, _directory: group });
        }
        Ok(forked)
    }

    /// Removes the groups of calls that have ended. What a dead supervisor left keeps its group until the
    /// spawner has killed it.
    pub(crate) fn keep(&mut self, is_running: impl Fn(libc::pid_t) -> bool) {
        self.groups.retain(|group| {
            let unlinked =
                || rustix::fs::unlinkat(&self.directory, &group.name, AtFlags::REMOVEDIR);
            is_running(group.pid) || unlinked() == Err(Errno::BUSY)
        });
    }
}

/// Whether a group was left to what runs in it. As root, every group could be written.
fn is_delegated(group: &Path) -> bool {
    ["user.delegate", "trusted.delegate"].iter().any(|name| {
        let mut value = [0; 8];
        let found = rustix::fs::lgetxattr(group, *name, &mut value[..]);
        found.is_ok_and(|length| value.starts_with(b"1") && length == 1)
    })
}
