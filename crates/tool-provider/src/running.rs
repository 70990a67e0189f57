//! The running calls: their number, and a way to cancel them all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::{CancelToken, ToolError};

/// The running calls.
#[derive(Default)]
pub(crate) struct Running {
    inner: Mutex<Inner>,
    idle: Notify,
}

#[derive(Default)]
struct Inner {
    calls: HashMap<u64, CancelToken>,
    next: u64,
    accepting: Accepting,
}

/// Whether new calls are accepted: no longer during a shutdown.
#[derive(Clone, Copy, Default, PartialEq)]
enum Accepting {
    #[default]
    Yes,
    No,
}

/// A running call's place. Dropping it makes room for the next.
pub(crate) struct Slot {
    running: Arc<Running>,
    number: u64,
}

impl Running {
    /// Takes a place for a call, unless `most` of them are taken.
    ///
    /// # Errors
    /// [`ToolError::too_many_calls`], or `cancelled` once the provider is shutting down.
    pub(crate) fn admit(
        self: &Arc<Self>,
        most: usize,
        cancel: CancelToken,
    ) -> Result<Slot, ToolError> {
        let mut inner = self.lock();
        if inner.accepting == Accepting::No {
            return Err(ToolError::cancelled("the provider is shutting down"));
        }
        if inner.calls.len() >= most {
            let message = format!("{most} calls run already");
            return Err(ToolError::too_many_calls(message).with_hint(
                "wait for one of them to end and try again; max_concurrent_calls sets the limit",
            ));
        }
        let number = inner.next;
        inner.next += 1;
        inner.calls.insert(number, cancel);
        drop(inner);
        Ok(Slot { running: self.clone(), number })
    }

    /// Cancels every call, takes no more, and waits until all have ended.
    pub(crate) async fn shut_down(&self) {
        let tokens: Vec<CancelToken> = {
            let mut inner = self.lock();
            inner.accepting = Accepting::No;
            inner.calls.values().cloned().collect()
        };
        for token in tokens {
            token.cancel();
        }
        loop {
            let idle = self.idle.notified();
            tokio::pin!(idle);
            // Listening starts before the look, so that an end in between is not missed.
            idle.as_mut().enable();
            if self.lock().calls.is_empty() {
                return;
            }
            idle.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut inner = self.running.lock();
        inner.calls.remove(&self.number);
        let is_last = inner.calls.is_empty() && inner.accepting == Accepting::No;
        drop(inner);
        if is_last {
            self.running.idle.notify_waiters();
        }
    }
}
