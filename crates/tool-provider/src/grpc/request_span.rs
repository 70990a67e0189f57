//! What the span of a call takes from its request, read only where somebody observes.

use prost::Message;
use tonic::metadata::MetadataMap;

use super::call_span::{CallOutcome, CallRequest};
use crate::Outcome;
use crate::ToolError;

use super::pb::common::v1::CallContext;
use super::pb::tool::v1::ToolCall;

/// A request, as the span of its call reads it.
pub(crate) struct RequestSpan<'a> {
    pub(crate) metadata: &'a MetadataMap,
    pub(crate) call: Option<&'a ToolCall>,
}

impl<'a> RequestSpan<'a> {
    fn field(&self, field: impl FnOnce(&'a ToolCall) -> &'a str) -> &'a str {
        self.call.map_or("", field)
    }

    fn context(&self, field: impl FnOnce(&'a CallContext) -> &'a str) -> &'a str {
        self.call.and_then(|call| call.call_context.as_ref()).map_or("", field)
    }

    fn header(&self, name: &str) -> Option<&'a str> {
        self.metadata.get(name)?.to_str().ok()
    }
}

impl CallRequest for RequestSpan<'_> {
    /// A model may put anything here; what no tool could be called is not repeated.
    fn tool(&self) -> &str {
        let name = self.field(|call| &call.tool_name);
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        match name.len() <= 64 && name.bytes().all(is_plain) {
            true => name,
            false => "(no name)",
        }
    }

    fn session_id(&self) -> &str {
        self.context(|context| &context.session_id)
    }

    fn turn_id(&self) -> &str {
        self.context(|context| &context.turn_id)
    }

    fn call_id(&self) -> &str {
        self.field(|call| &call.id)
    }

    fn traceparent(&self) -> Option<&str> {
        self.header("traceparent")
    }

    fn tracestate(&self) -> Option<&str> {
        self.header("tracestate")
    }

    fn bytes(&self) -> u64 {
        self.call.map_or(0, |call| call.encoded_len() as u64)
    }
}

/// How a call ended that ended with this.
pub(crate) fn call_outcome(outcome: &Outcome) -> CallOutcome {
    outcome.as_ref().map_or_else(failure, |_| CallOutcome::Result)
}

/// How a call ended that failed.
pub(crate) fn failure(error: &ToolError) -> CallOutcome {
    CallOutcome::Error { category: error.category().name(), kind: error.kind().name() }
}
