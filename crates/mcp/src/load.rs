//! How much one client makes this process hold.
//!
//! A client may send requests without end and read no answer. So no further message is read while too
//! much is unanswered or unsent; a pipe that nobody empties stops the client.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::RequestId;
use tokio::sync::Notify;

/// Requests without an answer.
const MOST_OPEN: usize = 2048;
/// Messages that wait to be written.
const MOST_UNSENT: usize = 1024;
/// Bytes of the requests without an answer, and of the messages that wait to be written. One message
/// that is larger counts as much as it is, and waits for nothing.
const MOST_BYTES: usize = 64 * 1024 * 1024;

/// What is held at the moment.
#[derive(Default)]
pub(crate) struct Load {
    held: Mutex<Held>,
    less: Notify,
}

#[derive(Default)]
struct Held {
    /// The size of each request that has no answer yet.
    open: HashMap<RequestId, usize>,
    open_bytes: usize,
    unsent: usize,
    unsent_bytes: usize,
}

/// A message that waits to be written.
pub(crate) struct Unsent {
    load: Arc<Load>,
    bytes: usize,
}

impl Load {
    /// Waits until another message may be read.
    pub(crate) async fn room(&self) {
        while !self.lock().has_room() {
            self.less.notified().await;
        }
    }

    /// A request of so many bytes was read.
    pub(crate) fn opened(&self, id: RequestId, bytes: usize) {
        let mut held = self.lock();
        held.open_bytes += bytes;
        // An id that is used twice has one answer.
        let before = held.open.insert(id, bytes);
        held.open_bytes -= before.unwrap_or(0);
    }

    /// A request has its answer, or was cancelled.
    pub(crate) fn closed(&self, id: &RequestId) {
        self.change(|held| {
            let bytes = held.open.remove(id);
            held.open_bytes -= bytes.unwrap_or(0);
        });
    }

    /// A message of so many bytes waits to be written, for as long as what this returns.
    pub(crate) fn unsent(self: &Arc<Self>, bytes: usize) -> Unsent {
        let mut held = self.lock();
        held.unsent += 1;
        held.unsent_bytes += bytes;
        drop(held);
        Unsent { load: self.clone(), bytes }
    }

    fn change(&self, change: impl FnOnce(&mut Held)) {
        change(&mut self.lock());
        // One reader waits, or none.
        self.less.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn has_room(&self) -> bool {
        self.open.len() < MOST_OPEN
            && self.unsent < MOST_UNSENT
            && self.open_bytes < MOST_BYTES
            && self.unsent_bytes < MOST_BYTES
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        self.load.change(|held| {
            held.unsent -= 1;
            held.unsent_bytes -= self.bytes;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_answered_or_sent_makes_room() {
        let load = Arc::new(Load::default());
        load.opened(RequestId::Number(1), MOST_BYTES);
        assert!(!load.lock().has_room());
        load.closed(&RequestId::Number(1));
        assert!(load.lock().has_room());
        let unsent: Vec<Unsent> = (0..MOST_UNSENT).map(|_| load.unsent(1)).collect();
        assert!(!load.lock().has_room());
        drop(unsent);
        assert!(load.lock().has_room());
    }

    #[test]
    fn an_id_that_is_used_twice_is_counted_once() {
        let load = Load::default();
        load.opened(RequestId::Number(1), 5);
        load.opened(RequestId::Number(1), 7);
        assert_eq!(load.lock().open_bytes, 7);
        load.closed(&RequestId::Number(1));
        load.closed(&RequestId::Number(1));
        assert_eq!(load.lock().open_bytes, 0);
    }
}
