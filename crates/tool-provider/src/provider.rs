//! The provider: what a host can ask of it, in domain types.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

use serde_json::Value;

use crate::config::ConfigureError;
use crate::registry::Registry;
use crate::render::{self, Stored};
use crate::running::Running;
use crate::schema::Property;
use crate::stream::EventStream;
use crate::view::View;
use crate::{
    Backend, Configuration, Hooks, Identity, Partials, Payload, Secrets, State, ToolError,
    ToolSpec, Workers, dispatch, masking, plain_text, slips, validate,
};

/// One call of a tool, as a host asks for it.
#[derive(Clone, Debug, Default)]
pub struct Call {
    /// The host's name for this call.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// Its arguments, unchecked.
    pub arguments: Payload,
    /// The session that the call belongs to; may be empty.
    pub session_id: String,
    /// The turn that the call belongs to; may be empty.
    pub turn_id: String,
    /// What relative paths start from, where the host says so.
    pub working_directory: Option<String>,
    /// When the host stops listening.
    pub deadline: Option<Instant>,
    /// Whether the caller reads partial results.
    pub partials: Partials,
}

/// A provider: a [`Backend`] and the configuration in force.
pub struct Provider<S = ()> {
    identity: Identity,
    backend: Box<dyn Backend<State = S>>,
    /// What is advertised before the first Configure.
    advertised: Registry<S>,
    active: RwLock<Option<Arc<Active<S>>>>,
    running: Arc<Running>,
}

/// A configuration in force.
pub(crate) struct Active<S> {
    pub(crate) state: S,
    pub(crate) registry: Registry<S>,
    pub(crate) workers: Arc<dyn Workers>,
    pub(crate) secrets: Secrets,
    pub(crate) max_concurrent_calls: usize,
}

impl<S: State> Provider<S> {
    /// A provider without a configuration.
    pub fn new(identity: Identity, backend: impl Backend<State = S>) -> Self {
        Self {
            identity,
            advertised: Registry::new(backend.tools()),
            backend: Box::new(backend),
            active: RwLock::new(None),
            running: Arc::default(),
        }
    }

    /// Passes on to the backend where this process listens.
    pub fn listens_in(&self, directory: &Path) {
        self.backend.listens_in(directory);
    }

    /// Which of a host's hooks the backend wants to be called for.
    #[must_use]
    pub fn hooks(&self) -> Hooks {
        self.backend.hooks()
    }

    /// Passes on to the backend that a session of the host has ended.
    pub fn session_ended(&self, session_id: &str) {
        self.backend.session_ended(session_id);
    }

    /// Who this provider is.
    #[must_use]
    pub fn describe(&self) -> Identity {
        self.identity
    }

    /// The configuration's keys.
    #[must_use]
    pub fn keys(&self) -> Vec<Property> {
        self.backend.keys()
    }

    /// What each tool says of itself, under the configuration in force.
    #[must_use]
    pub fn schema(&self) -> Vec<ToolSpec> {
        let specs =
            |registry: &Registry<S>| registry.iter().map(|tool| tool.spec().clone()).collect();
        match self.in_force() {
            Some(active) => specs(&active.registry),
            None => specs(&self.advertised),
        }
    }

    /// Puts a configuration in force: for all new calls, also where there was one before. It opens
    /// files and starts processes, so it must not run on a thread that serves others.
    ///
    /// # Errors
    /// [`ConfigureError`] with everything that is wrong; then the old configuration stays.
    pub fn configure(&self, block: &Payload) -> Result<(), ConfigureError> {
        let built = self.backend.configure(block).map_err(|error| match self.in_force() {
            Some(old) => error.masked(&old.secrets),
            None => error,
        })?;
        let Configuration { state, tools, workers, secrets, max_concurrent_calls } = built;
        let registry = Registry::new(tools);
        let active = Active { state, registry, workers, secrets, max_concurrent_calls };
        let old = {
            let mut slot = self.active.write().unwrap_or_else(PoisonError::into_inner);
            slot.replace(Arc::new(active))
        };
        // Outside the lock: the last owner of an old configuration tears it down here.
        drop(old);
        Ok(())
    }

    /// Runs one call. Whatever goes wrong is the stream's last event. Dropping the stream cancels
    /// the call.
    #[must_use]
    pub fn invoke(&self, call: Call) -> EventStream {
        self.start(call).unwrap_or_else(|error| EventStream::failed(self.masked(error)))
    }

