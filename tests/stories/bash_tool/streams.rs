//! What is streamed while a command runs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;
use tool_provider::OutputStream::{Stderr, Stdout};
use tool_provider::{CancelToken, EmitError, Event, EventSink};
use workspace_tools::process::{Environment, Requested};

use super::fixture::{Collector, Fixture};
use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        both_streams_come_in_the_order_of_arrival,
        a_line_is_streamed_while_the_command_goes_on,
        a_character_is_never_split_between_events,
        both_streams_are_read_at_the_same_time,
        secrets_are_masked_in_events_results_and_errors,
        a_slow_reader_slows_the_command_and_loses_nothing,
        a_reader_that_reads_nothing_cannot_hold_up_the_timeout,
        a_receiver_that_is_gone_ends_the_command,
    ]
}

fn both_streams_come_in_the_order_of_arrival() {
    let fixture = Fixture::new();
    let answer = fixture.run(json!({"command":
        "echo o1; sleep .2; echo e1 >&2; sleep .2; echo o2; sleep .2; echo e2 >&2"}));
    let expected = [(Stdout, "o1\n"), (Stderr, "e1\n"), (Stdout, "o2\n"), (Stderr, "e2\n")];
    let expected = expected.map(|(stream, text)| (stream, text.to_owned()));
    assert_eq!(answer.streamed(), expected);
    assert_eq!(answer.result()["output"], "o1\ne1\no2\ne2\n");
    let Some(Event::Progress { message, .. }) = answer.events.first() else { panic!() };
    let answer = message.strip_prefix("started (pid ").and_then(|rest| rest.split_once(')'));
    let (pid, counted) = answer.expect(message);
    assert_ne!(pid.parse::<u32>().unwrap(), 0, "{message}");
    // Before Linux 6.13 a confined thread cannot learn the machine's number.
    assert!(matches!(counted, "" | " in the jail"), "{message}");
}

fn a_line_is_streamed_while_the_command_goes_on() {
    let fixture = Fixture::new();
    let answer = fixture.cancelled(json!({"command": "echo first; sleep 300"}), "first");
    assert_eq!(answer.streamed(), [(Stdout, "first\n".to_owned())]);
}

fn a_character_is_never_split_between_events() {
    let fixture = Fixture::new();
    let answer = fixture.run(json!({"command":
        r"printf '\xe2'; sleep .1; printf '\x82' ; sleep .1; printf '\xac!'"}));
    for event in &answer.events {
        if let Event::Output { data, .. } = event {
            std::str::from_utf8(data).unwrap();
        }
    }
    assert_eq!(answer.streamed(), [(Stdout, "€!".to_owned())]);
}

fn both_streams_are_read_at_the_same_time() {
    let fixture = Fixture::new();
    let answer = fixture.run(json!({"command":
        "head -c 1M /dev/zero >&2; head -c 1M /dev/zero; echo end"}));
    let of = |wanted| {
        let pieces = answer.streamed().into_iter().filter(move |(stream, _)| *stream == wanted);
        pieces.map(|(_, text)| text.len()).sum::<usize>()
    };
    assert_eq!((of(Stdout), of(Stderr)), ((1 << 20) + 4, 1 << 20));
    // A terminal shows nothing of all the zeros.
    assert_eq!(answer.result()["output"], "end\n");
}

fn secrets_are_masked_in_events_results_and_errors() {
    let own = [("PATH", "/usr/bin:/bin"), ("TOKEN", "hunter2-secret")];
    let own = own.map(|(name, value)| (name.into(), value.into()));
    let secret_env = ["TOKEN".to_owned()];
    let requested =
        Requested { env: Some(&BTreeMap::new()), secret_env: &secret_env, ..Requested::default() };
    let environment = Environment::choose(own, requested).unwrap();
    let fixture = Fixture::with(|settings| {
        settings.environment = environment;
        settings.output_bytes = 200;
    });
    let command = "echo start; printf hunter2; sleep .2; printf -- '-secret\n'; echo $TOKEN >&2; \
                   seq 1 200; echo hunter2-secret";
    let answer = fixture.run(json!({ "command": command }));
    let everything = format!("{:?} {:?}", answer.streamed(), answer.result());
    assert!(!everything.contains("hunter2-secret"), "{everything}");
    let streamed: String = answer.streamed().into_iter().map(|(_, text)| text).collect();
    assert_eq!(streamed.matches("[TOKEN]").count(), 3, "{streamed}");
    let full = super::fixture::read(answer.result()["full_output_path"].as_str().unwrap());
    assert_eq!(full.matches("[TOKEN]").count(), 3);

    let answer = fixture.run(json!({"command": "echo $TOKEN; sleep 300", "timeout_ms": 5000}));
    let details = format!("{} {:?}", answer.error(), answer.error().details());
    assert!(!answer.error().is_retryable());
    assert!(details.contains("[TOKEN]") && !details.contains("hunter2-secret"), "{details}");
}

