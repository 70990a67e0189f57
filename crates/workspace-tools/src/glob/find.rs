//! The walk for `glob`: from a search, as it is meant, to what it gave.

use rustix::io::Errno;

use super::list::{List, Listed};
use super::outcome::{More, Outcome};
use super::pattern::Kinds;
use crate::Context;
use crate::field::Details;
use crate::prefix::Prefix;
use tool_provider::ToolError;
use workspace_fs::FileKind;
use workspace_fs::tree::{
    self, Counts, Entry, Options, PathGlob, Selection, Skip, Start, Stop, StopCondition,
    StopReason, Visit, VisitResult,
};

/// In which order paths are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    /// Name by name.
    Path,
    /// The newest first; of equal ones by path.
    Modified,
    /// The largest file first; of equal ones, and of what has no size, by path.
    Size,
}

/// What is asked of each file that is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    /// Its kind, which its directory knows.
    Kind,
    /// Its size and the time of its last change too, which takes a system call.
    Status,
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
    /// Where it starts, and what the caller calls that; else why there is no such directory.
    pub(super) start: Result<(&'a Start, &'a str), &'a str>,
    pub(super) selection: Selection,
    pub(super) glob: &'a PathGlob,
    pub(super) kinds: Kinds,
    pub(super) page: Page,
    pub(super) sort: Sort,
    pub(super) details: Details,
}

impl Search<'_> {
    /// Searches.
    ///
    /// # Errors
    /// `cancelled`, and `timeout` where nothing was found in time. What was found until then is
    /// reported before.
    pub(super) fn run(&self, context: &Context<'_>) -> Result<Outcome, ToolError> {
        let (start, text) = match self.start {
            Ok(start) => start,
            Err(why) => {
                return Ok(Outcome {
                    no_start: Some(why.to_owned()),
                    paths: Vec::new(),
                    more: More::Nothing,
                    total: Some(0),
                    counts: Counts::default(),
                    unreadable: Vec::new(),
                });
            }
        };
        let prefix = Prefix::of(text);
        let asked = match (self.details, self.sort) {
            (Details::Few, Sort::Path) => Asked::Kind,
            (Details::All, _) | (Details::Few, Sort::Modified | Sort::Size) => Asked::Status,
        };
        let visitor = Matches { glob: self.glob, kinds: self.kinds, asked };
        let want = match self.sort {
            Sort::Path => self.page.end().saturating_add(1),
            Sort::Modified | Sort::Size => usize::MAX,
        };
        let cancelled = || context.cancel.is_cancelled();
        let until = StopCondition { cancelled: &cancelled, deadline: context.search_deadline() };
        let mut list = List::new((self.page, self.sort, self.details), &prefix, context.sink);
        let options = Options { want, threads: None };
        let summary = tree::walk(start, &self.selection, &visitor, options, until, &mut list)
            .map_err(|error| ToolError::from_io("start a search", text, error))?;
        let found = list.found();
        let Listed { paths, left_out } = list.finish();
        let next = self.page.offset.saturating_add(paths.len());
        let more = match (summary.stop_reason, self.sort) {
            (StopReason::Stopped, Sort::Modified | Sort::Size) => More::Unknown(None),
            _ if left_out > 0 => More::From(next),
            (StopReason::Stopped, Sort::Path) => More::Unknown(Some(next)),
            (StopReason::All | StopReason::Enough, _) => More::Nothing,
        };
        let total = (summary.stop_reason == StopReason::All).then_some(found);
        if context.cancel.is_cancelled() {
            return Err(ToolError::cancelled(
                "the search was cancelled; what it found was reported before",
            )
            .with_detail("found", paths.len()));
        }
        if summary.stop_reason == StopReason::Stopped && paths.is_empty() {
            return Err(ToolError::timeout(format!(
                "the search's time is up: nothing found among the {} names that were looked at \
                 until then",
                summary.counts.searched
            ))
            .with_hint("start deeper, or spell out more of the pattern"));
        }
        let first = summary.named.first(Skip::Unreadable).iter();
        let unreadable = first.map(|path| prefix.join(path)).collect();
        Ok(Outcome { paths, more, total, counts: summary.counts, unreadable, no_start: None })
    }
}

/// Distinguishes what the pattern is about from what only leads there.
struct Matches<'a> {
    glob: &'a PathGlob,
    kinds: Kinds,
    asked: Asked,
}

/// A match.
pub(super) struct Match {
    pub(super) kind: FileKind,
    pub(super) size: Option<u64>,
    /// Nanoseconds since 1970.
    pub(super) modified: Option<i128>,
}

impl Visit for Matches<'_> {
    type Local = ();
    type Found = Match;

    fn local(&self) {}

    fn wants(&self, kind: FileKind) -> bool {
        match self.kinds {
            Kinds::All => true,
            Kinds::Files => kind == FileKind::Regular,
            Kinds::Directories => kind == FileKind::Directory,
            Kinds::Links => kind == FileKind::Link,
        }
    }

    fn is_quick(&self) -> bool {
        true
    }

    fn visit(&self, (): &mut (), entry: &Entry<'_>, _: &Stop) -> VisitResult<Match> {
        if entry.kind() == FileKind::Directory {
            let mut path = entry.path();
            path.push(b'/');
            if !self.glob.is_match(&path) {
                return VisitResult::nothing();
            }
        }
        let only_kind = Match { kind: entry.kind(), size: None, modified: None };
        let found = match self.asked {
            Asked::Kind => only_kind,
            Asked::Status => match entry.stat() {
                Ok(stat) => {
                    let size = (stat.kind == FileKind::Regular).then_some(stat.size);
                    Match { kind: stat.kind, size, modified: Some(stat.modified_ns) }
                }
                // Gone since.
                Err(Errno::NOENT) => return VisitResult::nothing(),
                Err(_) => only_kind,
            },
        };
        VisitResult { found: Some(found), hits: 1, weight: size_of::<Match>(), skip: None }
    }
}
