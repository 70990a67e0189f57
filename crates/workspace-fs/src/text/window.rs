//! A window of lines, collected while a file's bytes are read.
//!
//! Memory is bounded whatever comes: the window holds at most [`MAX_CONTENT`] bytes and of a long
//! line no more than what is shown of it.

use std::borrow::Cow;
use std::fmt::Write;

use super::encoding::Encoding;
use super::lines::{LineEndings, Unit};

/// The most that a window shows, in bytes of UTF-8.
pub const MAX_CONTENT: usize = 64 * 1024;

/// The most that a window shows of one line, in characters.
pub const MAX_LINE: usize = 2000;

/// What is kept of a line, in bytes. No encoding spends more than four on a character.
const MAX_KEPT: usize = 4 * MAX_LINE + 8;

/// How the mark of a cut begins. What is shown of the line, in characters, follows.
const CUT: &str = "… [cut: ";

/// How the lines of a window are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbering {
    /// Not at all.
    Off,
    /// Each line starts with its number and a colon.
    On,
}

/// Collects the lines of a window.
#[derive(Debug)]
pub struct Collector {
    encoding: Encoding,
    unit: Unit,
    numbering: Numbering,
    first: i64,
    limit: u64,
    line: Line,
    window: Window,
}

/// What was collected.
#[derive(Debug, Default)]
pub struct Window {
    /// The lines, decoded and each ended by LF, except a last one that has no end in the file.
    pub content: String,
    /// How many lines that is.
    pub lines: u64,
    /// Where in the content lines were cut because they are too long: each of these begins a mark
    /// that says so.
    pub cuts: Vec<usize>,
    /// How their ends are written in the file.
    pub ending: LineEndings,
    /// Whether bytes that are not text in the encoding are shown as U+FFFD.
    pub has_invalid_bytes: bool,
    /// Why the window holds no more; absent where the bytes ended first.
    pub full: Option<Full>,
}

/// Why a window is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// It has as many lines as were asked for.
    Lines,
    /// Its content is as long as it may be; the next line did not fit.
    Content,
}

impl Window {
    /// Shortens each line that was cut, from what is shown of it to what `keep` returns of that, its
    /// beginning.
    pub fn shorten_cuts(&mut self, keep: impl Fn(&str) -> &str) {
        for at in self.cuts.iter_mut().rev() {
            let line = self.content[..*at].rfind('\n').map_or(0, |end| end + 1);
            let shown = &self.content[line..*at];
            let kept = keep(shown).len();
            let left = MAX_LINE - shown[kept..].chars().count().min(MAX_LINE);
            let mark = *at..*at + format!("{CUT}{MAX_LINE}").len();
            self.content.replace_range(line + kept..mark.end, &format!("{CUT}{left}"));
            *at = line + kept;
        }
    }
}

/// The line that is being collected.
#[derive(Debug, Default)]
struct Line {
    kept: Vec<u8>,
    /// All of it, in bytes, without its line feed.
    bytes: u64,
    /// What is not kept of it, in characters.
    beyond: u64,
    ends_in_cr: bool,
}

impl Collector {
    /// A window of at most `limit` lines; the first has the number `first`.
    #[must_use]
    pub fn new(encoding: Encoding, numbering: Numbering, first: i64, limit: u64) -> Self {
        Self {
            encoding,
            unit: Unit::of(encoding),
            numbering,
            first,
            limit,
            line: Line::default(),
            window: Window::default(),
        }
    }

    /// Takes the next bytes, which start at a whole unit, until the window is full. Returns how many
    /// it took.
    pub fn push(&mut self, bytes: &[u8]) -> usize {
        let mut taken = 0;
        while self.window.full.is_none() && taken < bytes.len() {
            let rest = &bytes[taken..];
            let Some(end) = self.unit.find_lf(rest, 0) else {
                self.line.take(rest, self.encoding, self.unit);
                return bytes.len();
            };
            self.line.take(&rest[..end], self.encoding, self.unit);
            taken += end + self.unit.width();
            let ending = if self.line.ends_in_cr { LineEndings::Crlf } else { LineEndings::Lf };
            self.end_line(ending);
        }
        taken
    }

