//! Ordinary calls.

use serde_json::Value;

use super::super::checks::Check;
use super::super::derive::{self, COUNTED, Shell};
use super::super::fixture::{INNER, INNER_FILE};
use super::super::runs::{self, Run};
use super::super::session::{Session, call};
use super::super::trial::{DATA_SOURCE, INTERACTIVE, Operation, RESOURCE, Trial};
use crate::observe::ObservedEvent;
use tool_provider::Payload;

/// What a program exits with that has to be reported.
const EXIT_CODE: i32 = 7;

/// How many calls of an operation run at once.
const AT_ONCE: usize = 4;

/// A call before there is a configuration.
pub(super) async fn unconfigured(trial: &mut Trial, session: &Session, operations: &[Operation]) {
    if !trial.report.wants(&[Check::Unconfigured]) {
        return;
    }
    let directory = trial.directory();
    let Some(operation) = operations.iter().find(|operation| operation.is_callable()) else {
        let why = "there is no operation that the checker may call";
        return trial.report.not_reached(Check::Unconfigured, why);
    };
    let arguments = candidates(operation, &directory).swap_remove(0);
    let sent = call(&operation.tool.name, &arguments, &directory);
    let run = session.run(sent, None, trial.limit).await;
    let what = format!("{} before Configure", operation.tool.name);
    trial.judge_stray(Check::Unconfigured, &what, Some(operation), &run);
}

/// Finds arguments with which each operation succeeds, and some with which it fails.
pub(super) async fn learn(trial: &mut Trial, session: &Session, operations: &mut [Operation]) {
    let directory = trial.directory();
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
        let (mut outcome, mut is_absent) = (String::new(), false);
        for arguments in candidates(operation, &directory) {
            let run = settled(trial, session, operation, &arguments).await;
            if let Some(result) = run.result() {
                operation.good = Some((arguments, result.clone()));
                break;
            }
            outcome = run.outcome();
            is_absent = run.error().is_some_and(|error| error.category == runs::NOT_FOUND);
        }
        if operation.good.is_some() {
            again(trial, session, operation).await;
        } else {
            let why =
                format!("{name} gave no result but {outcome}; give calls.{name}.good in --config");
            // Nobody can guess the name of what another operation has to make before.
            if is_absent {
                trial.report.not_reached_unless_tried(Check::OutputSchema, &why);
            } else {
                trial.report.not_reached(Check::OutputSchema, why);
            }
        }
        learn_shell(trial, session, operation).await;
        if let Some(arguments) = failing(operation, &directory) {
            let run = settled(trial, session, operation, &arguments).await;
            operation.failing = run.error().map(|error| (arguments, error.clone()));
            let is_file = operation.samples.failing.is_none();
            if let Some((arguments, error)) = &operation.failing
                && is_file
                && error.category == runs::UNKNOWN
            {
                let seen = format!("{name} {}: {}", shown(arguments), runs::shown(error));
                let better = "not_found, which is what the taxonomy calls a path that is not there";
                trial.report.remark(Check::ErrorCategory, seen, better);
            }
        }
    }
    for operation in operations.iter().filter(|operation| operation.is_process().is_none()) {
        let name = &operation.tool.name;
        if trial.exited.contains(name) {
            let note = format!(
                "{name} reports an exit status and so is taken for a child process \
                 (calls.{name}.process in --config says)"
            );
            trial.report.pass_with(Check::ExitStatus, note);
        }
    }
    if operations.iter().all(|operation| operation.tool.kind != DATA_SOURCE) {
        trial.report.pass_with(Check::ReadOnly, "there is no data source");
    }
    let is_idempotent = |one: &Operation| one.tool.kind == RESOURCE && one.tool.idempotent;
    match operations.iter().any(is_idempotent) {
        true => {
            let why = "no resource that is idempotent gave a result";
            trial.report.not_reached_unless_tried(Check::Idempotent, why);
        }
        false => {
            trial.report.pass_with(Check::Idempotent, "no resource says that it is idempotent")
        }
    }
    if operations.iter().all(|operation| operation.tool.streaming) {
        trial.report.pass_with(Check::LeadEvents, "every operation streams");
    }
}

