//! What a provider stands on: its configuration, and what that makes.

use std::path::Path;
use std::sync::Arc;

use crate::config::ConfigureError;
use crate::schema::Property;
use crate::{Payload, Secrets, Tool, ToolError, Workers};

/// What distinguishes one provider from another, besides its tools: which configuration it takes,
/// and what it builds from it.
pub trait Backend: Send + Sync + 'static {
    /// What the calls of one configuration share, such as opened directories. `()` for tools that
    /// need nothing.
    type State: State;

    /// The configuration's keys, in the order in which they are documented.
    fn keys(&self) -> Vec<Property> {
        Vec::new()
    }

    /// The tools as they are advertised before the first configuration. They are asked for their
    /// specs and shown payloads, and never run.
    fn tools(&self) -> Vec<Arc<dyn Tool<Self::State>>>;

    /// The answer to a call before the first configuration.
    fn not_configured(&self) -> ToolError {
        ToolError::permission_denied("not configured")
            .with_hint("the host has to call Configure before it calls a tool")
    }

    /// Where this process listens, before the first [`Backend::configure`]: for a backend that has to
    /// keep what it starts away from there.
    fn listens_in(&self, _directory: &Path) {}

    /// Which of a host's hooks it wants to be called for.
    fn hooks(&self) -> Hooks {
        Hooks::None
    }

    /// A session of the host has ended. Only where [`Backend::hooks`] wants that, and only where the
    /// host's operator subscribed the provider. It must not block.
    fn session_ended(&self, _session_id: &str) {}

    /// Builds what calls need from the block that the operator wrote. It may open files and start
    /// processes: it runs on a thread of its own.
    ///
    /// # Errors
    /// [`ConfigureError`] with everything that is wrong; then the old configuration stays.
    fn configure(&self, block: &Payload) -> Result<Configuration<Self::State>, ConfigureError>;
}

/// The points of a host's session at which a backend wants to be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hooks {
    /// None.
    None,
    /// Its end.
    SessionEnd,
}

/// What the calls of one configuration share.
pub trait State: Send + Sync + 'static {
    /// The error of a call as it goes out: the place to add what is true of all calls, such as the
    /// level of a jail to a denial.
    fn annotate(&self, error: ToolError) -> ToolError {
        error
    }
}

impl State for () {}

/// A configuration that is ready for calls. A second Configure makes another one; calls that run
/// keep theirs until they end.
pub struct Configuration<S> {
    /// What calls share.
    pub state: S,
    /// The tools.
    pub tools: Vec<Arc<dyn Tool<S>>>,
    /// What runs calls and previews.
    pub workers: Arc<dyn Workers>,
    /// The secrets that nothing sent out may show.
    pub secrets: Secrets,
    /// How many calls may run at once.
    pub max_concurrent_calls: usize,
}
