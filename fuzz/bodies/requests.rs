//! The service as a server has it, asked without a connection.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http_body_util::Full;
use provider_workspace::backend;
use tokio::runtime::Runtime;
use tonic::body::Body;
use tonic::{Code, Status};
use tool_provider::grpc::{HostLog, ToolService};
use tower::ServiceExt as _;
use workspace_tools::Files;

/// Asks one unary method and returns the failure, where it is one: which then is in the protocol's
/// own words.
pub(super) fn ask(method: &str, message: &[u8]) -> Option<Status> {
    static WORLD: OnceLock<(Runtime, ToolService<Files>)> = OnceLock::new();
    let (runtime, service) = WORLD.get_or_init(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let service = ToolService::new(Arc::new(backend::provider()), HostLog::default());
        (runtime.expect("a runtime"), service)
    });
    let length = u32::try_from(message.len()).expect("a short message").to_be_bytes();
    let framed = [&[0], &length[..], message].concat();
    let request = http::Request::post(format!("/pluggableharness.tool.v1.ToolService/{method}"))
        .header("content-type", "application/grpc")
        .body(Body::new(Full::new(Bytes::from(framed))))
        .expect("a request");
    let answered = runtime.block_on(service.clone().into_server().oneshot(request));
    let answer = answered.expect("no answer");
    let status = Status::from_header_map(answer.headers())?;
    if status.code() == Code::Ok {
        return None;
    }
    assert_ne!(status.code(), Code::Unavailable, "{status:?}");
    assert_ne!(status.code(), Code::Internal, "{status:?}");
    assert!(!status.details().is_empty(), "a bare status: {status:?}");
    assert!(status.message().len() < 4096, "{status:?}");
    Some(status)
}
