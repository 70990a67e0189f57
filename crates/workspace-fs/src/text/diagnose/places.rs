//! Where a string stands.

use std::fmt;

use crate::text::lines::Unit;
use crate::text::matching::{Needle, Overlaps};

/// The places where a string stands, without overlaps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// The line of each, 1-based.
    lines: Vec<usize>,
    /// Whether there may be more.
    more: bool,
}

/// Where there are more places, only the first is named.
const NAMED: usize = 3;
/// More are not counted.
const COUNTED: usize = 10_000;

impl Places {
    pub(crate) fn of(needle: &Needle, text: &[u8], unit: Unit) -> Self {
        let found = needle.find(text, Overlaps::Skipped, COUNTED);
        let (mut line, mut counted) = (1, 0);
        let lines = found.iter().map(|found| {
            line += unit.count_lf(&text[counted..found.start]);
            counted = found.start;
            line
        });
        Self { lines: lines.collect(), more: found.len() == COUNTED }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    pub(super) fn lines(&self) -> &[usize] {
        &self.lines
    }
}

/// Goes on behind "stands at".
impl fmt::Display for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.lines.len();
        if count > NAMED {
            let least = if self.more { "at least " } else { "" };
            return write!(f, "{least}{count} places, the first at line {}", self.lines[0]);
        }
        let mut lines = self.lines.clone();
        lines.dedup();
        write!(f, "line {}", super::joined(&lines))
    }
}
