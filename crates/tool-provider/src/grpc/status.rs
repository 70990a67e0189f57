//! Failures of unary calls: a status code, and the same failure twice more in its details, once as
//! gRPC's ErrorInfo and once as the protocol's own ToolError.
//!
//! UNAVAILABLE is never among the codes: a host reads it as "the plugin crashed".

use std::collections::HashMap;

use prost::Message as _;
use prost_types::Any;
use serde_json::Value;
use tonic::{Code, Status};
use tonic_types::pb::{ErrorInfo, Status as RpcStatus};

use crate::ConfigureError;
use crate::config::FaultKind;
use crate::shorten::shorten;
use crate::{Category, ToolError, ToolErrorKind};

use super::convert::tool_error;

const DOMAIN: &str = "tool.pluggableharness.dev";
/// The type of a status detail: google.rpc.ErrorInfo.
pub const ERROR_INFO: &str = "type.googleapis.com/google.rpc.ErrorInfo";
/// The type of a status detail: the protocol's ToolError.
pub const TOOL_ERROR: &str = "type.googleapis.com/pluggableharness.tool.v1.ToolError";

/// Longest text of the status itself, in bytes. It travels in a header, percent-encoded, and some
/// clients take no more than 16 KiB of headers in all.
const MOST_MESSAGE: usize = 1024;
/// Longest encoded details, in bytes; base64 makes a third more of them.
const MOST_DETAILS: usize = 7 * 1024;

/// The status of a failed unary call.
pub(crate) fn status(error: &ToolError) -> Status {
    with_details(code(error.category(), error.kind()), error)
}

/// The status of a Configure that was not accepted.
pub(crate) fn configure_status(error: &ConfigureError) -> Status {
    let code = match error.kind() {
        FaultKind::Written => Code::InvalidArgument,
        FaultKind::Machine => Code::FailedPrecondition,
    };
    with_details(code, &error.to_tool_error())
}

/// The name of the status code with which a unary call fails, as gRPC writes it.
#[must_use]
pub fn grpc_code(category: Category, kind: ToolErrorKind) -> &'static str {
    code_name(code(category, kind))
}

/// A status code as gRPC's own documents write it.
#[must_use]
pub fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}

fn code(category: Category, kind: ToolErrorKind) -> Code {
    match category {
        Category::InvalidArguments => Code::InvalidArgument,
        Category::NotFound => Code::NotFound,
        Category::PermissionDenied => Code::PermissionDenied,
        Category::ExecutionFailed if kind == ToolErrorKind::RateLimit => Code::ResourceExhausted,
        Category::ExecutionFailed | Category::Unknown => Code::Internal,
        Category::Timeout => Code::DeadlineExceeded,
        Category::ConcurrencyConflict => Code::Aborted,
        Category::Cancelled => Code::Cancelled,
    }
}

fn with_details(code: Code, error: &ToolError) -> Status {
    let message = shorten(error.message(), MOST_MESSAGE).into_owned();
    let encode = |metadata: HashMap<String, String>, carried: super::pb::tool::v1::ToolError| {
        let info = ErrorInfo {
            reason: error.category().name().to_owned(),
            domain: DOMAIN.to_owned(),
            metadata,
        };
        let rpc = RpcStatus {
            code: code.into(),
            message: message.clone(),
            details: vec![
                Any { type_url: ERROR_INFO.to_owned(), value: info.encode_to_vec() },
                Any { type_url: TOOL_ERROR.to_owned(), value: carried.encode_to_vec() },
            ],
        };
        rpc.encode_to_vec()
    };
    let mut details = encode(strings(error), tool_error(error));
    if details.len() > MOST_DETAILS {
        let mut short = tool_error(error);
        short.message = shorten(&short.message, MOST_DETAILS / 4).into_owned();
        short.details = None;
        details = encode(HashMap::new(), short);
    }
    Status::with_details(code, message, details.into())
}

fn strings(error: &ToolError) -> HashMap<String, String> {
    let text = |value: Value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    error.details().into_iter().map(|(name, value)| (name, text(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grpc::pb::tool::v1 as wire;

    fn details(status: &Status) -> (ErrorInfo, wire::ToolError) {
        let rpc = RpcStatus::decode(status.details()).unwrap();
        assert_eq!((rpc.code, rpc.message.as_str()), (status.code().into(), status.message()));
        assert_eq!(rpc.details[1].type_url, TOOL_ERROR);
        (
            ErrorInfo::decode(rpc.details[0].value.as_slice()).unwrap(),
            wire::ToolError::decode(rpc.details[1].value.as_slice()).unwrap(),
        )
    }

    #[test]
    fn every_category_has_its_code_and_none_is_unavailable() {
        let cases = [
            (ToolError::invalid_arguments(""), Code::InvalidArgument),
            (ToolError::not_found(""), Code::NotFound),
            (ToolError::permission_denied(""), Code::PermissionDenied),
            (ToolError::execution_failed(""), Code::Internal),
            (ToolError::too_many_calls(""), Code::Aborted),
            (ToolError::timeout(""), Code::DeadlineExceeded),
            (ToolError::lock_busy(""), Code::Aborted),
            (ToolError::version_mismatch(""), Code::Aborted),
            (ToolError::cancelled(""), Code::Cancelled),
            (ToolError::unknown("", ""), Code::Internal),
        ];
        assert_eq!(
            grpc_code(Category::InvalidArguments, ToolErrorKind::Validation),
            "INVALID_ARGUMENT"
        );
        for (error, code) in cases {
            assert_eq!(status(&error).code(), code, "{error:?}");
            assert_ne!(grpc_code(error.category(), error.kind()), "UNAVAILABLE");
        }
    }

    #[test]
    fn a_status_carries_the_failure_in_both_forms() {
        let error = ToolError::not_found("no a.txt").with_detail("line", 3).with_hint("try b.txt");
        let (info, carried) = details(&status(&error));
        assert_eq!((info.domain.as_str(), info.reason.as_str()), (DOMAIN, "not_found"));
        assert_eq!(
            (info.metadata["line"].as_str(), info.metadata["hint"].as_str()),
            ("3", "try b.txt")
        );
        assert_eq!(info.metadata["kind"], "permanent");
        assert_eq!(carried.category(), wire::ToolErrorCategory::NotFound);
        assert_eq!(carried.message, "no a.txt; try b.txt");
        assert!(!carried.retryable);
    }

    #[test]
    fn a_long_failure_still_fits_the_headers() {
        let long = "é".repeat(20_000);
        let error = ToolError::not_found(long.clone()).with_detail("output", long);
        let status = status(&error);
        assert!(status.message().len() < 1100 && status.details().len() <= MOST_DETAILS);
        let (info, carried) = details(&status);
        assert_eq!(info.reason, "not_found");
        assert!(carried.message.ends_with('…'));
    }
}
