//! The lines of a text that are most similar to a string: of the places that a coarse measure finds,
//! the one that a close look finds most alike.

use std::borrow::Cow;

use crate::text::cut::beginning;
use crate::text::encoding::Encoding;
use crate::text::lines::Unit;

use super::align::{Pair, SLACK, align};
use super::candidates::candidates;
use super::fold::{Kind, fold, unfold};
use super::piece::nearest_part;
use super::wanted::{MAX_LINE_BYTES, Position, Wanted};
use super::{COMPARED_BYTES, Difference, Likeness, Region, blanks, visible};

/// How many differing lines are shown.
const SHOWN: usize = 5;

/// How much alike a place of several lines has to be, from 0 to 1.
const ALIKE: f64 = 0.35;

/// The most similar lines, if any are similar.
pub(super) fn find(text: &[u8], encoding: Encoding, wanted: &str) -> Option<Region> {
    let text = &text[..text.len().min(COMPARED_BYTES)];
    let wanted = Wanted::new(wanted)?;
    let mut best: Option<(f64, Place)> = None;
    for start in candidates(text, encoding, &wanted, SLACK) {
        let place = Place::at(start, text, encoding, &wanted);
        let is_better = best.as_ref().is_none_or(|(likeness, _)| place.likeness > *likeness);
        if is_better && place.is_near(&wanted) {
            best = Some((place.likeness, place));
        }
    }
    best.map(|(_, place)| place.region(&wanted))
}

/// Lines of the text, and which of them belong to which of the string's.
struct Place {
    /// The number of the first one, from 0.
    first: usize,
    lines: Vec<String>,
    pairs: Vec<Pair>,
    /// How much alike they are, from 0 to 1.
    likeness: f64,
}

impl Place {
    /// The place where the string would begin at the line `start`, from 0.
    fn at(start: usize, text: &[u8], encoding: Encoding, wanted: &Wanted<'_>) -> Self {
        let count = wanted.lines.len();
        let slack = if count > 1 { SLACK } else { 0 };
        let first = start.saturating_sub(slack);
        let lines: Vec<String> = Unit::of(encoding)
            .segments(text)
            .skip(first)
            .take(start - first + count + slack)
            .map(|range| {
                let line = encoding.decode(&text[range]);
                line.strip_suffix('\r').unwrap_or(&line).to_owned()
            })
            .collect();
        let keys: Vec<String> = lines.iter().map(|line| fold(line, &Kind::ALL)).collect();
        let (pairs, likeness) = match (&*wanted.folded, &*keys) {
            ([piece], [line]) => {
                let likeness = likeness(line, piece, wanted.position(0));
                (vec![(Some(0), Some(0))], likeness)
            }
            _ => {
                let shift = isize::try_from(start - first).unwrap_or(0);
                let alignment = align(wanted, &keys, shift);
                (alignment.pairs, alignment.likeness)
            }
        };
        Self { first, lines, pairs, likeness }
    }

    /// Whether it is worth showing.
    fn is_near(&self, wanted: &Wanted<'_>) -> bool {
        let [piece] = &*wanted.folded else { return self.likeness >= ALIKE };
        // Of a few letters in any line some are the same by chance.
        let enough = if piece.len() < 24 { 0.6 } else { 0.5 };
        let common = self.likeness * piece.len() as f64;
        self.likeness >= 1.0 || (self.likeness >= enough && common >= 3.5)
    }

    /// What the lines have in common with the string.
    fn region(&self, wanted: &Wanted<'_>) -> Region {
        let first = self.pairs.iter().find_map(|(_, line)| *line).unwrap_or(0);
        let first_line = self.first + 1 + first;
        let mut found = Region {
            first_line,
            last_line: first_line,
            matching: 0,
            of: wanted.lines.len(),
            differ_in: Likeness::Only(Vec::new()),
            blanks: None,
            differences: Vec::new(),
            more: 0,
        };
        for (own, line) in &self.pairs {
            let line = line.map(|line| (self.first + 1 + line, &*self.lines[line]));
            found.compare(wanted, *own, line);
        }
        found
    }
}

