//! Runs a call on a file worker: hand-over, deadline, panic guard, and the final check of its outcome.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::oneshot;

use crate::masking::{self, Masked};
use crate::provider::{Active, Call};
use crate::running::{Running, Slot};
use crate::stream::{Delivery, EventStream, Outcome, Producer, StreamingMode, Timing, channel};
use crate::validate;
use crate::view::View;
use crate::{
    CancelToken, Context, EmitError, Event, EventSink, Payload, Phase, State, Tool, ToolError,
    ToolKind, ToolSpec,
};

/// Longest time by which a call is ended before the host's deadline, so that its answer still
/// gets there. At the deadline a host drops the stream with all that was not delivered.
const MOST_MARGIN: Duration = Duration::from_millis(250);
/// How long a preview may take where the host sets no deadline.
const PREVIEW: Duration = Duration::from_secs(10);

/// Starts a call whose arguments were checked, now or when it is its turn.
///
/// # Errors
/// When too many calls run and wait.
pub(crate) fn invoke<S: State>(
    active: &Arc<Active<S>>,
    tool: Arc<dyn Tool<S>>,
    running: &Arc<Running>,
    call: Call,
) -> Result<EventStream, ToolError> {
    let most = active.max_concurrent_calls;
    let cancel = CancelToken::new();
    let started = Instant::now();
    let spec = tool.spec();
    let streaming = StreamingMode::of(spec, call.partials);
    let timing = timing(started, call.deadline.unwrap_or(started + spec.default_timeout));
    let (producer, mut stream) = channel(streaming, timing, cancel.clone());
    stream.set_kind(spec.kind);
    let id = Arc::new(CallId { call_id: call.id, session_id: call.session_id, tool: spec.name });
    let late = id.clone();
    let work = Work {
        active: active.clone(),
        tool,
        arguments: call.arguments,
        working_directory: call.working_directory,
        deadline: timing.tool,
        cancel: cancel.clone(),
        id,
        started,
    };
    let admission = running.admit(most, cancel, move |slot| work.submit(producer, slot))?;
    stream.set_admission(admission);
    stream.on_undelivered(move |outcome| late.log_unwanted(&outcome, started.elapsed()));
    Ok(stream)
}

/// Shows what a call would do, on a file worker like the call itself.
///
/// # Errors
/// The tool's, or `timeout`.
pub(crate) async fn preview<S: State>(
    active: Arc<Active<S>>,
    tool: Arc<dyn Tool<S>>,
    running: &Arc<Running>,
    call: Call,
) -> Result<View, ToolError> {
    let started = Instant::now();
    let timing = timing(started, call.deadline.unwrap_or(started + PREVIEW));
    let cancel = CancelToken::new();
    let guard = CancelOnDrop(cancel.clone());
    let (answer, answered) = oneshot::channel();
    let other = running.begin_other()?;
    let held = active.clone();
    let job = move || {
        let _other = other;
        if cancel.is_cancelled() {
            return;
        }
        let context = Context {
            state: &held.state,
            session_id: &call.session_id,
            working_directory: call.working_directory.as_deref(),
            sink: &NoEvents,
            cancel: &cancel,
            deadline: timing.tool,
            phase: &stopped(),
            secrets: &held.secrets,
        };
        let view = guarded(tool.spec().name, || tool.preview(&call.arguments, &context))
            .map(|view| masking::view(&held.secrets, view))
            .map_err(|error| masking::error(&held.secrets, error));
        // A provider that has answered may end, and its last owner is to clean up.
        drop((held, tool));
        // Nobody may be there any more.
        let _ = answer.send(view);
    };
    active.workers.submit(Box::new(job))?;
    let answered = async {
        answered.await.unwrap_or_else(|lost| {
            Err(ToolError::unknown("the preview ended without an answer", lost.to_string()))
        })
    };
    let view = match timing.stream {
        None => answered.await,
        Some(end) => tokio::time::timeout_at(end.into(), answered)
            .await
            .unwrap_or_else(|_| Err(ToolError::timeout("the preview's time is up"))),
    };
    drop(guard);
    view
}

