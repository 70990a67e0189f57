//! From the command line to the report.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal as _, Write as _};
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
use tool_provider::error::chain;

/// How long what was left running may take to be gone once it is killed.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);

/// How much later than what it ended an interrupt may be seen.
const SAME_MOMENT: Duration = Duration::from_millis(50);

/// The exit code where the binary could not be tested.
const UNTESTABLE: u8 = 2;

/// The exit codes of programs that SIGINT and SIGPIPE end: 128 and the signal's number.
const INTERRUPTED: u8 = 130;
const READER_GONE: u8 = 141;

/// Checks a provider. The exit code is 0 when nothing failed, however much was not reached; 1 when
/// something failed; 2 when the binary could not be tested.
pub(crate) async fn run(options: &Options) -> ExitCode {
    paint::choose_colours(options.color);
    let (written, code) = match tried(options).await {
        Ok(report) => (print_report(&report, options), u8::from(report.counts().failed > 0)),
        Err(StopReason::Interrupted) => (Ok(()), INTERRUPTED),
        Err(StopReason::Untestable(why)) => (print_untestable(&why, options), UNTESTABLE),
    };
    match written {
        Ok(()) => ExitCode::from(code),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::from(READER_GONE),
        Err(error) => {
            // Where standard error is gone, too, the exit code has to do.
            let _ = writeln!(io::stderr(), "cannot write the report: {error}");
            ExitCode::from(UNTESTABLE)
        }
    }
}

fn print_report(report: &Report, options: &Options) -> io::Result<()> {
    if options.json {
        let binary = options.binary.display().to_string();
        writeln!(io::stdout(), "{}", paint::json(&report.as_json(&binary)))
    } else {
        anstream::stdout().write_all(paint::text(report).as_bytes())
    }
}

fn print_untestable(why: &str, options: &Options) -> io::Result<()> {
    if options.json {
        let binary = options.binary.display().to_string();
        let report = json!({"binary": binary, "untestable": why});
        writeln!(io::stdout(), "{}", paint::json(&report))
    } else {
        anstream::stderr().write_all(paint::untestable(why).as_bytes())
    }
}

/// Why there is no report.
enum StopReason {
    Untestable(String),
    Interrupted,
}

async fn tried(options: &Options) -> Result<Report, StopReason> {
    let mut trial = prepared(options).map_err(StopReason::Untestable)?;
    let mut interrupts = Signals::take(&[SIGINT]).map_err(|error| {
        StopReason::Untestable(format!("Ctrl-C cannot be listened for: {error}"))
    })?;
    show_progress("checking…");
    let ended = tokio::select! {
        ended = probes::all(&mut trial) => {
            ended.map_err(|error| StopReason::Untestable(chain(&error)))
        }
        () = interrupts.recv() => Err(StopReason::Interrupted),
    };
    // Ctrl-C reaches what is on the terminal with this program too, whose end may be seen first.
    let ended = match ended {
        Err(StopReason::Untestable(_))
            if tokio::time::timeout(SAME_MOMENT, interrupts.recv()).await.is_ok() =>
        {
            Err(StopReason::Interrupted)
        }
        ended => ended,
    };
    // Nothing that was started outlives the trial, however it ended.
    processes::kill_all(KILL_TIMEOUT).await;
    show_progress("");
    ended.map(|()| trial.report)
}

/// Replaces the line on the terminal that says what goes on, where somebody watches.
fn show_progress(line: &str) {
    if io::stderr().is_terminal() {
        // A line of progress that is lost is no loss.
        let _ = write!(io::stderr(), "\r\x1b[K{line}");
    }
}

fn prepared(options: &Options) -> Result<Trial, String> {
    let selection = Selection { only: options.only.clone(), skip: options.skip.clone() };
    if let Some(slip) = selection.slip() {
        return Err(format!(
            "no check's id begins with {slip:?}; all begin with one of {}",
            Check::groups().join(", ")
        ));
    }
    let fixture = Fixture::new()
        .map_err(|error| format!("no directory to try it on can be made: {error}"))?;
    let directory = fixture.work().display().to_string();
    let settings = match &options.config {
        Some(file) => Settings::read(file, &directory).map_err(|error| error.to_string())?,
        None => Settings::default(),
    };
    // It is started in another directory than this one.
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
