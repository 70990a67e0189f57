//! Calls that a provider has to refuse.

use super::super::checks::Check;
use super::super::runs::{self, Run, StreamOutcome};
use super::super::session::{Session, bare, call};
use super::super::shapes;
use super::super::trial::{Operation, Trial, is_broken};
use super::calls::shown;
use crate::observe::Sent;
use tool_provider::Payload;

/// An operation that no provider has.
const NO_OPERATION: &str = "conform_no_such_operation";

/// How many wrong values of one operation are tried.
const MOST_WRONG: usize = 4;

pub(super) async fn refusals(trial: &mut Trial, session: &Session, operations: &[Operation]) {
    if trial.report.wants(&[Check::UnknownOperation]) {
        let sent = call(NO_OPERATION, &Payload::new(), &trial.directory());
        let run = session.run(sent, None, trial.limit).await;
        let what = format!("the operation {NO_OPERATION}");
        trial.judge_stray(Check::UnknownOperation, &what, None, &run);
        let seen = run.result().is_some().then(|| format!("{what}: {}", run.outcome()));
        trial.report.judge(Check::UnknownOperation, seen, "a failure: there is no such operation");
    }
    if trial.report.wants(&[Check::Sparse]) {
        sparse(trial, session, operations).await;
    }
    if trial.report.wants(&[Check::InvalidArguments]) {
        invalid(trial, session, operations).await;
    }
    // Every failure above was looked at; that none was of this kind is no fault.
    trial.report.pass(Check::UnknownDetails);
    for check in [Check::ErrorCategory, Check::ErrorMessage, Check::ProcessCrashed] {
        trial.report.not_reached_unless_tried(check, "no call ended with an error event");
    }
}

/// Requests that lack something.
async fn sparse(trial: &mut Trial, session: &Session, operations: &[Operation]) {
    let run = Run::of(session.observer.clone(), None, None, trial.limit).await;
    // There is no call that an event could belong to: a status is as good.
    let is_answered = match &run.outcome {
        StreamOutcome::Refused(refusal) => {
            trial.refused("a request without a call", refusal);
            !is_broken(refusal)
        }
        StreamOutcome::Closed => run.error().is_some(),
        StreamOutcome::Open => false,
    };
    let seen = (!is_answered).then(|| format!("a request without a call: {}", run.outcome()));
    trial.report.judge(Check::Sparse, seen, "a failure, by an event or a status");
    for operation in operations.iter().filter(|operation| operation.is_callable()) {
        let name = &operation.tool.name;
        let empty = Sent { arguments: None, ..bare(name, &Payload::new()) };
        let mut calls = vec![("without arguments and context", empty)];
        if let Some((good, _)) = &operation.good {
            calls.push(("without a context", bare(name, good)));
        }
        for (what, sent) in calls {
            let run = session.run(sent, None, trial.limit).await;
            let what = format!("{name} {what}");
            trial.judge_stray(Check::Sparse, &what, Some(operation), &run);
        }
        // As a click on an action makes it, so this one a host does send.
        if let Some((good, _)) = &operation.good {
            let what = format!("{name} without a working directory");
            let run = session.run(call(name, good, ""), None, trial.limit).await;
            trial.judge(&what, Some(operation), &run);
            let is_answered = run.result().is_some() || run.error().is_some();
            let seen = (!is_answered).then(|| format!("{what}: {}", run.outcome()));
            trial.report.judge(Check::Sparse, seen, "a result, or an error event");
        }
    }
}

/// Arguments that do not fit the schema.
async fn invalid(trial: &mut Trial, session: &Session, operations: &[Operation]) {
    let mut tried = false;
    let directory = trial.directory();
    for operation in operations.iter().filter(|operation| operation.is_callable()) {
        let (Some((good, _)), Some(input)) = (&operation.good, &operation.tool.input) else {
            continue;
        };
        let mut wrong = Vec::new();
        for name in &input.required {
            let mut arguments = good.clone();
            arguments.remove(name);
            wrong.push((format!("without {name}"), arguments));
        }
        for (name, shape) in input.properties.iter().take(MOST_WRONG) {
            let mut arguments = good.clone();
            arguments.insert(name.clone(), shapes::wrong_value(shape));
            wrong.push((format!("with a wrong {name}"), arguments));
        }
        for (what, arguments) in wrong {
            tried = true;
            let what = format!("{} {what}, {}", operation.tool.name, shown(&arguments));
            let sent = call(&operation.tool.name, &arguments, &directory);
            let run = session.run(sent, None, trial.limit).await;
            trial.judge(&what, Some(operation), &run);
            if run.result().is_some() {
                let better = "invalid_arguments, so that a model learns of its slip";
                trial.report.weigh(Check::InvalidArguments, [format!("{what}: a result")], better);
                continue;
            }
            let is_refused = run
                .error()
                .is_some_and(|error| error.category == runs::INVALID_ARGUMENTS && !error.retryable);
            let seen = (!is_refused).then(|| match run.error() {
                Some(error) => {
                    let retry = if error.retryable { ", retryable" } else { "" };
                    format!("{what}: {}{retry}", runs::shown(error))
                }
                None => format!("{what}: {}", run.outcome()),
            });
            let wanted = "invalid_arguments, not retryable";
            trial.report.judge(Check::InvalidArguments, seen, wanted);
        }
    }
    if !tried {
        let why = "no operation that gave a result has arguments";
        trial.report.not_reached(Check::InvalidArguments, why);
    }
}
