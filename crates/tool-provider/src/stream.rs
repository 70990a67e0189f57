//! A call's events, from the thread that makes them to the reader of the stream.
//!
//! One [`Producer`] and one [`EventStream`] share a bounded queue. The producer's side is plain
//! threads: a full queue makes it wait on a condition variable. The reader's side is a future's.
//! The terminal event has its own slot beside the queue. The slot can be filled once, and filling
//! it consumes the producer: nothing can follow the event, and it cannot be forgotten.

use std::collections::VecDeque;
use std::future::Future as _;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use futures_util::Stream;
use serde_json::Value;
use tokio::time::Sleep;

use crate::running::Admission;
use crate::{
    CancelToken, EmitError, Event, EventSink, Partials, Payload, Phase, ToolError, ToolKind,
    ToolSpec,
};

/// How a call ended.
pub type Outcome = Result<Payload, ToolError>;

/// What a stream of events yields.
#[derive(Debug)]
pub enum StreamItem {
    /// An event before the last.
    Event(Event),
    /// The last one. The stream yields exactly one of these, and ends.
    Outcome(Outcome),
}

/// Most bytes that wait in a queue. One event that is larger than this waits alone.
const MOST_BYTES: usize = 256 * 1024;
/// Most events that wait in a queue.
const MOST_EVENTS: usize = 1024;
/// What an event costs beside its own bytes.
const EVENT_OVERHEAD: usize = 64;

/// Whether a call may have events before its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamingMode {
    /// Any: the tool says of itself that it streams.
    Streaming(Partials),
    /// None.
    TerminalOnly,
}

impl StreamingMode {
    pub(crate) fn of(spec: &ToolSpec, partials: Partials) -> Self {
        if spec.streaming { Self::Streaming(partials) } else { Self::TerminalOnly }
    }
}

/// When a call has to be over.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Timing {
    /// When the tool should have ended by itself.
    pub tool: Option<Instant>,
    /// When the stream ends whatever the tool does, unless the tool is changing things.
    pub stream: Option<Instant>,
}

/// Makes the two ends of a call's queue.
pub(crate) fn channel(
    streaming: StreamingMode,
    timing: Timing,
    cancel: CancelToken,
) -> (Producer, EventStream) {
    let shared = Arc::new(Shared {
        state: Mutex::new(State {
            queue: VecDeque::new(),
            bytes: 0,
            terminal: Terminal::Pending,
            reader: Reader::Present(None),
            exit_seen: false,
            waiting: 0,
        }),
        space: Condvar::new(),
        cancel,
        phase: Phase::default(),
        sent_bytes: AtomicU64::new(0),
    });
    let expiry = timing.stream.map_or(Expiry::Never, Expiry::At);
    let producer =
        Producer { shared: shared.clone(), streaming, deadline: timing.tool, answer: Answer::Owed };
    let kind = ToolKind::DataSource;
    (producer, EventStream { shared, expiry, undelivered: None, kind, admission: None })
}

/// Called with an outcome that the reader did not wait for.
type Undelivered = Box<dyn FnOnce(Outcome) + Send>;

/// The events of one call, ending with [`StreamItem::Outcome`].
///
/// Dropping it before the end cancels the call at once, whether or not anything is being sent.
pub struct EventStream {
    shared: Arc<Shared>,
    expiry: Expiry,
    undelivered: Option<Undelivered>,
    kind: ToolKind,
    /// Held until the end is read.
    admission: Option<Admission>,
}

enum Expiry {
    Never,
    At(Instant),
    Armed(Pin<Box<Sleep>>),
}

struct Shared {
    state: Mutex<State>,
    space: Condvar,
    cancel: CancelToken,
    phase: Phase,
    sent_bytes: AtomicU64,
}

struct State {
    queue: VecDeque<Event>,
    bytes: usize,
    terminal: Terminal,
    reader: Reader,
    exit_seen: bool,
    /// Producers that wait for space. Waking a condition variable is a system call even without
    /// waiters.
    waiting: usize,
}

enum Terminal {
    Pending,
    Ready(Outcome),
    Taken,
}

