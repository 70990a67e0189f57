//! Calls that run long: cancelled, and up to their deadline.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::super::checks::Check;
use super::super::derive;
use super::super::ground::TICKS;
use super::super::processes::{self, Process};
use super::super::runs::{self, Ending, Run};
use super::super::session::{Session, call};
use super::super::trial::{Operation, Trial};
use crate::service::observe::{Observer, SeenStream};
use crate::tools::Payload;

/// The deadline of a call that runs longer.
const DEADLINE: Duration = Duration::from_secs(1);
/// How often it is looked whether a call has begun.
const LOOK: Duration = Duration::from_millis(20);
/// How long a file is watched for growing. A call that goes on makes it grow ten times meanwhile.
const WATCH: Duration = Duration::from_millis(1000);

/// Arguments of a call that runs for minutes.
pub(super) fn long(operation: &Operation, folder: &str) -> Option<Payload> {
    operation.samples.long.clone().or_else(|| {
        let (good, _) = operation.good.as_ref()?;
        let ticking = derive::ticking(folder);
        Some(derive::with_command(good, operation.command()?, &ticking))
    })
}

pub(super) async fn all(trial: &mut Trial, session: &Session, operations: &[Operation]) {
    let folder = trial.folder();
    let mut tried = false;
    for operation in operations.iter().filter(|operation| operation.is_callable()) {
        let Some(arguments) = long(operation, &folder) else { continue };
        tried = true;
        if trial.report.wants(&[Check::Cancelled]) {
            cancelled(trial, session, operation, &arguments).await;
        }
        if trial.report.wants(&[Check::Deadline]) {
            overdue(trial, session, operation, &arguments).await;
        }
    }
    if !tried {
        let why = "no operation is known to run long: give calls.NAME.long in --config";
        for check in [Check::Cancelled, Check::Deadline] {
            trial.report.not_reached(check, why);
        }
    }
}

/// A call that has begun.
pub(super) struct Begun {
    pub(super) stream: SeenStream,
    /// What ran below this process before it.
    before: BTreeSet<Process>,
}

/// Starts a call on fresh ground and waits until it has begun. Where it ended instead, how.
pub(super) async fn begin(
    trial: &Trial,
    observer: &Observer,
    operation: &Operation,
    arguments: &Payload,
) -> Result<Begun, String> {
    trial.ground.reset().map_err(|error| error.to_string())?;
    let before = processes::descendants();
    let sent = call(&operation.tool.name, arguments, &trial.folder());
    let mut observer = observer.clone();
    let invoking = observer.invoke(Some(sent), None);
    let mut stream = match timeout(trial.limit, invoking).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(refusal)) => return Err(refusal.to_string()),
        Err(_) => return Err(trial.no_answer()),
    };
    // A call that makes no file grow has begun when it says something, or says nothing for a while.
    let ticks = operation.samples.long.is_none()
        || serde_json::Value::Object(arguments.clone()).to_string().contains(TICKS);
    let limit = if ticks { trial.limit } else { WATCH.min(trial.limit) };
    let end = Instant::now() + limit;
    loop {
        if trial.ground.size(TICKS) > 0 || Instant::now() >= end {
            return Ok(Begun { stream, before });
        }
        match timeout(LOOK, stream.next()).await {
            Err(_) | Ok(Some(Ok(_))) => {}
            Ok(Some(Err(refusal))) => return Err(refusal.to_string()),
            Ok(None) => return Err("the end of the stream".to_owned()),
        }
    }
}

async fn cancelled(
    trial: &mut Trial,
    session: &Session,
    operation: &Operation,
    arguments: &Payload,
) {
    let name = &operation.tool.name;
    let begun = match begin(trial, &session.observer, operation, arguments).await {
        Ok(begun) => begun,
        Err(seen) => {
            let why = format!("the long call of {name} did not run long: {seen}");
            return trial.report.not_reached(Check::Cancelled, why);
        }
    };
    let Begun { stream, before } = begun;
    drop(stream);
    let mut observer = session.observer.clone();
    let seen = match trial.within(observer.schema()).await {
        Some(Ok(_)) => None,
        Some(Err(refusal)) => Some(format!("{name}: then {refusal}")),
        None => Some(format!("{name}: then {}", trial.no_answer())),
    };
    trial.report.judge(Check::Cancelled, seen, "a provider that answers");
    is_over(trial, Check::Cancelled, name, &before).await;
    if let Some((good, _)) = &operation.good {
        let run = session.run(call(name, good, &trial.folder()), None, trial.limit).await;
        let seen = run.result().is_none().then(|| format!("the next {name}: {}", run.outcome()));
        trial.report.judge(Check::Cancelled, seen, "a result of the next call");
    }
}

async fn overdue(trial: &mut Trial, session: &Session, operation: &Operation, arguments: &Payload) {
    // Leftovers would only be the folder's.
    let _ = trial.ground.reset();
    let name = &operation.tool.name;
    let before = processes::descendants();
    let sent = call(name, arguments, &trial.folder());
    let run = session.run(sent, Some(DEADLINE), DEADLINE + trial.limit).await;
    let what = format!("{name} past its deadline");
    // At the deadline either side may cut the stream: that is no fault, and so it is not judged.
    let is_cut = matches!(&run.ending, Ending::Refused(refusal)
        if matches!(refusal.code, "DEADLINE_EXCEEDED" | "CANCELLED"));
    let is_timeout =
        run.error().is_some_and(|error| matches!(error.category, runs::TIMEOUT | runs::CANCELLED));
    let seen = (!is_cut && !is_timeout).then(|| format!("{what}: {}", run.outcome()));
    trial.report.judge(Check::Deadline, seen, "a timeout soon after a second");
    if is_timeout {
        let run = Run { events: run.events, ending: Ending::Closed };
        trial.judge(&what, Some(operation), &run);
    }
    is_over(trial, Check::Deadline, name, &before).await;
}

/// Whether nothing of a call goes on: no process of it, and no file that grows.
async fn is_over(trial: &mut Trial, check: Check, name: &str, before: &BTreeSet<Process>) {
    let left = processes::wait_for_as_many(before, trial.limit).await;
    let seen = left.iter().map(|process| format!("{name}: {process} still runs"));
    trial.report.judge(check, seen.collect::<Vec<_>>(), "that all its processes are gone");
    processes::kill(&left);
    let end = Instant::now() + trial.limit;
    loop {
        let size = trial.ground.size(TICKS);
        if size == 0 {
            return;
        }
        sleep(WATCH).await;
        if trial.ground.size(TICKS) == size {
            return;
        }
        if Instant::now() >= end {
            let seen = format!("{name}: its file still grows");
            return trial.report.fail(check, seen, "that nothing goes on");
        }
    }
}
