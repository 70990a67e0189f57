//! Hunks as text: for a person's screen and as a unified diff.

use std::fmt::Write as _;

use crate::text::encoding::Encoding;

use super::{Diff, FinalNewline, Hunk, Line, Op, Reach};

/// A diff as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The hunks, decoded.
    pub hunks: Vec<Hunk>,
    /// Lines that are too long to be shown whole.
    pub clipped: usize,
    /// Lines with bytes that are not text, shown as U+FFFD.
    pub undecodable: usize,
}

/// Which text a line belongs to; the two may differ in their encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side {
    /// The encoding of the old text.
    pub old: Encoding,
    /// The encoding of the new text.
    pub new: Encoding,
}

/// Up to so many bytes, all lines are shown whole.
const WHOLE_BYTES: usize = 1024 * 1024;
/// Beyond that, what is shown of a long line, in characters: so much before and behind its first
/// difference.
const BEFORE: usize = 100;
const AFTER: usize = 300;

impl Diff<'_> {
    /// The diff as text, every line whole as long as all lines together stay below 1 MiB.
    #[must_use]
    pub fn shown(&self, side: Side) -> Shown {
        let lines = self.hunks.iter().flat_map(|hunk| &hunk.lines);
        let bytes: usize = lines.map(|line| line.text.len()).sum();
        if bytes > WHOLE_BYTES { self.shown_clipped(side) } else { self.decoded(side) }
    }

    /// The diff as text, of long lines only what is around their first difference.
    #[must_use]
    pub fn shown_clipped(&self, side: Side) -> Shown {
        let mut shown = self.decoded(side);
        shown.clipped = shown.hunks.iter_mut().map(|hunk| clip(&mut hunk.lines)).sum();
        shown
    }

    fn decoded(&self, side: Side) -> Shown {
        let mut shown = Shown { hunks: Vec::new(), clipped: 0, undecodable: 0 };
        for hunk in &self.hunks {
            let mut lines: Vec<Line> = Vec::with_capacity(hunk.lines.len());
            for line in &hunk.lines {
                let encoding = if line.op == Op::Add { side.new } else { side.old };
                let text = encoding.decode(&line.text);
                let exact = encoding.encode(&text).is_ok_and(|bytes| bytes == *line.text);
                shown.undecodable += usize::from(!exact);
                lines.push(Line { op: line.op, text: text.into_owned() });
            }
            let Hunk { old_start, old_lines, new_start, new_lines, .. } = *hunk;
            shown.hunks.push(Hunk { old_start, old_lines, new_start, new_lines, lines });
        }
        shown
    }
}

/// Cuts long lines down to the text around their first difference from the line that takes their
/// place. Returns how many were cut.
fn clip(lines: &mut [Line]) -> usize {
    let mut clipped = 0;
    for run in lines.chunk_by_mut(|a, b| (a.op == Op::Context) == (b.op == Op::Context)) {
        let removed = run.iter().filter(|line| line.op == Op::Remove).count();
        let positions: Vec<usize> = (0..run.len())
            .map(|at| {
                let partner = if at < removed { at + removed } else { at - removed };
                let partner = run.get(partner).filter(|other| other.op != run[at].op);
                partner.map_or(0, |other| first_difference(&run[at].text, &other.text))
            })
            .collect();
        for (line, at) in run.iter_mut().zip(positions) {
            if line.text.len() > BEFORE + AFTER {
                line.text = excerpt(&line.text, at);
                clipped += 1;
            }
        }
    }
    clipped
}

/// In characters.
fn first_difference(a: &str, b: &str) -> usize {
    a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count()
}

fn excerpt(text: &str, at: usize) -> String {
    let total = text.chars().count();
    let start = at.saturating_sub(BEFORE);
    let end = (at + AFTER).min(total);
    let middle: String = text.chars().skip(start).take(end - start).collect();
    match (start, total - end) {
        (0, 0) => middle,
        (0, after) => format!("{middle}… [{after} more characters]"),
        (before, 0) => format!("[{before} characters] …{middle}"),
        (before, after) => format!("[{before} characters] …{middle}… [{after} more characters]"),
    }
}

const NO_NEWLINE: &str = "\\ No newline at end of file\n";

