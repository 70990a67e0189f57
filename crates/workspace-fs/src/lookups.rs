//! Counts lookups, for tests that hold a call to one of them.

use std::cell::Cell;

thread_local! {
    static LOOKUPS: Cell<usize> = const { Cell::new(0) };
}

/// Called for each `openat2` and for each component of a walk.
pub(crate) fn count() {
    LOOKUPS.set(LOOKUPS.get() + 1);
}

/// What `act` returns, and how many lookups beneath a root it made on this thread.
pub fn of<T>(act: impl FnOnce() -> T) -> (T, usize) {
    let before = LOOKUPS.get();
    let done = act();
    (done, LOOKUPS.get() - before)
}
