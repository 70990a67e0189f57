//! Log entries for the host, through the callback service that it serves on the broker.
//!
//! Entries wait in a bounded queue, one task carries them away, and no call ever waits for it. A
//! host without a callback service costs one failed dial; after that the log falls silent.

use std::collections::VecDeque;
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use serde_json::{Map, Value};
use tokio::sync::Notify;
use tonic::Code;
use tonic::transport::Channel;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use crate::shorten::shorten;

use super::convert::to_struct;
use super::pb::kernel::v1::LogRequest;
use super::pb::kernel::v1::kernel_callback_service_client::KernelCallbackServiceClient;
use super::pb::log::v1::{LogEntry, LogLevel};

/// Entries that wait at most; what comes beyond is counted and lost.
const MOST_WAITING: usize = 256;
/// Longest text that an entry keeps, in bytes.
const MOST_TEXT: usize = 8 * 1024;
/// How long the host may take for one entry.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);
/// Entries in a row that the host may fail to take before it counts as gone.
const MOST_FAILURES: u32 = 3;

/// Why the host could not be reached.
pub type DialError = Box<dyn Error + Send + Sync>;

type Dialled = Pin<Box<dyn Future<Output = Result<Channel, DialError>> + Send>>;
type Dial = Box<dyn Fn() -> Dialled + Send + Sync>;

/// The way of log entries to the host. Clones share one.
#[derive(Clone, Default)]
pub struct HostLog {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    arrived: Notify,
    drained: Notify,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Entry>,
    lost: u64,
    /// Taken from the queue and not yet with the host.
    in_flight: usize,
    link: LinkState,
}

#[derive(Default)]
enum LinkState {
    /// Nobody said how to reach the host.
    #[default]
    Unknown,
    /// It can be dialled.
    Ready(Dial),
    /// It is being dialled, which takes long where nobody answers.
    Dialing,
    /// A task carries entries.
    Connected,
    /// The host has no callback service, or it is gone.
    Silent,
}

struct Entry {
    level: Level,
    target: &'static str,
    message: String,
    fields: Map<String, Value>,
    time: SystemTime,
}

impl HostLog {
    /// The layer that feeds this log.
    #[must_use]
    pub fn layer(&self) -> HostLogLayer {
        HostLogLayer { log: self.clone() }
    }

    /// Says how to reach the host. Nothing is dialled yet.
    pub fn dial_with<F>(&self, dial: impl Fn() -> F + Send + Sync + 'static)
    where
        F: Future<Output = Result<Channel, DialError>> + Send + 'static,
    {
        self.shared.lock().link = LinkState::Ready(Box::new(move || Box::pin(dial())));
    }

    /// Dials the host, once, and starts to carry entries. To be called while the host waits for
    /// an answer of ours: only then is it sure to serve its side.
    pub fn connect(&self) {
        let mut state = self.shared.lock();
        if !matches!(state.link, LinkState::Ready(_)) {
            return;
        }
        let LinkState::Ready(dial) = std::mem::replace(&mut state.link, LinkState::Dialing) else {
            return;
        };
        drop(state);
        tokio::spawn(carry(self.shared.clone(), dial));
    }

    /// Waits until every entry so far is with the host, or the log fell silent. Does not wait
    /// for a host that has not answered the dial: most likely it never will.
    pub async fn flush(&self) {
        loop {
            let drained = self.shared.drained.notified();
            tokio::pin!(drained);
            drained.as_mut().enable();
            {
                let state = self.shared.lock();
                let is_done = state.waiting.is_empty() && state.in_flight == 0;
                if is_done || !matches!(state.link, LinkState::Connected) {
                    return;
                }
            }
            drained.await;
        }
    }

    fn push(&self, entry: Entry) {
        let mut state = self.shared.lock();
        if matches!(state.link, LinkState::Silent) {
            return;
        }
        if state.waiting.len() >= MOST_WAITING {
            state.lost += 1;
            return;
        }
        state.waiting.push_back(entry);
        drop(state);
        self.shared.arrived.notify_one();
    }
}

impl fmt::Debug for HostLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostLog").finish_non_exhaustive()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fall_silent(&self) {
        let mut state = self.lock();
        state.link = LinkState::Silent;
        state.waiting = VecDeque::new();
        state.in_flight = 0;
        drop(state);
        self.drained.notify_waiters();
    }
}

