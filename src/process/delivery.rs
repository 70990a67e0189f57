//! Handing output to whoever listens, without losing sight of the child when they are slow.

use std::time::{Duration, Instant};

use bytes::Bytes;

use super::utf8::unfinished_character;
use super::{Listener, NotTaken, Stream};

/// How long one attempt to hand a piece over may take: a stop is served at least this often.
const ATTEMPT: Duration = Duration::from_millis(20);

/// The most that a listener is handed at once, in bytes.
const MOST_PIECE: usize = 64 * 1024;

/// Pieces on their way to a listener: at most one waits.
pub(crate) struct Delivery<'a> {
    listener: &'a mut dyn Listener,
    waiting: Option<(Stream, Bytes)>,
    state: State,
    delivered: [u64; 2],
    dropped: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// A piece was dropped, so that none of the later ones would be in its place.
    Broken,
    /// Nobody listens any more.
    Gone,
}

impl<'a> Delivery<'a> {
    pub(crate) fn new(listener: &'a mut dyn Listener) -> Self {
        Self { listener, waiting: None, state: State::Open, delivered: [0; 2], dropped: 0 }
    }

    /// Whether a piece waits, so that no other should be offered.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Whether nobody listens any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.state == State::Gone
    }

    /// How many bytes of each stream were handed over, standard output first.
    pub(crate) fn delivered(&self) -> [u64; 2] {
        self.delivered
    }

    /// How many bytes were not, because the listener did not take them in time.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Offers the next piece, which ends at a character. One that still waits was not taken in
    /// time: it is dropped, and so is everything after it.
    pub(crate) fn offer(&mut self, stream: Stream, piece: Bytes) {
        if self.waiting.is_some() {
            self.give_up();
        }
        if self.state != State::Open {
            self.dropped += piece.len() as u64;
            return;
        }
        self.waiting = Some((stream, piece));
        self.retry();
    }

    /// Tries once more to hand over the piece that waits, as far as there is room for it.
    pub(crate) fn retry(&mut self) {
        let Some((stream, mut rest)) = self.waiting.take() else { return };
        let deadline = Instant::now() + ATTEMPT;
        while !rest.is_empty() {
            let next = rest.slice(..first_part(&rest));
            let length = next.len();
            match self.listener.output(stream, next, deadline) {
                Ok(()) => {
                    self.delivered[stream.index()] += length as u64;
                    rest = rest.split_off(length);
                }
                Err(NotTaken::Later) => {
                    self.waiting = Some((stream, rest));
                    return;
                }
                Err(NotTaken::Never) => {
                    self.dropped += rest.len() as u64;
                    self.state = State::Gone;
                    return;
                }
            }
        }
    }

    /// Says that nothing was written for some time.
    pub(crate) fn quiet(&mut self, silence: Duration) {
        if self.state == State::Open && self.waiting.is_none() {
            self.listener.quiet(silence, Instant::now() + ATTEMPT);
        }
    }

    /// Stops waiting for the listener.
    pub(crate) fn give_up(&mut self) {
        if let Some((_, piece)) = self.waiting.take() {
            self.dropped += piece.len() as u64;
            self.state = State::Broken;
        }
    }
}

/// How much of a piece goes first. Masking may have made it longer than what was read.
fn first_part(piece: &[u8]) -> usize {
    match piece.get(..MOST_PIECE) {
        Some(first) => first.len() - unfinished_character(first),
        None => piece.len(),
    }
}

#[cfg(test)]
mod tests {
    use sandbox::ProcessId;

    use super::*;

    /// Takes pieces as long as there is room.
    struct Window {
        room: usize,
        taken: Vec<Bytes>,
        answer: NotTaken,
    }

    impl Listener for Window {
        fn started(&mut self, _pid: ProcessId) {}

        fn output(&mut self, _: Stream, piece: Bytes, _: Instant) -> Result<(), NotTaken> {
            if self.room == 0 {
                return Err(self.answer);
            }
            self.room -= 1;
            self.taken.push(piece);
            Ok(())
        }

        fn quiet(&mut self, _: Duration, _: Instant) {}
    }

    fn piece(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    #[test]
    fn after_a_piece_that_was_dropped_nothing_is_handed_over() {
        let mut window = Window { room: 1, taken: Vec::new(), answer: NotTaken::Later };
        let mut delivery = Delivery::new(&mut window);
        delivery.offer(Stream::Stdout, piece("one"));
        assert!(!delivery.is_waiting());
        delivery.offer(Stream::Stdout, piece("two"));
        assert!(delivery.is_waiting());
        delivery.offer(Stream::Stdout, piece("three"));
        assert!(!delivery.is_waiting() && !delivery.is_gone());
        assert_eq!((delivery.delivered(), delivery.dropped()), ([3, 0], 8));
        assert_eq!(window.taken, [piece("one")]);
    }

    #[test]
    fn a_listener_that_is_gone_is_not_asked_again() {
        let mut window = Window { room: 0, taken: Vec::new(), answer: NotTaken::Never };
        let mut delivery = Delivery::new(&mut window);
        delivery.offer(Stream::Stderr, piece("one"));
        assert!(delivery.is_gone() && !delivery.is_waiting());
        delivery.retry();
        assert_eq!((delivery.delivered(), delivery.dropped()), ([0, 0], 3));
    }

    #[test]
    fn a_piece_that_grew_too_long_goes_in_parts_and_none_splits_a_character() {
        let long = "€".repeat(MOST_PIECE);
        let mut window = Window { room: 2, taken: Vec::new(), answer: NotTaken::Later };
        let mut delivery = Delivery::new(&mut window);
        delivery.offer(Stream::Stderr, Bytes::from(long.clone()));
        assert!(delivery.is_waiting());
        let part = MOST_PIECE - MOST_PIECE % 3;
        assert_eq!(delivery.delivered(), [0, 2 * part as u64]);
        delivery.give_up();
        assert_eq!(delivery.dropped(), (long.len() - 2 * part) as u64);
        assert!(window.taken.iter().all(|piece| std::str::from_utf8(piece).is_ok()));
    }
}
