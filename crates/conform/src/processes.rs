//! The processes below this one. It adopts their orphans, so that nothing a provider leaves is out
//! of sight.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal, set_child_subreaper,
};
use tokio::time::{Instant, sleep};

/// How often the table of processes is looked at.
const INTERVAL: Duration = Duration::from_millis(20);
/// For how long nothing may change, and how long that is waited for.
const REST: Duration = Duration::from_millis(200);
const LONGEST_UNREST: Duration = Duration::from_secs(2);

/// A process: its number and when it started, as numbers are used again. Its name is its own to
/// change, so it is the same under another.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    pid: i32,
    started: u64,
    name: String,
}

impl Process {
    fn identity(&self) -> (i32, u64) {
        (self.pid, self.started)
    }
}

impl PartialEq for Process {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for Process {}

impl PartialOrd for Process {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Process {
    fn cmp(&self, other: &Self) -> Ordering {
        self.identity().cmp(&other.identity())
    }
}

impl std::fmt::Display for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.name, self.pid)
    }
}

/// Has orphans below this process come back to it.
///
/// # Errors
/// What the system said.
pub(crate) fn adopt_orphans() -> rustix::io::Result<()> {
    set_child_subreaper(Some(getpid()))
}

/// Every process below this one that runs.
pub(crate) fn descendants() -> BTreeSet<Process> {
    let mut children: BTreeMap<i32, Vec<(Process, bool)>> = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
        let Some(pid) = pid else { continue };
        // It may have ended meanwhile.
        if let Some((parent, process, runs)) = look(pid) {
            children.entry(parent).or_default().push((process, runs));
        }
    }
    let mut found = BTreeSet::new();
    let mut parents = vec![getpid().as_raw_nonzero().get()];
    while let Some(parent) = parents.pop() {
        for (process, runs) in children.remove(&parent).unwrap_or_default() {
            parents.push(process.pid);
            if runs {
                found.insert(process);
            }
        }
    }
    found
}

/// Whether a process runs.
pub(crate) fn runs(pid: u32) -> bool {
    pid.try_into().ok().and_then(look).is_some_and(|(_, _, runs)| runs)
}

/// The processes below this one, once they are the same for a while: a provider may be getting some ready
/// for the next call.
pub(crate) async fn settled() -> BTreeSet<Process> {
    let end = Instant::now() + LONGEST_UNREST;
    let (mut found, mut since) = (descendants(), Instant::now());
    while since.elapsed() < REST && Instant::now() < end {
        sleep(INTERVAL).await;
        let now = descendants();
        if now != found {
            (found, since) = (now, Instant::now());
        }
    }
    found
}

/// Waits until there are no processes below this one but the given ones, and returns those that are
/// still there when the time is up.
pub(crate) async fn wait_for_only(given: &BTreeSet<Process>, limit: Duration) -> BTreeSet<Process> {
    wait_until_none(limit, || descendants().difference(given).cloned().collect()).await
}

/// Like [`wait_for_only`], where a process may have been replaced by another of its name: a provider
/// may keep one ready for the next call.
pub(crate) async fn wait_for_as_many(
    given: &BTreeSet<Process>,
    limit: Duration,
) -> BTreeSet<Process> {
    wait_until_none(limit, || surplus(given, &descendants())).await
}

async fn wait_until_none(
    limit: Duration,
    look: impl Fn() -> BTreeSet<Process>,
) -> BTreeSet<Process> {
    let end = Instant::now() + limit;
    loop {
        let others = look();
        if others.is_empty() || Instant::now() >= end {
            return others;
        }
        sleep(INTERVAL).await;
    }
}

/// The processes that are new and not in the place of one of the same name that is gone.
fn surplus(given: &BTreeSet<Process>, now: &BTreeSet<Process>) -> BTreeSet<Process> {
    let mut gone: Vec<&str> = given.difference(now).map(|process| process.name.as_str()).collect();
    let is_more = |process: &&Process| match gone.iter().position(|name| *name == process.name) {
        Some(index) => {
            gone.swap_remove(index);
            false
        }
        None => true,
    };
    now.difference(given).filter(is_more).cloned().collect()
}

