//! A shell for a person, in the jail of a configuration.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;

use tool_provider::config::ConfigureError;
use tool_provider::{Configuration, Payload, ToolError};
use workspace_tools::Files;
use workspace_tools::process::session::{Session, TerminalSize};

use super::{Built, Report, WorkspaceBackend};

/// A shell for a person, and the configuration that it runs under.
pub struct Interactive {
    /// The shell.
    pub session: Arc<Session>,
    /// What the configuration achieves.
    pub report: Report,
    _configuration: Configuration<Files>,
}

/// Why there is no shell.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InteractiveError {
    /// The configuration is wrong, or this machine cannot have it.
    #[error(transparent)]
    Configure(#[from] ConfigureError),
    /// It was not started.
    #[error("{0}")]
    Start(#[from] ToolError),
}

impl WorkspaceBackend {
    /// Builds a configuration and starts a shell for a person in its jail: in the working directory where
    /// that lies in a root, else in the first root.
    ///
    /// # Errors
    /// [`InteractiveError`].
    pub fn interactive(
        &self,
        block: &Payload,
        size: TerminalSize,
    ) -> Result<Interactive, InteractiveError> {
        let host_env = self.read_host_env()?;
        let term = host_env.variables.get(OsStr::new("TERM")).cloned();
        let current = host_env.current_directory.clone();
        let Built { configuration, sessions, report } = self.built(block, host_env)?;
        let roots = configuration.state.workspace.roots();
        let is_inside = |path: &&PathBuf| roots.iter().any(|root| path.starts_with(root.path()));
        let first = roots.iter().map(|root| root.path().to_owned()).next();
        let cwd = current.as_ref().filter(is_inside).cloned().or(first).unwrap_or_default();
        let session = sessions.interactive(size, &cwd, term)?;
        Ok(Interactive { session: Arc::new(session), report, _configuration: configuration })
    }
}
