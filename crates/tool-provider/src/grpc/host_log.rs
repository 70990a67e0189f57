//! Log entries for the host, through the callback service that it serves on the broker, or by
//! another way where that service does not take them.
//!
//! Each entry goes one way. While the host's service works, entries wait in a bounded queue, one task
//! carries them away, and no call ever waits for it. Before, after and otherwise they go to what
//! [`HostLog::new`] was given: mostly the lines on standard error. So does whatever the queue has no
//! place for, and what was waiting when the service failed.

use std::collections::VecDeque;
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use serde_json::{Map, Value};
use tokio::sync::{Notify, watch};
use tonic::transport::Channel;
use tonic::{Code, Status};
use tracing::Level;

use super::convert::to_struct;
use super::pb::kernel::v1::LogRequest;
use super::pb::kernel::v1::kernel_callback_service_client::KernelCallbackServiceClient;
use super::pb::log::v1::{LogEntry, LogLevel};

mod layer;

pub use layer::HostLogLayer;

/// Entries that wait at most.
const MOST_WAITING: usize = 256;
/// Entries of one request.
const MOST_AT_ONCE: usize = 64;
/// How long the host may take to be reached.
const DIAL_LIMIT: Duration = Duration::from_secs(10);
/// How long the host may take for one request.
const LOG_LIMIT: Duration = Duration::from_secs(5);
/// How long the host may take for one request, or for the dial, once the provider stops. A host that
/// has asked for the end has mostly closed its broker by then.
const LAST_LOG_LIMIT: Duration = Duration::from_millis(100);
/// Requests in a row that the host may fail to take before it counts as gone.
const MOST_FAILURES: u32 = 3;
/// The field that a host makes of a request's session.
const SESSION: &str = "session_id";

/// Why the host could not be reached.
pub type DialError = Box<dyn Error + Send + Sync>;

type Dialled = Pin<Box<dyn Future<Output = Result<Channel, DialError>> + Send>>;
type Dial = Box<dyn Fn() -> Dialled + Send + Sync>;
type Otherwise = Box<dyn Fn(&LogRecord) + Send + Sync>;

/// One log entry, with the fields of the spans that it is in. Of fields with the same name the
/// innermost counts.
#[derive(Clone, Debug)]
pub struct LogRecord {
    /// How grave it is.
    pub level: Level,
    /// Which part of the program says so.
    pub target: &'static str,
    /// What it says.
    pub message: String,
    /// The structured part.
    pub fields: Map<String, Value>,
    /// When it was said.
    pub time: SystemTime,
}

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
    /// Whether the provider stops.
    stopping: watch::Sender<bool>,
    otherwise: Option<Otherwise>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<LogRecord>,
    link: LinkState,
    is_sending: bool,
}

/// The connection to the host's callback service.
#[derive(Default)]
enum LinkState {
    /// Nobody said how to reach the host.
    #[default]
    Unknown,
    /// It can be dialled.
    Ready(Dial),
    /// It is being dialled, which takes long where nobody answers.
    Dialling,
    /// A task carries entries.
    Carrying,
    /// The host has no callback service, or it is gone.
    Silent,
}

impl HostLog {
    /// A log whose entries go to `otherwise` while the host's service does not take them. It is
    /// called by whoever logs, so it must not log itself.
    #[must_use]
    pub fn new(otherwise: impl Fn(&LogRecord) + Send + Sync + 'static) -> Self {
        let otherwise: Otherwise = Box::new(otherwise);
        Self { shared: Arc::new(Shared { otherwise: Some(otherwise), ..Shared::default() }) }
    }

    /// The layer that feeds this log with whatever the subscriber lets pass.
    #[must_use]
    pub fn layer(&self) -> HostLogLayer {
        HostLogLayer::new(self.clone())
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
        let LinkState::Ready(dial) = std::mem::replace(&mut state.link, LinkState::Dialling) else {
            return;
        };
        drop(state);
        tokio::spawn(carry(self.shared.clone(), dial));
    }

    /// Ends the way through the host's service: waits until what is waiting is with the host, or the
    /// host has failed to take one request, for which it has 100 ms from here on. What is said from here
    /// on goes the other way.
    pub async fn finish(&self) {
        self.shared.stopping.send_replace(true);
        loop {
            let drained = self.shared.drained.notified();
            tokio::pin!(drained);
            drained.as_mut().enable();
            if self.shared.lock().finish() {
                self.shared.arrived.notify_one();
                return;
            }
            drained.await;
        }
    }

