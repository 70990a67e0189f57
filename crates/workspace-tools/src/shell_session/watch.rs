//! A call that waits for a session, and passes on what the session prints meanwhile.

use std::time::{Duration, Instant};

use bytes::Bytes;
use regex_automata::meta::Regex;

use super::echo::without_echo;
use crate::Context;
use crate::process::delivery::Delivery;
use crate::process::session::{Session, Standing, text};
use tool_provider::{OutputStream, ToolError};

/// For how long nothing may come before a session that waits for input counts as done with what it did.
const SETTLED: Duration = Duration::from_millis(40);

/// The same while a program has the whole screen, which must be seen to wait twice: one that was told to quit
/// polls its input in between, and restores the terminal a moment later.
const SETTLED_ON_SCREEN: Duration = Duration::from_millis(150);
const LOOKS_ON_SCREEN: u32 = 2;

/// The same for one that does not, or of which that is not known.
const SILENT: Duration = Duration::from_millis(500);

/// For how long nothing may come before a session that waits for input counts as one that will not print what
/// is waited for: it asks something, or was told nothing that makes it go on.
const ASKS: Duration = Duration::from_secs(1);

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
    /// That it waits for input.
    WaitsForInput,
    /// That what it printed matches.
    Matches(Wanted),
    /// That it listens on a port.
    Listens(u16),
}

/// What is looked for in the output.
pub(crate) struct Wanted {
    pub(crate) pattern: Regex,
    /// Where the output begins that counts.
    pub(crate) from: u64,
    /// What was typed to a terminal, whose echo does not count.
    pub(crate) echo: Option<String>,
    pub(crate) asks: Asks,
}

/// What is done where the session waits for input instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asks {
    /// The wait goes on: others may type.
    GoOn,
    /// The wait ends, once nothing comes any more.
    Return,
}

/// Where in the output something was found, in bytes from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Where its line begins.
    pub(crate) begin: u64,
    pub(crate) end: u64,
}

/// What a wait came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Met {
    /// What was waited for.
    Yes,
    /// What was looked for in the output.
    Matched(Found),
    /// The session's end, or that of the time.
    No,
}

impl Met {
    pub(crate) fn found(self) -> Option<Found> {
        if let Self::Matched(found) = self { Some(found) } else { None }
    }
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
            Until::Matches(wanted) => wanted.from,
            _ => 0,
        },
        started,
        asked_unread: true,
        waiting_looks: (0, 0),
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
        if let Some(met) = watch.met(&standing, until) {
            return Ok(met);
        }
        let now = Instant::now();
        if standing.ended.is_some() || now >= deadline {
            return Ok(Met::No);
        }
        let next = watch.look_when_due(&standing, until, now);
        session.wait_beyond(&standing, deadline.min(next));
    }
}

