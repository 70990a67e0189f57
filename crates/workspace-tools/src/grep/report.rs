//! Makes a page of the list from what is found, and reports it as it grows.

use std::ops::ControlFlow;

use serde_json::Value;

use super::arguments::{Mode, Page};
use super::collect::{Hit, Hits, MOST_KEPT};
use super::spec;
use crate::Context;
use crate::field::{Field, List, PATH};
use crate::prefix::Prefix;
use tool_provider::{Event, Payload};
use workspace_fs::tree::{Counts, Found, Report};

/// Looks at a file once more, for those hits of it that were only counted: how many to skip.
pub(super) type Again<'a> = dyn FnMut(&[u8], usize) -> Option<Hits> + 'a;

/// The page while it is made.
pub(super) struct Pages<'a> {
    context: &'a Context<'a>,
    page: Page,
    again: &'a mut Again<'a>,
    listed: Listed,
    /// About how many bytes the list takes.
    weight: usize,
    /// The entries of the list that were reported.
    reported: usize,
}

/// What is on a page.
pub(super) struct Listed {
    pub(super) prefix: Prefix,
    pub(super) mode: Mode,
    pub(super) list: Vec<Value>,
    /// How many entries were settled, on the page or before it.
    pub(super) seen: usize,
    /// How many matches that is.
    pub(super) matches: u64,
    /// Set when there is more than fits.
    pub(super) full: Option<Full>,
    /// Whether something was found that nobody took in time.
    pub(super) is_cut: bool,
}

impl Listed {
    /// The field of a result that holds the list.
    pub(super) fn field(&self) -> Field<List> {
        match self.mode {
            Mode::Content => spec::MATCHES,
            Mode::Files => spec::FILES,
            Mode::Count => spec::COUNTS,
        }
    }
}

/// A page that can take no more, although there is more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Full {
    pub(super) counts: Counts,
    pub(super) by: FullBy,
}

/// What filled a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FullBy {
    Limit,
    Bytes,
}

impl<'a> Pages<'a> {
    pub(super) fn new(
        context: &'a Context<'a>,
        prefix: Prefix,
        mode: Mode,
        page: Page,
        again: &'a mut Again<'a>,
    ) -> Self {
        let listed = Listed {
            prefix,
            mode,
            list: Vec::new(),
            seen: 0,
            matches: 0,
            full: None,
            is_cut: false,
        };
        Self { context, page, again, listed, weight: 0, reported: 0 }
    }

    pub(super) fn finish(self) -> Listed {
        self.listed
    }

    /// Puts an entry on the page, unless it comes before it. False where it does not fit.
    fn put(&mut self, weight: usize, entry: impl FnOnce() -> Value, counts: Counts) -> bool {
        if self.listed.seen < self.page.offset {
            self.listed.seen += 1;
            return true;
        }
        let by = match self.listed.list.len() {
            0 => None,
            listed if listed == self.page.limit => Some(FullBy::Limit),
            _ if self.weight + weight > MOST_KEPT => Some(FullBy::Bytes),
            _ => None,
        };
        if let Some(by) = by {
            self.listed.full = Some(Full { counts, by });
            return false;
        }
        self.weight += weight;
        self.listed.seen += 1;
        self.listed.list.push(entry());
        true
    }

    fn take(&mut self, found: Found<Hits>) -> bool {
        let Found { path, found: hits, so_far, .. } = found;
        let shown = self.listed.prefix.join(&path);
        match self.listed.mode {
            Mode::Files => {
                self.listed.matches += 1;
                let weight = shown.len();
                self.put(weight, || Value::from(shown), so_far)
            }
            Mode::Count => {
                self.listed.matches += hits.count as u64;
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
        self.listed.matches += hits.count as u64;
        let mut hits = hits;
        let before = self.page.offset.saturating_sub(self.listed.seen).min(hits.count);
        if before > 0 {
            self.listed.seen += before;
            let kept = hits.first + hits.kept.len();
            if kept < hits.count {
                // The page begins in the middle of a file with many.
                match (self.again)(path, before) {
                    Some(again) => hits = again,
                    // It is gone, or the search is over, which is reported elsewhere.
                    None => return true,
                }
            }
        }
        let skip = before.saturating_sub(hits.first);
        let mut fits = true;
        let mut put = 0;
        for hit in hits.kept.into_iter().skip(skip) {
            fits = self.put(hit.weight() + shown.len(), || entry(shown, hit), counts);
            if !fits {
                return false;
            }
            put += 1;
        }
        if before + put < hits.count {
            // What was only counted does not fit either.
            self.listed.full = Some(Full { counts, by: FullBy::Bytes });
            fits = false;
        }
        fits
    }

    /// Reports the entries that were not reported yet. If nobody takes them, they are not listed
    /// either: the parts are the whole.
    fn emit_new(&mut self) -> ControlFlow<()> {
        let reported = self.reported;
        if reported == self.listed.list.len() {
            return ControlFlow::Continue(());
        }
        let mut partial = Payload::new();
        self.listed.field().put(&mut partial, self.listed.list[reported..].to_vec());
        if self.context.sink.emit(Event::Partial(partial)).is_err() {
            self.listed.list.truncate(reported);
            self.listed.full = None;
            self.listed.is_cut = true;
            return ControlFlow::Break(());
        }
        self.reported = self.listed.list.len();
        ControlFlow::Continue(())
    }
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
        let message = format!("searched {visited} files, {} found", self.listed.list.len());
        // Whoever is not ready for news of this kind need not have it.
        let now = std::time::Instant::now();
        let _ =
            self.context.sink.emit_until(Event::Progress { message, fraction: None }, Some(now));
    }
}

fn entry(path: &str, hit: Hit) -> Value {
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
    Value::Object(entry)
}
