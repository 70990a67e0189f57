//! Waiting for another process to end, without a thread and without being its parent.

use std::io;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::net::unix::pipe;

/// A handle on a process that need not be a child.
#[derive(Debug)]
pub struct ProcessWatch {
    /// A pidfd. It becomes readable like a pipe when its process ends and is never read; the pipe
    /// type is tokio's one safe way to wait for a descriptor that is no socket.
    handle: pipe::Receiver,
}

impl ProcessWatch {
    /// Takes a handle on `pid`. Needs a runtime.
    ///
    /// # Errors
    /// Where there is no such process, or the kernel has no such handles.
    pub fn new(pid: Pid) -> io::Result<Self> {
        let handle = pidfd_open(pid, PidfdFlags::NONBLOCK)?;
        Ok(ProcessWatch { handle: pipe::Receiver::from_owned_fd_unchecked(handle)? })
    }

    /// Waits until the process has ended. It stays a zombie until its parent reaps it.
    ///
    /// # Errors
    /// Where the runtime cannot wait for the handle.
    pub async fn ended(&self) -> io::Result<()> {
        self.handle.readable().await
    }

    /// Waits for the end without a runtime, and no longer than `limit`.
    pub(super) fn wait_blocking(&self, limit: &Timespec) {
        let mut polled = [PollFd::new(&self.handle, PollFlags::IN)];
        // A poll that fails is a wait cut short.
        let _ = poll(&mut polled, Some(limit));
    }
}