enum Reader {
    Present(Option<Waker>),
    Gone,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_closed(&self) -> bool {
        matches!(self.reader, Reader::Gone) || !matches!(self.terminal, Terminal::Pending)
    }

    fn fits(&self, cost: usize) -> bool {
        self.queue.is_empty() || (self.bytes + cost <= MOST_BYTES && self.queue.len() < MOST_EVENTS)
    }

    fn take_waker(&mut self) -> Option<Waker> {
        match &mut self.reader {
            Reader::Present(waker) => waker.take(),
            Reader::Gone => None,
        }
    }
}

impl EventStream {
    /// A stream that has nothing but a failure.
    #[must_use]
    pub fn failed(error: ToolError) -> Self {
        let (producer, stream) =
            channel(StreamingMode::TerminalOnly, Timing::default(), CancelToken::new());
        producer.finish(Err(error));
        stream
    }

    /// Says what kind of tool runs: a call that could have changed something, and is stopped in
    /// time, says that it did not.
    pub(crate) fn set_kind(&mut self, kind: ToolKind) {
        self.kind = kind;
    }

    /// Keeps the call's slot until its end is read.
    pub(crate) fn set_admission(&mut self, admission: Admission) {
        self.admission = Some(admission);
    }

    /// Has `report` called with the outcome in case the reader leaves between the call's end and
    /// its delivery.
    pub(crate) fn on_undelivered(&mut self, report: impl FnOnce(Outcome) + Send + 'static) {
        self.undelivered = Some(Box::new(report));
    }

    /// Ends the stream when its time is up, unless the tool is past its point of no return.
    fn expire(&self) {
        if !self.shared.phase.stop() {
            return;
        }
        // What is withdrawn is dropped when the stream has its end.
        let (refused, _begin) = self.admission.as_ref().and_then(Admission::withdraw).unzip();
        let mut state = self.shared.lock();
        if matches!(state.terminal, Terminal::Pending) {
            let error = refused.unwrap_or_else(|| {
                ToolError::timeout("the call's time is up and the tool has not ended")
                    .with_hint("try again with less to do, or with a longer deadline")
            });
            // The phase was stopped in time: nothing was changed, and nothing will be.
            let error = match self.kind {
                ToolKind::Resource => error.with_detail("applied", false),
                ToolKind::DataSource => error,
            };
            state.terminal = Terminal::Ready(Err(error));
        }
        drop(state);
        self.shared.space.notify_all();
        // Wakes a tool that waits for something else than its deadline.
        self.shared.cancel.cancel();
    }
}

impl Stream for EventStream {
    type Item = StreamItem;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<StreamItem>> {
        let this = self.get_mut();
        loop {
            let mut state = this.shared.lock();
            if let Some(event) = state.queue.pop_front() {
                state.bytes -= cost(&event);
                let waiting = state.waiting;
                drop(state);
                if waiting > 0 {
                    this.shared.space.notify_all();
                }
                return Poll::Ready(Some(StreamItem::Event(event)));
            }
            match std::mem::replace(&mut state.terminal, Terminal::Taken) {
                Terminal::Ready(outcome) => {
                    drop(state);
                    this.admission = None;
                    return Poll::Ready(Some(StreamItem::Outcome(outcome)));
                }
                Terminal::Taken => return Poll::Ready(None),
                Terminal::Pending => state.terminal = Terminal::Pending,
            }
            if let Reader::Present(waker) = &mut state.reader {
                match waker {
                    Some(waker) => waker.clone_from(cx.waker()),
                    None => *waker = Some(cx.waker().clone()),
                }
            }
            drop(state);
            if let Expiry::At(instant) = this.expiry {
                this.expiry = Expiry::Armed(Box::pin(tokio::time::sleep_until(instant.into())));
            }
            let Expiry::Armed(sleep) = &mut this.expiry else { return Poll::Pending };
            if sleep.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            this.expiry = Expiry::Never;
            this.expire();
        }
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        let terminal = {
            let mut state = self.shared.lock();
            state.reader = Reader::Gone;
            state.queue.clear();
            state.bytes = 0;
            std::mem::replace(&mut state.terminal, Terminal::Taken)
        };
        match terminal {
            Terminal::Taken => {}
            Terminal::Pending => {
                self.shared.cancel.cancel();
                self.shared.space.notify_all();
            }
            Terminal::Ready(outcome) => {
                if let Some(report) = self.undelivered.take() {
                    report(outcome);
                }
            }
        }
    }
}

