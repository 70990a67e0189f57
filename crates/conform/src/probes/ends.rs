//! How a provider ends, and what it leaves.

use std::collections::BTreeSet;
use std::path::PathBuf;

use rustix::process::{Pid, Signal, kill_process};

use super::super::checks::Check;
use super::super::processes::{self, Process};
use super::super::session::{SESSION, Said, Session};
use super::super::trial::{COOKIE, Callbacks, Trial};
use super::{Life, cancel, launch};
use crate::observe::Refusal;
use goplugin::host::{Exit, Shutdown};

/// What sockets that stay behind count as.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Leftovers {
    /// A broken rule.
    Judged,
    /// What go-plugin's own servers leave behind too.
    Remarked,
    /// Nothing: a process that was killed could not clear anything away.
    Excused,
}

/// SIGINT, which reaches whole terminals.
pub(super) async fn interrupt(trial: &mut Trial, session: &Session) {
    if !trial.report.wants(&[Check::Interrupt]) {
        return;
    }
    signal(session, Signal::INT);
    let mut observer = session.observer.clone();
    let seen = trial.fault_of(trial.within(observer.schema()).await);
    trial.report.judge(Check::Interrupt, seen, "answers, as before");
}

/// The host's own way: Shutdown, and nothing is left.
pub(super) async fn shut_down(trial: &mut Trial, session: Session, leftovers: Leftovers) {
    let Session { plugin, observer, said, before } = session;
    drop(observer);
    let ran = plugin.pid().is_some_and(processes::runs);
    let (shutdown, exit) = plugin.kill_after(trial.limit).await;
    if ran {
        judge_end(trial, Check::Shutdown, &shutdown, exit);
    } else {
        trial.report.not_reached(Check::Shutdown, "the process had ended before");
    }
    let ended_well = ran && exit != Exit::Killed;
    let leftovers = if ended_well { leftovers } else { Leftovers::Excused };
    left(trial, &said, &before, leftovers).await;
}

/// SIGTERM.
pub(super) async fn terminate(trial: &mut Trial, session: Session) {
    signal(&session, Signal::TERM);
    let Session { mut plugin, observer, said, before } = session;
    drop(observer);
    let ended = trial.within(plugin.wait()).await;
    let seen = match &ended {
        Some(Ok(_)) => None,
        Some(Err(error)) => Some(error.to_string()),
        None => Some(format!("a process that stays for {} s", trial.limit.as_secs_f32())),
    };
    trial.report.judge(Check::Terminate, seen, "the end of the process");
    drop(plugin);
    // SIGTERM's own effect leaves them too.
    let leftovers = if ended.is_some() { Leftovers::Remarked } else { Leftovers::Excused };
    left(trial, &said, &before, leftovers).await;
}

/// The ends that need a launch of their own.
pub(super) async fn others(trial: &mut Trial, life: Option<&Life>) {
    if trial.report.wants(&[Check::Busy]) {
        match life {
            Some(life) => busy(trial, life).await,
            None => trial.report.not_reached(Check::Busy, "it was never configured"),
        }
    }
    if trial.report.wants(&[Check::HostDeath]) {
        host_death(trial, life).await;
    }
}

/// Shutdown in the middle of a call.
async fn busy(trial: &mut Trial, life: &Life) {
    let directory = trial.directory();
    let mut known = life.operations.iter().filter(|operation| operation.is_callable());
    let known = known.find_map(|operation| Some((operation, cancel::long(operation, &directory)?)));
    let Some((operation, arguments)) = known else {
        let why = cancel::NOT_LONG;
        return trial.report.not_reached(Check::Busy, why);
    };
    let Some(session) = configured(trial, Check::Busy, life).await else { return };
    // A host goes on reading, and so does this.
    let begun = match cancel::begin(trial, &session.observer, operation, &arguments).await {
        Ok(begun) => begun,
        Err(seen) => {
            let why = format!("the long call did not run long: {seen}");
            trial.report.not_reached(Check::Busy, why);
            return shut_down(trial, session, Leftovers::Judged).await;
        }
    };
    let Session { plugin, observer, said, before } = session;
    drop(observer);
    let (shutdown, exit) = plugin.kill_after(trial.limit).await;
    drop(begun);
    judge_end(trial, Check::Busy, &shutdown, exit);
    let leftovers = if exit == Exit::Killed { Leftovers::Excused } else { Leftovers::Judged };
    left(trial, &said, &before, leftovers).await;
}

