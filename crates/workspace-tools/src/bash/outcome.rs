//! What is reported of a command that has ended: its events, its result, its error.

use std::path::Path;
use std::time::{Duration, Instant};

use sandbox::{Access, Changes, ExitStatus, Jail, Subject, Surroundings};
use serde_json::Value;

use super::shell_read::notice::{WithoutEffects, of_discarding};
use super::shell_read::spec::WOULD_CHANGE;
use super::shell_read::would_change;
use super::{Arguments, BashSettings, directory, notice, spec};
use crate::Context;
use crate::field::NOTICE;
use crate::process::outside;
use crate::process::{
    Budget, Finished, FullOutput, StopCause, StopSignal, Stopped, TimeLimit, Unreported,
    signal_name,
};
use tool_provider::error::chain;
use tool_provider::shorten::shorten_masked;
use tool_provider::{EmitError, Event, Payload, ToolError};
use workspace_fs::text::name;

/// How much of a command the report of its end carries: enough to recognise it.
const COMMAND_BYTES: usize = 2000;

/// How long one attempt to hand over a last event may take before a cancel is looked at.
const ATTEMPT: Duration = Duration::from_millis(20);

/// How long the last events of a call that was ended may wait for space in the queue.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// A command that was started and has ended, with everything that is known of it.
pub(super) struct RunReport<'a> {
    pub(super) settings: &'a BashSettings,
    pub(super) jail: &'a Jail,
    pub(super) arguments: &'a Arguments<'a>,
    pub(super) cwd: &'a Path,
    /// The shell that ran it.
    pub(super) shell: &'a Path,
    pub(super) budget: Budget,
    pub(super) finished: Finished,
    pub(super) surroundings: Surroundings,
    /// What became of protected places.
    pub(super) protected: super::protect::Protected,
    /// What is to be said of the configuration.
    pub(super) warnings: Vec<String>,
}

