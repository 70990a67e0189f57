//! What a client of the Model Context Protocol waits for, beside the protocol's reference server of files:
//! start, calls one after the other and at once, and memory.
//!
//! `cargo bench --bench mcp`. Without `npm install` in tests/mcp there is nothing to compare with. Both
//! servers are asked the same of the same files, in turns, over pipes. The reference server does not sync
//! what it writes; ours does, so edits are measured once more in memory.

#![expect(clippy::print_stdout, reason = "a bench prints its table")]

mod measurement;

use std::error::Error;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use measurement::{Goal, Measurement};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Starts that count, after a few that do not.
const STARTS: usize = 20;
const WARM_UP: usize = 2;

/// Calls whose latency is taken, of each kind, in interleaved blocks. The first block does not count.
const BLOCKS: usize = 20;
const BLOCK: usize = 25;

/// Calls that are sent before an answer is read.
const AT_ONCE: usize = 64;

/// Calls after which memory is looked at again.
const MANY_CALLS: usize = 10_000;

const MOST_LATENCY_RATIO: f64 = 0.5;
const MOST_START_RATIO: f64 = 0.1;
const MOST_MEMORY_RATIO: f64 = 0.3;

const PEER: &str = "the reference server";

fn main() -> Outcome<()> {
    let directory = tempfile::tempdir()?;
    let servers: Vec<Server> = [Server::ours(directory.path())?]
        .into_iter()
        .chain(Server::reference(directory.path())?)
        .collect();
    starts(&servers)?;
    let mut clients = servers.iter().map(Server::start).collect::<Outcome<Vec<_>>>()?;
    let at_start = clients.iter().map(Client::resident).collect::<Outcome<Vec<_>>>()?;
    report("memory after initialize", "MiB", Goal::RatioAtMost(MOST_MEMORY_RATIO), &at_start);
    for asked in Asked::ALL {
        latencies(asked.name(), asked, &servers, &mut clients)?;
    }
    in_memory()?;
    at_once(&servers, &mut clients)?;
    for (client, server) in clients.iter_mut().zip(&servers) {
        for number in 0..MANY_CALLS {
            client.call(&server.call(Asked::Read, number))?;
        }
    }
    let after = clients.iter().map(Client::resident).collect::<Outcome<Vec<_>>>()?;
    report("memory after 10,000 calls", "MiB", Goal::RatioAtMost(MOST_MEMORY_RATIO), &after);
    Ok(())
}

/// Exec to the answer to `initialize`, in turns.
fn starts(servers: &[Server]) -> Outcome<()> {
    let mut times = vec![Vec::new(); servers.len()];
    for round in 0..WARM_UP + STARTS {
        for (server, times) in servers.iter().zip(&mut times) {
            let start = Instant::now();
            let client = server.start()?;
            let took = start.elapsed();
            client.end()?;
            if round >= WARM_UP {
                times.push(took);
            }
        }
    }
    let milliseconds: Vec<f64> =
        times.iter_mut().map(|times| median(times).as_secs_f64() * 1e3).collect();
    let name = "exec to the answer to initialize";
    report(name, "ms", Goal::RatioAtMost(MOST_START_RATIO), &milliseconds);
    Ok(())
}

/// Edits where a sync costs nothing, so that the work beside it is compared.
fn in_memory() -> Outcome<()> {
    let Ok(directory) = tempfile::tempdir_in("/dev/shm") else {
        println!("  /dev/shm cannot be used: no edit in memory");
        return Ok(());
    };
    let servers: Vec<Server> = [Server::ours(directory.path())?]
        .into_iter()
        .chain(Server::reference(directory.path())?)
        .collect();
    let mut clients = servers.iter().map(Server::start).collect::<Outcome<Vec<_>>>()?;
    let name = format!("{}, in memory", Asked::Edit.name());
    latencies(&name, Asked::Edit, &servers, &mut clients)?;
    clients.into_iter().try_for_each(Client::end)
}

