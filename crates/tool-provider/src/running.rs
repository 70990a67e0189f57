//! The calls in progress: how many run, which of them wait, and a way to end them all.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::{CancelToken, ToolError};

/// Calls that wait at most; a host that asks for more at once gets them back.
const MOST_WAITING: usize = 1024;
/// How long a reader has to take the ends of its calls once all of them have ended.
const READ_LIMIT: Duration = Duration::from_millis(500);

/// Starts a call that has its slot. The thread that freed the slot calls it, so it must not block.
pub(crate) type Begin = Box<dyn FnOnce(Slot) + Send>;

/// The calls in progress.
#[derive(Default)]
pub(crate) struct Running {
    inner: Mutex<Inner>,
    idle: Notify,
}

#[derive(Default)]
struct Inner {
    calls: HashMap<u64, CancelToken>,
    /// In the order in which they came.
    queue: VecDeque<Waiting>,
    /// Streams whose end nobody has taken yet.
    unread: usize,
    /// Previews and Configures in progress, and calls on their way to a worker.
    others: usize,
    next: u64,
    accepting: Accepting,
}

struct Waiting {
    number: u64,
    /// How many calls may run with this one among them.
    most: usize,
    cancel: CancelToken,
    begin: Begin,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Accepting {
    #[default]
    Calls,
    Nothing,
}

/// A running call's slot. Dropping it lets the next call begin.
pub(crate) struct Slot {
    running: Arc<Running>,
    number: u64,
}

/// A preview or a Configure in progress, or a call on its way to a worker. Dropping it says that
/// nothing of it holds the provider's state any more.
pub(crate) struct Other(Arc<Running>);

/// A call as its stream knows it: it may wait still, and its end may not have been read.
pub(crate) struct Admission {
    running: Arc<Running>,
    number: u64,
    most: usize,
}

impl Running {
    /// Starts a call: now, or when fewer than `most` run and no earlier one waits.
    ///
    /// # Errors
    /// [`ToolError::too_many_calls`] where too many wait as well, or `cancelled` once the provider
    /// is shutting down.
    pub(crate) fn admit(
        self: &Arc<Self>,
        most: usize,
        cancel: CancelToken,
        begin: impl FnOnce(Slot) + Send + 'static,
    ) -> Result<Admission, ToolError> {
        let mut inner = self.lock();
        inner.check_accepting()?;
        if inner.queue.len() >= MOST_WAITING {
            return Err(ToolError::too_many_calls(format!(
                "{} calls run and {MOST_WAITING} wait",
                inner.calls.len()
            ))
            .with_hint("wait for some of them to end and try again"));
        }
        let number = inner.next;
        inner.next += 1;
        inner.unread += 1;
        let admission = Admission { running: self.clone(), number, most };
        if inner.calls.len() >= most || !inner.queue.is_empty() {
            inner.queue.push_back(Waiting { number, most, cancel, begin: Box::new(begin) });
            return Ok(admission);
        }
        inner.calls.insert(number, cancel);
        drop(inner);
        begin(Slot { running: self.clone(), number });
        Ok(admission)
    }

    /// # Errors
    /// `cancelled` once the provider is shutting down.
    pub(crate) fn check_accepting(&self) -> Result<(), ToolError> {
        self.lock().check_accepting()
    }

    /// Starts a preview or a Configure.
    ///
    /// # Errors
    /// `cancelled` once the provider is shutting down.
    pub(crate) fn begin_other(self: &Arc<Self>) -> Result<Other, ToolError> {
        let inner = self.lock();
        inner.check_accepting()?;
        Ok(self.other(inner))
    }

    fn other(self: &Arc<Self>, mut inner: MutexGuard<'_, Inner>) -> Other {
        inner.others += 1;
        Other(self.clone())
    }

    /// Cancels every call, takes no more, and waits until all have ended and their readers know.
    pub(crate) async fn shut_down(self: &Arc<Self>) {
        let (tokens, waiting) = {
            let mut inner = self.lock();
            inner.accepting = Accepting::Nothing;
            let waiting = std::mem::take(&mut inner.queue);
            for call in &waiting {
                inner.calls.insert(call.number, call.cancel.clone());
            }
            (inner.calls.values().cloned().collect::<Vec<_>>(), waiting)
        };
        tokens.iter().for_each(CancelToken::cancel);
        // What waited ends as what runs does: with the word that it did nothing.
        for call in waiting {
            (call.begin)(Slot { running: self.clone(), number: call.number });
        }
        self.until(|inner| inner.calls.is_empty() && inner.others == 0).await;
        let read = self.until(|inner| inner.unread == 0);
        // A reader that takes no longer than this is still there.
        let _ = tokio::time::timeout(READ_LIMIT, read).await;
    }

    async fn until(&self, is_so: impl Fn(&Inner) -> bool) {
        loop {
            let idle = self.idle.notified();
            tokio::pin!(idle);
            // Listening starts before the look, so that an end in between is not missed.
            idle.as_mut().enable();
            if is_so(&self.lock()) {
                return;
            }
            idle.await;
        }
    }

    /// Changes something, and wakes who waits for the end of all.
    fn change<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        let mut inner = self.lock();
        let changed = change(&mut inner);
        // Before, nobody waits.
        let is_awaited = inner.accepting == Accepting::Nothing;
        drop(inner);
        if is_awaited {
            self.idle.notify_waiters();
        }
        changed
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn check_accepting(&self) -> Result<(), ToolError> {
        match self.accepting {
            Accepting::Calls => Ok(()),
            Accepting::Nothing => Err(ToolError::cancelled("the provider is shutting down")),
        }
    }

    /// The call that has waited longest, if there is a slot for it.
    fn take_next(&mut self) -> Option<Waiting> {
        let running = self.calls.len();
        if running >= self.queue.front()?.most {
            return None;
        }
        let next = self.queue.pop_front()?;
        self.calls.insert(next.number, next.cancel.clone());
        Some(next)
    }
}

impl Slot {
    /// What the thread that hands the call to a worker keeps meanwhile: the call may end before that
    /// thread has let go of the provider's state.
    pub(crate) fn hand_over(&self) -> Other {
        self.running.other(self.running.lock())
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let next = self.running.change(|inner| {
            inner.calls.remove(&self.number);
            inner.take_next()
        });
        if let Some(next) = next {
            (next.begin)(Slot { running: self.running.clone(), number: next.number });
        }
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        self.0.change(|inner| inner.others -= 1);
    }
}

impl Admission {
    /// Takes the call out of the queue, if it waits there. The error says that its time was up
    /// before its turn came; what would have begun the call ends its stream when it is dropped.
    pub(crate) fn withdraw(&self) -> Option<(ToolError, Begin)> {
        let mut inner = self.running.lock();
        let position = inner.queue.iter().position(|call| call.number == self.number)?;
        let call = inner.queue.remove(position)?;
        let running = inner.calls.len();
        drop(inner);
        let error = ToolError::too_many_calls(format!(
            "the call's time was up before its turn came: {running} calls run, and no more than \
             {} may at once",
            self.most
        ));
        Some((error.with_hint("wait for some of them to end, then try again"), call.begin))
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        drop(self.withdraw());
        self.running.change(|inner| inner.unread -= 1);
    }
}
