//! The span of a call: from the request until the caller has the answer.

use tracing::Span;
use tracing::field::Empty;

/// The target of these spans, by which a `tracing` layer knows them.
pub const TARGET: &str = concat!(env!("CARGO_CRATE_NAME"), "::call");

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The tool is to run.
    Invoke,
    /// The tool is to show what it would do.
    Preview,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Operation::Invoke => "invoke",
            Operation::Preview => "preview",
        }
    }
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// With a result.
    Result,
    /// With an error of this category and kind.
    Error {
        /// The protocol's category, such as `not_found`.
        category: &'static str,
        /// What it means for trying again, such as `permanent`.
        kind: &'static str,
    },
    /// The caller went away before there was an end.
    Cancelled,
}

/// A call as observers see it. Without observers nothing in it is evaluated.
#[derive(Debug)]
pub struct CallSpan {
    span: Span,
    sent: u64,
    outcome: CallOutcome,
}

/// What a request says of a call. Each is asked for only where somebody observes.
pub trait CallRequest {
    /// The tool's name.
    fn tool(&self) -> &str;
    /// The session that the call belongs to.
    fn session_id(&self) -> &str;
    /// The turn that the call belongs to.
    fn turn_id(&self) -> &str;
    /// The caller's name for the call.
    fn call_id(&self) -> &str;
    /// The header that places the call in its caller's trace.
    fn traceparent(&self) -> Option<&str>;
    /// What goes with it.
    fn tracestate(&self) -> Option<&str>;
    /// The request's size in bytes.
    fn bytes(&self) -> u64;
}

/// Opens the span of a call.
pub fn call_span(operation: Operation, request: &impl CallRequest) -> CallSpan {
    let span = tracing::debug_span!(
        target: TARGET,
        "call",
        operation = operation.name(),
        tool = request.tool(),
        session_id = request.session_id(),
        turn_id = request.turn_id(),
        call_id = request.call_id(),
        traceparent = request.traceparent(),
        tracestate = request.tracestate(),
        request_bytes = request.bytes(),
        response_bytes = Empty,
        outcome = Empty,
        error_kind = Empty,
    );
    CallSpan { span, sent: 0, outcome: CallOutcome::Cancelled }
}

impl CallSpan {
    /// Counts a message of the answer, whose size is asked for only where somebody observes.
    pub fn sent(&mut self, bytes: impl FnOnce() -> usize) {
        if !self.span.is_disabled() {
            self.sent += bytes() as u64;
        }
    }

    /// Sets how the call ended. A span that is dropped without it was cancelled.
    pub fn ended(&mut self, outcome: CallOutcome) {
        self.outcome = outcome;
    }
}

impl Drop for CallSpan {
    fn drop(&mut self) {
        if self.span.is_disabled() {
            return;
        }
        let (outcome, kind) = match self.outcome {
            CallOutcome::Result => ("result", None),
            CallOutcome::Error { category, kind } => (category, Some(kind)),
            CallOutcome::Cancelled => ("cancelled", Some("internal")),
        };
        self.span.record("response_bytes", self.sent);
        self.span.record("outcome", outcome);
        self.span.record("error_kind", kind);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request that must not be read.
    struct Unseen;

    impl CallRequest for Unseen {
        fn tool(&self) -> &str {
            unreachable!("looked at")
        }
        fn session_id(&self) -> &str {
            unreachable!("looked at")
        }
        fn turn_id(&self) -> &str {
            unreachable!("looked at")
        }
        fn call_id(&self) -> &str {
            unreachable!("looked at")
        }
        fn traceparent(&self) -> Option<&str> {
            unreachable!("looked at")
        }
        fn tracestate(&self) -> Option<&str> {
            unreachable!("looked at")
        }
        fn bytes(&self) -> u64 {
            unreachable!("looked at")
        }
    }

    #[test]
    fn where_nobody_observes_nothing_is_evaluated() {
        tracing::subscriber::with_default(tracing::subscriber::NoSubscriber::new(), || {
            let mut span = call_span(Operation::Invoke, &Unseen);
            assert!(span.span.is_disabled());
            span.sent(|| unreachable!("measured"));
            span.ended(CallOutcome::Result);
        });
    }
}
