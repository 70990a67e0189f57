//! What a command's output costs on its way to a host, and how soon things happen.
//!
//! `cargo bench --bench stream [-- PART...]` with the parts `throughput`, `memory`, `first`, `cancel`;
//! without a name all of them. Two gibibytes go through a shell behind the jail, the provider and
//! gRPC to a host that counts them. The comparison is the same command in the same shell, piped into
//! a reader that does nothing else: once through a pipe as the shell makes it, once through one as
//! large as ours. On a machine that is not idle put `chrt -r 10` in front: ours hands over between
//! four processes, and each of them queues for a processor.

#![expect(clippy::disallowed_methods, reason = "the bare command is what this compares with")]
#![expect(clippy::print_stdout, reason = "a bench prints its table")]

mod measurement;
mod running;

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures_util::StreamExt as _;
use goplugin::host::{Plugin, Security};
use measurement::{Goal, Measurement};
use running::{Outcome, call, launch, mebibytes, median, memory, milliseconds, verdict};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::json;
use tool_provider::grpc::{InvokeItem, InvokeStream, ToolClient};
use tool_provider::{Event, OutputStream};

const BYTES: u64 = 2 << 30;
const COMMANDS: [(&str, &str); 2] = [
    ("head -c 2G", "head -c 2147483648 /dev/zero"),
    ("dd bs=256k", "dd if=/dev/zero bs=256k count=8192 2>/dev/null"),
];
/// Rounds of each command; ours and the bare ones take turns.
const ROUNDS: usize = 3;
/// What ours asks the kernel for, so that the comparison may have it too.
const LARGE_PIPE: usize = 256 * 1024;
/// How long the slow reader reads.
const SLOW_MESSAGES: u32 = 8;
const FIRST_BYTES: usize = 200;
const CANCELS: usize = 100;

const LEAST_RATIO: f64 = 0.4;
const MOST_PEAK_KIB: u64 = 64 * 1024;
const MOST_FIRST: Duration = Duration::from_millis(10);
const MOST_CANCEL: Duration = Duration::from_millis(100);

fn main() -> Outcome<()> {
    let names: Vec<String> =
        std::env::args().skip(1).filter(|name| !name.starts_with('-')).collect();
    let wanted = |name: &str| names.is_empty() || names.iter().any(|chosen| chosen == name);
    let directory = tempfile::tempdir()?;
    let root = directory.path().join("root");
    std::fs::create_dir(&root)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        if wanted("throughput") {
            throughput(directory.path(), &root).await?;
        }
        if wanted("memory") {
            slow_reader(directory.path(), &root).await?;
        }
        if wanted("first") {
            first_bytes(directory.path(), &root).await?;
        }
        if wanted("cancel") {
            cancels(directory.path(), &root).await?;
        }
        Ok(())
    })
}

struct Provider {
    plugin: Plugin,
    client: ToolClient,
}

impl Provider {
    async fn launch(directory: &Path, root: &Path, security: Security) -> Outcome<Self> {
        let (plugin, client) = launch(directory, root, security).await?;
        Ok(Self { plugin, client })
    }

    async fn start(&mut self, command: &str) -> Outcome<InvokeStream> {
        Ok(self.client.invoke(call("bash", json!({ "command": command }))).await?)
    }

    /// The processor time that the provider's process took so far, without its commands'.
    fn cpu(&self) -> Outcome<Duration> {
        let pid = self.plugin.pid().ok_or("the provider runs elsewhere")?;
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let after_name = stat.rsplit_once(')').ok_or("no name in stat")?.1;
        // User and system time, in hundredths of a second on every Linux that we run on.
        let ticks = after_name.split_whitespace().skip(11).take(2).map(str::parse::<u64>);
        let ticks: u64 = ticks.sum::<Result<_, _>>()?;
        Ok(Duration::from_millis(ticks * 10))
    }

    /// The most memory that the provider's process had so far, in KiB.
    fn peak(&self) -> Outcome<u64> {
        let (_, peak) = memory(self.plugin.pid().ok_or("the provider runs elsewhere")?)?;
        Ok(peak)
    }
}

