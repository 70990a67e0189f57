//! Searches that are cut short, by their deadline or by the caller.

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use serde_json::{Value, json};
use tool_provider::Call;
use tool_provider::Event;
use tool_provider::grpc::InvokeItem;

use crate::harness::{Fixture, call};
use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    trials![a_search_whose_time_is_up_says_so, a_search_that_is_cancelled_ends,]
}

/// A story with a tree that takes a while.
async fn large() -> Fixture {
    let mut fixture = Fixture::launched().await;
    let text = "a line with a needle in it\nand one without\n".repeat(40);
    for directory in 0..40 {
        std::fs::create_dir(fixture.path(&format!("d{directory}"))).unwrap();
        for file in 0..50 {
            fixture.write(&format!("d{directory}/f{file}"), &text);
        }
    }
    fixture.configure(json!({})).await.unwrap();
    fixture
}

const SEARCHES: [(&str, &str, &str); 2] = [("grep", "needle", "matches"), ("glob", "f*", "paths")];

/// The arguments of a search, in the form for programs.
fn with(tool: &str, pattern: &str, limit: usize) -> Value {
    let mut arguments = json!({"pattern": pattern, "limit": limit, "details": true});
    if tool == "grep" {
        arguments["max_per_file"] = 10_000.into();
    }
    arguments
}

/// Whenever time is up, the outcome is a whole result, or one that says that it is not, or an
/// error that says why.
async fn a_search_whose_time_is_up_says_so() {
    let mut fixture = large().await;
    for (tool, pattern, list) in SEARCHES {
        for milliseconds in [1, 3, 10, 30, 60, 20_000] {
            let arguments = with(tool, pattern, 600);
            let deadline = Instant::now() + Duration::from_millis(milliseconds);
            let call = Call { deadline: Some(deadline), ..call(tool, arguments) };
            // Where the stream itself ends first nothing is reported.
            let Ok((events, outcome)) = fixture.client.invoke_to_end(call).await else { continue };
            let streamed: Vec<Value> = events
                .into_iter()
                .flat_map(|event| match event {
                    Event::Partial(payload) => payload[list].as_array().unwrap().clone(),
                    _ => Vec::new(),
                })
                .collect();
            match outcome {
                Ok(result) => {
                    let listed = result[list].as_array().unwrap();
                    assert!(
                        listed.starts_with(&streamed),
                        "{tool}: what was streamed is listed too"
                    );
                    let is_full = listed.len() == 600;
                    if result.contains_key("notice") && !is_full {
                        assert!(result["notice"].as_str().unwrap().contains("ime was up"));
                    }
                }
                Err(failure) => assert_eq!(failure.category, "timeout", "{failure:?}"),
            }
        }
    }
    fixture.end().await;
}

/// Nobody reads on: the search ends, and the provider with it at a shutdown.
async fn a_search_that_is_cancelled_ends() {
    let mut fixture = large().await;
    for (tool, pattern, list) in SEARCHES {
        for _ in 0..5 {
            let arguments = with(tool, pattern, 10_000);
            let mut stream = fixture.client.invoke(call(tool, arguments)).await.unwrap();
            match stream.next().await.unwrap().unwrap() {
                InvokeItem::Event(Event::Partial(payload)) => {
                    assert!(!payload[list].as_array().unwrap().is_empty());
                    assert_eq!(payload["tool"], tool);
                }
                InvokeItem::Event(Event::Progress { .. }) => {}
                other => panic!("{tool}: {other:?}"),
            }
            drop(stream);
        }
        let (_, outcome) = fixture.call(tool, with(tool, pattern, 5)).await;
        assert_eq!(outcome.unwrap()[list].as_array().unwrap().len(), 5, "others are served");
    }
    fixture.end().await;
}
