//! Commands that say nothing, and commands that wait for what nobody will give them.

use std::sync::Arc;
use std::time::Duration;

use sandbox::Level;
use serde_json::json;
use tool_provider::{CancelToken, Category, Event};

use super::fixture::{Answer, Collector, Fixture};
use crate::trials::{Need, Trial};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_silent_command_is_reported_to_be_still_there_and_one_that_prints_is_not,
        a_timeout_says_who_waited_for_somebody_to_type
            needs [Need::Program("python3"), Need::Tracing],
        a_command_that_waits_for_input_is_reported_while_it_waits needs [Need::Tracing],
    ]
}

fn silence_reports(answer: &Answer) -> Vec<&str> {
    let messages = answer.events.iter().filter_map(|event| match event {
        Event::Progress { message, fraction: None } => Some(message.as_str()),
        _ => None,
    });
    messages.filter(|message| message.starts_with("no output for")).collect()
}

fn a_silent_command_is_reported_to_be_still_there_and_one_that_prints_is_not() {
    let fixture = Fixture::with(|settings| settings.quiet_every = Duration::from_millis(20));
    let answer = fixture.run(json!({"command": "sleep 1; echo hi"}));
    let silence = silence_reports(&answer);
    assert!(silence.len() >= 2, "{:?}", answer.events);
    assert!(silence.iter().all(|message| message.ends_with(" s, still running")), "{silence:?}");
    assert_eq!(answer.result()["output"], "hi\n");

    let patient = Fixture::with(|settings| settings.quiet_every = Duration::from_secs(60));
    let answer = patient.run(json!({"command": "sleep 1; echo hi"}));
    assert_eq!(silence_reports(&answer), [""; 0]);
}

fn a_timeout_says_who_waited_for_somebody_to_type() {
    let fixture = Fixture::new();
    let hint = |command: &str, timeouts: &[u64]| {
        let mut hint = String::new();
        for timeout in timeouts {
            let answer = fixture.run(json!({"command": command, "timeout_ms": timeout}));
            assert_eq!(answer.error().category(), Category::Timeout);
            hint = answer.error().hint().unwrap_or_default().to_owned();
            if hint.contains("waiting") {
                break;
            }
        }
        hint
    };
    // On a busy machine it takes a while until a program has come to the point where it waits.
    const UNTIL_SEEN: &[u64] = &[700, 3000, 20_000];
    const ONCE: &[u64] = &[1500];
    let terminal = |command: &str| {
        format!("python3 -c 'import pty; pty.spawn([\"sh\", \"-c\", \"{command}\"])'")
    };
    // Below the full level there are no terminals to wait at.
    if fixture.jail.enforcement().level == Level::Full {
        let asked = hint(&terminal("read answer"), UNTIL_SEEN);
        assert!(asked.contains("sh (pid ") && asked.contains("somebody to type"), "{asked}");
        let busy = hint(&terminal("sleep 300"), ONCE);
        assert!(!busy.contains("waiting"), "{busy}");
    }
    let pipe = hint("test -p p || mkfifo p; cat p", UNTIL_SEEN);
    assert!(pipe.contains("waiting for the other end of a named pipe"), "{pipe}");
    // That one program waits for another is no news.
    let piped = hint("sleep 300 | cat", ONCE);
    assert!(!piped.contains("waiting"), "{piped}");
}

fn a_command_that_waits_for_input_is_reported_while_it_waits() {
    let fixture = Fixture::new();
    let (collector, cancel) = (Arc::new(Collector::default()), CancelToken::new());
    let arguments = json!({"command": "mkfifo p; cat p"});
    let answer = fixture.start(arguments, collector.clone(), &cancel, None);
    collector.wait_for_progress("cat waits for the other end of a named pipe");
    cancel.cancel();
    assert_eq!(answer.recv().unwrap().unwrap_err().category(), Category::Cancelled);
}
