//! Calls: events, refusals, cancellation, files that want to block or flood.

use std::os::unix::net::UnixListener;
use std::process::Command;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use serde_json::json;
use tool_provider::Call;

use crate::harness::{Fixture, TEST_TIMEOUT, call};
use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_file_is_read_from_the_root_or_from_the_working_directory,
        before_configure_and_for_unknown_tools_there_is_one_error_event,
        slips_in_the_arguments_are_all_reported_at_once,
        a_slip_that_can_only_mean_one_thing_costs_no_turn,
        special_files_answer_at_once_with_their_type,
        huge_files_cost_little_memory,
        cancelled_calls_leave_nothing_behind,
        a_call_whose_time_is_up_says_so_before_the_host_gives_up,
        many_calls_at_once_all_get_their_own_answer,
        large_messages_pass_both_ways,
        calls_beyond_the_limit_wait_for_their_turn,
        thousands_of_calls_share_one_connection,
    ]
}

async fn a_file_is_read_from_the_root_or_from_the_working_directory() {
    let mut fixture = Fixture::configured().await;
    std::fs::create_dir(fixture.path("src")).unwrap();
    fixture.write("src/main.rs", "fn main() {}\n");
    for path in ["src/main.rs".to_owned(), fixture.path("src/main.rs").display().to_string()] {
        let result = fixture.result("read_file", json!({"path": path})).await;
        assert_eq!(result["text"], "1:fn main() {}\n");
        assert_eq!(result["tool"], "read_file");
    }
    let working_directory = Some(fixture.path("src").display().to_string());
    let below = Call { working_directory, ..call("read_file", json!({"path": "main.rs"})) };
    fixture.client.invoke_to_end(below).await.unwrap().1.unwrap();
    let outside = Call {
        working_directory: Some("/".to_owned()),
        ..call("read_file", json!({"path": "etc/passwd"}))
    };
    let failure = fixture.client.invoke_to_end(outside).await.unwrap().1.expect_err("outside");
    assert_eq!(failure.category, "permission_denied");
    fixture.end().await;
}

async fn before_configure_and_for_unknown_tools_there_is_one_error_event() {
    let mut fixture = Fixture::launched().await;
    let failure = fixture.failure("read_file", json!({"path": "a"})).await;
    assert_eq!(failure.category, "permission_denied");
    assert!(failure.message.starts_with("not configured: no roots; the host has to"));
    fixture.configure(json!({})).await.unwrap();
    let failure = fixture.failure("readfile", json!({})).await;
    assert_eq!((failure.category.as_str(), failure.retryable), ("not_found", false));
    assert!(failure.message.contains("read_file"), "{}", failure.message);
    fixture.end().await;
}

async fn slips_in_the_arguments_are_all_reported_at_once() {
    let mut fixture = Fixture::configured().await;
    let slips = json!({"pth": "a", "limit": "ten", "offset": 1.5, "end_line": 9});
    let failure = fixture.failure("read_file", slips).await;
    assert_eq!(failure.category, "invalid_arguments");
    for part in [
        "path is missing",
        "did you mean \"path\"?",
        "limit must be a whole number ≥ 1, not the string \"ten\"",
        "offset must be",
        "unknown argument end_line; give limit",
    ] {
        assert!(failure.message.contains(part), "{part} is missing in: {}", failure.message);
    }
    assert_eq!(failure.details["kind"], "validation");
    fixture.end().await;
}

/// In a call and in its preview alike.
async fn a_slip_that_can_only_mean_one_thing_costs_no_turn() {
    let mut fixture = Fixture::configured().await;
    fixture.write("a.txt", "one\ntwo\n");
    let path = fixture.path("a.txt");
    let read = fixture.result("read_file", json!({"file_path": path, "limit": "1"})).await;
    let named = fixture.result("read_file", json!({"path": path, "limit": 1})).await;
    assert_eq!(read, named);
    let edits = r#"[{"oldText": "one", "newText": "1", "replaceAll": "false"}]"#;
    let edit = json!({"filePath": path, "changes": edits});
    fixture.client.preview(call("edit_file", edit.clone())).await.unwrap();
    fixture.result("edit_file", edit).await;
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "1\ntwo\n");
    // Text is taken as it is, and two names for one argument are one too many.
    fixture.result("write_file", json!({"file": path, "text": "[\"5\"]"})).await;
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "[\"5\"]");
    let two = json!({"file": path, "file_path": path});
    let failure = fixture.failure("read_file", two).await;
    assert!(failure.message.contains("did you mean \"path\"?"), "{}", failure.message);
    fixture.end().await;
}