/// Gibibytes a second through everything, against the same command and a bare reader.
async fn throughput(directory: &Path, root: &Path) -> Outcome<()> {
    println!("2 GiB of output, median of {ROUNDS}");
    for (kind, security) in [("plain", Security::Plain), ("AutoMTLS", Security::AutoMtls)] {
        let mut provider = Provider::launch(directory, root, security).await?;
        for (name, command) in COMMANDS {
            let (mut default, mut large, mut ours) = (Vec::new(), Vec::new(), Vec::new());
            let cpu_before = provider.cpu()?;
            for _ in 0..ROUNDS {
                default.push(bare(command, None)?);
                large.push(bare(command, Some(LARGE_PIPE))?);
                ours.push(streamed(&mut provider, command).await?);
            }
            let cpu = (provider.cpu()? - cpu_before) / u32::try_from(2 * ROUNDS)?;
            let [default, large, ours] = [default, large, ours].map(|mut times| median(&mut times));
            let ratio = default.as_secs_f64() / ours.as_secs_f64();
            println!(
                "  {name:<10} {kind:<8} {:.2} GiB/s; bare reader {:.2}: {ratio:.2} x (goal >= {LEAST_RATIO}) {}; \
                 bare with a pipe of 256 KiB {:.2}: {:.2} x; the provider took {:.2} s/GiB of processor time",
                rate(ours),
                rate(default),
                verdict(ratio >= LEAST_RATIO),
                rate(large),
                large.as_secs_f64() / ours.as_secs_f64(),
                cpu.as_secs_f64(),
            );
            Measurement {
                name: &format!("2 GiB of `{name}` to the host, {kind}"),
                value: rate(ours),
                unit: "GiB/s",
                peer: Some(("piped into a bare reader", rate(default))),
                goal: Goal::RatioAtLeast(LEAST_RATIO),
            }
            .print();
        }
        let peak = provider.peak()?;
        println!(
            "  peak of the provider, {kind}: {:.1} MiB (goal <= 64) {}",
            mebibytes(peak),
            verdict(peak <= MOST_PEAK_KIB)
        );
        print_peak(&format!("2 GiB to the host, {kind}: peak memory of the provider"), peak);
        provider.plugin.kill().await;
    }
    Ok(())
}

fn bare(command: &str, pipe: Option<usize>) -> Outcome<Duration> {
    let start = Instant::now();
    let mut child = Command::new("/bin/bash")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut stdout = child.stdout.take().ok_or("no standard output")?;
    if let Some(bytes) = pipe {
        rustix::pipe::fcntl_setpipe_size(&stdout, bytes)?;
    }
    let mut buffer = vec![0; 64 * 1024];
    let mut total = 0;
    loop {
        match stdout.read(&mut buffer)? {
            0 => break,
            read => total += read as u64,
        }
    }
    child.wait()?;
    if total == BYTES { Ok(start.elapsed()) } else { Err(format!("{total} bytes came").into()) }
}

async fn streamed(provider: &mut Provider, command: &str) -> Outcome<Duration> {
    let start = Instant::now();
    let mut stream = provider.start(command).await?;
    let mut total = 0;
    loop {
        match stream.next().await.ok_or("the stream has no end")?? {
            InvokeItem::Event(Event::Output { data, .. }) => total += data.len() as u64,
            InvokeItem::Event(_) => {}
            InvokeItem::Result(_) if total == BYTES => return Ok(start.elapsed()),
            other => return Err(format!("after {total} bytes: {other:?}").into()),
        }
    }
}

