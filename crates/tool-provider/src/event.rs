//! What a tool reports while it runs, and where it reports to.
//!
//! A tool never sees a stream. It hands [`Event`]s to an [`EventSink`] and returns its outcome; the
//! terminal event of a call is made from that outcome by the provider alone, so a tool cannot end
//! a call twice or forget to end it.

use std::time::Instant;

use bytes::Bytes;

use super::Payload;

/// One intermediate event of a running call.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Bytes that a child process wrote.
    Output {
        /// Which of the child's streams they came from.
        stream: OutputStream,
        /// The bytes, in the order in which they arrived.
        data: Bytes,
    },
    /// A line for the person who waits.
    Progress {
        /// What is in progress.
        message: String,
        /// How much is done, from 0 to 1, where that is known.
        fraction: Option<f64>,
    },
    /// A piece of the result that is known already, such as search hits as they are found.
    Partial(Payload),
    /// A child process ended. At most one a call, and only for tools that run a process.
    Exit {
        /// The exit code; 128 + n after signal n.
        code: i32,
        /// The signal's name, such as `SIGKILL`, where one ended the process.
        signal: Option<String>,
    },
}

/// A child's output stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputStream {
    /// File descriptor 1.
    Stdout,
    /// File descriptor 2.
    Stderr,
}

/// Takes the events of one call, in order.
pub trait EventSink: Send + Sync {
    /// Hands over one event. While the receiver's window is full this waits, at most until
    /// `deadline` where one is given: a slow reader slows the tool down instead of filling memory.
    ///
    /// # Errors
    /// [`EmitError`] when the event was not taken: nobody reads any more, or time was up.
    fn emit_until(&self, event: Event, deadline: Option<Instant>) -> Result<(), EmitError>;

    /// [`EventSink::emit_until`] without a deadline.
    ///
    /// # Errors
    /// [`EmitError::Closed`] when nobody reads any more.
    fn emit(&self, event: Event) -> Result<(), EmitError> {
        self.emit_until(event, None)
    }

    /// Whether anybody reads [`Event::Partial`]. Where not, a tool need not make them; those that it
    /// makes are dropped.
    fn partials(&self) -> Partials {
        Partials::Read
    }
}

/// Whether a call's partial results are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Partials {
    /// They are.
    #[default]
    Read,
    /// Only the whole result is.
    Unread,
}

/// Why an event was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmitError {
    /// The receiver is gone, or the call has had its terminal event.
    #[error("the receiver of this call's events is gone")]
    Closed,
    /// The receiver's window stayed full until the deadline.
    #[error("the receiver did not take the event in time")]
    TimedOut,
}
