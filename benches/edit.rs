//! What a one-line edit costs, in time and in memory: beside reading, replacing and atomically
//! writing the same file in plain Rust, and, where it is there, beside the reference MCP file system
//! server.
//!
//! All are measured in turns on the same file, so that a busy machine slows all; what counts is the
//! ratio of the medians. Ours and the plain one sync the file and its directory, the MCP server
//! syncs nothing. That server is found by `MCP_FILESYSTEM`, the path of its `dist/index.js` (npm
//! `@modelcontextprotocol/server-filesystem`); without it, or without node, its column stays empty.
//! `EDIT_BENCH_MIB` names another size for the large file, `EDIT_BENCH_DIR` another directory to
//! work in.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench prepares its own files, prints its measurements, and stops where that fails"
)]

mod measurement;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use goplugin::host::{Launch, Plugin};
use provider_workspace::plugin::{COOKIE, PROTOCOL_VERSION};
use sandbox::Level;
use serde_json::{Value, json};
use tool_provider::Call;
use tool_provider::Secrets;
use tool_provider::grpc::ToolClient;
use tool_provider::{CancelToken, Payload, Phase, Tool};
use tool_provider::{EmitError, Event, EventSink};
use workspace_fs::{Journal, RootsSpec, StateDirectory, Workspace};
use workspace_tools::{Context, EditFile, Files};

use measurement::{Goal, Measurement};

const OLD: &str = "the needle is here";
const NEW: &str = "the needle was here";

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, mode, what, path] = &arguments[..]
        && mode == "peak"
    {
        return peak(what, Path::new(path));
    }
    let large = std::env::var("EDIT_BENCH_MIB").ok().and_then(|mib| mib.parse().ok());
    let sizes = [(1 << 10, 200), (1 << 20, 60), (large.unwrap_or(100) << 20, 7)];
    // On a disk: a sync costs nothing in memory.
    let base = std::env::var_os("EDIT_BENCH_DIR").map(PathBuf::from);
    let base = base.unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").into());
    let directory = tempfile::tempdir_in(base).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    println!(
        "{:>10} {:>12} {:>12} {:>8} {:>12} {:>12} {:>12} {:>8} {:>10} {:>10}",
        "bytes",
        "plain Rust",
        "edit_file",
        "ratio",
        "over gRPC",
        "preview",
        "MCP server",
        "ratio",
        "peak plain",
        "peak ours"
    );
    for (size, rounds) in sizes {
        runtime.block_on(measure(directory.path(), size, rounds));
    }
}

/// Lines with one needle in their middle.
fn prepare(path: &Path, size: usize) {
    let mut text = "a line of text that is neither long nor short\n".repeat(size / 46 + 1);
    text.truncate(size - 1);
    text.push('\n');
    let middle = text[..size / 2].rfind('\n').unwrap() + 1;
    text.replace_range(middle..middle + OLD.len(), OLD);
    fs::write(path, text).unwrap();
}

async fn measure(directory: &Path, size: usize, rounds: usize) {
    let path = directory.join("file.txt");
    prepare(&path, size);
    let ours = Ours::new(directory);
    let plugin = Launched::new(directory).await;
    let mut mcp = Mcp::launch(directory);
    let mut times: [Vec<Duration>; 5] = Default::default();
    for round in 0..rounds {
        let (old, new) = if round % 2 == 0 { (OLD, NEW) } else { (NEW, OLD) };
        times[0].push(timed(|| plain(&path, old, new)));
        times[1].push(timed(|| ours.edit(new, old)));
        times[2].push(plugin.preview(old, new).await);
        times[3].push(plugin.edit(old, new).await);
        match &mut mcp {
            Some(mcp) => times[4].push(timed(|| mcp.edit(&path, new, old))),
            None => plain(&path, new, old),
        }
        // An even number of changes later the needle is the old one again; turn it round.
        plain(&path, old, new);
    }
    let [plain, tool, preview, grpc, server] = times.map(median);
    let ratio = |a: Option<Duration>, b: Option<Duration>| match (a, b) {
        (Some(a), Some(b)) => format!("{:.2}", a.as_secs_f64() / b.as_secs_f64()),
        _ => "-".to_owned(),
    };
    let peaks = ["plain", "ours"].map(|what| peak_of(what, directory, size));
    print_measurements(size, &[plain, tool, preview, grpc, server], peaks);
    let [plain_peak, our_peak] = peaks.map(|kib| format!("{kib} kB"));
    println!(
        "{size:>10} {:>12} {:>12} {:>8} {:>12} {:>12} {:>12} {:>8} {:>10} {:>10}",
        shown(plain),
        shown(tool),
        ratio(tool, plain),
        shown(grpc),
        shown(preview),
        shown(server),
        ratio(server, grpc),
        plain_peak,
        our_peak,
    );
}

