//! What a host waits for: the start compared with a minimal Go plugin's, a call's latency compared
//! with an empty one's, memory, and the shutdown while a command runs.
//!
//! `cargo bench --bench launch`. Without `go` on the machine the first part has no comparison.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a bench prints its table")]

mod measurement;
mod running;

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use futures_util::StreamExt as _;
use goplugin::Services;
use goplugin::host::{Launch, Multiplex, Plugin, Security};
use provider_workspace::plugin::{COOKIE, HOST_CALLBACKS, PROTOCOL_VERSION};
use serde_json::json;
use tool_provider::grpc::{ToolClient, host_callbacks};

use measurement::{Goal, Measurement};
use running::{
    Outcome, call, launch, launch_with, mebibytes, median, memory, milliseconds, verdict,
};

/// Launches of each kind that count, after a few that do not.
const LAUNCHES: usize = 60;
const WARM_UP: usize = 5;

/// Calls whose latency is taken, of each kind, in interleaved blocks.
const BLOCKS: usize = 40;
const BLOCK: usize = 50;

/// Calls after which memory is looked at again.
const MANY_CALLS: usize = 10_000;

const MOST_START_RATIO: f64 = 0.5;
const MOST_CALL_RATIO: f64 = 1.5;
const MOST_RESIDENT_KIB: u64 = 15 * 1024;

/// Ends of each mode.
const ENDS: usize = 20;
const MOST_END: Duration = Duration::from_millis(100);

fn main() -> Outcome<()> {
    let directory = tempfile::tempdir()?;
    let provider = PathBuf::from(env!("CARGO_BIN_EXE_provider-workspace"));
    starts(&provider, build_go_plugin(directory.path()).as_deref(), directory.path())?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        calls(directory.path()).await?;
        ends(directory.path()).await
    })
}

/// Exec to handshake line, all kinds interleaved.
fn starts(provider: &Path, go: Option<&Path>, directory: &Path) -> Outcome<()> {
    let certificate = host_certificate()?;
    let kinds = [("plain", None), ("AutoMTLS", Some(certificate.as_str()))];
    let programs: Vec<&Path> = std::iter::once(provider).chain(go).collect();
    let mut times = vec![Vec::with_capacity(LAUNCHES); kinds.len() * programs.len()];
    for round in 0..WARM_UP + LAUNCHES {
        for (kind, (_, certificate)) in kinds.iter().enumerate() {
            for (program, path) in programs.iter().enumerate() {
                let took = time_to_line(path, *certificate, directory)?;
                if round >= WARM_UP {
                    times[kind * programs.len() + program].push(took);
                }
            }
        }
    }
    println!("exec to handshake line, median of {LAUNCHES}");
    for (kind, times) in times.chunks_mut(programs.len()).enumerate() {
        let ours = median(&mut times[0]);
        let name = kinds[kind].0;
        let go = times.get_mut(1).map(|go| median(go));
        Measurement {
            name: &format!("exec to handshake line, {name}"),
            value: milliseconds(ours),
            unit: "ms",
            peer: go.map(|go| ("a minimal Go plugin", milliseconds(go))),
            goal: Goal::RatioAtMost(MOST_START_RATIO),
        }
        .print();
        match go {
            Some(go) => {
                let ratio = ours.as_secs_f64() / go.as_secs_f64();
                println!(
                    "  {name:<9} {:>6.2} ms, Go {:>6.2} ms: {ratio:.2} x (goal <= {MOST_START_RATIO}) {}",
                    milliseconds(ours),
                    milliseconds(go),
                    verdict(ratio <= MOST_START_RATIO),
                );
            }
            None => {
                println!("  {name:<9} {:>6.2} ms (nothing to compare with)", milliseconds(ours))
            }
        }
    }
    Ok(())
}

/// Latency and memory of one launched provider.
async fn calls(directory: &Path) -> Outcome<()> {
    let root = directory.join("root");
    let file = write_file(&root, "two-kib.txt", &"0123456789abcde\n".repeat(128))?;
    println!("calls, median of {} each", BLOCKS * BLOCK);
    for (name, security) in [("plain", Security::Plain), ("AutoMTLS", Security::AutoMtls)] {
        let (plugin, mut client) = launch(directory, &root, security).await?;
        let pid = plugin.pid().unwrap_or_default();
        let (resident_before, _) = memory(pid)?;
        latencies(name, &plugin, &mut client, &file).await?;
        for _ in 0..MANY_CALLS {
            read(&mut client, &file).await?;
        }
        let (resident, peak) = memory(pid)?;
        println!(
            "  {name:<9} memory: {:.1} MiB after Configure, {:.1} MiB after {MANY_CALLS} calls, peak {:.1} MiB (goal <= 15) {}",
            mebibytes(resident_before),
            mebibytes(resident),
            mebibytes(peak),
            verdict(resident <= MOST_RESIDENT_KIB),
        );
        Measurement {
            name: &format!("memory after 10,000 calls, {name}"),
            value: mebibytes(resident),
            unit: "MiB",
            peer: Some(("right after Configure", mebibytes(resident_before))),
            goal: Goal::ValueAtMost(mebibytes(MOST_RESIDENT_KIB)),
        }
        .print();
        plugin.kill().await;
    }
    Ok(())
}

