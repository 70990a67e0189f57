//! The lines of a text that are most similar to a string.
//!
//! The string's lines vote: each line of the text that equals, folded, one of the string's lines votes
//! for the position where the string would have to begin. Where few lines get a vote, three-letter
//! sequences that both have in common decide instead.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use memchr::memmem;
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

use crate::text::cut::beginning;
use crate::text::encoding::Encoding;
use crate::text::lines::Unit;

use super::fold::{Kind, fold, fold_all, unfold};
use super::{COMPARED_BYTES, Difference, Likeness, Region, visible};

/// More lines of the string are not compared.
const MAX_LINES: usize = 2000;
/// More of a single line of the text is not looked at when lines are compared one by one.
const MAX_LINE_BYTES: usize = 256 * 1024;
/// How many differing lines are shown.
const SHOWN: usize = 3;
/// A line that occurs more often in the string says little about the position.
const MAX_SAME: usize = 8;
/// Lines of the text looked at beyond as many as the string has, to find where it goes on.
const EXTRA: usize = 8;
/// A string of more bytes, folded, has three-letter sequences enough.
const MAX_SHORT: usize = 64;
const PAIRING_TIME: Duration = Duration::from_millis(50);

/// The most similar lines, if any are similar.
pub(super) fn find(text: &[u8], encoding: Encoding, wanted: &str) -> Option<Region> {
    let text = &text[..text.len().min(COMPARED_BYTES)];
    let wanted = Wanted::new(wanted)?;
    let (score, line) = by_lines(text, encoding, &wanted);
    if score * 3 >= wanted.weight {
        return Some(region(text, encoding, &wanted, line));
    }
    let line = by_trigrams(text, encoding, &wanted)
        .or_else(|| by_both_ends(text, encoding, &wanted))
        .or((score > 0).then_some(line))?;
    Some(region(text, encoding, &wanted, line))
}

/// The string by lines, and the same folded.
struct Wanted<'a> {
    lines: Vec<&'a str>,
    folded: Vec<String>,
    weight: u64,
}

impl<'a> Wanted<'a> {
    fn new(text: &'a str) -> Option<Self> {
        let text = text.strip_prefix('\n').unwrap_or(text);
        let text = text.strip_suffix('\n').unwrap_or(text);
        let lines: Vec<&str> =
            text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)).collect();
        let lines: Vec<&str> =
            lines.into_iter().take(MAX_LINES).map(|line| beginning(line, MAX_LINE_BYTES)).collect();
        let folded: Vec<String> = lines.iter().map(|line| fold(line, &Kind::ALL)).collect();
        let weight = folded.iter().map(|line| weight(line)).sum();
        (weight > 0).then_some(Self { lines, folded, weight })
    }

    /// How the string's line `index` lies in a line of the text: the first and the last may be
    /// pieces.
    fn position(&self, index: usize) -> Position {
        match (index == 0, index + 1 == self.lines.len()) {
            (true, true) => Position::Inside,
            (true, false) => Position::AtEnd,
            (false, true) => Position::AtStart,
            (false, false) => Position::Whole,
        }
    }
}

#[derive(Clone, Copy)]
enum Position {
    Whole,
    AtStart,
    AtEnd,
    Inside,
}

impl Position {
    fn holds(self, line: &str, piece: &str) -> bool {
        match self {
            Position::Whole => line == piece,
            Position::AtStart => line.starts_with(piece),
            Position::AtEnd => line.ends_with(piece),
            Position::Inside => line.contains(piece),
        }
    }
}

/// Long lines say more about a position than short ones, up to a limit.
fn weight(folded: &str) -> u64 {
    folded.len().min(64) as u64
}

