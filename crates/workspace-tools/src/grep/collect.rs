//! Takes the matches in one file.

use std::io;
use std::ops::Range;
use std::time::{Duration, Instant};

use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkMatch};

use super::arguments::Mode;
use super::matcher::Stoppable;
use super::pike_vm::Stopped;
use super::snippet::{Snippet, without_ending};
use tool_provider::Secrets;
use workspace_fs::tree::Stop;

/// A line that matches.
#[derive(Debug)]
pub(super) struct Hit {
    /// The number of its first line.
    pub(super) line: u64,
    /// Where the match begins in it: 1 is its first byte.
    pub(super) column: usize,
    pub(super) snippet: Snippet,
    pub(super) before: Vec<String>,
    pub(super) after: Vec<String>,
}

impl Hit {
    /// What it takes of a result, in bytes, about.
    pub(super) fn weight(&self) -> usize {
        let around = self.before.iter().chain(&self.after);
        OVERHEAD + self.snippet.text.len() + around.map(|line| line.len() + 4).sum::<usize>()
    }
}

/// What a hit takes beside its texts.
const OVERHEAD: usize = 64;

/// About how many bytes of hits are kept of one file. A result holds no more.
pub(super) const MOST_KEPT: usize = 128 * 1024;

/// What was found in one file.
#[derive(Debug, Default)]
pub(super) struct Hits {
    /// How many lines match, up to the limit.
    pub(super) count: usize,
    /// The hits from the one with this number on, as many as fit.
    pub(super) first: usize,
    pub(super) kept: Vec<Hit>,
}

/// How much of a file is searched and kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct SearchLimits {
    pub(super) mode: Mode,
    pub(super) lines: Lines,
    /// How many hits are only counted.
    pub(super) skip: usize,
    /// How many hits are enough, those that are skipped included.
    pub(super) want: usize,
    /// How many of one file are listed.
    pub(super) most_per_file: usize,
}

/// How many hits are counted at most behind those that are listed of a file.
pub(super) const MOST_BEYOND: usize = 1000;

impl SearchLimits {
    /// How many hits of a file are enough.
    fn enough(self) -> usize {
        match self.want > self.most_per_file {
            true => self.most_per_file.saturating_add(MOST_BEYOND),
            false => self.want,
        }
    }
}

/// How many lines a match may go over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lines {
    One,
    Many,
}

/// How much longer than until a stop matches are looked at that were found before it.
const GRACE: Duration = Duration::from_millis(20);

/// The sink of one file's search.
pub(super) struct Collector<'a> {
    matcher: &'a Stoppable<'a>,
    limits: SearchLimits,
    secrets: &'a Secrets,
    stop: &'a Stop,
    hits: Hits,
    weight: usize,
    /// How many of the kept hits have their weight counted in.
    settled: usize,
    before: Vec<String>,
}

impl<'a> Collector<'a> {
    pub(super) fn new(
        matcher: &'a Stoppable<'a>,
        limits: SearchLimits,
        secrets: &'a Secrets,
        stop: &'a Stop,
    ) -> Self {
        let hits = Hits { first: limits.skip, ..Hits::default() };
        Self { matcher, limits, secrets, stop, hits, weight: 0, settled: 0, before: Vec::new() }
    }

    pub(super) fn finish(mut self) -> (Hits, usize) {
        self.settle_last();
        (self.hits, self.weight)
    }

    /// Counts in the last hit, which has all of its lines now.
    fn settle_last(&mut self) {
        if self.settled < self.hits.kept.len()
            && let Some(last) = self.hits.kept.last()
        {
            self.weight += last.weight();
            self.settled = self.hits.kept.len();
        }
    }

    /// Whether the hit that comes next is kept.
    fn keeps(&self) -> bool {
        self.limits.mode == Mode::Content
            && (self.limits.skip..self.limits.most_per_file).contains(&self.hits.count)
            && self.weight < MOST_KEPT
    }

    /// Takes the match in a line. `line` is with its end.
    fn take(&mut self, number: u64, line: &[u8], matched: Range<usize>) {
        if self.keeps() {
            self.hits.kept.push(Hit {
                line: number,
                column: matched.start + 1,
                snippet: Snippet::around(without_ending(line), matched, self.secrets),
                before: std::mem::take(&mut self.before),
                after: Vec::new(),
            });
        }
        self.before.clear();
        self.hits.count += 1;
    }

