//! Which line endings a replacement gets.
//!
//! A caller writes LF, as it was shown; a replaced line keeps the ending that it had, and an
//! inserted one takes that of its neighbour. A CR LF that the caller wrote is left as it is, and so
//! are the LFs of a replacement that is the old text with other endings: then these are the point.

use std::borrow::Cow;
use std::ops::Range;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

use super::encoding::{Encoding, Unencodable};
use super::lines::{LineEnding, Unit};
use super::matching::LfMatch;

/// How long lines may be paired up in a match whose endings are mixed; then they are paired in order.
const PAIRING_TIME: Duration = Duration::from_millis(50);

/// What a match is replaced by, with the line endings of the place where it stands.
#[derive(Debug)]
pub struct Replacement<'a> {
    old: &'a str,
    new: &'a str,
    encoding: Encoding,
    unit: Unit,
    with_lf: Vec<u8>,
    /// Only where the LFs of `new` are to follow the text.
    with_crlf: Option<Vec<u8>>,
    neighbour: Neighbour,
}

/// The ending of the line that was asked for last, and up to where it holds.
#[derive(Debug, Default)]
struct Neighbour {
    line_end: usize,
    ending: Option<LineEnding>,
}

impl<'a> Replacement<'a> {
    /// `new` instead of `old`; `endings` is what the LFs of `old` match.
    ///
    /// # Errors
    /// [`Unencodable`] where the encoding has no bytes for `new`.
    pub fn new(
        old: &'a str,
        new: &'a str,
        endings: LfMatch,
        encoding: Encoding,
    ) -> Result<Self, Unencodable> {
        let with_lf = encoding.encode(new)?;
        let follows = has_bare_lf(new)
            && (endings == LfMatch::Either || (old.contains("\r\n") && !converts(old, new)));
        let with_crlf = if follows {
            Some(encoding.encode(&with_endings(new, |_| LineEnding::CrLf))?)
        } else {
            None
        };
        let unit = Unit::of(encoding);
        Ok(Self { old, new, encoding, unit, with_lf, with_crlf, neighbour: Neighbour::default() })
    }

    /// The bytes that replace `found` in `text`. To be asked from left to right.
    ///
    /// # Errors
    /// [`Unencodable`] never happens for a text that [`Replacement::new`] took.
    pub fn at(&mut self, text: &[u8], found: &Range<usize>) -> Result<Cow<'_, [u8]>, Unencodable> {
        let Some(with_crlf) = &self.with_crlf else { return Ok(Cow::Borrowed(&self.with_lf)) };
        let inside = endings_in(self.unit, text, found);
        let uniform = match inside.first() {
            None => self.neighbour.ending(self.unit, text, found),
            Some(first) if inside.iter().all(|ending| ending == first) => *first,
            Some(_) => {
                let paired = paired_endings(self.old, self.new, &inside);
                let text = with_endings(self.new, |line| paired[line]);
                return self.encoding.encode(&text).map(Cow::Owned);
            }
        };
        Ok(Cow::Borrowed(match uniform {
            LineEnding::Lf => &self.with_lf,
            LineEnding::CrLf => with_crlf,
        }))
    }
}

impl Neighbour {
    /// How the line ends that holds `found`; the last line of a text that lacks an ending goes by
    /// the line before.
    fn ending(&mut self, unit: Unit, text: &[u8], found: &Range<usize>) -> LineEnding {
        match self.ending {
            Some(known) if found.end <= self.line_end => known,
            _ => {
                let next = unit.find_lf(text, found.end);
                self.line_end = next.unwrap_or(text.len());
                let lf = next.or_else(|| unit.rfind_lf(text, found.start));
                let ending = lf.map_or(LineEnding::Lf, |lf| unit.ending_at(text, lf));
                self.ending = Some(ending);
                ending
            }
        }
    }
}

fn endings_in(unit: Unit, text: &[u8], range: &Range<usize>) -> Vec<LineEnding> {
    let text = &text[..range.end];
    let mut from = range.start;
    std::iter::from_fn(|| {
        let lf = unit.find_lf(text, from)?;
        from = lf + unit.width();
        Some(unit.ending_at(text, lf))
    })
    .collect()
}

