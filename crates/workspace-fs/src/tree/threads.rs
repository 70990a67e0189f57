//! The threads of a walk, and the calling one that reports what they find.

use std::num::NonZero;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::directory::{Directory, LeftOut, Scratch};
use super::entry::Entry;
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

    /// Whether entries of this kind are visited. Directories are walked through in any case; the start
    /// itself is visited only where it is a file.
    fn wants(&self, kind: FileKind) -> bool;

    /// Whether a visit takes about as long as a system call, so that a small tree is done before a thread
    /// has started.
    fn is_quick(&self) -> bool {
        false
    }

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
/// How many items of work the calling thread does before it starts others, where visits are quick, and
/// for how long it does. They are few enough to find less than may wait to be reported.
const ALONE: usize = 64;
const ALONE_FOR: Duration = Duration::from_millis(1);
/// How many files make one item of work.
const RUN: usize = 16;
/// How deep a tree may be. Every level above a directory can keep a handle open.
const MOST_DEPTH: usize = 256;
/// The longest path that a later call could name (`PATH_MAX`).
const MOST_PATH: usize = 4096;
/// How often progress is reported.
const PROGRESS: Duration = Duration::from_millis(100);

/// The processors that this process may use, at most [`MOST_THREADS`]. Asking takes longer than listing a
/// directory.
fn processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    let ask = || thread::available_parallelism().map_or(1, NonZero::get).min(MOST_THREADS);
    *PROCESSORS.get_or_init(ask)
}

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
    let helpers = match options.threads {
        _ if start.kind() != FileKind::Directory => HELPERS.take(0, 0),
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
    if visitor.is_quick() {
        let (mut left, begun) = (ALONE, Instant::now());
        pool.work(0, || {
            left -= 1;
            left > 0 && begun.elapsed() < ALONE_FOR && !until.is_over()
        });
    }
    let stop_reason = thread::scope(|scope| {
        let (pool, mut started) = (&pool, 0);
        let threads = if queue.is_over() { 0 } else { threads };
        for thread in 0..threads {
            let builder = thread::Builder::new().name("walk".to_owned());
            match builder.spawn_scoped(scope, move || pool.work(thread, || true)) {
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
    /// Does one item after the other, until the walk is over or after one of them `goes_on` is false.
    fn work(&self, thread: usize, mut goes_on: impl FnMut() -> bool) {
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
                    Ok((directory, left_out)) => {
                        record.left_out = left_out;
                        items = split(directory);
                    }
                    Err(_) => record.add(Vec::new, VisitResult::skipped(Skip::Unreadable)),
                },
                Item::Directories(directory, range) => {
                    let index = range.start;
                    if self.visitor.wants(FileKind::Directory) {
                        self.visit(&directory, index, &mut local, stop, &mut record);
                    }
                    match self.descend(&directory, index, &mut scratch) {
                        Ok(Some((below, left_out))) => {
                            record.left_out = left_out;
                            items = split(below);
                        }
                        Ok(None) => {}
                        // Gone, or no directory any more.
                        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                        Err(_) => {
                            let path = || directory.path_of(index);
                            record.add(path, VisitResult::skipped(Skip::Unreadable));
                        }
                    }
                }
                Item::Files(directory, range) => {
                    for index in range {
                        self.visit(&directory, index, &mut local, stop, &mut record);
                        if stop.is_set() || record.hits() >= self.want {
                            break;
                        }
                    }
                }
            }
            let it = Done { key, record, items, is_whole: !stop.is_set() };
            if !goes_on() {
                return self.queue.hand_in(thread, it);
            }
            done = Some(it);
        }
    }

    fn visit(
        &self,
        directory: &Directory,
        index: usize,
        local: &mut V::Local,
        stop: &Stop,
        record: &mut Record<V::Found>,
    ) {
        let entry = Entry { directory, index };
        let result = self.visitor.visit(local, &entry, stop);
        self.visited.fetch_add(1, Ordering::Relaxed);
        record.add(|| entry.path(), result);
    }

    fn descend(
        &self,
        directory: &Directory,
        index: usize,
        scratch: &mut Scratch,
    ) -> rustix::io::Result<Option<(Directory, LeftOut)>> {
        if !directory.is_entered(index) {
            return Ok(None);
        }
        if directory.depth() >= MOST_DEPTH || directory.path_len(index) >= MOST_PATH {
            return Err(Errno::NAMETOOLONG);
        }
        let below = directory.below(index, &self.scope);
        Directory::open(below, &self.scope, scratch).map(Some)
    }
}

/// The work that a directory's entries are, in order.
fn split(directory: Directory) -> Vec<(Key, Item)> {
    let directory = Arc::new(directory);
    let mut items = Vec::new();
    let mut first = 0;
    while first < directory.len() {
        let is_directory = |index: usize| directory.kind(index) == FileKind::Directory;
        let (make, most): (fn(_, _) -> _, _) = match is_directory(first) {
            true => (Item::Directories, directory.len()),
            false => (Item::Files, directory.len().min(first + RUN)),
        };
        let end = (first..most).find(|index| is_directory(*index) != is_directory(first));
        let end = end.unwrap_or(most);
        items.push((directory.key(first), make(directory.clone(), first..end)));
        first = end;
    }
    items
}
