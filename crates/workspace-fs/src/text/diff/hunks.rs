//! Changed lines put together with the lines around them.

use std::borrow::Cow;

use crate::text::lines::Unit;

use super::blocks::{Block, Blocks};
use super::{Diff, FinalNewline, Hunk, Limits, Line, Op, Reach};

pub(super) fn build<'a>(
    old: &'a [u8],
    unit: Unit,
    blocks: Blocks<'a>,
    ends: (FinalNewline, FinalNewline),
    limits: Limits,
) -> Diff<'a> {
    let Limits { lines: max_lines, context } = limits;
    let text = Text { old, unit };
    let mut left_out = blocks.left_out;
    let mut hunks: Vec<Hunk<Cow<'a, [u8]>>> = Vec::new();
    // Where the last block ended: the byte and the old line behind it.
    let mut behind: Option<(usize, usize)> = None;
    for block in blocks.kept {
        let used: usize = hunks.iter().map(|hunk| hunk.lines.len()).sum();
        if used >= max_lines {
            left_out += block.removed.len() + block.added.len();
            continue;
        }
        let next = (block.next_at, block.old_line + block.removed.len());
        let joins = behind.is_some_and(|(_, line)| block.old_line - line <= 2 * context);
        match (hunks.last_mut(), behind) {
            (Some(hunk), Some((at, _))) if joins => {
                hunk.extend(text.lines_from(at, block.old_at, usize::MAX), Op::Context);
            }
            (last, behind) => {
                if let (Some(hunk), Some((at, _))) = (last, behind) {
                    hunk.extend(text.lines_from(at, block.old_at, context), Op::Context);
                }
                let before = text.lines_before(block.old_at, context);
                hunks.push(Hunk::starting_at(&block, before));
            }
        }
        if let Some(hunk) = hunks.last_mut() {
            left_out += hunk.take(block, max_lines - used);
        }
        behind = Some(next);
    }
    let mut reach = Reach::Short;
    if let (Some(hunk), Some((at, _)), 0) = (hunks.last_mut(), behind, left_out) {
        let lines = text.lines_from(at, usize::MAX, context + 1);
        if lines.len() <= context {
            reach = Reach::LastLine;
        }
        hunk.extend(lines.into_iter().take(context), Op::Context);
    }
    for hunk in &mut hunks {
        hunk.count();
    }
    Diff {
        hunks,
        added: blocks.added,
        removed: blocks.removed,
        first_changed_line: blocks.first_changed_line,
        left_out,
        old_end: ends.0,
        new_end: ends.1,
        reach,
    }
}

/// The old text by lines, from any place in it.
struct Text<'a> {
    old: &'a [u8],
    unit: Unit,
}

impl<'a> Text<'a> {
    /// At most `count` lines before the one that begins at `at`.
    fn lines_before(&self, at: usize, count: usize) -> Vec<&'a [u8]> {
        let mut lines = Vec::new();
        let mut at = at;
        while at > 0 && lines.len() < count {
            let end = at.saturating_sub(self.unit.width()).min(self.old.len());
            at = self.unit.line_start(self.old, end);
            lines.push(&self.old[at..end]);
        }
        lines.reverse();
        lines
    }

    /// At most `count` lines from the one that begins at `at` on, up to the one that begins at
    /// `until`. A final newline ends the last line and begins no other.
    fn lines_from(&self, at: usize, until: usize, count: usize) -> Vec<&'a [u8]> {
        let mut lines = Vec::new();
        let mut at = at;
        while at < until && at < self.old.len() && lines.len() < count {
            let end = self.unit.line_end(self.old, at);
            lines.push(&self.old[at..end]);
            at = end + self.unit.width();
        }
        lines
    }
}

impl<'a> Hunk<Cow<'a, [u8]>> {
    fn starting_at(block: &Block<'a>, before: Vec<&'a [u8]>) -> Self {
        let number = |line: usize| u32::try_from(line - before.len()).unwrap_or(u32::MAX);
        let mut hunk = Self {
            old_start: number(block.old_line),
            old_lines: 0,
            new_start: number(block.new_line),
            new_lines: 0,
            lines: Vec::new(),
        };
        hunk.extend(before, Op::Context);
        hunk
    }

    fn extend(&mut self, lines: impl IntoIterator<Item = &'a [u8]>, op: Op) {
        self.lines.extend(lines.into_iter().map(|line| Line { op, text: Cow::Borrowed(line) }));
    }

    /// Adds as many of a block's lines as fit. Returns how many were left out.
    fn take(&mut self, block: Block<'a>, limit: usize) -> usize {
        let changed = block.removed.len() + block.added.len();
        let removed = block.removed.into_iter().map(|text| (Op::Remove, Cow::Borrowed(text)));
        let added = block.added.into_iter().map(|text| (Op::Add, Cow::Owned(text)));
        let lines = removed.chain(added).take(limit);
        self.lines.extend(lines.map(|(op, text)| Line { op, text }));
        changed.saturating_sub(limit)
    }

    /// Counts the lines, and turns lines before the hunk into the number of its first one.
    fn count(&mut self) {
        let count = |without: Op| {
            let lines = self.lines.iter().filter(|line| line.op != without).count();
            u32::try_from(lines).unwrap_or(u32::MAX)
        };
        (self.old_lines, self.new_lines) = (count(Op::Add), count(Op::Remove));
        self.old_start += u32::from(self.old_lines > 0);
        self.new_start += u32::from(self.new_lines > 0);
    }
}
