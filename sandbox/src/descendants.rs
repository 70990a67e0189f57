//! Kills every process below this one. The kernel proves it: a subreaper that has no child left to
//! wait for has no descendant left either.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::thread;
use std::time::Duration;

use libc::pid_t;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::program::{ProgramName, Programs};
use crate::sys::{self, Reaped, Wait};

/// Processes that a command left running when its own process had ended.
#[derive(Debug, Default)]
pub(crate) struct LeftBehind {
    pids: BTreeSet<pid_t>,
    pub(crate) programs: Programs,
}

/// Asks every process below this one to end, and wakes those that are stopped. A swarm has only SIGKILL to wait
/// for.
pub(crate) fn terminate_descendants() -> LeftBehind {
    if is_swarm() {
        return LeftBehind::default();
    }
    let tree: BTreeSet<pid_t> = descendants().into_iter().collect();
    let mut left = LeftBehind::default();
    for pid in tree.iter().copied().filter(|pid| is_alive(*pid)) {
        left.pids.insert(pid);
        left.programs.add(ProgramName::of(pid));
    }
    for signal in [Signal::TERM, Signal::CONT] {
        for pid in &left.pids {
            send_signal(*pid, &tree, signal);
        }
    }
    left
}

/// What [`kill_descendants`] killed and reaped.
#[derive(Debug, Default)]
pub(crate) struct Killed {
    /// How many processes were alive and got SIGKILL, or SIGTERM before.
    pub(crate) alive: u64,
    /// How the main process ended.
    pub(crate) main: Option<Reaped>,
}

/// How long the list of a swarm's numbers is, in bytes: more than a thousand children, mostly orphans that have
/// ended, are left by who forks and ends again and again. To look at each would take longer than they need to
/// become as many again.
const SWARM: usize = 8 * 1024;

fn is_swarm() -> bool {
    let own = own_pid();
    let list = fs::File::open(format!("/proc/self/task/{own}/children"));
    let mut start = Vec::with_capacity(SWARM);
    list.is_ok_and(|list| {
        list.take(SWARM as u64).read_to_end(&mut start).is_ok_and(|length| length == SWARM)
    })
}

