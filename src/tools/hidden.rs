//! What cannot be seen, or changes how other text is seen, made visible.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Text such as a file's name for the inside of a sentence: whatever it holds, it stays on its line
/// and steers no terminal.
pub(super) fn one_line(text: &str) -> Cow<'_, str> {
    spelt_out(text, |c| matches!(c, '\n' | '\t') || is_hidden(c))
}

/// A message of several lines without what would steer a terminal.
pub(super) fn without_controls(text: String) -> String {
    let steers = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    match spelt_out(&text, steers) {
        Cow::Owned(spelt_out) => spelt_out,
        Cow::Borrowed(_) => text,
    }
}

fn spelt_out(text: &str, is_spelt_out: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_spelt_out) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        // Writing to a string cannot fail.
        let _ = match c {
            c if !is_spelt_out(c) => write!(shown, "{c}"),
            '\n' | '\t' | '\r' => write!(shown, "{}", c.escape_default()),
            c if c.is_ascii() => write!(shown, "\\x{:02x}", u32::from(c)),
            c => write!(shown, "\\u{{{:x}}}", u32::from(c)),
        };
    }
    Cow::Owned(shown)
}

/// Whether a character cannot be seen, or changes how others are seen.
pub(super) fn is_hidden(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        // Soft hyphen, Arabic letter mark, Mongolian vowel separator.
        '\u{ad}' | '\u{61c}' | '\u{180e}' => true,
        // Zero-width characters, direction marks, separators, embeddings and overrides.
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        // Byte-order mark, interlinear annotations, tags.
        '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' => true,
        c => c.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_on_its_line_and_steers_nothing() {
        assert_eq!(one_line("a\nb\x1b[2Jc\u{202e}d\te"), "a\\nb\\x1b[2Jc\\u{202e}d\\te");
        assert!(matches!(one_line("src/größe 漢.rs"), Cow::Borrowed(_)));
        assert_eq!(without_controls("two\nlines\x07".to_owned()), "two\nlines\\x07");
    }
}
