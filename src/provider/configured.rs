//! A configuration in force: the roots opened, the jail built, the tools made.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::FileType;
use rustix::io::Errno;
use sandbox::{Commands, Enforcement, Jail, JailError, Policy};

use super::config::{Config, ConfigureError, Fault, Shell, Surroundings};
use super::registry::{Registry, Setup, ToolFactory};
use crate::process::{Environment, EnvironmentError, Requested, Secrets};
use crate::tools::error::chain;
use crate::tools::{Category, ToolError};
use workspace_fs::{Access, LockTable, RootError, RootFault, RootsSpec, Workspace};

/// Previews run on file workers too, so there are more of those than calls.
const PREVIEWS: usize = 8;

/// Everything that calls run under. A second Configure makes another one; calls that run keep
/// theirs until they end.
pub(crate) struct Configured {
    pub(crate) config: Config,
    pub(crate) registry: Registry,
    pub(crate) workspace: Workspace,
    pub(crate) jail: Arc<Jail>,
    /// What nothing that goes out may show.
    pub(crate) secrets: Secrets,
}

/// What a Configure achieved.
#[derive(Clone, Debug)]
pub struct Report {
    /// What the kernel enforces.
    pub enforcement: Enforcement,
    /// What an operator should know.
    pub notices: Vec<String>,
}

impl Configured {
    /// Opens and builds everything that `config` names. `faults` is what was found so far: the
    /// roots are opened all the same, so that an operator hears of everything at once.
    ///
    /// # Errors
    /// [`ConfigureError`] with everything that is wrong.
    pub(crate) fn build(
        config: Config,
        surroundings: Surroundings,
        mut faults: Vec<Fault>,
        locks: &Arc<LockTable>,
        factory: &ToolFactory,
    ) -> Result<(Arc<Self>, Report), ConfigureError> {
        let workspace = Workspace::open(&RootsSpec {
            roots: config.roots.clone(),
            read_only_roots: config.read_only_roots.clone(),
            locks: locks.clone(),
        })
        .map_err(|errors| faults.extend(errors.iter().filter_map(root_fault)));
        // Names that the decoder refused already are not in the configuration any more.
        let environment = environment(&config, surroundings)
            .map_err(|errors| faults.extend(errors.iter().map(environment_fault)));
        faults.extend(missing("bash_read", &config.bash_read));
        faults.extend(missing("bash_write", &config.bash_write));
        faults.extend(unusable(&config.shell));
        if let Some(error) = ConfigureError::of(faults) {
            return Err(error);
        }
        // Not reached: whichever is missing has left a fault.
        let (Ok(workspace), Ok(environment)) = (workspace, environment) else {
            return Err(ConfigureError::single(Fault::written("roots", "names no folder")));
        };
        let policy = policy(&config, &workspace);
        let jail =
            Jail::build(&policy).map_err(|error| ConfigureError::single(jail_fault(&error)))?;
        let jail = Arc::new(jail);
        let workspace = match policy.commands {
            Commands::Never => workspace,
            // What bash had to leave out of a result is there for read_file.
            Commands::Spawned => workspace
                .with_own_folder(&jail.private().spool)
                .map_err(|fault| no_spool(&jail.private().spool, &fault))?,
        };
        let report = Report { enforcement: jail.enforcement().clone(), notices: config.notices() };
        let setup =
            Setup { config: &config, policy: &policy, jail: &jail, environment: &environment };
        let registry = Registry::new(factory(Some(setup)));
        let secrets = environment.secrets().clone();
        Ok((Arc::new(Self { config, registry, workspace, jail, secrets }), report))
    }

    /// A denial with the level of the jail behind it, so that nobody has to ask which one it was.
    /// Any other error as it is.
    pub(crate) fn named_jail(&self, error: ToolError) -> ToolError {
        if error.category() != Category::PermissionDenied {
            return error;
        }
        let level = self.jail.enforcement().level;
        let hint = match error.hint() {
            Some(hint) => format!("{hint} (jail: {level})"),
            None => format!("jail: {level}"),
        };
        error.with_detail("jail", level.name()).with_hint(hint)
    }
}

fn no_spool(folder: &Path, fault: &RootFault) -> ConfigureError {
    let problem = format!("cannot keep outputs in {}: {fault}", folder.display());
    ConfigureError::single(Fault::machine("sandbox", problem))
}

