//! Where a string stands in a text, byte for byte.
//!
//! There is one licence, because a reader shows lines and not their endings: an LF in the needle
//! matches CR LF as well as LF. A needle that spells CR LF out (or ends in CR) means its bytes and
//! gets no licence. A match covers a line ending wholly or not at all where the LF is licensed: a
//! needle that begins with LF begins at the CR.

use std::ops::{ControlFlow, Range};

use memchr::memmem;

use super::encoding::{Encoding, Unencodable};
use super::lines::Unit;

/// A string to look for, encoded as the text is.
#[derive(Clone, Debug)]
pub struct Needle {
    bytes: Vec<u8>,
    encoding: Encoding,
    unit: Unit,
    endings: LfMatch,
}

/// What an LF of a needle matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LfMatch {
    /// Itself only.
    Exact,
    /// LF and CR LF.
    Either,
}

/// How matches that overlap are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlaps {
    /// Each occurrence of the needle: what decides whether a match is the only one.
    Counted,
    /// From left to right, each match beginning behind the one before: what gets replaced.
    Skipped,
}

impl Needle {
    /// A needle for texts in `encoding`.
    ///
    /// # Errors
    /// [`Unencodable`] where the encoding has no bytes for it, so that it stands nowhere.
    pub fn new(text: &str, encoding: Encoding) -> Result<Self, Unencodable> {
        let spelled_out = text.contains("\r\n") || text.ends_with('\r');
        let endings = if spelled_out { LfMatch::Exact } else { LfMatch::Either };
        let bytes = encoding.encode(text)?;
        Ok(Self { bytes, encoding, unit: Unit::of(encoding), endings })
    }

    /// What its LFs match.
    #[must_use]
    pub fn endings(&self) -> LfMatch {
        self.endings
    }

    /// Visits every match in `text`, from left to right, until `visit` breaks. An empty needle
    /// matches nowhere.
    ///
    /// The cost is linear in the text, plus the needle's length for each match.
    pub fn each<V>(&self, text: &[u8], overlaps: Overlaps, mut visit: V)
    where
        V: FnMut(Range<usize>) -> ControlFlow<()>,
    {
        if self.bytes.is_empty() {
            return;
        }
        let licensed = self.endings == LfMatch::Either
            && self.unit.find_lf(&self.bytes, 0).is_some()
            && memchr::memchr(b'\r', text).is_some();
        let mut characters = Characters::of(self.encoding);
        let mut visit = |found: Range<usize>| {
            let begins_well = characters.as_mut().is_none_or(|c| c.begins_at(text, found.start));
            if begins_well {
                visit(found).map_continue(|()| Taken::Yes)
            } else {
                ControlFlow::Continue(Taken::No)
            }
        };
        if licensed || self.unit != Unit::Byte {
            let endings = if licensed { LfMatch::Either } else { LfMatch::Exact };
            self.each_by_unit(text, overlaps, endings, &mut visit);
        } else {
            self.each_by_byte(text, overlaps, &mut visit);
        }
    }