async fn latencies(
    name: &str,
    plugin: &Plugin,
    client: &mut ToolClient,
    file: &Path,
) -> Outcome<()> {
    let (mut empty, mut reads) = (Vec::new(), Vec::new());
    for block in 0..=BLOCKS {
        for _ in 0..BLOCK {
            let start = Instant::now();
            plugin.ping().await?;
            empty.push(start.elapsed());
        }
        for _ in 0..BLOCK {
            let start = Instant::now();
            read(client, file).await?;
            reads.push(start.elapsed());
        }
        if block == 0 {
            // Warm-up.
            empty.clear();
            reads.clear();
        }
    }
    let (empty, reads) = (median(&mut empty), median(&mut reads));
    let ratio = reads.as_secs_f64() / empty.as_secs_f64();
    println!(
        "  {name:<9} read_file of 2 KiB {:>4} us, empty call {:>4} us: {ratio:.2} x (goal <= {MOST_CALL_RATIO}) {}",
        reads.as_micros(),
        empty.as_micros(),
        verdict(ratio <= MOST_CALL_RATIO),
    );
    Measurement {
        name: &format!("`read_file` of 2 KiB, {name}"),
        value: reads.as_secs_f64() * 1e6,
        unit: "µs",
        peer: Some(("an empty unary call", empty.as_secs_f64() * 1e6)),
        goal: Goal::RatioAtMost(MOST_CALL_RATIO),
    }
    .print();
    Ok(())
}

async fn read(client: &mut ToolClient, file: &Path) -> Outcome<()> {
    let (_, result) = client.invoke_to_end(call("read_file", json!({ "path": file }))).await?;
    match result {
        Ok(_) => Ok(()),
        Err(failure) => Err(failure.message.into()),
    }
}

/// From Shutdown to the end of the process while a command runs, in every mode.
async fn ends(directory: &Path) -> Outcome<()> {
    let root = directory.join("ends");
    write_file(&root, "file.txt", "text\n")?;
    println!("Shutdown to exit while bash runs, {ENDS} in each mode");
    for (name, security, multiplex) in [
        ("plain", Security::Plain, Multiplex::Off),
        ("AutoMTLS", Security::AutoMtls, Multiplex::Off),
        ("multiplexed", Security::Plain, Multiplex::On),
        ("AutoMTLS and multiplexed", Security::AutoMtls, Multiplex::On),
    ] {
        let mut times = Vec::with_capacity(ENDS);
        for _ in 0..ENDS {
            let change = |launch: Launch| launch.security(security).multiplex(multiplex);
            let (plugin, mut client) = launch_with(directory, &root, change).await?;
            let (heard, _) = tokio::sync::mpsc::unbounded_channel();
            let log = host_callbacks(move |entry| drop(heard.send(entry)));
            let callbacks = Services::new().with(log);
            plugin.serve_callbacks(HOST_CALLBACKS, callbacks).await?;
            let command = json!({ "command": "echo on; sleep 1000" });
            let mut stream = client.invoke(call("bash", command)).await?;
            stream.next().await.ok_or("the command said nothing")??;
            let start = Instant::now();
            plugin.kill().await;
            times.push(start.elapsed());
        }
        let slowest = times.iter().max().copied().unwrap_or_default();
        let half = median(&mut times);
        println!(
            "  {name:<24} {:>6.2} ms, slowest {:>6.2} ms (goal <= 100) {}",
            milliseconds(half),
            milliseconds(slowest),
            verdict(half <= MOST_END),
        );
        Measurement {
            name: &format!("Shutdown to exit while bash runs, {name}"),
            value: milliseconds(half),
            unit: "ms",
            peer: None,
            goal: Goal::ValueAtMost(milliseconds(MOST_END)),
        }
        .print();
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "launches are what this measures")]
fn time_to_line(program: &Path, certificate: Option<&str>, directory: &Path) -> Outcome<Duration> {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("TMPDIR", directory)
        .env(COOKIE.key, COOKIE.value)
        .env("PLUGIN_PROTOCOL_VERSIONS", PROTOCOL_VERSION.to_string())
        .env("PLUGIN_MIN_PORT", "10000")
        .env("PLUGIN_MAX_PORT", "25000")
        .envs(certificate.map(|pem| ("PLUGIN_CLIENT_CERT", pem)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let start = Instant::now();
    let mut child = command.spawn()?;
    let mut line = Vec::new();
    let mut stdout = child.stdout.take().ok_or("no standard output")?;
    let mut buffer = [0; 4096];
    while !line.ends_with(b"\n") {
        match stdout.read(&mut buffer)? {
            0 => return Err(format!("{} printed no handshake line", program.display()).into()),
            read => line.extend_from_slice(&buffer[..read]),
        }
    }
    let took = start.elapsed();
    child.kill()?;
    child.wait()?;
    Ok(took)
}

/// A certificate such as a host sends. Its key is not needed: nobody connects.
fn host_certificate() -> Outcome<String> {
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
    let params = rcgen::CertificateParams::new(["localhost".to_owned()])?;
    let der = base64::engine::general_purpose::STANDARD.encode(params.self_signed(&key)?.der());
    Ok(format!("-----BEGIN CERTIFICATE-----\n{der}\n-----END CERTIFICATE-----\n"))
}

#[expect(clippy::disallowed_methods, reason = "the thing to compare with is built by go itself")]
fn build_go_plugin(directory: &Path) -> Option<PathBuf> {
    let program = directory.join("goplugin");
    let module = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/interop");
    let arguments =
        [OsStr::new("build"), OsStr::new("-o"), program.as_os_str(), OsStr::new("./goplugin")];
    match Command::new("go").args(arguments).current_dir(module).status() {
        Ok(status) if status.success() => Some(program),
        Ok(status) => {
            eprintln!("the Go plugin could not be built ({status}): no comparison");
            None
        }
        Err(error) => {
            eprintln!("go cannot be run ({error}): no comparison");
            None
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a bench's own file")]
fn write_file(directory: &Path, name: &str, text: &str) -> Outcome<PathBuf> {
    std::fs::create_dir(directory)?;
    let path = directory.join(name);
    std::fs::write(&path, text)?;
    Ok(path)
}
