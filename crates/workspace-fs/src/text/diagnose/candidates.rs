//! Places in a text that may be like the string: a coarse measure of all of them, in one pass.
//!
//! Each line of the text that equals, folded, one of the string's lines votes for the place where the
//! string would have to begin. Beside that, each line counts the short sequences of letters that it
//! shares with the string.

use std::collections::HashMap;

use memchr::memmem;

use crate::text::encoding::Encoding;
use crate::text::lines::Unit;

use super::fold::fold_all;
use super::wanted::{Position, Wanted};

/// A line that occurs more often in the string says little about the place.
const MAX_SAME: usize = 8;
/// So many places are kept of each measure: of lines for a string of one line, of windows for others.
const LINES_KEPT: usize = 12;
const WINDOWS_KEPT: usize = 4;
/// A string of fewer bytes, folded, has too few sequences of three letters.
const SHORT: usize = 48;

/// Where to look closer, as lines from 0.
pub(super) fn candidates(
    text: &[u8],
    encoding: Encoding,
    wanted: &Wanted<'_>,
    slack: usize,
) -> Vec<usize> {
    let places = match wanted.folded.len() {
        1 => of_one_line(text, encoding, wanted),
        _ => of_lines(text, encoding, wanted, slack),
    };
    let mut starts: Vec<usize> = places.into_iter().map(|(_, start)| start).collect();
    starts.sort_unstable();
    starts.dedup();
    starts
}

fn of_one_line(text: &[u8], encoding: Encoding, wanted: &Wanted<'_>) -> Vec<(u64, usize)> {
    let mut grams = Grams::of(wanted);
    let finder = memmem::Finder::new(&*wanted.folded[0]);
    let mut best = Best::new(LINES_KEPT, 1);
    let mut number = 0;
    each_line(text, encoding, |line| {
        let score = if finder.find(line.as_bytes()).is_some() {
            u64::MAX
        } else {
            // What surrounds the string in its line is no fault, but a long line shares by chance.
            let (hits, misses) = grams.shared_with(line);
            hits * 16 - misses.min(hits * 8)
        };
        best.add(score, number);
        number += 1;
    });
    best.kept
}

fn of_lines(
    text: &[u8],
    encoding: Encoding,
    wanted: &Wanted<'_>,
    slack: usize,
) -> Vec<(u64, usize)> {
    let count = wanted.folded.len();
    let mut inner: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut pieces: Vec<usize> = Vec::new();
    for (index, folded) in wanted.folded.iter().enumerate() {
        match wanted.position(index) {
            _ if folded.is_empty() => {}
            Position::Whole => inner.entry(folded).or_default().push(index),
            _ => pieces.push(index),
        }
    }
    inner.retain(|_, indices| indices.len() <= MAX_SAME);
    let mut grams = Grams::of(wanted);
    let apart = count.min(slack);
    let mut votes = Windows::new(count, apart);
    let mut alike = Windows::new(count, apart);
    each_line(text, encoding, |line| {
        votes.next_line();
        for index in inner.get(line).into_iter().flatten() {
            votes.add(*index, wanted.weight(*index));
        }
        for index in &pieces {
            if wanted.position(*index).holds(line, &wanted.folded[*index]) {
                votes.add(*index, wanted.weight(*index));
            }
        }
        alike.next_line();
        // All lines of a window add up, whichever of the string's lines they resemble.
        let (hits, misses) = grams.shared_with(line);
        alike.add_to_all((hits * 4).saturating_sub(misses));
    });
    let mut places = votes.best();
    places.extend(alike.best());
    places
}

/// The short sequences of letters that the string has.
struct Grams {
    length: usize,
    /// For each slot: [`UNKNOWN`], or the number of the line that had it last.
    slots: Vec<u32>,
    line: u32,
}

/// A slot of no sequence that the string has.
const UNKNOWN: u32 = u32::MAX;

impl Grams {
    fn of(wanted: &Wanted<'_>) -> Self {
        let bytes: usize = wanted.folded.iter().map(String::len).sum();
        let length = if bytes < SHORT { 2 } else { 3 };
        let total = wanted.folded.iter().map(|line| grams(line, length).count()).sum::<usize>();
        let slots = (total * 16).next_power_of_two().clamp(1 << 12, 1 << 22);
        let mut slots = vec![UNKNOWN; slots];
        for hash in wanted.folded.iter().flat_map(|line| grams(line, length)) {
            let slot = hash % slots.len();
            slots[slot] = 0;
        }
        Self { length, slots, line: 0 }
    }

    /// How many sequences of the next line the string has, each counted once, and how many it lacks.
    fn shared_with(&mut self, line: &str) -> (u64, u64) {
        self.line += 1;
        let (mut hits, mut misses) = (0, 0);
        for hash in grams(line, self.length) {
            let slot = hash % self.slots.len();
            match &mut self.slots[slot] {
                &mut UNKNOWN => misses += 1,
                last if *last == self.line => {}
                last => {
                    *last = self.line;
                    hits += 1;
                }
            }
        }
        (hits, misses)
    }
}

fn grams(line: &str, length: usize) -> impl Iterator<Item = usize> {
    line.as_bytes().windows(length).map(|gram| {
        let value = gram.iter().fold(0, |value, byte| value << 8 | usize::from(*byte));
        value.wrapping_mul(0x9E37_79B1) >> 7
    })
}

/// The best places so far, none of them next to another.
struct Best {
    kept: Vec<(u64, usize)>,
    most: usize,
    apart: usize,
}

impl Best {
    fn new(most: usize, apart: usize) -> Self {
        Self { kept: Vec::with_capacity(most + 1), most, apart }
    }

    fn add(&mut self, score: u64, start: usize) {
        let worst = if self.kept.len() < self.most { 0 } else { self.kept[self.most - 1].0 };
        if score <= worst {
            return;
        }
        match self.kept.iter_mut().find(|(_, other)| start.abs_diff(*other) < self.apart) {
            Some((other, _)) if *other >= score => return,
            Some(neighbour) => *neighbour = (score, start),
            None => self.kept.push((score, start)),
        }
        // Of two that are as good the earlier one stays before the other: the sort is stable.
        self.kept.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        self.kept.truncate(self.most);
    }
}

/// Scores of the windows that the current line can still lie in, and the best ones so far. A window
/// is as many lines long as the string; its memory does not grow with the text.
struct Windows {
    scores: Vec<u64>,
    /// Added to every open window: those since the window opened count.
    running: u64,
    line: Option<usize>,
    best: Best,
}

impl Windows {
    fn new(length: usize, apart: usize) -> Self {
        let best = Best::new(WINDOWS_KEPT, apart);
        Self { scores: vec![0; length], running: 0, line: None, best }
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
            self.best.add(score, start);
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

    fn best(mut self) -> Vec<(u64, usize)> {
        let end = self.line.map_or(0, |line| line + 1);
        let length = self.scores.len();
        for line in end.max(length)..end + length {
            // Windows that reach beyond the last line count too.
            if line - length < end {
                self.close(line);
            }
        }
        self.best.kept
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
