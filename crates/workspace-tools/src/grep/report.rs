//! Makes a page of the list from what is found, and reports it as it grows.

use std::ops::ControlFlow;

use serde_json::Value;

use super::arguments::{Mode, Page};
use super::collect::{Hit, Hits, MOST_BEYOND, MOST_KEPT};
use super::headings::{Gaps, Headings};
use super::spec;
use crate::Context;
use crate::field::{Details, Field, List, PATH};
use crate::prefix::Prefix;
use tool_provider::{Event, Partials, Payload};
use workspace_fs::tree::{Counts, Found, Report};

/// Looks at a file once more, for those hits of it that were only counted: how many to skip.
pub(super) type Again<'a> = dyn FnMut(&[u8], usize) -> Option<Hits> + 'a;

/// What a page is made for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) mode: Mode,
    /// Whether the result is objects for programs, as partial results are always, or text to be read.
    pub(super) details: Details,
    pub(super) gaps: Gaps,
    pub(super) page: Page,
    /// How many hits of one file are listed.
    pub(super) most_per_file: usize,
}

/// The page while it is made.
pub(super) struct Pages<'a> {
    context: &'a Context<'a>,
    layout: Layout,
    again: &'a mut Again<'a>,
    listed: Listed,
    /// About how many bytes the list takes.
    weight: usize,
    /// What was not reported yet, and how much there was before it.
    unsent: Vec<Value>,
    sent: Reported,
}

/// What is on a page.
pub(super) struct Listed {
    pub(super) prefix: Prefix,
    layout: Layout,
    text: Headings,
    list: Vec<Value>,
    /// How many entries the page has.
    pub(super) count: usize,
    /// How many entries were settled, on the page or before it.
    pub(super) seen: usize,
    /// How many matches that is; absent where some file has more than were counted.
    pub(super) matches: Option<u64>,
    /// Set when there is more than fits.
    pub(super) full: Option<Full>,
    /// Whether something was found that nobody took in time.
    pub(super) is_cut: bool,
}

/// How much of a page was reported.
#[derive(Clone, Copy, Default)]
struct Reported {
    count: usize,
    text: usize,
}

impl Listed {
    /// Sets the field of a result that holds the list; none where there is no text.
    pub(super) fn put(&mut self, payload: &mut Payload) {
        let list = std::mem::take(&mut self.list);
        match (self.layout.mode, self.layout.details) {
            (mode, Details::All) => objects(mode).put(payload, list),
            (Mode::Files, Details::Few) => spec::FILES.put(payload, list),
            (Mode::Content | Mode::Count, Details::Few) if self.count == 0 => {}
            (Mode::Content, Details::Few) => {
                spec::HITS.put(payload, std::mem::take(&mut self.text).into_text());
            }
            (Mode::Count, Details::Few) => {
                let line = |item: &Value| {
                    let item = item.as_object()?;
                    Some(format!("{}:{}", PATH.get(item)?, spec::COUNT.get(item)?))
                };
                let lines: Vec<String> = list.iter().filter_map(line).collect();
                spec::FILE_COUNTS.put(payload, lines.join("\n"));
            }
        }
    }
}

/// Whether a result lists nothing.
pub(super) fn is_empty(payload: &Payload) -> bool {
    let lists = [spec::MATCHES, spec::FILES, spec::COUNTS];
    lists.iter().all(|list| list.get(payload).is_none_or(<[_]>::is_empty))
        && [spec::HITS, spec::FILE_COUNTS].iter().all(|text| text.get(payload).is_none())
}

/// The field that holds the objects of a list.
fn objects(mode: Mode) -> Field<List> {
    match mode {
        Mode::Content => spec::MATCHES,
        Mode::Files => spec::FILES,
        Mode::Count => spec::COUNTS,
    }
}

/// A page that can take no more, although there is more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Full {
    pub(super) counts: Counts,
}

impl<'a> Pages<'a> {
    pub(super) fn new(
        context: &'a Context<'a>,
        prefix: Prefix,
        layout: Layout,
        again: &'a mut Again<'a>,
    ) -> Self {
        let listed = Listed {
            prefix,
            layout,
            text: Headings::new(layout.gaps),
            list: Vec::new(),
            count: 0,
            seen: 0,
            matches: Some(0),
            full: None,
            is_cut: false,
        };
        let (unsent, sent) = (Vec::new(), Reported::default());
        Self { context, layout, again, listed, weight: 0, unsent, sent }
    }

    pub(super) fn finish(self) -> Listed {
        self.listed
    }

    /// Where an entry of this weight goes.
    fn place(&mut self, weight: usize, counts: Counts) -> Place {
        if self.listed.seen < self.layout.page.offset {
            self.listed.seen += 1;
            return Place::Before;
        }
        let is_full = match self.listed.count {
            0 => false,
            listed => listed == self.layout.page.limit || self.weight + weight > MOST_KEPT,
        };
        if is_full {
            self.listed.full = Some(Full { counts });
            return Place::Behind;
        }
        self.weight += weight;
        self.listed.seen += 1;
        self.listed.count += 1;
        Place::On
    }

    /// Puts an entry that is no hit on the page, unless it comes before it. False where it does not fit.
    fn put(&mut self, weight: usize, entry: impl FnOnce() -> Value, counts: Counts) -> bool {
        match self.place(weight, counts) {
            Place::Before => true,
            Place::Behind => false,
            Place::On => {
                self.list(entry());
                true
            }
        }
    }

