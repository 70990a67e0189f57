//! Colours.

/// Whether text may be coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paint {
    /// Yes.
    Colours,
    /// No.
    Plain,
}

/// How a piece of text is coloured.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ink {
    Bold,
    Italic,
    Dim,
    Underline,
    Red,
    Green,
    Yellow,
    Blue,
    Magenta,
    Cyan,
    /// Where a search found what it looked for.
    Match,
    /// What of a line goes. Reversed, it has the terminal's own background as its text's colour, and so
    /// is legible on any.
    Gone,
    /// What of a line is new.
    New,
}

impl Ink {
    const fn code(self) -> &'static str {
        match self {
            Ink::Bold => "1",
            Ink::Dim => "2",
            Ink::Italic => "3",
            Ink::Underline => "4",
            Ink::Red => "31",
            Ink::Green => "32",
            Ink::Yellow => "33",
            Ink::Blue => "34",
            Ink::Magenta => "35",
            Ink::Cyan => "36",
            Ink::Match => "1;31",
            Ink::Gone => "7;31",
            Ink::New => "7;32",
        }
    }
}

impl Paint {
    /// `text` in a colour, where colours are wanted. The text must be escaped already.
    pub(crate) fn ink(self, ink: Ink, text: &str) -> String {
        match self {
            Paint::Colours if !text.is_empty() => format!("\x1b[{}m{text}\x1b[0m", ink.code()),
            _ => text.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_come_only_where_they_are_wanted() {
        assert_eq!(Paint::Plain.ink(Ink::Red, "x"), "x");
        assert_eq!(Paint::Colours.ink(Ink::Red, "x"), "\x1b[31mx\x1b[0m");
        assert_eq!(Paint::Colours.ink(Ink::Red, ""), "");
    }
}
