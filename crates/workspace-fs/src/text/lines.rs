//! Lines in raw bytes, whatever the width of the encoding's code unit.
//!
//! A line ends at LF (U+000A), alone or after CR; nothing else ends a line. In UTF-16 an LF is a
//! whole unit at an even offset, so slices that are handed in must begin at an even offset of
//! their file.

use std::ops::Range;

use memchr::{memchr, memchr_iter, memrchr, memrchr_iter};

use super::encoding::Encoding;

/// The code unit of an encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// One byte: UTF-8 and every legacy encoding here.
    Byte,
    /// Two bytes, low byte first.
    Le16,
    /// Two bytes, high byte first.
    Be16,
}

/// How a line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineEnding {
    /// LF.
    Lf,
    /// CR LF.
    CrLf,
}

/// The line endings of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LineEndings {
    /// No line ends.
    #[default]
    None,
    /// All end with LF.
    Lf,
    /// All end with CR LF.
    Crlf,
    /// Some with LF, some with CR LF.
    Mixed,
}

impl LineEnding {
    /// The ending as text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            LineEnding::Lf => "\n",
            LineEnding::CrLf => "\r\n",
        }
    }
}

impl Unit {
    /// The unit of an encoding.
    #[must_use]
    pub const fn of(encoding: Encoding) -> Self {
        match encoding {
            Encoding::Utf8 | Encoding::Utf8Bom | Encoding::Legacy(_) => Unit::Byte,
            Encoding::Utf16Le => Unit::Le16,
            Encoding::Utf16Be => Unit::Be16,
        }
    }

    /// Bytes a unit.
    #[must_use]
    pub const fn width(self) -> usize {
        match self {
            Unit::Byte => 1,
            Unit::Le16 | Unit::Be16 => 2,
        }
    }

    /// An LF in this unit.
    #[must_use]
    pub const fn lf(self) -> &'static [u8] {
        match self {
            Unit::Byte => b"\n",
            Unit::Le16 => b"\n\0",
            Unit::Be16 => b"\0\n",
        }
    }

    const fn cr(self) -> &'static [u8] {
        match self {
            Unit::Byte => b"\r",
            Unit::Le16 => b"\r\0",
            Unit::Be16 => b"\0\r",
        }
    }

    /// The value of the unit at `at`, or none at the end (also where half a unit is left).
    #[must_use]
    pub fn at(self, bytes: &[u8], at: usize) -> Option<u16> {
        match self {
            Unit::Byte => bytes.get(at).map(|byte| u16::from(*byte)),
            Unit::Le16 => Some(u16::from_le_bytes([*bytes.get(at)?, *bytes.get(at + 1)?])),
            Unit::Be16 => Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?])),
        }
    }

    /// Where the first LF at or after `from` begins.
    #[must_use]
    pub fn find_lf(self, bytes: &[u8], from: usize) -> Option<usize> {
        let tail = bytes.get(from..)?;
        match self {
            Unit::Byte => memchr(b'\n', tail).map(|at| from + at),
            _ => memchr_iter(b'\n', tail).find_map(|at| self.lf_of_byte(bytes, from + at)),
        }
    }

    /// Where the last LF that ends at or before `to` begins.
    #[must_use]
    pub fn rfind_lf(self, bytes: &[u8], to: usize) -> Option<usize> {
        let head = &bytes[..to.min(bytes.len())];
        match self {
            Unit::Byte => memrchr(b'\n', head),
            _ => memrchr_iter(b'\n', head).find_map(|at| self.lf_of_byte(head, at)),
        }
    }

    /// Where the bytes behind LF number `count` (at least 1) begin.
    #[must_use]
    pub fn behind_lf(self, bytes: &[u8], count: u64) -> Option<usize> {
        let index = usize::try_from(count).ok()?.checked_sub(1)?;
        let mut candidates = memchr_iter(b'\n', bytes);
        let at = match self {
            Unit::Byte => candidates.nth(index),
            _ => candidates.filter_map(|at| self.lf_of_byte(bytes, at)).nth(index),
        };
        at.map(|at| at + self.width())
    }

    /// Whether the last unit is an LF.
    #[must_use]
    pub fn ends_in_lf(self, bytes: &[u8]) -> bool {
        bytes.ends_with(self.lf()) && bytes.len().is_multiple_of(self.width())
    }

    /// The length of `line` without the CR at its end.
    #[must_use]
    pub fn without_cr(self, line: &[u8]) -> usize {
        line.len() - if line.ends_with(self.cr()) { self.width() } else { 0 }
    }

    /// Where the line that holds the offset `at` begins.
    #[must_use]
    pub fn line_start(self, bytes: &[u8], at: usize) -> usize {
        self.rfind_lf(bytes, at).map_or(0, |lf| lf + self.width())
    }

    /// Where the line that holds the offset `at` ends: at its LF, or at the end of the bytes.
    #[must_use]
    pub fn line_end(self, bytes: &[u8], at: usize) -> usize {
        self.find_lf(bytes, at).unwrap_or(bytes.len())
    }

    /// The number of LFs.
    #[must_use]
    pub fn count_lf(self, bytes: &[u8]) -> usize {
        match self {
            Unit::Byte => memchr_iter(b'\n', bytes).count(),
            _ => {
                memchr_iter(b'\n', bytes).filter(|at| self.lf_of_byte(bytes, *at).is_some()).count()
            }
        }
    }

    /// The kind of the line ending whose LF begins at `lf`.
    #[must_use]
    pub fn ending_at(self, bytes: &[u8], lf: usize) -> LineEnding {
        if bytes[..lf].ends_with(self.cr()) && lf.is_multiple_of(self.width()) {
            LineEnding::CrLf
        } else {
            LineEnding::Lf
        }
    }

    /// The segments between LFs; one more than there are LFs, so a text that ends in LF (or is
    /// empty) has an empty last one. Joined by LFs they are the bytes again.
    #[must_use]
    pub fn segments(self, bytes: &[u8]) -> Segments<'_> {
        Segments { unit: self, bytes, next: Some(0) }
    }

    /// The LF unit that the LF byte at `at` belongs to, if it is one.
    fn lf_of_byte(self, bytes: &[u8], at: usize) -> Option<usize> {
        match self {
            Unit::Byte => Some(at),
            Unit::Le16 => (at.is_multiple_of(2) && bytes.get(at + 1) == Some(&0)).then_some(at),
            Unit::Be16 => (!at.is_multiple_of(2) && bytes[at - 1] == 0).then(|| at - 1),
        }
    }
}