/// A host that takes one message a second.
async fn slow_reader(directory: &Path, root: &Path) -> Outcome<()> {
    let mut provider = Provider::launch(directory, root, Security::Plain).await?;
    for (name, command) in COMMANDS {
        let mut stream = provider.start(command).await?;
        for _ in 0..SLOW_MESSAGES {
            stream.next().await.ok_or("the stream has ended")??;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let peak = provider.peak()?;
        println!(
            "one message a second of {name}: peak of the provider {:.1} MiB (goal <= 64) {}",
            mebibytes(peak),
            verdict(peak <= MOST_PEAK_KIB)
        );
        let name = format!("`{name}`, one message a second: peak memory of the provider");
        print_peak(&name, peak);
    }
    provider.plugin.kill().await;
    Ok(())
}

fn print_peak(name: &str, kib: u64) {
    let goal = Goal::ValueAtMost(mebibytes(MOST_PEAK_KIB));
    Measurement { name, value: mebibytes(kib), unit: "MiB", peer: None, goal }.print();
}

/// From the moment that a command writes to the moment that the host has it.
async fn first_bytes(directory: &Path, root: &Path) -> Outcome<()> {
    let mut provider = Provider::launch(directory, root, Security::Plain).await?;
    let mut times = Vec::with_capacity(FIRST_BYTES);
    for _ in 0..FIRST_BYTES {
        let mut stream = provider.start("echo $EPOCHREALTIME").await?;
        while let Some(item) = stream.next().await {
            if let InvokeItem::Event(Event::Output { stream: OutputStream::Stdout, data }) = item? {
                let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
                let written: f64 = std::str::from_utf8(&data)?.trim().parse()?;
                times.push(now.saturating_sub(Duration::from_secs_f64(written)));
            }
        }
    }
    let middle = median(&mut times);
    println!(
        "first byte: {:.2} ms after it was written, p99 {:.2} ms, of {FIRST_BYTES} (goal <= 10) {}",
        milliseconds(middle),
        milliseconds(times[times.len() * 99 / 100]),
        verdict(middle <= MOST_FIRST),
    );
    print_time("first byte, after the command wrote it", middle, MOST_FIRST);
    provider.plugin.kill().await;
    Ok(())
}

/// From the moment that the host lets go of a call to the end of its last process.
async fn cancels(directory: &Path, root: &Path) -> Outcome<()> {
    let mut provider = Provider::launch(directory, root, Security::Plain).await?;
    let mark = format!("300.{:07}", std::process::id());
    for (name, command) in [
        ("one sleep", format!("echo up; exec sleep {mark}")),
        ("a shell with two", format!("sleep {mark} & echo up; sleep {mark}; true")),
        ("one in a session of its own", format!("setsid sleep {mark} & echo up; sleep {mark}")),
    ] {
        let mut times = Vec::with_capacity(CANCELS);
        for _ in 0..CANCELS {
            let mut stream = provider.start(&command).await?;
            while let Some(item) = stream.next().await {
                if matches!(item?, InvokeItem::Event(Event::Output { .. })) {
                    break;
                }
            }
            // The sleeps may not have been reached yet.
            tokio::time::sleep(Duration::from_millis(20)).await;
            let processes: Vec<_> = marked(&mark)?
                .into_iter()
                .filter_map(|pid| pidfd_open(pid, PidfdFlags::empty()).ok())
                .collect();
            let start = Instant::now();
            drop(stream);
            let ended = tokio::task::spawn_blocking(move || -> rustix::io::Result<Instant> {
                for process in &processes {
                    poll(&mut [PollFd::new(process, PollFlags::IN)], None)?;
                }
                Ok(Instant::now())
            });
            times.push(ended.await?? - start);
        }
        let middle = median(&mut times);
        println!(
            "cancel to the last process gone, {name}: {:.2} ms, p99 {:.2} ms, of {CANCELS} (goal <= 100) {}",
            milliseconds(middle),
            milliseconds(times[times.len() * 99 / 100]),
            verdict(middle <= MOST_CANCEL),
        );
        let name = format!("cancel to the last process gone, {name}");
        print_time(&name, middle, MOST_CANCEL);
    }
    provider.plugin.kill().await;
    Ok(())
}

fn print_time(name: &str, time: Duration, most: Duration) {
    let goal = Goal::ValueAtMost(milliseconds(most));
    Measurement { name, value: milliseconds(time), unit: "ms", peer: None, goal }.print();
}

/// The processes that have `mark` among their arguments.
fn marked(mark: &str) -> Outcome<Vec<Pid>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&line).contains(mark) {
            found.extend(Pid::from_raw(pid));
        }
    }
    Ok(found)
}

/// Gibibytes a second.
fn rate(time: Duration) -> f64 {
    BYTES as f64 / f64::from(1 << 30) / time.as_secs_f64()
}
