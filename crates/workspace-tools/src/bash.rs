//! bash: runs a command in a shell, in the jail.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sandbox::{Jail, Policy, Stage, StartError};

use crate::process::{
    self, Budget, Call, Environment, Finished, Interrupt, RunError, Spool, TooLate,
};
use crate::{Context, Files};
use tool_provider::view::View;
use tool_provider::{Category, Payload, Tool, ToolError, ToolSpec};
use workspace_fs::text::name;

mod arguments;
mod directory;
mod home;
mod notice;
mod outcome;
mod plain;
mod protect;
mod show;
pub mod spec;
mod start_files;

use arguments::Arguments;
use outcome::RunReport;

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
        let warnings = Mutex::new(settings.warnings.clone());
        let ready = Ready { jail, spool, null: process::open_null(), warnings };
        Self { spec: spec::spec(), settings, ready: Some(ready) }
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
        let ready = self
            .ready
            .as_ref()
            .ok_or_else(|| ToolError::permission_denied("not configured: no roots"))?;
        let cwd = directory::working_directory(context, &arguments)?;
        let interrupt = Interrupt::new()
            .map_err(|error| ToolError::from_io("watch for a cancel", "", error))?;
        context.cancel.on_cancel({
            let interrupt = interrupt.clone();
            move || interrupt.raise()
        });
        let budget =
            Budget::new(Instant::now(), arguments.timeout, context.deadline).map_err(too_late)?;
        // From here on the call reports what happened, whatever comes in between.
        context.begin_commit()?;
        let start = Start { settings: &self.settings, ready, cwd: &cwd, budget };
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
            protected,
            warnings: ready.take_warnings().into_iter().chain(home.notice()).collect(),
        };
        report.finish(context)
    }

    fn preview(&self, arguments: &Payload, context: &Context<'_>) -> Result<View, ToolError> {
        let arguments = Arguments::parse(arguments, &self.settings)?;
        let jail = self.ready.as_ref().map(|ready| &*ready.jail);
        let cwd = directory::working_directory(context, &arguments);
        Ok(show::preview(&arguments, &self.settings, jail, cwd))
    }

    fn render_call(&self, arguments: &Payload) -> View {
        show::call(arguments)
    }

    fn render_result(&self, payload: &Payload) -> View {
        show::result(payload)
    }

    fn bare_fields(&self) -> &'static [&'static str] {
        &[spec::OUTPUT.name]
    }
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
}

impl<'a> Start<'a> {
    /// Runs the command in the first shell that is there, and says which one that was.
    fn run(
        &self,
        arguments: &Arguments<'_>,
        interrupt: &Interrupt,
        context: &Context<'_>,
    ) -> Result<(Finished, &'a Path), ToolError> {
        let mut missing = None;
        for shell in &self.settings.shells {
            let call = self.call(shell, arguments, interrupt);
            match process::run(&self.ready.jail, call, context.sink) {
                Ok(finished) => return Ok((finished, shell)),
                Err(RunError::Start(StartError::Stage { stage: Stage::Program, source }))
                    if source.raw_os_error() != Some(rustix::io::Errno::TOOBIG.raw_os_error()) =>
                {
                    missing.get_or_insert((shell, source));
                }
                Err(error) => return Err(self.failure(error)),
            }
        }
        Err(match missing {
            Some((shell, source)) => {
                let name = name::of(shell).into_owned();
                ToolError::execution_failed(format!("the shell {name} cannot be run: {source}"))
                    .with_detail("path", name)
                    .with_hint("the operator can name another one with the setting `shell`")
                    .with_source(source)
            }
            None => ToolError::execution_failed("no shell is configured"),
        })
    }

    fn call<'c>(
        &'c self,
        shell: &'c Path,
        arguments: &Arguments<'_>,
        interrupt: &'c Interrupt,
    ) -> Call<'c> {
        let (script, stdin) = arguments.for_shell();
        let name = shell.file_name().unwrap_or(shell.as_os_str()).to_owned();
        let environment = &self.settings.environment;
        Call {
            program: shell,
            argv: [name]
                .into_iter()
                .chain(start_files::without(shell).map(OsStr::to_owned))
                .chain(["-c".into(), script.into()])
                .collect(),
            env: environment.variables(self.ready.jail.private()),
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

    fn failure(&self, error: RunError) -> ToolError {
        let cwd = name::of(self.cwd).into_owned();
        match error {
            RunError::Pipe(source) => ToolError::from_io("make a pipe for the command", "", source),
            RunError::Start(StartError::Nul { what }) => {
                ToolError::invalid_arguments(format!("{what} holds a NUL byte"))
            }
            RunError::Start(StartError::Stage { stage: Stage::Program, source }) => {
                ToolError::invalid_arguments(
                    "the command and its environment are too long to start a program with",
                )
                .with_source(source)
            }
            RunError::Start(StartError::Stage { stage: Stage::WorkingDirectory, source }) => {
                let failed = ToolError::from_io(&format!("run in {cwd}"), &cwd, source);
                match failed.category() {
                    Category::PermissionDenied => failed.with_hint(
                        "the provider's user may not enter this directory, or one above it: change \
                         their permissions, or name another cwd",
                    ),
                    _ => failed,
                }
            }
            RunError::Start(StartError::Stage { stage, source }) => {
                let action = format!("start the command ({stage})");
                let failed = ToolError::from_io(&action, &cwd, source);
                match stage {
                    Stage::Supervisor | Stage::Process => failed.with_hint(
                        "a limit of processes may be hit: the machine's, or limits.processes",
                    ),
                    _ => failed,
                }
            }
            RunError::Start(StartError::HandOver(source)) => {
                ToolError::from_io("hand the command to the jail", &cwd, source)
            }
            RunError::Start(gone @ StartError::SpawnerGone(_)) => {
                ToolError::execution_failed(gone.to_string())
                    .with_hint("configuring the provider again makes a new jail")
                    .with_source(gone)
            }
            other => {
                let raw = format!("{other:?}");
                ToolError::unknown("the command could not be started", raw).with_source(other)
            }
        }
    }
}