/// A host that is killed: the provider gets no notice.
async fn host_death(trial: &mut Trial, life: Option<&Life>) {
    // A shell starts the provider and is killed; the connection to the provider ends with it.
    let launch = trial
        .launch_of(PathBuf::from("/bin/sh"), COOKIE)
        .arg("-c")
        .arg("\"$0\" & wait")
        .arg(trial.binary.clone());
    let session = match trial.start(launch, Callbacks::Served).await {
        Ok(session) => session,
        Err(error) => {
            let why = format!("it could not be launched through /bin/sh: {error}");
            return trial.report.not_reached(Check::HostDeath, why);
        }
    };
    if let Some(life) = life {
        let mut observer = session.observer.clone();
        // One that is configured has more to take along. That it can be is another check's.
        let _ = trial.within(observer.configure(life.config.clone())).await;
    }
    signal(&session, Signal::KILL);
    let Session { plugin, observer, said, before } = session;
    drop((plugin, observer));
    let left_over = processes::wait_for_only(&before, trial.limit).await;
    let seen = left_over
        .iter()
        .map(|process| format!("{process} still runs {} s later", trial.limit.as_secs_f32()));
    let better = "that it ends too: go-plugin does not see to it, but a look at getppid() now and \
                  then does";
    trial.report.weigh(Check::HostDeath, seen.collect::<Vec<_>>(), better);
    processes::kill(&left_over);
    let leftovers = if left_over.is_empty() { Leftovers::Remarked } else { Leftovers::Excused };
    left(trial, &said, &before, leftovers).await;
}

async fn configured(trial: &mut Trial, check: Check, life: &Life) -> Option<Session> {
    let session = match trial.start(trial.launch(), Callbacks::Served).await {
        Ok(session) => session,
        Err(error) => {
            trial.report.not_reached(check, format!("it could not be launched again: {error}"));
            return None;
        }
    };
    let mut observer = session.observer.clone();
    if let Some(Ok(())) = trial.within(observer.configure(life.config.clone())).await {
        return Some(session);
    }
    trial.report.not_reached(check, "it could not be configured again");
    shut_down(trial, session, Leftovers::Judged).await;
    None
}

fn judge_end(trial: &mut Trial, check: Check, shutdown: &Shutdown, exit: Exit) {
    let limit = trial.limit.as_secs_f32();
    let mut problems = Vec::new();
    match shutdown {
        // A plugin in Go ends while it answers.
        Shutdown::Failed(_) if exit != Exit::Killed => {}
        Shutdown::Failed(status) => {
            let refusal = Refusal::from(status.clone());
            problems.push(format!("plugin.GRPCController/Shutdown: {refusal}"));
        }
        Shutdown::Answered => {}
        Shutdown::Unanswered => problems.push(format!("no answer to Shutdown within {limit} s")),
    }
    if exit == Exit::Killed {
        problems.push(format!("a process that stays for {limit} s"));
    }
    trial.report.judge(check, problems, "an answer, and then the end of the process");
}

/// What a provider that ended has left: processes, sockets, and its last words.
async fn left(trial: &mut Trial, said: &Said, before: &BTreeSet<Process>, leftovers: Leftovers) {
    no_orphans(trial, before).await;
    launch::said(trial, said);
    callbacks(trial, said);
    match trial.fixture.sockets() {
        _ if leftovers == Leftovers::Excused => {}
        Ok(sockets) => {
            let seen: Vec<_> = sockets.iter().map(|socket| socket.display().to_string()).collect();
            if leftovers == Leftovers::Judged {
                trial.report.judge(Check::Sockets, seen, "no socket in TMPDIR after Shutdown");
            } else {
                let better = "no socket in TMPDIR either after SIGTERM, after a host's death or when \
                              multiplexed";
                trial.report.weigh(Check::Sockets, seen, better);
            }
        }
        Err(error) => trial.report.not_reached(Check::Sockets, error.to_string()),
    }
}

/// Looks for processes that a provider left, and ends them.
pub(super) async fn no_orphans(trial: &mut Trial, before: &BTreeSet<Process>) {
    let left_over = processes::wait_for_only(before, trial.limit).await;
    let seen = left_over.iter().map(|process| format!("{process} still runs"));
    trial.report.judge(Check::Orphans, seen.collect::<Vec<_>>(), "no process");
    processes::kill(&left_over);
}

/// What the host heard.
fn callbacks(trial: &mut Trial, said: &Said) {
    for event in said.events.take() {
        trial.listen("an emitted event", &String::from_utf8_lossy(&event.payload));
    }
    let entries = said.host.take();
    if entries.is_empty() {
        return;
    }
    let mut problems = Vec::new();
    for entry in entries {
        trial.listen("the host's log", &format!("{entry:?}"));
        if entry.level == "unspecified" {
            problems.push(format!("an entry without a level: {:?}", entry.message));
        }
        if entry.message.is_empty() {
            let seen = "an entry without a message";
            trial.report.remark(Check::CallbackLog, seen, "a message, for its readers");
        }
        let session = entry.session_id.as_deref().unwrap_or_default();
        if !session.is_empty() && session != SESSION {
            problems.push(format!("an entry of session {session:?}, which there is not"));
        }
    }
    let wanted = "a level, and no session but that of the calls";
    trial.report.judge(Check::CallbackLog, problems, wanted);
}

fn signal(session: &Session, signal: Signal) {
    let pid = session.plugin.pid().and_then(|pid| Pid::from_raw(pid.try_into().ok()?));
    if let Some(pid) = pid {
        // Not yet reaped, so the number is still its own.
        let _ = kill_process(pid, signal);
    }
}
