//! One of a child's output streams, from the pipe to the call's sink.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use bytes::Bytes;
use rustix::buffer::spare_capacity;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::pipe::PipeFlags;

use super::utf8::Utf8Gate;
use tool_provider::OutputStream;
use tool_provider::{Masker, Secrets};

/// The most that is read before it is passed on.
const READ_BYTES: usize = 64 * 1024;

/// Asked for each pipe: three times the throughput of the default for a program that writes big
/// blocks. A user near its limit of pipe pages gets less, which is fine.
const PIPE_BYTES: usize = 256 * 1024;

/// A piece that leaves this much of its buffer empty is copied, so that what waits for a slow
/// reader takes no more memory than it has bytes.
const COPIED_BELOW: usize = READ_BYTES / 4;

/// The reading end of one stream.
#[derive(Debug)]
pub(crate) struct Channel {
    pub(crate) stream: OutputStream,
    pipe: Option<OwnedFd>,
    /// Bytes that were read and not yet passed on.
    fresh: Vec<u8>,
    masker: Masker,
    gate: Utf8Gate,
    received: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// Everybody who should write has ended: at most this many bytes are still in the pipe.
    Last(usize),
    /// The pipe has ended; what is still held has to be passed on.
    Draining,
    Closed,
}

impl Channel {
    /// A channel, and the end that the child writes to.
    pub(crate) fn new(
        stream: OutputStream,
        secrets: &Secrets,
    ) -> rustix::io::Result<(Self, OwnedFd)> {
        let (reading, writing) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        // Only our end: the child's must block, as every program expects.
        rustix::fs::fcntl_setfl(&reading, OFlags::RDONLY | OFlags::NONBLOCK)?;
        let _ = rustix::pipe::fcntl_setpipe_size(&reading, PIPE_BYTES);
        Ok((Self::over(reading, stream, secrets), writing))
    }

    /// A channel over a descriptor that does not block: the end of a pipe to read from, or the
    /// controlling end of a terminal.
    pub(crate) fn over(pipe: OwnedFd, stream: OutputStream, secrets: &Secrets) -> Self {
        Self {
            stream,
            pipe: Some(pipe),
            fresh: Vec::new(),
            masker: secrets.masker(),
            gate: Utf8Gate::default(),
            received: 0,
            state: State::Open,
        }
    }

    /// The pipe, while there is more to come.
    pub(crate) fn pipe(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// How many bytes the child wrote, as far as they were read.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// Whether everything was passed on.
    pub(crate) fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// Whether something waits to be passed on.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.fresh.is_empty() || self.state == State::Draining
    }

    /// Whether waiting for more would not make the next piece much larger.
    pub(crate) fn is_full(&self) -> bool {
        self.fresh.len() >= READ_BYTES / 2 || self.state == State::Draining
    }

    /// Reads what is there and fits, once.
    pub(crate) fn read(&mut self) -> Readiness {
        let Some(pipe) = &self.pipe else { return Readiness::Drained };
        if self.fresh.len() >= READ_BYTES {
            return Readiness::More;
        }
        if self.fresh.capacity() != READ_BYTES {
            // What masking or a character's first bytes made of the buffer.
            let mut fresh = Vec::with_capacity(READ_BYTES);
            fresh.extend_from_slice(&self.fresh);
            self.fresh = fresh;
        }
        match rustix::io::read(pipe, spare_capacity(&mut self.fresh)) {
            Ok(0) => self.end(),
            Ok(count) => {
                self.received += count as u64;
                if let State::Last(left) = &mut self.state {
                    *left = left.saturating_sub(count);
                    if *left == 0 {
                        self.end();
                    }
                }
                return Readiness::More;
            }
            Err(Errno::AGAIN) => {}
            Err(Errno::INTR) => return Readiness::More,
            Err(_) => self.end(),
        }
        Readiness::Drained
    }

    /// Everybody who should write has ended. Whoever else was given the pipe cannot keep us reading:
    /// no more comes than it holds now.
    pub(crate) fn expect_no_more(&mut self) {
        if let (State::Open, Some(pipe)) = (self.state, &self.pipe) {
            self.state = State::Last(rustix::pipe::fcntl_getpipe_size(pipe).unwrap_or(PIPE_BYTES));
        }
    }

