//! Opens the roots, builds the jail and makes the tools of a configuration.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use sandbox::{Commands, Enforcement, Jail, Policy, SubmitError};
use tool_provider::config::{ConfigureError, Fault};
use tool_provider::grpc::handshake::COOKIE_KEY;
use tool_provider::schema::Property;
use tool_provider::{
    Backend, Configuration, Hooks, Job, Payload, Provider, Secrets, Tool, ToolError, Workers,
};
use workspace_fs::{
    Access, Journal, LockTable, Protection, Remembered, RootsSpec, StateDirectory, StateError,
    Workspace,
};
use workspace_tools::process::{Environment, EnvironmentError, Requested, Spool};
use workspace_tools::{
    Bash, BashSettings, EditFile, Files, Glob, Grep, Overwrite, ReadFile, SessionRead,
    SessionSettings, SessionStart, SessionStop, SessionTable, SessionWrite, Sessions, ShellRead,
    ShellSessions, WriteFile,
};

use crate::config::{self, Config, HostEnv, Protect, Shell};
use crate::homes;
use crate::identity;
use crate::recovery::recover;
use crate::warnings;

use faults::{environment_fault, jail_fault, missing, no_spool, root_fault, unprotected, unusable};
pub use interactive::{Interactive, InteractiveError};

mod faults;
mod interactive;

/// Previews run on file workers too, so there are more of those than calls.
const PREVIEWS: usize = 8;

/// A provider with all of this product's tools, read against this process.
#[must_use]
pub fn provider() -> Provider<Files> {
    Provider::new(identity::of_this_build(), WorkspaceBackend::of_this_process())
}

/// Builds configurations: roots, jail, tools.
pub struct WorkspaceBackend {
    host_env: Box<dyn Fn() -> io::Result<HostEnv> + Send + Sync>,
    /// These outlive a configuration: calls under the old and under the new one exclude each other, a
    /// session keeps what it knows, and what was there before a running call stays known.
    locks: Arc<LockTable>,
    sessions: Arc<Sessions>,
    remembered: Arc<Remembered>,
    shell_sessions: Arc<SessionTable>,
    /// Where this process listens.
    sockets: OnceLock<PathBuf>,
}

impl WorkspaceBackend {
    /// A backend that reads configurations against this process.
    #[must_use]
    pub fn of_this_process() -> Self {
        Self::new(|| HostEnv::of_this_process(COOKIE_KEY))
    }

    /// A backend that reads `host_env` at each Configure.
    pub fn new(host_env: impl Fn() -> io::Result<HostEnv> + Send + Sync + 'static) -> Self {
        Self {
            host_env: Box::new(host_env),
            locks: Arc::default(),
            sessions: Arc::default(),
            remembered: Arc::default(),
            shell_sessions: Arc::default(),
            sockets: OnceLock::new(),
        }
    }

