//! Cancellation: one token for each call, cheap to check, able to wake waiters.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Says whether a call has been cancelled. Clones share one state.
#[derive(Clone, Default)]
pub struct CancelToken {
    inner: Arc<Inner>,
}

type Hook = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Inner {
    cancelled: AtomicBool,
    hooks: Mutex<Vec<Hook>>,
}

impl CancelToken {
    /// A token that nobody has cancelled.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether [`CancelToken::cancel`] was called.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.inner.cancelled.load(Ordering::Acquire)
    }

    /// Cancels the call and runs the hooks, once; later calls do nothing.
    pub fn cancel(&self) {
        let hooks = {
            let mut hooks = self.inner.hooks.lock().unwrap_or_else(PoisonError::into_inner);
            if self.inner.cancelled.swap(true, Ordering::AcqRel) {
                return;
            }
            std::mem::take(&mut *hooks)
        };
        for hook in hooks {
            hook();
        }
    }

    /// Runs `hook` when the call is cancelled, or at once when it already was. The hook runs on the
    /// cancelling thread: it must be quick and must not block.
    pub fn on_cancel(&self, hook: impl FnOnce() + Send + 'static) {
        {
            let mut hooks = self.inner.hooks.lock().unwrap_or_else(PoisonError::into_inner);
            if !self.is_cancelled() {
                hooks.push(Box::new(hook));
                return;
            }
        }
        hook();
    }
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelToken").field("cancelled", &self.is_cancelled()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn hooks_run_once_whether_registered_before_or_after() {
        let ran = Arc::new(AtomicUsize::new(0));
        let token = CancelToken::new();
        let count = |ran: &Arc<AtomicUsize>| {
            let ran = ran.clone();
            move || {
                ran.fetch_add(1, Ordering::SeqCst);
            }
        };
        token.on_cancel(count(&ran));
        assert_eq!(ran.load(Ordering::SeqCst), 0);
        token.cancel();
        token.cancel();
        assert_eq!(ran.load(Ordering::SeqCst), 1);
        token.on_cancel(count(&ran));
        assert_eq!(ran.load(Ordering::SeqCst), 2);
        assert!(token.is_cancelled());
    }
}
