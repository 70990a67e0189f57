//! Where lines end: at LF, which CR may precede, and nowhere else; in bytes, for every encoding.

use super::encoding::Encoding;

/// Finds line feeds in a file's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineFeeds {
    /// One byte, 0A. It occurs in no character of UTF-8, nor of any legacy encoding.
    Byte,
    /// The unit 000A, low byte first.
    WideLittle,
    /// The unit 000A, high byte first.
    WideBig,
}

/// The line endings of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LineEnding {
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

impl LineFeeds {
    /// The line feeds of text in `encoding`.
    #[must_use]
    pub fn of(encoding: Encoding) -> Self {
        match encoding {
            Encoding::Utf16Le => LineFeeds::WideLittle,
            Encoding::Utf16Be => LineFeeds::WideBig,
            Encoding::Utf8 | Encoding::Utf8Bom | Encoding::Legacy(_) => LineFeeds::Byte,
        }
    }

    /// How many bytes a line feed has.
    #[must_use]
    pub fn width(self) -> usize {
        match self {
            LineFeeds::Byte => 1,
            LineFeeds::WideLittle | LineFeeds::WideBig => 2,
        }
    }

    /// The first byte of the first line feed in `bytes`, which start at a whole unit.
    #[must_use]
    pub fn first(self, bytes: &[u8]) -> Option<usize> {
        match self {
            LineFeeds::Byte => memchr::memchr(b'\n', bytes),
            _ => memchr::memchr_iter(b'\n', bytes).find_map(|at| self.unit_at(bytes, at)),
        }
    }

    /// The first byte of the last line feed in `bytes`, which start at a whole unit.
    #[must_use]
    pub fn last(self, bytes: &[u8]) -> Option<usize> {
        match self {
            LineFeeds::Byte => memchr::memrchr(b'\n', bytes),
            _ => memchr::memrchr_iter(b'\n', bytes).find_map(|at| self.unit_at(bytes, at)),
        }
    }

    /// How many line feeds `bytes` hold, which start at a whole unit.
    #[must_use]
    pub fn count(self, bytes: &[u8]) -> u64 {
        let count = match self {
            LineFeeds::Byte => memchr::memchr_iter(b'\n', bytes).count(),
            _ => {
                let candidates = memchr::memchr_iter(b'\n', bytes);
                candidates.filter(|at| self.unit_at(bytes, *at).is_some()).count()
            }
        };
        count as u64
    }

    /// Where the bytes after line feed number `count` (at least 1) begin.
    #[must_use]
    pub fn after(self, bytes: &[u8], count: u64) -> Option<usize> {
        let index = usize::try_from(count).ok()?.checked_sub(1)?;
        let mut candidates = memchr::memchr_iter(b'\n', bytes);
        let at = match self {
            LineFeeds::Byte => candidates.nth(index),
            _ => candidates.filter_map(|at| self.unit_at(bytes, at)).nth(index),
        };
        at.map(|at| at + self.width())
    }

    /// Whether `bytes`, which start at a whole unit, end with a line feed.
    #[must_use]
    pub fn end(self, bytes: &[u8]) -> bool {
        let feed: &[u8] = match self {
            LineFeeds::Byte => b"\n",
            LineFeeds::WideLittle => b"\n\0",
            LineFeeds::WideBig => b"\0\n",
        };
        bytes.ends_with(feed) && bytes.len().is_multiple_of(feed.len())
    }

    /// The length of `line` without the carriage return at its end.
    #[must_use]
    pub fn without_cr(self, line: &[u8]) -> usize {
        let cr: &[u8] = match self {
            LineFeeds::Byte => b"\r",
            LineFeeds::WideLittle => b"\r\0",
            LineFeeds::WideBig => b"\0\r",
        };
        line.len() - if line.ends_with(cr) { cr.len() } else { 0 }
    }

    /// The start of the unit whose 0A byte is at `at`, if that unit is a line feed.
    fn unit_at(self, bytes: &[u8], at: usize) -> Option<usize> {
        match self {
            LineFeeds::Byte => Some(at),
            LineFeeds::WideLittle => {
                (at.is_multiple_of(2) && bytes.get(at + 1) == Some(&0)).then_some(at)
            }
            LineFeeds::WideBig => {
                (!at.is_multiple_of(2) && bytes[at - 1] == 0).then_some(at.wrapping_sub(1))
            }
        }
    }
}

impl LineEnding {
    /// The name to show: `none`, `lf`, `crlf` or `mixed`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            LineEnding::None => "none",
            LineEnding::Lf => "lf",
            LineEnding::Crlf => "crlf",
            LineEnding::Mixed => "mixed",
        }
    }

    /// Takes one more line's ending into account.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (LineEnding::None, any) | (any, LineEnding::None) => any,
            (one, two) if one == two => one,
            _ => LineEnding::Mixed,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn line_feeds_are_those_of_the_text(text in "[a\u{0A00}\u{000A}\u{0D0A}\r\n]{0,40}") {
            for encoding in [Encoding::Utf8, Encoding::Utf16Le, Encoding::Utf16Be] {
                let feeds = LineFeeds::of(encoding);
                let bytes = encoding.encode(&text).unwrap();
                let before = |end: usize| encoding.encode(&text[..end]).unwrap().len();
                prop_assert_eq!(feeds.count(&bytes), text.matches('\n').count() as u64);
                prop_assert_eq!(feeds.first(&bytes), text.find('\n').map(before));
                prop_assert_eq!(feeds.last(&bytes), text.rfind('\n').map(before));
                prop_assert_eq!(feeds.end(&bytes), text.ends_with('\n'));
                let second = text.match_indices('\n').nth(1).map(|(at, _)| before(at + 1));
                prop_assert_eq!(feeds.after(&bytes, 2), second);
                let stripped = text.strip_suffix('\r').unwrap_or(&text);
                prop_assert_eq!(feeds.without_cr(&bytes), before(stripped.len()));
            }
        }
    }

    #[test]
    fn endings_add_up() {
        use LineEnding::{Crlf, Lf, Mixed, None};
        assert_eq!([Lf, Lf, None].into_iter().fold(None, LineEnding::and), Lf);
        assert_eq!([Lf, Crlf, Lf].into_iter().fold(None, LineEnding::and), Mixed);
        assert_eq!(None.and(Crlf).name(), "crlf");
    }
}
