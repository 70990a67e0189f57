//! What a host stores before and after a call, and hands back to Render.

use prost::Message as _;

use crate::{Call, Stored};
use crate::{Payload, ToolError};

use super::client::Failure;
use super::convert::{ConvertError, failure_from_wire, payload, to_struct};
use super::pb::event::v1::{ToolCallEvent, ToolResultEvent, tool_result_event::Outcome};
use super::pb::tool::v1 as wire;

/// Reads what was stored under `schema_version`.
///
/// # Errors
/// `invalid_arguments` for a version that is not known, or bytes that are not of that version.
pub(crate) fn stored(schema_version: &str, bytes: &[u8]) -> Result<Stored, ToolError> {
    match schema_version {
        "1" | "v1" => event(bytes),
        "" | "json" => json(bytes),
        other => {
            let shown: String = other.chars().take(64).collect();
            Err(ToolError::invalid_arguments(format!(
                "schema_version {shown:?} is not known; there are: \"1\" and \"v1\" (an event of \
                 pluggableharness.event.v1), \"json\" and \"\" (a result's JSON payload)"
            )))
        }
    }
}

/// The request does not say which of the two events it carries. Only the one after a call has an
/// outcome; the one before it may not even decode as the other, as its call is no UTF-8 text.
fn event(bytes: &[u8]) -> Result<Stored, ToolError> {
    if let Ok(ToolResultEvent { outcome: Some(outcome), .. }) = ToolResultEvent::decode(bytes) {
        return match outcome {
            Outcome::Result(result) => {
                payload(result.payload.unwrap_or_default()).map(Stored::Result).map_err(not_json)
            }
            Outcome::Error(error) => failure_from_wire(error)
                .map(|Failure { category, message, details, .. }| Stored::Failure {
                    category,
                    message,
                    details,
                })
                .map_err(not_json),
        };
    }
    match ToolCallEvent::decode(bytes) {
        Ok(ToolCallEvent { call: Some(call) }) => Ok(Stored::Call {
            tool: call.tool_name,
            arguments: payload(call.arguments.unwrap_or_default()).map_err(not_json)?,
        }),
        Ok(ToolCallEvent { call: None }) => {
            Err(ToolError::invalid_arguments("the payload holds neither a call nor an outcome"))
        }
        Err(error) => Err(ToolError::invalid_arguments(
            "the payload is no event of pluggableharness.event.v1",
        )
        .with_source(error)),
    }
}

fn json(bytes: &[u8]) -> Result<Stored, ToolError> {
    serde_json::from_slice::<Payload>(bytes).map(Stored::Result).map_err(|error| {
        ToolError::invalid_arguments(format!("the payload is no JSON object: {error}"))
            .with_source(error)
    })
}

fn not_json(error: ConvertError) -> ToolError {
    ToolError::invalid_arguments(format!("the payload cannot be shown: {error}")).with_source(error)
}

/// The bytes that a host stores before a call, under schema_version `1`.
#[must_use]
pub fn persisted_call(call: &Call) -> Vec<u8> {
    ToolCallEvent { call: Some(super::convert::tool_call(call.clone())) }.encode_to_vec()
}

/// The bytes that a host stores after a call, under schema_version `1`.
#[must_use]
pub fn persisted_result(call_id: &str, outcome: &Result<Payload, Failure>) -> Vec<u8> {
    let outcome = match outcome {
        Ok(result) => {
            Outcome::Result(wire::ToolResult { payload: Some(to_struct(result.clone())) })
        }
        Err(failure) => Outcome::Error(super::convert::failure_to_wire(failure)),
    };
    ToolResultEvent { tool_call_id: call_id.to_owned(), outcome: Some(outcome) }.encode_to_vec()
}
