//! Locks on files, by identity and not by name: two spellings, a hard link and a symbolic link all
//! meet in one lock.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{Fault, FileId};

/// What is locked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LockKey {
    /// A file that exists.
    File(FileId),
    /// The resolved path of a file that does not exist yet, perhaps nor do its directories. (The
    /// identity of the nearest directory would change while somebody makes the others.)
    Name(PathBuf),
}

/// How it is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Beside others that read.
    Shared,
    /// Alone.
    Exclusive,
}

/// The longest that a call of a tool waits for a file.
pub const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// How long to wait for a lock.
#[derive(Clone, Copy)]
pub struct Wait<'a> {
    /// The longest wait.
    pub limit: Duration,
    /// Asked now and then; true gives the wait up.
    pub should_stop: &'a dyn Fn() -> bool,
}

/// The locks of all files that some call uses at the moment. An entry exists only while a lock is
/// held or waited for.
///
/// Whoever came first gets a lock first, so that readers that keep coming cannot starve a writer.
#[derive(Debug, Default)]
pub struct LockTable {
    entries: Mutex<HashMap<LockKey, Entry>>,
}

#[derive(Debug, Default)]
struct Entry {
    holders: Holders,
    queue: VecDeque<u64>,
    next_ticket: u64,
    /// Made by the first call that has to wait.
    changed: Option<Arc<Condvar>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Holders {
    #[default]
    None,
    Readers(u32),
    Writer,
}

/// A lock that is held until this is dropped.
#[derive(Debug)]
pub struct Guard {
    table: Arc<LockTable>,
    key: LockKey,
}

/// How often a waiting call asks whether it should stop.
const POLL: Duration = Duration::from_millis(20);

impl LockTable {
    /// Waits for the lock.
    ///
    /// # Errors
    /// [`Fault::Locked`] when it was not free in time, [`Fault::Stopped`] when the call has to end.
    pub fn lock(
        self: &Arc<Self>,
        key: LockKey,
        mode: Mode,
        wait: Wait<'_>,
    ) -> Result<Guard, Fault> {
        let mut entries = self.entries();
        let entry = entries.entry(key.clone()).or_default();
        if entry.queue.is_empty() && entry.holders.admit(mode) {
            return Ok(Guard { table: self.clone(), key });
        }
        let ticket = entry.next_ticket;
        entry.next_ticket += 1;
        entry.queue.push_back(ticket);
        let changed = entry.changed.get_or_insert_default().clone();
        let give_up = Instant::now() + wait.limit;
        loop {
            let now = Instant::now();
            let fault = if now >= give_up {
                Some(Fault::Locked(wait.limit))
            } else {
                (wait.should_stop)().then_some(Fault::Stopped)
            };
            if let Some(fault) = fault {
                self.leave(entries, &key, ticket);
                return Err(fault);
            }
            let pause = POLL.min(give_up - now);
            (entries, _) =
                changed.wait_timeout(entries, pause).unwrap_or_else(PoisonError::into_inner);
            // The entry stays while this ticket is in its queue.
            let entry = entries.entry(key.clone()).or_default();
            if entry.queue.front() == Some(&ticket) && entry.holders.admit(mode) {
                entry.queue.pop_front();
                // Whoever is next may be a reader too.
                changed.notify_all();
                return Ok(Guard { table: self.clone(), key });
            }
        }
    }

    fn leave(
        &self,
        mut entries: MutexGuard<'_, HashMap<LockKey, Entry>>,
        key: &LockKey,
        ticket: u64,
    ) {
        if let Some(entry) = entries.get_mut(key) {
            entry.queue.retain(|other| *other != ticket);
            entry.wake();
        }
        remove_if_unused(&mut entries, key);
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<LockKey, Entry>> {
        // Each critical section leaves the table whole, so a panic elsewhere does not spoil it.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn wake(&self) {
        if let Some(changed) = &self.changed {
            changed.notify_all();
        }
    }
}

impl Holders {
    /// Takes the lock if that is possible now.
    fn admit(&mut self, mode: Mode) -> bool {
        *self = match (*self, mode) {
            (Holders::None, Mode::Exclusive) => Holders::Writer,
            (Holders::None, Mode::Shared) => Holders::Readers(1),
            (Holders::Readers(count), Mode::Shared) => Holders::Readers(count + 1),
            (Holders::Readers(_) | Holders::Writer, _) => return false,
        };
        true
    }

