//! The work that is left, what was found, and how far the order of paths is settled.
//!
//! The work is cut into items: a directory to list, a run of files between two directories. Threads
//! take the item that comes first in the order of paths. What an item gave is kept until every item
//! before it is done; then it is settled, and goes out in order. Once enough hits are known, what
//! comes after them is dropped unseen.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::directory::{Directory, LeftOut};
use super::order::Key;
use super::stop::Stop;
use super::threads::StopReason;

/// The result of visiting one entry.
#[derive(Debug)]
pub struct VisitResult<F> {
    /// What was found, if anything.
    pub found: Option<F>,
    /// How many hits that is.
    pub hits: usize,
    /// What it takes of memory, in bytes, about.
    pub weight: usize,
    /// Why some or all of it was not looked at.
    pub skip: Option<Skip>,
}

impl<F> VisitResult<F> {
    /// Nothing was found.
    #[must_use]
    pub fn nothing() -> Self {
        Self { found: None, hits: 0, weight: 0, skip: None }
    }

    /// It was not looked at.
    #[must_use]
    pub fn skipped(skip: Skip) -> Self {
        Self { skip: Some(skip), ..Self::nothing() }
    }
}

/// Why an entry was not looked at, or not to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skip {
    /// It is binary from some point on; what comes before was looked at.
    Binary,
    /// It is too large, or a line of it is.
    TooLarge,
    /// The system refuses it, or it lies too deep.
    Unreadable,
}

/// Work for one thread.
pub(super) enum Item {
    /// Open the start.
    Start,
    /// Open the directories that are these entries, of which a thread takes the first alone: a
    /// directory may hold a hundred thousand, and each item has a key of its own.
    Directories(Arc<Directory>, Range<usize>),
    /// Visit these entries.
    Files(Arc<Directory>, Range<usize>),
}

/// What an item gave.
pub(super) struct Record<F> {
    /// What is worth reporting, in order.
    pub(super) outcomes: Vec<Outcome<F>>,
    /// How many entries were looked at.
    pub(super) searched: u64,
    /// What was left out, or not left out because of a limit.
    pub(super) left_out: LeftOut,
}

pub(super) struct Outcome<F> {
    pub(super) path: Vec<u8>,
    pub(super) result: VisitResult<F>,
    /// How many entries of the item were looked at, this one included.
    pub(super) searched: u64,
}

impl<F> Record<F> {
    pub(super) fn new() -> Self {
        Self { outcomes: Vec::new(), searched: 0, left_out: LeftOut::default() }
    }

    pub(super) fn add(&mut self, path: impl FnOnce() -> Vec<u8>, result: VisitResult<F>) {
        if !matches!(result.skip, Some(Skip::TooLarge | Skip::Unreadable)) {
            self.searched += 1;
        }
        if result.found.is_some() || result.skip.is_some() {
            self.outcomes.push(Outcome { path: path(), result, searched: self.searched });
        }
    }

    pub(super) fn hits(&self) -> usize {
        self.outcomes.iter().map(|outcome| outcome.result.hits).sum()
    }

    fn weight(&self) -> usize {
        let weight = |outcome: &Outcome<F>| outcome.path.len() + outcome.result.weight;
        self.outcomes.iter().map(weight).sum()
    }
}

/// A found thing, settled: nothing that comes before it is open.
#[derive(Debug)]
pub struct Found<F> {
    /// Its path from the walk's start.
    pub path: Vec<u8>,
    /// What was found.
    pub found: F,
    /// What was counted up to it, itself included.
    pub so_far: Counts,
    weight: usize,
}

/// What a walk counted, in the order of paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Entries that were looked at.
    pub searched: u64,
    /// Files and directories that ignore rules left out. What is in such a directory is not counted.
    pub ignored: u64,
    /// Ignore files of which only the first rules count, because there was no room for all. What the
    /// others leave out was looked at.
    pub cut_rules: u64,
    /// Entries that were looked at in part or not at all, by [`Skip`].
    pub skipped: [u64; SKIPS],
}

/// How many reasons there are to skip an entry.
const SKIPS: usize = 3;

impl Counts {
    /// How many entries were skipped for this reason.
    #[must_use]
    pub fn skipped(&self, skip: Skip) -> u64 {
        self.skipped[skip as usize]
    }
}

/// The first few entries that were skipped, by [`Skip`], as paths from the walk's start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named([Vec<Vec<u8>>; SKIPS]);

/// How many skipped entries are named for each reason.
const NAMED: usize = 5;

impl Named {
    /// The first few that were skipped for this reason.
    #[must_use]
    pub fn first(&self, skip: Skip) -> &[Vec<u8>] {
        &self.0[skip as usize]
    }

    fn add(&mut self, skip: Skip, path: &[u8]) {
        let list = &mut self.0[skip as usize];
        if list.len() < NAMED {
            list.push(path.to_vec());
        }
    }
}

