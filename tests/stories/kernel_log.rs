//! What a kernel hears through its own callback service.

use provider_workspace::goplugin::host::{Launch, Multiplex, Security};
use provider_workspace::service::kernel_callbacks;
use provider_workspace::service::plugin::KERNEL_CALLBACKS;
use serde_json::json;
use tokio::sync::mpsc;

use crate::harness::{PATIENCE, Story};

#[tokio::test]
async fn the_kernel_hears_of_the_configuration_over_every_kind_of_connection() {
    for security in [Security::Plain, Security::AutoMtls] {
        for multiplex in [Multiplex::Off, Multiplex::On] {
            let change = |launch: Launch| launch.security(security).multiplex(multiplex);
            let mut story = Story::launched_with(change).await;
            let (told, mut heard) = mpsc::unbounded_channel();
            let routes = kernel_callbacks(move |entry| told.send(entry).unwrap());
            story.plugin.serve_callbacks(KERNEL_CALLBACKS, routes).await.unwrap();
            story.configure(json!({})).await.unwrap();
            let entry = tokio::time::timeout(PATIENCE, heard.recv()).await.unwrap().unwrap();
            assert_eq!((entry.message.as_str(), entry.level.as_str()), ("configured", "info"));
            assert!(entry.text("level").is_some(), "{entry:?}");
            story.end().await;
        }
    }
}

/// A kernel that serves no callbacks: nothing waits for it.
#[tokio::test]
async fn a_kernel_that_does_not_listen_costs_nothing() {
    let mut story = Story::configured().await;
    story.write("a.txt", "a\n");
    for _ in 0..20 {
        story.result("read_file", json!({"path": "a.txt"})).await;
    }
    story.end().await;
}
