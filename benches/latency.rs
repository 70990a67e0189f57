//! How long a call takes, against an empty unary call of the same server over the same connection.
//!
//! Both are measured in turns within one run, so that a busy machine slows both. What counts is
//! the ratio of the medians.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench prepares its own files, prints its figures, and stops where that fails"
)]

use std::time::{Duration, Instant};

use provider_workspace::goplugin::host::{Launch, Security};
use provider_workspace::provider::Call;
use provider_workspace::service::ToolClient;
use provider_workspace::service::plugin::{COOKIE, PROTOCOL_VERSION};
use provider_workspace::tools::Payload;
use serde_json::{Value, json};

const ROUNDS: usize = 20;
const CALLS: usize = 200;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for security in [Security::Plain, Security::AutoMtls] {
        runtime.block_on(measure(security));
    }
}

async fn measure(security: Security) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("two-kib.txt"), "0123456789abcde\n".repeat(128)).unwrap();
    let program = env!("CARGO_BIN_EXE_provider-workspace");
    let plugin = Launch::new(program, COOKIE, [PROTOCOL_VERSION])
        .current_dir(folder.path())
        .security(security)
        .start()
        .await
        .unwrap();
    let mut client = ToolClient::new(plugin.channel());
    client.configure(object(json!({"roots": ["."], "sandbox": "best_effort"}))).await.unwrap();
    let memory = resident(plugin.pid().unwrap());

    let (mut unary, mut invoke) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        for _ in 0..CALLS {
            let start = Instant::now();
            client.describe().await.unwrap();
            unary.push(start.elapsed());
        }
        for _ in 0..CALLS {
            let call = Call {
                id: "bench".to_owned(),
                tool: "read_file".to_owned(),
                arguments: object(json!({"path": "two-kib.txt"})),
                session_id: "bench".to_owned(),
                ..Call::default()
            };
            let start = Instant::now();
            client.invoke_to_end(call).await.unwrap().1.unwrap();
            invoke.push(start.elapsed());
        }
    }
    let ratio = median(&mut invoke).as_secs_f64() / median(&mut unary).as_secs_f64();
    println!(
        "{security:?}: empty unary call {:?} (p99 {:?}), read_file of 2 KiB {:?} (p99 {:?}), ratio {ratio:.2}",
        median(&mut unary),
        at(&mut unary, 99),
        median(&mut invoke),
        at(&mut invoke, 99),
    );
    println!(
        "{security:?}: {memory} KiB resident after Configure, {} KiB after {} calls",
        resident(plugin.pid().unwrap()),
        2 * ROUNDS * CALLS
    );
    plugin.kill().await;
}

fn object(value: Value) -> Payload {
    serde_json::from_value(value).unwrap()
}

fn median(times: &mut [Duration]) -> Duration {
    at(times, 50)
}

fn at(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    times[times.len() * percent / 100]
}

fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