/// Shared by the threads of a walk.
pub(super) struct Queue<F> {
    state: Mutex<State<F>>,
    /// Threads wait for work here.
    work: Condvar,
    /// The calling thread waits here for something to report.
    news: Condvar,
    /// One for each thread.
    stops: Vec<Stop>,
}

struct State<F> {
    pending: BTreeMap<Key, Item>,
    /// What each thread is at.
    running: Vec<Option<Key>>,
    records: BTreeMap<Key, Record<F>>,
    ready: VecDeque<Found<F>>,
    counts: Counts,
    named: Named,
    /// Enough hits.
    want: usize,
    /// Hits that are settled, and those with the ones in `records`.
    settled: usize,
    hits: usize,
    /// The first item that gave the last hit that counts. None is needed behind it.
    last: Option<Key>,
    weight: usize,
    idle: usize,
    stop_reason: Option<StopReason>,
}

/// How much may be found, in bytes, before it can go out.
const MOST_WEIGHT: usize = 16 * 1024 * 1024;

impl<F> Queue<F> {
    pub(super) fn new(threads: usize, want: usize) -> Self {
        let state = State {
            pending: BTreeMap::from([(Key::of(b"", b""), Item::Start)]),
            running: vec![None; threads],
            records: BTreeMap::new(),
            ready: VecDeque::new(),
            counts: Counts::default(),
            named: Named::default(),
            want,
            settled: 0,
            hits: 0,
            last: None,
            weight: 0,
            idle: 0,
            stop_reason: None,
        };
        let stops = (0..threads).map(|_| Stop::default()).collect();
        Self { state: Mutex::new(state), work: Condvar::new(), news: Condvar::new(), stops }
    }

    pub(super) fn stop(&self, thread: usize) -> &Stop {
        &self.stops[thread]
    }

