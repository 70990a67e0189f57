//! The walk for `glob`: what of the matches is kept, and in which order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::Arguments;
use super::pattern::Kinds;
use super::spec::NAME;
use crate::tools::prefix::Prefix;
use crate::tools::{Context, Event, EventSink, Payload, ToolError};
use crate::workspace::FileKind;
use crate::workspace::tree::{
    self, Counts, Ended, Entry, Found, Options, Pace, PathGlob, Report, Seen, Selection, Skip,
    Start, Stop, Visit,
};

/// In which order paths are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    /// Name by name.
    Path,
    /// The newest first; of equal ones by path.
    Modified,
}

/// Which part of the list a result holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page {
    pub(super) offset: usize,
    pub(super) limit: usize,
}

impl Page {
    /// The number of the first that is behind it.
    pub(super) fn end(self) -> usize {
        self.offset.saturating_add(self.limit)
    }
}

/// A search, as meant.
pub(super) struct Search<'a> {
    /// Where it starts, and what the caller calls that; nothing where there is no such folder.
    pub(super) start: Option<(&'a Start, &'a str)>,
    pub(super) selection: Selection,
    pub(super) glob: &'a PathGlob,
    pub(super) kinds: Kinds,
    pub(super) page: Page,
    pub(super) sort: Sort,
}

/// What a search gave.
pub(super) struct Outcome {
    paths: Vec<Value>,
    /// Whether there is more, and where it begins.
    more: More,
    /// How many there are, where all were looked at.
    total: Option<usize>,
    counts: Counts,
    /// The first few folders that could not be read.
    unreadable: Vec<String>,
}

/// What comes behind a page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum More {
    Nothing,
    /// More, from this offset on.
    From(usize),
    /// Time was up. What was found until then is in order up to this offset.
    Unknown(Option<usize>),
}

impl Search<'_> {
    /// Searches.
    ///
    /// # Errors
    /// `cancelled`, and `timeout` where nothing was found in time. What was found until then is told
    /// before.
    pub(super) fn run(&self, context: &Context<'_>) -> Result<Outcome, ToolError> {
        let Some((start, text)) = self.start else {
            return Ok(Outcome {
                paths: Vec::new(),
                more: More::Nothing,
                total: Some(0),
                counts: Counts::default(),
                unreadable: Vec::new(),
            });
        };
        let prefix = Prefix::of(text);
        let visitor = Matches { glob: self.glob, kinds: self.kinds };
        let want = match self.sort {
            Sort::Path => self.page.end().saturating_add(1),
            Sort::Modified => usize::MAX,
        };
        let cancelled = || context.cancel.is_cancelled();
        let pace = Pace { cancelled: &cancelled, deadline: context.search_deadline() };
        let mut list = List {
            page: self.page,
            prefix: &prefix,
            kept: match self.sort {
                Sort::Path => Kept::First(Vec::new()),
                Sort::Modified => Kept::Newest(BinaryHeap::new()),
            },
            found: 0,
            left_out: 0,
            room: Room(MOST_BYTES),
            partial: Partial { sink: context.sink, unsent: Vec::new(), last: None },
        };
        let options = Options { want, threads: None };
        let summary = tree::walk(start, &self.selection, &visitor, options, pace, &mut list)
            .map_err(|error| ToolError::from_io("start a search", text, error))?;
        let found = list.found;
        let Listed { paths, left_out } = list.finish();
        let next = self.page.offset.saturating_add(paths.len());
        let more = match (summary.ended, self.sort) {
            _ if left_out > 0 => More::From(next),
            (Ended::Stopped, Sort::Path) => More::Unknown(Some(next)),
            (Ended::Stopped, Sort::Modified) => More::Unknown(None),
            (Ended::All | Ended::Enough, _) => More::Nothing,
        };
        let total = (summary.ended == Ended::All).then_some(found);
        if context.cancel.is_cancelled() {
            return Err(ToolError::cancelled(
                "the search was cancelled; what it found was told before",
            )
            .with_detail("found", paths.len()));
        }
        if summary.ended == Ended::Stopped && paths.is_empty() {
            return Err(ToolError::timeout(format!(
                "the search's time is up: nothing found among the {} names that were looked at \
                 until then",
                summary.counts.searched
            ))
            .with_hint("start deeper, or spell out more of the pattern"));
        }
        let first = summary.named.first(Skip::Unreadable).iter();
        let unreadable = first.map(|path| prefix.join(path)).collect();
        Ok(Outcome { paths, more, total, counts: summary.counts, unreadable })
    }
}

