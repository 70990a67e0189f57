//! Line diffs that are exact: the hunks, applied to the old text, give the new text's very bytes.
//!
//! A text is taken as lines *separated* by LF, so a text that ends in LF has an empty last line
//! behind it, as editors show it, and an empty text is one without lines. A line's text is all that
//! stands between two LFs; a CR before an LF belongs to it. So a change of an ending, of a lone CR or
//! of the missing last newline is a change of lines like any other, and joining lines by LF restores
//! every byte. Only one thing is reported beside the hunks, by [`Diff::new_end`]: whether a text that
//! begins from nothing ends in a newline; its empty last line is left out because every new file
//! would show one.
//!
//! Where the changed bytes are known, only the lines that they touch are looked at: the cost is that
//! of the change, not of the file (but for counting the lines before it).

mod blocks;
mod hunks;
mod shown;

use std::borrow::Cow;

use super::lines::Unit;
use super::patch::{Change, Patch};

pub use shown::{Shown, Side, parse_unified, unified};

/// A run of changed lines with the lines around them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk<T = String> {
    /// First line in the old text, 1-based. Where the hunk has no old lines: the line before it, 0
    /// at the text's start.
    pub old_start: u32,
    /// Number of old lines.
    pub old_lines: u32,
    /// First line in the new text, 1-based; counted like `old_start`.
    pub new_start: u32,
    /// Number of new lines.
    pub new_lines: u32,
    /// The lines, in order.
    pub lines: Vec<Line<T>>,
}

/// One line of a hunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line<T = String> {
    /// Whether the line stays, comes or goes.
    pub op: Op,
    /// The line without its LF and without any marker.
    pub text: T,
}

/// What happens to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// It stays.
    Context,
    /// It is new.
    Add,
    /// It goes.
    Remove,
}

/// A diff in the bytes of the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diff<'a> {
    /// The hunks, in order, neither overlapping nor touching.
    pub hunks: Vec<Hunk<Cow<'a, [u8]>>>,
    /// Lines that come. A newline at the end counts only where nothing else comes or goes.
    pub added: usize,
    /// Lines that go.
    pub removed: usize,
    /// The first line that differs, in the new text, 1-based.
    pub first_changed_line: Option<usize>,
    /// Lines that come or go and are not among the hunks, because there are too many.
    pub left_out: usize,
    /// Whether the old text ends in a newline.
    pub old_end: FinalNewline,
    /// Whether the new text ends in a newline.
    pub new_end: FinalNewline,
    /// Whether the last hunk reaches the end of both texts.
    pub reach: Reach,
}

/// Whether a text ends in a newline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinalNewline {
    /// The text is empty.
    EmptyText,
    /// It does.
    Present,
    /// It ends in the middle of a line.
    Missing,
}

/// Whether hunks reach the end of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The last hunk holds the last line.
    LastLine,
    /// There are lines behind the last hunk, or hunks were left out.
    Short,
}

/// What of a change hunks show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// So many lines at most.
    pub lines: usize,
    /// So many unchanged lines before and behind a change.
    pub context: usize,
}

/// Lines around a change for a person, as in every unified diff.
pub const CONTEXT: usize = 3;

impl From<usize> for Limits {
    /// So many lines, with [`CONTEXT`] around a change.
    fn from(lines: usize) -> Self {
        Self { lines, context: CONTEXT }
    }
}

/// What `patch` does to `old`, both in `unit`.
#[must_use]
pub fn of_patch<'a>(
    old: &'a [u8],
    patch: &Patch<'_>,
    unit: Unit,
    limits: impl Into<Limits>,
) -> Diff<'a> {
    let limits = limits.into();
    let ends = (FinalNewline::of(old, unit), new_end(old, patch, unit));
    let blocks = if is_aligned(patch, unit) {
        blocks::of_patch(old, patch, unit, ends, limits.lines)
    } else {
        // Half a unit that comes or goes moves all that follows.
        let change = Change { old: 0..old.len(), text: patch.apply(old).into() };
        let mut all = Patch::default();
        all.push(old, change);
        blocks::of_patch(old, &all, unit, ends, limits.lines)
    };
    hunks::build(old, unit, blocks, ends, limits)
}

/// What replacing `old` by `new` does where the two are in different units: every line goes, and
/// every line comes.
#[must_use]
pub fn of_rewrite<'a>(
    (old, old_unit): (&'a [u8], Unit),
    (new, new_unit): (&[u8], Unit),
    limits: impl Into<Limits>,
) -> Diff<'a> {
    let limits = limits.into();
    let ends = (FinalNewline::of(old, old_unit), FinalNewline::of(new, new_unit));
    let blocks = blocks::of_rewrite((old, old_unit), (new, new_unit), ends, limits.lines);
    hunks::build(old, old_unit, blocks, ends, limits)
}

fn is_aligned(patch: &Patch<'_>, unit: Unit) -> bool {
    patch.changes().iter().all(|change| {
        [change.old.start, change.old.end, change.text.len()]
            .iter()
            .all(|offset| offset.is_multiple_of(unit.width()))
    })
}

impl FinalNewline {
    fn of(text: &[u8], unit: Unit) -> Self {
        match text {
            [] => FinalNewline::EmptyText,
            text if text.ends_with(unit.lf()) && text.len().is_multiple_of(unit.width()) => {
                FinalNewline::Present
            }
            _ => FinalNewline::Missing,
        }
    }
}

fn new_end(old: &[u8], patch: &Patch<'_>, unit: Unit) -> FinalNewline {
    let length = patch.new_len(old.len());
    // The last unit may lie across pieces.
    let mut tail = Vec::new();
    for piece in patch.segments(old).collect::<Vec<_>>().into_iter().rev() {
        if tail.len() >= unit.width() {
            break;
        }
        let last = &piece[piece.len() - piece.len().min(unit.width())..];
        tail.splice(0..0, last.iter().copied());
    }
    match (length, tail.ends_with(unit.lf())) {
        (0, _) => FinalNewline::EmptyText,
        (_, true) if length.is_multiple_of(unit.width()) => FinalNewline::Present,
        _ => FinalNewline::Missing,
    }
}

#[cfg(test)]
mod tests;
