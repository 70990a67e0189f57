//! Hands output to a call's sink, and still serves the child when the sink is slow.

use std::time::{Duration, Instant};

use bytes::Bytes;
use sandbox::{Waiting, WaitsOn};

use super::program;
use super::utf8::unfinished_character;
use tool_provider::{EmitError, Event, EventSink, OutputStream, Secrets};

/// How long one attempt to hand a piece over may take: a stop is served at least this often.
const ATTEMPT: Duration = Duration::from_millis(20);

/// The most that a sink is handed at once, in bytes.
const MOST_PIECE: usize = 64 * 1024;

/// Pieces on their way to a sink: at most one waits.
pub(crate) struct Delivery<'a> {
    sink: &'a dyn EventSink,
    secrets: &'a Secrets,
    waiting: Option<(OutputStream, Bytes)>,
    state: State,
    delivered: [u64; 2],
    dropped: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// A piece was dropped, so that none of the later ones would be in its place.
    Broken,
    /// The sink is closed.
    Gone,
}

impl<'a> Delivery<'a> {
    pub(crate) fn new(sink: &'a dyn EventSink, secrets: &'a Secrets) -> Self {
        Self { sink, secrets, waiting: None, state: State::Open, delivered: [0; 2], dropped: 0 }
    }

    /// Whether a piece waits, so that no other should be offered.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Whether the sink is closed.
    pub(crate) fn is_gone(&self) -> bool {
        self.state == State::Gone
    }

    /// How many bytes of each stream were handed over, standard output first.
    pub(crate) fn delivered(&self) -> [u64; 2] {
        self.delivered
    }

    /// How many bytes were not, because the sink did not take them in time.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Offers the next piece, which ends at a character. One that still waits was not taken in
    /// time: it is dropped, and so is everything after it.
    pub(crate) fn offer(&mut self, stream: OutputStream, piece: Bytes) {
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

    /// Tries once more to hand over the waiting piece, as much of it as fits.
    pub(crate) fn retry(&mut self) {
        let Some((stream, mut rest)) = self.waiting.take() else { return };
        let deadline = Instant::now() + ATTEMPT;
        while !rest.is_empty() {
            let next = rest.slice(..first_part(&rest));
            let length = next.len();
            match self.sink.emit_until(Event::Output { stream, data: next }, Some(deadline)) {
                Ok(()) => {
                    self.delivered[stream as usize] += length as u64;
                    rest = rest.split_off(length);
                }
                Err(EmitError::TimedOut) => {
                    self.waiting = Some((stream, rest));
                    return;
                }
                Err(EmitError::Closed) => {
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
            self.progress(format!("no output for {} s, still running", silence.as_secs()));
        }
    }

    /// Says what the command waits for.
    pub(crate) fn waits(&mut self, waiting: Waiting) {
        if self.state == State::Open && self.waiting.is_none() {
            let program = program::shown(waiting.program(), self.secrets);
            self.progress(match waiting.on {
                WaitsOn::Terminal => {
                    format!("{program} waits for somebody to type, and nobody can")
                }
                WaitsOn::NamedPipe => format!("{program} waits for the other end of a named pipe"),
                WaitsOn::Input => format!("{program} waits for input"),
            });
        }
    }

    fn progress(&self, message: String) {
        let progress = Event::Progress { message, fraction: None };
        // A full window means that there is enough to look at.
        let _ = self.sink.emit_until(progress, Some(Instant::now() + ATTEMPT));
    }

    /// Stops waiting for the sink.
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
    use std::sync::Mutex;

    use super::*;

    /// Takes pieces up to its capacity.
    struct Window {
        capacity: usize,
        taken: Mutex<Vec<Bytes>>,
        answer: EmitError,
    }

    impl Window {
        fn new(capacity: usize, answer: EmitError) -> Self {
            Self { capacity, taken: Mutex::default(), answer }
        }
    }

    impl EventSink for Window {
        fn emit_until(&self, event: Event, _: Option<Instant>) -> Result<(), EmitError> {
            let Event::Output { data, .. } = event else { panic!("{event:?}") };
            let mut taken = self.taken.lock().unwrap();
            if taken.len() == self.capacity {
                return Err(self.answer);
            }
            taken.push(data);
            Ok(())
        }
    }

    fn piece(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    #[test]
    fn after_a_piece_that_was_dropped_nothing_is_handed_over() {
        let window = Window::new(1, EmitError::TimedOut);
        let secrets = Secrets::default();
        let mut delivery = Delivery::new(&window, &secrets);
        delivery.offer(OutputStream::Stdout, piece("one"));
        assert!(!delivery.is_waiting());
        delivery.offer(OutputStream::Stdout, piece("two"));
        assert!(delivery.is_waiting());
        delivery.offer(OutputStream::Stdout, piece("three"));
        assert!(!delivery.is_waiting() && !delivery.is_gone());
        assert_eq!((delivery.delivered(), delivery.dropped()), ([3, 0], 8));
        assert_eq!(*window.taken.lock().unwrap(), [piece("one")]);
    }

    #[test]
    fn a_sink_that_is_closed_is_not_asked_again() {
        let window = Window::new(0, EmitError::Closed);
        let secrets = Secrets::default();
        let mut delivery = Delivery::new(&window, &secrets);
        delivery.offer(OutputStream::Stderr, piece("one"));
        assert!(delivery.is_gone() && !delivery.is_waiting());
        delivery.retry();
        assert_eq!((delivery.delivered(), delivery.dropped()), ([0, 0], 3));
    }

    #[test]
    fn a_piece_that_grew_too_long_goes_in_parts_and_none_splits_a_character() {
        let long = "€".repeat(MOST_PIECE);
        let window = Window::new(2, EmitError::TimedOut);
        let secrets = Secrets::default();
        let mut delivery = Delivery::new(&window, &secrets);
        delivery.offer(OutputStream::Stderr, Bytes::from(long.clone()));
        assert!(delivery.is_waiting());
        let part = MOST_PIECE - MOST_PIECE % 3;
        assert_eq!(delivery.delivered(), [0, 2 * part as u64]);
        delivery.give_up();
        assert_eq!(delivery.dropped(), (long.len() - 2 * part) as u64);
        assert!(
            window.taken.lock().unwrap().iter().all(|piece| std::str::from_utf8(piece).is_ok())
        );
    }
}