    fn list(&mut self, entry: Value) {
        if self.reports() {
            self.unsent.push(entry.clone());
        }
        self.listed.list.push(entry);
    }

    fn reports(&self) -> bool {
        self.context.sink.partials() == Partials::Read
    }

    fn put_hit(&mut self, path: &str, hit: Hit, more: Option<usize>, counts: Counts) -> bool {
        match self.place(hit.weight() + path.len(), counts) {
            Place::Before => true,
            Place::Behind => false,
            Place::On => {
                if self.layout.details == Details::All {
                    self.list(entry(path, hit, more));
                    return true;
                }
                let said = more.map(more_in_file);
                self.listed.text.add(path, &hit, said.as_deref());
                if self.reports() {
                    self.unsent.push(entry(path, hit, more));
                }
                true
            }
        }
    }

    fn take(&mut self, found: Found<Hits>) -> bool {
        let Found { path, found: hits, so_far, .. } = found;
        let shown = self.listed.prefix.join(&path);
        let matches = match self.layout.mode {
            Mode::Files => 1,
            Mode::Content | Mode::Count => hits.count as u64,
        };
        let is_exact = self.layout.mode != Mode::Content
            || hits.count < self.layout.most_per_file.saturating_add(MOST_BEYOND);
        self.listed.matches = self.listed.matches.filter(|_| is_exact).map(|sum| sum + matches);
        match self.layout.mode {
            Mode::Files => {
                let weight = shown.len();
                self.put(weight, || Value::from(shown), so_far)
            }
            Mode::Count => {
                let entry = || {
                    let mut entry = Payload::new();
                    PATH.put(&mut entry, shown.as_str());
                    spec::COUNT.put(&mut entry, hits.count);
                    Value::Object(entry)
                };
                self.put(shown.len(), entry, so_far)
            }
            Mode::Content => self.take_hits(&path, &shown, hits, so_far),
        }
    }

    fn take_hits(&mut self, path: &[u8], shown: &str, hits: Hits, counts: Counts) -> bool {
        let mut hits = hits;
        let listed = hits.count.min(self.layout.most_per_file);
        let before = self.layout.page.offset.saturating_sub(self.listed.seen).min(listed);
        if before > 0 {
            self.listed.seen += before;
            let kept = hits.first + hits.kept.len();
            if kept < listed {
                // The page begins in the middle of a file with many.
                match (self.again)(path, before) {
                    Some(again) => hits = again,
                    // It is gone, or the search is over, which is reported elsewhere.
                    None => return true,
                }
            }
        }
        let listed = hits.count.min(self.layout.most_per_file);
        let left_out = (hits.count > listed).then(|| hits.count - listed);
        let skip = before.saturating_sub(hits.first);
        let mut number = before;
        for hit in hits.kept.into_iter().skip(skip) {
            number += 1;
            let more = left_out.filter(|_| number == listed);
            if !self.put_hit(shown, hit, more, counts) {
                return false;
            }
        }
        if number < listed {
            // What was only counted does not fit either.
            self.listed.full = Some(Full { counts });
        }
        number >= listed
    }

    /// Reports the entries that were not reported yet. If nobody takes them, they are not listed
    /// either: the parts are the whole.
    fn emit_new(&mut self) -> ControlFlow<()> {
        if self.unsent.is_empty() {
            return ControlFlow::Continue(());
        }
        let mut partial = Payload::new();
        objects(self.layout.mode).put(&mut partial, std::mem::take(&mut self.unsent));
        if self.context.sink.emit(Event::Partial(partial)).is_err() {
            self.listed.list.truncate(self.sent.count);
            self.listed.text.truncate(self.sent.text);
            self.listed.count = self.sent.count;
            self.listed.full = None;
            self.listed.is_cut = true;
            return ControlFlow::Break(());
        }
        self.sent = Reported { count: self.listed.count, text: self.listed.text.len() };
        ControlFlow::Continue(())
    }
}

/// Where an entry of the whole list goes.
enum Place {
    Before,
    On,
    Behind,
}

impl Report<Hits> for Pages<'_> {
    fn found(&mut self, batch: Vec<Found<Hits>>) -> ControlFlow<()> {
        let mut fits = self.listed.full.is_none();
        for found in batch {
            if !fits {
                break;
            }
            fits = self.take(found);
        }
        self.emit_new()?;
        if fits { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    fn progress(&mut self, visited: u64) {
        let message = format!("searched {visited} files, {} found", self.listed.count);
        // Whoever is not ready for news of this kind need not have it.
        let now = std::time::Instant::now();
        let _ =
            self.context.sink.emit_until(Event::Progress { message, fraction: None }, Some(now));
    }
}

fn more_in_file(count: usize) -> String {
    let least = if count >= MOST_BEYOND { "at least " } else { "" };
    format!("{least}{count} more in this file")
}

fn entry(path: &str, hit: Hit, more: Option<usize>) -> Value {
    let mut entry = Payload::new();
    let to = &mut entry;
    PATH.put(to, path);
    spec::LINE.put(to, hit.line);
    spec::COLUMN.put(to, hit.column);
    spec::TEXT.put(to, hit.snippet.text);
    spec::HIGHLIGHT.put_some(to, hit.snippet.highlight.map(|at| vec![at.start, at.end]));
    for (field, lines) in [(spec::LINES_BEFORE, hit.before), (spec::LINES_AFTER, hit.after)] {
        if !lines.is_empty() {
            field.put(to, lines);
        }
    }
    spec::MORE_IN_FILE.put_some(to, more);
    Value::Object(entry)
}