/// A call on its way to a worker.
struct Work<S> {
    active: Arc<Active<S>>,
    tool: Arc<dyn Tool<S>>,
    arguments: Payload,
    working_directory: Option<String>,
    deadline: Option<Instant>,
    cancel: CancelToken,
    id: Arc<CallId>,
    started: Instant,
}

impl<S: State> Work<S> {
    /// Hands the call to a worker.
    fn submit(self, producer: Producer, slot: Slot) {
        // Dropped last: variables are dropped in the reverse order.
        let _handing_over = slot.hand_over();
        let workers = self.active.workers.clone();
        // Where no worker takes it, it still has to be answered.
        let kept = Arc::new(Mutex::new(Some((self, producer, slot))));
        let take = move || kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        let job = {
            let take = take.clone();
            move || {
                if let Some((work, producer, slot)) = take() {
                    work.run(producer, slot);
                }
            }
        };
        let Err(error) = workers.submit(Box::new(job)) else { return };
        if let Some((work, producer, slot)) = take() {
            drop(slot);
            producer.finish(Err(masking::error(&work.active.secrets, error)));
        }
    }

    fn run(self, producer: Producer, slot: Slot) {
        let id = &self.id;
        let span = id.span(self.tool.spec());
        let _entered = span.enter();
        let tool = id.tool;
        let sink = Masked { sink: &producer, secrets: &self.active.secrets, tool };
        let outcome = guarded(id.tool, || {
            let context = Context {
                state: &self.active.state,
                session_id: &id.session_id,
                working_directory: self.working_directory.as_deref(),
                sink: &sink,
                cancel: &self.cancel,
                deadline: self.deadline,
                phase: producer.phase(),
                secrets: &self.active.secrets,
            };
            context.check().map_err(|ended| not_begun(self.tool.spec().kind, ended))?;
            self.tool.run(&self.arguments, &context)
        });
        let outcome = self.settle(outcome);
        let bytes = producer.sent_bytes();
        let summary = OutcomeSummary::of(&outcome);
        // A configuration cleans up with its last owner. A provider that shuts down waits for the
        // slot, and is to be that owner.
        drop((self.active, self.tool));
        // The next call may come as soon as the reader has seen the end of this one. Where nobody
        // reads, the slot is kept until all is logged: a provider that shuts down waits for it.
        let slot = if self.cancel.is_cancelled() {
            Some(slot)
        } else {
            drop(slot);
            None
        };
        let delivery = producer.finish(outcome);
        id.log(&summary, self.started.elapsed(), bytes);
        if let Delivery::Unwanted(outcome) = delivery {
            id.log_unwanted(&outcome, self.started.elapsed());
        }
        drop(slot);
    }

    /// The final outcome: a result that fits its schema, or an error; never a success after a cancel.
    fn settle(&self, outcome: Outcome) -> Outcome {
        let spec = self.tool.spec();
        let secrets = &self.active.secrets;
        let payload = outcome.map_err(|error| {
            let error = masking::error(secrets, self.active.state.annotate(error));
            if error.has_so_far() { error.with_detail("tool", spec.name) } else { error }
        })?;
        let payload = masking::of_tool(spec.name, masking::payload(secrets, payload));
        if self.cancel.is_cancelled() {
            return Err(cancelled_after_success(spec.kind, &payload));
        }
        match validate::payload(&spec.output, &payload) {
            Ok(()) => Ok(payload),
            Err(problems) => {
                tracing::error!(tool = spec.name, problems, "a result does not fit its schema");
                Err(ToolError::unknown("the result does not fit the tool's schema", problems))
            }
        }
    }
}

/// The error for a call that ended before its tool was asked.
fn not_begun(kind: ToolKind, ended: ToolError) -> ToolError {
    match kind {
        ToolKind::DataSource => ended,
        ToolKind::Resource => ended.with_detail("applied", false),
    }
}

/// The error for a call that was cancelled too late to be stopped.
fn cancelled_after_success(kind: ToolKind, payload: &Payload) -> ToolError {
    match kind {
        ToolKind::DataSource => ToolError::cancelled("the call was cancelled"),
        ToolKind::Resource => {
            let error = ToolError::cancelled("the call was cancelled after it had been applied")
                .with_detail("applied", true);
            match payload.get("version") {
                Some(version) => error.with_detail("version", version.clone()),
                None => error,
            }
        }
    }
}

