//! The threads of a walk, and the calling one that tells what they find.

use std::num::NonZero;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::entry::Entry;
use super::folder::{Folder, LeftOut, Scratch};
use super::order::Key;
use super::queue::{Counts, Done, Found, Item, Named, Queue, Record, Skip, VisitResult};
use super::selection::{Scope, Selection};
use super::start::Start;
use super::stop::{LONGEST_SLEEP, Stop, StopCondition};
use super::thread_budget::ThreadBudget;
use crate::FileKind;

/// What is done with the entries of a tree.
pub trait Visit: Sync {
    /// What one thread reuses from entry to entry.
    type Local;
    /// What an entry gives.
    type Found: Send;

    /// Made once on each thread.
    fn local(&self) -> Self::Local;

    /// Whether entries of this kind are visited. Folders are walked through in any case; the start
    /// itself is visited only where it is a file.
    fn wants(&self, kind: FileKind) -> bool;

    /// Looks at one entry. It must end soon after `stop` is set.
    fn visit(
        &self,
        local: &mut Self::Local,
        entry: &Entry<'_>,
        stop: &Stop,
    ) -> VisitResult<Self::Found>;
}

/// Takes what was found, on the thread that called [`walk`].
pub trait Report<F> {
    /// The next things that were found, in the order of paths. Where it breaks, the walk ends.
    fn found(&mut self, batch: Vec<Found<F>>) -> ControlFlow<()>;

    /// How many entries were visited so far. Called ten times a second.
    fn progress(&mut self, visited: u64);
}

/// How a walk goes.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How many hits are enough: the walk ends when the first so many, in the order of paths, are
    /// known.
    pub want: usize,
    /// How many threads work; as many as there are processors, at most 8, where it is not said. Walks
    /// at the same time share those beyond the first of each.
    pub threads: Option<NonZero<usize>>,
}

/// Why a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// Everything was looked at.
    All,
    /// Enough was found.
    Enough,
    /// It was cut short: cancelled, out of time, or nobody takes what is found.
    Stopped,
}

/// What a walk did. All of it is the same on every machine, unless the walk was stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Why it ended.
    pub stop_reason: StopReason,
    /// What was counted, up to the entry with the last hit that was wanted.
    pub counts: Counts,
    /// Some of what was skipped.
    pub named: Named,
    /// Where the walk was stopped: everything before this path was looked at.
    pub open: Option<Vec<u8>>,
}

/// The most threads that work for one walk.
const MOST_THREADS: usize = 8;
/// The threads of all walks in this process, beyond the first of each. Each holds buffers, and more
/// of them than processors make nothing quicker.
static HELPERS: ThreadBudget = ThreadBudget::new();
/// How many files make one item of work.
const RUN: usize = 16;
/// How deep a tree may be. Every level above a folder can keep a handle open.
const MOST_DEPTH: usize = 256;
/// The longest path that a later call could name (`PATH_MAX`).
const MOST_PATH: usize = 4096;
/// How often progress is told.
const PROGRESS: Duration = Duration::from_millis(100);

/// Walks the tree at `start` and visits what `selection` chooses, until enough is found.
///
/// # Errors
/// When no thread can be started.
pub fn walk<V: Visit>(
    start: &Start,
    selection: &Selection,
    visitor: &V,
    options: Options,
    until: StopCondition<'_>,
    report: &mut dyn Report<V::Found>,
) -> std::io::Result<Summary> {
    let processors = || thread::available_parallelism().map_or(1, NonZero::get).min(MOST_THREADS);
    let helpers = match options.threads {
        _ if start.kind() != FileKind::Folder => HELPERS.take(0, 0),
        Some(threads) => HELPERS.take(threads.get() - 1, usize::MAX),
        None => HELPERS.take(processors() - 1, processors()),
    };
    let threads = 1 + helpers.count;
    let queue = Queue::new(threads, options.want);
    let wants = |kind| visitor.wants(kind);
    let pool = WorkerPool {
        start,
        scope: Scope { selection, wants: &wants },
        visitor,
        queue: &queue,
        want: options.want,
        visited: AtomicU64::new(0),
    };
    if until.is_over() {
        queue.end(StopReason::Stopped);
    }
    let stop_reason = thread::scope(|scope| {
        let (pool, mut started) = (&pool, 0);
        for thread in 0..threads {
            let builder = thread::Builder::new().name("walk".to_owned());
            match builder.spawn_scoped(scope, move || pool.work(thread)) {
                Ok(_) => started += 1,
                // The others do.
                Err(_) if started > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(report_found(pool, until, report))
    })?;
    let rest = queue.finish();
    if !rest.ready.is_empty() {
        // Nobody is left who could be stopped.
        let _ = report.found(rest.ready);
    }
    Ok(Summary {
        stop_reason,
        counts: rest.counts,
        named: rest.named,
        open: rest.open.filter(|_| stop_reason == StopReason::Stopped),
    })
}

/// Reports what is found until the walk is over.
fn report_found<V: Visit>(
    pool: &WorkerPool<'_, V>,
    until: StopCondition<'_>,
    report: &mut dyn Report<V::Found>,
) -> StopReason {
    let mut next = Instant::now() + PROGRESS;
    loop {
        let now = Instant::now();
        let wake = until.deadline.map_or(next, |deadline| deadline.min(next));
        let (ready, stop_reason) =
            pool.queue.news(wake.saturating_duration_since(now).min(LONGEST_SLEEP));
        let is_done = stop_reason.is_some();
        if !ready.is_empty() && report.found(ready).is_break() {
            pool.queue.end(StopReason::Stopped);
        }
        if let (Some(stop_reason), true) = (stop_reason, is_done) {
            return stop_reason;
        }
        if until.is_over() {
            pool.queue.end(StopReason::Stopped);
        } else if Instant::now() >= next {
            next = Instant::now() + PROGRESS;
            report.progress(pool.visited.load(Ordering::Relaxed));
        }
    }
}

struct WorkerPool<'a, V: Visit> {
    start: &'a Start,
    scope: Scope<'a>,
    visitor: &'a V,
    queue: &'a Queue<V::Found>,
    want: usize,
    visited: AtomicU64,
}

/// Ends the walk when its thread panics; otherwise all others would wait for it.
struct Guard<'a, F>(&'a Queue<F>);