    fn is_enough(&self) -> bool {
        match self.limits.mode {
            Mode::Content => self.hits.count >= self.limits.enough(),
            Mode::Files => self.hits.count > 0,
            Mode::Count => false,
        }
    }

    fn one_line(&mut self, found: &SinkMatch<'_>) -> Result<(), Stopped> {
        let line = found.bytes();
        let matched = if self.keeps() {
            let bare = line.strip_suffix(b"\n").unwrap_or(line);
            let matched = self.matcher.find_from(bare, 0)?;
            matched.map_or(0..0, |matched| matched.start()..matched.end())
        } else {
            0..0
        };
        self.take(found.line_number().unwrap_or(1), line, matched);
        Ok(())
    }

    /// Lines that touch come in one piece where matches may go over several: here each match is a
    /// hit of its own, unless it begins on a line that the one before it ends on.
    fn many_lines(
        &mut self,
        found: &SinkMatch<'_>,
        matcher: &Stoppable<'_>,
    ) -> Result<(), Stopped> {
        let (buffer, all) = (found.buffer(), found.bytes_range_in_buffer());
        let mut number = found.line_number().unwrap_or(1);
        // Where the next match is looked for, and up to where lines belong to a hit.
        let (mut at, mut reported, mut last_end) = (all.start, all.start, None);
        while at < all.end && !self.is_enough() {
            // What stands before and behind decides too, about a word's end for example.
            let Some(matched) = matcher.find_from(buffer, at)? else { break };
            if matched.start() >= all.end {
                break;
            }
            at = matched.end() + usize::from(matched.is_empty());
            // An empty match where another one ends is none.
            let is_rest = matched.is_empty() && last_end == Some(matched.end());
            last_end = Some(matched.end());
            if is_rest || matched.start() < reported {
                continue;
            }
            let begins = line_start(buffer, reported, matched.start());
            let last = matched.end().saturating_sub(1).max(matched.start());
            let ends = memchr::memchr(b'\n', &buffer[last..all.end]);
            let ends = ends.map_or(all.end, |feed| last + feed + 1);
            number += memchr::memchr_iter(b'\n', &buffer[reported..begins]).count() as u64;
            let range = matched.start() - begins..matched.end() - begins;
            self.settle_last();
            self.take(number, &buffer[begins..ends], range);
            number += memchr::memchr_iter(b'\n', &buffer[begins..ends]).count() as u64;
            reported = ends;
        }
        Ok(())
    }
}

/// Where the line begins that `at` is in, no further back than `from`.
fn line_start(text: &[u8], from: usize, at: usize) -> usize {
    memchr::memrchr(b'\n', &text[from..at]).map_or(from, |feed| from + feed + 1)
}

impl Sink for Collector<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        match self.limits.lines {
            // What stands here may be a piece of a line.
            Lines::One if self.stop.is_set() => return Ok(false),
            Lines::One => {
                self.settle_last();
                if self.one_line(found).is_err() {
                    return Ok(false);
                }
            }
            Lines::Many => {
                let until = Instant::now() + GRACE;
                let is_over = || self.stop.is_set() && Instant::now() >= until;
                let matcher = self.matcher.until(&is_over);
                // Those up to the stop count.
                let _ = self.many_lines(found, &matcher);
            }
        }
        Ok(!self.is_enough())
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        if !self.keeps() && self.hits.kept.is_empty() {
            return Ok(true);
        }
        let secrets = self.secrets;
        let line = || Snippet::plain(without_ending(context.bytes()), secrets);
        match context.kind() {
            SinkContextKind::Before => self.before.push(line()),
            SinkContextKind::After => {
                // The hit before it may be one that is not kept.
                let is_last = self.hits.first + self.hits.kept.len() == self.hits.count;
                if let (true, Some(last)) = (is_last, self.hits.kept.last_mut()) {
                    last.after.push(line());
                }
            }
            SinkContextKind::Other => {}
        }
        Ok(true)
    }
}
