//! The standard input of a command, written without blocking.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::pipe::PipeFlags;

/// The writing end of a command's input, and what has still to be written.
#[derive(Debug)]
pub(crate) struct Input {
    pipe: OwnedFd,
    text: Vec<u8>,
    written: usize,
}

impl Input {
    /// An input, and the end that the child reads from.
    pub(crate) fn new(text: Vec<u8>) -> rustix::io::Result<(Self, OwnedFd)> {
        let (reading, writing) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        rustix::fs::fcntl_setfl(&writing, OFlags::WRONLY | OFlags::NONBLOCK)?;
        Ok((Self { pipe: writing, text, written: 0 }, reading))
    }

    /// An input over the controlling end of a terminal, which does not block.
    pub(crate) fn over(terminal: OwnedFd) -> Self {
        Self { pipe: terminal, text: Vec::new(), written: 0 }
    }

    /// Adds to what is to be written.
    pub(crate) fn push(&mut self, text: &[u8]) {
        self.text.drain(..self.written);
        self.written = 0;
        self.text.extend_from_slice(text);
    }

    /// How many bytes are still to be written.
    pub(crate) fn left(&self) -> usize {
        self.text.len() - self.written
    }

    pub(crate) fn pipe(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    /// Writes what fits. Says whether there is more to write; a command that no longer reads wants
    /// no more.
    pub(crate) fn feed(&mut self) -> Feed {
        while self.written < self.text.len() {
            match rustix::io::write(&self.pipe, &self.text[self.written..]) {
                Ok(count) => self.written += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Feed::Later,
                Err(_) => {
                    self.written = self.text.len();
                    break;
                }
            }
        }
        Feed::Done
    }
}

/// Whether more input has to be fed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Feed {
    /// The pipe is full; there is more.
    Later,
    /// Nothing is left to write, or nobody reads it.
    Done,
}
