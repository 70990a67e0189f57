//! `plugin.GRPCStdio`: what anybody in this process prints after the handshake line.
//!
//! Descriptors 1 and 2 become pipes whose content goes to the host as a stream. The real standard
//! output must never be written again (a host stops reading it after one overlong line, and it then
//! fills up and blocks), and the real standard error is the log's alone.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::Stream;
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::sync::Notify;
use tonic::{Request, Response, Status};

use crate::pb::StdioData;
use crate::pb::grpc_stdio_server::GrpcStdio;
use crate::pb::stdio_data::Channel;

/// Largest piece of one message; go-plugin's own size.
const CHUNK: usize = 1024;

/// What is kept for a host that does not read; then the oldest goes. Printing never blocks.
const KEPT_CHUNKS: usize = 64;

/// What becomes of the process's standard output and error after the handshake line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StandardStreams {
    /// They go to the host over gRPC.
    #[default]
    Stream,
    /// They stay as they are. For a plugin that runs inside a test's process.
    Leave,
}

/// The printed output that waits for the host.
#[derive(Clone, Default)]
pub(crate) struct Stdio {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Notify,
}

#[derive(Default)]
struct Queue {
    chunks: VecDeque<StdioData>,
    closed: bool,
}

impl Stdio {
    /// Redirects descriptors 1 and 2 into this stream.
    pub(super) fn capture(&self) -> io::Result<()> {
        let (stdout, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        rustix::stdio::dup2_stdout(writer)?;
        let (stderr, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        rustix::stdio::dup2_stderr(writer)?;
        self.follow(stdout, Channel::Stdout)?;
        self.follow(stderr, Channel::Stderr)
    }

    fn follow(&self, pipe: OwnedFd, channel: Channel) -> io::Result<()> {
        let mut pipe = pipe::Receiver::from_owned_fd(pipe)?;
        let stdio = self.clone();
        tokio::spawn(async move {
            let mut buffer = [0; CHUNK];
            while let Ok(read @ 1..) = pipe.read(&mut buffer).await {
                let data = buffer[..read].to_vec();
                stdio.push(StdioData { channel: channel.into(), data });
            }
        });
        Ok(())
    }

    pub(crate) fn push(&self, chunk: StdioData) {
        let mut queue = self.queue();
        if queue.closed {
            return;
        }
        if queue.chunks.len() >= KEPT_CHUNKS {
            queue.chunks.pop_front();
        }
        queue.chunks.push_back(chunk);
        drop(queue);
        self.shared.changed.notify_one();
    }

    /// Ends the host's stream once it has what is left.
    pub(super) fn close(&self) {
        self.queue().closed = true;
        self.shared.changed.notify_one();
    }

    /// The next chunk; `None` after [`Stdio::close`].
    async fn next(&self) -> Option<StdioData> {
        loop {
            {
                let mut queue = self.queue();
                if let Some(chunk) = queue.chunks.pop_front() {
                    return Some(chunk);
                }
                if queue.closed {
                    return None;
                }
            }
            self.shared.changed.notified().await;
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[tonic::async_trait]
impl GrpcStdio for Stdio {
    type StreamStdioStream = Pin<Box<dyn Stream<Item = Result<StdioData, Status>> + Send>>;

    async fn stream_stdio(
        &self,
        _request: Request<()>,
    ) -> Result<Response<Self::StreamStdioStream>, Status> {
        let chunks = futures_util::stream::unfold(self.clone(), |stdio| async move {
            let chunk = stdio.next().await?;
            Some((Ok(chunk), stdio))
        });
        Ok(Response::new(Box::pin(chunks)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(number: usize) -> StdioData {
        StdioData { channel: Channel::Stdout.into(), data: number.to_string().into_bytes() }
    }

    #[tokio::test]
    async fn unread_output_is_bounded_and_the_newest_survives() {
        let stdio = Stdio::default();
        for number in 0..1000 {
            stdio.push(chunk(number));
        }
        stdio.close();
        for number in 1000 - KEPT_CHUNKS..1000 {
            assert_eq!(stdio.next().await, Some(chunk(number)));
        }
        assert_eq!(stdio.next().await, None);
    }

    #[tokio::test]
    async fn a_pipe_is_drained_though_nobody_listens() {
        let stdio = Stdio::default();
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        stdio.follow(reader, Channel::Stderr).unwrap();
        // Four times what a pipe holds: this blocks for ever unless somebody reads.
        let written = tokio::task::spawn_blocking(move || {
            let bytes = vec![b'x'; 256 * 1024];
            let mut rest = bytes.as_slice();
            while !rest.is_empty() {
                let written = rustix::io::write(&writer, rest).unwrap();
                rest = &rest[written..];
            }
        });
        written.await.unwrap();
        assert_eq!(stdio.next().await.unwrap().channel, i32::from(Channel::Stderr));
    }
}
