//! Who may not connect: what the plugin itself started.
//!
//! A socket's file mode keeps other users out, and that is all that go-plugin asks for. A plugin
//! that runs other people's commands needs more: they run as its own user, and where the socket's
//! directory is open to them one of them could take the host's place and ask for whatever the plugin
//! keeps from it. So a peer below this process in the tree of processes is turned away.

use rustix::process::{Pid, geteuid, getpid, getppid};
use tokio::net::unix::UCred;

/// Whom a listener serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peers {
    /// Whoever reaches the socket: a host's plugins are what it started.
    Anyone,
    /// Nobody that this process started, directly or not.
    NoDescendants,
}

/// Longer lines of ancestors are taken for ours.
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
        (0..TRIES).find_map(|_| is_descendant(pid)) == Some(false)
    }
}

/// Whether `pid` is below this process. `None` when one of the line ended meanwhile, or is hidden.
fn is_descendant(pid: Pid) -> Option<bool> {
    let own = getpid();
    let mut at = pid;
    for _ in 0..GENERATIONS {
        match Pid::from_raw(parent_of(at)?) {
            None => return Some(false),
            Some(parent) if parent == own => return Some(true),
            Some(parent) => at = parent,
        }
    }
    Some(true)
}

/// The parent of a living process; zero at the top of what this namespace shows. `None` for one that
/// is gone, or about to go: the kernel shows a process that is being reaped without a parent, as it
/// shows the one at the top, and a child could connect and end to be taken for that.
fn parent_of(pid: Pid) -> Option<i32> {
    // A name's line breaks are escaped in this file, so no process can write a line of its own.
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    parent_in(&status, pid)
}

fn parent_in(status: &str, pid: Pid) -> Option<i32> {
    let field = |name: &str| Some(status.lines().find_map(|line| line.strip_prefix(name))?.trim());
    let lives = !field("State:")?.starts_with(['X', 'x', 'Z']);
    let is_itself = field("Tgid:")?.parse() == Ok(pid.as_raw_nonzero().get());
    if lives && is_itself { field("PPid:")?.parse().ok() } else { None }
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
        assert_eq!(parent_in(&status("S (sleeping)", 7, 3), pid), Some(3));
        assert_eq!(parent_in(&status("R (running)", 7, 0), pid), Some(0));
        for gone in [status("X (dead)", 0, 0), status("Z (zombie)", 7, 3), status("S", 0, 0)] {
            assert_eq!(parent_in(&gone, pid), None, "{gone}");
        }
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
        assert_eq!(is_descendant(Pid::from_child(&child)), Some(true));
        assert_eq!(is_descendant(grandchild), Some(true));
        assert_eq!(is_descendant(getppid().unwrap()), Some(false));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(
            is_descendant(grandchild),
            None,
            "the parents of a process that is gone are unknown"
        );
    }
}
