//! bash: runs a command in a shell, in the jail.

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sandbox::{Jail, Policy, Surroundings};

use crate::process::{self, Budget, Call, Environment, Finished, Interrupt, Spool, TooLate};
use crate::{Context, Files};
use tool_provider::view::View;
use tool_provider::{Payload, Tool, ToolError, ToolSpec};

pub(crate) mod arguments;
pub(crate) mod directory;
mod home;
pub(crate) mod notice;
mod outcome;
mod plain;
pub(crate) mod protect;
pub(crate) mod shell;
mod shell_read;
pub(crate) mod show;
pub mod spec;
mod start_files;

use arguments::Arguments;
use outcome::RunReport;
pub use shell_read::ShellRead;
pub use shell_read::spec as shell_read_spec;

const NAME: &str = "bash";

/// What an operator configured for bash.
#[derive(Clone, Debug)]
pub struct BashSettings {
    /// How long a command may run when its call names no timeout.
    pub timeout: Duration,
    /// The longest timeout that a call may name.
    pub max_timeout: Duration,
    /// How many bytes of a command's output its result keeps.
    pub output_bytes: usize,
    /// After how much silence a running command is reported as still there, and how often.
    pub quiet_every: Duration,
    /// The shells in order of preference, absolute: the first that is there runs the command, and a
    /// later one than the first says so.
    pub shells: Vec<PathBuf>,
    /// What commands see of our environment.
    pub environment: Environment,
    /// What the jail was built from.
    pub policy: Policy,
    /// What the notice of the first call says of the configuration.
    pub warnings: Vec<String>,
}

/// The tool. It has a jail once it is configured; without one it describes itself and shows what
/// was, and runs nothing.
pub struct Bash {
    settings: BashSettings,
    spec: ToolSpec,
    ready: Option<Ready>,
}

/// What a configuration adds.
struct Ready {
    jail: Arc<Jail>,
    spool: Arc<Spool>,
    null: Option<OwnedFd>,
    /// Taken by the first call.
    warnings: Mutex<Vec<String>>,
}

impl Ready {
    /// Opens /dev/null, so not to be called on one of the jail's own threads.
    fn new(warnings: Vec<String>, jail: Arc<Jail>, spool: Arc<Spool>) -> Self {
        Self { jail, spool, null: process::open_null(), warnings: Mutex::new(warnings) }
    }

    fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut *self.warnings.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Default for BashSettings {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(120),
            max_timeout: Duration::from_secs(600),
            output_bytes: 16_000,
            quiet_every: Duration::from_secs(10),
            shells: vec!["/bin/bash".into(), "/bin/sh".into()],
            environment: Environment::default(),
            policy: Policy::default(),
            warnings: Vec::new(),
        }
    }
}

impl Bash {
    /// The tool of a configuration, with the jail that was built for it and the directory of
    /// outputs that are too long for a result. Opens /dev/null, so not to be called on one of the
    /// jail's own threads.
    #[must_use]
    pub fn new(settings: BashSettings, jail: Arc<Jail>, spool: Arc<Spool>) -> Self {
        let ready = Some(Ready::new(settings.warnings.clone(), jail, spool));
        Self { spec: spec::spec(), settings, ready }
    }

    /// The tool before any configuration.
    #[must_use]
    pub fn unconfigured() -> Self {
        let settings = BashSettings::default();
        Self { spec: spec::spec(), settings, ready: None }
    }
}

