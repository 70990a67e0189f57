//! Line ends in raw bytes, whatever the width of the encoding's code unit.
//!
//! A line ends at LF (U+000A), alone or after CR; nothing else ends a line. In UTF-16 an LF is a
//! whole unit at an even offset, so slices that are handed in must begin at an even offset of
//! their file.

use std::ops::Range;

use memchr::{memchr_iter, memrchr_iter};

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
pub enum Ending {
    /// LF.
    Lf,
    /// CR LF.
    CrLf,
}

impl Ending {
    /// The ending as text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Ending::Lf => "\n",
            Ending::CrLf => "\r\n",
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
        memchr_iter(b'\n', tail).find_map(|at| self.lf_of_byte(bytes, from + at))
    }

    /// Where the last LF that ends at or before `to` begins.
    #[must_use]
    pub fn rfind_lf(self, bytes: &[u8], to: usize) -> Option<usize> {
        let head = &bytes[..to.min(bytes.len())];
        memrchr_iter(b'\n', head).find_map(|at| self.lf_of_byte(head, at))
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
    pub fn ending_at(self, bytes: &[u8], lf: usize) -> Ending {
        if bytes[..lf].ends_with(self.cr()) && lf.is_multiple_of(self.width()) {
            Ending::CrLf
        } else {
            Ending::Lf
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

#[cfg(test)]
mod tests {
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
    fn endings_are_told_apart() {
        let text = b"a\r\nb\n\r\n";
        let lfs: Vec<_> =
            memchr_iter(b'\n', text).map(|lf| Unit::Byte.ending_at(text, lf)).collect();
        assert_eq!(lfs, [Ending::CrLf, Ending::Lf, Ending::CrLf]);
        assert_eq!(Unit::Byte.line_start(text, 3), 3);
        assert_eq!(Unit::Byte.line_start(text, 2), 0);
        assert_eq!(Unit::Byte.line_end(text, 3), 4);
    }
}