/// One call after the other, in turns.
fn latencies(name: &str, asked: Asked, servers: &[Server], clients: &mut [Client]) -> Outcome<()> {
    let mut times = vec![Vec::new(); servers.len()];
    for block in 0..=BLOCKS {
        for ((server, client), times) in servers.iter().zip(&mut *clients).zip(&mut times) {
            for number in 0..BLOCK {
                let call = server.call(asked, block * BLOCK + number);
                let start = Instant::now();
                client.call(&call)?;
                if block > 0 {
                    times.push(start.elapsed());
                }
            }
        }
    }
    let microseconds: Vec<f64> =
        times.iter_mut().map(|times| median(times).as_secs_f64() * 1e6).collect();
    report(name, "µs", Goal::RatioAtMost(MOST_LATENCY_RATIO), &microseconds);
    Ok(())
}

/// Many reads that are sent before an answer is read: from the first byte to the last answer.
fn at_once(servers: &[Server], clients: &mut [Client]) -> Outcome<()> {
    let mut times = vec![Vec::new(); servers.len()];
    for round in 0..=BLOCKS {
        for ((server, client), times) in servers.iter().zip(&mut *clients).zip(&mut times) {
            let start = Instant::now();
            for number in 0..AT_ONCE {
                client.send(&server.call(Asked::Read, number))?;
            }
            for _ in 0..AT_ONCE {
                client.answer()?;
            }
            if round > 0 {
                times.push(start.elapsed());
            }
        }
    }
    let milliseconds: Vec<f64> =
        times.iter_mut().map(|times| median(times).as_secs_f64() * 1e3).collect();
    let name = "64 reads of 2 KiB at once";
    report(name, "ms", Goal::RatioAtMost(MOST_LATENCY_RATIO), &milliseconds);
    Ok(())
}

