//! Commands over the wire: what a kernel sees of one, and that none outlives its call.

use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tool_provider::Call;
use tool_provider::grpc::{InvokeItem, InvokeStream};
use tool_provider::{Event, OutputStream};

use crate::harness::{PATIENCE, Story, call};

#[path = "bash/cases.rs"]
mod cases;
#[path = "bash/ends.rs"]
mod ends;
#[path = "bash/own_socket.rs"]
mod own_socket;

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
    let until = Instant::now() + PATIENCE;
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
        let item = tokio::time::timeout(PATIENCE, stream.next()).await.unwrap().unwrap().unwrap();
        match item {
            InvokeItem::Event(Event::Output { data, .. }) => {
                printed.push_str(std::str::from_utf8(&data).unwrap());
            }
            InvokeItem::Event(_) => {}
            ended => panic!("{ended:?} after {printed:?}"),
        }
    }
}

#[tokio::test]
async fn a_command_is_streamed_and_ends_with_its_status_and_result() {
    let mut story = Story::configured().await;
    story.write("file", "content\n");
    let (events, outcome) =
        story.call("bash", json!({"command": "cat file; echo oops >&2; exit 3"})).await;
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
    assert_eq!((&result["exit_code"], &result["stdout_bytes"]), (&json!(3), &json!(8)));
    story.end().await;
}

/// T07: a stream that is dropped while nothing is being sent ends the command.
#[tokio::test]
async fn a_dropped_stream_ends_a_silent_command() {
    let mut story = Story::configured().await;
    let mark = mark(782);
    let command = format!("setsid sleep {mark} & echo start; sleep {mark}");
    let mut stream =
        story.client.invoke(call("bash", json!({ "command": command }))).await.unwrap();
    next_output(&mut stream, "start").await;
    // Not the shell, whose arguments name the mark as well.
    let sleep = format!("sleep\0{mark}\0");
    let until = Instant::now() + PATIENCE;
    while running(&sleep) < 2 {
        assert!(Instant::now() < until, "the command does not get going");
        tokio::task::yield_now().await;
    }
    drop(stream);
    gone(&mark).await;
    let after = story.call("bash", json!({"command": "echo fine"})).await.1.unwrap();
    assert_eq!(after["output"], "fine\n");
    story.end().await;
}

/// T07: what there is comes before the kernel gives up.
#[tokio::test]
async fn a_short_deadline_still_brings_the_output_so_far() {
    let mut story = Story::configured().await;
    let mark = mark(783);
    let command = format!("echo start; sleep {mark}");
    let deadline = Some(Instant::now() + Duration::from_secs(3));
    let call = Call { deadline, ..call("bash", json!({ "command": command })) };
    let (_, outcome) = story.client.invoke_to_end(call).await.unwrap();
    let failure = outcome.unwrap_err();
    assert_eq!(failure.category, "timeout");
    assert_eq!(failure.details["output"], "start\n");
    gone(&mark).await;
    story.end().await;
}

/// B03: a provider that is killed takes every process of its calls along.
#[tokio::test]
async fn a_killed_provider_takes_its_commands_along() {
    let mut story = Story::configured().await;
    let mark = mark(784);
    let command =
        format!("setsid sleep {mark} & (setsid sleep {mark} &) ; echo start; sleep {mark}");
    let mut stream =
        story.client.invoke(call("bash", json!({ "command": command }))).await.unwrap();
    next_output(&mut stream, "start").await;
    let pid = Pid::from_raw(i32::try_from(story.pid()).unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    gone(&mark).await;
}
