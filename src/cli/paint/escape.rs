//! Text from files, commands and peers, made harmless for a terminal.

use workspace_fs::text::hidden::visible;

/// What is done to text from files and commands before it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Escape {
    /// What is hidden is spelt out, control characters above all.
    Controls,
    /// Nothing: a program reads it.
    Nothing,
}

impl Escape {
    /// `text` as it may be shown.
    pub(crate) fn apply(self, text: &str) -> String {
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

/// Spells out what a terminal would obey and what a person would not see: all but text, line feeds
/// and tabs. A carriage return before a line feed, the ordinary end of a line elsewhere, is left out.
pub(crate) fn escape(text: &str) -> String {
    visible(&text.replace("\r\n", "\n")).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_spelt_out_and_text_is_not() {
        assert_eq!(escape("a\tb\nc é 漢 🙂"), "a\tb\nc é 漢 🙂");
        assert_eq!(escape("\x1b[2J\x07"), "\\u{1b}[2J\\u{7}");
        assert_eq!(escape("\u{9b}31m \u{202e}evil"), "\\u{9b}31m \\u{202e}evil");
        assert_eq!(
            escape("pass\u{200b}word\u{3164} ❤\u{fe0f}"),
            "pass\\u{200b}word\\u{3164} ❤\u{fe0f}"
        );
        assert_eq!(escape("dos\r\nline\rback"), "dos\nline\\rback");
        assert_eq!(Escape::Nothing.on_one_line("a\nb\r\x1b"), "a b \x1b");
    }
}