/// How much of a piece stands in a line, from 0 to 1.
fn likeness(line: &str, piece: &str, position: Position) -> f64 {
    if position.holds(line, piece) {
        return 1.0;
    }
    let distance = nearest_part(line, piece).map_or(piece.len(), |part| part.distance);
    // Where all of it stands there, but not at the line's end or start, that is the difference.
    (1.0 - distance as f64 / piece.len() as f64).min(0.99)
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
                let file = facing_part(file, own, position, kinds.is_some());
                let in_blanks = kinds.as_ref().is_some_and(|k| k.contains(&Kind::Whitespace));
                if self.blanks.is_none() && in_blanks {
                    self.blanks = blanks::difference(line, &file, own);
                }
                let shown = visible::pair(&file, own, &kinds_shown(&file, own, kinds.as_deref()));
                self.differ_in.widen(kinds);
                Difference::Changed { line, file: shown.0, wanted: shown.1 }
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

/// What is made visible of two lines: blanks only where they are at fault.
fn kinds_shown(file: &str, wanted: &str, kinds: Option<&[Kind]>) -> Vec<Kind> {
    if let Some(kinds) = kinds {
        return kinds.to_vec();
    }
    let edges = |text: &str| {
        let (head, tail) = (text.trim_start().len(), text.trim_end().len());
        (text[..text.len() - head].to_owned(), text[tail..].to_owned())
    };
    if edges(file) == edges(wanted) { Vec::new() } else { vec![Kind::Whitespace] }
}

/// The part of the text's line that a line of the string stands against: that line may be a piece. It
/// reaches from blank to blank, as far as these are near, and marks where it was cut. `is_folded` says
/// that the two are the same, folded.
fn facing_part<'f>(
    file: &'f str,
    wanted: &str,
    position: Position,
    is_folded: bool,
) -> Cow<'f, str> {
    let (folded, piece) = (fold(file, &Kind::ALL), fold(wanted, &Kind::ALL));
    let (start, end) = match position {
        Position::Whole => (0, folded.len()),
        Position::AtStart if is_folded => (0, piece.len()),
        Position::AtEnd if is_folded => (folded.len() - piece.len(), folded.len()),
        Position::Inside if is_folded => {
            folded.find(&piece).map_or((0, folded.len()), |at| (at, at + piece.len()))
        }
        _ => nearest_part(&folded, &piece).map_or((0, folded.len()), |part| (part.start, part.end)),
    };
    let start = match position {
        Position::Whole | Position::AtStart => 0,
        Position::AtEnd | Position::Inside => left_edge(file, unfold(file, start), wanted),
    };
    let end = match position {
        Position::Whole | Position::AtEnd => file.len(),
        Position::AtStart | Position::Inside => right_edge(file, unfold(file, end), wanted),
    };
    let part = beginning(&file[start..end.max(start)], MAX_LINE_BYTES);
    let is_cut = |edge: Option<char>| edge.is_some_and(|c| !c.is_whitespace());
    let before = if is_cut(file[..start].chars().next_back()) { "…" } else { "" };
    let behind = if is_cut(file[start + part.len()..].chars().next()) { "…" } else { "" };
    match (before, behind) {
        ("", "") => Cow::Borrowed(part),
        _ => Cow::Owned(format!("{before}{part}{behind}")),
    }
}

/// How far a part is widened to a blank, and to the line's end, in bytes.
const MOST_WIDER: usize = 40;
const MOST_TO_END: usize = 80;

fn left_edge(file: &str, start: usize, wanted: &str) -> usize {
    // Blanks before the place are part of what may differ.
    if wanted.starts_with([' ', '\t']) {
        return file[..start].trim_end().len();
    }
    let word = file[..start].rfind(char::is_whitespace);
    let word = word.map_or(0, |at| at + file[at..].chars().next().map_or(1, char::len_utf8));
    if start - word <= MOST_WIDER { word } else { start }
}

fn right_edge(file: &str, end: usize, wanted: &str) -> usize {
    let rest = &file[end..];
    if wanted.ends_with([' ', '\t']) {
        return file.len() - rest.trim_start().len();
    }
    if rest.len() <= MOST_TO_END {
        return file.len();
    }
    let word = rest.find(char::is_whitespace).unwrap_or(rest.len());
    if word <= MOST_WIDER { end + word } else { end }
}
