//! Calls.

use crate::grpc::client::Failure;
use crate::grpc::pb::common::v1::CallContext;
use crate::grpc::pb::tool::v1 as wire;
use crate::{Call, Partials};

use super::{ConvertError, payload, to_struct};

/// The call of a wire call, without a deadline: that travels beside it.
///
/// # Errors
/// [`ConvertError`] when the arguments hold what JSON cannot.
pub(crate) fn call(wire: wire::ToolCall) -> Result<Call, ConvertError> {
    let context = wire.call_context.unwrap_or_default();
    Ok(Call {
        id: wire.id,
        tool: wire.tool_name,
        arguments: payload(wire.arguments.unwrap_or_default())?,
        session_id: context.session_id,
        turn_id: context.turn_id,
        // A host leaves it empty for previews and for calls that a click started.
        working_directory: Some(context.working_directory)
            .filter(|directory| !directory.is_empty()),
        deadline: None,
        partials: Partials::Read,
    })
}

/// The wire form of a call.
pub(crate) fn tool_call(call: Call) -> wire::ToolCall {
    wire::ToolCall {
        id: call.id,
        tool_name: call.tool,
        arguments: Some(to_struct(call.arguments)),
        call_context: Some(CallContext {
            session_id: call.session_id,
            turn_id: call.turn_id,
            working_directory: call.working_directory.unwrap_or_default(),
        }),
    }
}

/// The wire form of a failure, as a host stores it.
pub(crate) fn failure_to_wire(failure: &Failure) -> wire::ToolError {
    let name = format!("TOOL_ERROR_CATEGORY_{}", failure.category.to_uppercase());
    let category =
        wire::ToolErrorCategory::from_str_name(&name).unwrap_or(wire::ToolErrorCategory::Unknown);
    wire::ToolError {
        category: category.into(),
        message: failure.message.clone(),
        retryable: failure.retryable,
        details: Some(to_struct(failure.details.clone())),
    }
}