impl<F> Drop for Guard<'_, F> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.end(StopReason::Stopped);
        }
    }
}

impl<V: Visit> WorkerPool<'_, V> {
    fn work(&self, thread: usize) {
        let _guard = Guard(self.queue);
        let mut local = self.visitor.local();
        let mut scratch = Scratch::new();
        let stop = self.queue.stop(thread);
        let mut done = None;
        while let Some((key, item)) = self.queue.next(thread, done.take()) {
            let mut record = Record::new();
            let mut items = Vec::new();
            match item {
                Item::Start => match self.start.open(&self.scope, &mut scratch) {
                    Ok((folder, left_out)) => {
                        record.left_out = left_out;
                        items = split(folder);
                    }
                    Err(_) => record.add(Vec::new, VisitResult::skipped(Skip::Unreadable)),
                },
                Item::Folders(folder, range) => {
                    let index = range.start;
                    if self.visitor.wants(FileKind::Folder) {
                        self.visit(&folder, index, &mut local, stop, &mut record);
                    }
                    match self.descend(&folder, index, &mut scratch) {
                        Ok(Some((below, left_out))) => {
                            record.left_out = left_out;
                            items = split(below);
                        }
                        Ok(None) => {}
                        // Gone, or no folder any more.
                        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                        Err(_) => {
                            let path = || folder.path_of(index);
                            record.add(path, VisitResult::skipped(Skip::Unreadable));
                        }
                    }
                }
                Item::Files(folder, range) => {
                    for index in range {
                        self.visit(&folder, index, &mut local, stop, &mut record);
                        if stop.is_set() || record.hits() >= self.want {
                            break;
                        }
                    }
                }
            }
            done = Some(Done { key, record, items, is_whole: !stop.is_set() });
        }
    }

    fn visit(
        &self,
        folder: &Folder,
        index: usize,
        local: &mut V::Local,
        stop: &Stop,
        record: &mut Record<V::Found>,
    ) {
        let entry = Entry { folder, index };
        let result = self.visitor.visit(local, &entry, stop);
        self.visited.fetch_add(1, Ordering::Relaxed);
        record.add(|| entry.path(), result);
    }

    fn descend(
        &self,
        folder: &Folder,
        index: usize,
        scratch: &mut Scratch,
    ) -> rustix::io::Result<Option<(Folder, LeftOut)>> {
        if !folder.is_entered(index) {
            return Ok(None);
        }
        if folder.depth() >= MOST_DEPTH || folder.path_len(index) >= MOST_PATH {
            return Err(Errno::NAMETOOLONG);
        }
        let below = folder.below(index, &self.scope);
        Folder::open(below, &self.scope, scratch).map(Some)
    }
}

/// The work that a folder's entries are, in order.
fn split(folder: Folder) -> Vec<(Key, Item)> {
    let folder = Arc::new(folder);
    let mut items = Vec::new();
    let mut first = 0;
    while first < folder.len() {
        let is_folder = |index: usize| folder.kind(index) == FileKind::Folder;
        let (make, most): (fn(_, _) -> _, _) = match is_folder(first) {
            true => (Item::Folders, folder.len()),
            false => (Item::Files, folder.len().min(first + RUN)),
        };
        let end = (first..most).find(|index| is_folder(*index) != is_folder(first));
        let end = end.unwrap_or(most);
        items.push((folder.key(first), make(folder.clone(), first..end)));
        first = end;
    }
    items
}
