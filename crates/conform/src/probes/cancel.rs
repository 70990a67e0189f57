//! Calls that run long: cancelled, and up to their deadline.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::super::checks::Check;
use super::super::derive;
use super::super::fixture::TICKS;
use super::super::processes::{self, Process};
use super::super::runs::{self, Run, StreamOutcome};
use super::super::session::{Session, call};
use super::super::trial::{DATA_SOURCE, Operation, Trial};
use crate::observe::{ObservedEvent, Observer, Sent};
use tool_provider::Payload;

/// The deadline of a call that runs longer.
const DEADLINE: Duration = Duration::from_secs(1);
/// How often it is looked whether a call has begun.
const LOOK: Duration = Duration::from_millis(20);
/// How long a file is watched for growing. A call that goes on makes it grow ten times meanwhile.
const WATCH: Duration = Duration::from_millis(1000);

/// Why there is nothing to cancel.
pub(super) const NOT_LONG: &str = "no operation is known to run long; where there is one, give \
                                   calls.NAME.long in --config";

/// Arguments of a call that runs for minutes.
pub(super) fn long(operation: &Operation, directory: &str) -> Option<Payload> {
    let ticking = || operation.commanded(&derive::ticking(directory));
    operation.samples.long.clone().or_else(ticking)
}

pub(super) async fn all(trial: &mut Trial, session: &Session, operations: &[Operation]) {
    let directory = trial.directory();
    let mut tried = false;
    for operation in operations.iter().filter(|operation| operation.is_callable()) {
        let Some(arguments) = long(operation, &directory) else { continue };
        tried = true;
        if trial.report.wants(&[Check::Cancelled]) {
            cancelled(trial, session, operation, &arguments).await;
        }
        if trial.report.wants(&[Check::Deadline]) {
            overdue(trial, session, operation, &arguments).await;
        }
    }
    if !tried {
        for check in [Check::Cancelled, Check::Deadline] {
            trial.report.not_reached(check, NOT_LONG);
        }
    }
}

