//! A running call, shown as it goes.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;

use super::CliError;
use super::error::JsonOrigin;
use super::exit;
use super::host::Interruption;
use super::json;
use super::output::Output;
use super::paint::{Hits, Ink, StyleFilter};
use tool_provider::grpc::{ClientError, Failure, InvokeItem, ToolClient};
use tool_provider::{Call, Event, Payload};
use workspace_tools::bash::shell_read_spec;
use workspace_tools::bash::spec::{EXIT_CODE, SIGNAL};
use workspace_tools::field::{FILE, NOTICE};
use workspace_tools::grep::spec::NEXT_OFFSET;

/// For whom a call's events are written.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Format {
    Person,
    Json,
}

impl Format {
    pub(super) fn of(json: bool) -> Self {
        if json { Format::Json } else { Format::Person }
    }
}

/// How often the line is renewed that says that a call still runs.
const TICK: Duration = Duration::from_secs(1);

/// Runs the call and writes what comes, as it comes, after Ctrl-C too.
pub(super) async fn follow(
    mut client: ToolClient,
    call: Call,
    format: Format,
    output: Output,
    interruption: &Interruption,
) -> Result<ExitCode, CliError> {
    interruption.call_starts();
    let mut shown = Shown::new(&call.tool, output);
    let path = call.arguments.get(FILE.name).cloned();
    let mut stream = client.invoke(call).await?;
    let mut ticks = tokio::time::interval(TICK);
    loop {
        let item = tokio::select! {
            item = stream.next() => item.ok_or(ClientError::Unfinished)??,
            _ = ticks.tick() => {
                shown.tick(format);
                continue;
            }
        };
        if format == Format::Json {
            output.print_json(&json::item(&item).to_string())?;
        }
        match (item, format) {
            (InvokeItem::Event(event), Format::Person) => shown.event(event)?,
            (InvokeItem::Event(_), Format::Json) => {}
            (InvokeItem::Result(mut result), format) => {
                let code = exit::of_result(&result);
                if format == Format::Person {
                    // A result does not repeat it, and a person reads it above the lines.
                    if let Some(path) = path {
                        result.entry(FILE.name).or_insert(path);
                    }
                    shown.result(&mut client, &result).await?;
                }
                return Ok(code);
            }
            (InvokeItem::Failure(failure), format) => {
                match format {
                    Format::Json => {}
                    Format::Person if interruption.is_requested() => output.stopped(),
                    Format::Person => shown.failure(&failure),
                }
                return Ok(exit::of_failure(&failure));
            }
        }
    }
}

/// What a person has seen of a call.
struct Shown {
    output: Output,
    /// For standard output and standard error.
    styles: [StyleFilter; 2],
    hits: Hits,
    /// What the tool last said of its progress.
    progress: String,
    since: Instant,
}

impl Shown {
    fn new(tool: &str, output: Output) -> Self {
        Self {
            output,
            styles: Default::default(),
            hits: Hits::new(output.painter(), output.layout()),
            progress: tool.to_owned(),
            since: Instant::now(),
        }
    }

    /// A long call gets a line that says so.
    fn tick(&self, format: Format) {
        let seconds = self.since.elapsed().as_secs();
        if format == Format::Person && seconds > 0 {
            self.output.progress(&format!("{} ({seconds} s)", self.progress));
        }
    }

    fn event(&mut self, event: Event) -> Result<(), CliError> {
        match event {
            Event::Output { stream, data } => {
                self.output.relay(stream, &data, &mut self.styles[stream as usize])
            }
            Event::Progress { message, .. } => {
                self.output.progress(&message);
                self.progress = message;
                Ok(())
            }
            Event::Partial(payload) => self.found(&payload),
            // The result holds it once more.
            Event::Exit { .. } => Ok(()),
        }
    }

    fn found(&mut self, payload: &Payload) -> Result<(), CliError> {
        let text = self.hits.add(payload);
        if text.is_empty() { Ok(()) } else { self.output.print(&text) }
    }

    async fn result(&mut self, client: &mut ToolClient, result: &Payload) -> Result<(), CliError> {
        self.output.end_progress();
        if Hits::are_in(result) {
            self.found(result)?;
        } else if let Some(code) = EXIT_CODE.get(result) {
            // Its output has been shown as it came, if there was any: what reads this command's
            // output gets that of the command and nothing else.
            if code != 0 {
                let signal = SIGNAL.get(result);
                let signal = signal.map(|name| format!(" ({name})")).unwrap_or_default();
                self.output.note("exit code", Ink::Yellow, &format!("{code}{signal}"));
            }
        } else {
            let bytes = serde_json::to_vec(result).map_err(|source| CliError::Json {
                what: "result",
                origin: JsonOrigin::Elsewhere,
                source,
            })?;
            let view = client.render("json", bytes).await?;
            // The notice is part of what was rendered.
            return self.output.print(&self.output.painter().view(&view));
        }
        match self.hits.left_out() {
            0 => {}
            count => {
                let most = "--max-per-file lists more of a file";
                self.output.note(
                    "note",
                    Ink::Cyan,
                    &format!("{count} matches are left out; {most}"),
                );
            }
        }
        if let Some(next) = NEXT_OFFSET.get(result) {
            let more = format!("there is more; --offset {next} goes on, --limit lists more");
            self.output.note("note", Ink::Cyan, &more);
        }
        if let Some(changes) = shell_read_spec::in_a_line(result) {
            self.output.note("discarded", Ink::Cyan, &changes);
        }
        if let Some(notice) = NOTICE.get(result) {
            self.output.note("note", Ink::Cyan, notice);
        }
        Ok(())
    }

    fn failure(&self, failure: &Failure) {
        // Its output has been shown as it came, and is no part of this.
        self.output.note("error", Ink::Red, &failure.to_string());
        if let Some(hint) = failure.hint() {
            self.output.note("hint", Ink::Cyan, hint);
        }
    }
}
