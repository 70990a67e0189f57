//! A secret in a text that spells some of its characters out.
//!
//! Messages and previews write a character that would break a line, steer a terminal or stay unseen
//! as an escape, and do so before the text is masked. The ways to write one are a file name's
//! (`\033`), Rust's (`\u{1b}`, `\"`), which messages share, and those of a line shown beside
//! another (`<U+001B>`, `·`).

use std::fmt;
use std::ops::Range;

/// A value by its characters, for each of them the texts that may stand for it, the longest first.
pub(super) struct Spelt {
    chars: Vec<Vec<String>>,
}

impl Spelt {
    /// Nothing where the value is no text, or has no character that is ever spelt out.
    pub(super) fn of(value: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(value).ok()?;
        let chars: Vec<_> = text.chars().map(spellings).collect();
        chars.iter().any(|all| all.len() > 1).then_some(Self { chars })
    }

    /// The first place at or after `from` where the value stands, whatever of it is spelt out.
    pub(super) fn find(&self, text: &str, from: usize) -> Option<Range<usize>> {
        text[from..].char_indices().find_map(|(at, _)| {
            let start = from + at;
            self.length_at(&text[start..]).map(|length| start..start + length)
        })
    }

    /// How many bytes it takes at the beginning of `text`.
    fn length_at(&self, text: &str) -> Option<usize> {
        self.chars.iter().try_fold(0, |length, all| {
            let rest = &text[length..];
            let spelling = all.iter().find(|spelling| rest.starts_with(spelling.as_str()))?;
            Some(length + spelling.len())
        })
    }
}

impl fmt::Debug for Spelt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spelt").finish_non_exhaustive()
    }
}

fn spellings(c: char) -> Vec<String> {
    let code = u32::from(c);
    let mut all = vec![c.to_string()];
    if c.is_ascii_graphic() && !matches!(c, '"' | '\'' | '\\') {
        return all;
    }
    match c {
        // A line break is a space where a text is to stay on its line.
        '\n' | '\r' | '\t' => all.push(" ".to_owned()),
        ' ' => all.push("·".to_owned()),
        _ => {}
    }
    all.extend(match c {
        '\t' => Some("→".to_owned()),
        '\r' => Some("␍".to_owned()),
        '\x07' => Some("\\a".to_owned()),
        '\x08' => Some("\\b".to_owned()),
        '\x0b' => Some("\\v".to_owned()),
        '\x0c' => Some("\\f".to_owned()),
        _ => None,
    });
    if c != ' ' {
        all.push(c.to_string().bytes().map(|byte| format!("\\{byte:03o}")).collect());
        all.push(c.escape_default().to_string());
        all.push(format!("\\u{{{code:x}}}"));
        all.push(format!("<U+{code:04X}>"));
    }
    all.sort_by_key(|spelling| std::cmp::Reverse(spelling.len()));
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_however_it_is_spelt_out() {
        let value = "p\"\u{1b}w \u{202e}é\\";
        let spelt = Spelt::of(value.as_bytes()).unwrap();
        for text in [
            value.to_owned(),
            // As git quotes a name.
            "\"p\\\"\\033w \\342\\200\\256é\\\\x\"".to_owned(),
            format!("{value:?}"),
            value.escape_default().to_string(),
            "p\"\\u{1b}w \\u{202e}é\\".to_owned(),
            "p\"<U+001B>w·<U+202E>é\\".to_owned(),
        ] {
            let within = format!("é {text} {text}");
            let first = spelt.find(&within, 0).unwrap_or_else(|| panic!("{text}"));
            assert!(spelt.find(&within, first.end).is_some(), "{text}");
            assert!(spelt.find(text.trim_start_matches(['"', 'p']), 0).is_none(), "{text}");
        }
    }

    #[test]
    fn a_value_that_is_never_spelt_out_is_left_to_others() {
        assert!(Spelt::of(b"hunter2!").is_none());
        assert!(Spelt::of(b"hunter\xff2").is_none());
    }
}
