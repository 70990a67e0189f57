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

    /// A request of so many bytes was read. False where another of that id has no answer yet.
    #[must_use]
    pub(crate) fn opened(&self, id: &RequestId, bytes: usize) -> bool {
        let mut held = self.lock();
        if held.open.contains_key(id) {
            return false;
        }
        held.open_bytes += bytes;
        held.open.insert(id.clone(), bytes);
        true
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
        assert!(load.opened(&RequestId::Number(1), MOST_BYTES));
        assert!(!load.lock().has_room());
        load.closed(&RequestId::Number(1));
        assert!(load.lock().has_room());
        let unsent: Vec<Unsent> = (0..MOST_UNSENT).map(|_| load.unsent(1)).collect();
        assert!(!load.lock().has_room());
        drop(unsent);
        assert!(load.lock().has_room());
    }

    #[test]
    fn an_id_is_free_again_after_its_answer() {
        let (load, id) = (Load::default(), RequestId::Number(1));
        assert!(load.opened(&id, 5));
        assert!(!load.opened(&id, 7));
        assert_eq!(load.lock().open_bytes, 5);
        load.closed(&id);
        load.closed(&id);
        assert_eq!(load.lock().open_bytes, 0);
        assert!(load.opened(&id, 7));
    }
}
