//! Which lines of a place belong to which of the string's.

use super::wanted::{Position, Wanted};

/// How far the lines of a place may be moved against the string's by lines that only one of the two
/// has.
pub(super) const SLACK: usize = 8;

/// What a line costs that only the text has, between lines of the string, and one that only the string
/// has: a place without such lines is the better one, unless more than a bracket stands against it.
const ONLY_IN_TEXT: f64 = 4.0;
const ONLY_IN_STRING: f64 = 2.0;

/// A pair of lines: (the string's, the text's).
pub(super) type Pair = (Option<usize>, Option<usize>);

/// The lines of a place, paired with the string's.
pub(super) struct Alignment {
    pub(super) pairs: Vec<Pair>,
    /// How much alike the two are, from 0 to 1.
    pub(super) likeness: f64,
}

/// Pairs the string's lines with a place's, of which the first would be `start` (it may lie before the
/// place's own first, by no more than [`SLACK`]). `keys` are the place's lines, folded. The place's
/// lines before the first of the string's and behind the last are left out.
pub(super) fn align(wanted: &Wanted<'_>, keys: &[String], start: isize) -> Alignment {
    let count = wanted.folded.len();
    let width = 2 * SLACK + 1;
    let own: Vec<Line<'_>> = wanted.folded.iter().map(|line| Line::of(line)).collect();
    let theirs: Vec<Line<'_>> = keys.iter().map(|line| Line::of(line)).collect();
    // The text's line at the string's line `index` and `shift`.
    let line_at = |index: usize, shift: usize| {
        let line = start + isize::try_from(index + shift).ok()? - SLACK as isize;
        usize::try_from(line).ok().filter(|line| *line < theirs.len())
    };
    let mut best = vec![vec![(f64::MIN, Step::Start); width]; count + 1];
    for index in 0..=count {
        for shift in 0..width {
            let mut here = if index == 0 { (0.0, Step::Start) } else { (f64::MIN, Step::Start) };
            let mut take = |score: f64, step: Step| {
                if score > here.0 {
                    here = (score, step);
                }
            };
            if let Some(before) = index.checked_sub(1) {
                if let Some(line) = line_at(before, shift) {
                    let alike = own[before].likeness(&theirs[line], wanted.position(before));
                    take(best[before][shift].0 + alike * wanted.weight(before) as f64, Step::Both);
                }
                if shift + 1 < width {
                    take(best[before][shift + 1].0 - ONLY_IN_STRING, Step::OnlyInString);
                }
            }
            if index > 0 && index < count && shift > 0 && line_at(index, shift - 1).is_some() {
                take(best[index][shift - 1].0 - ONLY_IN_TEXT, Step::OnlyInText);
            }
            best[index][shift] = here;
        }
    }
    let (mut index, mut shift) = (count, 0);
    for other in 0..width {
        if best[count][other].0 > best[count][shift].0 {
            shift = other;
        }
    }
    let likeness = best[count][shift].0 / wanted.total_weight() as f64;
    let mut pairs = Vec::new();
    while index > 0 {
        match best[index][shift].1 {
            Step::Both => {
                index -= 1;
                pairs.push((Some(index), line_at(index, shift)));
            }
            Step::OnlyInString => {
                index -= 1;
                shift += 1;
                pairs.push((Some(index), None));
            }
            Step::OnlyInText => {
                shift -= 1;
                pairs.push((None, line_at(index, shift)));
            }
            Step::Start => break,
        }
    }
    pairs.reverse();
    Alignment { pairs, likeness }
}

/// How a pairing got to where it is.
#[derive(Clone, Copy)]
enum Step {
    Start,
    Both,
    OnlyInString,
    OnlyInText,
}

/// A folded line and its pairs of letters, in order.
struct Line<'a> {
    text: &'a str,
    pairs: Vec<u16>,
}

impl<'a> Line<'a> {
    fn of(text: &'a str) -> Self {
        /// Enough to tell lines apart.
        const MOST: usize = 512;
        let bytes = &text.as_bytes()[..text.len().min(MOST)];
        let mut pairs: Vec<u16> = match bytes {
            [only] => vec![u16::from(*only)],
            _ => bytes.windows(2).map(|two| u16::from_be_bytes([two[0], two[1]])).collect(),
        };
        pairs.sort_unstable();
        Self { text, pairs }
    }

    /// How much this line of the string is like a line of the text, from 0 to 1.
    fn likeness(&self, line: &Self, position: Position) -> f64 {
        if self.text == line.text {
            return 1.0;
        }
        if self.text.is_empty() || line.text.is_empty() {
            return 0.0;
        }
        if position != Position::Whole && position.holds(line.text, self.text) {
            return 0.98;
        }
        let common = self.common(line) as f64;
        let (own, theirs) = (self.pairs.len() as f64, line.pairs.len() as f64);
        let both = 2.0 * common / (own + theirs);
        match position {
            Position::Whole => both,
            _ => both.max(0.9 * common / own),
        }
    }

    fn common(&self, other: &Self) -> usize {
        let (mut here, mut there, mut common) = (0, 0, 0);
        while let (Some(a), Some(b)) = (self.pairs.get(here), other.pairs.get(there)) {
            common += usize::from(a == b);
            here += usize::from(a <= b);
            there += usize::from(a >= b);
        }
        common
    }
}