/// The position with most votes, as score and line (from 0).
fn by_lines(text: &[u8], encoding: Encoding, wanted: &Wanted<'_>) -> (u64, usize) {
    let count = wanted.folded.len();
    let mut inner: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, folded) in wanted.folded.iter().enumerate() {
        if matches!(wanted.position(index), Position::Whole) && !folded.is_empty() {
            inner.entry(folded).or_default().push(index);
        }
    }
    inner.retain(|_, indices| indices.len() <= MAX_SAME);
    let (first, last) = (&*wanted.folded[0], &*wanted.folded[count - 1]);
    let finder = memmem::Finder::new(first);
    let mut windows = Windows::new(count);
    each_line(text, encoding, |line| {
        windows.next_line();
        if count == 1 {
            if finder.find(line.as_bytes()).is_some() {
                windows.add(0, weight(first));
            }
            return;
        }
        for index in inner.get(line).into_iter().flatten() {
            windows.add(*index, weight(line));
        }
        if !first.is_empty() && line.ends_with(first) {
            windows.add(0, weight(first));
        }
        if !last.is_empty() && line.starts_with(last) {
            windows.add(count - 1, weight(last));
        }
    });
    windows.best()
}

/// The position that shares most three-letter sequences with the string, if it shares many.
fn by_trigrams(text: &[u8], encoding: Encoding, wanted: &Wanted<'_>) -> Option<usize> {
    let total: usize = wanted.folded.iter().map(|line| trigrams(line).count()).sum();
    if total < 4 {
        return None;
    }
    let slots = (total * 16).next_power_of_two().clamp(1 << 12, 1 << 22);
    let mut known = vec![false; slots];
    for hash in wanted.folded.iter().flat_map(|line| trigrams(line)) {
        known[hash % slots] = true;
    }
    let mut windows = Windows::new(wanted.folded.len());
    each_line(text, encoding, |line| {
        let (mut hits, mut misses) = (0_usize, 0_usize);
        for hash in trigrams(line) {
            if known[hash % slots] { hits += 1 } else { misses += 1 }
        }
        windows.next_line();
        // All lines of a window add up, whichever of the string's lines they resemble.
        let score = (hits.min(total) * 4).saturating_sub(misses);
        windows.add_to_all(score as u64);
    });
    let (score, line) = windows.best();
    // 60 of 100 shared.
    (score * 10 >= total as u64 * 4 * 6).then_some(line)
}

/// The line that begins and ends like the string, where that is one short line: too few three-letter
/// sequences are left of it where a name in its middle differs.
fn by_both_ends(text: &[u8], encoding: Encoding, wanted: &Wanted<'_>) -> Option<usize> {
    let [wanted] = &*wanted.folded else { return None };
    if wanted.len() > MAX_SHORT {
        return None;
    }
    let (mut best, mut number) = ((0, 0), 0);
    each_line(text, encoding, |line| {
        let (one, other) = (wanted.as_bytes(), line.as_bytes());
        let (shorter, longer) = (one.len().min(other.len()), one.len().max(other.len()));
        let same = |(a, b): &(&u8, &u8)| a == b;
        let head = one.iter().zip(other).take_while(same).count();
        let tail = one.iter().rev().zip(other.iter().rev()).take_while(same).count();
        let common = (head + tail).min(shorter);
        // 60 of 100, and more than a bracket or two.
        if common >= 4 && common * 10 >= longer * 6 && common * 1000 / longer > best.0 {
            best = (common * 1000 / longer, number);
        }
        number += 1;
    });
    (best.0 > 0).then_some(best.1)
}

fn trigrams(line: &str) -> impl Iterator<Item = usize> {
    line.as_bytes().windows(3).map(|three| {
        let value =
            usize::from(three[0]) << 16 | usize::from(three[1]) << 8 | usize::from(three[2]);
        value.wrapping_mul(0x9E37_79B1) >> 7
    })
}

/// Scores of the windows that the current line can still lie in, and the best one so far. A window
/// is as many lines long as the string; its memory does not grow with the text.
struct Windows {
    scores: Vec<u64>,
    /// Added to every open window: those since the window opened count.
    running: u64,
    line: Option<usize>,
    best: (u64, usize),
}

