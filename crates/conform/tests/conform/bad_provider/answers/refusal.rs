//! Failures, as events and as statuses.

use prost::Message as _;
use prost_types::{Any, Struct};
use tonic::{Code, Status};
use tonic_types::pb::{ErrorInfo, Status as RpcStatus};

use tool_provider::grpc::pb::tool::v1::{ToolError, ToolErrorCategory};

pub(crate) fn error(category: ToolErrorCategory, message: &str) -> ToolError {
    ToolError {
        category: category.into(),
        message: message.to_owned(),
        retryable: false,
        details: Some(Struct::default()),
    }
}

/// A status that carries the failure in both forms.
pub(crate) fn status(code: Code, message: &str) -> Status {
    let failure = error(ToolErrorCategory::InvalidArguments, message);
    let info = ErrorInfo {
        reason: "invalid_arguments".to_owned(),
        domain: "bad.example".to_owned(),
        ..ErrorInfo::default()
    };
    let any =
        |name: &str, value: Vec<u8>| Any { type_url: format!("type.googleapis.com/{name}"), value };
    let details = RpcStatus {
        code: code.into(),
        message: message.to_owned(),
        details: vec![
            any("google.rpc.ErrorInfo", info.encode_to_vec()),
            any("pluggableharness.tool.v1.ToolError", failure.encode_to_vec()),
        ],
    };
    Status::with_details(code, message, details.encode_to_vec().into())
}
