//! Any bytes, cut into the pieces that a body needs, in a way that a fuzzer can learn.

/// What is left of the input.
pub(super) struct Pieces<'a>(pub(super) &'a [u8]);

impl<'a> Pieces<'a> {
    /// One byte; 0 where there is none left.
    pub(super) fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    /// The bytes up to a 0xff, which no text holds, or all that are left.
    pub(super) fn piece(&mut self) -> &'a [u8] {
        let end = self.0.iter().position(|byte| *byte == 0xff);
        let (piece, rest) = match end {
            Some(end) => (&self.0[..end], &self.0[end + 1..]),
            None => (self.0, &[][..]),
        };
        self.0 = rest;
        piece
    }

    /// The same as text.
    pub(super) fn text(&mut self) -> String {
        String::from_utf8_lossy(self.piece()).into_owned()
    }
}
