//! A configuration in force: the roots opened, the jail built, the tools made.

use std::sync::Arc;

use sandbox::{Enforcement, Jail, Policy};

use super::config::{Config, ConfigureError, Fault};
use super::registry::{Registry, ToolFactory};
use crate::workspace::Workspace;

/// Previews run on file workers too, so there are more of those than calls.
const PREVIEWS: usize = 8;

/// Everything that calls run under. A second Configure makes another one; calls that run keep
/// theirs until they end.
pub(crate) struct Configured {
    pub(crate) config: Config,
    pub(crate) registry: Registry,
    pub(crate) workspace: Workspace,
    pub(crate) jail: Jail,
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
    /// Opens and builds everything that `config` names.
    ///
    /// # Errors
    /// [`ConfigureError`] with everything that is wrong.
    pub(crate) fn build(
        config: Config,
        factory: &ToolFactory,
    ) -> Result<(Arc<Self>, Report), ConfigureError> {
        let workspace = open(&config)?;
        let jail = Jail::build(&policy(&config))
            .map_err(|error| ConfigureError::single(Fault::machine("sandbox", chain(&error))))?;
        let report = Report { enforcement: jail.enforcement().clone(), notices: config.notices() };
        let registry = Registry::new(factory(Some(&config)));
        Ok((Arc::new(Self { config, registry, workspace, jail }), report))
    }
}

fn open(_config: &Config) -> Result<Workspace, ConfigureError> {
    Ok(Workspace {})
}

fn policy(config: &Config) -> Policy {
    Policy {
        roots: config.roots.clone(),
        read_only_roots: config.read_only_roots.clone(),
        command_read: config.bash_read.clone(),
        command_write: config.bash_write.clone(),
        mode: config.sandbox,
        network: config.network,
        limits: config.limits,
        file_workers: config.max_concurrent_calls + PREVIEWS,
    }
}

/// An error with everything that caused it, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
