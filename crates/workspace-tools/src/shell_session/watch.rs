//! A call that waits for a session, and passes on what the session prints meanwhile.

use std::time::{Duration, Instant};

use bytes::Bytes;
use regex_automata::meta::Regex;

use crate::Context;
use crate::process::delivery::Delivery;
use crate::process::session::{Session, Standing, text};
use tool_provider::{OutputStream, ToolError};

/// For how long nothing may come before a session that waits for input counts as done with what it did.
const SETTLED: Duration = Duration::from_millis(40);

/// The same for one that does not, or of which that is not known.
const SILENT: Duration = Duration::from_millis(500);

/// After how much silence it is looked at first; after that ever less often.
const FIRST_LOOK: Duration = Duration::from_millis(15);
const LAST_LOOK: Duration = Duration::from_secs(1);

/// How long the answer to a look may take.
const LOOK_TIMEOUT: Duration = Duration::from_millis(250);

/// How much is passed on at once, in bytes.
const PIECE: usize = 64 * 1024;

/// How much before what came last a pattern is looked for again, in bytes: it may have begun there.
const OVERLAP: usize = 8 * 1024;

/// What a call waits for, besides the session's end.
pub(crate) enum Until {
    /// Nothing: only the time.
    Time,
    /// That it has printed something and is silent, or waits for input.
    Settled,
    /// That what it printed from there on matches.
    Matches(Regex, u64),
    /// That it listens on a port.
    Listens(u16),
}

/// What a wait came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Met {
    /// What was waited for.
    Yes,
    /// The session's end, or that of the time.
    No,
}

/// Waits. Events hold what is printed from `begin` on.
///
/// # Errors
/// `cancelled`.
pub(crate) fn watch(
    session: &Session,
    context: &Context<'_>,
    until: &Until,
    begin: u64,
    deadline: Instant,
) -> Result<Met, ToolError> {
    let started = Instant::now();
    let mut watch = Watch {
        session,
        delivery: Delivery::new(context.sink, context.secrets),
        passed_on: begin,
        begin,
        matched_to: match until {
            Until::Matches(_, from) => *from,
            _ => 0,
        },
        started,
        looks: session.standing().looks,
        look_at: started + FIRST_LOOK,
        look_every: FIRST_LOOK,
    };
    loop {
        // Before the look at the call: a cancel after that shows as a change of it.
        let standing = session.standing();
        if context.cancel.is_cancelled() || watch.delivery.is_gone() {
            return Err(ToolError::cancelled("the call was cancelled"));
        }
        watch.pass_on(&standing);
        if watch.is_met(&standing, until) {
            return Ok(Met::Yes);
        }
        let now = Instant::now();
        if standing.ended.is_some() || now >= deadline {
            return Ok(Met::No);
        }
        let next = watch.look_when_due(&standing, until, now);
        session.wait_beyond(&standing, deadline.min(next));
    }
}

/// Has a running session looked at, so that what it does is known as of now.
pub(crate) fn look(session: &Session) -> Standing {
    let before = session.standing();
    session.ask_look(None);
    let deadline = Instant::now() + LOOK_TIMEOUT;
    loop {
        let standing = session.standing();
        let is_known = standing.looks > before.looks || standing.ended.is_some();
        if is_known || Instant::now() >= deadline {
            return standing;
        }
        session.wait_beyond(&standing, deadline);
    }
}

struct Watch<'a> {
    session: &'a Session,
    delivery: Delivery<'a>,
    passed_on: u64,
    /// Where the output begins that is waited for.
    begin: u64,
    /// Up to where a pattern was looked for.
    matched_to: u64,
    started: Instant,
    /// How often it had been looked at when it was last asked for.
    looks: u64,
    look_at: Instant,
    look_every: Duration,
}

impl Watch<'_> {
    /// Passes on what came. What a slow reader does not take in time it gets with the result.
    fn pass_on(&mut self, standing: &Standing) {
        self.delivery.retry();
        self.passed_on = self.passed_on.max(standing.begin);
        while !self.delivery.is_waiting() && self.passed_on < standing.end {
            let mut piece = self.session.bytes(self.passed_on, PIECE);
            piece.truncate(piece.len() - crate::process::utf8::unfinished_character(&piece));
            if piece.is_empty() {
                return;
            }
            self.passed_on += piece.len() as u64;
            self.delivery.offer(OutputStream::Stdout, Bytes::from(piece));
        }
    }

    fn is_met(&mut self, standing: &Standing, until: &Until) -> bool {
        match until {
            Until::Time => false,
            Until::Matches(pattern, from) => self.has_matched(standing, pattern, *from),
            Until::Listens(_) => {
                standing.looks > self.looks && standing.look.is_some_and(|look| look.listening)
            }
            Until::Settled => {
                let quiet = self.quiet(standing);
                let waits = standing.looks > self.looks
                    && !standing.has_unread_input
                    && standing.look.is_some_and(|look| look.waiting.is_some());
                (waits && quiet >= SETTLED) || (standing.end > self.begin && quiet >= SILENT)
            }
        }
    }

    fn quiet(&self, standing: &Standing) -> Duration {
        Instant::now().saturating_duration_since(standing.last_output.max(self.started))
    }

    fn has_matched(&mut self, standing: &Standing, pattern: &Regex, from: u64) -> bool {
        let mut at = self.matched_to.saturating_sub(OVERLAP as u64).max(from).max(standing.begin);
        while at < standing.end {
            let bytes = self.session.bytes(at, PIECE);
            if pattern.is_match(&text::plain(&bytes)) {
                return true;
            }
            let end = at + bytes.len() as u64;
            self.matched_to = end;
            if end >= standing.end || bytes.len() <= OVERLAP {
                break;
            }
            at = end - OVERLAP as u64;
        }
        false
    }

    /// Has it looked at, where that tells what is waited for. Returns when to look again.
    fn look_when_due(&mut self, standing: &Standing, until: &Until, now: Instant) -> Instant {
        let port = match until {
            Until::Time | Until::Matches(..) => return now + LAST_LOOK,
            Until::Settled => None,
            Until::Listens(port) => Some(*port),
        };
        let quiet = self.quiet(standing);
        if port.is_none() && quiet < FIRST_LOOK {
            // It is at work.
            (self.look_every, self.look_at) = (FIRST_LOOK, now + FIRST_LOOK - quiet);
        } else if now >= self.look_at {
            self.looks = standing.looks;
            self.session.ask_look(port);
            self.look_at = now + self.look_every;
            self.look_every = (2 * self.look_every).min(LAST_LOOK);
        }
        let silent = (port.is_none() && quiet < SILENT).then(|| now + SILENT - quiet);
        let settled = (port.is_none() && quiet < SETTLED).then(|| now + SETTLED - quiet);
        [Some(self.look_at), silent, settled].into_iter().flatten().min().unwrap_or(self.look_at)
    }
}