    /// Opens and builds everything that `config` names. `faults` is what was found so far: the
    /// roots are opened all the same, so that an operator hears of everything at once.
    fn build(
        &self,
        config: &Config,
        host_env: HostEnv,
        mut faults: Vec<Fault>,
    ) -> Result<Built, ConfigureError> {
        let workspace = Workspace::open(&RootsSpec {
            roots: config.roots.clone(),
            read_only_roots: config.read_only_roots.clone(),
            locks: self.locks.clone(),
        })
        .map_err(|errors| faults.extend(errors.iter().filter_map(root_fault)));
        let state = journals(&host_env);
        let state_path = state.as_ref().ok().map(|state| state.path().to_owned());
        let warnings = workspace.as_ref().map_or_else(
            |()| Vec::new(),
            |workspace| warnings::of_roots(workspace, &host_env, state_path.as_deref()),
        );
        let variables = host_env.variables.clone();
        // Names that the decoder refused already are not in the configuration any more.
        let environment = environment(config, host_env)
            .map_err(|errors| faults.extend(errors.iter().map(environment_fault)));
        faults.extend(missing("bash_read", &config.bash_read));
        faults.extend(missing("bash_write", &config.bash_write));
        faults.extend(unusable(&config.shell));
        if let Some(error) = ConfigureError::of(faults) {
            return Err(error);
        }
        // Not reached: whichever is missing has left a fault.
        let (Ok(workspace), Ok(environment)) = (workspace, environment) else {
            return Err(ConfigureError::single(Fault::written("roots", "names no directory")));
        };
        let mut policy = policy(config, &workspace);
        policy.sockets = self.sockets.get().cloned();
        policy.file_private = state.as_ref().ok().map(|state| state.path().to_owned());
        let protection = match config.protect {
            Protect::None => None,
            Protect::Git => Some(
                Protection::of(&workspace, &config.bash_write, self.remembered.clone())
                    .map_err(|error| ConfigureError::single(unprotected(&error)))?,
            ),
        };
        if let Some(protection) = &protection {
            policy.protected = protection.to_mount();
            policy.file_also = protection.outside().map(Path::to_owned).collect();
        }
        let homes = homes::directory(config, &variables);
        policy.homes = homes.as_ref().ok().cloned().flatten();
        policy.rights_besides = homes::rights(config);
        let jail =
            Jail::build(&policy).map_err(|error| ConfigureError::single(jail_fault(&error)))?;
        let jail = Arc::new(jail);
        let outputs = &jail.private().spool;
        let workspace = match policy.commands {
            Commands::Never => workspace,
            // What bash had to leave out of a result is there for read_file.
            Commands::Spawned => {
                workspace.with_own_directory(outputs).map_err(|fault| no_spool(outputs, &fault))?
            }
        };
        let workspace = match protection {
            None => workspace,
            Some(protection) => {
                // Where commands reach the directory, nothing is kept in it.
                let kept_in = state.as_ref().ok().filter(|_| jail.withheld().is_none());
                let kept_in =
                    kept_in.and_then(|state| StateDirectory::at(state.path().to_owned()).ok());
                workspace.with_protection(Arc::new(protection.keeping_in(kept_in)))
            }
        };
        let spool = Spool::open(outputs).map_err(|error| no_spool(outputs, &error))?;
        let mut notices = config.notices();
        notices.extend(warnings.iter().cloned().chain(warnings::of_user()));
        notices.extend(homes::notice(homes, &jail));
        let workspace = match journal(state, &jail) {
            Ok(journal) => workspace.with_journal(journal),
            Err(problem) => {
                notices.push(format!(
                    "no journal of writes is kept ({problem}): what a killed provider was writing is \
                     not cleared away or restored at the next start"
                ));
                workspace
            }
        };
        let enforcement = jail.enforcement().clone();
        let report = Report { enforcement, notices, jail: jail.clone() };
        let secrets = environment.secrets().clone();
        let settings = bash_settings(config, environment, policy, warnings);
        let spool = Arc::new(spool);
        let sessions = ShellSessions::new(
            SessionSettings { most: config.max_sessions, idle_limit: config.session_idle },
            settings.clone(),
            jail.clone(),
            spool.clone(),
            &self.shell_sessions,
        );
        let sessions = Arc::new(sessions.map_err(|error| {
            let problem = format!("cannot start a thread: {error}");
            ConfigureError::single(Fault::machine("", problem))
        })?);
        let shell_read = ShellRead::new(settings.clone(), jail.clone(), spool.clone());
        let bash = Bash::new(settings, jail.clone(), spool);
        let level = jail.enforcement().level;
        let configuration = Configuration {
            state: Files { workspace: Arc::new(workspace), sessions: self.sessions.clone(), level },
            tools: tools(config.overwrite, bash, shell_read, &sessions),
            workers: Arc::new(FileWorkers(jail)),
            secrets,
            max_concurrent_calls: config.max_concurrent_calls,
        };
        Ok(Built { configuration, sessions, report })
    }