/// The ranges of the segments between LFs.
#[derive(Clone, Debug)]
pub struct Segments<'a> {
    unit: Unit,
    bytes: &'a [u8],
    next: Option<usize>,
}

impl Iterator for Segments<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let start = self.next?;
        let lf = self.unit.find_lf(self.bytes, start);
        self.next = lf.map(|lf| lf + self.unit.width());
        Some(start..lf.unwrap_or(self.bytes.len()))
    }
}

impl LineEndings {
    /// The name to show: `none`, `lf`, `crlf` or `mixed`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            LineEndings::None => "none",
            LineEndings::Lf => "lf",
            LineEndings::Crlf => "crlf",
            LineEndings::Mixed => "mixed",
        }
    }

    /// Takes one more line's ending into account.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (LineEndings::None, any) | (any, LineEndings::None) => any,
            (one, two) if one == two => one,
            _ => LineEndings::Mixed,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_feed_in_utf16_is_a_whole_aligned_unit() {
        // U+0A00, U+000A, U+0A0A, U+0A00 U+000A: LF bytes everywhere, two LFs.
        let units = [0x0A00_u16, 0x000A, 0x0A0A, 0x0A00, 0x000A];
        for unit in [Unit::Le16, Unit::Be16] {
            let bytes: Vec<u8> = units
                .iter()
                .flat_map(|u| if unit == Unit::Le16 { u.to_le_bytes() } else { u.to_be_bytes() })
                .collect();
            assert_eq!(unit.count_lf(&bytes), 2);
            assert_eq!(unit.find_lf(&bytes, 0), Some(2));
            assert_eq!(unit.find_lf(&bytes, 4), Some(8));
            assert_eq!(unit.rfind_lf(&bytes, 8), Some(2));
            assert_eq!(unit.rfind_lf(&bytes, 10), Some(8));
            assert_eq!(unit.segments(&bytes).collect::<Vec<_>>(), [0..2, 4..8, 10..10]);
        }
    }

    #[test]
    fn endings_are_distinguished() {
        let text = b"a\r\nb\n\r\n";
        let lfs: Vec<_> =
            memchr_iter(b'\n', text).map(|lf| Unit::Byte.ending_at(text, lf)).collect();
        assert_eq!(lfs, [LineEnding::CrLf, LineEnding::Lf, LineEnding::CrLf]);
        assert_eq!(Unit::Byte.line_start(text, 3), 3);
        assert_eq!(Unit::Byte.line_start(text, 2), 0);
        assert_eq!(Unit::Byte.line_end(text, 3), 4);
    }

    proptest! {
        #[test]
        fn line_feeds_are_those_of_the_text(text in "[a\u{0A00}\u{000A}\u{0D0A}\r\n]{0,40}") {
            for encoding in [Encoding::Utf8, Encoding::Utf16Le, Encoding::Utf16Be] {
                let unit = Unit::of(encoding);
                let bytes = encoding.encode(&text).unwrap();
                let before = |end: usize| encoding.encode(&text[..end]).unwrap().len();
                prop_assert_eq!(unit.count_lf(&bytes), text.matches('\n').count());
                prop_assert_eq!(unit.find_lf(&bytes, 0), text.find('\n').map(before));
                prop_assert_eq!(unit.rfind_lf(&bytes, bytes.len()), text.rfind('\n').map(before));
                prop_assert_eq!(unit.ends_in_lf(&bytes), text.ends_with('\n'));
                let second = text.match_indices('\n').nth(1).map(|(at, _)| before(at + 1));
                prop_assert_eq!(unit.behind_lf(&bytes, 2), second);
                let stripped = text.strip_suffix('\r').unwrap_or(&text);
                prop_assert_eq!(unit.without_cr(&bytes), before(stripped.len()));
            }
        }
    }

    #[test]
    fn endings_add_up() {
        use LineEndings::{Crlf, Lf, Mixed, None};
        assert_eq!([Lf, Lf, None].into_iter().fold(None, LineEndings::and), Lf);
        assert_eq!([Lf, Crlf, Lf].into_iter().fold(None, LineEndings::and), Mixed);
        assert_eq!(None.and(Crlf).name(), "crlf");
    }
}
