//! The trial of one provider: what is known of it, and the rules that every answer must meet.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::time::timeout;

use super::checks::Check;
use super::derive::Shell;
use super::fixture::Fixture;
use super::processes;
use super::report::Report;
use super::runs::{self, Run, StreamOutcome};
use super::session::{Said, Session};
use super::settings::{Samples, Settings};
use super::shapes;
use crate::observe::{
    Details, ObservedError, ObservedEvent, ObservedTool, ObservedTree, Observer, Origin, Refusal,
};
use goplugin::Cookie;
use goplugin::host::{Environment, Launch, LaunchError, OutputChunk, Plugin};
use tool_provider::Payload;
use tool_provider::grpc::handshake::{COOKIE_KEY, COOKIE_VALUE, HOST_CALLBACKS, PROTOCOL_VERSION};
use tool_provider::grpc::host_callbacks_keeping;

/// By which a provider knows that a host launched it.
pub(crate) const COOKIE: Cookie = Cookie { key: COOKIE_KEY, value: COOKIE_VALUE };

pub(crate) const RESOURCE: i32 = 1;
pub(crate) const DATA_SOURCE: i32 = 2;
pub(crate) const INTERACTIVE: i32 = 3;
pub(crate) const CRITICAL: i32 = 5;

/// How long a provider may take until its line, as in go-plugin.
const START: Duration = Duration::from_secs(60);

/// The trial of one provider.
pub(crate) struct Trial {
    pub(crate) binary: PathBuf,
    pub(crate) settings: Settings,
    /// How long any one step may take before it counts as hanging.
    pub(crate) limit: Duration,
    pub(crate) fixture: Fixture,
    pub(crate) report: Report,
    /// The operations that reported an exit status.
    pub(crate) exited: BTreeSet<String>,
    /// Texts that must never come back.
    pub(crate) secrets: Vec<String>,
}

/// Whether callbacks are served to a launched provider.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Callbacks {
    Served,
    Absent,
}

/// One operation, and what is known about calling it.
pub(crate) struct Operation {
    pub(crate) tool: ObservedTool,
    pub(crate) samples: Samples,
    /// How it runs a shell's command, where it was seen to run one.
    pub(crate) shell: Option<Shell>,
    /// Whether the preview without arguments was answered by UNIMPLEMENTED.
    pub(crate) probed_without_preview: bool,
    /// Arguments with which it gave a result, and that result.
    pub(crate) good: Option<(Payload, Payload)>,
    /// Arguments with which it failed, and the failure.
    pub(crate) failing: Option<(Payload, ObservedError)>,
}

impl Operation {
    /// Whether the checker may call it on its own: nobody is there to answer a question, and what can
    /// do irreversible harm is called only as the user says.
    pub(crate) fn is_callable(&self) -> bool {
        self.tool.kind != INTERACTIVE && (self.tool.risk != CRITICAL || self.samples.good.is_some())
    }

    /// Arguments with which it runs a shell's command, where it is known how.
    pub(crate) fn commanded(&self, command: &str) -> Option<Payload> {
        let (good, _) = self.good.as_ref()?;
        Some(self.shell.as_ref()?.arguments(good, command))
    }

    /// Whether it is a child process, where that is known: as the user says, or as it was seen to run
    /// a shell's command.
    pub(crate) fn is_process(&self) -> Option<bool> {
        self.samples.process.or_else(|| self.shell.as_ref().map(|_| true))
    }
}

/// Whether a status says that the provider broke, rather than that it refuses: an unhandled error or
/// exception becomes UNKNOWN, a caught crash INTERNAL.
pub(crate) fn is_broken(refusal: &Refusal) -> bool {
    refusal.origin == Origin::Connection
        || matches!(refusal.code, "UNKNOWN" | "INTERNAL" | "UNAVAILABLE" | "DATA_LOSS")
}

impl Trial {
    /// How a host launches a provider: no arguments, and nearly nothing in the environment.
    pub(crate) fn launch(&self) -> Launch {
        self.launch_of(self.binary.clone(), COOKIE)
    }