/// A call once more, of a resource that says that this makes no difference.
async fn again(trial: &mut Trial, session: &Session, operation: &Operation) {
    let Some((good, _)) = &operation.good else { return };
    if operation.tool.kind != RESOURCE || !operation.tool.idempotent {
        return;
    }
    let once = trial.fixture.state();
    let what = format!("{} {} once more", operation.tool.name, shown(good));
    let sent = call(&operation.tool.name, good, &trial.directory());
    let run = session.run(sent, None, trial.limit).await;
    trial.judge(&what, Some(operation), &run);
    match (once, trial.fixture.state()) {
        (Ok(once), Ok(twice)) => {
            let differences = once.differences(&twice);
            let seen = differences.into_iter().map(|path| format!("{what}: {path} is another"));
            let wanted = "the directory as it was after the first, or idempotent = false";
            trial.report.judge(Check::Idempotent, seen, wanted);
        }
        (Err(error), _) | (_, Err(error)) => {
            trial.report.not_reached(Check::Idempotent, error.to_string());
        }
    }
}

/// Sees whether an operation that looks so runs a shell's command, and holds it to what it exits with.
async fn learn_shell(trial: &mut Trial, session: &Session, operation: &mut Operation) {
    let Some((good, _)) = &operation.good else { return };
    let Some(shell) = operation.tool.input.as_ref().and_then(Shell::of) else { return };
    let computing = shell.arguments(good, derive::COMPUTING);
    let exiting = shell.arguments(good, &format!("exit {EXIT_CODE}"));
    let run = settled(trial, session, operation, &computing).await;
    if !run.text().contains(derive::COMPUTED) {
        return;
    }
    operation.shell = Some(shell);
    if operation.is_process() != Some(true) {
        return trial.report.pass_with(Check::ExitCode, "no operation is known to be a process");
    }
    let run = settled(trial, session, operation, &exiting).await;
    let what = format!("{} {}", operation.tool.name, shown(&exiting));
    let mut exits = run.events.iter().filter_map(|event| match event {
        ObservedEvent::Exit { code } => Some(*code),
        _ => None,
    });
    match exits.next() {
        Some(EXIT_CODE) => trial.report.pass(Check::ExitCode),
        Some(code) => {
            let seen = format!("{what}: exit_code {code}");
            trial.report.fail(Check::ExitCode, seen, format!("exit_code {EXIT_CODE}"));
        }
        None => {
            let seen = format!("{what}: {}, and no exit status", run.outcome());
            trial.report.fail(Check::ExitStatus, seen, "an exit status before the end");
        }
    }
}

/// Runs a call on a fresh fixture, checks what holds for every call, and looks at what it changed.
async fn settled(
    trial: &mut Trial,
    session: &Session,
    operation: &Operation,
    arguments: &Payload,
) -> Run {
    let directory = trial.directory();
    let what = format!("{} {}", operation.tool.name, shown(arguments));
    let before = trial.fixture.reset().and_then(|()| trial.fixture.state());
    let deadline = operation.tool.default_timeout.and_then(|(seconds, nanos)| {
        Some(std::time::Duration::new(seconds.try_into().ok()?, nanos.try_into().ok()?))
    });
    let sent = call(&operation.tool.name, arguments, &directory);
    let run = session.run(sent, deadline, trial.limit).await;
    trial.judge(&what, Some(operation), &run);
    if operation.tool.kind == DATA_SOURCE {
        match (before, trial.fixture.state()) {
            (Ok(before), Ok(after)) => {
                let changes = before.changes(&after);
                let problems = changes.into_iter().map(|change| format!("{what}: {change}"));
                trial.report.judge(Check::ReadOnly, problems, "the directory as it was");
            }
            (Err(error), _) | (_, Err(error)) => {
                trial.report.not_reached(Check::ReadOnly, error.to_string());
            }
        }
    }
    run
}

/// Arguments that may succeed.
fn candidates(operation: &Operation, directory: &str) -> Vec<Payload> {
    match (&operation.samples.good, &operation.tool.input) {
        (Some(good), _) => vec![good.clone()],
        (None, Some(input)) => derive::arguments(input, directory),
        (None, None) => vec![Payload::new()],
    }
}

/// Arguments that fit the schema and should fail.
fn failing(operation: &Operation, directory: &str) -> Option<Payload> {
    operation.samples.failing.clone().or_else(|| {
        let (good, _) = operation.good.as_ref()?;
        derive::with_file(good, directory, &format!("{directory}/no-such-directory/no-such-file"))
    })
}

/// Arguments as JSON.
pub(super) fn shown(arguments: &Payload) -> String {
    Value::Object(arguments.clone()).to_string()
}

