//! What cannot be seen, or changes how other text is seen, made visible.

use std::borrow::Cow;
use std::fmt::Write as _;

pub(super) use workspace_fs::text::hidden::is_hidden;

/// Text for the inside of a sentence: whatever it holds, it stays on its line and steers no terminal.
/// A path is told by [`name::shown`](workspace_fs::text::name::shown) instead, which can be given back.
pub(super) fn one_line(text: &str) -> Cow<'_, str> {
    spelt_out(text, |c| matches!(c, '\n' | '\t') || is_hidden(c))
}

/// Lines of text in which everything can be seen.
pub(super) fn visible(text: &str) -> Cow<'_, str> {
    spelt_out(text, is_hidden)
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