    /// All matches, at most `limit` of them.
    #[must_use]
    pub fn find(&self, text: &[u8], overlaps: Overlaps, limit: usize) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        self.each(text, overlaps, |range| {
            found.push(range);
            if found.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        found
    }

    fn each_by_byte(&self, text: &[u8], overlaps: Overlaps, visit: &mut Visit<'_>) {
        let finder = memmem::Finder::new(&self.bytes);
        let mut from = 0;
        while let Some(at) = finder.find(&text[from..]) {
            let start = from + at;
            let end = start + self.bytes.len();
            let ControlFlow::Continue(taken) = visit(start..end) else { return };
            from = match (overlaps, taken) {
                (Overlaps::Skipped, Taken::Yes) => end,
                _ => start + 1,
            };
        }
    }

    /// Knuth-Morris-Pratt over code units, a CR LF taken for one LF where `endings` says so.
    /// Linear whatever the text and the needle are; only the stretch between the first and the
    /// last place where the needle's longest line stands is looked at.
    fn each_by_unit(
        &self,
        text: &[u8],
        overlaps: Overlaps,
        endings: LfMatch,
        visit: &mut Visit<'_>,
    ) {
        let width = self.unit.width();
        let needle: Vec<u16> = (0..self.bytes.len())
            .step_by(width)
            .filter_map(|at| self.unit.at(&self.bytes, at))
            .collect();
        let Some(stretch) = self.stretch(text) else { return };
        let borders = borders(&needle);
        let mut matched = 0;
        let mut at = stretch.start;
        while at < stretch.end {
            let Some(mut value) = self.unit.at(text, at) else { return };
            at += width;
            if endings == LfMatch::Either && value == CR && self.unit.at(text, at) == Some(LF) {
                value = LF;
                at += width;
            }
            while matched > 0 && needle[matched] != value {
                matched = borders[matched - 1];
            }
            if needle[matched] == value {
                matched += 1;
            }
            if matched == needle.len() {
                let start = self.start_of_match(text, at, &needle, endings);
                let ControlFlow::Continue(taken) = visit(start..at) else { return };
                matched = match (overlaps, taken) {
                    (Overlaps::Skipped, Taken::Yes) => 0,
                    _ => borders[matched - 1],
                };
            }
        }
    }

    /// Where all matches lie, if there can be any.
    fn stretch(&self, text: &[u8]) -> Option<Range<usize>> {
        let lines = self.unit.segments(&self.bytes);
        let longest = lines.max_by_key(Range::len).unwrap_or(0..0);
        let longest = &self.bytes[longest];
        if longest.is_empty() {
            return Some(0..text.len());
        }
        let first = memmem::find(text, longest)?;
        let last = memmem::rfind(text, longest)?;
        // A licensed LF may be twice as long in the text as in the needle.
        let reach = self.bytes.len() * 2;
        let width = self.unit.width();
        let mut start = first.saturating_sub(reach);
        start -= start % width;
        // Not in the middle of a CR LF.
        if start >= width && self.unit.at(text, start - width) == Some(CR) {
            start -= width;
        }
        Some(start..(last + reach + width).min(text.len()))
    }

    fn start_of_match(&self, text: &[u8], end: usize, needle: &[u16], endings: LfMatch) -> usize {
        let width = self.unit.width();
        let mut start = end;
        for value in needle.iter().rev() {
            start -= width;
            let after_cr = start >= width && self.unit.at(text, start - width) == Some(CR);
            if endings == LfMatch::Either && *value == LF && after_cr {
                start -= width;
            }
        }
        start
    }
}

type Visit<'v> = dyn FnMut(Range<usize>) -> ControlFlow<(), Taken> + 'v;

/// Whether a candidate counted as a match.
#[derive(Clone, Copy)]
enum Taken {
    Yes,
    No,
}

const CR: u16 = b'\r' as u16;
const LF: u16 = b'\n' as u16;

/// For each prefix of the needle the length of the longest shorter prefix that it ends in.
fn borders(needle: &[u16]) -> Vec<usize> {
    let mut borders = vec![0; needle.len()];
    let mut length = 0;
    for at in 1..needle.len() {
        while length > 0 && needle[at] != needle[length] {
            length = borders[length - 1];
        }
        if needle[at] == needle[length] {
            length += 1;
        }
        borders[at] = length;
    }
    borders
}

/// Finds where characters begin in an encoding whose trail bytes can look like characters of their
/// own, such as Shift_JIS and GBK. Asked from left to right, it reads the text once.
struct Characters {
    encoding: &'static encoding_rs::Encoding,
    decoder: encoding_rs::Decoder,
    read: usize,
}

impl Characters {
    /// None for an encoding in which a match always begins on a character.
    fn of(encoding: Encoding) -> Option<Self> {
        match encoding {
            Encoding::Legacy(encoding) if !encoding.is_single_byte() => Some(Self {
                encoding,
                decoder: encoding.new_decoder_without_bom_handling(),
                read: 0,
            }),
            _ => None,
        }
    }

    fn begins_at(&mut self, text: &[u8], at: usize) -> bool {
        // LF is never a trail byte, and no encoding here keeps state from line to line.
        if let Some(lf) = memchr::memrchr(b'\n', &text[self.read..at]) {
            self.read += lf + 1;
            self.decoder = self.encoding.new_decoder_without_bom_handling();
        }
        let mut scratch = [0_u8; 1024];
        while self.read < at {
            let (_, read, ..) =
                self.decoder.decode_to_utf8(&text[self.read..at], &mut scratch, false);
            self.read += read;
        }
        // Answers none while the decoder waits for a trail byte.
        self.decoder.latin1_byte_compatible_up_to(b"").is_some()
    }
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "a list of one match is meant")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn needle(text: &str) -> Needle {
        Needle::new(text, Encoding::Utf8).unwrap()
    }

    fn wide(text: &str) -> Needle {
        Needle::new(text, Encoding::Utf16Le).unwrap()
    }