    /// Whether the window takes no more.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.window.full.is_some()
    }

    /// The window, after the file's last bytes or when it is full.
    #[must_use]
    pub fn finish(mut self) -> Window {
        if self.window.full.is_none() && self.line.bytes > 0 {
            self.end_line(LineEndings::None);
            if self.window.full == Some(Full::Lines) {
                self.window.full = None;
            }
        }
        self.window
    }

    fn end_line(&mut self, ending: LineEndings) {
        let kept = self.window.content.len();
        if self.numbering == Numbering::On {
            push_number(
                &mut self.window.content,
                self.first.saturating_add_unsigned(self.window.lines),
            );
        }
        let shown = self.line.show(self.encoding, self.unit, ending, &mut self.window.content);
        if ending != LineEndings::None {
            self.window.content.push('\n');
        }
        if self.window.content.len() > MAX_CONTENT && kept > 0 {
            self.window.content.truncate(kept);
            self.window.full = Some(Full::Content);
            return;
        }
        self.window.lines += 1;
        self.window.cuts.extend(shown.cut);
        self.window.has_invalid_bytes |= shown.has_invalid_bytes;
        self.window.ending = self.window.ending.and(ending);
        self.line.clear();
        if self.window.lines == self.limit {
            self.window.full = Some(Full::Lines);
        }
    }
}

/// The number and a colon, as grep prints them. (`write!` would take half the time of a whole call.)
fn push_number(content: &mut String, number: i64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = number.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
        if rest == 0 || at == 0 {
            break;
        }
    }
    if number < 0 {
        content.push('-');
    }
    content.extend(digits[at..].iter().map(|byte| char::from(*byte)));
    content.push(':');
}

struct Shown {
    /// Where in the content the line was cut.
    cut: Option<usize>,
    has_invalid_bytes: bool,
}

impl Line {
    fn take(&mut self, bytes: &[u8], encoding: Encoding, unit: Unit) {
        if bytes.is_empty() {
            return;
        }
        let capacity = MAX_KEPT - self.kept.len();
        let (kept, beyond) = bytes.split_at(bytes.len().min(capacity));
        self.kept.extend_from_slice(kept);
        self.bytes += bytes.len() as u64;
        self.beyond += characters(beyond, encoding);
        self.ends_in_cr = unit.without_cr(bytes) < bytes.len();
    }

    fn show(
        &self,
        encoding: Encoding,
        unit: Unit,
        ending: LineEndings,
        content: &mut String,
    ) -> Shown {
        let is_whole = self.kept.len() as u64 == self.bytes;
        let length = match ending {
            LineEndings::Crlf if is_whole => unit.without_cr(&self.kept),
            _ => self.kept.len(),
        };
        let text = encoding.decode(&self.kept[..length]);
        let may_be_long = text.len() > MAX_LINE;
        let end =
            may_be_long.then(|| text.char_indices().nth(MAX_LINE)).flatten().map(|(at, _)| at);
        let shown = &text[..end.unwrap_or(text.len())];
        content.push_str(shown);
        let cut = end.map(|_| content.len());
        if cut.is_some() {
            let all = characters(&self.kept, encoding) + self.beyond;
            let length = all - u64::from(ending == LineEndings::Crlf);
            let unit = if counts_bytes(encoding) { "bytes" } else { "characters" };
            let _ = write!(content, "{CUT}{MAX_LINE} characters of a line of {length} {unit}]");
        }
        // Text that could be borrowed had nothing to replace: a U+FFFD in it is the file's own.
        let has_invalid_bytes = matches!(text, Cow::Owned(_)) && shown.contains('\u{FFFD}');
        Shown { cut, has_invalid_bytes }
    }

    fn clear(&mut self) {
        self.kept.clear();
        self.bytes = 0;
        self.beyond = 0;
        self.ends_in_cr = false;
    }
}

/// How many characters start in `bytes`, wherever these were cut; in a multi-byte legacy encoding,
/// where only decoding from the line's start would show it, how many bytes there are.
fn characters(bytes: &[u8], encoding: Encoding) -> u64 {
    let count = match encoding {
        Encoding::Utf8 | Encoding::Utf8Bom => {
            // In runs so short that bytes can count: that is what makes it fast.
            let starts =
                |run: &[u8]| run.iter().map(|byte| u8::from(byte & 0xC0 != 0x80)).sum::<u8>();
            bytes.chunks(192).map(|run| usize::from(starts(run))).sum()
        }
        Encoding::Utf16Le | Encoding::Utf16Be => {
            let high = usize::from(encoding == Encoding::Utf16Le);
            let units = bytes.chunks(2).filter(|unit| !matches!(unit.get(high), Some(0xDC..=0xDF)));
            units.count()
        }
        Encoding::Legacy(_) => bytes.len(),
    };
    count as u64
}

