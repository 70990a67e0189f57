//! Ordinary calls.

use serde_json::Value;

use super::super::checks::Check;
use super::super::derive::{self, COUNTED};
use super::super::ground::{INNER, INNER_FILE};
use super::super::runs::Run;
use super::super::session::{Session, call};
use super::super::trial::{DATA_SOURCE, INTERACTIVE, Operation, Trial};
use crate::tools::Payload;

/// How many calls of an operation run at once.
const AT_ONCE: usize = 4;

/// A call before there is a configuration.
pub(super) async fn unconfigured(trial: &mut Trial, session: &Session, operations: &[Operation]) {
    if !trial.report.wants(&[Check::Unconfigured]) {
        return;
    }
    let folder = trial.folder();
    let Some(operation) = operations.iter().find(|operation| operation.is_callable()) else {
        let why = "there is no operation that the checker may call";
        return trial.report.not_reached(Check::Unconfigured, why);
    };
    let arguments = candidates(operation, &folder).swap_remove(0);
    let sent = call(&operation.tool.name, &arguments, &folder);
    let run = session.run(sent, None, trial.limit).await;
    trial.judge("a call before Configure", Some(operation), &run);
    let ended = run.result().is_some() || run.error().is_some();
    let seen = (!ended).then(|| run.outcome());
    trial.report.judge(Check::Unconfigured, seen, "a classified error, or a result");
}

/// Finds arguments with which each operation succeeds, and some with which it fails.
pub(super) async fn learn(trial: &mut Trial, session: &Session, operations: &mut [Operation]) {
    let folder = trial.folder();
    for operation in operations.iter_mut() {
        let name = operation.tool.name.clone();
        if operation.tool.kind == INTERACTIVE {
            continue;
        }
        if !operation.is_callable() {
            let why = format!("{name} is of critical risk: give calls.{name}.good in --config");
            trial.report.not_reached(Check::OutputSchema, why);
            continue;
        }
        let mut outcome = String::new();
        for arguments in candidates(operation, &folder) {
            let run = settled(trial, session, operation, "a call", &arguments).await;
            if let Some(result) = run.result() {
                operation.good = Some((arguments, result.clone()));
                break;
            }
            outcome = run.outcome();
        }
        if operation.good.is_none() {
            let why =
                format!("{name} gave no result but {outcome}: give calls.{name}.good in --config");
            trial.report.not_reached(Check::OutputSchema, why);
        }
        if let Some(arguments) = failing(operation, &folder) {
            let run = settled(trial, session, operation, "a call that fails", &arguments).await;
            operation.failing = run.error().map(|error| (arguments, error.clone()));
        }
    }
    if operations.iter().all(|operation| operation.tool.kind != DATA_SOURCE) {
        trial.report.pass_with(Check::ReadOnly, "there is no data source");
    }
    if operations.iter().all(|operation| operation.tool.streaming) {
        trial.report.pass_with(Check::LeadEvents, "every operation streams");
    }
}

/// Runs a call on fresh ground, holds it to what holds for each, and looks at what it changed.
async fn settled(
    trial: &mut Trial,
    session: &Session,
    operation: &Operation,
    what: &str,
    arguments: &Payload,
) -> Run {
    let folder = trial.folder();
    let what = format!("{what} of {}: {}", operation.tool.name, Value::Object(arguments.clone()));
    let before = trial.ground.reset().and_then(|()| trial.ground.state());
    let deadline = operation.tool.default_timeout.and_then(|(seconds, nanos)| {
        Some(std::time::Duration::new(seconds.try_into().ok()?, nanos.try_into().ok()?))
    });
    let sent = call(&operation.tool.name, arguments, &folder);
    let run = session.run(sent, deadline, trial.limit).await;
    trial.judge(&what, Some(operation), &run);
    if operation.tool.kind == DATA_SOURCE {
        match (before, trial.ground.state()) {
            (Ok(before), Ok(after)) => {
                let changes = before.changes(&after);
                let problems = changes.into_iter().map(|change| format!("{what}: {change}"));
                trial.report.judge(Check::ReadOnly, problems, "the folder as it was");
            }
            (Err(error), _) | (_, Err(error)) => {
                trial.report.not_reached(Check::ReadOnly, error.to_string());
            }
        }
    }
    run
}

/// Arguments that may succeed.
fn candidates(operation: &Operation, folder: &str) -> Vec<Payload> {
    match (&operation.samples.good, &operation.tool.input) {
        (Some(good), _) => vec![good.clone()],
        (None, Some(input)) => derive::arguments(input, folder),
        (None, None) => vec![Payload::new()],
    }
}

