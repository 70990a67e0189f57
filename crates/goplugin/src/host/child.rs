//! The plugin's process: started with pipes, waited for without a thread, never left running.

use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child as StdChild, ChildStderr, ChildStdout, Command, ExitStatus};
use std::time::Duration;

use rustix::event::Timespec;
use rustix::process::{Pid, Signal, kill_process};
use tokio::net::unix::pipe;
use tokio::time::timeout;

use crate::watch::ProcessWatch;

/// How a plugin ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, within the time that it was given.
    Graceful(ExitStatus),
    /// By SIGKILL: it did not end in time.
    Killed,
}

/// How long a process that nobody waits for may take to end by itself.
const SHORT_GRACE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// A running process. Dropping it ends it: SIGTERM, so that it can remove its sockets, and SIGKILL
/// when it is still there a tenth of a second later. That blocks the thread for so long.
pub(super) struct Child {
    process: StdChild,
    watch: ProcessWatch,
    status: Option<ExitStatus>,
}

/// What a plugin writes to.
pub(super) struct Pipes {
    pub(super) stdout: pipe::Receiver,
    pub(super) stderr: pipe::Receiver,
}

impl Child {
    /// Starts the command, whose stdout and stderr must be piped.
    pub(super) fn spawn(command: &mut Command) -> io::Result<(Child, Pipes)> {
        let mut guard = KillOnDrop(Some(command.spawn()?));
        let process = guard.0.as_mut().ok_or_else(|| io::Error::other("no process"))?;
        let pid = Pid::from_child(process);
        let stdout = process.stdout.take().map(|pipe: ChildStdout| OwnedFd::from(pipe));
        let stderr = process.stderr.take().map(|pipe: ChildStderr| OwnedFd::from(pipe));
        let receiver = |pipe: Option<OwnedFd>| {
            pipe::Receiver::from_owned_fd(pipe.ok_or_else(|| io::Error::other("not piped"))?)
        };
        let pipes = Pipes { stdout: receiver(stdout)?, stderr: receiver(stderr)? };
        let watch = ProcessWatch::new(pid)?;
        let process = guard.0.take().ok_or_else(|| io::Error::other("no process"))?;
        Ok((Child { process, watch, status: None }, pipes))
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Waits for the process to end.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.status {
            return Ok(status);
        }
        // Readable for good once the process is gone, so no readiness is ever lost.
        self.watch.ended().await?;
        let status = self.process.wait()?;
        self.status = Some(status);
        Ok(status)
    }

    /// Asks the process to end, waits for `grace`, then kills.
    pub(super) async fn terminate(&mut self, grace: Duration) -> Exit {
        self.signal(Signal::TERM);
        self.end(grace).await
    }

    /// Waits for `grace`, then kills.
    pub(super) async fn end(&mut self, grace: Duration) -> Exit {
        match timeout(grace, self.wait()).await {
            Ok(Ok(status)) => Exit::Graceful(status),
            Ok(Err(_)) | Err(_) => {
                self.kill();
                Exit::Killed
            }
        }
    }

    fn signal(&self, signal: Signal) {
        // The number stays ours until the process is reaped.
        if self.status.is_none() {
            let _ = kill_process(Pid::from_child(&self.process), signal);
        }
    }

    fn kill(&mut self) {
        if self.status.is_none() {
            kill_and_reap(&mut self.process);
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.status.is_none() {
            self.signal(Signal::TERM);
            self.watch.wait_blocking(&SHORT_GRACE);
            self.kill();
        }
    }
}

/// Covers the time until there is a [`Child`].
struct KillOnDrop(Option<StdChild>);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        if let Some(process) = &mut self.0 {
            kill_and_reap(process);
        }
    }
}

fn kill_and_reap(process: &mut StdChild) {
    // Fails only for a process that is gone already.
    let _ = process.kill();
    let _ = process.wait();
}
