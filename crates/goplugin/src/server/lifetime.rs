//! When a plugin ends: its host asks, its host dies, or a signal comes.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, getppid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};
use signal_hook::flag;

use crate::signals::Signals;
use crate::watch::ProcessWatch;

/// How often the parent is looked at where the kernel gives no handle on it.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Why the plugin ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The host called Shutdown.
    Shutdown,
    /// SIGTERM, SIGHUP or SIGQUIT.
    Signal,
    /// The process that launched us is gone.
    HostDied,
    /// The gRPC server ended by itself, which is a fault.
    ServerEnded,
}

/// Whether the plugin follows its host into the grave. go-plugin itself does not: plugins of a
/// host that crashed stay behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostWatch {
    /// End when the parent process ends.
    #[default]
    Follow,
    /// Stay. For hosts that hand a plugin on to another process, and for tests.
    Ignore,
}

/// Takes the signals that ask for an end, and handles those that must not bring it.
pub(super) fn stop_signals() -> io::Result<Signals> {
    // Ctrl-C reaches the whole foreground group; when a plugin ends is its host's decision. And
    // SIGXFSZ: a write beyond a file size limit fails with EFBIG instead of killing the process.
    // Handlers, not SIG_IGN: a child gets the default back at its exec, but would inherit an
    // ignored signal.
    for number in [SIGINT, SIGXFSZ] {
        flag::register(number, Arc::default())?;
    }
    Signals::take(&[SIGTERM, SIGHUP, SIGQUIT])
}

/// Waits until the process that launched us is gone. `parent` is what it was before the handshake line
/// went out on `stdout`, which the host reads and may die after.
///
/// A parent that died since has been replaced by a reaper, which may live for ever. So: take a handle on
/// the parent, then look whether it still is ours. One that died even before has left nobody who reads
/// the pipe, unless another process holds its other end for a moment.
pub(super) async fn host_died(stdout: &OwnedFd, parent: Option<Pid>) {
    let Some(parent) = parent else {
        // The host lives in an outer process namespace: only the pipe shows its end.
        return reader_gone(stdout).await;
    };
    let watch = ProcessWatch::new(parent);
    if getppid() != Some(parent) || has_no_reader(stdout) {
        return;
    }
    let watched = match &watch {
        Ok(watch) => watch.ended().await,
        Err(_) => Err(io::ErrorKind::Unsupported.into()),
    };
    if watched.is_err() {
        while getppid() == Some(parent) {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

async fn reader_gone(pipe: &OwnedFd) {
    while !has_no_reader(pipe) {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Whether `stdout` is a pipe or socket whose other end is closed. False for a file or a terminal.
fn has_no_reader(stdout: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(stdout, PollFlags::empty())];
    match poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
        Ok(_) => polled[0].revents().intersects(PollFlags::ERR | PollFlags::HUP),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_without_a_reader_is_distinguished_from_one_with() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        assert!(!has_no_reader(&writer));
        drop(reader);
        assert!(has_no_reader(&writer));
    }

    #[tokio::test]
    async fn a_parent_that_was_dead_from_the_start_is_noticed() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        drop(reader);
        host_died(&writer, getppid()).await;
    }

    #[tokio::test]
    async fn a_living_parent_keeps_us_up() {
        let (_reader, writer) = rustix::pipe::pipe().unwrap();
        let died = host_died(&writer, getppid());
        assert!(tokio::time::timeout(Duration::from_millis(50), died).await.is_err());
    }

    /// Although somebody still holds the other end of the pipe.
    #[tokio::test]
    async fn a_parent_that_a_reaper_has_replaced_is_noticed() {
        let (_reader, writer) = rustix::pipe::pipe().unwrap();
        host_died(&writer, Some(rustix::process::getpid())).await;
    }
}
