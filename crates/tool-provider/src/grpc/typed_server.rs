//! The service as a server takes it, where what gRPC itself refuses is typed too.
//!
//! A request may be turned away before this protocol's code sees a byte of it: one that is too
//! large is refused by its length alone, before memory is reserved for it. gRPC answers that with a
//! bare status, and a host would have to guess whose fault it is.

use std::task::{Context, Poll};

use futures_util::FutureExt as _;
use futures_util::future::Map;
use http::HeaderMap;
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::{Code, Status};
use tower::Service;

use crate::ToolError;

use super::MOST_MESSAGE_BYTES;
use super::status::status;

/// A gRPC service whose refusals all carry this protocol's error.
#[derive(Clone, Debug)]
pub struct TypedServer<S> {
    inner: S,
}

impl<S> TypedServer<S> {
    pub(super) fn new(inner: S) -> Self {
        Self { inner }
    }
}

impl<S: NamedService> NamedService for TypedServer<S> {
    const NAME: &'static str = S::NAME;
}

type Answer<E> = Result<http::Response<Body>, E>;

impl<S> Service<http::Request<Body>> for TypedServer<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Map<S::Future, fn(Answer<S::Error>) -> Answer<S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        self.inner.call(request).map(|answer| answer.map(typed))
    }
}

/// The answer, or where it is a bare failure the same failure in this protocol's form. Our own
/// failures carry details and pass as they are.
fn typed(answer: http::Response<Body>) -> http::Response<Body> {
    match refusal(answer.headers()) {
        Some(error) => status(&error).into_http(),
        None => answer,
    }
}

/// What went wrong, where headers report a failure of gRPC's own.
fn refusal(headers: &HeaderMap) -> Option<ToolError> {
    let refused = Status::from_header_map(headers)?;
    match refused.code() {
        _ if !refused.details().is_empty() => None,
        // Nothing else that this service does is about ranges.
        Code::OutOfRange => Some(too_large()),
        // A request that is cut off, empty, or compressed in a way that nobody agreed on.
        Code::Internal => Some(unreadable(&refused)),
        _ => None,
    }
}

fn too_large() -> ToolError {
    let limit = MOST_MESSAGE_BYTES / (1024 * 1024);
    ToolError::invalid_arguments(format!(
        "the request is too large: at most {limit} MiB are taken, all arguments together"
    ))
    .with_detail("most_bytes", MOST_MESSAGE_BYTES)
    .with_hint("write a large file in pieces, or have a command make it")
}

fn unreadable(refused: &Status) -> ToolError {
    ToolError::invalid_arguments(format!("the request cannot be read: {}", refused.message()))
        .with_hint("a request is one whole gRPC message, not compressed")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(status: Status) -> Status {
        let answer = typed(status.into_http());
        Status::from_header_map(answer.headers()).unwrap()
    }

    #[test]
    fn what_grpc_refuses_comes_out_as_ours() {
        for (bare, words) in [
            (Status::out_of_range("found 7 bytes, the limit is: 6"), "at most 64 MiB"),
            (Status::internal("Missing request message."), "Missing request message."),
        ] {
            let refused = seen(bare);
            assert_eq!(refused.code(), Code::InvalidArgument);
            assert!(refused.message().contains(words), "{refused:?}");
            assert!(!refused.details().is_empty());
        }
    }

    #[test]
    fn our_own_failures_and_answers_pass_as_they_are() {
        let own = status(&ToolError::unknown("a fault", "raw"));
        let refused = seen(own.clone());
        assert_eq!((refused.code(), refused.message()), (own.code(), own.message()));
        assert_eq!(refused.details(), own.details());
        assert_eq!(seen(Status::unimplemented("no such call")).code(), Code::Unimplemented);
        let answer = typed(http::Response::new(Body::empty()));
        assert!(answer.headers().is_empty());
    }
}
