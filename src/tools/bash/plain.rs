//! Text from commands and models, made fit for a person's eyes.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::tools::hidden::is_hidden;

/// Takes out what would steer a terminal: colours, cursor moves, titles, other control characters.
/// What a carriage return overwrote is gone, as on a screen.
pub(super) fn without_escapes(text: &str) -> Cow<'_, str> {
    let special = |c: char| c.is_control() && c != '\n' && c != '\t';
    if !text.contains(special) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut line_start = 0;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' => {
                plain.push('\n');
                line_start = plain.len();
            }
            '\t' => plain.push('\t'),
            '\r' => {
                while chars.next_if_eq(&'\r').is_some() {}
                // Before a line feed, or at the end, it overwrites nothing.
                if chars.peek().is_some_and(|&next| next != '\n') {
                    plain.truncate(line_start);
                }
            }
            '\u{8}' => {
                if plain.len() > line_start {
                    plain.pop();
                }
            }
            '\u{1b}' => skip_escape(&mut chars),
            '\u{9b}' => skip_control_sequence(&mut chars),
            c if c.is_control() => {}
            c => plain.push(c),
        }
    }
    Cow::Owned(plain)
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Skips what belongs to an escape character, as ECMA-48 has it.
fn skip_escape(chars: &mut Chars<'_>) {
    match chars.peek() {
        Some('[') => {
            chars.next();
            skip_control_sequence(chars);
        }
        // Strings: OSC, DCS, SOS, PM, APC. They end at BEL or ST, and an unended one at its line.
        Some(']' | 'P' | 'X' | '^' | '_') => {
            while let Some(c) = chars.next_if(|&c| c != '\n') {
                if c == '\u{7}' || c == '\u{9c}' {
                    break;
                }
                if c == '\u{1b}' && chars.next_if_eq(&'\\').is_some() {
                    break;
                }
            }
        }
        _ => {
            while chars.next_if(|c| ('\u{20}'..='\u{2f}').contains(c)).is_some() {}
            chars.next_if(|c| ('\u{30}'..='\u{7e}').contains(c));
        }
    }
}

fn skip_control_sequence(chars: &mut Chars<'_>) {
    while chars.next_if(|c| ('\u{20}'..='\u{3f}').contains(c)).is_some() {}
    chars.next_if(|c| ('\u{40}'..='\u{7e}').contains(c));
}

/// Makes every character that cannot be seen, or that changes how others are seen, visible: a
/// person approves what is really there.
pub(super) fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_hidden(c) {
            // Writing to a string cannot fail.
            let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// The beginning of `text` up to `most` bytes, with a sign where something is missing.
pub(super) fn shortened(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let mut end = most;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    Cow::Owned(format!("{}…", &text[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_titles_and_control_characters_go() {
        for (raw, plain) in [
            ("plain\ttext\n", "plain\ttext\n"),
            ("\u{1b}[1;31mred\u{1b}[0m", "red"),
            ("\u{1b}]0;title\u{7}a\u{1b}]8;;http://x\u{1b}\\b", "ab"),
            ("\u{1b}(Ba\u{1b}=b\u{1b}7", "ab"),
            ("a\u{0}b\u{7}c\u{7f}", "abc"),
            ("\u{9b}31mred", "red"),
            ("\u{1b}]never ended\nnext", "\nnext"),
            ("\u{1b}", ""),
            ("\u{1b}[", ""),
        ] {
            assert_eq!(without_escapes(raw), plain, "{raw:?}");
        }
    }

    #[test]
    fn a_progress_line_shows_its_last_state_and_crlf_is_a_line_end() {
        assert_eq!(without_escapes("10%\r50%\r100%\ndone\r\n"), "100%\ndone\n");
        assert_eq!(without_escapes("ab\u{8}c\r"), "ac");
    }

    #[test]
    fn what_hides_is_shown() {
        assert_eq!(visible("ls\t-l\n"), "ls\t-l\n");
        assert_eq!(
            visible("rm \u{202e}fr\u{200b} \u{1b}[2K\r"),
            "rm \\u{202e}fr\\u{200b} \\u{1b}[2K\\u{d}"
        );
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        assert_eq!(shortened("short", 5), "short");
        assert_eq!(shortened("aä", 2), "a…");
    }
}
