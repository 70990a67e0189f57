//! The tools by name.

use std::sync::Arc;

use sandbox::{Jail, Policy};

use super::Config;
use super::config::Shell;
use super::nearest::suggestion;
use crate::process::{Environment, Spool};
use crate::tools::{
    Bash, BashSettings, EditFile, Glob, Grep, Overwrite, ReadFile, Tool, ToolError, WriteFile,
};

/// What the tools of a configuration are made from.
#[derive(Clone, Copy)]
pub struct Setup<'a> {
    /// What the operator wrote, as it is meant.
    pub config: &'a Config,
    /// What the jail was built from.
    pub policy: &'a Policy,
    /// The jail.
    pub jail: &'a Arc<Jail>,
    /// The directory of outputs that are too long for a result.
    pub spool: &'a Arc<Spool>,
    /// What commands see of our environment.
    pub environment: &'a Environment,
}

/// Makes the tools for a configuration, or, without one, for what the defaults would be.
pub type ToolFactory = Arc<dyn Fn(Option<Setup<'_>>) -> Vec<Arc<dyn Tool>> + Send + Sync>;

/// The tools by name, in the order in which they are advertised.
pub struct Registry {
    tools: Vec<Arc<dyn Tool>>,
}

impl Registry {
    /// A registry of these tools.
    #[must_use]
    pub fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        Self { tools }
    }

    /// Makes tools that take nothing from a configuration: a provider of one's own.
    pub fn of(tools: impl Fn() -> Vec<Arc<dyn Tool>> + Send + Sync + 'static) -> ToolFactory {
        Arc::new(move |_| tools())
    }

    /// The tools that this provider has.
    #[must_use]
    pub fn factory() -> ToolFactory {
        Arc::new(|setup| {
            let overwrite = setup.map_or(Overwrite::default(), |setup| setup.config.overwrite);
            let bash = setup.map_or_else(Bash::unconfigured, bash);
            vec![
                Arc::new(ReadFile::new()),
                Arc::new(WriteFile::new(overwrite)),
                Arc::new(EditFile::new()),
                Arc::new(Grep::new()),
                Arc::new(Glob::new()),
                Arc::new(bash),
            ]
        })
    }

    /// All tools.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools.iter()
    }

    /// The tool of this name.
    ///
    /// # Errors
    /// `not_found`, with the nearest known name.
    pub fn tool(&self, name: &str) -> Result<&Arc<dyn Tool>, ToolError> {
        self.tools.iter().find(|tool| tool.spec().name == name).ok_or_else(|| {
            let known: Vec<&str> = self.tools.iter().map(|tool| tool.spec().name).collect();
            let shown: String = name.chars().take(64).collect();
            let hint = suggestion(name, known.iter().copied());
            ToolError::not_found(format!("no tool is called {shown:?}; {hint}")).with_hint(hint)
        })
    }
}

fn bash(setup: Setup<'_>) -> Bash {
    let config = setup.config;
    let shells = match &config.shell {
        Shell::Usual(usual) => vec![usual.clone(), "/bin/sh".into()],
        Shell::Named(named) => vec![named.clone()],
    };
    let settings = BashSettings {
        timeout: config.bash_timeout,
        max_timeout: config.bash_max_timeout,
        output_bytes: config.bash_output_bytes,
        shells,
        environment: setup.environment.clone(),
        policy: setup.policy.clone(),
        ..BashSettings::default()
    };
    Bash::new(settings, setup.jail.clone(), setup.spool.clone())
}