    /// Builds a configuration from the block that an operator wrote, and says what it achieved.
    ///
    /// # Errors
    /// [`ConfigureError`] with everything that is wrong.
    pub fn prepare(
        &self,
        block: &Payload,
    ) -> Result<(Configuration<Files>, Report), ConfigureError> {
        let host_env = self.read_host_env()?;
        self.built(block, host_env).map(|built| (built.configuration, built.report))
    }

    fn read_host_env(&self) -> Result<HostEnv, ConfigureError> {
        (self.host_env)().map_err(|error| {
            let problem = format!("cannot determine the working directory: {error}");
            ConfigureError::single(Fault::machine("", problem))
        })
    }

    fn built(&self, block: &Payload, host_env: HostEnv) -> Result<Built, ConfigureError> {
        let mut faults = Vec::new();
        let config = Config::read(block, &host_env, &mut faults);
        let built = self.build(&config, host_env, faults);
        built.map_err(|error| error.masked(&secrets_of(&config)))
    }
}

/// What is built of a configuration.
struct Built {
    configuration: Configuration<Files>,
    sessions: Arc<ShellSessions>,
    report: Report,
}

/// What a configuration achieves.
#[derive(Clone, Debug)]
pub struct Report {
    /// What the kernel enforces.
    pub enforcement: Enforcement,
    /// What an operator should know.
    pub notices: Vec<String>,
    /// The jail itself.
    pub(crate) jail: Arc<Jail>,
}

impl Backend for WorkspaceBackend {
    type State = Files;

    fn keys(&self) -> Vec<Property> {
        config::properties()
    }

    fn tools(&self) -> Vec<Arc<dyn Tool<Files>>> {
        let sessions = Arc::new(ShellSessions::unconfigured());
        let shell_read = ShellRead::unconfigured();
        tools(Overwrite::default(), Bash::unconfigured(), shell_read, &sessions)
    }

    fn not_configured(&self) -> ToolError {
        ToolError::permission_denied("not configured: no roots")
            .with_hint("the host has to call Configure first, with at least one directory in roots")
    }

    fn listens_in(&self, directory: &Path) {
        // The first one counts: a process listens once.
        let _ = self.sockets.set(directory.to_owned());
    }

    fn hooks(&self) -> Hooks {
        Hooks::SessionEnd
    }

    fn session_ended(&self, session_id: &str) {
        self.shell_sessions.end_of_host_session(session_id);
    }

    fn configure(&self, block: &Payload) -> Result<Configuration<Files>, ConfigureError> {
        let (configuration, report) = self.prepare(block)?;
        recover(&configuration.state.workspace, &*configuration.workers);
        report.log();
        Ok(configuration)
    }
}

/// The directory of the journals, in the user's state directory.
fn journals(host_env: &HostEnv) -> Result<StateDirectory, StateError> {
    StateDirectory::open(&host_env.variables)?.subdirectory("writes")
}

/// A journal in `state`, if no command can reach it there.
///
/// # Errors
/// Why there is none, to stand inside a sentence.
fn journal(state: Result<StateDirectory, StateError>, jail: &Jail) -> Result<Journal, String> {
    let state = state.map_err(|error| error.to_string())?;
    let path = state.path().display().to_string();
    if let Some(holder) = jail.withheld() {
        return Err(format!("commands reach {path}, which lies in {}", holder.display()));
    }
    Journal::begin(state).map_err(|error| format!("cannot write in {path}: {error}"))
}

fn tools(
    overwrite: Overwrite,
    bash: Bash,
    shell_read: ShellRead,
    sessions: &Arc<ShellSessions>,
) -> Vec<Arc<dyn Tool<Files>>> {
    vec![
        Arc::new(ReadFile::default()),
        Arc::new(WriteFile::new(overwrite)),
        Arc::new(EditFile::default()),
        Arc::new(Grep::default()),
        Arc::new(Glob::default()),
        Arc::new(bash),
        Arc::new(shell_read),
        Arc::new(SessionStart::new(sessions.clone())),
        Arc::new(SessionRead::new(sessions.clone())),
        Arc::new(SessionWrite::new(sessions.clone())),
        Arc::new(SessionStop::new(sessions.clone())),
    ]
}

