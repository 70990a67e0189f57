//! Mistakes in a string that have a correction with which it is found exactly.

use crate::text::encoding::Encoding;
use crate::text::lines::Unit;
use crate::text::matching::{Needle, Overlaps};

use super::Found;

/// A mistake in a string to look for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slip {
    /// Its lines begin with the numbers that a reader shows.
    LineNumbers,
    /// It holds `\n`, `\t` or `\"` spelled out, where the file has the characters.
    Escaped,
    /// It holds line breaks, tabs or quotes, where the file spells them `\n`, `\t`, `\"`.
    Unescaped,
    /// It holds `&lt;`, `&gt;`, `&amp;` or `&quot;`, where the file has the characters.
    HtmlEscaped,
    /// It spells CR LF out, where the file has LF.
    CrLf,
    /// The file separates these lines by CR alone.
    LoneCr,
    /// It ends in a line break, where the file ends without one.
    LastNewline,
    /// It begins or ends in blanks that the file lacks.
    Blanks,
}

impl Slip {
    /// All but blanks, in the order in which they are tried.
    pub(super) const REPORTED: [Slip; 7] = [
        Slip::CrLf,
        Slip::LineNumbers,
        Slip::Escaped,
        Slip::HtmlEscaped,
        Slip::Unescaped,
        Slip::LoneCr,
        Slip::LastNewline,
    ];

    /// What to do so that the string is found; a sentence goes on behind it.
    #[must_use]
    pub const fn correction(self) -> &'static str {
        match self {
            Slip::LineNumbers => {
                "Without the line numbers at the start of its lines (read_file shows them, the file \
                 does not hold them)"
            }
            Slip::Escaped => {
                "With \\n, \\t and \\\" turned into the characters that they stand for"
            }
            Slip::Unescaped => "With line breaks, tabs and quotes written as \\n, \\t and \\\"",
            Slip::HtmlEscaped => "With &lt;, &gt;, &amp; and &quot; turned into <, >, & and \"",
            Slip::CrLf => "With LF in place of CR LF (the file has LF there)",
            Slip::LoneCr => "With CR in place of LF (the file has lone CRs there)",
            Slip::LastNewline => "Without the line break at its end (the file has none there)",
            Slip::Blanks => "Without the blank characters at its start and end",
        }
    }

    /// The string without this mistake, where it seems to have it: in each way to take it.
    fn correct(self, wanted: &str) -> Vec<String> {
        let corrected = match self {
            Slip::LineNumbers => without_line_numbers(wanted),
            Slip::Escaped => vec![replace_all(wanted, &ESCAPES, Direction::Back)],
            Slip::Unescaped => vec![replace_all(wanted, &ESCAPES, Direction::Forth)],
            Slip::HtmlEscaped => vec![replace_all(wanted, &HTML, Direction::Back)],
            Slip::CrLf => vec![wanted.replace("\r\n", "\n")],
            Slip::LoneCr => vec![wanted.replace('\n', "\r")],
            Slip::LastNewline => {
                let line = wanted.strip_suffix('\n').unwrap_or(wanted);
                vec![line.strip_suffix('\r').unwrap_or(line).to_owned()]
            }
            Slip::Blanks => vec![wanted.trim().to_owned()],
        };
        corrected.into_iter().filter(|text| text != wanted && !text.is_empty()).collect()
    }
}

/// The first of `slips` whose correction is found.
pub(super) fn find(text: &[u8], encoding: Encoding, wanted: &str, slips: &[Slip]) -> Option<Found> {
    const SHOWN: usize = 3;
    if wanted.len() > text.len().saturating_mul(4) {
        return None;
    }
    let corrected = slips
        .iter()
        .flat_map(|&slip| slip.correct(wanted).into_iter().map(move |corrected| (slip, corrected)));
    corrected.into_iter().find_map(|(slip, corrected)| {
        let needle = Needle::new(&corrected, encoding).ok()?;
        let mut found = needle.find(text, Overlaps::Skipped, SHOWN);
        if slip == Slip::LastNewline {
            // Elsewhere the line goes on, which is better shown.
            found.retain(|found| found.end == text.len());
        }
        let unit = Unit::of(encoding);
        let lines: Vec<_> =
            found.iter().map(|found| unit.count_lf(&text[..found.start]) + 1).collect();
        (!lines.is_empty()).then_some(Found { slip, lines })
    })
}

/// Every line without its number, where every line that is not empty has one. As `read_file` and grep
/// show them, with a colon or, around a hit, a hyphen behind; and as others do.
fn without_line_numbers(wanted: &str) -> Vec<String> {
    const SEPARATORS: [&[&str]; 8] =
        [&[":"], &[":", "-"], &["\t"], &["\u{2192}"], &[" | "], &["| "], &["|"], &[": "]];
    let stripped = SEPARATORS.iter().filter_map(|separators| {
        let lines = wanted.split('\n').map(|line| {
            let digits = line.trim_start_matches(' ');
            let digits = digits.strip_prefix('-').unwrap_or(digits);
            let rest = digits.trim_start_matches(|c: char| c.is_ascii_digit());
            if line.is_empty() {
                Some(line)
            } else if rest.len() < digits.len() {
                separators.iter().find_map(|separator| rest.strip_prefix(separator))
            } else {
                None
            }
        });
        let lines: Vec<&str> = lines.collect::<Option<_>>()?;
        let stripped = lines.join("\n");
        (!stripped.trim().is_empty()).then_some(stripped)
    });
    stripped.collect()
}

const ESCAPES: [(&str, &str); 3] = [("\n", "\\n"), ("\t", "\\t"), ("\"", "\\\"")];
const HTML: [(&str, &str); 4] = [("<", "&lt;"), (">", "&gt;"), ("\"", "&quot;"), ("&", "&amp;")];

#[derive(Clone, Copy)]
enum Direction {
    /// From the character to its spelling.
    Forth,
    /// From the spelling to the character.
    Back,
}

fn replace_all(text: &str, pairs: &[(&str, &str)], direction: Direction) -> String {
    pairs.iter().fold(text.to_owned(), |text, (plain, spelled)| match direction {
        Direction::Forth => text.replace(plain, spelled),
        Direction::Back => text.replace(spelled, plain),
    })
}