/// A call that has begun. It is cancelled with the value.
pub(super) struct Begun {
    /// Reads its events, and returns how it ended.
    reading: JoinHandle<String>,
    /// What ran below this process before it.
    before: BTreeSet<Process>,
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

/// Starts a call on a fresh fixture and waits until it has begun. Where it ended instead, how.
pub(super) async fn begin(
    trial: &Trial,
    observer: &Observer,
    operation: &Operation,
    arguments: &Payload,
) -> Result<Begun, String> {
    trial.fixture.reset().map_err(|error| error.to_string())?;
    let before = processes::settled().await;
    let sent = call(&operation.tool.name, arguments, &trial.directory());
    // A server in Go sends the headers of an answer with its first event, which may never come: what
    // the call does is all that can be waited for.
    let mut begun = Begun { reading: tokio::spawn(last_event(observer.clone(), sent)), before };
    // A call that makes no file grow has begun when it goes on for a while. A data source's must not.
    let ticks = operation.tool.kind != DATA_SOURCE
        && (operation.samples.long.is_none()
            || serde_json::Value::Object(arguments.clone()).to_string().contains(TICKS));
    let limit = if ticks { trial.limit } else { WATCH.min(trial.limit) };
    let end = Instant::now() + limit;
    loop {
        if trial.fixture.size(TICKS) > 0 || Instant::now() >= end {
            return Ok(begun);
        }
        if let Ok(ended) = timeout(LOOK, &mut begun.reading).await {
            return Err(ended.unwrap_or_else(|error| error.to_string()));
        }
    }
}

async fn last_event(mut observer: Observer, sent: Sent) -> String {
    let mut stream = match observer.invoke(Some(sent), None).await {
        Ok(stream) => stream,
        Err(refusal) => return refusal.to_string(),
    };
    let mut last = "the end of the stream".to_owned();
    while let Some(event) = stream.next().await {
        match event {
            Ok(ObservedEvent::Error(error)) => last = format!("an error: {}", runs::shown(&error)),
            Ok(ObservedEvent::Result(_)) => "a result".clone_into(&mut last),
            Ok(_) => {}
            Err(refusal) => return refusal.to_string(),
        }
    }
    last
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
    let before = begun.before.clone();
    drop(begun);
    let mut observer = session.observer.clone();
    let fault = trial.fault_of(trial.within(observer.schema()).await);
    let seen = fault.map(|fault| format!("{name}: then {fault}"));
    trial.report.judge(Check::Cancelled, seen, "a provider that answers");
    is_over(trial, Check::Cancelled, name, &before).await;
    if let Some((good, _)) = &operation.good {
        let run = session.run(call(name, good, &trial.directory()), None, trial.limit).await;
        let is_answered = run.result().is_some() || run.error().is_some();
        let seen = (!is_answered).then(|| format!("the next {name}: {}", run.outcome()));
        trial.report.judge(Check::Cancelled, seen, "an end of the next call, as of any");
    }
}

async fn overdue(trial: &mut Trial, session: &Session, operation: &Operation, arguments: &Payload) {
    // Leftovers would only be the directory's.
    let _ = trial.fixture.reset();
    let name = &operation.tool.name;
    let before = processes::settled().await;
    let sent = call(name, arguments, &trial.directory());
    let run = session.run(sent, Some(DEADLINE), DEADLINE + trial.limit).await;
    let what = format!("{name} past its deadline");
    // At the deadline either side may cut the stream: that is no fault, and so it is not judged.
    let is_cut = matches!(&run.outcome, StreamOutcome::Refused(refusal)
        if matches!(refusal.code, "DEADLINE_EXCEEDED" | "CANCELLED"));
    let is_timeout =
        run.error().is_some_and(|error| matches!(error.category, runs::TIMEOUT | runs::CANCELLED));
    // It may finish a little before with what there is.
    let is_result = run.result().is_some() && matches!(run.outcome, StreamOutcome::Closed);
    let seen = format!("{what} of one second: {}", run.outcome());
    if is_result && goes_on(trial, name, &before).await {
        return;
    }
    if is_result {
        let better = "a timeout, or a result that says that it is incomplete";
        trial.report.weigh(Check::Deadline, [seen], better);
    } else {
        let seen = (!is_cut && !is_timeout).then_some(seen);
        let wanted = "the category timeout (or cancelled), or the end of the stream";
        trial.report.judge(Check::Deadline, seen, wanted);
    }
    if is_timeout {
        let run = Run { events: run.events, outcome: StreamOutcome::Closed };
        trial.judge(&what, Some(operation), &run);
    }
    is_over(trial, Check::Deadline, name, &before).await;
}

/// Whether something goes on behind a result: the tool may be there to start what outlives its call, such as
/// a server. That is ended here.
async fn goes_on(trial: &mut Trial, name: &str, before: &BTreeSet<Process>) -> bool {
    let left = processes::wait_for_as_many(before, WATCH).await;
    processes::kill(&left);
    if !left.is_empty() {
        let note = format!("{name} gave a result, and what it started went on");
        trial.report.pass_with(Check::Deadline, note);
    }
    !left.is_empty()
}

/// Whether nothing of a call goes on: no process of it, and no file that grows.
async fn is_over(trial: &mut Trial, check: Check, name: &str, before: &BTreeSet<Process>) {
    let left = processes::wait_for_as_many(before, trial.limit).await;
    let seen = left.iter().map(|process| format!("{name}: {process} still runs"));
    trial.report.judge(check, seen.collect::<Vec<_>>(), "that all its processes are gone");
    processes::kill(&left);
    let end = Instant::now() + trial.limit;
    loop {
        let size = trial.fixture.size(TICKS);
        if size == 0 {
            return;
        }
        sleep(WATCH).await;
        if trial.fixture.size(TICKS) == size {
            return;
        }
        if Instant::now() >= end {
            let seen = format!("{name}: its file still grows");
            return trial.report.fail(check, seen, "that nothing goes on");
        }
    }
}
