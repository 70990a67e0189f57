//! The changed lines: which new lines replace which old ones.

use std::collections::HashMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

use crate::text::lines::Unit;
use crate::text::patch::Patch;

use super::FinalNewline;

/// How long lines are compared; then what is left counts as replaced as a whole.
const COMPARE_TIME: Duration = Duration::from_millis(60);

/// Old lines that give way to new ones.
#[derive(Debug)]
pub(super) struct Block<'a> {
    /// The number of old lines before the block.
    pub old_line: usize,
    /// The number of new lines before the block.
    pub new_line: usize,
    /// Where the first old line begins; a unit beyond the end for a block behind the last line.
    pub old_at: usize,
    /// Where the old line behind the block begins, counted the same way.
    pub next_at: usize,
    pub removed: Vec<&'a [u8]>,
    pub added: Vec<Vec<u8>>,
}

/// All changed lines.
#[derive(Debug, Default)]
pub(super) struct Blocks<'a> {
    /// The first of them, as many as are asked for.
    pub kept: Vec<Block<'a>>,
    pub added: usize,
    pub removed: usize,
    pub first_changed_line: Option<usize>,
    /// Changed lines that are not among the blocks.
    pub left_out: usize,
}

/// Lines of one stretch of both texts.
struct Stretch<'a, 'n> {
    old: &'a [u8],
    old_lines: Vec<Range<usize>>,
    /// Where `old_lines` are counted from.
    old_base: usize,
    new: &'n [u8],
    new_lines: Vec<Range<usize>>,
    /// Numbers of the first lines.
    at: (usize, usize),
    width: usize,
}

pub(super) fn of_patch<'a>(
    old: &'a [u8],
    patch: &Patch<'_>,
    unit: Unit,
    ends: (FinalNewline, FinalNewline),
    max_lines: usize,
) -> Blocks<'a> {
    let deadline = Instant::now() + COMPARE_TIME;
    let mut blocks = Blocks::default();
    let mut changes = patch.changes().iter().peekable();
    let (mut counted, mut old_line, mut new_line) = (0, 0, 0);
    while let Some(first) = changes.next() {
        let start = unit.line_start(old, first.old.start);
        let mut end = unit.line_end(old, first.old.end);
        let mut new = old[start..first.old.start].to_vec();
        let mut last = first;
        new.extend_from_slice(&first.text);
        while let Some(change) = changes.next_if(|change| change.old.start <= end) {
            new.extend_from_slice(&old[last.old.end..change.old.start]);
            new.extend_from_slice(&change.text);
            end = end.max(unit.line_end(old, change.old.end));
            last = change;
        }
        new.extend_from_slice(&old[last.old.end..end]);

        let unchanged = unit.count_lf(&old[counted..start]);
        (old_line, new_line) = (old_line + unchanged, new_line + unchanged);
        let mut stretch = Stretch {
            old,
            old_lines: unit.segments(&old[start..end]).collect(),
            old_base: start,
            new: &new,
            new_lines: unit.segments(&new).collect(),
            at: (old_line, new_line),
            width: unit.width(),
        };
        (old_line, new_line) =
            (old_line + stretch.old_lines.len() - 1, new_line + stretch.new_lines.len() - 1);
        counted = end;
        let ends = (end == old.len()).then_some(ends);
        blocks.compare(&mut stretch, ends, deadline, max_lines);
    }
    blocks
}

pub(super) fn of_rewrite<'a>(
    (old, old_unit): (&'a [u8], Unit),
    (new, new_unit): (&[u8], Unit),
    ends: (FinalNewline, FinalNewline),
    max_lines: usize,
) -> Blocks<'a> {
    let mut stretch = Stretch {
        old,
        old_lines: old_unit.segments(old).collect(),
        old_base: 0,
        new,
        new_lines: new_unit.segments(new).collect(),
        at: (0, 0),
        width: old_unit.width(),
    };
    let mut blocks = Blocks::default();
    stretch.drop_last_lines(ends);
    let (old, new) = (0..stretch.old_lines.len(), 0..stretch.new_lines.len());
    blocks.add(&stretch, old, new, LastLine::Kept, max_lines);
    blocks
}

/// Whether the empty last line behind a final newline is a change. It is compared with no other
/// line: a newline at the end is no empty line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LastLine {
    Kept,
    Comes,
    Goes,
}

impl Stretch<'_, '_> {
    /// Leaves out the empty last lines that say nothing: those that both texts have, and that of an
    /// empty text. What is left of them says that the newline at the end comes or goes.
    fn drop_last_lines(&mut self, ends: (FinalNewline, FinalNewline)) -> LastLine {
        match ends {
            (FinalNewline::EmptyText, FinalNewline::EmptyText)
            | (FinalNewline::Missing, FinalNewline::Missing) => {}
            (
                FinalNewline::Present | FinalNewline::EmptyText,
                FinalNewline::Present | FinalNewline::EmptyText,
            ) => {
                self.old_lines.pop();
                self.new_lines.pop();
            }
            (FinalNewline::EmptyText, FinalNewline::Missing) => {
                self.old_lines.pop();
            }
            (FinalNewline::Missing, FinalNewline::EmptyText) => {
                self.new_lines.pop();
            }
            (FinalNewline::Missing, FinalNewline::Present) => return LastLine::Comes,
            (FinalNewline::Present, FinalNewline::Missing) => return LastLine::Goes,
        }
        LastLine::Kept
    }

    fn old_line(&self, index: usize) -> &[u8] {
        let line = &self.old_lines[index];
        &self.old[self.old_base + line.start..self.old_base + line.end]
    }

    fn new_line(&self, index: usize) -> &[u8] {
        &self.new[self.new_lines[index].clone()]
    }

