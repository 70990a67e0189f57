//! One call, from its request to the end of its stream.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::observe::{ObservedError, ObservedEvent, Observer, Refusal, Sent};
use tool_provider::Payload;

/// How many events of a call are looked at. More are no call that a checker makes.
const MOST_EVENTS: usize = 100_000;
/// And how many bytes of them: one event may have megabytes.
const MOST_BYTES: usize = 128 << 20;

/// What became of a call.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) events: Vec<ObservedEvent>,
    pub(crate) outcome: StreamOutcome,
}

/// How a stream of events ended.
#[derive(Debug)]
pub(crate) enum StreamOutcome {
    /// In order.
    Closed,
    /// With a status, or there was no stream at all.
    Refused(Refusal),
    /// It did not.
    Open,
}

impl Run {
    /// Makes the call and reads its events, at most for `limit`.
    pub(crate) async fn of(
        mut observer: Observer,
        call: Option<Sent>,
        deadline: Option<Duration>,
        limit: Duration,
    ) -> Self {
        let end = Instant::now() + limit;
        let mut events = Vec::new();
        let mut stream = match timeout_at(end, observer.invoke(call, deadline)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(refusal)) => return Self { events, outcome: StreamOutcome::Refused(refusal) },
            Err(_) => return Self { events, outcome: StreamOutcome::Open },
        };
        let mut bytes = 0;
        while events.len() < MOST_EVENTS && bytes < MOST_BYTES {
            match timeout_at(end, stream.next()).await {
                Ok(Some(Ok(event))) => {
                    bytes += weight(&event);
                    events.push(event);
                }
                Ok(Some(Err(refusal))) => {
                    return Self { events, outcome: StreamOutcome::Refused(refusal) };
                }
                Ok(None) => return Self { events, outcome: StreamOutcome::Closed },
                Err(_) => break,
            }
        }
        Self { events, outcome: StreamOutcome::Open }
    }

    /// The payload of its result, if it is one.
    pub(crate) fn result(&self) -> Option<&Payload> {
        self.events.iter().find_map(|event| match event {
            ObservedEvent::Result(Some(Ok(payload))) => Some(payload),
            _ => None,
        })
    }

    /// Its error.
    pub(crate) fn error(&self) -> Option<&ObservedError> {
        self.events.iter().find_map(|event| match event {
            ObservedEvent::Error(error) => Some(error),
            _ => None,
        })
    }

    /// Everything that a command printed to standard output.
    pub(crate) fn stdout(&self) -> Vec<u8> {
        let mut output = Vec::new();
        for event in &self.events {
            if let ObservedEvent::Output { stream: 1, data } = event {
                output.extend_from_slice(data);
            }
        }
        output
    }

    /// How it ended, in words.
    pub(crate) fn outcome(&self) -> String {
        let last = match (self.error(), &self.outcome) {
            (Some(error), StreamOutcome::Closed) => return format!("an error: {}", shown(error)),
            (_, StreamOutcome::Refused(refusal)) => format!("{refusal}"),
            (_, StreamOutcome::Open) => "a stream that stays open".to_owned(),
            (None, StreamOutcome::Closed) if self.result().is_some() => {
                return "a result".to_owned();
            }
            (None, StreamOutcome::Closed) => "the end of the stream".to_owned(),
        };
        format!("{} events, then {last}", self.events.len())
    }

    /// All text in it.
    pub(crate) fn text(&self) -> String {
        let piece = |event: &ObservedEvent| match event {
            ObservedEvent::Output { data, .. } => String::from_utf8_lossy(data).into_owned(),
            ObservedEvent::Progress { message, .. } => message.clone(),
            ObservedEvent::Result(Some(Ok(payload))) => {
                serde_json::Value::Object(payload.clone()).to_string()
            }
            ObservedEvent::Error(error) => format!("{error:?}"),
            _ => String::new(),
        };
        self.events.iter().map(piece).collect::<Vec<_>>().concat()
    }
}

/// An error in words.
pub(crate) fn shown(error: &ObservedError) -> String {
    format!("{} {:?}", category_name(error.category), error.message)
}

pub(crate) const INVALID_ARGUMENTS: i32 = 1;
pub(crate) const NOT_FOUND: i32 = 2;
pub(crate) const TIMEOUT: i32 = 5;
pub(crate) const CONCURRENCY_CONFLICT: i32 = 6;
pub(crate) const CANCELLED: i32 = 7;
pub(crate) const PROCESS_CRASHED: i32 = 8;
pub(crate) const UNKNOWN: i32 = 9;

/// The name of a ToolErrorCategory; nothing for a number that is none.
pub(crate) fn category(number: i32) -> Option<&'static str> {
    const NAMES: [&str; 9] = [
        "invalid_arguments",
        "not_found",
        "permission_denied",
        "execution_failed",
        "timeout",
        "concurrency_conflict",
        "cancelled",
        "process_crashed",
        "unknown",
    ];
    NAMES.get(usize::try_from(number).ok()?.checked_sub(1)?).copied()
}

pub(crate) fn category_name(number: i32) -> String {
    category(number).map_or_else(|| format!("category {number}"), str::to_owned)
}

/// About how many bytes an event keeps. A call has one end; what sends more of them, each with
/// megabytes in it, is not listened to for long.
fn weight(event: &ObservedEvent) -> usize {
    match event {
        ObservedEvent::Output { data, .. } => data.len(),
        ObservedEvent::Progress { message, .. } => message.len(),
        ObservedEvent::Result(_) | ObservedEvent::Error(_) => MOST_BYTES / 8,
        ObservedEvent::Empty | ObservedEvent::Partial | ObservedEvent::Exit { .. } => 0,
    }
}
