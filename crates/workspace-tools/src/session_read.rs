//! session_read: what a session printed, and how it stands.

use std::sync::Arc;

use serde_json::Value;

use crate::shell_session::answer::{Shown, add_notice, answer, state};
use crate::shell_session::ports::listed;
use crate::shell_session::watch::{Asks, Met, Until, Wanted, look, watch};
use crate::shell_session::{
    Entry, ShellSessions, deadline, fields, regex, show, wait, wake_on_cancel,
};
use crate::{Context, Files};
use tool_provider::view::View;
use tool_provider::{Payload, Tool, ToolError, ToolSpec};

pub mod spec;

const NAME: &str = "session_read";

/// How much is shown of a session where nothing says from where, in bytes.
const LAST_BYTES: u64 = 8 * 1024;

/// How long a call waits for a pattern that does not say how long.
const WAIT_FOR_PATTERN_MS: u64 = 10_000;

/// What is said where until could not look at all that it was asked to.
const UNSEEN: &str = "until sees the last 1 MiB only: grep full_output_path for what came before";

/// The tool.
pub struct SessionRead {
    shared: Arc<ShellSessions>,
    spec: ToolSpec,
}

impl SessionRead {
    /// The tool over these sessions.
    #[must_use]
    pub fn new(shared: Arc<ShellSessions>) -> Self {
        Self { shared, spec: spec::spec() }
    }
}

impl Tool<Files> for SessionRead {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, arguments: &Payload, context: &Context<'_>) -> Result<Payload, ToolError> {
        let shared = &*self.shared;
        let until = spec::UNTIL.get(arguments);
        let pattern = until.map(|until| regex::compile(spec::UNTIL.name, until)).transpose()?;
        let wait = wait(arguments, if pattern.is_some() { WAIT_FOR_PATTERN_MS } else { 0 });
        let Some(name) = fields::SESSION.get(arguments) else { return self.list(context) };
        let entry = shared.find(context, name)?;
        let session = &entry.session;
        let _in_use = session.in_use();
        wake_on_cancel(session, context);
        let end = session.standing().end;
        let from = spec::FROM.unsigned(arguments);
        if from.is_some_and(|from| from > end) {
            return Err(ToolError::invalid_arguments(format!(
                "from is beyond the end of the output, which has {end} bytes: give next of an earlier \
                 call, or leave it out"
            )));
        }
        let waits_for_pattern = pattern.is_some();
        let until = match pattern {
            // Without a place what no start and no write was answered with counts.
            Some(pattern) => Until::Matches(Wanted {
                pattern,
                from: from.unwrap_or_else(|| session.answered()),
                echo: None,
                asks: Asks::GoOn,
            }),
            // There is something to show.
            None if from.is_some_and(|from| from < end) => Until::Time,
            None => Until::Settled,
        };
        let mut met = Met::No;
        let has_news = matches!(until, Until::Time);
        if !wait.is_zero() && !has_news || waits_for_pattern {
            met = watch(session, context, &until, end, deadline(wait, context))?;
        }
        let asked = spec::SCREEN.get(arguments);
        if asked == Some(true) && !session.is_on_terminal() {
            return Err(ToolError::invalid_arguments(format!(
                "{name} has no terminal, so no screen: start it with tty: true, or leave screen out"
            )));
        }
        let standing = session.standing();
        let last = standing.end.saturating_sub(LAST_BYTES);
        let shown = match (asked, from) {
            (Some(true), _) => Shown::Screen,
            (None, from) if session.shows_screen(from.unwrap_or(last)) => Shown::Screen,
            (_, Some(from)) => Shown::From(from),
            (_, None) => Shown::End(last),
        };
        let most = shared.bash.output_bytes;
        let mut payload = answer(&entry, shown, met.found(), most, shared.settings, context);
        if waits_for_pattern {
            spec::MATCHED.put(&mut payload, met.found().is_some());
            let unseen = from.filter(|from| *from < standing.begin && met.found().is_none());
            if unseen.is_some() {
                add_notice(&mut payload, UNSEEN);
            }
        }
        Ok(payload)
    }

    fn bare_fields(&self) -> &'static [&'static str] {
        &["output", "sessions"]
    }

    fn preview(&self, arguments: &Payload, _: &Context<'_>) -> Result<View, ToolError> {
        if let Some(until) = spec::UNTIL.get(arguments) {
            regex::compile(spec::UNTIL.name, until)?;
        }
        Ok(self.render_call(arguments))
    }

    fn render_call(&self, arguments: &Payload) -> View {
        match fields::SESSION.get(arguments) {
            Some(_) => show::line("reads session", arguments),
            None => View::text("lists sessions", tool_provider::view::Style::Normal),
        }
    }

    fn render_result(&self, payload: &Payload) -> View {
        show::result(NAME, payload)
    }
}

impl SessionRead {
    fn list(&self, context: &Context<'_>) -> Result<Payload, ToolError> {
        let ready = self.shared.ready()?;
        let mut entries = ready.sessions.list(context.session_id);
        entries.sort_by_key(|entry| entry.session.standing().ended.is_some());
        let line = |entry: Entry| {
            let standing = look(&entry.session);
            let ports = listed(standing.ports()).filter(|_| standing.ended.is_none());
            let ports = ports.map_or_else(String::new, |ports| format!(", {ports}"));
            let state = state(&entry, &standing);
            let code = fields::EXIT_CODE.get(&state);
            let code = code.map_or_else(String::new, |code| format!(" ({code})"));
            let stands = fields::STATE.get(&state).unwrap_or_default();
            Value::from(format!("{}: {stands}{code}{ports}: {}", entry.name, entry.command))
        };
        let listed: Vec<Value> = entries.into_iter().map(line).collect();
        let mut payload = Payload::new();
        fields::SESSIONS.put(&mut payload, listed);
        Ok(payload)
    }
}
