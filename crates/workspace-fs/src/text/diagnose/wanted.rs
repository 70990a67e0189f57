//! The string that was not found, by lines.

use crate::text::cut::beginning;

use super::fold::{Kind, fold};

/// More lines of the string are not compared.
const MAX_LINES: usize = 2000;
/// More of a single line is not looked at when lines are compared one by one.
pub(super) const MAX_LINE_BYTES: usize = 256 * 1024;

/// The string by lines, and the same folded.
pub(super) struct Wanted<'a> {
    pub(super) lines: Vec<&'a str>,
    pub(super) folded: Vec<String>,
    /// Whether its first line is the beginning of one, as a line break before it says.
    begins_line: bool,
    /// Whether its last line is the end of one.
    ends_line: bool,
}

impl<'a> Wanted<'a> {
    /// None where nothing of it is left to compare.
    pub(super) fn new(text: &'a str) -> Option<Self> {
        let (text, begins_line) =
            text.strip_prefix('\n').map_or((text, false), |rest| (rest, true));
        let (text, ends_line) = text.strip_suffix('\n').map_or((text, false), |rest| (rest, true));
        let mut lines = text
            .split('\n')
            .map(|line| beginning(line.strip_suffix('\r').unwrap_or(line), MAX_LINE_BYTES));
        let kept: Vec<&str> = lines.by_ref().take(MAX_LINES).collect();
        let ends_line = ends_line || lines.next().is_some();
        let folded: Vec<String> = kept.iter().map(|line| fold(line, &Kind::ALL)).collect();
        let is_blank = folded.iter().all(String::is_empty);
        (!is_blank).then_some(Self { lines: kept, folded, begins_line, ends_line })
    }

    /// How the string's line `index` lies in a line of the text: the first and the last may be
    /// pieces.
    pub(super) fn position(&self, index: usize) -> Position {
        let is_cut_before = index == 0 && !self.begins_line;
        let is_cut_behind = index + 1 == self.lines.len() && !self.ends_line;
        match (is_cut_before, is_cut_behind) {
            (true, true) => Position::Inside,
            (true, false) => Position::AtEnd,
            (false, true) => Position::AtStart,
            (false, false) => Position::Whole,
        }
    }

    /// What the line `index` counts for: a long one says more about a place than a short one, up to a
    /// limit.
    pub(super) fn weight(&self, index: usize) -> u64 {
        weight(&self.folded[index])
    }

    pub(super) fn total_weight(&self) -> u64 {
        (0..self.folded.len()).map(|index| self.weight(index)).sum()
    }
}

/// Also a blank line counts for something.
fn weight(folded: &str) -> u64 {
    folded.len().min(64) as u64 + 1
}

/// Where in a line of the text a line of the string has to lie.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    Whole,
    AtStart,
    AtEnd,
    Inside,
}

impl Position {
    pub(super) fn holds(self, line: &str, piece: &str) -> bool {
        match self {
            Position::Whole => line == piece,
            Position::AtStart => line.starts_with(piece),
            Position::AtEnd => line.ends_with(piece),
            Position::Inside => line.contains(piece),
        }
    }
}
