//! Sessions: commands that outlive the call that started them, and never their session.

pub(crate) mod ends;
mod output;
mod servers;
mod terminals;
mod waits;

use std::time::Instant;

use serde_json::{Value, json};
use tool_provider::{Call, Event, Payload};

use crate::harness::{Fixture, TEST_TIMEOUT, call};
use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    [servers::trials(), output::trials(), ends::trials(), terminals::trials(), waits::trials()]
        .into_iter()
        .flatten()
        .collect()
}

impl Fixture {
    /// The result of a session tool's call that succeeds.
    pub(crate) async fn session(&mut self, tool: &str, arguments: Value) -> Payload {
        let (_, outcome) = self.call(tool, arguments).await;
        outcome.unwrap_or_else(|failure| panic!("{failure:?}"))
    }

    /// Reads a session until its state is one of these.
    pub(crate) async fn session_in(&mut self, session: &str, states: &[&str]) -> Payload {
        let until = Instant::now() + TEST_TIMEOUT;
        loop {
            let read = json!({"session": session, "wait_ms": 100});
            let read = self.session("session_read", read).await;
            if states.contains(&text(&read, "state")) {
                return read;
            }
            assert!(Instant::now() < until, "never {states:?}: {read:?}");
        }
    }
}

pub(crate) fn text<'a>(payload: &'a Payload, field: &str) -> &'a str {
    payload.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// A call in another session of the host.
fn of_another(tool: &str, arguments: Value) -> Call {
    Call { session_id: "session-2".to_owned(), ..call(tool, arguments) }
}

fn exits(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event, Event::Exit { .. })).count()
}