/// The measurements of one size, for the report.
fn print_measurements(
    size: usize,
    [plain, tool, preview, grpc, server]: &[Option<Duration>; 5],
    peaks: [u64; 2],
) {
    let is_small = size <= 1 << 20;
    let size = match size {
        kib if kib < 1 << 20 => format!("{} KiB", kib >> 10),
        mib => format!("{} MiB", mib >> 20),
    };
    let milliseconds = |time: &Option<Duration>| time.map(|time| time.as_secs_f64() * 1e3);
    let print = |name: &str, value: &Option<Duration>, peer, goal| {
        if let Some(value) = milliseconds(value) {
            Measurement { name: &format!("{name} of {size}"), value, unit: "ms", peer, goal }
                .print();
        }
    };
    let beside = |name, time| milliseconds(time).map(|time| (name, time));
    let plain = beside("plain Rust: read, replace, sync, rename", plain);
    print("`edit_file` of a line", tool, plain, Goal::RatioAtMost(1.3));
    let server = beside("the reference MCP server, without sync", server);
    print("the same over gRPC", grpc, server, Goal::None);
    // A person waits for a preview; of a larger file they wait longer.
    let goal = if is_small { Goal::ValueAtMost(100.0) } else { Goal::None };
    print("Preview of the same", preview, None, goal);
    let [plain, ours] = peaks.map(|kib| kib as f64 / 1024.0);
    Measurement {
        name: &format!("peak memory of an edit of {size}"),
        value: ours,
        unit: "MiB",
        peer: Some(("plain Rust", plain)),
        goal: Goal::None,
    }
    .print();
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> Option<Duration> {
    times.sort();
    times.get(times.len() / 2).copied()
}

fn shown(time: Option<Duration>) -> String {
    time.map_or("-".to_owned(), |time| format!("{:.3} ms", time.as_secs_f64() * 1e3))
}

/// The plain way: read, replace, write beside, sync, rename, sync the directory.
fn plain(path: &Path, old: &str, new: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(old));
    let text = text.replacen(old, new, 1);
    let temporary = path.with_extension("tmp");
    let mut file = File::create(&temporary).unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file.sync_all().unwrap();
    fs::rename(&temporary, path).unwrap();
    File::open(path.parent().unwrap()).unwrap().sync_all().unwrap();
}

/// The tool in this process.
struct Ours {
    files: Files,
    tool: EditFile,
}

struct NoEvents;

impl EventSink for NoEvents {
    fn emit_until(&self, _: Event, _: Option<Instant>) -> Result<(), EmitError> {
        Ok(())
    }
}

impl Ours {
    fn new(directory: &Path) -> Self {
        let roots = vec![directory.display().to_string()];
        let workspace = Workspace::open(&RootsSpec { roots, ..RootsSpec::default() }).unwrap();
        let state = StateDirectory::at(directory.join("state")).unwrap();
        let workspace = workspace.with_journal(Journal::begin(state).unwrap());
        let files = Files::new(Arc::new(workspace), Level::Off);
        Self { files, tool: EditFile::default() }
    }