    pub(crate) fn launch_of(&self, program: PathBuf, cookie: Cookie) -> Launch {
        let mut launch = Launch::new(program, cookie, [PROTOCOL_VERSION])
            .environment(Environment::Clear)
            .current_dir(self.fixture.work())
            .start_timeout(START)
            .env("OTEL_RESOURCE_ATTRIBUTES", "service.name=conform")
            .env("XDG_STATE_HOME", self.fixture.state_home());
        for name in ["PATH", "HOME"] {
            if let Some(value) = std::env::var_os(name) {
                launch = launch.env(name, value);
            }
        }
        for (name, value) in &self.settings.environment {
            launch = launch.env(name, value);
        }
        launch.env("TMPDIR", self.fixture.tmp())
    }

    /// Launches, and listens to everything that is said.
    pub(crate) async fn start(
        &self,
        launch: Launch,
        callbacks: Callbacks,
    ) -> Result<Session, LaunchError> {
        // What cannot be cleared is seen in the check for sockets.
        let _ = self.fixture.clear_sockets();
        let before = processes::descendants();
        let said = Said::default();
        let (logs, stray, host) = (said.logs.clone(), said.stray.clone(), said.host.clone());
        let plugin: Plugin = launch
            .on_log(move |line| logs.push([line]))
            .on_stray_output(move |bytes| stray.push(bytes.iter().copied()))
            .start()
            .await?;
        if callbacks == Callbacks::Served {
            let events = said.events.clone();
            let routes = host_callbacks_keeping(
                move |entry| host.push([entry]),
                move |event| events.push([event]),
            );
            // Without a socket for them the provider is one whose host serves none.
            let _ = plugin
                .serve_callbacks(HOST_CALLBACKS, goplugin::Services::new().with(routes))
                .await;
        }
        // As a host does: a provider that prints must not block on it. It ends with the connection.
        let (output, printed) = (plugin.output(), said.printed.clone());
        tokio::spawn(async move {
            let mut output = std::pin::pin!(output);
            while let Some(Ok(OutputChunk::Stdout(data) | OutputChunk::Stderr(data))) =
                output.next().await
            {
                printed.push(data);
            }
        });
        let observer = Observer::new(plugin.channel());
        Ok(Session { plugin, observer, said, before })
    }

    pub(crate) fn directory(&self) -> String {
        self.fixture.work().display().to_string()
    }

