//! What a tool is, and what it is given for one call.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use crate::schema::Schema;
use crate::slips::Slips;
use crate::view::View;
use crate::{CancelToken, EventSink, Payload, Secrets, ToolError};

/// One operation that a model can call.
///
/// Arguments were checked against [`ToolSpec::input`] before any of these is called.
pub trait Tool<S = ()>: Send + Sync {
    /// What the tool says of itself.
    fn spec(&self) -> &ToolSpec;

    /// Does the work. The result satisfies [`ToolSpec::output`] with the field `tool`, which the
    /// provider adds.
    ///
    /// # Errors
    /// A [`ToolError`] for everything that is not a success.
    fn run(&self, arguments: &Payload, context: &Context<'_, S>) -> Result<Payload, ToolError>;

    /// Shows what [`Tool::run`] would do, and changes nothing. A call that would fail is still a
    /// success here: the failure is what a person wants to see.
    ///
    /// # Errors
    /// `invalid_arguments` where the arguments make no sense in any state of the files.
    fn preview(&self, arguments: &Payload, context: &Context<'_, S>) -> Result<View, ToolError>;

    /// Shows a call, from nothing but its arguments.
    fn render_call(&self, arguments: &Payload) -> View;

    /// Shows a result. Unknown fields are ignored and missing ones tolerated, so that a payload of
    /// an older version can be shown for ever.
    fn render_result(&self, payload: &Payload) -> View;

    /// The fields of a result that are read as they are, without their name, where a model is given
    /// plain text: lines of a file, what a command printed.
    fn bare_fields(&self) -> &'static [&'static str] {
        &[]
    }
}

/// What a tool says of itself.
#[derive(Clone, Debug)]
pub struct ToolSpec {
    /// Unique within this provider.
    pub name: &'static str,
    /// Whether it changes anything.
    pub kind: ToolKind,
    /// How much harm it can do.
    pub risk: RiskClass,
    /// For the model: what it does, when to use it, limits, one example.
    pub description: String,
    /// The shape of its arguments.
    pub input: Schema,
    /// The shape of its result.
    pub output: Schema,
    /// Other names and remedies for arguments that models give it.
    pub slips: Slips,
    /// Whether events may come before the terminal one.
    pub streaming: bool,
    /// Which calls may run beside each other.
    pub concurrency: Concurrency,
    /// The deadline a host should give it.
    pub default_timeout: Duration,
    /// Whether running it twice ends in the same state as running it once.
    pub idempotent: bool,
}

/// Whether an operation changes anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolKind {
    /// It changes something, and is gated by approval.
    Resource,
    /// It only reads.
    DataSource,
}

/// How much harm an operation can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RiskClass {
    /// None: it only reads.
    ReadOnly,
    /// Little: what it changes is easily had again.
    Low,
    /// Real but bounded, such as an edit of one file.
    Moderate,
    /// Hard to predict, such as any shell command.
    High,
}

/// Which calls a host may run at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concurrency {
    /// None beside this one, in the whole provider.
    Exclusive,
    /// Any, except calls of this tool with equal values in these arguments.
    Safe {
        /// The arguments that make the key.
        key_fields: &'static [&'static str],
    },
}

/// Everything that one call may use.
pub struct Context<'a, S = ()> {
    /// What the calls of this configuration share.
    pub state: &'a S,
    /// The host's name for the session that the call belongs to; may be empty.
    pub session_id: &'a str,
    /// The directory that relative paths start from, where the host named one.
    pub working_directory: Option<&'a str>,
    /// Where events go.
    pub sink: &'a dyn EventSink,
    /// Fires when the host closes the stream.
    pub cancel: &'a CancelToken,
    /// When the call must have ended.
    pub deadline: Option<Instant>,
    /// Where the call stands between "can still be stopped" and "cannot".
    pub phase: &'a Phase,
    /// What no one may see. All that a tool returns, emits or shows is masked by the provider; a
    /// tool masks only what it cuts, before it does, because half a secret is not recognised.
    pub secrets: &'a Secrets,
}

impl<S> Context<'_, S> {
    /// Ends a long loop early: an error once the call is cancelled or its time is up.
    ///
    /// # Errors
    /// `cancelled` or `timeout`.
    pub fn check(&self) -> Result<(), ToolError> {
        if self.cancel.is_cancelled() {
            return Err(ToolError::cancelled("the call was cancelled"));
        }
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(ToolError::timeout("the call's time is up"));
        }
        Ok(())
    }

    /// When a search has to stop: a little before the call's end, because what it found is still to
    /// be handed in.
    pub fn search_deadline(&self) -> Option<Instant> {
        const MARGIN: Duration = Duration::from_millis(50);
        let deadline = self.deadline?;
        let margin = (deadline.saturating_duration_since(Instant::now()) / 10).min(MARGIN);
        deadline.checked_sub(margin)
    }

    /// The last moment at which a call that changes something can be stopped. After this succeeds
    /// the call runs to its end, and the deadline and a cancel wait for its answer, so that what is
    /// reported is what happened.
    ///
    /// # Errors
    /// `cancelled` or `timeout` when the call was stopped before; then nothing may be changed.
    pub fn begin_commit(&self) -> Result<(), ToolError> {
        self.check()?;
        if self.phase.commit() {
            return Ok(());
        }
        self.check()?;
        Err(ToolError::timeout("the call's time is up"))
    }
}

/// Where a call stands. Two sides race for it: the tool, which wants to commit, and the provider,
/// which wants to end the call at its deadline; exactly one wins.
#[derive(Debug, Default)]
pub struct Phase(AtomicU8);

const RUNNING: u8 = 0;
const COMMITTING: u8 = 1;
const STOPPED: u8 = 2;

impl Phase {
    /// The tool's side: true when the call may change things now, also when it already did.
    pub fn commit(&self) -> bool {
        self.claim(COMMITTING)
    }

    /// The provider's side: true when the call was stopped before it changed anything.
    pub fn stop(&self) -> bool {
        self.claim(STOPPED)
    }

    fn claim(&self, wanted: u8) -> bool {
        match self.0.compare_exchange(RUNNING, wanted, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => true,
            Err(current) => current == wanted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_side_wins_the_phase() {
        let phase = Phase::default();
        assert!(phase.commit() && phase.commit() && !phase.stop());
        let phase = Phase::default();
        assert!(phase.stop() && phase.stop() && !phase.commit());
    }
}