fn report(name: &str, unit: &str, goal: Goal, values: &[f64]) {
    let peer = values.get(1).map(|value| (PEER, *value));
    match peer {
        Some((_, theirs)) => {
            println!("  {name:<40} {:>8.2} {unit}, theirs {theirs:>8.2} {unit}", values[0]);
        }
        None => println!("  {name:<40} {:>8.2} {unit} (nothing to compare with)", values[0]),
    }
    Measurement { name, value: values[0], unit, peer, goal }.print();
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// What both servers are asked.
#[derive(Clone, Copy)]
enum Asked {
    Read,
    ReadLarge,
    Edit,
    List,
}

impl Asked {
    const ALL: [Self; 4] = [Self::Read, Self::ReadLarge, Self::Edit, Self::List];

    fn name(self) -> &'static str {
        match self {
            Self::Read => "read of 2 KiB",
            Self::ReadLarge => "read of 60 KiB",
            Self::Edit => "edit of a line of 2 KiB",
            Self::List => "list of 100 files",
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Ours,
    Reference,
}

/// A server and the directory that is its own.
struct Server {
    kind: Kind,
    program: PathBuf,
    arguments: Vec<String>,
    root: PathBuf,
    scratch: PathBuf,
}

impl Server {
    fn ours(directory: &Path) -> Outcome<Self> {
        let root = files(&directory.join("ours"))?;
        let arguments = vec!["mcp".to_owned(), "--root".to_owned(), shown(&root)];
        let program = PathBuf::from(env!("CARGO_BIN_EXE_provider-workspace"));
        Ok(Self { kind: Kind::Ours, program, arguments, root, scratch: directory.to_owned() })
    }

    /// None where it is not installed.
    #[expect(clippy::disallowed_methods, reason = "a bench looks for what it compares with")]
    fn reference(directory: &Path) -> Outcome<Option<Self>> {
        let installed = "tests/mcp/node_modules/.bin/mcp-server-filesystem";
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join(installed);
        if !program.exists() {
            return Ok(None);
        }
        let root = files(&directory.join("reference"))?;
        let arguments = vec![shown(&root)];
        let scratch = directory.to_owned();
        Ok(Some(Self { kind: Kind::Reference, program, arguments, root, scratch }))
    }

    /// Launched and initialized.
    #[expect(clippy::disallowed_methods, reason = "servers are what this measures")]
    fn start(&self) -> Outcome<Client> {
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .env("TMPDIR", &self.scratch)
            .env("XDG_STATE_HOME", self.scratch.join("state"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let input = child.stdin.take().ok_or("no standard input")?;
        let output = BufReader::new(child.stdout.take().ok_or("no standard output")?);
        let mut client = Client { child, input, output };
        client.send(&json!({
            "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
                "protocolVersion": "2025-06-18", "capabilities": {},
                "clientInfo": {"name": "bench", "version": "1"},
            },
        }))?;
        client.answer()?;
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(client)
    }

    /// The request for the same thing in this server's words. `number` makes edits differ.
    fn call(&self, asked: Asked, number: usize) -> Value {
        let path = |name: &str| shown(&self.root.join(name));
        let (old, new) = (["line a", "line b"][number % 2], ["line b", "line a"][number % 2]);
        let (name, arguments) = match (asked, self.kind) {
            (Asked::Read, Kind::Ours) => ("read_file", json!({"path": path("small.txt")})),
            (Asked::Read, Kind::Reference) => {
                ("read_text_file", json!({"path": path("small.txt")}))
            }
            (Asked::ReadLarge, Kind::Ours) => ("read_file", json!({"path": path("large.txt")})),
            (Asked::ReadLarge, Kind::Reference) => {
                ("read_text_file", json!({"path": path("large.txt")}))
            }
            (Asked::Edit, Kind::Ours) => (
                "edit_file",
                json!({"path": path("edited.txt"), "old_string": old, "new_string": new}),
            ),
            (Asked::Edit, Kind::Reference) => (
                "edit_file",
                json!({"path": path("edited.txt"), "edits": [{"oldText": old, "newText": new}]}),
            ),
            (Asked::List, Kind::Ours) => ("glob", json!({"pattern": "*", "path": path("many")})),
            (Asked::List, Kind::Reference) => ("list_directory", json!({"path": path("many")})),
        };
        let params = json!({"name": name, "arguments": arguments});
        json!({"jsonrpc": "2.0", "id": number + 1, "method": "tools/call", "params": params})
    }
}

/// The files that are asked for.
#[expect(clippy::disallowed_methods, reason = "a bench makes its files")]
fn files(root: &Path) -> Outcome<PathBuf> {
    std::fs::create_dir_all(root.join("many"))?;
    let lines = |count: usize| "0123456789abcde\n".repeat(count);
    std::fs::write(root.join("small.txt"), lines(128))?;
    std::fs::write(root.join("large.txt"), format!("{}\n", "x".repeat(63)).repeat(60 * 16))?;
    std::fs::write(root.join("edited.txt"), format!("{}line a\n{}", lines(64), lines(63)))?;
    for number in 0..100 {
        std::fs::write(root.join(format!("many/file-{number:02}.txt")), "text\n")?;
    }
    Ok(root.canonicalize()?)
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// A running server.
struct Client {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Client {
    fn send(&mut self, message: &Value) -> Outcome<()> {
        Ok(self.input.write_all(format!("{message}\n").as_bytes())?)
    }

    /// The next answer; what else comes is passed over.
    fn answer(&mut self) -> Outcome<()> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.output.read_line(&mut line)? == 0 {
                return Err("the server went away".into());
            }
            let is_answer = line.contains("\"result\":");
            if line.contains("\"isError\":true") || line.contains("\"error\":") && !is_answer {
                return Err(line.into());
            }
            if is_answer {
                return Ok(());
            }
        }
    }

    fn call(&mut self, request: &Value) -> Outcome<()> {
        self.send(request)?;
        self.answer()
    }

    /// Resident memory of the server's process, in MiB.
    #[expect(clippy::disallowed_methods, reason = "the kernel's own report of another process")]
    fn resident(&self) -> Outcome<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|rest| rest.split_whitespace().next()).ok_or("no VmRSS")?;
        Ok(number.parse::<f64>()? / 1024.0)
    }

    fn end(self) -> Outcome<()> {
        let Self { mut child, input, output } = self;
        drop((input, output));
        // The reference server stays until it is told to go.
        child.kill()?;
        child.wait()?;
        Ok(())
    }
}
