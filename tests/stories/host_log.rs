//! What a host hears through its own callback service.

use std::time::Duration;

use goplugin::host::{Launch, Multiplex, Security};
use provider_workspace::plugin::HOST_CALLBACKS;
use serde_json::json;
use tokio::sync::mpsc;
use tool_provider::grpc::host_callbacks;

use crate::harness::{Fixture, TEST_TIMEOUT, call};
use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        the_host_hears_of_the_configuration_over_every_kind_of_connection,
        the_host_hears_what_became_of_a_cancelled_call,
        a_host_that_does_not_listen_costs_nothing,
    ]
}

async fn the_host_hears_of_the_configuration_over_every_kind_of_connection() {
    for security in [Security::Plain, Security::AutoMtls] {
        for multiplex in [Multiplex::Off, Multiplex::On] {
            let change = |launch: Launch| launch.security(security).multiplex(multiplex);
            let mut fixture = Fixture::launched_with(change).await;
            let (sender, mut heard) = mpsc::unbounded_channel();
            let routes = host_callbacks(move |entry| sender.send(entry).unwrap());
            fixture
                .plugin
                .serve_callbacks(HOST_CALLBACKS, goplugin::Services::new().with(routes))
                .await
                .unwrap();
            fixture.configure(json!({})).await.unwrap();
            let entry = tokio::time::timeout(TEST_TIMEOUT, heard.recv()).await.unwrap().unwrap();
            assert_eq!((entry.message.as_str(), entry.level.as_str()), ("configured", "info"));
            assert!(entry.text("jail").is_some(), "{entry:?}");
            fixture.end().await;
        }
    }
}

/// What a cancelled call did is reported in the log: its stream is gone.
async fn the_host_hears_what_became_of_a_cancelled_call() {
    let mut fixture = Fixture::launched().await;
    let (sender, mut heard) = mpsc::unbounded_channel();
    let routes = host_callbacks(move |entry| sender.send(entry).unwrap());
    fixture
        .plugin
        .serve_callbacks(HOST_CALLBACKS, goplugin::Services::new().with(routes))
        .await
        .unwrap();
    fixture.configure(json!({})).await.unwrap();
    fixture.write("big", "abcdefghij\n".repeat(4 << 20));
    let mut delay = Duration::from_millis(2);
    let entry = 'heard: loop {
        // Too early and the call has not begun, too late and it has ended: one of these is right.
        let read = call("read_file", json!({"path": "big", "offset": 4 << 20}));
        let _ = tokio::time::timeout(delay, fixture.client.invoke(read)).await;
        delay *= 2;
        assert!(delay < TEST_TIMEOUT, "no cancelled call was heard of");
        // A call that ends in order comes after whatever the cancelled one had to say.
        fixture.result("read_file", json!({"path": "big", "limit": 1})).await;
        let wait = tokio::time::timeout(Duration::from_millis(500), async {
            loop {
                let entry = heard.recv().await.unwrap();
                if entry.text("outcome").is_some() {
                    return entry;
                }
            }
        });
        if let Ok(entry) = wait.await {
            break 'heard entry;
        }
    };
    assert_eq!(entry.session_id.as_deref(), Some("session-1"));
    assert_eq!((entry.text("call_id"), entry.text("tool")), (Some("call-1"), Some("read_file")));
    assert!(entry.text("outcome").is_some() && entry.fields.contains_key("duration_ms"));
    fixture.end().await;
}

/// A host that serves no callbacks: nothing waits for it.
async fn a_host_that_does_not_listen_costs_nothing() {
    let mut fixture = Fixture::configured().await;
    fixture.write("a.txt", "a\n");
    for _ in 0..20 {
        fixture.result("read_file", json!({"path": "a.txt"})).await;
    }
    fixture.end().await;
}