/// R01: what would block for ever answers with its type.
async fn special_files_answer_at_once_with_their_type() {
    let mut fixture = Fixture::launched().await;
    let pipe = fixture.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let _socket = UnixListener::bind(fixture.path("socket")).unwrap();
    fixture.write("plain", "fine\n");
    fixture.configure(json!({"roots": ["root", "/dev"]})).await.unwrap();
    for (path, word) in [("pipe", "FIFO"), ("socket", "socket"), ("/dev/zero", "device")] {
        let failure =
            tokio::time::timeout(TEST_TIMEOUT, fixture.failure("read_file", json!({"path": path})));
        let failure = failure.await.expect("it must not block");
        assert_eq!(failure.category, "execution_failed", "{path}: {}", failure.message);
        assert!(failure.message.contains(word), "{path}: {}", failure.message);
    }
    fixture.result("read_file", json!({"path": "plain"})).await;
    fixture.end().await;
}

/// R03: a few lines of a huge file, or a huge line, cost a few MiB.
async fn huge_files_cost_little_memory() {
    const SIZE: usize = 48 << 20;
    let mut fixture = Fixture::configured().await;
    fixture.write("small", "x\n");
    fixture.result("read_file", json!({"path": "small"})).await;
    fixture.write("big", "abcdefghij\n".repeat(SIZE / 11));
    fixture.write("one-line", "x".repeat(SIZE));
    let before = fixture.status("VmHWM");

    let first = fixture.result("read_file", json!({"path": "big", "offset": 1, "limit": 1})).await;
    let lines = SIZE / 11;
    // How many lines there are it says too, unless the machine is too slow to count them.
    assert_eq!((&first["text"], &first["next_offset"]), (&json!("1:abcdefghij\n"), &json!(2)));
    let tail = fixture.result("read_file", json!({"path": "big", "offset": -1})).await;
    assert_eq!(tail["text"], format!("{lines}:abcdefghij\n"));
    let line = fixture.result("read_file", json!({"path": "one-line", "limit": 1})).await;
    let content = line["text"].as_str().unwrap();
    assert!(content.len() < 4000 && content.contains(&SIZE.to_string()), "{}", content.len());

    let grown = fixture.status("VmHWM") - before;
    assert!(grown < 16 * 1024, "memory grew by {grown} KiB");
    fixture.end().await;
}

/// T07: cancelled calls leave no thread and no descriptor.
async fn cancelled_calls_leave_nothing_behind() {
    let mut fixture = Fixture::configured().await;
    fixture.write("big", "abcdefghij\n".repeat(1 << 20));
    let tail = json!({"path": "big", "offset": -1});
    fixture.result("read_file", tail.clone()).await;
    let mut counted = Vec::new();
    for _ in 0..2 {
        for _ in 0..100 {
            let mut client = fixture.client.clone();
            let invoke = client.invoke(call("read_file", tail.clone()));
            // Dropped as soon as it was sent, or a moment later.
            let _ = tokio::time::timeout(Duration::from_millis(2), invoke).await;
        }
        // The last cancelled call has let go of its place once others get through in order.
        fixture.result("read_file", tail.clone()).await;
        counted.push((fixture.status("Threads"), fixture.descriptors()));
    }
    let [(threads, descriptors), (threads_after, descriptors_after)] = counted[..] else {
        unreachable!()
    };
    assert!(threads_after <= threads.max(16), "{threads} → {threads_after} threads");
    if let (Some(before), Some(after)) = (descriptors, descriptors_after) {
        assert!(after <= before + 16, "{before} → {after} descriptors");
    }
    fixture.end().await;
}

