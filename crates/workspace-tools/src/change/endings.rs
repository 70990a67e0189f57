//! What a change does to a file's line endings: a diff shows lines, and two that differ in their ending
//! only look the same.

use workspace_fs::text::lines::{LineEnding, LineEndings, Unit};
use workspace_fs::text::patch::Patch;

/// How many lines of a text end in which way.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Endings {
    lf: Lines,
    crlf: Lines,
}

/// Lines that end alike.
#[derive(Debug, Default, PartialEq)]
struct Lines {
    count: usize,
    /// 1-based; 0 where there is none.
    first: usize,
}

impl Endings {
    /// Those of a text in pieces, none of which begins within a code unit.
    pub(crate) fn of<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, unit: Unit) -> Self {
        let mut endings = Self::default();
        let (mut number, mut is_behind_cr) = (0, false);
        for piece in pieces.into_iter().filter(|piece| !piece.is_empty()) {
            let mut from = 0;
            while let Some(lf) = unit.find_lf(piece, from) {
                number += 1;
                let is_crlf = match lf {
                    0 => is_behind_cr,
                    _ => unit.ending_at(piece, lf) == LineEnding::CrLf,
                };
                let lines = if is_crlf { &mut endings.crlf } else { &mut endings.lf };
                lines.count += 1;
                if lines.count == 1 {
                    lines.first = number;
                }
                from = lf + unit.width();
            }
            is_behind_cr = unit.without_cr(piece) < piece.len();
        }
        endings
    }

    fn kind(&self) -> LineEndings {
        match (self.lf.count, self.crlf.count) {
            (0, 0) => LineEndings::None,
            (_, 0) => LineEndings::Lf,
            (0, _) => LineEndings::Crlf,
            _ => LineEndings::Mixed,
        }
    }

    /// What is to be said where these were the endings, and `now` are.
    pub(crate) fn notice(&self, now: &Self) -> Option<String> {
        use LineEndings::{Crlf, Lf, Mixed, None as NoEnding};
        let other = |was: &str, lines: &Lines, is: &str| match lines {
            Lines { count: 1, first } => {
                format!("Line endings were {was}; line {first} ends in {is} now.")
            }
            Lines { count, first } => format!(
                "Line endings were {was}; {count} lines end in {is} now, the first of them line \
                 {first}."
            ),
        };
        let moved = |from: &str, less: usize, to: &str, more: usize| {
            format!("The lines that end in {from} are {less} fewer now, those in {to} {more} more.")
        };
        Some(match (self.kind(), now.kind()) {
            (Crlf, Lf) => "Line endings were CR LF; they are LF now.".to_owned(),
            (Lf, Crlf) => "Line endings were LF; they are CR LF now.".to_owned(),
            (Mixed, Lf) => "Line endings were mixed; they are LF now.".to_owned(),
            (Mixed, Crlf) => "Line endings were mixed; they are CR LF now.".to_owned(),
            (NoEnding, Mixed) => "Line endings are mixed now.".to_owned(),
            (Lf, Mixed) => other("LF", &now.crlf, "CR LF"),
            (Crlf, Mixed) => other("CR LF", &now.lf, "LF"),
            (Mixed, Mixed) => {
                let (lf, crlf) = (self.lf.count, self.crlf.count);
                let (lf_now, crlf_now) = (now.lf.count, now.crlf.count);
                if lf_now < lf && crlf < crlf_now {
                    moved("LF", lf - lf_now, "CR LF", crlf_now - crlf)
                } else if crlf_now < crlf && lf < lf_now {
                    moved("CR LF", crlf - crlf_now, "LF", lf_now - lf)
                } else {
                    return None;
                }
            }
            (_, NoEnding) | (NoEnding, _) | (Lf, Lf) | (Crlf, Crlf) => return None,
        })
    }
}

/// What is to be said of the endings of a text that `patch` changes. Most changes have no CR in them,
/// and then nothing has to be counted.
pub(crate) fn notice(text: &[u8], patch: &Patch<'_>, unit: Unit) -> Option<String> {
    let holds_cr = |bytes: &[u8]| bytes.contains(&b'\r');
    let mut changes = patch.changes().iter();
    if !changes.any(|change| holds_cr(&change.text) || holds_cr(&text[change.old.clone()])) {
        return None;
    }
    Endings::of([text], unit).notice(&Endings::of(patch.segments(text), unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_becomes_of_the_endings_is_said() {
        let said = |was: &str, is: &str| {
            let (was, is) = (Endings::of([was.as_bytes()], Unit::Byte), is.as_bytes());
            was.notice(&Endings::of([is], Unit::Byte)).unwrap_or_default()
        };
        let mixed = "a\nb\nc\r\nd\r\n";
        for (was, is, notice) in [
            ("a\nb\n", "a\r\nb\r\n", "Line endings were LF; they are CR LF now."),
            ("a\r\nb\r\n", "a\n", "Line endings were CR LF; they are LF now."),
            ("a\nb\n", "a\nb\r\n", "Line endings were LF; line 2 ends in CR LF now."),
            ("a\r\nb\r\n", "a\nb\r\n", "Line endings were CR LF; line 1 ends in LF now."),
            (
                "a\nb\n",
                "a\nx\r\ny\r\n",
                "Line endings were LF; 2 lines end in CR LF now, the first of them line 2.",
            ),
            (mixed, "a\nb\n", "Line endings were mixed; they are LF now."),
            (mixed, "c\r\n", "Line endings were mixed; they are CR LF now."),
            ("a", "a\r\nb\n", "Line endings are mixed now."),
            (
                mixed,
                "a\nb\r\nc\r\nd\r\n",
                "The lines that end in LF are 1 fewer now, those in CR LF 1 more.",
            ),
            (
                mixed,
                "a\nb\nc\nd\r\n",
                "The lines that end in CR LF are 1 fewer now, those in LF 1 more.",
            ),
            (mixed, "a\nb\nnew\r\nc\r\nd\r\n", ""),
            (mixed, "", ""),
            ("a\n", "a\nb\n", ""),
            ("a\r\n", "a\r\nb\r\n", ""),
            ("a", "a\r\n", ""),
            ("a\n", "", ""),
        ] {
            assert_eq!(said(was, is), notice, "{was:?} {is:?}");
        }
    }

    #[test]
    fn an_ending_may_lie_in_two_pieces() {
        let whole = Endings::of([&b"a\r\nb\nc\r\n"[..]], Unit::Byte);
        let pieces: [&[u8]; 5] = [b"a\r", b"", b"\nb", b"\nc\r", b"\n"];
        assert_eq!(Endings::of(pieces, Unit::Byte), whole);
        let pieces: [&[u8]; 2] = [b"a\0\r\0", b"\n\0b\0\n\0\x0d\x0d\n\0"];
        let wide = Endings::of(pieces, Unit::Le16);
        assert_eq!((wide.crlf.count, wide.lf.count), (1, 2));
    }
}
