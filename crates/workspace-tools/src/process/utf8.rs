//! Pieces of a byte stream that never end inside a UTF-8 character.

/// Keeps the start of a character back until the rest of it has come: at most three bytes. Bytes
/// that can never become a character pass at once and unchanged.
#[derive(Debug, Default)]
pub(crate) struct Utf8Gate {
    held: Vec<u8>,
}

impl Utf8Gate {
    /// Takes the next piece and returns what is whole.
    pub(crate) fn push(&mut self, piece: Vec<u8>) -> Vec<u8> {
        let mut bytes = if self.held.is_empty() {
            piece
        } else {
            let mut bytes = std::mem::take(&mut self.held);
            bytes.extend_from_slice(&piece);
            bytes
        };
        let whole = bytes.len() - unfinished_character(&bytes);
        self.held = bytes.split_off(whole);
        bytes
    }

    /// The stream has ended: returns what was held back.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }
}

/// How many bytes at the end of `bytes` are the start of a character whose rest is missing.
pub(crate) fn unfinished_character(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let tail = &bytes[bytes.len() - back..];
        if is_continuation(tail[0]) {
            continue;
        }
        return match std::str::from_utf8(tail) {
            // No length means that the end came too early, and nothing was wrong until then.
            Err(error) if error.error_len().is_none() => back,
            _ => 0,
        };
    }
    0
}

/// Whether a byte can only stand inside a character, not at its start.
pub(crate) fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_character_waits_for_its_last_byte_and_garbage_does_not() {
        let mut gate = Utf8Gate::default();
        assert_eq!(gate.push(b"a\xf0\x9f".to_vec()), b"a");
        assert_eq!(gate.push(b"\x98".to_vec()), b"");
        assert_eq!(gate.push(b"\x80b".to_vec()), "😀b".as_bytes());
        assert_eq!(gate.push(b"\xff\x80\x80".to_vec()), b"\xff\x80\x80");
        assert_eq!(gate.push(b"\xe2\x82".to_vec()), b"");
        assert_eq!(gate.push(b"x".to_vec()), b"\xe2\x82x");
        assert_eq!(gate.push(b"\xc3".to_vec()), b"");
        assert_eq!(gate.finish(), b"\xc3");
    }

    proptest! {
        #[test]
        fn text_in_any_pieces_comes_out_as_whole_characters(
            text in "\\PC{0,40}",
            cuts in proptest::collection::vec(0usize..6, 0..40),
        ) {
            let mut gate = Utf8Gate::default();
            let mut rest = text.as_bytes();
            let mut out = String::new();
            for cut in cuts {
                let (piece, later) = rest.split_at(cut.min(rest.len()));
                let whole = gate.push(piece.to_vec());
                out.push_str(std::str::from_utf8(&whole).expect("only whole characters"));
                rest = later;
            }
            out.push_str(std::str::from_utf8(&gate.push(rest.to_vec())).expect("whole"));
            prop_assert!(gate.finish().is_empty());
            prop_assert_eq!(out, text);
        }

        #[test]
        fn no_byte_is_lost_or_changed(
            pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..6), 0..20),
        ) {
            let mut gate = Utf8Gate::default();
            let mut out = Vec::new();
            for piece in &pieces {
                out.extend(gate.push(piece.clone()));
                prop_assert!(gate.held.len() <= 3);
            }
            out.extend(gate.finish());
            prop_assert_eq!(out, pieces.concat());
        }
    }
}
