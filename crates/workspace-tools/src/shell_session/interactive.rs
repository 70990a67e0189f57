//! A shell for a person, in the same jail and with the same variables as a command of a session.

use std::ffi::OsString;
use std::path::Path;

use super::ShellSessions;
use crate::bash::shell;
use crate::process::session::{AtEnd, Session, SessionCommand, TerminalSize};
use tool_provider::ToolError;

/// What a shell prints where it waits for a command.
const PROMPT: &str = "\\w (jail)\\$ ";

impl ShellSessions {
    /// Starts a shell on a terminal. The calling thread must not be confined. It is in nobody's list, and
    /// whoever has it keeps it in use.
    ///
    /// # Errors
    /// Before any configuration, and where it cannot be started.
    pub fn interactive(
        &self,
        size: TerminalSize,
        cwd: &Path,
        term: Option<OsString>,
    ) -> Result<Session, ToolError> {
        let ready = self.ready()?;
        let environment = &self.bash.environment;
        let mut env = environment.variables_on_terminal(ready.jail.private());
        if let Some(term) = term {
            env.retain(|(name, _)| name != "TERM");
            env.push(("TERM".into(), term));
        }
        env.push(("PS1".into(), PROMPT.into()));
        let (session, _) = shell::in_first(&self.bash, cwd, |shell| {
            Session::start(
                &ready.jail,
                SessionCommand {
                    program: shell,
                    argv: shell::interactive(shell),
                    env: env.clone(),
                    cwd: cwd.to_owned(),
                    terminal: Some(size),
                    spool: ready.spool.clone(),
                    secrets: environment.secrets(),
                    idle_limit: self.settings.idle_limit,
                    at_end: AtEnd(Box::new(|_, _| Vec::new())),
                },
            )
        })?;
        Ok(session)
    }
}