/// The fault of a root; `None` for one that the decoder has told already.
///
/// A folder that is not there is wrongly written. One that is there and cannot be opened is what
/// this machine, or this user on it, cannot do.
fn root_fault(error: &RootError) -> Option<Fault> {
    let key = error.setting.name();
    let problem = match &error.fault {
        RootFault::Open { path, source } if source.kind() == ErrorKind::NotFound => {
            let shown = path.to_string_lossy();
            // A relative path, or one with ~, leads where its writer may not expect.
            let led = if shown == *error.given { String::new() } else { format!(" ({shown})") };
            format!("{:?}{led} does not exist: make the folder or name another", error.given)
        }
        RootFault::NotAFolder(_) => format!("{:?} is not a folder: name a folder", error.given),
        fault => format!("{:?}: {fault}", error.given),
    };
    match &error.fault {
        RootFault::NoRoot | RootFault::NoPath => None,
        RootFault::Open { source, .. }
            if !matches!(source.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
        {
            Some(Fault::machine(key, problem))
        }
        RootFault::NoWorkingDirectory(_) => Some(Fault::machine(key, problem)),
        RootFault::Open { .. }
        | RootFault::NoHome
        | RootFault::NotAFolder(_)
        | RootFault::InsideWritable { .. } => Some(Fault::written(key, problem)),
    }
}

/// What bash is to reach and is not there, told with everything else instead of by the jail.
fn missing(key: &'static str, paths: &[PathBuf]) -> impl Iterator<Item = Fault> {
    // Only looks, opens nothing.
    let is_missing = |path: &&PathBuf| {
        rustix::fs::access(path.as_path(), rustix::fs::Access::EXISTS) == Err(Errno::NOENT)
    };
    paths.iter().filter(is_missing).map(move |path| {
        let shown = path.to_string_lossy();
        Fault::written(key, format!("{shown:?} does not exist: make it, or leave it out"))
    })
}

/// A shell that the operator named and that no command could be run by.
fn unusable(shell: &Shell) -> Option<Fault> {
    let Shell::Named(path) = shell else { return None };
    if !path.is_absolute() {
        // The decoder has told that.
        return None;
    }
    let shown = path.to_string_lossy();
    // Only looks, opens nothing.
    let problem = match rustix::fs::stat(path) {
        Err(Errno::NOENT | Errno::NOTDIR) => format!("{shown:?} does not exist"),
        Err(errno) => {
            return Some(Fault::machine("shell", format!("{shown:?} cannot be run: {errno}")));
        }
        Ok(found) if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile => {
            format!("{shown:?} is not a program")
        }
        Ok(_) if rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_err() => {
            format!("{shown:?} is not executable")
        }
        Ok(_) => return None,
    };
    Some(Fault::written("shell", format!("{problem}: name another, or leave it out")))
}

fn jail_fault(error: &JailError) -> Fault {
    let problem = chain(error);
    match error {
        JailError::Private(_) => Fault::machine(
            "sandbox",
            format!(
                "{problem}; it is made in the folder that TMPDIR names, /tmp where it names none: \
                 set TMPDIR to a folder that exists and can be written"
            ),
        ),
        _ => Fault::machine("sandbox", problem),
    }
}

fn policy(config: &Config, workspace: &Workspace) -> Policy {
    let paths = |access| {
        let roots = workspace.roots().iter().filter(move |root| root.access() == access);
        roots.map(|root| root.path().to_owned()).collect()
    };
    Policy {
        roots: paths(Access::ReadWrite),
        read_only_roots: paths(Access::ReadOnly),
        command_read: config.bash_read.clone(),
        command_write: config.bash_write.clone(),
        mode: config.sandbox,
        network: config.network,
        limits: config.limits,
        file_workers: config.max_concurrent_calls + PREVIEWS,
        // The unit tests' program is the test harness's: it cannot be its own spawner.
        commands: if cfg!(test) { Commands::Never } else { Commands::Spawned },
        ..Policy::default()
    }
}

fn environment(
    config: &Config,
    surroundings: Surroundings,
) -> Result<Environment, Vec<EnvironmentError>> {
    let secret_env: Vec<String> =
        config.secrets.iter().map(|secret| secret.name().to_owned()).collect();
    Environment::choose(
        surroundings.variables,
        Requested {
            env: Some(&config.env),
            env_passthrough: &config.env_passthrough,
            secret_env: &secret_env,
        },
    )
}

fn environment_fault(error: &EnvironmentError) -> Fault {
    Fault::written(error.key(), error.to_string())
}
