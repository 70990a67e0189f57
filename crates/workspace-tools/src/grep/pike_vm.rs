//! A regex search that can be stopped at any byte.
//!
//! It reads the text once and keeps the set of all states that the expression may be in. That is slow,
//! because it looks at the whole set for each byte, but it needs no more memory than the expression,
//! handles any text, and asks often whether to stop.

use std::ops::Range;

use regex_automata::nfa::thompson::{NFA, State};
use regex_automata::util::prefilter::Prefilter;
use regex_automata::util::primitives::StateID;
use regex_automata::{Input, Span};

/// Why a search has no answer: it was stopped.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the search was stopped")]
pub(super) struct Stopped;

/// How many states the search looks at between two questions whether to stop: a fraction of a
/// millisecond.
pub(super) const STRIDE: u32 = 1 << 14;

/// What a search reuses.
#[derive(Debug, Default)]
pub(super) struct PikeVm {
    now: Threads,
    next: Threads,
    stack: Vec<StateID>,
}

/// The states that the expression may be in, those first that are preferred.
#[derive(Debug, Default)]
struct Threads {
    order: Vec<Thread>,
    /// For each state where it would stand in `order`.
    positions: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Thread {
    state: StateID,
    /// Where its match would begin.
    start: usize,
}

impl Threads {
    fn clear(&mut self, states: usize) {
        self.order.clear();
        if self.positions.len() < states {
            self.positions.resize(states, 0);
        }
    }

    /// Puts a thread behind all others, unless its state is there.
    fn add(&mut self, thread: Thread) -> bool {
        let position = &mut self.positions[thread.state.as_usize()];
        if self.order.get(*position as usize).is_some_and(|known| known.state == thread.state) {
            return false;
        }
        // There are no more threads than states, which have 32 bits.
        *position = u32::try_from(self.order.len()).unwrap_or(u32::MAX);
        self.order.push(thread);
        true
    }
}

/// The work that is left until the next question whether to stop.
struct Fuel<'a> {
    left: u32,
    stop: &'a dyn Fn() -> bool,
}

impl Fuel<'_> {
    fn spend(&mut self) -> Result<(), Stopped> {
        self.left -= 1;
        if self.left > 0 {
            return Ok(());
        }
        self.left = STRIDE;
        if (self.stop)() { Err(Stopped) } else { Ok(()) }
    }
}

impl PikeVm {
    /// The leftmost match that lies in the input's span, the one that is preferred of several, as
    /// every engine of the regex crate finds it.
    ///
    /// # Errors
    /// When `stop` says so.
    pub(super) fn find(
        &mut self,
        nfa: &NFA,
        prefilter: Option<&Prefilter>,
        input: &Input<'_>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Range<usize>>, Stopped> {
        let (haystack, end) = (input.haystack(), input.end());
        let mut fuel = Fuel { left: STRIDE, stop };
        let mut found = None;
        let mut at = input.start();
        self.now.clear(nfa.states().len());
        while at <= end {
            if self.now.order.is_empty() {
                if found.is_some() {
                    break;
                }
                if let Some(prefilter) = prefilter {
                    match prefilter.find(haystack, Span::from(at..end)) {
                        Some(candidate) => at = candidate.start,
                        None => break,
                    }
                }
            }
            if found.is_none() {
                let thread = Thread { state: nfa.start_anchored(), start: at };
                close(nfa, &mut self.stack, &mut self.now, thread, haystack, at, &mut fuel)?;
            }
            self.next.clear(nfa.states().len());
            let byte = (at < end).then(|| haystack[at]);
            for Thread { state, start } in self.now.order.iter().copied() {
                fuel.spend()?;
                let next = match (nfa.state(state), byte) {
                    (State::Match { .. }, _) => {
                        found = Some(start..at);
                        // All behind are preferred less.
                        break;
                    }
                    (State::ByteRange { trans }, Some(byte)) => {
                        trans.matches_byte(byte).then_some(trans.next)
                    }
                    (State::Sparse(transitions), Some(byte)) => transitions.matches_byte(byte),
                    (State::Dense(transitions), Some(byte)) => transitions.matches_byte(byte),
                    _ => None,
                };
                if let Some(state) = next {
                    let (next, thread) = (&mut self.next, Thread { state, start });
                    close(nfa, &mut self.stack, next, thread, haystack, at + 1, &mut fuel)?;
                }
            }
            std::mem::swap(&mut self.now, &mut self.next);
            at += 1;
        }
        Ok(found)
    }
}

/// Adds a thread and all those that it leads to without a byte, in the order of preference.
fn close(
    nfa: &NFA,
    stack: &mut Vec<StateID>,
    threads: &mut Threads,
    thread: Thread,
    haystack: &[u8],
    at: usize,
    fuel: &mut Fuel<'_>,
) -> Result<(), Stopped> {
    stack.clear();
    stack.push(thread.state);
    while let Some(state) = stack.pop() {
        fuel.spend()?;
        if !threads.add(Thread { state, ..thread }) {
            continue;
        }
        match nfa.state(state) {
            State::Look { look, next } => {
                if nfa.look_matcher().matches(*look, haystack, at) {
                    stack.push(*next);
                }
            }
            State::Union { alternates } => stack.extend(alternates.iter().rev()),
            State::BinaryUnion { alt1, alt2 } => stack.extend([*alt2, *alt1]),
            State::Capture { next, .. } => stack.push(*next),
            State::ByteRange { .. }
            | State::Sparse(_)
            | State::Dense(_)
            | State::Fail
            | State::Match { .. } => {}
        }
    }
    Ok(())
}
