//! Compiles a pattern, but not after the call has ended.
//!
//! The regex crate cannot be stopped while it compiles, and a pattern may take a second until it is
//! accepted or refused for its size: thousands of large classes, or large repetitions of one. So a
//! pattern that may take long is compiled on a thread of its own, which is abandoned when the call
//! ends.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use super::arguments::Wanted;
use super::matcher::Compiled;
use crate::Context;
use tool_provider::ToolError;

/// A pattern up to this length without a repetition or class in braces takes some 10 ms at most.
const SHORT: usize = 128;
/// How many of these threads there are at most, those that were left behind included. A call beyond
/// them compiles on its own thread, and does not end before that.
const MOST_THREADS: usize = 8;
const GLANCE: Duration = Duration::from_millis(10);

static THREADS: AtomicUsize = AtomicUsize::new(0);

impl Wanted<'_> {
    /// The pattern, compiled.
    ///
    /// # Errors
    /// `invalid_arguments`, with the place of what is wrong; `cancelled` and `timeout`.
    pub(super) fn compile(self, context: &Context<'_>) -> Result<Compiled, ToolError> {
        if self.pattern.len() <= SHORT && !self.pattern.contains('{') {
            return self.compile_here();
        }
        let Some(slot) = Slot::take() else { return self.compile_here() };
        let Self { ignore_case, fixed_strings, word, multiline, .. } = self;
        let pattern = self.pattern.to_owned();
        let (say, hear) = mpsc::sync_channel(1);
        let job = move || {
            let _slot = slot;
            let pattern = pattern.as_str();
            let wanted = Wanted { pattern, ignore_case, fixed_strings, word, multiline };
            // Nobody may be waiting any more.
            let _ = say.send(wanted.compile_here());
        };
        if thread::Builder::new().name("compile".to_owned()).spawn(job).is_err() {
            return self.compile_here();
        }
        let deadline = context.search_deadline();
        loop {
            match hear.recv_timeout(GLANCE) {
                Ok(compiled) => return compiled,
                Err(RecvTimeoutError::Timeout) => {}
                // It panicked, which is to happen where panics are reported.
                Err(RecvTimeoutError::Disconnected) => return self.compile_here(),
            }
            if context.cancel.is_cancelled() {
                return Err(ToolError::cancelled("the search was cancelled"));
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(ToolError::timeout(
                    "the search's time was up before its pattern was compiled",
                )
                .with_hint("use a simpler pattern, with smaller repetitions and fewer classes"));
            }
        }
    }
}

/// One of the threads that there may be.
struct Slot;

impl Slot {
    fn take() -> Option<Self> {
        let next = |taken: usize| (taken < MOST_THREADS).then_some(taken + 1);
        THREADS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok().map(|_| Self)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        THREADS.fetch_sub(1, Ordering::Relaxed);
    }
}
