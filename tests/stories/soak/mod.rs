//! A soak: sixteen callers with every kind of call, some of them cancelled, some out of time, over
//! one provider. Then everything is counted. `SOAK_SECONDS` sets how long it lasts.

mod caller;
mod census;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::json;

use crate::harness::{self, Fixture};
use crate::trials::{Need, Trial};
use caller::{Caller, Soaked};
use census::Census;

pub(crate) fn trials() -> Vec<Trial> {
    trials![nothing_is_lost_and_nothing_is_left needs [Need::Time]]
}

const CALLERS: usize = 16;

/// How long it lasts, where `SOAK_SECONDS` says nothing else.
const SECONDS: u64 = 10;

/// How often the provider is configured anew, under calls that run.
const CONFIGURED_EVERY: Duration = Duration::from_secs(3);

async fn nothing_is_lost_and_nothing_is_left() {
    let seconds = std::env::var("SOAK_SECONDS").ok();
    let seconds = seconds.map_or(SECONDS, |text| text.parse().expect("a number of seconds"));
    let mut fixture = Fixture::configured().await;
    fixture.write("shared", caller::EMPTY);
    let tools = fixture.client.schema().await.unwrap().tools;
    let tools: Arc<[String]> = tools.into_iter().map(|tool| tool.name).collect();
    // Everything that stays was started once.
    fixture.call("bash", json!({"command": "true"})).await.1.unwrap();
    let before = Census::settled(&fixture, None).await;

    let start = Instant::now();
    let end = start + Duration::from_secs(seconds);
    let mut callers = Vec::new();
    for number in 0..CALLERS {
        // Some share a connection.
        let client = match number % 4 {
            0 => fixture.second_client().await,
            _ => fixture.client.clone(),
        };
        fixture.write(&format!("own-{number}"), caller::EMPTY);
        let caller = Caller::new(number, client, tools.clone());
        callers.push(tokio::spawn(caller.call_until(end)));
    }
    let mut configurer = fixture.client.clone();
    let configuring = tokio::spawn(async move {
        while Instant::now() < end {
            tokio::time::sleep_until((Instant::now() + CONFIGURED_EVERY).min(end).into()).await;
            configurer.configure(harness::object(json!({"roots": ["root"]}))).await.unwrap();
        }
    });
    // A quarter is for warming up.
    tokio::time::sleep_until((start + Duration::from_secs(seconds) / 4).into()).await;
    let warm = fixture.status("VmRSS");
    let soaked = join_all(callers).await;
    let soaked = soaked.into_iter().map(Result::unwrap).collect::<Vec<_>>();
    configuring.await.unwrap();
    let hot = fixture.status("VmRSS");

    let total = soaked.iter().fold(Soaked::default(), |sum, soaked| sum.plus(soaked));
    eprintln!("{seconds} s: {total}");
    eprintln!("resident: {warm} KiB when warm, {hot} KiB at the end");
    assert!(total.succeeded > 0 && total.cancelled > 0 && total.out_of_time > 0);
    for (number, soaked) in soaked.iter().enumerate() {
        let own = std::fs::read_to_string(fixture.path(&format!("own-{number}"))).unwrap();
        soaked.own.assert_kept(&own);
        let shared = std::fs::read_to_string(fixture.path("shared")).unwrap();
        soaked.shared.assert_kept(&shared);
    }
    let left: Vec<_> = harness::names(&fixture.path(""))
        .into_iter()
        .filter(|name| name.ends_with(".tmp"))
        .collect();
    assert_eq!(left, [""; 0], "temporary files were left");
    // Half as much again, and what a few large outputs may leave in an allocator's hands.
    assert!(hot < warm + warm / 2 + 48 * 1024, "{warm} KiB when warm, {hot} KiB at the end");

    let after = Census::settled(&fixture, Some(&before)).await;
    eprintln!("before: {before}\nafter:  {after}");
    fixture.result("read_file", json!({"path": "shared", "limit": 1})).await;
    fixture.end().await;
}
