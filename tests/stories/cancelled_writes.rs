//! A write that is cancelled, or whose time is up, is applied or not, and it is known which.

use std::collections::HashMap;
use std::fs;
use std::time::{Duration, Instant};

use goplugin::host::{Launch, LogLine};
use provider_workspace::plugin::LOG_VARIABLE;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tool_provider::Call;
use tool_provider::Payload;
use tool_provider::grpc::Failure;

use crate::harness::{Fixture, call};
use crate::trials::{Need, Trial};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_cancelled_write_is_applied_or_not_and_the_log_says_which needs [Need::Time],
        a_write_whose_time_is_up_is_applied_or_not_and_says_which needs [Need::Time],
    ]
}

const ROUNDS: u32 = 40;
const OLD: &str = "the old content\n";

fn new() -> String {
    "the new content\n".repeat(100_000)
}

/// A story whose log can be read to its end, and how long one of its writes takes.
async fn prepared() -> (Fixture, UnboundedReceiver<LogLine>, Duration) {
    let (say, hear) = unbounded_channel();
    let talkative =
        |launch: Launch| launch.env(LOG_VARIABLE, "debug").on_log(move |line| drop(say.send(line)));
    let mut fixture = Fixture::launched_with(talkative).await;
    fixture.configure(json!({})).await.unwrap();
    for round in 0..ROUNDS {
        fixture.write(&format!("{round}"), OLD);
    }
    fixture.write("measured", OLD);
    let measured = call("write_file", json!({"path": "measured", "content": new()}));
    let measured = Call { id: "measured".to_owned(), ..measured };
    let started = Instant::now();
    fixture.client.invoke_to_end(measured).await.unwrap().1.unwrap();
    (fixture, hear, started.elapsed())
}

/// Alternately a write and an edit, so that a success leaves the new content.
fn change(round: u32) -> Call {
    let path = round.to_string();
    let call = if round.is_multiple_of(2) {
        call("write_file", json!({"path": path, "content": new()}))
    } else {
        call("edit_file", json!({"path": path, "old_string": OLD, "new_string": new()}))
    };
    Call { id: format!("call-{round}"), ..call }
}

/// What the log says became of the calls: whether they were applied. The answer of a call that
/// ended in the moment in which its reader left is on its way and lost; that it was one of success
/// is clear from how the call ended.
async fn logged(mut hear: UnboundedReceiver<LogLine>) -> HashMap<String, bool> {
    let mut applied = HashMap::new();
    // It ends with the provider's standard error.
    while let Some(line) = hear.recv().await {
        let text = |name: &str| line.fields.get(name).and_then(Value::as_str);
        let (Some(id), Some(outcome)) = (text("call_id"), text("outcome")) else { continue };
        match (outcome, text("details")) {
            ("result" | "completed", _) => drop(applied.insert(id.to_owned(), true)),
            ("cancelled" | "timeout", Some(details)) => {
                let details: Payload = serde_json::from_str(details).unwrap();
                let is_applied = details.get("applied").and_then(Value::as_bool);
                let is_applied = is_applied.unwrap_or_else(|| panic!("{id}: {details:?}"));
                applied.insert(id.to_owned(), is_applied);
            }
            ("cancelled" | "timeout", None) => {}
            other => panic!("{id} ended as {other:?}"),
        }
    }
    applied
}

/// Holds what was heard of each call against its file.
async fn check(
    fixture: Fixture,
    hear: UnboundedReceiver<LogLine>,
    answers: HashMap<u32, Result<Payload, Failure>>,
) {
    let directory = fixture.path("");
    let keep = fixture.end_and_keep().await;
    let logged = logged(hear).await;
    let mut counts = [0, 0];
    for round in 0..ROUNDS {
        let content = fs::read_to_string(directory.join(round.to_string())).unwrap();
        let is_new = content == new();
        assert!(is_new || content == OLD, "round {round}: neither old nor new");
        counts[usize::from(is_new)] += 1;
        let heard = match answers.get(&round) {
            Some(Ok(_)) => Some(true),
            Some(Err(failure)) => {
                assert!(["timeout", "cancelled"].contains(&&*failure.category), "{failure}");
                Some(failure.details["applied"].as_bool().unwrap())
            }
            None => logged.get(&format!("call-{round}")).copied(),
        };
        match heard {
            Some(applied) => assert_eq!(applied, is_new, "round {round}"),
            // It never began.
            None => assert!(!is_new, "round {round}: applied, and nobody heard of it"),
        }
    }
    eprintln!("{} of {ROUNDS} were applied", counts[1]);
    drop(keep);
}

async fn a_cancelled_write_is_applied_or_not_and_the_log_says_which() {
    let (fixture, hear, usual) = prepared().await;
    let mut answers = HashMap::new();
    for round in 0..ROUNDS {
        let mut client = fixture.client.clone();
        let timeout = usual * round * 2 / ROUNDS;
        if let Ok(answer) = tokio::time::timeout(timeout, client.invoke_to_end(change(round))).await
        {
            answers.insert(round, answer.unwrap().1);
        }
    }
    check(fixture, hear, answers).await;
}

async fn a_write_whose_time_is_up_is_applied_or_not_and_says_which() {
    let (mut fixture, hear, usual) = prepared().await;
    let mut answers = HashMap::new();
    for round in 0..ROUNDS {
        let deadline = Some(Instant::now() + usual * round * 2 / ROUNDS);
        // An error is the client's own: it did not get the answer in time.
        if let Ok(answer) = fixture.client.invoke_to_end(Call { deadline, ..change(round) }).await {
            answers.insert(round, answer.1);
        }
    }
    check(fixture, hear, answers).await;
}
