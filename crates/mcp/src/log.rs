//! Entries of the process's log, on their way to the client.
#![expect(
    deprecated,
    reason = "the newest version drops log messages; clients of the others show them"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam};
use rmcp::{Peer, RoleServer};
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tracing::Level;

/// Entries that wait at most; what comes beyond is dropped, and stays on standard error.
const MOST_WAITING: usize = 256;

/// One entry.
#[derive(Clone, Debug)]
pub struct LogEntry {
    /// How grave it is.
    pub level: Level,
    /// What it says.
    pub message: String,
    /// The structured part.
    pub fields: Map<String, Value>,
}

/// The end that takes entries. It never waits.
#[derive(Clone, Debug)]
pub struct Log(mpsc::Sender<LogEntry>);

/// The end that the client's messages are made from.
#[derive(Debug)]
pub struct LogFeed(mpsc::Receiver<LogEntry>);

impl Log {
    /// Both ends.
    #[must_use]
    pub fn new() -> (Self, LogFeed) {
        let (sender, receiver) = mpsc::channel(MOST_WAITING);
        (Self(sender), LogFeed(receiver))
    }

    /// Takes an entry, unless too many wait.
    pub fn push(&self, entry: LogEntry) {
        // A client that reads nothing loses entries, and no call waits for it.
        let _ = self.0.try_send(entry);
    }
}

/// From which level on a client wants entries: INFO until it says otherwise.
#[derive(Clone)]
pub(crate) struct Threshold(Arc<AtomicU8>);

impl Default for Threshold {
    fn default() -> Self {
        Self(Arc::new(AtomicU8::new(rank(LoggingLevel::Info))))
    }
}

impl Threshold {
    pub(crate) fn set(&self, level: LoggingLevel) {
        self.0.store(rank(level), Ordering::Relaxed);
    }

    fn admits(&self, level: LoggingLevel) -> bool {
        rank(level) >= self.0.load(Ordering::Relaxed)
    }
}

/// The order of the levels, as RFC 5424 has it, the least grave first.
fn rank(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        LoggingLevel::Emergency => 7,
    }
}

/// Carries entries to the client for as long as it takes them.
pub(crate) async fn carry(
    mut feed: LogFeed,
    peer: Peer<RoleServer>,
    threshold: Threshold,
    logger: &'static str,
) {
    while let Some(entry) = feed.0.recv().await {
        let level = level_of(entry.level);
        if !threshold.admits(level) {
            continue;
        }
        let mut data = entry.fields;
        data.insert("message".to_owned(), entry.message.into());
        let param = LoggingMessageNotificationParam::new(level, data.into()).with_logger(logger);
        if peer.notify_logging_message(param).await.is_err() {
            return;
        }
    }
}

fn level_of(level: Level) -> LoggingLevel {
    match level {
        Level::ERROR => LoggingLevel::Error,
        Level::WARN => LoggingLevel::Warning,
        Level::INFO => LoggingLevel::Info,
        _ => LoggingLevel::Debug,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_gets_what_is_as_grave_as_it_asked_for() {
        let threshold = Threshold::default();
        assert!(threshold.admits(LoggingLevel::Info) && !threshold.admits(LoggingLevel::Debug));
        threshold.set(LoggingLevel::Error);
        assert!(
            threshold.admits(LoggingLevel::Critical) && !threshold.admits(LoggingLevel::Warning)
        );
    }
}