/// Kills and reaps all descendants of this process, which must be a subreaper with one thread, and is not to
/// start any more. `main` is the child whose exit to return, `reaped` that exit where it is known, `left` those
/// that have been counted.
pub(crate) fn kill_descendants(main: pid_t, reaped: Option<Reaped>, left: LeftBehind) -> Killed {
    let mut counted = left.pids;
    let mut alive = counted.len() as u64;
    // Mostly none is left, and nothing has to be looked for.
    if reaped.is_some() && sys::reap(Wait::Poll).is_err() {
        return Killed { alive, main: reaped };
    }
    // All of them, before the first is killed and ends others.
    let targets = if is_swarm() { Vec::new() } else { descendants() };
    for pid in targets.iter().filter(|pid| is_alive(**pid)) {
        alive += u64::from(counted.insert(*pid));
    }
    // Its whole group at once, and then parents before their children: a shell that outlives its child
    // for a moment prints that it was killed.
    if reaped.is_none() {
        sys::signal(-main, libc::SIGKILL);
    }
    kill_all(targets.iter().copied(), |_| ());
    let main = reaped.or_else(|| {
        alive += u64::from(is_alive(main) && counted.insert(main));
        // Nobody else has this number before it is reaped.
        sys::signal(main, libc::SIGKILL);
        sys::reap_child(main)
    });
    // Who forks and ends at once leaves processes that have ended faster than they could be reaped, and each list
    // would hold thousands of them.
    sys::discard_children();
    loop {
        match sys::reap(Wait::Poll) {
            Ok(Some(_)) => continue,
            Ok(None) => {}
            Err(_) => return Killed { alive, main },
        }
        let mut kill = |tree: &[pid_t]| {
            let before = counted.len();
            // The youngest first: of those that fork and end at once, only they are still there.
            kill_all(tree.iter().copied().rev(), |pid| alive += u64::from(counted.insert(pid)));
            counted.len() > before
        };
        // The children first: of a longer list more is old when it is read.
        if !kill(&children(own_pid())) && !kill(&descendants()) {
            // What had its signal is ending, or a child was not listed: the kernel is just making it.
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Sends SIGKILL to the processes of a list in its order, and tells `meets` those that had not ended.
///
/// The groups of this process's own children get it too: the kernel lets no fork of a group's member slip
/// through, so that who forks faster than can be listed ends with its group. Nobody else reaps such a child, so the
/// number of its group is not given to others, unless it leaves that group just now and all numbers are used up
/// in the same moment.
fn kill_all(tree: impl Iterator<Item = pid_t> + Clone, mut meets: impl FnMut(pid_t)) {
    let (own, known) = (own_pid(), tree.clone().collect());
    let mut groups = BTreeSet::from([own]);
    for pid in tree {
        let Some((handle, found)) = ours(pid, &known) else { continue };
        if !found.has_ended() {
            meets(pid);
        }
        if found.parent == Some(own)
            && let Some(group) = found.group.filter(|group| *group > 1)
            && groups.insert(group)
        {
            sys::signal(-group, libc::SIGKILL);
        }
        // It may have ended.
        let _ = pidfd_send_signal(handle, Signal::KILL);
    }
}

/// Sends a signal to every descendant outside the command's process group, which a signal to the
/// group does not reach. A swarm has only SIGKILL to wait for.
pub(crate) fn signal_others(group: pid_t, signal: Signal) {
    if is_swarm() {
        return;
    }
    let tree: BTreeSet<pid_t> = descendants().into_iter().collect();
    for pid in &tree {
        if stat(*pid).is_some_and(|found| found.group != Some(group)) {
            send_signal(*pid, &tree, signal);
        }
    }
}

/// Kills what a dead supervisor left to this process: every child that is not one of `supervisors`,
/// with all its descendants.
pub(crate) fn kill_orphans(supervisors: &BTreeSet<pid_t>) {
    loop {
        let mut orphans = children(own_pid());
        orphans.retain(|pid| !supervisors.contains(pid));
        if orphans.is_empty() {
            return;
        }
        kill_all(below(orphans.clone(), usize::MAX).into_iter().rev(), |_| ());
        orphans.retain(|pid| sys::exit_status_of(*pid).is_none());
        if !orphans.is_empty() {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Sends a signal to a process of `tree`, the processes below this one.
fn send_signal(pid: pid_t, tree: &BTreeSet<pid_t>, signal: Signal) {
    if let Some((handle, _)) = ours(pid, tree) {
        // It may have ended.
        let _ = pidfd_send_signal(handle, signal);
    }
}

/// A process of `tree`, the processes below this one. Another process may have taken its number since the
/// listing; its parent shows that. The pidfd keeps the process fixed after that check.
fn ours(pid: pid_t, tree: &BTreeSet<pid_t>) -> Option<(OwnedFd, Stat)> {
    let handle = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
    let found = stat(pid)?;
    let parent = found.parent?;
    (parent == own_pid() || tree.contains(&parent)).then_some((handle, found))
}

/// The pids of all processes below this one.
pub(crate) fn descendants() -> Vec<pid_t> {
    first_descendants(usize::MAX)
}

/// The same, but only the first `most` are looked at for others below them.
pub(crate) fn first_descendants(most: usize) -> Vec<pid_t> {
    let own = own_pid();
    if fs::metadata(format!("/proc/self/task/{own}/children")).is_ok() {
        return below(children(own), most);
    }
    below_in(&parents(), own)
}

/// The processes of a list, and all below the first `most`.
fn below(mut tree: Vec<pid_t>, most: usize) -> Vec<pid_t> {
    let mut at = 0;
    while at < most
        && let Some(pid) = tree.get(at)
    {
        tree.extend(children(*pid));
        at += 1;
    }
    tree
}

fn children(pid: pid_t) -> Vec<pid_t> {
    let mut found = Vec::new();
    for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        let list = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        found.extend(list.split_ascii_whitespace().filter_map(|pid| pid.parse::<pid_t>().ok()));
    }
    found
}

/// Every process with its children, for a kernel that does not list children.
fn parents() -> BTreeMap<pid_t, Vec<pid_t>> {
    let mut children = BTreeMap::<_, Vec<_>>::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if let Some(parent) = stat(pid).and_then(|found| found.parent) {
            children.entry(parent).or_default().push(pid);
        }
    }
    children
}

fn below_in(children: &BTreeMap<pid_t, Vec<pid_t>>, top: pid_t) -> Vec<pid_t> {
    let mut tree = children.get(&top).cloned().unwrap_or_default();
    let mut at = 0;
    while let Some(pid) = tree.get(at) {
        tree.extend(children.get(pid).into_iter().flatten());
        at += 1;
    }
    tree
}

/// Whether a process has not ended. For counting only: a process whose first thread has ended looks
/// like a zombie while its other threads run.
fn is_alive(pid: pid_t) -> bool {
    stat(pid).is_some_and(|found| !found.has_ended())
}

/// Fields of `/proc/PID/stat`.
struct Stat {
    state: char,
    parent: Option<pid_t>,
    group: Option<pid_t>,
    /// The foreground group of its terminal.
    foreground: Option<pid_t>,
}

impl Stat {
    fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

/// Reads `/proc/PID/stat` from after the name, which may hold any byte.
fn stat(pid: pid_t) -> Option<Stat> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let after_name = text.iter().rposition(|byte| *byte == b')')? + 1;
    let rest = String::from_utf8_lossy(text.get(after_name..)?).into_owned();
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    let mut number = || fields.next()?.parse().ok();
    let (parent, group) = (number(), number());
    let (_session, _terminal) = (number(), number());
    Some(Stat { state, parent, group, foreground: number() })
}

/// Whether a process is in the foreground of its terminal.
pub(crate) fn is_in_foreground(pid: pid_t) -> bool {
    stat(pid).is_some_and(|found| found.group.is_some() && found.group == found.foreground)
}

fn own_pid() -> pid_t {
    std::process::id().cast_signed()
}
