//! Lines that fit a width, in columns of a terminal.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// How many columns a terminal moves on at a tab, at most.
const TAB: usize = 8;

/// How many columns a text takes.
pub(super) fn columns(text: &str) -> usize {
    text.width() + text.matches('\t').count() * TAB
}

/// The text in lines of at most `width` columns, broken between words where that is possible.
/// A line break of the text's own stays. There is at least one line.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    for line in text.split('\n') {
        wrap_line(line.trim_end_matches('\r'), width, &mut lines);
    }
    lines
}

fn wrap_line(line: &str, width: usize, lines: &mut Vec<String>) {
    if columns(line) <= width {
        lines.push(line.to_owned());
        return;
    }
    let mut current = String::new();
    let mut used = 0;
    for word in line.split_inclusive(' ') {
        let bare = columns(word.trim_end_matches(' '));
        if used > 0 && used + bare > width {
            lines.push(std::mem::take(&mut current).trim_end().to_owned());
            used = 0;
        }
        if bare > width {
            used = break_word(word, width, used, &mut current, lines);
        } else {
            current.push_str(word);
            used += columns(word);
        }
    }
    lines.push(current.trim_end().to_owned());
}

/// A word that fits no line, as many lines; returns what the last of them takes.
fn break_word(
    word: &str,
    width: usize,
    mut used: usize,
    current: &mut String,
    lines: &mut Vec<String>,
) -> usize {
    for character in word.chars() {
        let columns = if character == '\t' { TAB } else { character.width().unwrap_or(0) };
        if used + columns > width && used > 0 {
            lines.push(std::mem::take(current));
            used = 0;
        }
        current.push(character);
        used += columns;
    }
    used
}

/// The beginning of a text that takes at most `width` columns.
pub(crate) fn cut(text: &str, width: usize) -> &str {
    let mut used = 0;
    for (at, character) in text.char_indices() {
        used += character.width().unwrap_or(0);
        if used > width {
            return &text[..at];
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_break_between_words_and_words_only_where_they_must() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("one\n\ntwo", 80), ["one", "", "two"]);
        assert_eq!(wrap("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrap("漢字漢字", 4), ["漢字", "漢字"]);
        assert_eq!(wrap("  indented text", 10), ["  indented", "text"]);
        assert_eq!(cut("漢字x", 3), "漢");
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_every_line_fits(text in "[a-z漢 ]{0,80}", width in 2usize..30) {
            let lines = wrap(&text, width);
            prop_assert!(lines.iter().all(|line| columns(line) <= width));
            let squeezed = |text: &str| text.replace(' ', "");
            prop_assert_eq!(squeezed(&lines.concat()), squeezed(&text));
        }
    }
}