/// Carries entries until the host cannot be reached any more.
async fn carry(shared: Arc<Shared>, dial: Dial) {
    let Ok(channel) = dial().await else {
        return shared.fall_silent();
    };
    let mut host = KernelCallbackServiceClient::new(channel);
    shared.lock().link = LinkState::Connected;
    let mut failures = 0;
    loop {
        let (batch, lost) = {
            let mut state = shared.lock();
            let batch = std::mem::take(&mut state.waiting);
            state.in_flight = batch.len();
            (batch, std::mem::take(&mut state.lost))
        };
        if batch.is_empty() {
            shared.drained.notify_waiters();
            shared.arrived.notified().await;
            continue;
        }
        let lost = (lost > 0).then(|| Entry {
            level: Level::WARN,
            target: module_path!(),
            message: format!("{lost} log entries were lost: the host took them too slowly"),
            fields: Map::new(),
            time: SystemTime::now(),
        });
        for entry in batch.into_iter().chain(lost) {
            // One call an entry: an older host reads only the first entry of a call.
            let sent = tokio::time::timeout(SEND_TIMEOUT, host.log(request(entry))).await;
            failures = if matches!(sent, Ok(Ok(_))) { 0 } else { failures + 1 };
            let has_no_log =
                matches!(&sent, Ok(Err(status)) if status.code() == Code::Unimplemented);
            if has_no_log || failures >= MOST_FAILURES {
                return shared.fall_silent();
            }
        }
        shared.lock().in_flight = 0;
    }
}

fn request(entry: Entry) -> LogRequest {
    let session = entry.fields.get("session_id").and_then(Value::as_str);
    let session_id = session.filter(|id| !id.is_empty()).map(str::to_owned);
    let entry = LogEntry {
        level: level(entry.level).into(),
        logger: entry.target.replace("::", "."),
        message: entry.message,
        fields: Some(to_struct(entry.fields)),
        time: Some(entry.time.into()),
    };
    LogRequest { session_id, entry: Some(entry.clone()), entries: vec![entry] }
}

fn level(level: Level) -> LogLevel {
    match level {
        Level::TRACE => LogLevel::Trace,
        Level::DEBUG => LogLevel::Debug,
        Level::INFO => LogLevel::Info,
        Level::WARN => LogLevel::Warn,
        Level::ERROR => LogLevel::Error,
    }
}

/// Feeds a [`HostLog`] with the entries of level INFO and above that the subscriber lets pass, each
/// with the fields of the spans that it is in.
#[derive(Debug)]
pub struct HostLogLayer {
    log: HostLog,
}

/// The fields of a span, kept with it.
struct SpanFields(Map<String, Value>);

impl<S: Subscriber + for<'lookup> LookupSpan<'lookup>> Layer<S> for HostLogLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            let mut fields = Fields::default();
            attributes.record(&mut fields);
            span.extensions_mut().insert(SpanFields(fields.others));
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let metadata = event.metadata();
        if *metadata.level() > Level::INFO {
            return;
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        for span in context.event_scope(event).into_iter().flatten() {
            if let Some(SpanFields(outer)) = span.extensions().get() {
                // The event's own fields come first, then those of the innermost span.
                for (name, value) in outer {
                    fields.others.entry(name).or_insert_with(|| value.clone());
                }
            }
        }
        self.log.push(Entry {
            level: *metadata.level(),
            target: metadata.target(),
            message: fields.message,
            fields: fields.others,
            time: SystemTime::now(),
        });
    }
}

#[derive(Default)]
struct Fields {
    message: String,
    others: Map<String, Value>,
}

impl Fields {
    fn insert(&mut self, field: &Field, value: impl Into<Value>) {
        self.others.insert(field.name().to_owned(), value.into());
    }

    fn text(&mut self, field: &Field, text: &str) {
        let text = shorten(text, MOST_TEXT).into_owned();
        if field.name() == "message" {
            self.message = text;
        } else {
            self.insert(field, text);
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.text(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.insert(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.insert(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.insert(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.insert(field, value);
    }
}