/// The hunks as a unified diff without file names, the way git and `patch` read it, also where the
/// last newline is missing. `diff` is what `shown` was made from.
#[must_use]
pub fn unified(diff: &Diff<'_>, shown: &Shown) -> String {
    let mut text = String::new();
    for (index, hunk) in shown.hunks.iter().enumerate() {
        let at_end = diff.reach == Reach::LastLine && index + 1 == shown.hunks.len();
        let mut hunk = hunk.clone();
        // Here a newline ends a line and does not begin one: nothing comes after the last.
        match (at_end, diff.old_end, diff.new_end) {
            (true, FinalNewline::Missing, FinalNewline::Present) => drop_last(&mut hunk, Op::Add),
            (true, FinalNewline::Present, FinalNewline::Missing) => {
                drop_last(&mut hunk, Op::Remove)
            }
            _ => {}
        }
        let _ = writeln!(
            text,
            "@@ -{} +{} @@",
            range(hunk.old_start, hunk.old_lines),
            range(hunk.new_start, hunk.new_lines)
        );
        let last_old = hunk.lines.iter().rposition(|line| line.op != Op::Add);
        let last_new = hunk.lines.iter().rposition(|line| line.op != Op::Remove);
        for (at, line) in hunk.lines.iter().enumerate() {
            let open_old = at_end && diff.old_end == FinalNewline::Missing && Some(at) == last_old;
            let open_new = at_end && diff.new_end == FinalNewline::Missing && Some(at) == last_new;
            let body = &line.text;
            let both = line.op == Op::Context;
            match (open_old, open_new) {
                // The same text, but only one of the two has a newline behind it.
                (old_open, new_open) if both && old_open != new_open => {
                    let (old, new) = (mark(old_open), mark(new_open));
                    let _ = write!(text, "-{body}\n{old}+{body}\n{new}");
                }
                (old_open, new_open) => {
                    let marker = match line.op {
                        Op::Context => ' ',
                        Op::Add => '+',
                        Op::Remove => '-',
                    };
                    let open = match line.op {
                        Op::Remove => old_open,
                        Op::Add => new_open,
                        Op::Context => old_open || new_open,
                    };
                    let _ = write!(text, "{marker}{body}\n{}", mark(open));
                }
            }
        }
    }
    text
}

fn mark(open: bool) -> &'static str {
    if open { NO_NEWLINE } else { "" }
}

/// Leaves out the empty last line of one side.
fn drop_last(hunk: &mut Hunk, op: Op) {
    if let Some(at) = hunk.lines.iter().rposition(|line| line.op == op && line.text.is_empty()) {
        hunk.lines.remove(at);
        match op {
            Op::Add => hunk.new_lines -= 1,
            _ => hunk.old_lines -= 1,
        }
    }
}

fn range(start: u32, lines: u32) -> String {
    if lines == 1 { start.to_string() } else { format!("{start},{lines}") }
}

/// The hunks of a unified diff, as [`unified`] writes it. What is not understood is left out, so
/// that an old or a foreign text can be shown as far as it goes.
#[must_use]
pub fn parse_unified(text: &str) -> Vec<Hunk> {
    let mut hunks: Vec<Hunk> = Vec::new();
    for line in text.split_terminator('\n') {
        if let Some(hunk) = header(line) {
            hunks.push(hunk);
            continue;
        }
        let Some(hunk) = hunks.last_mut() else { continue };
        let (op, text) = match line.as_bytes().first() {
            Some(b' ') => (Op::Context, &line[1..]),
            Some(b'+') => (Op::Add, &line[1..]),
            Some(b'-') => (Op::Remove, &line[1..]),
            _ => continue,
        };
        hunk.lines.push(Line { op, text: text.to_owned() });
    }
    hunks
}

fn header(line: &str) -> Option<Hunk> {
    let (old, new) = line.strip_prefix("@@ -")?.split_once(" @@")?.0.split_once(" +")?;
    let side = |text: &str| {
        let (start, lines) = text.split_once(',').unwrap_or((text, "1"));
        Some((start.parse::<u32>().ok()?, lines.parse::<u32>().ok()?))
    };
    let ((old_start, old_lines), (new_start, new_lines)) = (side(old)?, side(new)?);
    Some(Hunk { old_start, old_lines, new_start, new_lines, lines: Vec::new() })
}
