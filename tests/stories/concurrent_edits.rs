//! Many writers of one file: over two connections, by both tools, and from two providers.

use std::fs;

use serde_json::json;
use tool_provider::Call;
use tool_provider::Payload;
use tool_provider::grpc::{Failure, ToolClient};

use crate::harness::{Fixture, call, names};
use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        edits_over_two_connections_lose_nothing,
        edits_and_writes_over_two_connections_lose_nothing,
        two_providers_never_undo_each_others_success,
    ]
}

const WRITERS: usize = 19;
const LINES: usize = 200;

fn numbers() -> String {
    (1..=LINES).map(|number| format!("{number}\n")).collect()
}

/// The edit that marks one of the lines.
fn mark(path: &str, number: usize) -> Call {
    let (old, new) = (format!("\n{number}\n"), format!("\n{number}x\n"));
    let edit = json!({"path": path, "old_string": old, "new_string": new});
    Call { session_id: format!("session-{}", number % 3), ..call("edit_file", edit) }
}

async fn outcome(client: &ToolClient, call: Call) -> Result<Payload, Failure> {
    client.clone().invoke_to_end(call).await.unwrap().1
}

/// Marks a line by rewriting the whole file, at the version that was read, until nobody came between.
async fn mark_by_rewriting(client: &ToolClient, path: &str, number: usize) {
    let read = || call("read_file", json!({"path": path, "line_numbers": false}));
    let session = |call: Call| Call { session_id: format!("writer-{number}"), ..call };
    loop {
        let seen = outcome(client, session(read())).await.unwrap();
        let text = seen["text"].as_str().unwrap().trim_end_matches('\n');
        let lines: Vec<String> = text
            .split('\n')
            .map(|line| if line == number.to_string() { format!("{line}x") } else { line.into() })
            .collect();
        let write = call(
            "write_file",
            json!({
                "path": path,
                "content": lines.join("\n") + "\n",
                "expected_version": seen["version"],
            }),
        );
        match outcome(client, session(write)).await {
            Ok(_) => return,
            Err(failure) => assert_eq!(failure.category, "concurrency_conflict", "{failure}"),
        }
    }
}

fn check(fixture: &Fixture, marks: usize, round: usize) {
    let content = fs::read_to_string(fixture.path("n.txt")).unwrap();
    assert_eq!(content.matches('x').count(), marks, "round {round}");
    assert_eq!(content.replace('x', ""), numbers(), "round {round}");
}

/// E11: 19 at once, 50 times, through two connections and three spellings.
async fn edits_over_two_connections_lose_nothing() {
    let fixture = Fixture::configured().await;
    let clients = [fixture.client.clone(), fixture.second_client().await];
    std::os::unix::fs::symlink("n.txt", fixture.path("link")).unwrap();
    let spellings = ["n.txt".into(), "./link".into(), fixture.path("n.txt").display().to_string()];
    for round in 0..50 {
        fixture.write("n.txt", numbers());
        let calls = (1..=WRITERS).map(|n| {
            let client = clients[n % 2].clone();
            let call = mark(&spellings[(n + round) % 3], n * 10);
            tokio::spawn(async move { outcome(&client, call).await })
        });
        for done in futures_util::future::join_all(calls).await {
            done.unwrap().unwrap();
        }
        check(&fixture, WRITERS, round);
    }
    assert_eq!(names(&fixture.path("")).len(), 2, "something was left behind");
    fixture.end().await;
}

/// Edits and whole writes at a version: all come through, whatever the order.
async fn edits_and_writes_over_two_connections_lose_nothing() {
    let fixture = Fixture::configured().await;
    let clients = [fixture.client.clone(), fixture.second_client().await];
    for round in 0..10 {
        fixture.write("n.txt", numbers());
        let calls = (1..=WRITERS).map(|n| {
            let client = clients[n % 2].clone();
            tokio::spawn(async move {
                if n % 3 == 0 {
                    mark_by_rewriting(&client, "./n.txt", n * 10).await;
                } else {
                    outcome(&client, mark("n.txt", n * 10)).await.unwrap();
                }
            })
        });
        for done in futures_util::future::join_all(calls).await {
            done.unwrap();
        }
        check(&fixture, WRITERS, round);
    }
    fixture.end().await;
}

/// Two hosts in one directory, each with a provider of its own. Their calls do not wait for each
/// other, so one may find that the other was quicker and report that; but a success is a success.
async fn two_providers_never_undo_each_others_success() {
    let fixture = Fixture::configured().await;
    let mut other = Fixture::launched().await;
    other.configure(json!({"roots": [fixture.path("")]})).await.unwrap();
    let clients = [fixture.client.clone(), other.client.clone()];
    let mut conflicts = 0;
    for round in 0..25 {
        fixture.write("n.txt", numbers());
        let calls = (1..=WRITERS).map(|n| {
            let client = clients[n % 2].clone();
            let call = mark("n.txt", n * 10);
            tokio::spawn(async move { outcome(&client, call).await })
        });
        let mut successes = 0;
        for done in futures_util::future::join_all(calls).await {
            match done.unwrap() {
                Ok(_) => successes += 1,
                Err(failure) => {
                    assert_eq!(failure.category, "concurrency_conflict", "{failure}");
                    conflicts += 1;
                }
            }
        }
        check(&fixture, successes, round);
    }
    eprintln!("{conflicts} calls reported that the other provider was quicker");
    // Each can have all of its own through by trying again.
    fixture.write("n.txt", numbers());
    let calls = (1..=WRITERS).map(|n| {
        let client = clients[n % 2].clone();
        tokio::spawn(async move { mark_by_rewriting(&client, "n.txt", n * 10).await })
    });
    for done in futures_util::future::join_all(calls).await {
        done.unwrap();
    }
    check(&fixture, WRITERS, 0);
    assert_eq!(names(&fixture.path("")), ["n.txt"]);
    other.end().await;
    fixture.end().await;
}