/// Kills processes, and none that has got the number of one of them since.
pub(crate) fn kill(processes: &BTreeSet<Process>) {
    for process in processes {
        let Some(pid) = Pid::from_raw(process.pid) else { continue };
        // Opened before the check, so it stays with the process that had this pid then.
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
        if look(process.pid).is_some_and(|(_, found, _)| found == *process) {
            let _ = pidfd_send_signal(handle, Signal::KILL);
        }
    }
}

/// Kills every process below this one, and what those start meanwhile, for at most `limit`.
pub(crate) async fn kill_all(limit: Duration) {
    wait_until_none(limit, || {
        let left = descendants();
        kill(&left);
        left
    })
    .await;
}

fn look(pid: i32) -> Option<(i32, Process, bool)> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse(pid, &String::from_utf8_lossy(&stat))
}

/// The parent, the process, and whether it runs: one that only waits to be reaped does not.
fn parse(pid: i32, stat: &str) -> Option<(i32, Process, bool)> {
    let open = stat.find('(')?;
    // A name may hold anything, brackets too.
    let close = stat.rfind(')')?;
    let name = stat.get(open + 1..close)?.to_owned();
    let mut fields = stat.get(close + 1..)?.split_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    // Field 22 of proc(5), of which three are gone and one is the next.
    let started = fields.nth(17)?.parse().ok()?;
    Some((parent, Process { pid, started, name }, !matches!(state, "Z" | "X")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_table_is_taken_apart() {
        let stat = "7 (a ) b) S 3 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 1 1 1";
        let (parent, process, runs) = parse(7, stat).unwrap();
        assert_eq!(
            (parent, process.started, process.name.as_str(), runs),
            (3, 4242, "a ) b", true)
        );
        assert!(!parse(7, &stat.replace(" S ", " Z ")).unwrap().2);
        assert_eq!(parse(7, "7 (a"), None);
    }

    #[test]
    fn a_replaced_process_is_no_surplus_and_one_more_is() {
        let set = |of: &[(i32, &str)]| -> BTreeSet<Process> {
            of.iter().map(|&(pid, name)| Process { pid, started: 0, name: name.into() }).collect()
        };
        let given = set(&[(1, "a"), (2, "ready")]);
        assert_eq!(surplus(&given, &set(&[(1, "a"), (3, "ready")])), set(&[]));
        assert_eq!(surplus(&given, &set(&[(1, "a"), (3, "sh")])), set(&[(3, "sh")]));
        assert_eq!(surplus(&given, &set(&[(1, "a"), (3, "ready"), (4, "ready")])).len(), 1);
    }

    #[test]
    fn a_child_is_seen_while_it_runs() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let id = i32::try_from(child.id()).unwrap();
        let is_there = || descendants().into_iter().find(|process| process.pid == id);
        let process = is_there().unwrap();
        kill(&[process].into());
        child.wait().unwrap();
        assert_eq!(is_there(), None);
    }

    #[test]
    fn a_process_hides_behind_no_name_and_none_that_has_its_number_is_taken_for_it() {
        // A name that is no text, and the name is changed while the process runs.
        let script = "printf '\\377\\376' > /proc/self/comm; echo; read";
        let mut shell = std::process::Command::new("bash")
            .args(["-c", script])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let id = i32::try_from(shell.id()).unwrap();
        std::io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        let is_there = || descendants().into_iter().find(|process| process.pid == id);
        let process = is_there().unwrap();
        kill(&[Process { started: process.started + 1, ..process.clone() }].into());
        assert_eq!(is_there().as_ref(), Some(&process));
        kill(&[Process { name: "another".to_owned(), ..process }].into());
        shell.wait().unwrap();
        assert_eq!(is_there(), None);
    }
}
