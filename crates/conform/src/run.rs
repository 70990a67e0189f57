//! From the command line to the report.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::json;
use signal_hook::consts::SIGINT;

use super::args::Options;
use super::checks::Check;
use super::fixture::Fixture;
use super::report::{Report, Selection};
use super::settings::Settings;
use super::trial::Trial;
use super::{paint, probes, processes};
use goplugin::Signals;
use provider_workspace::cli::{CliError, INTERRUPTED, Ink, Output};
use tool_provider::error::chain;

/// How long what was left running may take to be gone once it is killed.
const LAST_SWEEP: Duration = Duration::from_secs(2);

/// The exit code where the binary could not be tested.
const UNTESTABLE: u8 = 2;

/// Checks a provider. The exit code is 0 when nothing failed, however much was not reached; 1 when
/// something failed; 2 when the binary could not be tested.
pub(crate) async fn run(options: Options, output: Output) -> Result<ExitCode, CliError> {
    match tried(&options, output).await {
        Ok(report) => {
            let failed = report.counts().failed > 0;
            let text = if options.json {
                format!("{:#}\n", report.as_json(&options.binary.display().to_string()))
            } else {
                paint::text(&report, output.paint(), output.escape())
            };
            output.print(&text)?;
            Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
        }
        Err(Ended::Interrupted) => Ok(ExitCode::from(INTERRUPTED)),
        Err(Ended::Untestable(why)) => {
            if options.json {
                let binary = options.binary.display().to_string();
                output.print(&format!("{:#}\n", json!({"binary": binary, "untestable": why})))?;
            } else {
                output.note("could not be tested", Ink::Red, &why);
            }
            Ok(ExitCode::from(UNTESTABLE))
        }
    }
}

/// Why there is no report.
enum Ended {
    Untestable(String),
    Interrupted,
}

async fn tried(options: &Options, output: Output) -> Result<Report, Ended> {
    let mut trial = prepared(options).map_err(Ended::Untestable)?;
    let mut interrupts = Signals::take(&[SIGINT])
        .map_err(|error| Ended::Untestable(format!("Ctrl-C cannot be listened for: {error}")))?;
    output.progress("checking…");
    let ended = tokio::select! {
        ended = probes::all(&mut trial) => {
            ended.map_err(|error| Ended::Untestable(chain(&error)))
        }
        () = interrupts.recv() => Err(Ended::Interrupted),
    };
    // Nothing that was started outlives the trial, however it ended.
    processes::kill_all(LAST_SWEEP).await;
    ended.map(|()| trial.report)
}

fn prepared(options: &Options) -> Result<Trial, String> {
    let selection = Selection { only: options.only.clone(), skip: options.skip.clone() };
    if let Some(slip) = selection.slip() {
        return Err(format!(
            "no check's id begins with {slip:?}; all begin with one of {}",
            Check::groups().join(", ")
        ));
    }
    let fixture =
        Fixture::new().map_err(|error| format!("no folder to try it on can be made: {error}"))?;
    let folder = fixture.work().display().to_string();
    let settings = match &options.config {
        Some(file) => Settings::read(file, &folder).map_err(|error| error.to_string())?,
        None => Settings::default(),
    };
    // It is started in another folder than this one.
    let binary = std::path::absolute(&options.binary)
        .map_err(|error| format!("{}: {error}", options.binary.display()))?;
    processes::adopt_orphans()
        .map_err(|error| format!("orphans cannot be watched for: {error}"))?;
    let report = Report::new(selection);
    Ok(Trial {
        binary,
        settings,
        limit: options.limit,
        fixture,
        report,
        exited: BTreeSet::new(),
        secrets: Vec::new(),
    })
}
