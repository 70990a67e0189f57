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

/// Takes colours and other styles out of what a command prints, in pieces of any size. They say nothing
/// to a person who reads them spelled out, and one of them hides text.
#[derive(Debug, Default)]
pub(crate) struct StyleFilter {
    /// The start of what may become one.
    held: Vec<u8>,
}

/// A longer one is none.
const LONGEST_STYLE: usize = 64;

impl StyleFilter {
    pub(crate) fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        let text = [&*std::mem::take(&mut self.held), piece].concat();
        let mut kept = Vec::with_capacity(text.len());
        let mut rest = &text[..];
        while let Some(start) = rest.iter().position(|byte| *byte == b'\x1b') {
            kept.extend_from_slice(&rest[..start]);
            rest = &rest[start..];
            // ESC [ parameters m, as ECMA-48 has it (SGR).
            let parameters = rest.strip_prefix(b"\x1b[").unwrap_or_default();
            let end = parameters.iter().position(|byte| !matches!(byte, b'0'..=b';'));
            match end.map(|end| (end, parameters[end])) {
                Some((end, b'm')) => rest = &parameters[end + 1..],
                None if rest == b"\x1b" || rest.starts_with(b"\x1b[") => {
                    if rest.len() > LONGEST_STYLE {
                        break;
                    }
                    self.held = rest.to_vec();
                    return kept;
                }
                _ => {
                    kept.push(rest[0]);
                    rest = &rest[1..];
                }
            }
        }
        kept.extend_from_slice(rest);
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_are_taken_out_wherever_they_are_cut_and_nothing_else_is() {
        let text = b"a\x1b[31mred\x1b[0m\x1b[m \x1b[38:2::1:2:3mb\x1b[2J\x1b]0;t\x07c\x1b";
        for size in 1..text.len() {
            let mut filter = StyleFilter::default();
            let kept: Vec<u8> = text.chunks(size).flat_map(|piece| filter.push(piece)).collect();
            assert_eq!(kept, b"ared b\x1b[2J\x1b]0;t\x07c", "{size}");
        }
        let long = [b"\x1b[", &[b'1'; 100][..], b"m"].concat();
        assert_eq!(StyleFilter::default().push(&long[..90]), long[..90]);
    }

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