/// Has a running session looked at, so that what it does, and on which ports it listens, is known as of now.
pub(crate) fn look(session: &Session) -> Standing {
    let before = session.standing();
    session.ask_look(true);
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
    /// Whether it had not read all of its input then: what the look tells may be of before it did.
    asked_unread: bool,
    /// How many looks in a row showed it waiting, up to which look.
    waiting_looks: (u32, u64),
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

    fn met(&mut self, standing: &Standing, until: &Until) -> Option<Met> {
        let is_met = match until {
            Until::Time => false,
            Until::Matches(wanted) => {
                if let Some(found) = self.matched(standing, wanted) {
                    return Some(Met::Matched(found));
                }
                let asks = wanted.asks == Asks::Return && self.waits(standing);
                return (asks && self.quiet(standing) >= ASKS).then_some(Met::No);
            }
            Until::Listens(port) => {
                let listens = standing.looks > self.looks && standing.ports().contains(port);
                if !listens && self.waits(standing) && self.quiet(standing) >= ASKS {
                    return Some(Met::No);
                }
                listens
            }
            Until::WaitsForInput => self.has_settled(standing),
            Until::Settled => {
                let is_silent = !standing.holds_back && self.quiet(standing) >= SILENT;
                self.has_settled(standing) || (standing.end > self.begin && is_silent)
            }
        };
        is_met.then_some(Met::Yes)
    }

    fn has_settled(&mut self, standing: &Standing) -> bool {
        let waits = self.waits(standing);
        let (count, counted) = self.waiting_looks;
        if standing.looks > counted {
            self.waiting_looks = (if waits { count + 1 } else { 0 }, standing.looks);
        }
        let (quiet, looks) = match standing.is_full_screen {
            true => (SETTLED_ON_SCREEN, LOOKS_ON_SCREEN),
            false => (SETTLED, 1),
        };
        waits && self.quiet(standing) >= quiet && self.waiting_looks.0 >= looks
    }

    /// Whether it waits for input, as seen after it had read all that was typed.
    fn waits(&self, standing: &Standing) -> bool {
        standing.looks > self.looks
            && !self.asked_unread
            && !standing.has_unread_input
            && standing.waits()
    }

    fn quiet(&self, standing: &Standing) -> Duration {
        Instant::now().saturating_duration_since(standing.last_output.max(self.started))
    }

    fn matched(&mut self, standing: &Standing, wanted: &Wanted) -> Option<Found> {
        let least = wanted.from.max(standing.begin);
        let typed = wanted.echo.as_deref().unwrap_or_default();
        let first = PIECE + 2 * typed.len();
        if !typed.is_empty() && standing.end <= least + first as u64 {
            let bytes = self.session.bytes(least, first);
            self.matched_to = least + bytes.len() as u64;
            return find(&bytes, least, |text| wanted.pattern.is_match(&without_echo(text, typed)));
        }
        let mut at = self.matched_to.saturating_sub(OVERLAP as u64).max(least);
        while at < standing.end {
            let bytes = self.session.bytes(at, PIECE);
            if let Some(found) = find(&bytes, at, |text| wanted.pattern.is_match(text)) {
                return Some(found);
            }
            let end = at + bytes.len() as u64;
            self.matched_to = end;
            if end >= standing.end || bytes.len() <= OVERLAP {
                break;
            }
            at = end - OVERLAP as u64;
        }
        None
    }

    /// Has it looked at, where that tells what is waited for. Returns when to look again.
    fn look_when_due(&mut self, standing: &Standing, until: &Until, now: Instant) -> Instant {
        let at_ports = match until {
            Until::Time | Until::Matches(Wanted { asks: Asks::GoOn, .. }) => {
                return now + LAST_LOOK;
            }
            Until::Settled | Until::WaitsForInput | Until::Matches(_) => false,
            Until::Listens(_) => true,
        };
        let quiet = self.quiet(standing);
        if !at_ports && quiet < FIRST_LOOK {
            // It is at work.
            (self.look_every, self.look_at) = (FIRST_LOOK, now + FIRST_LOOK - quiet);
        } else if now >= self.look_at {
            self.looks = standing.looks;
            self.asked_unread = standing.has_unread_input;
            self.session.ask_look(at_ports);
            self.look_at = now + self.look_every;
            self.look_every = (2 * self.look_every).min(LAST_LOOK);
        }
        let silent = (!at_ports && quiet < SILENT).then(|| now + SILENT - quiet);
        let settled = if standing.is_full_screen { SETTLED_ON_SCREEN } else { SETTLED };
        let settled = (!at_ports && quiet < settled).then(|| now + settled - quiet);
        [Some(self.look_at), silent, settled].into_iter().flatten().min().unwrap_or(self.look_at)
    }
}

/// Where what `is_match` knows is in output that begins at `at`. The end is where the text first matches: what
/// is shown of some bytes is no part of them that a place in it could be reckoned back from.
fn find(bytes: &[u8], at: u64, is_match: impl Fn(&str) -> bool) -> Option<Found> {
    if !is_match(&text::plain(bytes)) {
        return None;
    }
    let (mut without, mut with) = (0, bytes.len());
    while with - without > 1 {
        let middle = without + (with - without) / 2;
        match is_match(&text::plain(&bytes[..middle])) {
            true => with = middle,
            false => without = middle,
        }
    }
    let begin = memchr::memrchr(b'\n', &bytes[..without]).map_or(0, |newline| newline + 1);
    Some(Found { begin: at + begin as u64, end: at + with as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_told_by_the_line_in_which_it_ends() {
        let found =
            find(b"one\n\x1b[31mtwo\x1b[0m three\nfour", 100, |text| text.contains("two t"));
        assert_eq!(found, Some(Found { begin: 104, end: 118 }));
        assert_eq!(find(b"one", 0, |text| text.contains("two")), None);
    }
}