/// Tells what the pattern is about from what only leads there.
struct Matches<'a> {
    glob: &'a PathGlob,
    kinds: Kinds,
}

/// A match.
struct Match {
    kind: FileKind,
    size: Option<u64>,
    /// Nanoseconds since 1970.
    modified: Option<i128>,
}

impl Visit for Matches<'_> {
    type Local = ();
    type Found = Match;

    fn local(&self) {}

    fn wants(&self, kind: FileKind) -> bool {
        self.kinds == Kinds::All || kind == FileKind::Folder
    }

    fn visit(&self, (): &mut (), entry: &Entry<'_>, _: &Stop) -> Seen<Match> {
        if entry.kind() == FileKind::Folder {
            let mut path = entry.path();
            path.push(b'/');
            if !self.glob.is_match(&path) {
                return Seen::nothing();
            }
        }
        let found = match entry.stat() {
            Ok(stat) => {
                let size = (stat.kind == FileKind::Regular).then_some(stat.size);
                Match { kind: stat.kind, size, modified: Some(stat.modified_ns) }
            }
            // Gone since.
            Err(Errno::NOENT) => return Seen::nothing(),
            Err(_) => Match { kind: entry.kind(), size: None, modified: None },
        };
        Seen { found: Some(found), hits: 1, weight: size_of::<Match>(), skip: None }
    }
}

/// Takes the matches in the order of paths.
struct List<'a> {
    page: Page,
    prefix: &'a Prefix,
    kept: Kept,
    /// How many matches came.
    found: usize,
    /// How many of them come behind the page.
    left_out: usize,
    room: Room,
    partial: Partial<'a>,
}

/// A page, and how many known matches come behind it.
struct Listed {
    paths: Vec<Value>,
    left_out: usize,
}

/// How much a result holds, in bytes, about: no more than a model can use.
const MOST_BYTES: usize = 128 * 1024;

/// What a path takes in a result beside itself.
const OVERHEAD: usize = 100;

/// The room that is left on a page, in bytes.
struct Room(usize);

impl Room {
    /// Takes the room for a path. False where there is none; an empty page always has it.
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
    /// The newest of all, the oldest of them on top.
    Newest(BinaryHeap<Ranked>),
}

/// A match in the order of its last change.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Ranked {
    modified: Reverse<Option<i128>>,
    /// Its number in the order of paths.
    number: usize,
    path: Vec<u8>,
    kind: Kind,
    size: Option<u64>,
}

/// A kind of file as a result names it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    File,
    Folder,
    Link,
    Other,
}

