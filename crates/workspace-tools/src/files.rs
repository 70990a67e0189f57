//! What all calls of one configuration share.

use std::sync::Arc;

use sandbox::Level;
use tool_provider::{Category, State, ToolError};
use workspace_fs::{Session, Workspace};

use crate::Sessions;

/// The roots, and what each session knows of the files beneath them.
#[derive(Debug)]
pub struct Files {
    /// The roots and what may be done beneath them.
    pub workspace: Arc<Workspace>,
    /// What each session has read and written. It outlives a configuration.
    pub sessions: Arc<Sessions>,
    /// How much of the jail the kernel enforces.
    pub level: Level,
}

impl Files {
    /// These roots, under sessions that know of nothing yet.
    #[must_use]
    pub fn new(workspace: Arc<Workspace>, level: Level) -> Self {
        Self { workspace, sessions: Arc::default(), level }
    }

    /// What the session of this name has read and written.
    pub(crate) fn session(&self, id: &str) -> Arc<Session> {
        self.sessions.session(id)
    }
}

impl State for Files {
    /// A denial with the level of the jail in its details. A model reads the message and can do nothing
    /// with the level.
    fn annotate(&self, error: ToolError) -> ToolError {
        match error.category() {
            Category::PermissionDenied => error.with_detail("jail", self.level.name()),
            _ => error,
        }
    }
}
