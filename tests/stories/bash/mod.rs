//! Commands over the wire: what a host sees of one, and that none outlives its call.

mod cases;
mod ends;
pub(crate) mod own_socket;

use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use serde_json::json;
use tool_provider::grpc::{InvokeItem, InvokeStream};
use tool_provider::{Event, OutputStream};

use crate::harness::{Fixture, TEST_TIMEOUT};
use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    let own = trials![a_command_is_streamed_and_ends_with_its_status_and_result,];
    [own, cases::trials(), ends::trials(), own_socket::trials()].into_iter().flatten().collect()
}

/// Processes whose command line holds `text`.
pub(crate) fn running(text: &str) -> usize {
    let lines = std::fs::read_dir("/proc").unwrap().flatten();
    lines
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .filter(|line| String::from_utf8_lossy(line).contains(text))
        .count()
}

/// A duration for sleep(1) by which a story knows its own processes.
pub(crate) fn mark(seconds: u32) -> String {
    format!("{seconds}.{:07}", std::process::id())
}

pub(crate) async fn gone(text: &str) {
    let until = Instant::now() + TEST_TIMEOUT;
    while running(text) > 0 {
        assert!(Instant::now() < until, "{text} still runs");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until a command has printed this.
pub(crate) async fn next_output(stream: &mut InvokeStream, cue: &str) {
    next_outputs(stream, &[cue]).await;
}

/// Waits until a command has printed all of these, on whichever of its streams.
pub(crate) async fn next_outputs(stream: &mut InvokeStream, cues: &[&str]) {
    let mut printed = String::new();
    while !cues.iter().all(|cue| printed.contains(cue)) {
        let item =
            tokio::time::timeout(TEST_TIMEOUT, stream.next()).await.unwrap().unwrap().unwrap();
        match item {
            InvokeItem::Event(Event::Output { data, .. }) => {
                printed.push_str(std::str::from_utf8(&data).unwrap());
            }
            InvokeItem::Event(_) => {}
            ended => panic!("{ended:?} after {printed:?}"),
        }
    }
}

async fn a_command_is_streamed_and_ends_with_its_status_and_result() {
    let mut fixture = Fixture::configured().await;
    fixture.write("file", "content\n");
    let (events, outcome) =
        fixture.call("bash", json!({"command": "cat file; echo oops >&2; exit 3"})).await;
    let result = outcome.unwrap();
    assert!(
        matches!(&events[0], Event::Progress { message, .. } if message.starts_with("started"))
    );
    let of = |wanted: OutputStream| {
        let pieces = events.iter().filter_map(move |event| match event {
            Event::Output { stream, data } if *stream == wanted => Some(data.to_vec()),
            _ => None,
        });
        String::from_utf8(pieces.flatten().collect()).unwrap()
    };
    assert_eq!(
        (of(OutputStream::Stdout), of(OutputStream::Stderr)),
        ("content\n".into(), "oops\n".into())
    );
    assert_eq!(events.last(), Some(&Event::Exit { code: 3, signal: None }));
    let expected = json!({"tool": "bash", "exit_code": 3, "output": "content\noops\n"});
    assert_eq!(serde_json::Value::Object(result), expected, "and nothing else");
    fixture.end().await;
}