async fn a_call_whose_time_is_up_says_so_before_the_host_gives_up() {
    let mut fixture = Fixture::configured().await;
    // A search that takes many minutes, whatever the machine: no engine but the slowest takes it.
    let mut state = 1_u64;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        if state >> 63 == 0 { 'a' } else { 'b' }
    });
    fixture.write("noise", noise.take(4 << 20).collect::<String>());
    let arguments = json!({"pattern": "[ab]*a[ab]{5000}[cd]", "path": "noise"});
    // Long enough that the provider's margin is, too: our own client knows the deadline as well.
    let deadline = Some(Instant::now() + Duration::from_millis(2500));
    let call = Call { deadline, ..call("grep", arguments) };
    let (_, outcome) = fixture.client.invoke_to_end(call).await.unwrap();
    let failure = outcome.unwrap_err();
    assert_eq!((failure.category.as_str(), failure.retryable), ("timeout", true), "{failure:?}");
    fixture.end().await;
}

async fn many_calls_at_once_all_get_their_own_answer() {
    let fixture = Fixture::configured().await;
    for number in 0..40 {
        fixture.write(&format!("{number}.txt"), format!("number {number}\n"));
    }
    let calls = (0..40).map(|number| {
        let mut client = fixture.client.clone();
        let read = call("read_file", json!({"path": format!("{number}.txt")}));
        async move { (number, client.invoke_to_end(read).await.unwrap().1.unwrap()) }
    });
    for (number, result) in futures_util::future::join_all(calls).await {
        let content = result["text"].as_str().unwrap();
        assert!(content.contains(&format!("number {number}")), "{content}");
    }
    fixture.end().await;
}

async fn large_messages_pass_both_ways() {
    let mut fixture = Fixture::configured().await;
    // Beyond gRPC's own limit of 4 MiB.
    let path = "x".repeat(6 << 20);
    let failure = fixture.failure("read_file", json!({"path": path})).await;
    assert!(["not_found", "execution_failed", "invalid_arguments"].contains(&&*failure.category));
    fixture.end().await;
}

async fn calls_beyond_the_limit_wait_for_their_turn() {
    let mut fixture = Fixture::launched().await;
    fixture.configure(json!({"max_concurrent_calls": 1})).await.unwrap();
    fixture.write("big", "abcdefghij\n".repeat(1 << 20));
    let calls = (0..16).map(|_| {
        let mut client = fixture.client.clone();
        // From the start to beyond the end: all of it has to be read.
        let read = call("read_file", json!({"path": "big", "offset": 1 << 20}));
        async move { client.invoke_to_end(read).await.unwrap().1 }
    });
    for outcome in futures_util::future::join_all(calls).await {
        outcome.unwrap();
    }
    // One whose turn does not come in time is refused with the number that run.
    let mut holder = fixture.client.clone();
    let mut held =
        holder.invoke(call("bash", json!({"command": "echo on; sleep 1000"}))).await.unwrap();
    held.next().await.unwrap().unwrap();
    let mut late = fixture.client.clone();
    let soon = Some(Instant::now() + Duration::from_secs(2));
    let read = Call { deadline: soon, ..call("read_file", json!({"path": "big", "limit": 1})) };
    let failure = late.invoke_to_end(read).await.unwrap().1.expect_err("its turn does not come");
    assert_eq!((failure.category.as_str(), failure.retryable), ("concurrency_conflict", true));
    assert_eq!(failure.details["kind"], "rate_limit");
    assert!(failure.message.contains("1 calls run"), "{}", failure.message);
    drop(held);
    fixture.result("read_file", json!({"path": "big", "limit": 1})).await;
    fixture.end().await;
}

/// More calls than HTTP/2 lets a connection see resets: each stream has to end in order.
async fn thousands_of_calls_share_one_connection() {
    let mut fixture = Fixture::configured().await;
    fixture.write("a.txt", "a\n");
    for _ in 0..1500 {
        fixture.result("read_file", json!({"path": "a.txt"})).await;
    }
    fixture.end().await;
}
