//! What a terminal of a session shows: its screen as it stands.

use vt100::{Callbacks, Parser};

use super::TerminalSize;
use super::bounded::Bounded;

/// How a program sends the cursor to the top of the screen.
const HOME: &[u8] = b"\x1b[H";
const FIRST: &[u8] = b"\x1b[1;1H";

/// A screen that follows what a command prints.
pub(crate) struct Emulator {
    parser: Parser<Answers>,
    bounded: Bounded,
}

/// What a screen shows, and where its cursor is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScreenText {
    /// The rows, without blanks at their ends and without the empty ones at the end.
    pub text: String,
    /// The cursor's row and column, from 1.
    pub cursor: (u16, u16),
}

impl Emulator {
    pub(crate) fn new(size: TerminalSize) -> Self {
        let parser = Parser::new_with_callbacks(size.rows, size.columns, 0, Answers::default());
        Self { parser, bounded: Bounded::default() }
    }

    /// Takes what the command printed, and returns what a terminal answers to its questions.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        self.parser.process(&self.bounded.piece(piece));
        std::mem::take(&mut self.parser.callbacks_mut().0)
    }

    pub(crate) fn resize(&mut self, size: TerminalSize) {
        self.parser.set_size(size.rows, size.columns);
    }

    /// Whether a program has the whole screen to itself.
    pub(crate) fn is_full_screen(&self) -> bool {
        self.parser.screen().alternate_screen()
    }

    /// Whether this output paints the screen from its top more than once, and fits on it since.
    pub(crate) fn is_repainted(&self, output: &[u8]) -> bool {
        let mut tops =
            memchr::memmem::find_iter(output, HOME).chain(memchr::memmem::find_iter(output, FIRST));
        let Some(first) = tops.next() else { return false };
        let last = tops.max();
        let rows = usize::from(self.parser.screen().size().0.get());
        let lines = memchr::memchr_iter(b'\n', &output[last.unwrap_or(first)..]).count();
        lines < rows && last.is_some()
    }

    /// Whether arrow keys are spelt in the way of programs that asked for it.
    pub(crate) fn has_application_keys(&self) -> bool {
        self.parser.screen().application_cursor()
    }

    pub(crate) fn text(&self) -> ScreenText {
        let screen = self.parser.screen();
        let (row, column) = screen.cursor_position();
        let contents = screen.contents();
        let lines: Vec<&str> = contents.lines().map(str::trim_end).collect();
        let text = lines.join("\n").trim_end().to_owned();
        ScreenText { text, cursor: (row + 1, column + 1) }
    }
}

impl std::fmt::Debug for Emulator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Emulator").finish_non_exhaustive()
    }
}

/// Longest answer: nobody may read them, and a hostile command asks without end.
const MOST_ANSWERS: usize = 1024;

/// Answers to the questions without which some programs wait.
#[derive(Debug, Default)]
struct Answers(Vec<u8>);

impl Callbacks for Answers {
    fn unhandled_csi(
        &mut self,
        screen: &mut vt100::Screen,
        first: Option<u8>,
        _: Option<u8>,
        parameters: &[&[u16]],
        action: char,
    ) {
        if self.0.len() >= MOST_ANSWERS {
            return;
        }
        let asked = parameters.first().and_then(|values| values.first()).copied().unwrap_or(0);
        match (first, action, asked) {
            // What it is: a VT102.
            (None, 'c', 0) => self.0.extend_from_slice(b"\x1b[?6c"),
            // Whether it works.
            (None, 'n', 5) => self.0.extend_from_slice(b"\x1b[0n"),
            // Where the cursor is.
            (None, 'n', 6) => {
                let (row, column) = screen.cursor_position();
                self.0.extend_from_slice(format!("\x1b[{};{}R", row + 1, column + 1).as_bytes());
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_screen_shows_the_last_state_and_answers_what_programs_ask() {
        let mut screen = Emulator::new(TerminalSize::default());
        assert_eq!(screen.push(b"one\r\ntwo\x1b[6n"), b"\x1b[2;4R");
        assert!(!screen.is_full_screen());
        assert_eq!(screen.push(b"\x1b[?1049h\x1b[2J\x1b[3;5Hhere\x1b[c"), b"\x1b[?6c");
        assert!(screen.is_full_screen());
        let shown = screen.text();
        assert_eq!((shown.text.as_str(), shown.cursor), ("\n\n    here", (3, 9)));
        screen.push(b"\x1b[?1049l");
        assert_eq!(screen.text().text, "one\ntwo");
        screen.push(b"\x1b[H\x1b[2Jpadded   \r\n  \r\nlast  ");
        assert_eq!(screen.text().text, "padded\n\nlast");
        assert!(screen.push(&b"\x1b[6n".repeat(10_000)).len() < 2 * MOST_ANSWERS);
    }

    #[test]
    fn what_is_painted_again_and_again_is_a_picture_and_a_cleared_screen_is_none() {
        let screen = Emulator::new(TerminalSize::default());
        assert!(screen.is_repainted(b"\x1b[H one\r\n\x1b[H two\r\n"));
        assert!(!screen.is_repainted(b"\x1b[H\x1b[2Jone\r\n"));
        assert!(!screen.is_repainted(&[&b"\x1b[H a\x1b[H"[..], &b"b\r\n".repeat(99)].concat()));
        assert!(!screen.is_repainted(b"\x1b[31mred"));
    }
}