    fn edit(&self, old: &str, new: &str) {
        let (cancel, phase) = (CancelToken::new(), Phase::default());
        let context = Context {
            state: &self.files,
            session_id: "",
            working_directory: None,
            sink: &NoEvents,
            cancel: &cancel,
            deadline: None,
            phase: &phase,
            secrets: &Secrets::default(),
        };
        self.tool.run(&arguments(old, new), &context).unwrap();
    }
}

fn arguments(old: &str, new: &str) -> Payload {
    object(json!({"path": "file.txt", "old_string": old, "new_string": new}))
}

fn object(value: Value) -> Payload {
    match value {
        Value::Object(object) => object,
        other => panic!("{other} is no object"),
    }
}

/// The tool as a host has it.
struct Launched {
    _plugin: Plugin,
    client: ToolClient,
}

impl Launched {
    async fn new(directory: &Path) -> Self {
        let program = env!("CARGO_BIN_EXE_provider-workspace");
        let launch = Launch::new(program, COOKIE, [PROTOCOL_VERSION])
            .env("XDG_STATE_HOME", directory.join("state"))
            .current_dir(directory);
        let plugin = launch.start().await.unwrap();
        let mut client = ToolClient::new(plugin.channel());
        let config = json!({"roots": ["."], "sandbox": "best_effort"});
        client.configure(object(config)).await.unwrap();
        Self { _plugin: plugin, client }
    }

    fn call(old: &str, new: &str) -> Call {
        Call {
            id: "bench".to_owned(),
            tool: "edit_file".to_owned(),
            arguments: arguments(old, new),
            session_id: "bench".to_owned(),
            ..Call::default()
        }
    }

    async fn edit(&self, old: &str, new: &str) -> Duration {
        let start = Instant::now();
        self.client.clone().invoke_to_end(Self::call(old, new)).await.unwrap().1.unwrap();
        start.elapsed()
    }

    async fn preview(&self, old: &str, new: &str) -> Duration {
        let start = Instant::now();
        let view = self.client.clone().preview(Self::call(old, new)).await.unwrap();
        let time = start.elapsed();
        assert!(format!("{view:?}").contains("+1 −1"), "{view:?}");
        time
    }
}

/// The reference MCP server for files, spoken to over its standard streams.
struct Mcp {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Mcp {
    fn launch(directory: &Path) -> Option<Self> {
        let server = std::env::var_os("MCP_FILESYSTEM").map(PathBuf::from)?;
        let mut child = Command::new("node")
            .arg(server)
            .arg(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let input = child.stdin.take()?;
        let output = BufReader::new(child.stdout.take()?);
        let mut server = Self { child, input, output };
        let client = json!({"name": "bench", "version": "1"});
        let hello =
            json!({"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": client});
        server.ask("initialize", &hello);
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        writeln!(server.input, "{ready}").unwrap();
        Some(server)
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        writeln!(self.input, "{request}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn edit(&mut self, path: &Path, old: &str, new: &str) {
        let edits = json!([{"oldText": old, "newText": new}]);
        let arguments = json!({"path": path, "edits": edits});
        let answer = self.ask("tools/call", &json!({"name": "edit_file", "arguments": arguments}));
        let failed = answer["result"]["isError"].as_bool() == Some(true);
        assert!(!failed && answer.get("error").is_none(), "{answer}");
    }
}

impl Drop for Mcp {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The most memory that one edit takes, in KiB, in a process of its own.
fn peak_of(what: &str, directory: &Path, size: usize) -> u64 {
    prepare(&directory.join("file.txt"), size);
    let this = std::env::current_exe().unwrap();
    let output = Command::new(this).args(["peak", what]).arg(directory).output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    text.trim().trim_end_matches("kB").trim().parse().unwrap()
}

fn peak(what: &str, directory: &Path) {
    match what {
        "plain" => plain(&directory.join("file.txt"), OLD, NEW),
        _ => Ours::new(directory).edit(OLD, NEW),
    }
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    println!("{}", peak.trim());
}
