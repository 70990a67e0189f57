//! Places for calls at the same time: the others wait in the order in which they came.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::Context;
use tool_provider::ToolError;

/// What remains of a call's time when it gives up its wait: the answer has to arrive.
const MARGIN: Duration = Duration::from_millis(50);

/// The places.
pub(super) struct Slots {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    free: usize,
    /// Numbers of the calls that wait.
    waiting: VecDeque<u64>,
    next: u64,
}

/// A place that is taken. Dropping it frees it.
pub(super) struct Slot(Arc<Slots>);

impl Slots {
    pub(super) fn new(places: usize) -> Arc<Self> {
        let state = State { free: places, waiting: VecDeque::new(), next: 0 };
        Arc::new(Self { state: Mutex::new(state), changed: Condvar::new() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place, once all that came before have one.
    ///
    /// # Errors
    /// `cancelled`; `concurrency_conflict` at the call's deadline.
    pub(super) fn take(self: &Arc<Self>, context: &Context<'_>) -> Result<Slot, ToolError> {
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        state.waiting.push_back(number);
        let mut is_watched = false;
        loop {
            let leave = |mut state: MutexGuard<'_, State>| {
                state.waiting.retain(|other| *other != number);
                drop(state);
                self.changed.notify_all();
            };
            if state.free > 0 && state.waiting.front() == Some(&number) {
                state.free -= 1;
                leave(state);
                return Ok(Slot(self.clone()));
            }
            let left = context.deadline.map(|deadline| {
                deadline.saturating_duration_since(Instant::now()).saturating_sub(MARGIN)
            });
            if context.cancel.is_cancelled() {
                leave(state);
                return Err(ToolError::cancelled("the call was cancelled before its command ran"));
            }
            if left == Some(Duration::ZERO) {
                leave(state);
                return Err(ToolError::too_many_calls(
                    "other shell_read calls ran until this one's deadline: nothing was run",
                )
                .with_detail("applied", false));
            }
            if !is_watched {
                // Not under the lock: a hook of a call that is cancelled runs at once.
                drop(state);
                let slots = self.clone();
                context.cancel.on_cancel(move || {
                    drop(slots.state());
                    slots.changed.notify_all();
                });
                is_watched = true;
                state = self.state();
                continue;
            }
            state = match left {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(left) => {
                    let waited = self.changed.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.state().free += 1;
        self.0.changed.notify_all();
    }
}
