//! The tools by name.

use std::sync::Arc;

use crate::nearest::suggestion;
use crate::{Tool, ToolError};

/// The tools by name, in the order in which they are advertised.
pub(crate) struct Registry<S> {
    tools: Vec<Arc<dyn Tool<S>>>,
}

impl<S> Registry<S> {
    pub(crate) fn new(tools: Vec<Arc<dyn Tool<S>>>) -> Self {
        Self { tools }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<dyn Tool<S>>> {
        self.tools.iter()
    }

    /// The tool of this name.
    ///
    /// # Errors
    /// `not_found`, with the nearest known name.
    pub(crate) fn tool(&self, name: &str) -> Result<&Arc<dyn Tool<S>>, ToolError> {
        self.tools.iter().find(|tool| tool.spec().name == name).ok_or_else(|| {
            let known: Vec<&str> = self.tools.iter().map(|tool| tool.spec().name).collect();
            let shown: String = name.chars().take(64).collect();
            let hint = suggestion(name, known.iter().copied());
            ToolError::not_found(format!("no tool is called {shown:?}; {hint}")).with_hint(hint)
        })
    }
}
