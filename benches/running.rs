//! A running provider, as a host has it, and the measurements of its process.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use goplugin::host::{Launch, Plugin, Security};
use provider_workspace::plugin::{COOKIE, PROTOCOL_VERSION};
use serde_json::{Value, json};
use tool_provider::Call;
use tool_provider::grpc::ToolClient;

pub(crate) type Outcome<T> = Result<T, Box<dyn Error>>;

/// A provider with one root, its sockets and private directories in `directory`.
pub(crate) async fn launch(
    directory: &Path,
    root: &Path,
    security: Security,
) -> Outcome<(Plugin, ToolClient)> {
    launch_with(directory, root, |launch| launch.security(security)).await
}

/// [`launch`] in another way.
pub(crate) async fn launch_with(
    directory: &Path,
    root: &Path,
    change: impl FnOnce(Launch) -> Launch,
) -> Outcome<(Plugin, ToolClient)> {
    let launch = Launch::new(env!("CARGO_BIN_EXE_provider-workspace"), COOKIE, [PROTOCOL_VERSION])
        .env("TMPDIR", directory)
        .env("XDG_STATE_HOME", directory.join("state"));
    let plugin = change(launch).start().await?;
    let mut client = ToolClient::new(plugin.channel());
    client.configure(object(json!({ "roots": [root], "sandbox": "best_effort" }))).await?;
    Ok((plugin, client))
}

pub(crate) fn call(tool: &str, arguments: Value) -> Call {
    Call {
        id: "bench".to_owned(),
        tool: tool.to_owned(),
        arguments: object(arguments),
        session_id: "bench".to_owned(),
        ..Call::default()
    }
}

fn object(value: Value) -> serde_json::Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => serde_json::Map::new(),
    }
}

/// Resident memory of a process and its peak, in KiB.
#[expect(clippy::disallowed_methods, reason = "the kernel's own report of another process")]
pub(crate) fn memory(pid: u32) -> Outcome<(u64, u64)> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let field = |name: &str| -> Outcome<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|rest| rest.split_whitespace().next());
        Ok(number.ok_or_else(|| format!("no {name} in /proc/{pid}/status"))?.parse()?)
    };
    Ok((field("VmRSS:")?, field("VmHWM:")?))
}

pub(crate) fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

pub(crate) fn mebibytes(kib: u64) -> f64 {
    kib as f64 / 1024.0
}

pub(crate) fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "NOT MET" }
}