/// An ending for each LF of `new`: a line that both have keeps its own, a changed line takes that of
/// the line in its place, a line more takes that of the line before it.
fn paired_endings(old: &str, new: &str, endings: &[LineEnding]) -> Vec<LineEnding> {
    let (old, new): (Vec<&str>, Vec<&str>) = (lines(old), lines(new));
    let deadline = Instant::now() + PAIRING_TIME;
    let mut paired: Vec<Option<LineEnding>> = vec![None; new.len()];
    for op in capture_diff_slices_deadline(Algorithm::Myers, &old, &new, Some(deadline)) {
        let (old, new) = match op {
            DiffOp::Equal { .. } | DiffOp::Replace { .. } => (op.old_range(), op.new_range()),
            DiffOp::Delete { .. } | DiffOp::Insert { .. } => continue,
        };
        for (old, new) in old.zip(new) {
            paired[new] = endings.get(old).copied();
        }
    }
    let mut before = endings.first().copied().unwrap_or(LineEnding::Lf);
    let filled = paired.into_iter().map(|own| {
        before = own.unwrap_or(before);
        before
    });
    filled.collect()
}

fn lines(text: &str) -> Vec<&str> {
    text.split('\n').collect()
}

/// Whether the two differ in their line endings and in nothing else.
fn converts(old: &str, new: &str) -> bool {
    old.replace("\r\n", "\n") == new.replace("\r\n", "\n")
}

fn has_bare_lf(text: &str) -> bool {
    memchr::memchr_iter(b'\n', text.as_bytes()).any(|lf| !text[..lf].ends_with('\r'))
}

/// `text` with the n-th of its LFs turned into the given ending, those of a CR LF left alone.
fn with_endings(text: &str, ending: impl Fn(usize) -> LineEnding) -> String {
    let mut adapted = String::with_capacity(text.len() + text.len() / 16);
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            let spelled_out = adapted.ends_with('\r');
            adapted.push_str(if spelled_out { "\n" } else { ending(number - 1).as_str() });
        }
        adapted.push_str(line);
    }
    adapted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(text: &str, old: &str, new: &str, found: Range<usize>) -> String {
        let endings = if old.contains("\r\n") { LfMatch::Exact } else { LfMatch::Either };
        let mut replacement = Replacement::new(old, new, endings, Encoding::Utf8).unwrap();
        let bytes = replacement.at(text.as_bytes(), &found).unwrap();
        String::from_utf8(bytes.into_owned()).unwrap()
    }

    #[test]
    fn lines_take_the_ending_of_what_they_replace() {
        let text = "if (a) {\r\n\treturn 1;\r\n}\r\n";
        let old = "if (a) {\n\treturn 1;";
        let new = "if (a) {\n\treturn 2;\n\tlog();";
        assert_eq!(replaced(text, old, new, 0..20), "if (a) {\r\n\treturn 2;\r\n\tlog();");
    }

    #[test]
    fn a_match_inside_a_line_goes_by_that_line() {
        let text = "one\r\ntwo\nthree";
        assert_eq!(replaced(text, "one", "1\n2", 0..3), "1\r\n2");
        assert_eq!(replaced(text, "two", "1\n2", 5..8), "1\n2");
        assert_eq!(replaced(text, "three", "1\n2", 9..14), "1\n2");
        assert_eq!(replaced("a\r\nlast", "last", "1\n2", 3..7), "1\r\n2");
        assert_eq!(replaced("alone", "alone", "1\n2", 0..5), "1\n2");
    }

    #[test]
    fn mixed_endings_stay_with_their_lines() {
        let text = "a\r\nb\nc\r\n";
        assert_eq!(replaced(text, "a\nb\nc\n", "a\nX\nb\nc\n", 0..8), "a\r\nX\r\nb\nc\r\n");
        assert_eq!(replaced(text, "a\nb\nc\n", "a\nB\nc\n", 0..8), "a\r\nB\nc\r\n");
        assert_eq!(replaced(text, "a\nb\nc\n", "b\nc\n", 0..8), "b\nc\r\n");
    }

    #[test]
    fn endings_that_the_caller_spells_out_are_left_alone() {
        assert_eq!(replaced("a\r\nb", "a\r\nb", "a\nb", 0..4), "a\nb");
        assert_eq!(replaced("a\nb\n", "a", "x\r\ny", 0..1), "x\r\ny");
    }

    #[test]
    fn a_text_found_by_its_own_endings_keeps_them() {
        assert_eq!(replaced("a\r\nb\r\n", "a\r\nb", "x\ny\r\nz", 0..4), "x\r\ny\r\nz");
        assert_eq!(replaced("a\r\nb\nc\r\n", "a\r\nb\n", "x\ny\n", 0..5), "x\r\ny\n");
    }
}
