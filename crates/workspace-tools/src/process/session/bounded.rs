//! Keeps the numbers of control sequences within what a screen can use. `ESC [ 65535 b` repeats a character
//! that many times: eight bytes of a command's output would cost an emulator milliseconds.

/// What a screen can use at most: more than it has rows or columns.
const MOST: u32 = 1000;

/// Rewrites output piece by piece.
#[derive(Debug, Default)]
pub(super) struct Bounded {
    state: State,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Text,
    Escape,
    /// In the first number of a control sequence, with its value so far.
    Number(Option<u32>),
}

const ESC: u8 = 0x1b;

impl Bounded {
    /// The same output, with the first number of each control sequence at most [`MOST`]. Others stand for
    /// no repetition. What begins a sequence is held back until its number is known.
    pub(super) fn piece(&mut self, piece: &[u8]) -> Vec<u8> {
        let mut bounded = Vec::with_capacity(piece.len());
        for &byte in piece {
            self.state = match (self.state, byte) {
                (State::Number(number), b'0'..=b'9') => {
                    let digit = u32::from(byte - b'0');
                    let value = number.unwrap_or(0).saturating_mul(10).saturating_add(digit);
                    State::Number(Some(value.min(MOST)))
                }
                // Terminals obey these in the midst of a sequence.
                (State::Number(_), 0..=0x17 | 0x19 | 0x1c..=0x1f | 0x7f) => {
                    bounded.push(byte);
                    self.state
                }
                (State::Escape, b'[') => State::Number(None),
                (state, _) => {
                    state.begin(&mut bounded);
                    if byte == ESC {
                        State::Escape
                    } else {
                        bounded.push(byte);
                        State::Text
                    }
                }
            };
        }
        bounded
    }
}

impl State {
    /// Adds what was held back.
    fn begin(self, to: &mut Vec<u8>) {
        match self {
            State::Text => {}
            State::Escape => to.push(ESC),
            State::Number(number) => {
                to.extend_from_slice(b"\x1b[");
                if let Some(number) = number {
                    to.extend_from_slice(number.to_string().as_bytes());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounded(pieces: &[&str]) -> String {
        let mut rewriter = Bounded::default();
        let pieces = pieces.iter().flat_map(|piece| rewriter.piece(piece.as_bytes()));
        String::from_utf8(pieces.collect()).unwrap()
    }

    #[test]
    fn large_numbers_become_small_and_all_else_stays() {
        assert_eq!(bounded(&["x\x1b[65535b"]), "x\x1b[1000b");
        assert_eq!(bounded(&["x\x1b", "[6", "55", "35;1b."]), "x\x1b[1000;1b.");
        assert_eq!(bounded(&["\x1b[00000000000000000065535b"]), "\x1b[1000b");
        assert_eq!(bounded(&["\x1b[6\n5535b"]), "\n\x1b[1000b");
        for same in
            ["\x1b[?1049h\x1b[2J\x1b[3;5Hé\x1b[H\x1b[m", "\x1b(B\x1b\x1b[1m65535b", "\x1b]0;t\x07"]
        {
            assert_eq!(bounded(&[same]), same);
        }
    }
}