    fn push(&self, record: LogRecord) {
        let mut state = self.shared.lock();
        // What comes while the last entries go must not keep them from being the last.
        let is_carried = matches!(state.link, LinkState::Dialling | LinkState::Carrying)
            && state.waiting.len() < MOST_WAITING
            && !*self.shared.stopping.borrow();
        if is_carried {
            state.waiting.push_back(record);
            drop(state);
            self.shared.arrived.notify_one();
        } else {
            drop(state);
            self.shared.log_otherwise([record]);
        }
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

    fn log_otherwise(&self, records: impl IntoIterator<Item = LogRecord>) {
        if let Some(otherwise) = &self.otherwise {
            records.into_iter().for_each(|record| otherwise(&record));
        }
    }

    /// Gives the host's service up. `unsent` is what it did not take.
    fn fall_silent(&self, unsent: Vec<LogRecord>) {
        let waiting = {
            let mut state = self.lock();
            state.link = LinkState::Silent;
            state.is_sending = false;
            std::mem::take(&mut state.waiting)
        };
        self.log_otherwise(unsent.into_iter().chain(waiting));
        self.drained.notify_waiters();
    }

    /// Waits until a request that begins now has had its time: once the provider stops, less is left.
    async fn overdue(&self, usual: Duration) {
        let last = async {
            // Fails only where the sender is gone, and `self` holds it.
            let _ = self.stopping.subscribe().wait_for(|stops| *stops).await;
            tokio::time::sleep(LAST_LOG_LIMIT).await;
        };
        tokio::select! { () = tokio::time::sleep(usual) => {}, () = last => {} }
    }
}

impl State {
    /// Closes the link if nothing is left to carry. Says whether it is closed.
    fn finish(&mut self) -> bool {
        let is_idle = self.waiting.is_empty() && !self.is_sending;
        match self.link {
            LinkState::Dialling => return false,
            LinkState::Carrying if !is_idle => return false,
            _ => self.link = LinkState::Silent,
        }
        true
    }

    /// The next entries, as many as fit into one request: those of one session.
    fn take_batch(&mut self) -> Vec<LogRecord> {
        let Some(first) = self.waiting.front() else { return Vec::new() };
        let session = first.session().map(str::to_owned);
        let same = |record: &&LogRecord| record.session() == session.as_deref();
        let count = self.waiting.iter().take(MOST_AT_ONCE).take_while(same).count();
        self.is_sending = true;
        self.waiting.drain(..count).collect()
    }
}

/// Carries entries until the host cannot be reached any more.
async fn carry(shared: Arc<Shared>, dial: Dial) {
    let channel = tokio::select! {
        dialled = dial() => dialled.ok(),
        () = shared.overdue(DIAL_LIMIT) => None,
    };
    let Some(channel) = channel else { return shared.fall_silent(Vec::new()) };
    let mut host = KernelCallbackServiceClient::new(channel);
    shared.lock().link = LinkState::Carrying;
    let mut failures = 0;
    loop {
        let batch = shared.lock().take_batch();
        if batch.is_empty() {
            shared.drained.notify_waiters();
            shared.arrived.notified().await;
            if matches!(shared.lock().link, LinkState::Silent) {
                return;
            }
            continue;
        }
        let sent = tokio::select! {
            sent = host.log(request(&batch)) => sent.map(drop),
            () = shared.overdue(LOG_LIMIT) => Err(Status::deadline_exceeded("the host did not answer")),
        };
        match sent {
            Ok(()) => failures = 0,
            Err(status) => {
                failures += 1;
                let is_gone = status.code() == Code::Unimplemented
                    || *shared.stopping.borrow()
                    || failures >= MOST_FAILURES;
                if is_gone {
                    return shared.fall_silent(batch);
                }
                shared.log_otherwise(batch);
            }
        }
        shared.lock().is_sending = false;
    }
}

fn request(batch: &[LogRecord]) -> LogRequest {
    let session_id = batch.first().and_then(LogRecord::session).map(str::to_owned);
    LogRequest { session_id, entries: batch.iter().map(entry).collect() }
}

fn entry(record: &LogRecord) -> LogEntry {
    let mut fields = record.fields.clone();
    // The host makes it of the request's.
    fields.remove(SESSION);
    LogEntry {
        level: level(record.level).into(),
        logger: record.target.replace("::", "."),
        message: record.message.clone(),
        fields: Some(to_struct(fields)),
        time: Some(record.time.into()),
    }
}

impl LogRecord {
    fn session(&self) -> Option<&str> {
        self.fields.get(SESSION).and_then(Value::as_str).filter(|id| !id.is_empty())
    }
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