impl Report<Match> for List<'_> {
    fn found(&mut self, batch: Vec<Found<Match>>) -> ControlFlow<()> {
        let end = self.page.end();
        for Found { path, found: Match { kind, size, modified }, .. } in batch {
            let number = self.found;
            self.found += 1;
            let modified = Reverse(modified);
            let ranked = Ranked { modified, number, path, kind: Kind::of(kind), size };
            match &mut self.kept {
                Kept::First(_) if number < self.page.offset => {}
                Kept::First(page) => {
                    if number >= end || !self.room.take(ranked.path.len(), page) {
                        self.left_out += 1;
                        return ControlFlow::Break(());
                    }
                    let item = ranked.item(self.prefix);
                    self.partial.unsent.push(item.clone());
                    page.push(item);
                }
                Kept::Newest(newest) if newest.len() < end => newest.push(ranked),
                Kept::Newest(newest) => {
                    self.left_out += 1;
                    if let Some(mut oldest) = newest.peek_mut()
                        && ranked < *oldest
                    {
                        *oldest = ranked;
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

impl List<'_> {
    fn finish(mut self) -> Listed {
        let paths = match self.kept {
            Kept::First(page) => page,
            Kept::Newest(newest) => {
                let mut page = Vec::new();
                for ranked in newest.into_sorted_vec().into_iter().skip(self.page.offset) {
                    if self.room.take(ranked.path.len(), &page) {
                        page.push(ranked.item(self.prefix));
                    } else {
                        self.left_out += 1;
                    }
                }
                self.partial.unsent.extend(page.iter().cloned());
                page
            }
        };
        // The outcome follows; whoever is gone misses both.
        let _ = self.partial.send();
        Listed { paths, left_out: self.left_out }
    }
}

impl Ranked {
    fn item(&self, prefix: &Prefix) -> Value {
        let mut item = json!({ "path": prefix.join(&self.path), "kind": self.kind.name() });
        if let Some(size) = self.size {
            item["size_bytes"] = size.into();
        }
        if let Some(modified) = self.modified.0.and_then(timestamp) {
            item["modified"] = modified.into();
        }
        item
    }
}

impl Kind {
    fn of(kind: FileKind) -> Self {
        match kind {
            FileKind::Regular => Kind::File,
            FileKind::Folder => Kind::Folder,
            FileKind::Link => Kind::Link,
            FileKind::Special(_) => Kind::Other,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::File => "file",
            Kind::Folder => "folder",
            Kind::Link => "link",
            Kind::Other => "other",
        }
    }
}

/// A moment as RFC 3339 writes it, to the second; nothing for one that it cannot write.
fn timestamp(nanoseconds: i128) -> Option<String> {
    let seconds = i64::try_from(nanoseconds.div_euclid(1_000_000_000)).ok()?;
    OffsetDateTime::from_unix_timestamp(seconds).ok()?.format(&Rfc3339).ok()
}

/// Sends what is found while the search goes on.
struct Partial<'a> {
    sink: &'a dyn EventSink,
    unsent: Vec<Value>,
    last: Option<Instant>,
}

/// How long finds are gathered before they are sent, and how many at most.
const GATHERED: Duration = Duration::from_millis(50);
const MOST_GATHERED: usize = 500;

impl Partial<'_> {
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
        payload.insert("tool".to_owned(), NAME.into());
        payload.insert("paths".to_owned(), std::mem::take(&mut self.unsent).into());
        match self.sink.emit(Event::Partial(payload)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }
}

impl Outcome {
    /// Adds the fields of the result.
    pub(super) fn put(self, payload: &mut Payload, arguments: &Arguments<'_>) {
        let notice = self.notice(arguments);
        let mut put = |name: &str, value: Value| payload.insert(name.to_owned(), value);
        put("truncated", (self.more != More::Nothing).into());
        if let More::From(offset) | More::Unknown(Some(offset)) = self.more {
            put("next_offset", offset.into());
        }
        put("paths", self.paths.into());
        if let Some(notice) = notice {
            put("notice", notice.into());
        }
    }

    /// What the caller should know beyond the fields.
    fn notice(&self, arguments: &Arguments<'_>) -> Option<String> {
        let mut notices = Vec::new();
        let ignored = self.counts.ignored;
        match self.total {
            Some(0) => {
                notices.push("Nothing matches.".to_owned());
                if arguments.text.contains('/') && !arguments.text.contains("**") {
                    notices.push(
                        "A pattern with a slash is about paths from the start: **/ before it looks \
                         in any folder."
                            .to_owned(),
                    );
                }
            }
            Some(total) if self.paths.is_empty() => notices.push(format!(
                "Nothing to list: offset {} is past the last of {}.",
                arguments.page.offset,
                counted(total as u64, "match", "matches")
            )),
            _ => {}
        }
        match self.more {
            More::Nothing => {}
            More::From(offset) => {
                notices.push(format!("There are more; go on with offset {offset}."));
            }
            More::Unknown(Some(offset)) => notices.push(format!(
                "Time was up before everything was looked at; go on with offset {offset}, or start \
                 deeper."
            )),
            More::Unknown(None) => notices.push(
                "Time was up before everything was looked at, so the newest may be missing: start \
                 deeper."
                    .to_owned(),
            ),
        }
        if ignored > 0 && self.total.is_some() {
            notices.push(format!(
                "Ignore rules left out {}; include_ignored: true, or a pattern or path that spells \
                 one out, finds them.",
                counted(ignored, "file or folder", "files or folders")
            ));
        }
        let unreadable = self.counts.skipped(Skip::Unreadable);
        if unreadable > 0 {
            let etc = if unreadable > self.unreadable.len() as u64 { ", …" } else { "" };
            notices.push(format!(
                "{} could not be read: {}{etc}.",
                counted(unreadable, "folder", "folders"),
                self.unreadable.join(", ")
            ));
        }
        (!notices.is_empty()).then(|| notices.join(" "))
    }
}

fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_told_in_utc_to_the_second() {
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
