//! The operation that is a child process.

use std::collections::HashSet;
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::sync::mpsc::Sender;

use super::answers::{error, result};
use super::fault::Fault;
use tool_provider::grpc::pb::tool::v1::tool_event::{Event, ExitStatus, OutputChunk};
use tool_provider::grpc::pb::tool::v1::{OutputStream, ToolErrorCategory};

/// Longer than anything is asked for.
const NO_DEADLINE: Duration = Duration::from_secs(600);

/// The process groups that run.
#[derive(Clone, Default)]
pub(crate) struct Groups(Arc<Mutex<HashSet<Pid>>>);

impl Groups {
    fn change(&self, change: impl FnOnce(&mut HashSet<Pid>)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(crate) fn kill_all(&self) {
        self.change(|groups| groups.drain().for_each(kill));
    }
}

fn kill(group: Pid) {
    // Fails only for one that is gone.
    let _ = kill_process_group(group, Signal::KILL);
}

/// Runs the command and sends what comes of it.
pub(crate) async fn run(
    fault: Fault,
    groups: Groups,
    command: String,
    directory: String,
    deadline: Option<Duration>,
    events: Sender<Event>,
) {
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command).process_group(0);
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    if !directory.is_empty() && !fault.is("ignores-the-working-directory") {
        shell.current_dir(directory);
    }
    let Ok(mut child) = shell.spawn() else {
        let failure = error(ToolErrorCategory::ExecutionFailed, "no shell");
        let _ = events.send(Event::Error(failure)).await;
        return;
    };
    let group = Pid::from_child(&child);
    groups.change(|groups| {
        groups.insert(group);
    });
    let Some(mut stdout) = child.stdout.take() else { return };
    let (sink, reverses) = (events.clone(), fault.is("mixes-output-up"));
    let mut reading = tokio::task::spawn_blocking(move || {
        let mut text = Vec::new();
        let mut buffer = [0; 512];
        while let Ok(length @ 1..) = stdout.read(&mut buffer) {
            text.extend_from_slice(&buffer[..length]);
            if !reverses {
                // Whoever cancelled does not listen; the pipe is read all the same.
                let _ = sink.blocking_send(chunk(buffer[..length].to_vec()));
            }
        }
        if reverses {
            for line in String::from_utf8_lossy(&text).lines().rev() {
                let _ = sink.blocking_send(chunk(format!("{line}\n").into_bytes()));
            }
        }
        text
    });
    let is_deaf = fault.is("ignores-a-cancel");
    let mut is_late = false;
    let mut text = None;
    tokio::select! {
        read = &mut reading => text = read.ok(),
        () = events.closed(), if !is_deaf => {}
        () = tokio::time::sleep(deadline.unwrap_or(NO_DEADLINE)), if !is_deaf => is_late = true,
    }
    kill(group);
    groups.change(|groups| {
        groups.remove(&group);
    });
    if text.is_none() {
        text = reading.await.ok();
    }
    let code = tokio::task::spawn_blocking(move || child.wait()).await;
    let mut code = code.ok().and_then(Result::ok).and_then(|status| status.code()).unwrap_or(-1);
    if fault.is("exits-with-another-code") {
        code = code.min(1);
    }
    let _ = events.send(Event::ExitStatus(ExitStatus { exit_code: code, signal: None })).await;
    let end = match is_late {
        true => Event::Error(error(ToolErrorCategory::Timeout, "too late")),
        false => result(&String::from_utf8_lossy(&text.unwrap_or_default())),
    };
    let _ = events.send(end).await;
}

fn chunk(data: Vec<u8>) -> Event {
    Event::OutputChunk(OutputChunk { stream: OutputStream::Stdout.into(), data: data.into() })
}
