//! When a walk has to end before its work is done.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What can end a walk from outside.
#[derive(Clone, Copy)]
pub struct StopCondition<'a> {
    /// Asked often: whether nobody wants the result any more.
    pub cancelled: &'a (dyn Fn() -> bool + Sync),
    /// When the walk must be over.
    pub deadline: Option<Instant>,
}

impl StopCondition<'_> {
    /// Whether to end now.
    pub(super) fn is_over(&self) -> bool {
        (self.cancelled)() || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// Makes a thread of the walk abandon its entry. To be checked between pieces of work of about a
/// millisecond.
#[derive(Debug, Default)]
pub struct Stop(AtomicBool);

impl Stop {
    /// Whether to stop now; what was found in this entry until then is still taken.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Requests the stop. The walk's own threads do, and tests.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn clear(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// How long the calling thread sleeps at most before it looks at what could end the walk. A stop
/// takes effect within 100 ms, and the threads of the walk need a part of them.
pub(super) const LONGEST_SLEEP: Duration = Duration::from_millis(20);
