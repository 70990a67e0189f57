//! Nothing accumulates, however many calls there were and however they ended.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::bash::{gone, mark, next_output};
use crate::harness::{Fixture, TEST_TIMEOUT, call};
use crate::trials::{Need, Trial};

pub(crate) fn trials() -> Vec<Trial> {
    trials![nothing_piles_up_over_hundreds_of_commands needs [Need::Time],]
}

const RUNS: usize = 500;
const CANCELS: usize = 200;
const TIMEOUTS: usize = 50;
const LEFT_BEHIND: usize = 10;

/// What a provider holds.
#[derive(Clone, Copy, Debug)]
struct Held {
    threads: u64,
    descriptors: Option<usize>,
    jails: usize,
    resident_kib: u64,
}

impl Held {
    fn of(fixture: &Fixture) -> Self {
        Self {
            threads: fixture.status("Threads"),
            descriptors: fixture.descriptors(),
            jails: fixture.jails(),
            resident_kib: fixture.status("VmRSS"),
        }
    }
}

/// B01, B10, T07.
async fn nothing_piles_up_over_hundreds_of_commands() {
    let mut fixture = Fixture::configured().await;
    let mark = mark(60);
    round(&mut fixture, &mark, 10).await;
    let before = Held::of(&fixture);
    round(&mut fixture, &mark, 1).await;
    // A cancelled call lets go of what it held when its processes are gone.
    let until = Instant::now() + TEST_TIMEOUT;
    let after = loop {
        let after = Held::of(&fixture);
        let settled = after.threads <= before.threads + 4
            && after.descriptors <= before.descriptors.map(|number| number + 4);
        if settled || Instant::now() > until {
            break after;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    // A thread or a descriptor for every call would be hundreds.
    assert!(after.threads <= before.threads + 4, "{before:?} → {after:?}");
    if let (Some(before), Some(after)) = (before.descriptors, after.descriptors) {
        assert!(after <= before + 4, "{before} → {after} descriptors");
    }
    assert!(after.resident_kib <= before.resident_kib + 8 * 1024, "{before:?} → {after:?}");
    assert_eq!((after.jails, zombies_below(fixture.pid())), (before.jails, 0));
    fixture.end().await;
}

/// All kinds of calls, each as often as its number says, or fewer by that factor.
async fn round(fixture: &mut Fixture, mark: &str, fewer: usize) {
    for number in 0..RUNS / fewer {
        let (_, outcome) =
            fixture.call("bash", json!({"command": format!("exit {}", number % 3)})).await;
        assert_eq!(outcome.unwrap()["exit_code"], number % 3);
    }
    for _ in 0..LEFT_BEHIND / fewer {
        let (_, outcome) = fixture.call("bash", json!({"command": "(sleep 60 &); exit 0"})).await;
        let result = outcome.unwrap();
        assert!(result["notice"].as_str().unwrap().contains("left running"), "{result:?}");
    }
    for number in 0..TIMEOUTS / fewer {
        let beside = if number % 2 == 0 { "" } else { "setsid sleep 60 &" };
        let command = format!("{beside} exec sleep {mark}");
        let arguments = json!({"command": command, "timeout_ms": 30});
        let failure = fixture.call("bash", arguments).await.1.unwrap_err();
        assert_eq!(failure.category, "timeout");
    }
    for _ in 0..CANCELS / fewer {
        let command = format!("echo start; exec sleep {mark}");
        let mut stream =
            fixture.client.invoke(call("bash", json!({ "command": command }))).await.unwrap();
        next_output(&mut stream, "start").await;
        drop(stream);
    }
    gone(mark).await;
}

/// Dead processes that nobody collected, among all that descend from this one.
fn zombies_below(top: u32) -> usize {
    let mut parents = std::collections::HashMap::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let (head, tail) = stat.rsplit_once(") ").unwrap();
        let pid: u32 = head.split(' ').next().unwrap().parse().unwrap();
        let mut fields = tail.split(' ');
        let state = fields.next().unwrap().to_owned();
        parents.insert(pid, (fields.next().unwrap().parse::<u32>().unwrap(), state));
    }
    let descends = |mut pid: u32| loop {
        if pid == top {
            return true;
        }
        match parents.get(&pid) {
            Some((parent, _)) if *parent != 0 => pid = *parent,
            _ => return false,
        }
    };
    parents.iter().filter(|(pid, (_, state))| state == "Z" && descends(**pid)).count()
}
