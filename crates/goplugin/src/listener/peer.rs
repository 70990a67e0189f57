//! Who may not connect: what the plugin itself started, and what somebody else has in a jail.
//!
//! A socket's file mode keeps other users out, and that is all that go-plugin asks for. A plugin
//! that runs other people's commands needs more: they run as its own user, and where the socket's
//! directory is open to them one of them could take the host's place and ask for whatever the plugin
//! keeps from it. So a peer below this process in the tree of processes is turned away.
//!
//! The commands of another plugin are in its jail, if it has one. A process that is more confined than
//! this one is no host: what a plugin inherits from its host, the host has too. Only a process above
//! this one may have confined itself since.

use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, geteuid, getpid, getppid, pidfd_open};
use tokio::net::unix::UCred;

/// Whom a listener serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peers {
    /// Whoever reaches the socket: a host's plugins are what it started.
    Anyone,
    /// Nobody that this process started, directly or not, and nobody in a jail that this process is
    /// not in.
    Hosts,
}

/// Longer lines of ancestors are not followed.
const GENERATIONS: usize = 1024;

/// How often a line of ancestors is followed anew after one of them ended in between.
const TRIES: usize = 3;

impl Peers {
    /// Whether to serve a peer with these credentials, which are those of the process that
    /// connected. When in doubt, no.
    pub(super) fn admits(self, peer: UCred) -> bool {
        if self == Peers::Anyone {
            return true;
        }
        // Zero stands for a process of an outer namespace, and whatever this one starts is in its own
        // or in an inner one.
        let Some(pid) = peer.pid().and_then(Pid::from_raw) else { return true };
        // A process of another user got past the file's mode, so it may connect; and who its ancestors
        // are may be hidden from us.
        if pid == getpid() || Some(pid) == getppid() || peer.uid() != geteuid().as_raw() {
            return true;
        }
        // What is read by number below is that of this very process, if it lives to the end.
        let process = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(process) => Some(process),
            Err(Errno::SRCH) => return false,
            // Some sandboxes refuse this call to everybody.
            Err(_) => None,
        };
        (0..TRIES).find_map(|_| is_host(pid)) == Some(true) && process.is_none_or(|it| lives(&it))
    }
}

/// Whether `pid` may be a host's process. `None` when one of a line of ancestors ended meanwhile, or is
/// hidden.
fn is_host(pid: Pid) -> Option<bool> {
    if is_below(pid, getpid())? {
        return Some(false);
    }
    let [peer, own] = [pid, getpid()].map(Status::of);
    Some(!peer?.confinement.exceeds(own?.confinement) || is_below(getpid(), pid)?)
}

/// Whether `pid` is below `top` in the tree of processes. `None` when that cannot be known.
fn is_below(pid: Pid, top: Pid) -> Option<bool> {
    let mut at = pid;
    for _ in 0..GENERATIONS {
        match Pid::from_raw(Status::of(at)?.parent) {
            None => return Some(false),
            Some(parent) if parent == top => return Some(true),
            Some(parent) => at = parent,
        }
    }
    None
}

/// What /proc says of a living process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Status {
    /// Its parent; zero at the top of what this namespace shows.
    parent: i32,
    confinement: Confinement,
}

/// What a process can take on, and never put off. Its children have it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Confinement {
    no_new_privileges: bool,
    /// Filters of system calls.
    filters: u32,
}

impl Confinement {
    fn exceeds(self, other: Self) -> bool {
        self.filters > other.filters || (self.no_new_privileges && !other.no_new_privileges)
    }
}

impl Status {
    /// `None` for a process that is gone, or about to go: the kernel shows one that is being reaped
    /// without a parent, as it shows the one at the top, and a child could connect and end to be taken
    /// for that.
    fn of(pid: Pid) -> Option<Self> {
        // A name's line breaks are escaped in this file, so no process can write a line of its own.
        Self::parse(&std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?, pid)
    }

    fn parse(status: &str, pid: Pid) -> Option<Self> {
        let field =
            |name: &str| Some(status.lines().find_map(|line| line.strip_prefix(name))?.trim());
        let lives = !field("State:")?.starts_with(['X', 'x', 'Z']);
        let is_itself = field("Tgid:")?.parse() == Ok(pid.as_raw_nonzero().get());
        if !(lives && is_itself) {
            return None;
        }
        // Kernels before 5.9 do not count the filters, and some are built without them.
        let filters = match field("Seccomp_filters:") {
            Some(count) => count.parse().ok()?,
            None => u32::from(field("Seccomp:") == Some("2")),
        };
        let no_new_privileges = field("NoNewPrivs:") == Some("1");
        let confinement = Confinement { no_new_privileges, filters };
        Some(Self { parent: field("PPid:")?.parse().ok()?, confinement })
    }
}

/// Whether a process has not ended yet.
fn lives(process: &OwnedFd) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&at_once)) == Ok(0)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_that_is_about_to_go_has_no_known_parent() {
        let pid = Pid::from_raw(7).unwrap();
        let status = |state: &str, tgid: i32, parent: i32| {
            format!("Name:\tx\nState:\t{state}\nTgid:\t{tgid}\nPid:\t7\nPPid:\t{parent}\n")
        };
        let parent = |status: &str| Some(Status::parse(status, pid)?.parent);
        assert_eq!(parent(&status("S (sleeping)", 7, 3)), Some(3));
        assert_eq!(parent(&status("R (running)", 7, 0)), Some(0));
        for gone in [status("X (dead)", 0, 0), status("Z (zombie)", 7, 3), status("S", 0, 0)] {
            assert_eq!(parent(&gone), None, "{gone}");
        }
    }

    #[test]
    fn who_is_more_confined_is_no_host() {
        let of = |more: &str| {
            let status = format!("State:\tS\nTgid:\t7\nPPid:\t1\n{more}");
            Status::parse(&status, Pid::from_raw(7).unwrap()).unwrap().confinement
        };
        let free = of("NoNewPrivs:\t0\nSeccomp:\t0\nSeccomp_filters:\t0\n");
        let contained = of("NoNewPrivs:\t0\nSeccomp:\t2\nSeccomp_filters:\t1\n");
        let strict = of("NoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n");
        let jailed = of("NoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t3\n");
        for (at, one) in [free, contained, strict, jailed].into_iter().enumerate() {
            for (other_at, other) in [free, contained, strict, jailed].into_iter().enumerate() {
                assert_eq!(one.exceeds(other), at > other_at, "{one:?} {other:?}");
            }
        }
        assert!(of("NoNewPrivs:\t0\nSeccomp:\t2\n").exceeds(of("NoNewPrivs:\t0\n")));
    }

    #[test]
    fn children_of_children_are_ours_and_their_ancestors_are_not() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "sh -c 'echo $$; read line'; true"]);
        let mut child =
            shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("there is a shell");
        let mut said = std::io::BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        std::io::BufRead::read_line(&mut said, &mut line).unwrap();
        let grandchild = Pid::from_raw(line.trim().parse().unwrap()).unwrap();
        assert_eq!(is_host(Pid::from_child(&child)), Some(false));
        assert_eq!(is_host(grandchild), Some(false));
        assert_eq!(is_host(getppid().unwrap()), Some(true));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(is_host(grandchild), None, "the parents of a process that is gone are unknown");
    }
}
