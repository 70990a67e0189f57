//! Standard input and output without a thread for each read and write.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use rustix::fs::{FileType, Mode, OFlags, fcntl_getfl, fcntl_setfl, fstat};
use rustix::io::fcntl_dupfd_cloexec;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, Stdin, Stdout};
use tokio::net::unix::pipe::{Receiver, Sender};

/// Standard input.
#[derive(Debug)]
pub struct Input(Way<Receiver, Stdin>);

/// Standard output.
#[derive(Debug)]
pub struct Output(Way<Sender, Stdout>);

/// How a stream is waited for.
#[derive(Debug)]
enum Way<P, B> {
    /// By the runtime: a pipe, or a socket, which some hosts use as one.
    Polled(P),
    /// On a thread: a file or a terminal.
    Blocking(B),
}

/// The streams of this process. Needs a runtime, and nobody else may use them.
#[must_use]
pub fn stdio() -> (Input, Output) {
    let input = polled(rustix::stdio::stdin(), OFlags::RDONLY)
        .and_then(Receiver::from_owned_fd_unchecked)
        .map_or_else(|_| Way::Blocking(tokio::io::stdin()), Way::Polled);
    let output = polled(rustix::stdio::stdout(), OFlags::WRONLY)
        .and_then(Sender::from_owned_fd_unchecked)
        .map_or_else(|_| Way::Blocking(tokio::io::stdout()), Way::Polled);
    (Input(input), Output(output))
}

/// Waits until nobody can read standard output any more: a client may close that and keep the rest. For
/// ever where it is neither a pipe nor a socket. Needs a runtime.
pub async fn reader_gone() {
    if let Some(output) = watched(rustix::stdio::stdout()) {
        // Without the runtime's help it shows at the next answer.
        if output.ready(Interest::ERROR).await.is_ok() {
            return;
        }
    }
    std::future::pending().await
}

/// A stream of which only the state is asked.
fn watched(stream: BorrowedFd<'_>) -> Option<Sender> {
    let kind = FileType::from_raw_mode(fstat(stream).ok()?.st_mode);
    if !matches!(kind, FileType::Fifo | FileType::Socket) {
        return None;
    }
    Sender::from_owned_fd_unchecked(fcntl_dupfd_cloexec(stream, 3).ok()?).ok()
}

/// The stream as one that never blocks.
///
/// # Errors
/// For what is no pipe and no socket, or cannot be made so.
fn polled(stream: BorrowedFd<'_>, access: OFlags) -> io::Result<OwnedFd> {
    match FileType::from_raw_mode(fstat(stream)?.st_mode) {
        FileType::Fifo => reopened(stream, access),
        FileType::Socket => {
            // It cannot be opened anew. Whoever else has it, such as a shell that waits for us, does
            // not read it meanwhile.
            let copy = fcntl_dupfd_cloexec(stream, 3)?;
            fcntl_setfl(copy.as_fd(), fcntl_getfl(&copy)? | OFlags::NONBLOCK)?;
            Ok(copy)
        }
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// A pipe with flags of its own: those of the old description belong to others, too.
#[expect(clippy::disallowed_methods, reason = "it opens what is open already, no file by its name")]
fn reopened(pipe: BorrowedFd<'_>, access: OFlags) -> io::Result<OwnedFd> {
    use std::os::fd::AsRawFd as _;
    let path = format!("/proc/self/fd/{}", pipe.as_raw_fd());
    Ok(rustix::fs::open(path, access | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?)
}

impl AsyncRead for Input {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Way::Polled(pipe) => Pin::new(pipe).poll_read(cx, buffer),
            Way::Blocking(stdin) => Pin::new(stdin).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Output {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.0 {
            Way::Polled(pipe) => Pin::new(pipe).poll_write(cx, bytes),
            Way::Blocking(stdout) => Pin::new(stdout).poll_write(cx, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Way::Polled(pipe) => Pin::new(pipe).poll_flush(cx),
            Way::Blocking(stdout) => Pin::new(stdout).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Way::Polled(pipe) => Pin::new(pipe).poll_shutdown(cx),
            Way::Blocking(stdout) => Pin::new(stdout).poll_shutdown(cx),
        }
    }
}