impl Windows {
    fn new(length: usize) -> Self {
        Self { scores: vec![0; length], running: 0, line: None, best: (0, 0) }
    }

    fn next_line(&mut self) {
        let line = self.line.map_or(0, |line| line + 1);
        self.close(line);
        self.line = Some(line);
        let slot = line % self.scores.len();
        // Counted from here on, so that what was added to all before does not count.
        self.scores[slot] = self.running.wrapping_neg();
    }

    /// Closes the window that ends before `line`.
    fn close(&mut self, line: usize) {
        let length = self.scores.len();
        if let Some(start) = line.checked_sub(length) {
            let score = self.scores[start % length].wrapping_add(self.running);
            if score > self.best.0 {
                self.best = (score, start);
            }
        }
    }

    /// A vote of the current line for being the string's line `index`.
    fn add(&mut self, index: usize, score: u64) {
        let start = self.line.and_then(|line| line.checked_sub(index));
        if let Some(start) = start {
            let slot = start % self.scores.len();
            self.scores[slot] = self.scores[slot].wrapping_add(score);
        }
    }

    fn add_to_all(&mut self, score: u64) {
        self.running = self.running.wrapping_add(score);
    }

    fn best(mut self) -> (u64, usize) {
        let end = self.line.map_or(0, |line| line + 1);
        let length = self.scores.len();
        for line in end.max(length)..end + length {
            // Windows that reach beyond the last line count too.
            if line - length < end {
                self.close(line);
            }
        }
        self.best
    }
}

/// Visits the text's lines, folded.
fn each_line(text: &[u8], encoding: Encoding, mut visit: impl FnMut(&str)) {
    let mut folded = String::new();
    for range in Unit::of(encoding).segments(text) {
        folded.clear();
        fold_all(&encoding.decode(&text[range]), &mut folded);
        visit(&folded);
    }
}

/// What the lines around the window that begins at `start` (from 0) have in common with the string.
fn region(text: &[u8], encoding: Encoding, wanted: &Wanted<'_>, start: usize) -> Region {
    let count = wanted.lines.len();
    let extra = if count > 1 { EXTRA } else { 0 };
    let first = start.saturating_sub(extra);
    let lines: Vec<String> = Unit::of(encoding)
        .segments(text)
        .skip(first)
        .take(start - first + count + extra)
        .map(|range| {
            let line = encoding.decode(&text[range]);
            line.strip_suffix('\r').unwrap_or(&line).to_owned()
        })
        .collect();
    let keys: Vec<String> = lines
        .iter()
        .enumerate()
        .map(|(index, line)| {
            let key = fold(line, &Kind::ALL);
            // The string's first and last line may be pieces: what holds them stands for them.
            let own = if first + index <= start { 0 } else { count - 1 };
            let piece = &wanted.folded[own];
            let holds = !piece.is_empty() && wanted.position(own).holds(&key, piece);
            if holds && !wanted.folded.contains(&key) { piece.clone() } else { key }
        })
        .collect();
    let pairs = pairs(&wanted.folded, &keys);
    let first_line = first + 1 + pairs.iter().find_map(|(_, other)| *other).unwrap_or(0);
    let mut found = Region {
        first_line,
        last_line: first_line,
        matching: 0,
        of: count,
        differ_in: Likeness::Only(Vec::new()),
        differences: Vec::new(),
        more: 0,
    };
    for (own, other) in pairs {
        found.compare(wanted, own, other.map(|other| (first + 1 + other, &*lines[other])));
    }
    found
}

