//! Text without effect on a terminal: control characters are spelled out.

use std::borrow::Cow;

/// Text for the inside of a sentence: it stays on its line.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    spelled_out(text, char::is_control)
}

/// Text of several lines: LF and tab stay.
pub(crate) fn lines(text: &str) -> Cow<'_, str> {
    spelled_out(text, |c| c.is_control() && !matches!(c, '\n' | '\t'))
}

fn spelled_out(text: &str, is_spelled_out: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_spelled_out) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_spelled_out(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_spelled_out() {
        assert_eq!(one_line("a\nb\x1b[2J\u{9b}c"), "a\\nb\\u{1b}[2J\\u{9b}c");
        assert_eq!(lines("two\nlines\x07"), "two\nlines\\u{7}");
        assert!(matches!(one_line("src/größe 漢.rs"), Cow::Borrowed(_)));
    }
}