    /// What a call gives within the limit.
    pub(crate) async fn within<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        timeout(self.limit, work).await.ok()
    }

    pub(crate) fn no_answer(&self) -> String {
        format!("no answer within {} s", self.limit.as_secs_f32())
    }

    /// What is wrong with an answer, where something is: it was refused, or did not come.
    pub(crate) fn fault_of<T, E: std::fmt::Display>(
        &self,
        answer: Option<Result<T, E>>,
    ) -> Option<String> {
        match answer {
            Some(Ok(_)) => None,
            Some(Err(refusal)) => Some(refusal.to_string()),
            None => Some(self.no_answer()),
        }
    }

    /// Looks for secrets.
    pub(crate) fn listen(&mut self, source: &str, text: &str) {
        if self.secrets.iter().any(|secret| text.contains(secret)) {
            self.report.fail(Check::Secrets, format!("a secret in {source}"), "its absence");
        }
    }

    /// Looks at the status of a refused unary call.
    pub(crate) fn refused(&mut self, what: &str, refusal: &Refusal) {
        self.status(what, refusal);
        if refusal.origin == Origin::Connection || refusal.code == "UNIMPLEMENTED" {
            return;
        }
        let wanted = "no details, or a google.rpc.Status with the same code; a ToolError in it has a \
                      category and a message";
        let seen = match &refusal.details {
            Details::Absent => return,
            Details::Unreadable => Some("details that are no google.rpc.Status".to_owned()),
            Details::Read { same_code: false, .. } => Some("details of another code".to_owned()),
            Details::Read { error: Some(error), .. }
                if runs::category(error.category).is_none() || error.message.is_empty() =>
            {
                Some(format!("a ToolError of {}", runs::shown(error)))
            }
            Details::Read { .. } => None,
        };
        let problem = seen.map(|seen| format!("{what}: {refusal}: {seen}"));
        self.report.judge(Check::StatusDetails, problem, wanted);
        if let Details::Read { info: Some((reason, domain)), .. } = &refusal.details
            && (reason.is_empty() || domain.is_empty())
        {
            let seen = format!("{what}: an ErrorInfo of reason {reason:?} and domain {domain:?}");
            self.report.remark(Check::StatusDetails, seen, "a reason and a domain, for programs");
        }
    }

    /// Looks at the code of any status.
    fn status(&mut self, what: &str, refusal: &Refusal) {
        self.listen(what, &format!("{refusal:?}"));
        match refusal.origin {
            Origin::Provider => {
                let is_wrong = refusal.code == "UNAVAILABLE";
                let problem = is_wrong.then(|| format!("{what}: {refusal}"));
                self.report.judge(Check::Unavailable, problem, "any other code");
            }
            Origin::Connection if matches!(refusal.code, "CANCELLED" | "DEADLINE_EXCEEDED") => {}
            Origin::Connection => {
                let seen = format!("{what}: the connection broke ({})", refusal.message);
                self.report.fail(Check::Survives, seen, "an answer");
            }
        }
    }

    /// Looks at a tree; `check` is what it is held to.
    pub(crate) fn tree(&mut self, check: Check, what: &str, tree: Option<&ObservedTree>) {
        let problems = match tree {
            None => vec![format!("{what}: an answer without a tree")],
            Some(tree) => {
                self.listen(what, &tree.text);
                tree.problems.iter().map(|problem| format!("{what}: {problem}")).collect()
            }
        };
        self.report.judge(check, problems, "a well-formed RenderTree");
    }

    /// Holds a call to everything that holds for every call.
    pub(crate) fn judge(&mut self, what: &str, operation: Option<&Operation>, run: &Run) {
        self.listen(what, &run.text());
        self.judge_ending(what, run);
        self.judge_events(what, run);
        if let Some(operation) = operation {
            self.judge_operation(what, operation, run);
        }
        for event in &run.events {
            if let ObservedEvent::Error(error) = event {
                self.judge_error(what, error);
            }
        }
    }

    /// Holds a call that no host makes to what is left to ask: an answer that is no crash. A status
    /// will do.
    pub(crate) fn judge_stray(
        &mut self,
        check: Check,
        what: &str,
        operation: Option<&Operation>,
        run: &Run,
    ) {
        let wanted = "an error event, or at least a status that says what is wrong";
        if let StreamOutcome::Refused(refusal) = &run.outcome
            && run.events.is_empty()
        {
            self.refused(what, refusal);
            let seen = format!("{what}: {refusal}");
            if is_broken(refusal) {
                self.report.fail(check, seen, wanted);
            } else {
                let better = "an error event of some category: a host takes a status in its place \
                              for an unknown failure";
                self.report.weigh(check, [seen], better);
            }
            return;
        }
        self.judge(what, operation, run);
        let is_answered = run.result().is_some() || run.error().is_some();
        let seen = (!is_answered).then(|| format!("{what}: {}", run.outcome()));
        self.report.judge(check, seen, wanted);
    }

    fn judge_ending(&mut self, what: &str, run: &Run) {
        let wanted = "one result or error, and then the end of the stream";
        let is_last = |event: &&ObservedEvent| {
            matches!(event, ObservedEvent::Result(_) | ObservedEvent::Error(_))
        };
        let ends = run.events.iter().filter(is_last).count();
        match &run.outcome {
            StreamOutcome::Refused(refusal) => {
                self.status(what, refusal);
                if refusal.origin == Origin::Provider {
                    let seen = format!("{what}: {}", run.outcome());
                    let wanted =
                        "an error event with a category, then the end of the stream with OK";
                    self.report.fail(Check::Failures, seen, wanted);
                }
            }
            StreamOutcome::Open => {
                let seen = format!("{what}: {} after {} s", run.outcome(), self.limit.as_secs());
                self.report.fail(Check::OneEnd, seen, wanted);
            }
            StreamOutcome::Closed => {
                self.report.pass(Check::Failures);
                let ends_last = run.events.last().as_ref().is_some_and(is_last);
                let problem = (ends != 1 || !ends_last).then(|| {
                    format!("{what}: {} events, {ends} of them results or errors", run.events.len())
                });
                self.report.judge(Check::OneEnd, problem, wanted);
            }
        }
    }

    fn judge_events(&mut self, what: &str, run: &Run) {
        let problems = run.events.iter().filter_map(|event| match event {
            ObservedEvent::Empty => Some(format!("{what}: an event that is none")),
            ObservedEvent::Output { stream, .. } if !(1..=2).contains(stream) => {
                Some(format!("{what}: output of stream {stream}"))
            }
            ObservedEvent::Result(None) => Some(format!("{what}: a result without a payload")),
            ObservedEvent::Result(Some(Err(error))) => {
                Some(format!("{what}: a payload that is no JSON: {error}"))
            }
            _ => None,
        });
        let problems: Vec<_> = problems.collect();
        let wanted = "one of the six choices, complete: a chunk of stdout (1) or stderr (2), a result \
                      with a payload";
        self.report.judge(Check::Events, problems, wanted);
        for event in &run.events {
            if let ObservedEvent::Progress { fraction: Some(fraction), .. } = event
                && !(0.0..=1.0).contains(fraction)
            {
                let seen = format!("{what}: progress of {fraction}");
                self.report.remark(Check::Events, seen, "a fraction from 0 to 1");
            }
        }
    }

    fn judge_operation(&mut self, what: &str, operation: &Operation, run: &Run) {
        let tool = &operation.tool;
        if !tool.streaming {
            // An exit status is none of them: a process has to report it, streaming or not.
            let leads = run.events.iter().filter(|event| {
                matches!(
                    event,
                    ObservedEvent::Output { .. }
                        | ObservedEvent::Progress { .. }
                        | ObservedEvent::Partial
                )
            });
            let leads = leads.count();
            let problem = (leads > 0)
                .then(|| format!("{what}: {leads} of output_chunk, progress or partial_result"));
            let wanted = "none of these, or streaming declared true";
            self.report.judge(Check::LeadEvents, problem, wanted);
        }
        let exits =
            run.events.iter().filter(|event| matches!(event, ObservedEvent::Exit { .. })).count();
        if exits > 0 {
            self.exited.insert(tool.name.clone());
        }
        let is_result = run.result().is_some();
        let problem = match (operation.is_process(), exits) {
            (Some(false), 1..) => Some("an exit status, of what is no process"),
            (Some(true), 0) if is_result => Some("a result without an exit status"),
            (_, 2..) => Some("more than one exit status"),
            _ => None,
        };
        let problem = problem.map(|problem| format!("{what}: {problem}"));
        let wanted = "exactly one from a child process, none from anything else (calls.NAME.process \
                      in --config says which it is)";
        self.report.judge(Check::ExitStatus, problem, wanted);
        if let (Some(payload), Some(shape)) = (run.result(), &tool.output) {
            let misfits = shapes::misfits(shape, payload);
            let problems = misfits.into_iter().map(|misfit| format!("{what}: {misfit}"));
            self.report.judge(Check::OutputSchema, problems, "what output_schema says");
        }
    }

    fn judge_error(&mut self, what: &str, error: &ObservedError) {
        let known = runs::category(error.category).is_some();
        let problem = (!known).then(|| format!("{what}: category {}", error.category));
        self.report.judge(Check::ErrorCategory, problem, "one of the taxonomy's nine");
        let problem = error.message.trim().is_empty().then(|| format!("{what}: no message"));
        self.report.judge(Check::ErrorMessage, problem, "what went wrong");
        if let Some(name) = said_in_details_alone(error) {
            let seen = format!("{what}: {} says nothing of details.{name}", runs::shown(error));
            let better = "all that helps in the message, since a host shows its model nothing else";
            self.report.remark(Check::ErrorMessage, seen, better);
        }
        let problem = (error.category == runs::PROCESS_CRASHED)
            .then(|| format!("{what}: {}", runs::shown(error)));
        self.report.judge(Check::ProcessCrashed, problem, "another category");
        let has_details = error.details.as_ref().is_some_and(|details| !details.is_empty());
        let problem = (error.category == runs::UNKNOWN && !has_details)
            .then(|| format!("{what}: {} without details", runs::shown(error)));
        self.report.judge(Check::UnknownDetails, problem, "the raw error in details");
    }
}

/// A field of the details that says something, where the message holds nothing of what they say. A text
/// that is no sentence, such as a path, may be for programs, and so may the raw error of an unknown
/// failure.
fn said_in_details_alone(error: &ObservedError) -> Option<&str> {
    if error.category == runs::UNKNOWN {
        return None;
    }
    let sentences = || {
        let texts = error
            .details
            .iter()
            .flatten()
            .filter_map(|(name, value)| Some((name.as_str(), value.as_str()?.trim())));
        texts.filter(|(_, text)| text.split_whitespace().count() >= 3)
    };
    let is_said = |text: &str| {
        let last = text.lines().next_back().unwrap_or_default();
        error.message.contains(last.trim())
    };
    match sentences().any(|(_, text)| is_said(text)) {
        true => None,
        false => sentences().next().map(|(name, _)| name),
    }
}
