//! A launched provider, and all that it says besides its answers.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::processes::Process;
use super::runs::Run;
use crate::observe::{Observer, Sent, SentContext};
use goplugin::host::{LogLine, Plugin};
use tool_provider::Payload;
use tool_provider::grpc::{HostEvent, HostLogEntry};

/// The session that every call belongs to.
pub(crate) const SESSION: &str = "conform-session";

/// How many entries of a log are kept, each of 64 KiB at most, and how many bytes of other output: a
/// provider that floods must not flood this process.
const MOST_ENTRIES: usize = 1000;
const MOST_BYTES: usize = 1 << 20;

/// What came in from elsewhere than a call, up to a limit.
pub(crate) struct Heard<T> {
    items: Arc<Mutex<Vec<T>>>,
    most: usize,
}

impl<T> Clone for Heard<T> {
    fn clone(&self) -> Self {
        Self { items: self.items.clone(), most: self.most }
    }
}

impl<T> Heard<T> {
    fn at_most(most: usize) -> Self {
        Self { items: Arc::default(), most }
    }

    pub(crate) fn push(&self, more: impl IntoIterator<Item = T>) {
        let mut items = self.items.lock().unwrap_or_else(PoisonError::into_inner);
        let capacity = self.most.saturating_sub(items.len());
        items.extend(more.into_iter().take(capacity));
    }

    /// Whether there may have been more than these.
    pub(crate) fn is_full(&self, taken: &[T]) -> bool {
        taken.len() >= self.most
    }

    /// Takes what came so far.
    pub(crate) fn take(&self) -> Vec<T> {
        std::mem::take(&mut *self.items.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A launched provider.
pub(crate) struct Session {
    pub(crate) plugin: Plugin,
    pub(crate) observer: Observer,
    pub(crate) said: Said,
    /// What ran below this process before the launch.
    pub(crate) before: BTreeSet<Process>,
}

/// Everything that a provider says besides its answers.
#[derive(Clone)]
pub(crate) struct Said {
    pub(crate) logs: Heard<LogLine>,
    /// On the real standard output, after the handshake line.
    pub(crate) stray: Heard<u8>,
    /// What it printed, as go-plugin carries it.
    pub(crate) printed: Heard<u8>,
    pub(crate) host: Heard<HostLogEntry>,
    pub(crate) events: Heard<HostEvent>,
}

impl Default for Said {
    fn default() -> Self {
        Self {
            logs: Heard::at_most(MOST_ENTRIES),
            stray: Heard::at_most(MOST_BYTES),
            printed: Heard::at_most(MOST_BYTES),
            host: Heard::at_most(MOST_ENTRIES),
            events: Heard::at_most(MOST_ENTRIES),
        }
    }
}

impl Session {
    /// Runs a call, at most for `limit`.
    pub(crate) async fn run(&self, call: Sent, deadline: Option<Duration>, limit: Duration) -> Run {
        Run::of(self.observer.clone(), Some(call), deadline, limit).await
    }
}

/// A call with a working directory.
pub(crate) fn call(tool: &str, arguments: &Payload, working_directory: &str) -> Sent {
    Sent {
        id: format!("conform-{tool}"),
        tool: tool.to_owned(),
        arguments: Some(arguments.clone()),
        context: Some(SentContext {
            session_id: SESSION.to_owned(),
            turn_id: "conform-turn".to_owned(),
            working_directory: working_directory.to_owned(),
        }),
    }
}

/// The call as a host previews it: without a context.
pub(crate) fn bare(tool: &str, arguments: &Payload) -> Sent {
    Sent { context: None, ..call(tool, arguments, "") }
}
