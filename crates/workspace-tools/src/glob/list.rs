//! A page of the list, made of the matches as they come in the order of paths.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use serde_json::Value;
use time::OffsetDateTime;

use super::find::{Match, Page, Sort};
use super::spec;
use crate::field::{Details, PATH};
use crate::prefix::Prefix;
use tool_provider::{Event, EventSink, Partials, Payload};
use workspace_fs::FileKind;
use workspace_fs::tree::{Found, Report};

/// Takes the matches in the order of paths.
pub(super) struct List<'a> {
    page: Page,
    sort: Sort,
    details: Details,
    prefix: &'a Prefix,
    kept: Kept,
    /// How many matches came.
    found: usize,
    /// How many of them come behind the page.
    left_out: usize,
    capacity: Capacity,
    partial: Partial<'a>,
}

/// A page, and how many known matches come behind it.
pub(super) struct Listed {
    pub(super) paths: Vec<Value>,
    pub(super) left_out: usize,
}

impl<'a> List<'a> {
    /// An empty page.
    pub(super) fn new(
        (page, sort, details): (Page, Sort, Details),
        prefix: &'a Prefix,
        sink: &'a dyn EventSink,
    ) -> Self {
        let kept = match sort {
            Sort::Path => Kept::First(Vec::new()),
            Sort::Modified | Sort::Size => Kept::Best(BinaryHeap::new()),
        };
        let partial = Partial { sink, read: sink.partials(), unsent: Vec::new(), last: None };
        Self {
            page,
            sort,
            details,
            prefix,
            kept,
            found: 0,
            left_out: 0,
            capacity: Capacity(MOST_BYTES),
            partial,
        }
    }

    /// How many matches came.
    pub(super) fn found(&self) -> usize {
        self.found
    }

    pub(super) fn finish(mut self) -> Listed {
        let paths = match self.kept {
            Kept::First(page) => page,
            Kept::Best(best) => {
                let mut page = Vec::new();
                for ranked in best.into_sorted_vec().into_iter().skip(self.page.offset) {
                    if self.capacity.take(ranked.path.len(), &page) {
                        self.partial.add(&ranked, self.prefix);
                        page.push(ranked.shown(self.details, self.prefix));
                    } else {
                        self.left_out += 1;
                    }
                }
                page
            }
        };
        // The outcome follows; without a reader both are lost.
        let _ = self.partial.send();
        Listed { paths, left_out: self.left_out }
    }
}

/// How much a result holds, in bytes, about: no more than a model can use.
const MOST_BYTES: usize = 128 * 1024;

/// What a path takes in a result beside itself.
const OVERHEAD: usize = 100;

/// The capacity that is left on a page, in bytes.
struct Capacity(usize);

impl Capacity {
    /// Takes the capacity for a path. False where there is too little; an empty page always has
    /// enough.
    fn take(&mut self, path: usize, page: &[Value]) -> bool {
        let left = self.0.checked_sub(path + OVERHEAD);
        // Once it is full it stays full: a shorter path must not jump the queue.
        self.0 = left.unwrap_or(0);
        left.is_some() || page.is_empty()
    }
}

/// The matches that are kept, never more than a page's end.
enum Kept {
    /// The page itself.
    First(Vec<Value>),
    /// The newest or largest of all, the one on top that is the first to go.
    Best(BinaryHeap<Ranked>),
}

/// A match in the order of its last change or of its size.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Ranked {
    /// What is put in order; the greatest is the first.
    key: Reverse<Option<i128>>,
    /// Its number in the order of paths.
    number: usize,
    path: Vec<u8>,
    kind: Kind,
    size: Option<u64>,
    modified: Option<i128>,
}

/// A kind of file as a result names it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    File,
    Directory,
    Link,
    Other,
}