    /// Hands in what `thread` did and takes its next item; none when the walk is over.
    pub(super) fn next(&self, thread: usize, done: Option<Done<F>>) -> Option<(Key, Item)> {
        let mut state = self.lock();
        if let Some(done) = done {
            self.take_in(&mut state, thread, done);
        }
        loop {
            if state.stop_reason.is_some() {
                return None;
            }
            if state.may_go_on()
                && let Some((key, item)) = state.pending.pop_first()
            {
                let item = state.take_first(item);
                state.running[thread] = Some(key.clone());
                self.stops[thread].clear();
                if state.idle > 0 && !state.pending.is_empty() {
                    self.work.notify_one();
                }
                return Some((key, item));
            }
            if state.pending.is_empty() && state.running.iter().all(Option::is_none) {
                state.stop_reason = Some(StopReason::All);
                self.work.notify_all();
                self.news.notify_one();
                return None;
            }
            state.idle += 1;
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }

    /// Hands in what `thread` did, and takes no other item.
    pub(super) fn hand_in(&self, thread: usize, done: Done<F>) {
        self.take_in(&mut self.lock(), thread, done);
    }

    fn take_in(&self, state: &mut State<F>, thread: usize, done: Done<F>) {
        state.running[thread] = None;
        state.take_in(done, &self.stops);
        if !state.ready.is_empty() || state.stop_reason.is_some() {
            self.news.notify_one();
        }
        if state.stop_reason.is_some() {
            self.work.notify_all();
        }
    }

    /// Whether there is nothing left to do.
    pub(super) fn is_over(&self) -> bool {
        self.lock().stop_reason.is_some()
    }

    /// Waits until something is settled, the walk is over or `most` has passed. Returns what is to
    /// be reported, and whether the walk is over.
    pub(super) fn news(&self, most: Duration) -> (Vec<Found<F>>, Option<StopReason>) {
        let mut state = self.lock();
        if state.ready.is_empty() && state.stop_reason.is_none() {
            let woken = self.news.wait_timeout(state, most);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        let ready: Vec<_> = state.ready.drain(..).collect();
        state.weight -= ready.iter().map(|ready| ready.weight).sum::<usize>();
        if !ready.is_empty() && state.idle > 0 {
            self.work.notify_all();
        }
        (ready, state.stop_reason)
    }

    /// Ends the walk before its work is done.
    pub(super) fn end(&self, stop_reason: StopReason) {
        let mut state = self.lock();
        state.end(stop_reason, &self.stops);
        drop(state);
        self.work.notify_all();
        self.news.notify_one();
    }

    /// What is left when no thread is at work any more.
    pub(super) fn finish(self) -> Rest<F> {
        let mut state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let open = state.frontier().map(Key::path);
        for (_, record) in std::mem::take(&mut state.records) {
            state.settle(record);
        }
        let State { ready, counts, named, .. } = state;
        Rest { ready: ready.into_iter().collect(), open, counts, named }
    }

    fn lock(&self) -> MutexGuard<'_, State<F>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is left of a walk at its end.
pub(super) struct Rest<F> {
    /// What was found and not reported yet; some of it behind the point up to which the order is
    /// settled.
    pub(super) ready: Vec<Found<F>>,
    /// That point, where there is anything behind it that was not looked at.
    pub(super) open: Option<Vec<u8>>,
    pub(super) counts: Counts,
    pub(super) named: Named,
}

/// An item that was done.
pub(super) struct Done<F> {
    pub(super) key: Key,
    pub(super) record: Record<F>,
    /// What it opened, in order.
    pub(super) items: Vec<(Key, Item)>,
    /// Whether it was done to its end.
    pub(super) is_whole: bool,
}

impl<F> State<F> {
    /// Whether more may be found now. Where much waits to go out, only what it waits for may be
    /// done.
    fn may_go_on(&self) -> bool {
        self.weight < MOST_WEIGHT
            || (self.ready.is_empty() && self.running.iter().all(Option::is_none))
    }

    /// Adds an item, unless it is needless.
    fn add(&mut self, key: Key, item: Item) {
        if self.last.as_ref().is_none_or(|last| key < *last) {
            self.pending.insert(key, item);
        }
    }

    /// What one thread does of an item; the rest of it is an item again.
    fn take_first(&mut self, item: Item) -> Item {
        let Item::Directories(directory, mut range) = item else { return item };
        let first = range.start..range.start + 1;
        range.start += 1;
        if !range.is_empty() {
            self.add(directory.key(range.start), Item::Directories(directory.clone(), range));
        }
        Item::Directories(directory, first)
    }

    fn take_in(&mut self, done: Done<F>, stops: &[Stop]) {
        if matches!(self.stop_reason, Some(StopReason::All | StopReason::Enough)) {
            return;
        }
        if !done.is_whole {
            // Cut short from outside, or needless because of what was found before it.
            let is_needless = self.last.as_ref().is_some_and(|last| done.key > *last);
            if is_needless {
                return;
            }
            self.pending.insert(done.key.clone(), Item::Start);
        }
        for (key, item) in done.items {
            self.add(key, item);
        }
        self.hits += done.record.hits();
        self.weight += done.record.weight();
        self.records.insert(done.key, done.record);
        if self.stop_reason.is_none() {
            self.drop_needless(stops);
            self.advance(stops);
        }
    }

    /// Drops what comes after the last hit that counts.
    fn drop_needless(&mut self, stops: &[Stop]) {
        while self.hits >= self.want {
            let Some(last) = self.records.last_entry() else { return };
            let hits = last.get().hits();
            if hits > 0 && self.hits - hits < self.want {
                self.last = Some(last.key().clone());
                break;
            }
            let record = last.remove();
            self.hits -= hits;
            self.weight -= record.weight();
        }
        let Some(last) = &self.last else { return };
        while self.pending.last_key_value().is_some_and(|(key, _)| key > last) {
            self.pending.pop_last();
        }
        for (key, stop) in self.running.iter().zip(stops) {
            if key.as_ref().is_some_and(|key| key > last) {
                stop.set();
            }
        }
    }

    /// The first item that is not done.
    fn frontier(&self) -> Option<&Key> {
        let pending = self.pending.first_key_value().map(|(key, _)| key);
        self.running.iter().flatten().chain(pending).min()
    }

    fn advance(&mut self, stops: &[Stop]) {
        loop {
            let frontier = self.frontier().cloned();
            let Some(first) = self.records.first_entry() else { return };
            if frontier.is_some_and(|frontier| *first.key() >= frontier) {
                return;
            }
            let record = first.remove();
            self.settle(record);
            if self.settled >= self.want {
                return self.end(StopReason::Enough, stops);
            }
        }
    }

    fn settle(&mut self, record: Record<F>) {
        self.counts.ignored += u64::from(record.left_out.ignored);
        self.counts.cut_rules += u64::from(record.left_out.cut_rules);
        let before = self.counts.searched;
        for Outcome { path, result, searched } in record.outcomes {
            if let Some(skip) = result.skip {
                self.counts.skipped[skip as usize] += 1;
                self.named.add(skip, &path);
            }
            self.counts.searched = before + searched;
            self.settled += result.hits;
            let weight = path.len() + result.weight;
            match result.found {
                Some(found) => {
                    self.ready.push_back(Found { path, found, so_far: self.counts, weight });
                }
                None => self.weight -= weight,
            }
            if self.settled >= self.want {
                return;
            }
        }
        self.counts.searched = before + record.searched;
    }

    fn end(&mut self, stop_reason: StopReason, stops: &[Stop]) {
        if self.stop_reason.is_some() {
            return;
        }
        self.stop_reason = Some(stop_reason);
        if stop_reason == StopReason::Enough {
            self.pending.clear();
            self.records.clear();
        }
        stops.iter().for_each(Stop::set);
    }
}
