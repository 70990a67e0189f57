//! The configuration: what may be written, what it means, and everything that is wrong with it.

mod decode;
mod spec;

#[cfg(test)]
mod tests;

pub use workspace_tools::Overwrite;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

pub use spec::properties;

/// A configuration as it is meant: checked, with every default filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Directories that tools may read and write, as they are written: messages name them so.
    pub roots: Vec<String>,
    /// Directories that tools may read, as they are written.
    pub read_only_roots: Vec<String>,
    /// What a kernel that cannot enforce the jail means.
    pub sandbox: sandbox::Mode,
    /// Whether commands may reach a network.
    pub network: sandbox::Network,
    /// What becomes of the HOME of commands.
    pub home: HomeFate,
    /// Further directories or files that commands may read, absolute.
    pub bash_read: Vec<PathBuf>,
    /// Further directories or files that commands may write, absolute.
    pub bash_write: Vec<PathBuf>,
    /// What nobody but the operator changes in the roots.
    pub protect: Protect,
    /// The shell.
    pub shell: Shell,
    /// Values set for commands.
    pub env: BTreeMap<String, String>,
    /// Names of variables that commands take over.
    pub env_passthrough: Vec<String>,
    /// Variables that commands take over and nobody may see.
    pub secrets: Vec<Secret>,
    /// How long a command may run when its call names no timeout.
    pub bash_timeout: Duration,
    /// The longest timeout that a call may name.
    pub bash_max_timeout: Duration,
    /// How much of a command's output its result keeps, in bytes.
    pub bash_output_bytes: usize,
    /// How much all commands whose effects are discarded may write together, in bytes.
    pub layer_bytes: u64,
    /// Resource limits of each command.
    pub limits: sandbox::Limits,
    /// How many calls may run at once.
    pub max_concurrent_calls: usize,
    /// How many sessions may run at once.
    pub max_sessions: usize,
    /// After how long without a call that names it a session is ended.
    pub session_idle: Duration,
    /// Whether a file must have been read by a session before the session overwrites it.
    pub overwrite: Overwrite,
}

/// What nobody but the operator changes in the roots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protect {
    /// What git takes from the roots' own repositories and obeys: `config`, hooks and the like.
    Git,
    /// Nothing.
    None,
}

/// What becomes of the HOME of commands when the provider ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HomeFate {
    /// It is there for later ones of the same rights.
    Keep,
    /// It is removed.
    Discard,
}

/// Which shell runs commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shell {
    /// The usual one, or `/bin/sh` where it is missing.
    Usual(PathBuf),
    /// Another one, which the operator named; it must be there.
    Named(PathBuf),
}

/// A variable whose value nobody may see.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    name: String,
    value: OsString,
}

impl Secret {
    /// The variable's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The variable's value. Only for the environment of a command and for masking.
    #[must_use]
    pub fn expose(&self) -> &OsString {
        &self.value
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What a configuration is read against: the process's environment and its working directory.
#[derive(Clone, Debug, Default)]
pub struct HostEnv {
    /// The environment's variables.
    pub variables: BTreeMap<OsString, OsString>,
    /// What relative paths start from. None where it was deleted: absolute ones need none.
    pub current_directory: Option<PathBuf>,
    /// The name of the variable that carries the host's handshake, which no command may see.
    pub handshake_variable: &'static str,
}

impl HostEnv {
    /// Those of this process.
    ///
    /// # Errors
    /// When the system does not name the working directory, although there is one.
    pub fn of_this_process(handshake_variable: &'static str) -> std::io::Result<Self> {
        let current_directory = match std::env::current_dir() {
            Ok(directory) => Some(directory),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        Ok(Self { variables: std::env::vars_os().collect(), current_directory, handshake_variable })
    }
}