    /// Nothing more is read, whether or not somebody could still write.
    pub(crate) fn end(&mut self) {
        self.pipe = None;
        if self.state != State::Closed {
            self.state = State::Draining;
        }
    }

    /// Whether [`settle`](Self::settle) would pass something on.
    pub(crate) fn can_settle(&self) -> bool {
        self.state != State::Closed && self.masker.can_settle()
    }

    /// Nothing comes for now: passes on what was held back, where it is so little that it may be no part of a
    /// secret.
    pub(crate) fn settle(&mut self) -> Bytes {
        Bytes::from(self.gate.push(self.masker.settle()))
    }

    /// Passes on what may be shown of what was read: secrets masked, no character split.
    pub(crate) fn take(&mut self) -> Bytes {
        let mut piece = self.masker.push(std::mem::take(&mut self.fresh));
        if self.state == State::Draining {
            piece.extend(self.masker.finish());
        }
        let mut piece = self.gate.push(piece);
        if self.state == State::Draining {
            piece.extend(self.gate.finish());
            self.state = State::Closed;
        }
        if piece.len() >= COPIED_BELOW {
            return Bytes::from(piece);
        }
        let small = Bytes::copy_from_slice(&piece);
        piece.clear();
        self.fresh = piece;
        small
    }
}

/// What a read left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// There may be more at once.
    More,
    /// The pipe is empty or at its end.
    Drained,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(channel: &mut Channel, end: &OwnedFd, text: &[u8]) -> Vec<u8> {
        assert_eq!(rustix::io::write(end, text), Ok(text.len()));
        assert_eq!(channel.read(), Readiness::More);
        assert_eq!(channel.read(), Readiness::Drained);
        channel.take().to_vec()
    }

    #[test]
    fn what_is_passed_on_is_masked_and_whole_and_the_end_brings_the_rest() {
        let secrets = Secrets::new([("TOKEN", "hunter2!")]);
        let (mut channel, end) = Channel::new(OutputStream::Stdout, &secrets).unwrap();
        assert_eq!(channel.read(), Readiness::Drained);
        assert!(!channel.is_waiting());
        assert_eq!(written(&mut channel, &end, b"a hunt"), b"a ");
        assert_eq!(written(&mut channel, &end, b"er2! \xe2\x82"), b"[TOKEN] ");
        assert_eq!(written(&mut channel, &end, b"\xac hunter"), "€ ".as_bytes());
        drop(end);
        assert_eq!(channel.read(), Readiness::Drained);
        assert!(channel.is_waiting() && channel.is_full() && !channel.is_closed());
        assert_eq!(channel.take(), &b"hunter"[..]);
        assert!(channel.is_closed() && channel.pipe().is_none());
        assert_eq!(channel.received(), 21);
    }

    #[test]
    fn a_stranger_who_goes_on_writing_is_not_read_for_ever() {
        let (mut channel, end) = Channel::new(OutputStream::Stdout, &Secrets::default()).unwrap();
        rustix::fs::fcntl_setfl(&end, OFlags::WRONLY | OFlags::NONBLOCK).unwrap();
        let size = rustix::pipe::fcntl_getpipe_size(&end).unwrap();
        channel.expect_no_more();
        while channel.pipe().is_some() {
            rustix::io::write(&end, &[b'x'; 4096]).unwrap();
            assert_eq!(channel.read(), Readiness::More);
            channel.take();
        }
        assert_eq!(channel.received(), size as u64);
    }

    #[test]
    fn a_small_piece_takes_no_more_memory_than_its_bytes() {
        let (mut channel, end) = Channel::new(OutputStream::Stdout, &Secrets::default()).unwrap();
        rustix::io::write(&end, b"small").unwrap();
        channel.read();
        let before = channel.fresh.capacity();
        assert_eq!(channel.take(), &b"small"[..]);
        assert_eq!(channel.fresh.capacity(), before, "the buffer is used again");
    }
}