impl std::fmt::Debug for EventStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventStream").finish_non_exhaustive()
    }
}

/// The end that a running tool writes to.
pub(crate) struct Producer {
    shared: Arc<Shared>,
    streaming: StreamingMode,
    deadline: Option<Instant>,
    answer: Answer,
}

#[derive(PartialEq)]
enum Answer {
    Owed,
    Given,
}

/// What became of an outcome.
#[derive(Debug)]
pub(crate) enum Delivery {
    /// It waits for the reader.
    Queued,
    /// The reader was gone, or had its answer when time was up.
    Unwanted(Outcome),
}

impl Producer {
    /// Ends the call.
    pub(crate) fn finish(mut self, outcome: Outcome) -> Delivery {
        self.answer = Answer::Given;
        end(&self.shared, outcome)
    }

    pub(crate) fn phase(&self) -> &Phase {
        &self.shared.phase
    }

    /// Bytes of the events that were taken so far.
    pub(crate) fn sent_bytes(&self) -> u64 {
        self.shared.sent_bytes.load(Ordering::Relaxed)
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        if self.answer == Answer::Owed {
            let raw = "the work was dropped before it ended";
            end(&self.shared, Err(ToolError::unknown("the call ended without an answer", raw)));
        }
    }
}

fn end(shared: &Shared, outcome: Outcome) -> Delivery {
    let mut state = shared.lock();
    if state.is_closed() {
        return Delivery::Unwanted(outcome);
    }
    state.terminal = Terminal::Ready(outcome);
    let waker = state.take_waker();
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
    Delivery::Queued
}

impl EventSink for Producer {
    fn emit_until(&self, event: Event, deadline: Option<Instant>) -> Result<(), EmitError> {
        let shared = &self.shared;
        match (self.streaming, &event) {
            (StreamingMode::TerminalOnly, event) => {
                debug_assert!(false, "a tool that does not stream emitted {event:?}");
                return Ok(());
            }
            (StreamingMode::Streaming(Partials::Unread), Event::Partial(_)) => return Ok(()),
            (StreamingMode::Streaming(_), _) => {}
        }
        let deadline = deadline.or(self.deadline);
        let cost = cost(&event);
        let mut state = shared.lock();
        loop {
            if state.is_closed() {
                return Err(EmitError::Closed);
            }
            if state.fits(cost) {
                break;
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(EmitError::TimedOut);
            }
            state.waiting += 1;
            state = match left {
                None => shared.space.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(left) => {
                    let waited = shared.space.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
            state.waiting -= 1;
        }
        if matches!(event, Event::Exit { .. }) && std::mem::replace(&mut state.exit_seen, true) {
            debug_assert!(false, "a tool reported a second exit");
            return Ok(());
        }
        state.bytes += cost;
        state.queue.push_back(event);
        let waker = state.take_waker();
        drop(state);
        shared.sent_bytes.fetch_add((cost - EVENT_OVERHEAD) as u64, Ordering::Relaxed);
        if let Some(waker) = waker {
            waker.wake();
        }
        Ok(())
    }

    fn partials(&self) -> Partials {
        match self.streaming {
            StreamingMode::Streaming(partials) => partials,
            StreamingMode::TerminalOnly => Partials::Unread,
        }
    }
}

/// The size of an event in the queue, in bytes.
fn cost(event: &Event) -> usize {
    EVENT_OVERHEAD
        + match event {
            Event::Output { data, .. } => data.len(),
            Event::Progress { message, .. } => message.len(),
            Event::Partial(payload) => payload.iter().map(entry_weight).sum(),
            Event::Exit { signal, .. } => signal.as_ref().map_or(0, String::len),
        }
}

fn entry_weight((name, value): (&String, &Value)) -> usize {
    name.len() + weight(value)
}

fn weight(value: &Value) -> usize {
    const NODE: usize = 32;
    NODE + match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(map) => map.iter().map(entry_weight).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