/// Takes one event at a time, and only on demand.
#[derive(Default)]
struct SlowReader {
    inner: Collector,
    last: Mutex<Option<Instant>>,
    gap: Duration,
}

impl EventSink for SlowReader {
    fn emit_until(&self, event: Event, deadline: Option<Instant>) -> Result<(), EmitError> {
        let mut last = self.last.lock().unwrap();
        let free = last.map_or_else(Instant::now, |last| last + self.gap);
        if let Some(deadline) = deadline
            && free > deadline
        {
            std::thread::sleep(deadline.saturating_duration_since(Instant::now()));
            return Err(EmitError::TimedOut);
        }
        std::thread::sleep(free.saturating_duration_since(Instant::now()));
        *last = Some(Instant::now());
        self.inner.emit_until(event, deadline)
    }
}

fn a_slow_reader_slows_the_command_and_loses_nothing() {
    let fixture = Fixture::new();
    let slow = Arc::new(SlowReader { gap: Duration::from_millis(50), ..SlowReader::default() });
    let command =
        "for i in $(seq 1 16); do head -c 65536 /dev/zero | tr '\\0' x; done; echo; echo end";
    let result = fixture
        .run_into(json!({"command": command}), slow.clone(), &CancelToken::new(), None)
        .unwrap();
    let streamed: usize = slow
        .inner
        .taken()
        .iter()
        .map(|event| if let Event::Output { data, .. } = event { data.len() } else { 0 })
        .sum();
    assert_eq!(streamed, 16 * 65536 + 5);
    assert!(result["output"].as_str().unwrap().ends_with("x\nend\n"));
    assert!(matches!(slow.inner.taken().last(), Some(Event::Exit { code: 0, .. })));
}

/// A window that is full for ever.
struct Stuck;

impl EventSink for Stuck {
    fn emit_until(&self, _event: Event, deadline: Option<Instant>) -> Result<(), EmitError> {
        let deadline = deadline.expect("bash never waits without an end");
        std::thread::sleep(deadline.saturating_duration_since(Instant::now()));
        Err(EmitError::TimedOut)
    }
}

fn a_reader_that_reads_nothing_cannot_hold_up_the_timeout() {
    let fixture = Fixture::new();
    let arguments = json!({"command": "yes", "timeout_ms": 2000});
    let error =
        fixture.run_into(arguments, Arc::new(Stuck), &CancelToken::new(), None).unwrap_err();
    assert_eq!(error.category().name(), "timeout");
    let details = error.details();
    assert!(details["output"].as_str().unwrap().starts_with("y\ny\n"), "{details:?}");
    assert_eq!(details["exit_code"], 143);
}

/// A receiver that goes away after some output.
struct Leaving(Mutex<usize>);

impl EventSink for Leaving {
    fn emit_until(&self, _event: Event, _deadline: Option<Instant>) -> Result<(), EmitError> {
        let mut left = self.0.lock().unwrap();
        *left = left.saturating_sub(1);
        if *left == 0 { Err(EmitError::Closed) } else { Ok(()) }
    }
}

fn a_receiver_that_is_gone_ends_the_command() {
    let fixture = Fixture::new();
    let leaving = Arc::new(Leaving(Mutex::new(20)));
    let error = fixture
        .run_into(json!({"command": "yes"}), leaving, &CancelToken::new(), None)
        .unwrap_err();
    assert_eq!(error.category().name(), "cancelled");
    assert!(error.details()["stdout_bytes"].as_u64().unwrap() > 0);
}