    fn release(&mut self) {
        *self = match *self {
            Holders::Readers(count) if count > 1 => Holders::Readers(count - 1),
            _ => Holders::None,
        };
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut entries = self.table.entries();
        if let Some(entry) = entries.get_mut(&self.key) {
            entry.holders.release();
            entry.wake();
        }
        remove_if_unused(&mut entries, &self.key);
    }
}

fn remove_if_unused(entries: &mut HashMap<LockKey, Entry>, key: &LockKey) {
    if entries
        .get(key)
        .is_some_and(|entry| entry.holders == Holders::None && entry.queue.is_empty())
    {
        entries.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    use std::sync::mpsc;

    use super::*;

    const LONG: Wait<'static> = Wait { limit: Duration::from_secs(60), should_stop: &|| false };
    const SHORT: Wait<'static> = Wait { limit: Duration::from_millis(1), should_stop: &|| false };

    fn key(inode: u64) -> LockKey {
        LockKey::File(FileId { device: 1, inode })
    }

    #[test]
    fn readers_share_and_writers_do_not() {
        let table = Arc::new(LockTable::default());
        let first = table.lock(key(1), Mode::Shared, SHORT).unwrap();
        let second = table.lock(key(1), Mode::Shared, SHORT).unwrap();
        let other = table.lock(key(2), Mode::Exclusive, SHORT).unwrap();
        let refused = table.lock(key(1), Mode::Exclusive, SHORT).unwrap_err();
        assert!(matches!(refused, Fault::Locked(_)));
        drop((first, second));
        let writer = table.lock(key(1), Mode::Exclusive, SHORT).unwrap();
        assert!(table.lock(key(1), Mode::Shared, SHORT).is_err());
        drop((writer, other));
        assert!(table.entries().is_empty(), "no entry outlives its locks");
    }

    #[test]
    fn a_call_that_has_to_end_stops_waiting() {
        let table = Arc::new(LockTable::default());
        let _held = table.lock(key(1), Mode::Exclusive, SHORT).unwrap();
        let wait = Wait { should_stop: &|| true, ..LONG };
        assert!(matches!(table.lock(key(1), Mode::Shared, wait), Err(Fault::Stopped)));
        assert!(table.entries()[&key(1)].queue.is_empty());
    }

    #[test]
    fn a_waiting_writer_goes_before_later_readers() {
        let table = Arc::new(LockTable::default());
        let reader = table.lock(key(1), Mode::Shared, SHORT).unwrap();
        let (order, finished) = mpsc::channel();
        std::thread::scope(|scope| {
            let start = |mode, name, position: usize| {
                let (table, order) = (&table, order.clone());
                scope.spawn(move || {
                    let guard = table.lock(key(1), mode, LONG).unwrap();
                    order.send(name).unwrap();
                    drop(guard);
                });
                while table.entries()[&key(1)].queue.len() < position {
                    std::thread::yield_now();
                }
            };
            start(Mode::Exclusive, "writer", 1);
            start(Mode::Shared, "reader", 2);
            drop(reader);
        });
        assert_eq!(finished.try_iter().collect::<Vec<_>>(), ["writer", "reader"]);
        assert!(table.entries().is_empty());
    }

    #[test]
    fn many_threads_never_overlap() {
        let table = Arc::new(LockTable::default());
        let (inside, total) = (AtomicBool::new(false), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let guard = table.lock(key(7), Mode::Exclusive, LONG).unwrap();
                        assert!(!inside.swap(true, Ordering::SeqCst));
                        total.fetch_add(1, Ordering::SeqCst);
                        assert!(inside.swap(false, Ordering::SeqCst));
                        drop(guard);
                    }
                });
            }
        });
        assert_eq!(total.into_inner(), 1600);
        assert!(table.entries().is_empty());
    }
}