    fn start(&self, mut call: Call) -> Result<EventStream, ToolError> {
        self.running.check_accepting()?;
        let Some(active) = self.in_force() else {
            return Err(self.backend.not_configured());
        };
        let tool = active.registry.tool(&call.tool)?.clone();
        put_right_and_check(tool.spec(), &mut call.arguments)?;
        dispatch::invoke(&active, tool, &self.running, call)
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

    async fn look(&self, mut call: Call) -> Result<View, ToolError> {
        let active = self.in_force();
        let tool = self.registry(active.as_deref()).tool(&call.tool)?.clone();
        // Arguments come before the configuration: a host probes with none, maybe too early.
        put_right_and_check(tool.spec(), &mut call.arguments)?;
        // That probe is answered where the tool can do with none.
        if active.is_none() && call.arguments.is_empty() {
            return Ok(tool.render_call(&call.arguments));
        }
        let active = active.ok_or_else(|| self.backend.not_configured())?;
        dispatch::preview(active, tool, &self.running, call).await
    }

    /// Shows what a host stored.
    #[must_use]
    pub fn render(&self, stored: &Stored) -> View {
        let active = self.in_force();
        let registry = self.registry(active.as_deref());
        let tool = |name: &str| registry.tool(name).ok();
        match &active {
            Some(active) => {
                let stored = masking::stored(&active.secrets, stored);
                masking::view(&active.secrets, render::render(&stored, tool))
            }
            None => render::render(stored, tool),
        }
    }

    /// A result of the tool of this name as plain text, for a host that passes on no JSON: what is to
    /// be read as it is, then a line `name: value` for each other field.
    #[must_use]
    pub fn plain_text(&self, tool: &str, result: &Payload) -> String {
        let active = self.in_force();
        match self.registry(active.as_deref()).tool(tool) {
            Ok(tool) => plain_text::of(tool.spec(), tool.bare_fields(), result),
            Err(_) => Value::Object(result.clone()).to_string(),
        }
    }

    /// Takes no more calls, cancels the running ones, and waits until they, the previews and a
    /// Configure have ended. What the configuration in force holds is torn down here.
    pub async fn shut_down(&self) {
        self.running.shut_down().await;
        self.withdraw();
    }

    /// Takes the configuration out of force: calls fail until there is another one. What it holds, such as
    /// sessions, is torn down here, or with the last call that runs under it. It ends processes, so it must
    /// not run on a thread that serves others.
    pub fn withdraw(&self) {
        let last = self.active.write().unwrap_or_else(PoisonError::into_inner).take();
        // Outside the lock.
        drop(last);
    }

    /// [`Provider::configure`] on a thread of its own, which holds the provider no longer than that
    /// takes. `answer` is called there with the outcome.
    ///
    /// # Errors
    /// Where there is no thread, or the provider is shutting down.
    pub fn configure_beside(
        self: Arc<Self>,
        block: Payload,
        answer: impl FnOnce(Result<(), ConfigureError>) + Send + 'static,
    ) -> Result<(), ToolError> {
        let other = self.running.begin_other()?;
        let work = move || {
            let _other = other;
            let outcome = self.configure(&block);
            // A provider that has answered may end, and its last owner is to clean up.
            drop(self);
            answer(outcome);
        };
        let started = std::thread::Builder::new().name("configure".to_owned()).spawn(work);
        started
            .map(drop)
            .map_err(|error| ToolError::from_io("start a thread to configure", "", error))
    }

    /// The error without the configured secrets: what is wrong with arguments repeats a piece of
    /// them.
    pub(crate) fn masked(&self, error: ToolError) -> ToolError {
        match self.in_force() {
            Some(active) => masking::error(&active.secrets, error),
            None => error,
        }
    }

    fn registry<'a>(&'a self, active: Option<&'a Active<S>>) -> &'a Registry<S> {
        active.map_or(&self.advertised, |active| &active.registry)
    }

    fn in_force(&self) -> Option<Arc<Active<S>>> {
        self.active.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Puts the slips in a call's arguments right, then checks them.
fn put_right_and_check(spec: &ToolSpec, arguments: &mut Payload) -> Result<(), ToolError> {
    slips::put_right(spec, arguments);
    validate::arguments(spec, arguments)
}
