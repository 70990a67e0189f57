//! What a running command tells the stream of its call.

use std::time::{Duration, Instant};

use bytes::Bytes;
use sandbox::ProcessId;

use crate::process::{Listener, NotTaken, Stream};
use crate::tools::{Context, EmitError, Event, EventSink, OutputStream};

/// How long a full window may hold up the first event; nothing is served meanwhile.
const FIRST: Duration = Duration::from_millis(250);

/// How long one attempt to hand over a last event may take before a cancel is looked at.
const ATTEMPT: Duration = Duration::from_millis(20);

/// Passes a command's life on to a call's events.
pub(super) struct Events<'a>(pub(super) &'a dyn EventSink);

impl Listener for Events<'_> {
    fn started(&mut self, pid: ProcessId) {
        let message = match pid {
            ProcessId::Machine(number) => format!("started (pid {number})"),
            ProcessId::Jail(number) => format!("started (pid {number}) in the jail"),
        };
        // A receiver that is gone shows at the next piece of output, or cancels the call.
        let _ = self
            .0
            .emit_until(Event::Progress { message, fraction: None }, Some(Instant::now() + FIRST));
    }

    fn quiet(&mut self, silence: Duration, deadline: Instant) {
        let message = format!("no output for {} s, still running", silence.as_secs());
        let progress = Event::Progress { message, fraction: None };
        // A full window means that there is enough to look at.
        let _ = self.0.emit_until(progress, Some(deadline));
    }

    fn output(&mut self, stream: Stream, piece: Bytes, deadline: Instant) -> Result<(), NotTaken> {
        let stream = match stream {
            Stream::Stdout => OutputStream::Stdout,
            Stream::Stderr => OutputStream::Stderr,
        };
        self.0.emit_until(Event::Output { stream, data: piece }, Some(deadline)).map_err(|error| {
            match error {
                EmitError::TimedOut => NotTaken::Later,
                EmitError::Closed => NotTaken::Never,
            }
        })
    }
}

/// Hands over one of a call's last events, and waits for room until `deadline`, unless the call is
/// cancelled meanwhile.
pub(super) fn emit_last(context: &Context<'_>, event: &Event, deadline: Instant) {
    loop {
        let attempt = deadline.min(Instant::now() + ATTEMPT);
        match context.sink.emit_until(event.clone(), Some(attempt)) {
            Err(EmitError::TimedOut) if attempt < deadline && !context.cancel.is_cancelled() => {}
            _ => return,
        }
    }
}
