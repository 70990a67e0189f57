//! A limit on the threads of all walks together.

use std::sync::atomic::{AtomicUsize, Ordering};

/// How many threads are at work.
pub(super) struct ThreadBudget(AtomicUsize);

/// Some of them, until this is dropped.
pub(super) struct Taken<'a> {
    budget: &'a ThreadBudget,
    pub(super) count: usize,
}

impl ThreadBudget {
    pub(super) const fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// Takes as many of `wanted` as there are while no more than `most` work.
    pub(super) fn take(&self, wanted: usize, most: usize) -> Taken<'_> {
        let allowed = |working: usize| wanted.min(most.saturating_sub(working));
        let mut working = self.0.load(Ordering::Relaxed);
        loop {
            let count = allowed(working);
            let more = working.saturating_add(count);
            // Nothing but the number itself is shared.
            match self.0.compare_exchange_weak(working, more, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => return Taken { budget: self, count },
                Err(now) => working = now,
            }
        }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.budget.0.fetch_sub(self.count, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_stay_within_the_budget_and_are_given_back() {
        let budget = ThreadBudget::new();
        let first = budget.take(3, 4);
        let second = budget.take(3, 4);
        assert_eq!((first.count, second.count, budget.take(3, 4).count), (3, 1, 0));
        drop(first);
        assert_eq!(budget.take(3, 4).count, 3);
        drop(second);
        assert_eq!(budget.take(9, 4).count, 4);
    }
}
