//! Text from commands, without control sequences for a terminal.

use std::borrow::Cow;

/// Takes out what would steer a terminal: colours, cursor moves, titles, other control characters.
/// A line that was written anew after a carriage return, as a progress bar is, shows its last state.
pub(super) fn without_escapes(text: &str) -> Cow<'_, str> {
    let special = |c: char| c.is_control() && c != '\n' && c != '\t';
    if !text.contains(special) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut line_start = 0;
    let mut cursor = Cursor::AtEnd;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let erases = match c {
            '\u{1b}' => skip_escape(&mut chars) == Some('K'),
            '\u{9b}' => skip_control_sequence(&mut chars) == Some('K'),
            _ => false,
        };
        match c {
            '\r' => cursor = Cursor::AtStart,
            '\n' => {
                plain.push('\n');
                line_start = plain.len();
                cursor = Cursor::AtEnd;
            }
            '\u{8}' if cursor == Cursor::AtEnd && plain.len() > line_start => {
                plain.pop();
            }
            c if erases || !c.is_control() || c == '\t' => {
                if cursor == Cursor::AtStart {
                    plain.truncate(line_start);
                    cursor = Cursor::AtEnd;
                }
                if !erases {
                    plain.push(c);
                }
            }
            _ => {}
        }
    }
    Cow::Owned(plain)
}

/// Where the next character of a line goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cursor {
    AtEnd,
    AtStart,
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Skips what belongs to an escape character, as ECMA-48 has it. Returns how a control sequence
/// ended: K erases the line, from the cursor or whole.
fn skip_escape(chars: &mut Chars<'_>) -> Option<char> {
    match chars.peek() {
        Some('[') => {
            chars.next();
            return skip_control_sequence(chars);
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
    None
}

fn skip_control_sequence(chars: &mut Chars<'_>) -> Option<char> {
    while chars.next_if(|c| ('\u{20}'..='\u{3f}').contains(c)).is_some() {}
    chars.next_if(|c| ('\u{40}'..='\u{7e}').contains(c))
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
        for (raw, plain) in [
            ("all 9 passed\r\u{1b}[0m\nnext", "all 9 passed\nnext"),
            ("50%\r\u{1b}[K\ndone", "\ndone"),
            ("50%\r\u{1b}[2Kdone", "done"),
            ("50%\u{1b}[K\n", "50%\n"),
            ("\u{1b}[?25l50%\u{1b}[3D\u{1b}[1A\r\r60%\u{1b}[?25h", "60%"),
            ("one\r\r\n\u{8}two", "one\ntwo"),
        ] {
            assert_eq!(without_escapes(raw), plain, "{raw:?}");
        }
    }
}
