//! The tools by name.

use std::sync::Arc;

use super::Config;
use super::nearest::suggestion;
use crate::tools::{EditFile, Overwrite, ReadFile, Tool, ToolError, WriteFile};

/// Makes the tools for a configuration, or, without one, for what the defaults would be.
pub type ToolFactory = Arc<dyn Fn(Option<&Config>) -> Vec<Arc<dyn Tool>> + Send + Sync>;

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

    /// The tools that this provider has.
    #[must_use]
    pub fn factory() -> ToolFactory {
        Arc::new(|config| {
            let overwrite = config.map_or(Overwrite::default(), |config| config.overwrite);
            vec![
                Arc::new(ReadFile::new()),
                Arc::new(WriteFile::new(overwrite)),
                Arc::new(EditFile::new()),
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