/// Arguments that fit the schema and should fail.
fn failing(operation: &Operation, folder: &str) -> Option<Payload> {
    operation.samples.failing.clone().or_else(|| {
        let (good, _) = operation.good.as_ref()?;
        derive::with_file(good, folder, &format!("{folder}/no-such-folder/no-such-file"))
    })
}

/// Where a call runs, and in which order its output comes.
pub(super) async fn places(trial: &mut Trial, session: &Session, operations: &[Operation]) {
    // A failed reset shows in what the calls find.
    let _ = trial.ground.reset();
    let folder = trial.folder();
    let inner = format!("{folder}/{INNER}");
    let mut found_place = false;
    let mut found_order = false;
    for operation in operations {
        let Some((good, _)) = &operation.good else { continue };
        let name = &operation.tool.name;
        let command = operation.command();
        let relative = match command {
            Some(argument) => {
                Some(derive::with_command(good, argument, &format!("cat {INNER_FILE}")))
            }
            None if operation.tool.kind == DATA_SOURCE => {
                derive::with_file(good, &folder, INNER_FILE)
            }
            None => None,
        };
        if let Some(arguments) = relative {
            found_place = true;
            let run = session.run(call(name, &arguments, &inner), None, trial.limit).await;
            trial.judge(&format!("a relative path in {name}"), Some(operation), &run);
            // A command's failure may be a result.
            let is_found = match command {
                Some(_) => run.text().contains("beta"),
                None => run.result().is_some(),
            };
            let seen = (!is_found).then(|| format!("{name}: {}", run.outcome()));
            let wanted = format!("{INNER_FILE}, which is in the working directory");
            trial.report.judge(Check::WorkingDirectory, seen, &wanted);
        }
        if let Some(argument) = command {
            found_order = true;
            let arguments = derive::with_command(good, argument, &derive::counting());
            let run = session.run(call(name, &arguments, &folder), None, trial.limit).await;
            trial.judge(&format!("a command of {name} that prints"), Some(operation), &run);
            judge_order(trial, name, &run);
        }
    }
    if !found_place {
        let why = "no operation is known to take a path or a command";
        trial.report.not_reached(Check::WorkingDirectory, why);
    }
    if !found_order {
        match operations.iter().any(Operation::is_process) {
            true => trial
                .report
                .not_reached(Check::ChunkOrder, "no operation is known to take a shell's command"),
            false => trial.report.pass_with(Check::ChunkOrder, "no operation is a process"),
        }
    }
}

fn judge_order(trial: &mut Trial, name: &str, run: &Run) {
    let stdout = run.stdout();
    if stdout.is_empty() {
        return trial
            .report
            .pass_with(Check::ChunkOrder, format!("{name} streams no output, which it may"));
    }
    let expected: Vec<String> = (0..COUNTED).map(|number| number.to_string()).collect();
    let text = String::from_utf8_lossy(&stdout);
    let is_same = text.split_whitespace().eq(expected.iter().map(String::as_str));
    let seen = (!is_same).then(|| format!("{name}: {text:?}"));
    trial.report.judge(Check::ChunkOrder, seen, "the numbers from 0 on, in order");
}

/// Calls that are declared safe, at once.
pub(super) async fn side_by_side(trial: &mut Trial, session: &Session, operations: &[Operation]) {
    let _ = trial.ground.reset();
    let folder = trial.folder();
    let is_safe = |operation: &&Operation| matches!(&operation.tool.concurrency, Some((true, keys)) if keys.is_empty());
    let mut known: Vec<(&Operation, &Payload)> = Vec::new();
    for operation in operations.iter().filter(is_safe) {
        if let Some((good, _)) = &operation.good {
            known.push((operation, good));
        }
    }
    if known.is_empty() {
        return match operations.iter().any(|operation| is_safe(&operation)) {
            true => trial
                .report
                .not_reached(Check::Concurrent, "no safe operation gave a result by itself"),
            false => {
                trial.report.pass_with(Check::Concurrent, "no operation is safe without key fields")
            }
        };
    }
    let calls = known.iter().flat_map(|(operation, good)| {
        (0..AT_ONCE).map(|number| {
            let mut sent = call(&operation.tool.name, good, &folder);
            sent.id = format!("{}-{number}", sent.id);
            session.run(sent, None, trial.limit)
        })
    });
    let runs = futures_util::future::join_all(calls).await;
    for (index, run) in runs.iter().enumerate() {
        let operation = known[index / AT_ONCE].0;
        let what = format!("{} beside others", operation.tool.name);
        trial.judge(&what, Some(operation), run);
        let seen = run.result().is_none().then(|| format!("{what}: {}", run.outcome()));
        trial.report.judge(Check::Concurrent, seen, "a result, as by itself");
    }
}