fn counts_bytes(encoding: Encoding) -> bool {
    matches!(encoding, Encoding::Legacy(legacy) if !legacy.is_single_byte())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn collect(bytes: &[u8], encoding: Encoding, limit: u64, piece: usize) -> Window {
        let mut collector = Collector::new(encoding, Numbering::Off, 1, limit);
        for piece in bytes.chunks(piece) {
            collector.push(piece);
        }
        collector.finish()
    }

    #[test]
    fn lines_are_numbered_and_end_as_they_do_in_the_file() {
        let mut collector = Collector::new(Encoding::Utf8, Numbering::On, 9, 2);
        collector.push(b"nine\r\nten\neleven");
        assert!(collector.is_full());
        let window = collector.finish();
        assert_eq!(window.content, "9:nine\n10:ten\n");
        assert_eq!((window.lines, window.ending), (2, LineEndings::Mixed));
        let last = collect(b"no end", Encoding::Utf8, 1, 100);
        assert_eq!((&*last.content, last.ending, last.full), ("no end", LineEndings::None, None));
        let number = |number| {
            let mut content = String::new();
            push_number(&mut content, number);
            content
        };
        for sample in [0, -1, 7, 999_999, 1_000_000, i64::MAX, -123_456, i64::MIN] {
            assert_eq!(number(sample), format!("{sample}:"));
        }
    }

    #[test]
    fn a_lone_carriage_return_is_part_of_its_line() {
        let window = collect(b"a\rb\r", Encoding::Utf8, 9, 100);
        assert_eq!((&*window.content, window.lines), ("a\rb\r", 1));
        assert_eq!(collect(b"a\r\r\n", Encoding::Utf8, 9, 1).content, "a\r\n");
    }

    #[test]
    fn a_long_line_is_cut_between_characters_and_says_its_length() {
        for (text, encoding) in
            [("x", Encoding::Utf8), ("𝄞", Encoding::Utf8), ("𝄞", Encoding::Utf16Le)]
        {
            let line = format!("{}\r\nnext\n", text.repeat(5000));
            let bytes = encoding.encode(&line).unwrap();
            for piece in [2, 1000, 1 << 20] {
                let window = collect(&bytes, encoding, 9, piece);
                let cut = "… [cut: 2000 characters of a line of 5000 characters]";
                assert_eq!(window.content, format!("{}{cut}\nnext\n", text.repeat(2000)));
                assert_eq!((window.cuts.len(), window.ending), (1, LineEndings::Mixed));
            }
        }
        let exact = format!("{}\r\n", "é".repeat(MAX_LINE));
        assert!(collect(exact.as_bytes(), Encoding::Utf8, 9, 7).cuts.is_empty());
        let bad = [b"\xFF".repeat(3000), b"\n".to_vec()].concat();
        let window = collect(&bad, Encoding::Utf8, 9, 999);
        assert!(
            window.has_invalid_bytes && window.content.contains("of a line of 3000 characters]")
        );
    }

    #[test]
    fn a_line_that_was_cut_can_be_cut_further() {
        let text = format!("{}{}\nwhole\n{}", "a".repeat(1998), "b".repeat(99), "b".repeat(2001));
        let mut window = collect(text.as_bytes(), Encoding::Utf8, 9, 1000);
        window.shorten_cuts(|line| line.trim_end_matches('b'));
        let cut = |line: &str, length| {
            format!("{line}… [cut: {} characters of a line of {length} characters]", line.len())
        };
        let first = cut(&"a".repeat(1998), 2097);
        assert_eq!(window.content, format!("{first}\nwhole\n{}", cut("", 2001)));
        assert_eq!(window.cuts.len(), 2);
    }

    #[test]
    fn the_content_stops_before_the_line_that_does_not_fit() {
        let line = "y".repeat(999) + "\n";
        let window = collect(line.repeat(100).as_bytes(), Encoding::Utf8, 1000, 4096);
        assert_eq!((window.lines, window.full), (65, Some(Full::Content)));
        assert_eq!(window.content.len(), 65_000);
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(
            text in "[ab\u{E9}\u{1D11E}\u{0A0D}\r\n]{0,60}", limit in 1u64..8, piece in 1usize..20,
        ) {
            for encoding in [Encoding::Utf8, Encoding::Utf16Le, Encoding::Utf16Be] {
                let bytes = encoding.encode(&text).unwrap();
                let window = collect(&bytes, encoding, limit, piece * encoding.unit());
                let expected: String =
                    text.split_inclusive('\n').take(usize::try_from(limit).unwrap()).collect();
                prop_assert_eq!(&window.content, &expected.replace("\r\n", "\n"));
                prop_assert_eq!(window.lines, expected.split_inclusive('\n').count() as u64);
                prop_assert!(!window.has_invalid_bytes);
            }
        }
    }
}