impl Report<Match> for List<'_> {
    fn found(&mut self, batch: Vec<Found<Match>>) -> ControlFlow<()> {
        let end = self.page.end();
        for Found { path, found: Match { kind, size, modified }, .. } in batch {
            let number = self.found;
            self.found += 1;
            let key = Reverse(match self.sort {
                Sort::Size => size.map(i128::from),
                Sort::Path | Sort::Modified => modified,
            });
            let ranked = Ranked { key, number, path, kind: Kind::of(kind), size, modified };
            match &mut self.kept {
                Kept::First(_) if number < self.page.offset => {}
                Kept::First(page) => {
                    if number >= end || !self.capacity.take(ranked.path.len(), page) {
                        self.left_out += 1;
                        return ControlFlow::Break(());
                    }
                    self.partial.add(&ranked, self.prefix);
                    page.push(ranked.shown(self.details, self.prefix));
                }
                Kept::Best(best) if best.len() < end => best.push(ranked),
                Kept::Best(best) => {
                    self.left_out += 1;
                    if let Some(mut last) = best.peek_mut()
                        && ranked < *last
                    {
                        *last = ranked;
                    }
                }
            }
        }
        self.partial.flow()
    }

    fn progress(&mut self, visited: u64) {
        let message = format!("looked at {visited} names, {} found", self.found);
        // Whoever is not ready for news of this kind need not have it.
        let now = Some(Instant::now());
        let _ = self.partial.sink.emit_until(Event::Progress { message, fraction: None }, now);
    }
}

impl Ranked {
    /// As a result has it.
    fn shown(&self, details: Details, prefix: &Prefix) -> Value {
        match (details, self.kind) {
            (Details::All, _) => self.item(prefix),
            (Details::Few, Kind::Directory) => {
                prefix.join(&[&self.path, &b"/"[..]].concat()).into()
            }
            (Details::Few, _) => prefix.join(&self.path).into(),
        }
    }

    /// As a partial result has it.
    fn item(&self, prefix: &Prefix) -> Value {
        let mut item = Payload::new();
        PATH.put(&mut item, prefix.join(&self.path));
        spec::KIND.put(&mut item, self.kind.name());
        spec::SIZE_BYTES.put_some(&mut item, self.size);
        spec::MODIFIED.put_some(&mut item, self.modified.and_then(timestamp));
        item.into()
    }
}

impl Kind {
    fn of(kind: FileKind) -> Self {
        match kind {
            FileKind::Regular => Kind::File,
            FileKind::Directory => Kind::Directory,
            FileKind::Link => Kind::Link,
            FileKind::Special(_) => Kind::Other,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::File => "file",
            Kind::Directory => "folder",
            Kind::Link => "link",
            Kind::Other => "other",
        }
    }
}

/// A moment as RFC 3339 writes it, to the second; nothing for one that it cannot write.
fn timestamp(nanoseconds: i128) -> Option<String> {
    let seconds = i64::try_from(nanoseconds.div_euclid(1_000_000_000)).ok()?;
    let moment = OffsetDateTime::from_unix_timestamp(seconds).ok()?;
    let (year, month, day) = moment.date().to_calendar_date();
    let (hour, minute, second) = moment.time().as_hms();
    let month = u8::from(month);
    (0..=9999)
        .contains(&year)
        .then(|| format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"))
}

/// Sends what is found while the search goes on.
struct Partial<'a> {
    sink: &'a dyn EventSink,
    read: Partials,
    unsent: Vec<Value>,
    last: Option<Instant>,
}

/// How long finds are gathered before they are sent, and how many at most.
const GATHERED: Duration = Duration::from_millis(50);
const MOST_GATHERED: usize = 500;

impl Partial<'_> {
    fn add(&mut self, found: &Ranked, prefix: &Prefix) {
        if self.read == Partials::Read {
            self.unsent.push(found.item(prefix));
        }
    }

    /// Sends what is there, unless something was sent just now.
    fn flow(&mut self) -> ControlFlow<()> {
        let is_due = self.unsent.len() >= MOST_GATHERED
            || self.last.is_none_or(|last| last.elapsed() >= GATHERED);
        if is_due { self.send() } else { ControlFlow::Continue(()) }
    }

    fn send(&mut self) -> ControlFlow<()> {
        if self.unsent.is_empty() {
            return ControlFlow::Continue(());
        }
        self.last = Some(Instant::now());
        let mut payload = Payload::new();
        spec::PATHS.put(&mut payload, std::mem::take(&mut self.unsent));
        match self.sink.emit(Event::Partial(payload)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_reported_in_utc_to_the_second() {
        for (nanoseconds, expected) in [
            (0, Some("1970-01-01T00:00:00Z")),
            (1_700_000_000_999_999_999, Some("2023-11-14T22:13:20Z")),
            (-1, Some("1969-12-31T23:59:59Z")),
            (i128::MAX, None),
            (i128::from(i64::MAX) * 1000, None),
        ] {
            assert_eq!(timestamp(nanoseconds).as_deref(), expected, "{nanoseconds}");
        }
    }
}