impl RunReport<'_> {
    /// Sends the last events and makes the call's outcome.
    pub(super) fn finish(self, context: &Context<'_>) -> Result<Payload, ToolError> {
        let deadline = match self.finished.stopped {
            None => self.budget.time_up + self.budget.grace,
            Some(_) => Instant::now() + LAST_WORDS,
        };
        if let Ok(end) = &self.finished.end {
            emit_last(context, &exit_event(end.status), deadline);
        }
        match (self.finished.stopped, &self.finished.end) {
            (Some(Stopped { cause: StopCause::Cancelled, signal }), _) => {
                Err(self.cancelled(context, signal, deadline))
            }
            (Some(Stopped { cause: StopCause::TimeUp, signal }), _) => {
                Err(self.timed_out(context, signal))
            }
            // Too late to stop anything, and still no success.
            (None, _) if context.cancel.is_cancelled() => {
                Err(self.cancelled(context, StopSignal::None, deadline))
            }
            (None, Ok(_)) => Ok(self.payload(context)),
            (None, Err(lost)) => {
                let error =
                    ToolError::unknown("it is not known how the command ended", chain(lost));
                Err(error.with_so_far(self.so_far(context)))
            }
        }
    }

    /// The result's payload, as far as its fields are known. What the call said itself, and what is
    /// as usual, is no part of it: a model reads it again at every later turn.
    fn payload(&self, context: &Context<'_>) -> Payload {
        let finished = &self.finished;
        let mut payload = Payload::new();
        let to = &mut payload;
        spec::OUTPUT.put(to, finished.output.text.as_str());
        if let Ok(end) = &finished.end {
            spec::EXIT_CODE.put(to, end.status.shell_code());
            if let ExitStatus::Signaled(signal) = end.status {
                spec::SIGNAL.put(to, signal_name(signal));
            }
        }
        spec::FULL_OUTPUT_PATH.put_some(to, self.full_output_path());
        let changes = self.changes().and_then(|changes| would_change::of(changes, self.cwd));
        WOULD_CHANGE.put_some(to, changes);
        NOTICE.put_some(to, self.notice(context));
        payload
    }

    /// What a program is told of a command that was ended: the payload, and all that was counted.
    fn so_far(&self, context: &Context<'_>) -> Payload {
        let finished = &self.finished;
        let mut report = self.payload(context);
        let to = &mut report;
        spec::COMMAND.put(to, self.command(context));
        spec::STDOUT_BYTES.put(to, finished.stdout_bytes);
        spec::STDERR_BYTES.put(to, finished.stderr_bytes);
        spec::TRUNCATED.put(to, finished.output.left_out > 0);
        spec::DURATION_MS.put(to, milliseconds(finished.duration));
        spec::CWD.put(to, name::of(self.cwd));
        if let Ok(end) = &finished.end {
            spec::PROCESSES_KILLED.put(to, end.processes_killed);
        }
        report
    }

    fn changes(&self) -> Option<&Changes> {
        self.finished.end.as_ref().ok()?.changes.as_ref()
    }

    fn full_output_path(&self) -> Option<String> {
        match self.finished.output.full.as_ref()? {
            FullOutput::Complete(path) | FullOutput::Beginning { path, .. } => {
                Some(name::of(path).into_owned())
            }
            FullOutput::Failed(_) => None,
        }
    }

    /// What a message adds to `what`, which has no fields beside it.
    fn alone(&self, what: &str) -> String {
        let path = self.full_output_path();
        let notice = notice::of_full_output(self.finished.output.full.as_ref());
        let path = path.map(|path| format!("full_output_path: {path}"));
        [Some(what.to_owned()), path, notice].into_iter().flatten().collect::<Vec<_>>().join("\n")
    }

    fn command(&self, context: &Context<'_>) -> String {
        shorten_masked(self.arguments.command, COMMAND_BYTES, context.secrets)
    }

    fn notice(&self, context: &Context<'_>) -> Option<String> {
        let mut notices = self.warnings.clone();
        if let Some(first) = self.settings.shells.first()
            && first != self.shell
        {
            notices.push(format!(
                "{} ran the command, because {} cannot be run",
                name::of(self.shell),
                name::of(first)
            ));
        }
        if let Ok(end) = &self.finished.end
            && self.finished.stopped.is_none()
        {
            let git_directory = match end.status {
                ExitStatus::Exited(0) => None,
                _ if self.surroundings == Surroundings::ThrowAway => None,
                _ => directory::git_directory_outside(context, self.cwd).filter(|directory| {
                    self.jail.explain(Subject::Command, Access::Write, directory).is_some()
                }),
            };
            let mounts = notice::mounts(self.jail, &self.settings.policy);
            let operators_home = outside::home();
            let without_effects = WithoutEffects(self.jail);
            let reasons: &dyn notice::Reasons = match self.surroundings {
                Surroundings::ThrowAway => &without_effects,
                Surroundings::Shared => self.jail,
            };
            notices.extend(notice::of_end(&notice::Facts {
                status: end.status,
                limit: end.limit,
                max_rss_bytes: end.max_rss_bytes,
                command: self.arguments.command,
                output: &self.finished.output.text,
                cwd: self.cwd,
                search_path: self.settings.environment.search_path(),
                reasons,
                limits: self.settings.policy.limits,
                read_only_roots: &self.settings.policy.read_only_roots,
                mounts: &mounts,
                home: operators_home.as_deref(),
                git_directory: git_directory.as_deref(),
                sought_network: end.sought_network,
            }));
            if self.surroundings == Surroundings::ThrowAway {
                notices.extend(of_discarding(
                    end.changes.as_ref(),
                    self.arguments.command,
                    &self.finished.output.text,
                    end.status,
                ));
            }
            notices.extend(notice::of_leftovers(
                end.processes_killed,
                end.left_running(),
                self.arguments.command,
                context.secrets,
            ));
        }
        let status = self.finished.end.as_ref().ok().map(|end| end.status);
        notices.extend(self.protected.notices(
            status,
            self.arguments.command,
            &self.finished.output.text,
        ));
        notices.extend(notice::of_full_output(self.finished.output.full.as_ref()));
        (!notices.is_empty()).then(|| notices.join("\n"))
    }

    fn timed_out(&self, context: &Context<'_>, signal: StopSignal) -> ToolError {
        let (limit, hint) = match self.budget.limit {
            TimeLimit::Timeout => (
                format!("its timeout of {} ms", self.arguments.timeout.as_millis()),
                format!(
                    "give a larger timeout_ms (at most {}) if it needs more time; session_start, where you \
                     have it, is for what runs on: a server, a watcher, an editor",
                    self.settings.max_timeout.as_millis()
                ),
            ),
            TimeLimit::Deadline => (
                "the host's deadline".to_owned(),
                "the host allowed less time than the call's timeout_ms".to_owned(),
            ),
        };
        let how = match &self.finished.end {
            Ok(_) => format!("was ended with {}", signal.names().join(" and ")),
            Err(Unreported::Stuck(_)) => {
                "was sent SIGKILL, and the system has not taken it away yet".to_owned()
            }
            Err(lost) => format!("was sent {}; {lost}", signal.names().join(" and ")),
        };
        let waiting = self.finished.end.as_ref().ok().and_then(|end| end.waiting);
        // More time would not help what waits for input, or for a network that is closed.
        let output = &self.finished.output.text;
        let sought = self.finished.end.as_ref().ok().and_then(|end| end.sought_network);
        let ended = notice::network::Ended::TimeUp;
        let network =
            || notice::of_network(self.jail, ended, sought, self.arguments.command, output);
        let waits = waiting.map(|waiting| notice::of_waiting(waiting, context.secrets));
        let hint = waits.or_else(network).unwrap_or(hint);
        let message = format!("the command was still running at {limit} and {how}");
        ToolError::timeout(self.alone(&message))
            .after_effects()
            .with_hint(hint)
            .with_so_far(self.so_far(context))
            .with_detail("signals_sent", signal.names())
    }

    /// A cancel is reported three times, since the stream may take none of it: as a last partial
    /// result, as the error's details, and in the log.
    fn cancelled(&self, context: &Context<'_>, signal: StopSignal, deadline: Instant) -> ToolError {
        let finished = &self.finished;
        let killed = finished.end.as_ref().ok().map(|end| end.processes_killed);
        let what = match (signal, &finished.end) {
            (StopSignal::None, _) => "the command had already ended when the call was cancelled",
            (_, Ok(_)) => "the command was ended because the call was cancelled",
            (_, Err(_)) => "the command was sent SIGKILL because the call was cancelled",
        };
        tracing::warn!(
            command = self.command(context),
            streamed_stdout_bytes = finished.streamed_stdout_bytes,
            streamed_stderr_bytes = finished.streamed_stderr_bytes,
            unstreamed_bytes = finished.unstreamed_bytes,
            signals_sent = signal.names().join(" "),
            processes_killed = killed,
            exit_code = finished.end.as_ref().ok().map(|end| end.status.shell_code()),
            "{what}",
        );
        let mut partial = self.so_far(context);
        let mut add = |name: &str, value: Value| partial.insert(name.to_owned(), value);
        add("cancelled", true.into());
        add("signals_sent", signal.names().into());
        add("streamed_stdout_bytes", finished.streamed_stdout_bytes.into());
        add("streamed_stderr_bytes", finished.streamed_stderr_bytes.into());
        emit_last(context, &Event::Partial(partial.clone()), deadline);
        ToolError::cancelled(self.alone(what)).logged().with_so_far(partial)
    }
}

/// Hands over one of a call's last events, and waits for space until `deadline`, unless the call is
/// cancelled meanwhile.
fn emit_last(context: &Context<'_>, event: &Event, deadline: Instant) {
    loop {
        let attempt = deadline.min(Instant::now() + ATTEMPT);
        match context.sink.emit_until(event.clone(), Some(attempt)) {
            Err(EmitError::TimedOut) if attempt < deadline && !context.cancel.is_cancelled() => {}
            _ => return,
        }
    }
}

fn exit_event(status: ExitStatus) -> Event {
    let signal = match status {
        ExitStatus::Exited(_) => None,
        ExitStatus::Signaled(signal) => Some(signal_name(signal)),
    };
    Event::Exit { code: status.shell_code(), signal }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