fn bash_settings(
    config: &Config,
    environment: Environment,
    policy: Policy,
    warnings: Vec<String>,
) -> BashSettings {
    let shells = match &config.shell {
        Shell::Usual(usual) => vec![usual.clone(), "/bin/sh".into()],
        Shell::Named(named) => vec![named.clone()],
    };
    BashSettings {
        timeout: config.bash_timeout,
        max_timeout: config.bash_max_timeout,
        output_bytes: config.bash_output_bytes,
        shells,
        environment,
        policy,
        warnings,
        ..BashSettings::default()
    }
}

/// The jail's file workers, which no call leaves.
struct FileWorkers(Arc<Jail>);

impl Workers for FileWorkers {
    fn submit(&self, job: Job) -> Result<(), ToolError> {
        self.0.submit(job).map_err(no_worker)
    }
}

/// The failure of a call that the jail has no worker for.
fn no_worker(refusal: SubmitError) -> ToolError {
    tracing::warn!(error = &refusal as &dyn std::error::Error, "no worker took a call");
    let (SubmitError::Worker(source) | SubmitError::Confine(source)) = &refusal else {
        return ToolError::execution_failed(refusal.to_string()).with_source(refusal);
    };
    // Such as a lack of threads or descriptors, which passes.
    let action = refusal.to_string();
    match source.raw_os_error() {
        Some(code) => {
            let action = action.trim_start_matches("cannot ");
            ToolError::from_io(action, "", io::Error::from_raw_os_error(code))
        }
        None => ToolError::execution_failed(action),
    }
    .with_source(refusal)
}

impl Report {
    fn log(&self) {
        let joined = |sentences: &[String]| (!sentences.is_empty()).then(|| sentences.join(" "));
        let Self { enforcement, notices, .. } = self;
        tracing::info!(
            jail = %enforcement.level,
            landlock_abi = enforcement.landlock_abi,
            left_open = joined(&enforcement.left_open),
            notices = joined(notices),
            "configured"
        );
    }
}

/// What must not be shown of a configuration, also where it is refused.
fn secrets_of(config: &Config) -> Secrets {
    let value = |secret: &config::Secret| secret.expose().as_encoded_bytes().to_vec();
    Secrets::new(config.secrets.iter().map(|secret| (secret.name().to_owned(), value(secret))))
}

fn policy(config: &Config, workspace: &Workspace) -> Policy {
    let paths = |access| {
        let roots = workspace.roots().iter().filter(move |root| root.access() == access);
        roots.map(|root| root.path().to_owned()).collect()
    };
    Policy {
        roots: paths(Access::ReadWrite),
        read_only_roots: paths(Access::ReadOnly),
        spellings: workspace.roots().iter().flat_map(|root| root.spellings()).cloned().collect(),
        command_read: config.bash_read.clone(),
        command_write: config.bash_write.clone(),
        mode: config.sandbox,
        network: config.network,
        limits: config.limits,
        layer_bytes: Some(config.layer_bytes),
        file_workers: config.max_concurrent_calls + PREVIEWS,
        // The unit tests' program is the test harness's: it cannot be its own spawner.
        commands: if cfg!(test) { Commands::Never } else { Commands::Spawned },
        ..Policy::default()
    }
}

fn environment(config: &Config, host_env: HostEnv) -> Result<Environment, Vec<EnvironmentError>> {
    let secret_env: Vec<String> =
        config.secrets.iter().map(|secret| secret.name().to_owned()).collect();
    Environment::choose(
        host_env.variables,
        Requested {
            env: Some(&config.env),
            env_passthrough: &config.env_passthrough,
            secret_env: &secret_env,
            network: config.network,
        },
    )
}