    /// The stretches of lines that differ, empty last lines aside.
    fn compare(&self, last_line: LastLine, deadline: Instant) -> Vec<(Range<usize>, Range<usize>)> {
        let old_count = self.old_lines.len() - usize::from(last_line == LastLine::Goes);
        let new_count = self.new_lines.len() - usize::from(last_line == LastLine::Comes);
        let limit = old_count.min(new_count);
        let equal = |old, new| self.old_line(old) == self.new_line(new);
        let prefix = (0..limit).take_while(|at| equal(*at, *at)).count();
        let suffix = (1..=limit - prefix)
            .take_while(|back| equal(old_count - back, new_count - back))
            .count();
        let (old, new) = (prefix..old_count - suffix, prefix..new_count - suffix);
        let mut found = Vec::new();
        if old.is_empty() || new.is_empty() || (old.len() == 1 && new.len() == 1) {
            found.push((old, new));
        } else {
            let (olds, news) = self.numbered(old.clone(), new.clone());
            let ops = capture_diff_slices_deadline(Algorithm::Myers, &olds, &news, Some(deadline));
            // Neighbouring deletions and insertions are one.
            let mut pending = (old.start..old.start, new.start..new.start);
            for op in ops {
                let (o, n) = (old.start + op.old_range().end, new.start + op.new_range().end);
                if matches!(op, DiffOp::Equal { .. }) {
                    found.push(pending);
                    pending = (o..o, n..n);
                } else {
                    (pending.0.end, pending.1.end) = (o, n);
                }
            }
            found.push(pending);
        }
        if last_line != LastLine::Kept {
            if found.last().is_none_or(|(o, n)| (o.end, n.end) != (old_count, new_count)) {
                found.push((old_count..old_count, new_count..new_count));
            }
            if let Some((o, n)) = found.last_mut() {
                (o.end, n.end) = (self.old_lines.len(), self.new_lines.len());
            }
        }
        found.retain(|(old, new)| !old.is_empty() || !new.is_empty());
        found
    }

    /// The lines as numbers, equal where the lines are equal: cheaper to compare.
    fn numbered(&self, old: Range<usize>, new: Range<usize>) -> (Vec<u32>, Vec<u32>) {
        let mut numbers: HashMap<&[u8], u32> = HashMap::new();
        let mut number = |line| {
            let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            *numbers.entry(line).or_insert(next)
        };
        let old = old.map(|at| number(self.old_line(at))).collect();
        (old, new.map(|at| number(self.new_line(at))).collect())
    }
}

impl<'a> Blocks<'a> {
    /// Adds what differs in a stretch. `ends` is given where it reaches the end of both texts.
    fn compare(
        &mut self,
        stretch: &mut Stretch<'a, '_>,
        ends: Option<(FinalNewline, FinalNewline)>,
        deadline: Instant,
        max_lines: usize,
    ) {
        let last_line = ends.map_or(LastLine::Kept, |ends| stretch.drop_last_lines(ends));
        for (old, new) in stretch.compare(last_line, deadline) {
            self.add(stretch, old, new, last_line, max_lines);
        }
    }

    fn add(
        &mut self,
        stretch: &Stretch<'a, '_>,
        old: Range<usize>,
        new: Range<usize>,
        last_line: LastLine,
        max_lines: usize,
    ) {
        let stored = self.added + self.removed;
        let goes = last_line == LastLine::Goes && old.end == stretch.old_lines.len();
        let comes = last_line == LastLine::Comes && new.end == stretch.new_lines.len();
        self.removed += old.len() - usize::from(goes && !old.is_empty());
        self.added += new.len() - usize::from(comes && !new.is_empty());
        if self.added + self.removed == 0 {
            (self.removed, self.added) = (old.len(), new.len());
        }
        self.first_changed_line.get_or_insert(stretch.at.1 + new.start + 1);
        if stored >= max_lines {
            self.left_out += old.len() + new.len();
            return;
        }
        let start_of = |index: usize| match stretch.old_lines.get(index) {
            Some(line) => stretch.old_base + line.start,
            None => match stretch.old_lines.last() {
                Some(last) => stretch.old_base + last.end + stretch.width,
                None => stretch.old_base,
            },
        };
        let kept_old = old.start..old.end.min(old.start.saturating_add(max_lines));
        let kept_new = new.start..new.end.min(new.start.saturating_add(max_lines));
        self.left_out += old.len() - kept_old.len() + new.len() - kept_new.len();
        let line_of_old = |line: &Range<usize>| {
            &stretch.old[stretch.old_base + line.start..stretch.old_base + line.end]
        };
        let block = Block {
            old_line: stretch.at.0 + old.start,
            new_line: stretch.at.1 + new.start,
            old_at: start_of(old.start),
            next_at: start_of(old.end),
            removed: stretch.old_lines[kept_old].iter().map(line_of_old).collect(),
            added: kept_new.map(|at| stretch.new_line(at).to_vec()).collect(),
        };
        match self.kept.last_mut() {
            // One that is cut stays alone: of the others lines that come are shown beside those that go.
            Some(last) if last.touches(&block) && stored + old.len() + new.len() <= max_lines => {
                last.join(block);
            }
            _ => self.kept.push(block),
        }
    }
}

impl<'a> Block<'a> {
    /// Whether no line stands between the two.
    fn touches(&self, next: &Block<'a>) -> bool {
        self.old_line + self.removed.len() == next.old_line
            && self.new_line + self.added.len() == next.new_line
    }

    fn join(&mut self, next: Self) {
        self.next_at = next.next_at;
        self.removed.extend(next.removed);
        self.added.extend(next.added);
    }
}
