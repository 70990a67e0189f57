//! The provider: what a kernel can ask of it, in domain types.

use std::io;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

use super::config::{Config, ConfigureError, Fault, Surroundings};
use super::configured::{Configured, Report};
use super::dispatch;
use super::identity::Identity;
use super::masking;
use super::registry::{Registry, ToolFactory};
use super::render::{self, Stored};
use super::running::Running;
use super::sessions::Sessions;
use super::stream::EventStream;
use super::sweep::sweep;
use super::validate;
use crate::process::Secrets;
use crate::tools::view::View;
use crate::tools::{Payload, Tool, ToolError, ToolSpec};
use workspace_fs::LockTable;

/// One call of a tool, as a kernel asks for it.
#[derive(Clone, Debug, Default)]
pub struct Call {
    /// The kernel's name for this call.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// Its arguments, unchecked.
    pub arguments: Payload,
    /// The session that the call belongs to; may be empty.
    pub session_id: String,
    /// The turn that the call belongs to; may be empty.
    pub turn_id: String,
    /// What relative paths start from, where the kernel says so.
    pub working_directory: Option<String>,
    /// When the kernel stops listening.
    pub deadline: Option<Instant>,
}

/// The provider.
pub struct Provider {
    identity: Identity,
    factory: ToolFactory,
    surroundings: Box<dyn Fn() -> io::Result<Surroundings> + Send + Sync>,
    /// What is advertised before the first Configure.
    advertised: Registry,
    configured: RwLock<Option<Arc<Configured>>>,
    sessions: Sessions,
    /// Outlives a configuration: calls under the old and under the new one exclude each other.
    locks: Arc<LockTable>,
    running: Arc<Running>,
}

impl Provider {
    /// A provider without a configuration. `surroundings` is asked at each Configure.
    pub fn new(
        factory: ToolFactory,
        surroundings: impl Fn() -> io::Result<Surroundings> + Send + Sync + 'static,
    ) -> Self {
        let advertised = Registry::new(factory(None));
        Self {
            identity: Identity::of_this_build(),
            factory,
            surroundings: Box::new(surroundings),
            advertised,
            configured: RwLock::new(None),
            sessions: Sessions::default(),
            locks: Arc::default(),
            running: Arc::default(),
        }
    }

    /// The same provider under another name: one with tools of its own is not this crate's build.
    #[must_use]
    pub fn with_identity(self, identity: Identity) -> Self {
        Self { identity, ..self }
    }

    /// Who this provider is.
    #[must_use]
    pub fn describe(&self) -> Identity {
        self.identity
    }

    /// What each tool says of itself, under the configuration in force.
    #[must_use]
    pub fn schema(&self) -> Vec<ToolSpec> {
        let specs = |registry: &Registry| registry.iter().map(|tool| tool.spec().clone()).collect();
        match self.in_force() {
            Some(configured) => specs(&configured.registry),
            None => specs(&self.advertised),
        }
    }

    /// Puts a configuration in force: for all new calls, also where there was one before. It opens
    /// files and starts processes, so it must not run on a thread that serves others.
    ///
    /// # Errors
    /// [`ConfigureError`] with everything that is wrong; then the old configuration stays.
    pub fn configure(&self, map: &Payload) -> Result<Report, ConfigureError> {
        let surroundings = (self.surroundings)().map_err(|error| {
            let problem = format!("cannot tell the working directory: {error}");
            ConfigureError::single(Fault::machine("", problem))
        })?;
        let mut faults = Vec::new();
        let config = Config::read(map, &surroundings, &mut faults);
        let secrets = secrets_of(&config);
        let built = Configured::build(config, surroundings, faults, &self.locks, &self.factory);
        let (configured, report) = built.map_err(|error| {
            let error = error.masked(&secrets);
            match self.in_force() {
                Some(old) => error.masked(&old.secrets),
                None => error,
            }
        })?;
        sweep(&configured);
        let old = {
            let mut slot = self.configured.write().unwrap_or_else(PoisonError::into_inner);
            slot.replace(configured)
        };
        // Outside the lock: the last owner of an old jail tears it down here.
        drop(old);
        tracing::info!(
            level = %report.enforcement.level,
            landlock_abi = report.enforcement.landlock_abi,
            left_open = said(&report.enforcement.left_open),
            notices = said(&report.notices),
            "configured"
        );
        Ok(report)
    }