impl Region {
    /// Takes one pair of lines into account, or a line without a partner.
    fn compare(&mut self, wanted: &Wanted<'_>, own: Option<usize>, file: Option<(usize, &str)>) {
        if let Some((line, _)) = file {
            self.last_line = self.last_line.max(line);
        }
        let difference = match (own, file) {
            (Some(own), Some((line, file))) => {
                let position = wanted.position(own);
                let own = wanted.lines[own];
                if position.holds(file, own) {
                    self.matching += 1;
                    return;
                }
                let kinds = kinds_of_difference(file, own, position);
                let (file, wanted) = shown_pair(file, own, position, kinds.as_deref());
                self.differ_in.widen(kinds);
                Difference::Changed { line, file, wanted }
            }
            (None, Some((line, file))) => {
                self.differ_in = Likeness::Text;
                Difference::OnlyInFile { line, file: visible::line(file) }
            }
            (Some(own), None) => {
                self.differ_in = Likeness::Text;
                Difference::OnlyInWanted { wanted: visible::line(wanted.lines[own]) }
            }
            (None, None) => return,
        };
        if self.differences.len() < SHOWN {
            self.differences.push(difference);
        } else {
            self.more += 1;
        }
    }
}

impl Likeness {
    fn widen(&mut self, kinds: Option<Vec<Kind>>) {
        match (&mut *self, kinds) {
            (Likeness::Only(known), Some(kinds)) => {
                for kind in kinds {
                    if !known.contains(&kind) {
                        known.push(kind);
                    }
                }
            }
            _ => *self = Likeness::Text,
        }
    }
}

/// Which lines belong together: (the string's, the text's). The text's lines before the first of the
/// string's and behind the last are left out.
fn pairs(wanted: &[String], file: &[String]) -> Vec<(Option<usize>, Option<usize>)> {
    let deadline = Instant::now() + PAIRING_TIME;
    let mut pairs = Vec::new();
    for op in capture_diff_slices_deadline(Algorithm::Myers, wanted, file, Some(deadline)) {
        let (own, other) = match op {
            DiffOp::Equal { .. } | DiffOp::Replace { .. } => (op.old_range(), op.new_range()),
            DiffOp::Delete { .. } => (op.old_range(), 0..0),
            DiffOp::Insert { .. } => (0..0, op.new_range()),
        };
        let length = own.len().max(other.len());
        let own = own.map(Some).chain(std::iter::repeat(None));
        let other = other.map(Some).chain(std::iter::repeat(None));
        pairs.extend(own.zip(other).take(length));
    }
    while let Some((None, _)) = pairs.last() {
        pairs.pop();
    }
    let leading = pairs.iter().take_while(|(own, _)| own.is_none()).count();
    pairs.split_off(leading)
}

/// The fewest kinds that have to be looked past for the two to be the same; none where their text
/// differs.
fn kinds_of_difference(file: &str, wanted: &str, position: Position) -> Option<Vec<Kind>> {
    let same = |kinds: &[Kind]| position.holds(&fold(file, kinds), &fold(wanted, kinds));
    let mut kinds = Kind::ALL.to_vec();
    if !same(&kinds) {
        return None;
    }
    for kind in Kind::ALL {
        let fewer: Vec<Kind> = kinds.iter().copied().filter(|other| *other != kind).collect();
        if same(&fewer) {
            kinds = fewer;
        }
    }
    Some(kinds)
}

/// Both lines made visible. Where the string is a piece of a line, that line is shown from there.
fn shown_pair(
    file: &str,
    wanted: &str,
    position: Position,
    kinds: Option<&[Kind]>,
) -> (String, String) {
    let start = match position {
        Position::Whole | Position::AtStart => 0,
        Position::AtEnd | Position::Inside => {
            let (folded, piece) = (fold(file, &Kind::ALL), fold(wanted, &Kind::ALL));
            let at = if matches!(position, Position::AtEnd) {
                folded.rfind(&piece)
            } else {
                folded.find(&piece)
            };
            at.map_or(0, |at| unfold(file, at))
        }
    };
    // Blanks before the place are part of what may differ.
    let indented = file[..start].trim_end().len();
    let start = if wanted.starts_with([' ', '\t']) { indented } else { start };
    visible::pair(
        beginning(&file[start..], MAX_LINE_BYTES),
        wanted,
        kinds.unwrap_or(&[Kind::Whitespace]),
    )
}
