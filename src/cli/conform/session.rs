//! A launched provider, and all that it says besides its answers.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::processes::Process;
use super::runs::Run;
use crate::goplugin::host::{LogLine, Plugin};
use crate::service::KernelLogEntry;
use crate::service::observe::{Observer, Sent, SentContext};
use crate::tools::Payload;

/// The session that every call belongs to.
pub(crate) const SESSION: &str = "conform-session";

/// How many entries of a kind are kept: a provider that floods its log must not flood this process.
const MOST_KEPT: usize = 10_000;

/// What came in from elsewhere than a call.
pub(crate) struct Heard<T>(Arc<Mutex<Vec<T>>>);

impl<T> Clone for Heard<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Default for Heard<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> Heard<T> {
    pub(crate) fn push(&self, item: T) {
        let mut items = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if items.len() < MOST_KEPT {
            items.push(item);
        }
    }

    /// Takes what came so far.
    pub(crate) fn take(&self) -> Vec<T> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
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
#[derive(Clone, Default)]
pub(crate) struct Said {
    pub(crate) logs: Heard<LogLine>,
    pub(crate) stray: Heard<u8>,
    pub(crate) kernel: Heard<KernelLogEntry>,
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

/// The call as a kernel previews it: without a context.
pub(crate) fn bare(tool: &str, arguments: &Payload) -> Sent {
    Sent { context: None, ..call(tool, arguments, "") }
}
