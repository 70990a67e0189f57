//! Text from files, commands and peers, made harmless for a terminal.

use std::fmt::Write as _;

/// What is done to text from files and commands before it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escape {
    /// Control characters are spelt out.
    Controls,
    /// Nothing: a program reads it.
    Nothing,
}

impl Escape {
    /// `text` as it may be shown.
    #[must_use]
    pub fn apply(self, text: &str) -> String {
        match self {
            Escape::Controls => escape(text),
            Escape::Nothing => text.to_owned(),
        }
    }

    /// [`Escape::apply`] for what must stay on its line, also where a program reads it.
    pub(crate) fn on_one_line(self, text: &str) -> String {
        self.apply(&text.replace(['\n', '\r', '\t'], " "))
    }
}

/// Spells out what a terminal would obey: control characters but line feed and tab, and those that
/// turn the direction of text.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\n' | '\t' => escaped.push(character),
            // The ordinary end of a line elsewhere.
            '\r' if characters.peek() == Some(&'\n') => {}
            _ if is_command(character) => {
                // Writing to a string cannot fail.
                let _ = write!(escaped, "{}", character.escape_default());
            }
            _ => escaped.push(character),
        }
    }
    escaped
}

fn is_command(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{061c}')
        || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_spelt_out_and_text_is_not() {
        assert_eq!(escape("a\tb\nc é 漢 🙂"), "a\tb\nc é 漢 🙂");
        assert_eq!(escape("\x1b[2J\x07"), "\\u{1b}[2J\\u{7}");
        assert_eq!(escape("\u{9b}31m \u{202e}evil"), "\\u{9b}31m \\u{202e}evil");
        assert_eq!(escape("dos\r\nline\rback"), "dos\nline\\rback");
        assert_eq!(Escape::Nothing.on_one_line("a\nb\r\x1b"), "a b \x1b");
    }
}