/// Where a call runs, and in which order its output comes.
pub(super) async fn confinement(trial: &mut Trial, session: &Session, operations: &[Operation]) {
    // A failed reset shows in what the calls find.
    let _ = trial.fixture.reset();
    let directory = trial.directory();
    let inner = format!("{directory}/{INNER}");
    let mut found_path = false;
    let mut found_order = false;
    for operation in operations {
        let Some((good, _)) = &operation.good else { continue };
        let name = &operation.tool.name;
        let command = operation.commanded(&format!("cat {INNER_FILE}"));
        let is_command = command.is_some();
        // A data source takes a path where it finds a file that is there, and no other.
        let takes_path = operation.tool.kind == DATA_SOURCE && operation.failing.is_some();
        let relative = match command {
            None if takes_path => derive::with_file(good, &directory, INNER_FILE),
            command => command,
        };
        if let Some(arguments) = relative {
            found_path = true;
            let run = session.run(call(name, &arguments, &inner), None, trial.limit).await;
            let what = format!("{name} {} in {inner}", shown(&arguments));
            trial.judge(&what, Some(operation), &run);
            // A command's failure may be a result.
            let is_found = match is_command {
                true => run.text().contains("beta"),
                false => run.result().is_some(),
            };
            let seen = (!is_found).then(|| format!("{what}: {}", run.outcome()));
            let wanted = format!("{INNER_FILE}, which is in call_context.working_directory");
            trial.report.judge(Check::WorkingDirectory, seen, &wanted);
        }
        if let Some(arguments) = operation.commanded(&derive::counting()) {
            found_order = true;
            let run = session.run(call(name, &arguments, &directory), None, trial.limit).await;
            trial.judge(&format!("a command of {name} that prints"), Some(operation), &run);
            judge_order(trial, name, &run);
        }
    }
    if !found_path {
        let why = "no operation is known to take a path or a command";
        trial.report.not_reached(Check::WorkingDirectory, why);
    }
    if !found_order {
        // Whatever is a process, or streams, may have an order to keep.
        let is_one =
            |one: &Operation| one.is_process().unwrap_or(one.tool.streaming) && one.is_callable();
        for check in [Check::ChunkOrder, Check::ExitCode] {
            match operations.iter().any(is_one) {
                true => {
                    let why = "no operation was seen to run a shell's command";
                    trial.report.not_reached(check, why);
                }
                false => trial.report.pass_with(check, "no operation is known to be a process"),
            }
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
    // What is left out of a stream breaks no order; what is between the numbers is none of them.
    let text = String::from_utf8_lossy(&stdout);
    let numbers = text.split_whitespace().filter_map(|word| word.parse::<usize>().ok());
    let numbers: Vec<usize> = numbers.collect();
    let seen = (!numbers.is_sorted()).then(|| format!("{name}: {text:?}"));
    let wanted = "the numbers from 0 on in the order in which the program printed them";
    trial.report.judge(Check::ChunkOrder, seen, wanted);
    if numbers.len() < COUNTED {
        let seen = format!("{name}: {} of {COUNTED} lines were streamed", numbers.len());
        trial.report.remark(Check::ChunkOrder, seen, "all that is printed, or none");
    }
}

/// Calls that are declared safe, at once.
pub(super) async fn side_by_side(trial: &mut Trial, session: &Session, operations: &[Operation]) {
    let _ = trial.fixture.reset();
    let directory = trial.directory();
    // Another call with the same arguments may rightly fail after one that changed something.
    let is_safe = |operation: &&Operation| {
        let tool = &operation.tool;
        (tool.kind == DATA_SOURCE || tool.idempotent)
            && matches!(&tool.concurrency, Some((true, keys)) if keys.is_empty())
    };
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
                let note = "no data source or idempotent operation is safe without key fields";
                trial.report.pass_with(Check::Concurrent, note);
            }
        };
    }
    let calls = known.iter().flat_map(|(operation, good)| {
        (0..AT_ONCE).map(|number| {
            let mut sent = call(&operation.tool.name, good, &directory);
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
        let may_try_again = run
            .error()
            .is_some_and(|error| error.retryable && error.category != runs::CONCURRENCY_CONFLICT);
        if may_try_again {
            let better = "a result, as by itself; a host runs as many at once as a model asks for";
            trial.report.weigh(Check::Concurrent, seen, better);
        } else {
            trial.report.judge(Check::Concurrent, seen, "a result, as by itself");
        }
    }
}
