//! What a session costs: the time from what is typed to its echo at the host beside the same on a bare
//! terminal, the memory of one, and the processor time of sixteen that do nothing.
//!
//! `cargo bench --bench session [-- RUNS]`, on a machine that is otherwise idle.
#![expect(clippy::disallowed_methods, reason = "the bare terminal is what it is compared with")]
#![expect(clippy::print_stdout, reason = "a bench prints its table")]

mod measurement;
mod running;

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use goplugin::host::Security;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use serde_json::json;
use tool_provider::Event;
use tool_provider::grpc::{InvokeItem, ToolClient};

use measurement::{Goal, Measurement};
use running::{Outcome, call, launch, mebibytes, median, memory, milliseconds, verdict};

/// The most that an echo may take to the host, in milliseconds.
const MOST_ECHO: f64 = 5.0;

/// How many sessions do nothing.
const IDLE: usize = 16;

/// For how long they are looked at.
const LOOK: Duration = Duration::from_secs(10);

fn main() -> Outcome<()> {
    let runs = std::env::args().skip(1).find_map(|text| text.parse().ok()).unwrap_or(200);
    let directory = tempfile::tempdir()?;
    let root = directory.path().join("root");
    std::fs::create_dir(&root)?;
    let mut bare = bare_echoes(runs)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (plugin, mut client) = launch(directory.path(), &root, Security::Plain).await?;
        let pid = plugin.pid().ok_or("the plugin has no process")?;
        let mut echoes = echoes(&mut client, runs).await?;
        let (ours, bare) = (milliseconds(median(&mut echoes)), milliseconds(median(&mut bare)));
        let met = verdict(ours <= MOST_ECHO);
        println!(
            "write to echo, median of {runs}: {ours:.2} ms at the host, {bare:.2} ms bare; {met}"
        );
        Measurement {
            name: "a key to its echo at the host",
            value: ours,
            unit: "ms",
            peer: Some(("a bare terminal", bare)),
            goal: Goal::ValueAtMost(MOST_ECHO),
        }
        .print();
        idle(&mut client, pid).await?;
        plugin.kill().await;
        Ok(())
    })
}

/// From a call of session_write to the event that holds what `cat` echoes.
async fn echoes(client: &mut ToolClient, runs: usize) -> Outcome<Vec<Duration>> {
    let start = json!({"command": "stty -echo; echo up; exec cat", "name": "echo", "tty": true,
                       "ready": "up", "wait_ms": 20000});
    client.invoke_to_end(call("session_start", start)).await?.1.map_err(|e| e.to_string())?;
    let mut times = Vec::new();
    for run in 0..runs {
        let line = format!("line {run}\n");
        let write = json!({"session": "echo", "text": line, "wait_ms": 5000});
        let begun = Instant::now();
        let mut stream = client.invoke(call("session_write", write)).await?;
        let mut is_there = false;
        while let Some(item) = stream.next().await {
            if let InvokeItem::Event(Event::Output { .. }) = item?
                && !is_there
            {
                is_there = true;
                times.push(begun.elapsed());
            }
        }
        if !is_there {
            return Err("no echo".into());
        }
    }
    Ok(times)
}

/// The same by a terminal that this process holds itself.
fn bare_echoes(runs: usize) -> Outcome<Vec<Duration>> {
    let control = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&control)?;
    unlockpt(&control)?;
    let end = || -> Outcome<OwnedFd> {
        Ok(ioctl_tiocgptpeer(&control, OpenptFlags::RDWR | OpenptFlags::NOCTTY)?)
    };
    let mut child = Command::new("bash")
        .args(["-c", "stty -echo; echo up; exec cat"])
        .stdin(Stdio::from(end()?))
        .stdout(Stdio::from(end()?))
        .spawn()?;
    let mut terminal = File::from(control);
    let mut buffer = [0; 256];
    let mut seen = String::new();
    while !seen.contains("up") {
        let count = terminal.read(&mut buffer)?;
        seen.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    let mut times = Vec::new();
    for run in 0..runs {
        let line = format!("line {run}\n");
        let begun = Instant::now();
        terminal.write_all(line.as_bytes())?;
        let mut seen = 0;
        while seen < line.len() {
            seen += terminal.read(&mut buffer)?;
        }
        times.push(begun.elapsed());
    }
    child.kill()?;
    child.wait()?;
    Ok(times)
}

/// The memory and the processor time of sessions that do nothing.
async fn idle(client: &mut ToolClient, pid: u32) -> Outcome<()> {
    client
        .invoke_to_end(call("session_stop", json!({"session": "echo"})))
        .await?
        .1
        .map_err(|e| e.to_string())?;
    let before = memory(pid)?.0;
    for number in 0..IDLE {
        let tty = number % 2 == 0;
        let start = json!({"command": "sleep 1000", "tty": tty, "wait_ms": 0});
        client.invoke_to_end(call("session_start", start)).await?.1.map_err(|e| e.to_string())?;
    }
    let each = mebibytes(memory(pid)?.0.saturating_sub(before)) / IDLE as f64;
    let (own, below) = (processor_time(pid)?, below(pid)?);
    tokio::time::sleep(LOOK).await;
    let (own_after, below_after) = (processor_time(pid)?, self::below(pid)?);
    let share = |ticks: u64| ticks as f64 / 100.0 / LOOK.as_secs_f64() * 100.0;
    let (own, below) = (share(own_after - own), share(below_after - below));
    println!("a session of {IDLE}: {each:.2} MiB in the provider");
    println!(
        "{IDLE} idle sessions: {own:.2} % of a processor in the provider, {below:.2} % below it"
    );
    let figure =
        |name, value, unit| Measurement { name, value, unit, peer: None, goal: Goal::None };
    figure("an idle session, memory in the provider", each, "MiB").print();
    Measurement {
        goal: Goal::ValueAtMost(0.1),
        ..figure("16 idle sessions, provider", own, "% of a processor")
    }
    .print();
    figure("16 idle sessions, their supervisors", below, "% of a processor").print();
    Ok(())
}

/// Ticks of a hundredth of a second that a process ran.
fn processor_time(pid: u32) -> Outcome<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let rest = stat.rsplit_once(')').ok_or("no name in stat")?.1;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |at: usize| -> Outcome<u64> { Ok(fields.get(at).ok_or("short")?.parse()?) };
    Ok(number(11)? + number(12)?)
}

/// The same of all processes below it.
fn below(pid: u32) -> Outcome<u64> {
    let mut ticks = 0;
    let mut tree = vec![pid];
    while let Some(next) = tree.pop() {
        for task in std::fs::read_dir(format!("/proc/{next}/task"))?.flatten() {
            let children = std::fs::read_to_string(task.path().join("children"))?;
            for child in children.split_whitespace() {
                let child: u32 = child.parse()?;
                ticks += processor_time(child).unwrap_or(0);
                tree.push(child);
            }
        }
    }
    Ok(ticks)
}
