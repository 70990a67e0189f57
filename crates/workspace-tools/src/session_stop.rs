//! session_stop: ends a session, and everything that it started.

use std::sync::Arc;

use crate::process::StopSignal;
use crate::process::session::EndCause;
use crate::shell_session::answer::{Shown, add_notice, answer};
use crate::shell_session::{ShellSessions, fields, show};
use crate::{Context, Files};
use tool_provider::view::View;
use tool_provider::{Payload, Tool, ToolError, ToolSpec};

pub mod spec;

const NAME: &str = "session_stop";

/// How much of the last output is shown, in bytes.
const LAST_BYTES: u64 = 2 * 1024;

/// The tool.
pub struct SessionStop {
    shared: Arc<ShellSessions>,
    spec: ToolSpec,
}

impl SessionStop {
    /// The tool over these sessions.
    #[must_use]
    pub fn new(shared: Arc<ShellSessions>) -> Self {
        Self { shared, spec: spec::spec() }
    }
}

impl Tool<Files> for SessionStop {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, arguments: &Payload, context: &Context<'_>) -> Result<Payload, ToolError> {
        let shared = &*self.shared;
        let name = fields::SESSION.get(arguments).unwrap_or_default();
        let entry = shared.find(context, name)?;
        let session = &entry.session;
        let _in_use = session.in_use();
        context.begin_commit()?;
        let had_ended = session.standing().ended.is_some();
        session.stop(EndCause::Stopped);
        session.join();
        let from = session.standing().end.saturating_sub(LAST_BYTES);
        let most = shared.bash.output_bytes;
        let mut payload = answer(&entry, Shown::End(from), None, most, shared.settings, context);
        payload.remove(fields::NEXT.name);
        if had_ended {
            add_notice(&mut payload, "it had ended before");
        } else if let Some(ended) = session.standing().ended {
            let signal = ended.stopped.map_or(StopSignal::None, |(_, signal)| signal);
            spec::SIGNALS.put(&mut payload, signal.names());
            let ended = ended.end.as_ref().map_or(0, |report| report.processes_killed);
            if ended > 0 {
                spec::PROCESSES_ENDED.put(&mut payload, ended);
            }
        }
        Ok(payload)
    }

    fn bare_fields(&self) -> &'static [&'static str] {
        &["output"]
    }

    fn preview(&self, arguments: &Payload, _: &Context<'_>) -> Result<View, ToolError> {
        Ok(self.render_call(arguments))
    }

    fn render_call(&self, arguments: &Payload) -> View {
        show::line("ends session", arguments)
    }

    fn render_result(&self, payload: &Payload) -> View {
        show::result(NAME, payload)
    }
}
