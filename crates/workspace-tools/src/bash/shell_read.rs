//! shell_read: runs a command in a shell whose effects are discarded, so that nobody has to approve it.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use sandbox::{Jail, Private, Surroundings};

use super::arguments::Arguments;
use super::outcome::RunReport;
use super::{BashSettings, Ready, Start, budget, directory, interrupt, protect, show};
use crate::Context;
use crate::process::Spool;
use slots::Slots;
use tool_provider::view::View;
use tool_provider::{Payload, Tool, ToolError, ToolSpec};

pub(super) mod notice;
mod slots;
pub mod spec;
pub(super) mod would_change;

const NAME: &str = "shell_read";

/// How many commands run at once. Each may take memory for what it writes.
const AT_ONCE: usize = 4;

/// Whether git writes what only saves time later, such as the index that `git status` has refreshed: it would
/// be discarded, and be a change that the command was not run for.
const OPTIONAL_LOCKS: &str = "GIT_OPTIONAL_LOCKS";

/// The tool. Without a configuration it describes itself and shows what was, and runs nothing.
pub struct ShellRead {
    settings: BashSettings,
    spec: ToolSpec,
    ready: Option<Ready>,
    slots: Arc<Slots>,
}

impl ShellRead {
    /// The tool of a configuration, as [`Bash::new`](super::Bash::new).
    #[must_use]
    pub fn new(settings: BashSettings, jail: Arc<Jail>, spool: Arc<Spool>) -> Self {
        let ready = Some(Ready::new(Vec::new(), jail, spool));
        Self { settings, spec: spec::spec(), ready, slots: Slots::new(AT_ONCE) }
    }

    /// The tool before any configuration.
    #[must_use]
    pub fn unconfigured() -> Self {
        let settings = BashSettings::default();
        Self { settings, spec: spec::spec(), ready: None, slots: Slots::new(AT_ONCE) }
    }
}

impl Tool<crate::Files> for ShellRead {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, arguments: &Payload, context: &Context<'_>) -> Result<Payload, ToolError> {
        let arguments = Arguments::parse(arguments, &self.settings)?;
        let ready = super::configured(self.ready.as_ref())?;
        let private = discarding(&ready.jail)?;
        let cwd = directory::working_directory(context, arguments.cwd)?;
        let _slot = self.slots.take(context)?;
        let interrupt = interrupt(context)?;
        let budget = budget(Instant::now(), &arguments, context)?;
        // From here on the call reports what happened, whatever comes in between.
        context.begin_commit()?;
        let mut environment = self.settings.environment.plain_variables(private);
        if !environment.iter().any(|(name, _)| name == OPTIONAL_LOCKS) {
            environment.push((OPTIONAL_LOCKS.into(), "0".into()));
        }
        let surroundings = Surroundings::ThrowAway;
        let start =
            Start { settings: &self.settings, ready, cwd: &cwd, budget, surroundings, environment };
        let (finished, shell) = start.run(&arguments, &interrupt, context)?;
        let report = RunReport {
            settings: &self.settings,
            jail: &ready.jail,
            arguments: &arguments,
            cwd: &cwd,
            shell,
            budget,
            finished,
            surroundings,
            protected: protect::Protected::default(),
            warnings: Vec::new(),
        };
        report.finish(context)
    }

    fn preview(&self, arguments: &Payload, context: &Context<'_>) -> Result<View, ToolError> {
        let parsed = Arguments::parse(arguments, &self.settings)?;
        let found = super::configured(self.ready.as_ref())
            .and_then(|ready| discarding(&ready.jail))
            .and_then(|_| directory::working_directory(context, parsed.cwd));
        Ok(match found {
            Ok(_) => self.render_call(arguments),
            Err(fault) => crate::change::failure(&fault),
        })
    }

    fn render_call(&self, arguments: &Payload) -> View {
        show::line(NAME, arguments)
    }

    fn render_result(&self, payload: &Payload) -> View {
        show::result(NAME, payload, would_change::view(payload))
    }
}

/// The private directories of commands whose effects are discarded. Without them nothing runs: the tool's
/// risk is a promise.
fn discarding(jail: &Jail) -> Result<&Private, ToolError> {
    jail.throw_away().ok_or_else(|| {
        ToolError::permission_denied(
            "shell_read is not available here: nothing would keep what the command does from staying",
        )
        .with_hint(format!(
            "use bash; the operator finds what is missing with `provider-workspace doctor` (the jail's level \
             is {})",
            jail.enforcement().level
        ))
    })
}

/// A path as a result names it: relative to where the command ran, if it lies there.
fn shown<'a>(path: &'a Path, cwd: &Path) -> &'a Path {
    match path.strip_prefix(cwd) {
        Ok(inner) if inner != Path::new("") => inner,
        _ => path,
    }
}