    /// Runs one call. Whatever goes wrong is the stream's last event. Dropping the stream cancels
    /// the call.
    #[must_use]
    pub fn invoke(&self, call: Call) -> EventStream {
        self.start(call).unwrap_or_else(|error| EventStream::failed(self.masked(error)))
    }

    fn start(&self, call: Call) -> Result<EventStream, ToolError> {
        let Some(configured) = self.in_force() else {
            return Err(not_configured());
        };
        let tool = configured.registry.tool(&call.tool)?.clone();
        validate::arguments(tool.spec().name, &tool.spec().input, &call.arguments)?;
        let session = self.sessions.session(&call.session_id);
        dispatch::invoke(&configured, tool, session, &self.running, call)
    }

    /// Shows what a call would do, without doing it.
    ///
    /// # Errors
    /// `not_found` for an unknown tool, `invalid_arguments` for arguments that make no sense in any
    /// state of the files, `permission_denied` before the first Configure. A call that would merely
    /// fail is a view.
    pub async fn preview(&self, call: Call) -> Result<View, ToolError> {
        self.look(call).await.map_err(|error| self.masked(error))
    }

    async fn look(&self, call: Call) -> Result<View, ToolError> {
        let configured = self.in_force();
        let registry = configured.as_deref().map_or(&self.advertised, |state| &state.registry);
        let tool = registry.tool(&call.tool)?.clone();
        // Arguments come before the configuration: a kernel probes with none, maybe too early.
        validate::arguments(tool.spec().name, &tool.spec().input, &call.arguments)?;
        let configured = configured.ok_or_else(not_configured)?;
        let session = self.sessions.session(&call.session_id);
        dispatch::preview(configured, tool, session, call).await
    }

    /// Shows what a kernel stored.
    #[must_use]
    pub fn render(&self, stored: &Stored) -> View {
        let configured = self.in_force();
        let registry = configured.as_deref().map_or(&self.advertised, |state| &state.registry);
        let tool = |name: &str| registry.tool(name).ok().map(|tool| tool as &Arc<dyn Tool>);
        match &configured {
            Some(configured) => {
                let stored = masking::stored(&configured.secrets, stored);
                masking::view(&configured.secrets, render::render(&stored, tool))
            }
            None => render::render(stored, tool),
        }
    }

    /// Takes no more calls, cancels the running ones, and waits until they have ended.
    pub async fn shut_down(&self) {
        self.running.shut_down().await;
    }

    /// The error without the configured secrets: what is wrong with arguments repeats a piece of
    /// them.
    pub(crate) fn masked(&self, error: ToolError) -> ToolError {
        match self.in_force() {
            Some(configured) => masking::error(&configured.secrets, error),
            None => error,
        }
    }

    fn in_force(&self) -> Option<Arc<Configured>> {
        self.configured.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What must not be shown of a configuration, also where it is refused.
fn secrets_of(config: &Config) -> Secrets {
    let secrets = config.secrets.iter();
    Secrets::new(
        secrets
            .map(|secret| (secret.name().to_owned(), secret.expose().as_encoded_bytes().to_vec())),
    )
}

/// Sentences for the log, where there are any.
fn said(sentences: &[String]) -> Option<String> {
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

fn not_configured() -> ToolError {
    ToolError::permission_denied("not configured: no roots")
        .with_hint("the kernel has to call Configure first, with at least one folder in roots")
}
