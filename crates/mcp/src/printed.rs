//! What a command prints, without what a terminal would obey.

/// Takes escape sequences and control characters out of a stream that comes in pieces. A client shows
/// progress to a person, and not every client knows that a command chose the text.
#[derive(Debug, Default)]
pub(crate) struct Printed(Within);

/// Where the stream stands.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Within {
    /// In text.
    #[default]
    Text,
    /// Behind a carriage return, whose line may be over already.
    Return,
    /// Behind ESC.
    Escape,
    /// Behind ESC and an intermediate byte: one more byte ends it.
    Intermediate,
    /// In a control sequence (CSI), which a byte from @ to ~ ends.
    Control,
    /// In a string for the terminal (OSC, DCS and the like), which BEL or ESC \ ends.
    String,
    /// Behind ESC in such a string.
    StringEscape,
}

impl Printed {
    /// What is to be shown of a piece.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        let mut shown = String::with_capacity(piece.len());
        for c in piece.chars() {
            self.0 = self.0.next(c, &mut shown);
        }
        shown
    }
}

impl Within {
    fn next(self, c: char, shown: &mut String) -> Self {
        match (self, c) {
            (Self::Text | Self::Return, '\u{1b}') => Self::Escape,
            (Self::Text | Self::Return, '\u{9b}') => Self::Control,
            (Self::Text | Self::Return, '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}') => Self::String,
            // A line that a terminal would write over.
            (Self::Text | Self::Return, '\r') => {
                shown.push('\n');
                Self::Return
            }
            (Self::Return, '\n') => Self::Text,
            (Self::Text | Self::Return, c) => {
                if !c.is_control() || matches!(c, '\n' | '\t') {
                    shown.push(c);
                }
                Self::Text
            }
            (Self::Escape, '[') => Self::Control,
            (Self::Escape, ']' | 'P' | 'X' | '^' | '_') => Self::String,
            (Self::Escape | Self::Intermediate, ' '..='/') => Self::Intermediate,
            (Self::Escape | Self::StringEscape, '\u{1b}') => Self::Escape,
            (Self::Escape | Self::Intermediate | Self::StringEscape, _) => Self::Text,
            (Self::Control, '@'..='~') => Self::Text,
            (Self::Control, '\u{1b}') => Self::Escape,
            (Self::Control, _) => Self::Control,
            (Self::String, '\u{7}' | '\u{9c}') => Self::Text,
            (Self::String, '\u{1b}') => Self::StringEscape,
            (Self::String, _) => Self::String,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pieces: &[&str]) -> String {
        let mut printed = Printed::default();
        pieces.iter().map(|piece| printed.push(piece)).collect()
    }

    #[test]
    fn what_a_terminal_obeys_is_gone_wherever_the_pieces_part() {
        let whole = "a\u{1b}[1;31mred\u{1b}[0m b\u{1b}]0;title\u{7}c\u{1b}]52;c;x\u{1b}\\d\u{1b}(Be\u{9b}2Jf\u{7}\tg";
        assert_eq!(shown(&[whole]), "ared bcdef\tg");
        let parts: Vec<String> = whole.chars().map(String::from).collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        assert_eq!(shown(&parts), "ared bcdef\tg");
    }

    #[test]
    fn lines_stay_lines() {
        assert_eq!(shown(&["one\r\ntwo\n", "1 %\r2 %\r", "\n漢é"]), "one\ntwo\n1 %\n2 %\n漢é");
    }
}