impl Tool<Files> for Bash {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, arguments: &Payload, context: &Context<'_>) -> Result<Payload, ToolError> {
        let arguments = Arguments::parse(arguments, &self.settings)?;
        let ready = configured(self.ready.as_ref())?;
        let cwd = directory::working_directory(context, arguments.cwd)?;
        let interrupt = interrupt(context)?;
        let budget = budget(Instant::now(), &arguments, context)?;
        // From here on the call reports what happened, whatever comes in between.
        context.begin_commit()?;
        let environment = self.settings.environment.variables(ready.jail.private());
        let surroundings = Surroundings::Shared;
        let start =
            Start { settings: &self.settings, ready, cwd: &cwd, budget, surroundings, environment };
        let guarded = protect::Guarded::begin(context, &ready.jail, &cwd);
        let home = home::Before::look(&ready.jail);
        let (finished, shell) = start.run(&arguments, &interrupt, context)?;
        let protected = guarded.end();
        let report = RunReport {
            settings: &self.settings,
            jail: &ready.jail,
            arguments: &arguments,
            cwd: &cwd,
            shell,
            budget,
            finished,
            surroundings,
            protected,
            warnings: ready.take_warnings().into_iter().chain(home.notice()).collect(),
        };
        report.finish(context)
    }

    fn preview(&self, arguments: &Payload, context: &Context<'_>) -> Result<View, ToolError> {
        let arguments = Arguments::parse(arguments, &self.settings)?;
        let jail = self.ready.as_ref().map(|ready| &*ready.jail);
        let cwd = directory::working_directory(context, arguments.cwd);
        Ok(show::preview(&arguments, &self.settings, jail, cwd))
    }

    fn render_call(&self, arguments: &Payload) -> View {
        show::call(arguments)
    }

    fn render_result(&self, payload: &Payload) -> View {
        show::result(NAME, payload, None)
    }

    fn bare_fields(&self) -> &'static [&'static str] {
        &[spec::OUTPUT.name]
    }
}

fn configured(ready: Option<&Ready>) -> Result<&Ready, ToolError> {
    ready.ok_or_else(|| ToolError::permission_denied("not configured: no roots"))
}

/// What a cancel of the call raises.
fn interrupt(context: &Context<'_>) -> Result<Interrupt, ToolError> {
    let interrupt =
        Interrupt::new().map_err(|error| ToolError::from_io("watch for a cancel", "", error))?;
    context.cancel.on_cancel({
        let interrupt = interrupt.clone();
        move || interrupt.raise()
    });
    Ok(interrupt)
}

fn budget(
    now: Instant,
    arguments: &Arguments<'_>,
    context: &Context<'_>,
) -> Result<Budget, ToolError> {
    Budget::new(now, arguments.timeout, context.deadline).map_err(too_late)
}

fn too_late(late: TooLate) -> ToolError {
    ToolError::timeout(format!("{late}: nothing was run"))
        .with_detail("applied", false)
        .with_hint("the host gave the call less time than a shell takes to come up")
        .with_source(late)
}

/// Everything that a start needs besides the call itself.
struct Start<'a> {
    settings: &'a BashSettings,
    ready: &'a Ready,
    cwd: &'a Path,
    budget: Budget,
    surroundings: Surroundings,
    environment: Vec<(OsString, OsString)>,
}

impl<'a> Start<'a> {
    /// Runs the command in the first shell that is there, and says which one that was.
    fn run(
        &self,
        arguments: &Arguments<'_>,
        interrupt: &Interrupt,
        context: &Context<'_>,
    ) -> Result<(Finished, &'a Path), ToolError> {
        shell::in_first(self.settings, self.cwd, |shell| {
            let call = self.call(shell, arguments, interrupt);
            process::run(&self.ready.jail, call, context.sink)
        })
    }

    fn call<'c>(
        &'c self,
        shell: &'c Path,
        arguments: &Arguments<'_>,
        interrupt: &'c Interrupt,
    ) -> Call<'c> {
        let (script, stdin) = arguments.for_shell();
        let environment = &self.settings.environment;
        Call {
            program: shell,
            argv: shell::arguments(shell, script),
            env: self.environment.clone(),
            surroundings: self.surroundings,
            cwd: self.cwd.to_owned(),
            stdin,
            null: self.ready.null.as_ref().map(AsFd::as_fd),
            limits: None,
            budget: self.budget,
            quiet_every: self.settings.quiet_every,
            interrupt,
            output_bytes: self.settings.output_bytes,
            spool: self.ready.spool.clone(),
            secrets: environment.secrets(),
        }
    }
}