/// Runs `work`; a panic in it fails this call and no other.
fn guarded<T>(tool: &str, work: impl FnOnce() -> Result<T, ToolError>) -> Result<T, ToolError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let raw = panic_text(panic.as_ref());
        tracing::error!(tool, raw, "a tool panicked");
        Err(ToolError::unknown(format!("a fault in {tool} ended the call"), raw))
    })
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic")
}

/// The moments at which a call that the host drops at `deadline` has to be over: first the tool
/// by itself, then the stream without it.
fn timing(now: Instant, deadline: Instant) -> Timing {
    let margin = (deadline.saturating_duration_since(now) / 10).min(MOST_MARGIN);
    Timing {
        tool: Some(deadline.checked_sub(margin).unwrap_or(now)),
        stream: Some(deadline.checked_sub(margin / 2).unwrap_or(now)),
    }
}

/// How a call ended, for the log.
struct OutcomeSummary {
    outcome: &'static str,
    kind: Option<&'static str>,
}

impl OutcomeSummary {
    fn of(outcome: &Outcome) -> Self {
        match outcome {
            Ok(_) => Self { outcome: "result", kind: None },
            Err(error) => {
                Self { outcome: error.category().name(), kind: Some(error.kind().name()) }
            }
        }
    }
}

/// What identifies a call in the log.
struct CallId {
    call_id: String,
    session_id: String,
    tool: &'static str,
}

impl CallId {
    /// The span that everything a tool logs is in. Where only INFO is logged, a call that is over in
    /// a moment should not pay for one; one that streams has things to log.
    fn span(&self, spec: &ToolSpec) -> tracing::Span {
        macro_rules! span {
            ($level:expr) => {
                tracing::span!(
                    $level,
                    "call",
                    tool = self.tool,
                    session_id = self.session_id,
                    call_id = self.call_id
                )
            };
        }
        if spec.streaming { span!(tracing::Level::INFO) } else { span!(tracing::Level::DEBUG) }
    }

    fn log(&self, summary: &OutcomeSummary, duration: Duration, bytes: u64) {
        tracing::debug!(
            tool = self.tool,
            session_id = self.session_id,
            call_id = self.call_id,
            duration_ms = millis(duration),
            outcome = summary.outcome,
            error_kind = summary.kind,
            bytes,
            "call ended"
        );
    }

    /// Logs what a call did whose answer nobody took. It is the only trace of it, so it says all,
    /// unless the tool has done so.
    fn log_unwanted(&self, outcome: &Outcome, duration: Duration) {
        let (what, details) = match outcome {
            Ok(payload) => ("completed", without_texts(payload)),
            Err(error) if error.is_logged() => return,
            Err(error) => (error.category().name(), error.details()),
        };
        let details = Value::Object(details).to_string();
        tracing::info!(
            tool = self.tool,
            session_id = self.session_id,
            call_id = self.call_id,
            duration_ms = millis(duration),
            outcome = what,
            details,
            "{}",
            match outcome {
                Ok(_) => "the call completed when nobody waited for it any more",
                Err(error) => error.message(),
            }
        );
    }
}

/// A result without its long texts: the log wants what happened, not the content of files.
fn without_texts(payload: &Payload) -> Payload {
    const LONGEST: usize = 200;
    payload
        .iter()
        .filter(|(_, value)| match value {
            Value::String(text) => text.len() <= LONGEST,
            Value::Array(_) | Value::Object(_) => false,
            _ => true,
        })
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A phase in which nothing can be changed any more: that of a preview.
fn stopped() -> Phase {
    let phase = Phase::default();
    phase.stop();
    phase
}

/// A preview has no events.
struct NoEvents;

impl EventSink for NoEvents {
    fn emit_until(&self, _: Event, _: Option<Instant>) -> Result<(), EmitError> {
        Err(EmitError::Closed)
    }
}

struct CancelOnDrop(CancelToken);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
