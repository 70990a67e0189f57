//! Kills every process below this one. The kernel proves it: a subreaper that has no child left to
//! wait for has no descendant left either.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
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

/// Asks every process below this one to end, and wakes those that are stopped.
pub(crate) fn terminate_descendants() -> LeftBehind {
    let tree = descendants();
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
    /// How the main process ended, if this reaped it.
    pub(crate) main: Option<Reaped>,
}

/// How often to list the tree while freezing it. Each round meets what was forked in the last one.
const LISTINGS: usize = 8;

/// Kills and reaps all descendants of this process, which must be a subreaper with one thread.
/// `main` is the child whose exit to return, `left` those that have been counted.
pub(crate) fn kill_descendants(main: pid_t, left: LeftBehind) -> Killed {
    let mut counted = left.pids;
    let mut killed = Killed { alive: counted.len() as u64, main: None };
    let mut first = true;
    loop {
        loop {
            match sys::reap(Wait::Poll) {
                Ok(Some(reaped)) => killed.record(reaped, main),
                Ok(None) => break,
                Err(_) => return killed,
            }
        }
        // Most trees are dead after one round. What is left forks faster than it can be listed, so
        // freeze it first.
        let targets = if first { descendants() } else { freeze() };
        first = false;
        let mut reached_any = false;
        for pid in &targets {
            if counted.insert(*pid) && is_alive(*pid) {
                killed.alive += 1;
            }
            reached_any |= send_signal(*pid, &targets, Signal::KILL) == Delivery::Sent;
        }
        if !reached_any {
            // A child exists that was not listed: the kernel is just making it.
            thread::sleep(Duration::from_millis(1));
        } else if let Ok(Some(reaped)) = sys::reap(Wait::Block) {
            killed.record(reaped, main);
        }
    }
}

impl Killed {
    fn record(&mut self, reaped: Reaped, main: pid_t) {
        if reaped.pid == main {
            self.main = Some(reaped);
        }
    }
}

/// Sends a signal to every descendant outside the command's process group, which a signal to the
/// group does not reach.
pub(crate) fn signal_others(group: pid_t, signal: Signal) {
    let tree = descendants();
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
        let tree = below(orphans.clone());
        for pid in &tree {
            send_signal(*pid, &tree, Signal::KILL);
        }
        orphans.retain(|pid| sys::exit_status_of(*pid).is_none());
        if !orphans.is_empty() {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Whether a signal was sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Delivery {
    Sent,
    NotSent,
}

/// Sends a signal to a process of `tree`, the processes below this one. Another process may have
/// taken its number since the listing; its parent shows that. The pidfd keeps the process fixed
/// after that check.
fn send_signal(pid: pid_t, tree: &[pid_t], signal: Signal) -> Delivery {
    let Some(handle) = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok())
    else {
        return Delivery::NotSent;
    };
    let parent = stat(pid).and_then(|found| found.parent);
    let ours = parent.is_some_and(|parent| parent == own_pid() || tree.contains(&parent));
    match ours.then(|| pidfd_send_signal(handle, signal)) {
        Some(Ok(())) => Delivery::Sent,
        _ => Delivery::NotSent,
    }
}

fn freeze() -> Vec<pid_t> {
    let mut frozen = BTreeSet::new();
    for _ in 0..LISTINGS {
        let tree = descendants();
        let before = frozen.len();
        for pid in &tree {
            if frozen.insert(*pid) {
                send_signal(*pid, &tree, Signal::STOP);
            }
        }
        if frozen.len() == before {
            return tree;
        }
    }
    descendants()
}

/// The pids of all processes below this one.
pub(crate) fn descendants() -> Vec<pid_t> {
    let own = own_pid();
    if fs::metadata(format!("/proc/self/task/{own}/children")).is_ok() {
        return below(children(own));
    }
    below_in(&parents(), own)
}

/// The processes of a list and all below them.
fn below(mut tree: Vec<pid_t>) -> Vec<pid_t> {
    let mut at = 0;
    while let Some(pid) = tree.get(at) {
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
    stat(pid).is_some_and(|found| found.state != 'Z' && found.state != 'X')
}

/// Fields of `/proc/PID/stat`.
struct Stat {
    state: char,
    parent: Option<pid_t>,
    group: Option<pid_t>,
    /// The foreground group of its terminal.
    foreground: Option<pid_t>,
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