    fn utf16(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    fn found(text: &[u8], wanted: &str, overlaps: Overlaps) -> Vec<Range<usize>> {
        needle(wanted).find(text, overlaps, usize::MAX)
    }

    #[test]
    fn overlapping_matches_are_counted_and_replaced_from_the_left() {
        assert_eq!(found(b"aaaa", "aa", Overlaps::Counted), [0..2, 1..3, 2..4]);
        assert_eq!(found(b"aaaa", "aa", Overlaps::Skipped), [0..2, 2..4]);
        assert_eq!(found(b"\r\n\r\n\r\n", "\n\n", Overlaps::Counted), [0..4, 2..6]);
    }

    #[test]
    fn a_line_feed_matches_both_endings_and_covers_them_wholly() {
        assert_eq!(found(b"a\r\nb\nc", "a\nb\nc", Overlaps::Counted), [0..6]);
        assert_eq!(found(b"x\r\n10\r\ny", "\n10\n", Overlaps::Counted), [1..7]);
        assert_eq!(found(b"a\nb a\r\nb", "a\nb", Overlaps::Counted), [0..3, 4..8]);
        assert_eq!(found(b"a\r\r\nb", "a\nb", Overlaps::Counted), [0..0; 0]);
        assert_eq!(found(b"a\r\r\nb", "a\r\nb", Overlaps::Counted), [0..0; 0]);
    }

    #[test]
    fn a_needle_that_spells_its_endings_means_them() {
        assert_eq!(found(b"a\r\nb", "a\r\nb", Overlaps::Counted), [0..4]);
        assert_eq!(found(b"a\nb", "a\r\nb", Overlaps::Counted), [0..0; 0]);
        assert_eq!(found(b"a\r\nb\r\n", "\r", Overlaps::Counted), [1..2, 4..5]);
        assert_eq!(found(b"three\rtwo\r\none", "three\rtwo\none", Overlaps::Counted), [0..14]);
    }

    #[test]
    fn a_match_in_utf16_is_aligned() {
        // U+6100 U+6200 holds the bytes of "ab" at an odd offset.
        let text: Vec<u8> =
            [0x6100_u16, 0x6200, 0x0061, 0x0062].iter().flat_map(|u| u.to_le_bytes()).collect();
        assert_eq!(wide("ab").find(&text, Overlaps::Counted, 9), [4..8]);
        let text = utf16("x\r\nend\r\n");
        assert_eq!(wide("\nend\n").find(&text, Overlaps::Counted, 9), [2..16]);
    }

    #[test]
    fn a_match_in_a_double_byte_encoding_begins_on_a_character() {
        // In Shift_JIS U+8868 is 95 5C, and 5C alone is a backslash.
        let text = b"\x95\x5C \x5C";
        assert_eq!(needle("\\").find(text, Overlaps::Counted, 9), [1..2, 3..4]);
        let aware = Needle::new("\\", Encoding::Legacy(encoding_rs::SHIFT_JIS)).unwrap();
        assert_eq!(aware.find(text, Overlaps::Counted, 9), [3..4]);
        assert_eq!(aware.find(text, Overlaps::Skipped, 9), [3..4]);
    }

    /// The rule in its plainest form: try every place, unit by unit.
    fn naive(text: &[u8], wanted: &str) -> Vec<Range<usize>> {
        let wanted = wanted.as_bytes();
        let exact = wanted.windows(2).any(|pair| pair == b"\r\n") || wanted.ends_with(b"\r");
        let starts = (0..text.len()).filter(|at| {
            // A licensed match does not begin inside a CR LF.
            let inside = *at > 0 && text[at - 1] == b'\r' && text[*at] == b'\n';
            exact || !wanted.contains(&b'\n') || !inside
        });
        let matches = starts.filter_map(|start| {
            let mut at = start;
            for byte in wanted {
                if *byte == b'\n' && !exact && text[at..].starts_with(b"\r\n") {
                    at += 2;
                } else if text.get(at) == Some(byte) && (exact || !splits(text, at, wanted)) {
                    at += 1;
                } else {
                    return None;
                }
            }
            Some(start..at)
        });
        matches.collect()
    }

    /// Whether taking the CR at `at` alone would split a line ending.
    fn splits(text: &[u8], at: usize, wanted: &[u8]) -> bool {
        wanted.contains(&b'\n') && text[at..].starts_with(b"\r\n")
    }

    proptest! {
        #[test]
        fn matching_is_what_trying_every_place_finds(
            text in "[ab\r\n]{0,30}",
            wanted in "[ab\r\n]{1,5}",
        ) {
            prop_assert_eq!(
                found(text.as_bytes(), &wanted, Overlaps::Counted),
                naive(text.as_bytes(), &wanted)
            );
            let doubled: Vec<_> =
                naive(text.as_bytes(), &wanted).iter().map(|r| r.start * 2..r.end * 2).collect();
            prop_assert_eq!(wide(&wanted).find(&utf16(&text), Overlaps::Counted, usize::MAX), doubled);
        }
    }

    #[test]
    fn hostile_repetition_is_linear() {
        let text = vec![b'a'; 2_000_000];
        let wanted = "a".repeat(500_000);
        let mut seen = 0;
        needle(&wanted).each(&text, Overlaps::Counted, |_| {
            seen += 1;
            if seen < 1000 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        assert_eq!(seen, 1000);
        let miss = format!("{wanted}b\n");
        let mut text = text;
        text.extend_from_slice(b"\r\n");
        assert_eq!(needle(&miss).find(&text, Overlaps::Counted, 9), [0..0; 0]);
    }
}
