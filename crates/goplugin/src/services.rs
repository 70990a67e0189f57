//! The gRPC services of one server, by name.

use std::collections::HashMap;
use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use tonic::Status;
use tonic::body::Body;
use tonic::server::NamedService;
use tower::{Service, ServiceExt as _};

type Answer = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;
type Handler = Arc<dyn Fn(Request<Body>) -> Answer + Send + Sync>;

/// What one side serves: services as tonic generates them (`…Server`). Clones share them.
///
/// tonic's own `Routes` does the same on top of a web framework; here nothing but a service's name
/// is looked at. A call of a service that is not there is answered with UNIMPLEMENTED.
#[derive(Clone, Default)]
pub struct Services {
    by_name: Arc<HashMap<&'static str, Handler>>,
}

impl Services {
    /// No services yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Serves `service` too. Of two with one name the later one is served.
    #[must_use]
    pub fn with<S, B>(mut self, service: S) -> Self
    where
        S: Service<Request<Body>, Response = Response<B>, Error = Infallible>
            + NamedService
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let handler = move |request| -> Answer {
            let answer = service.clone().oneshot(request);
            Box::pin(async { Ok(answer.await?.map(Body::new)) })
        };
        Arc::make_mut(&mut self.by_name).insert(S::NAME, Arc::new(handler));
        self
    }
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_name.keys()).finish()
    }
}

impl Service<Request<Body>> for Services {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        match service_of(request.uri().path()).and_then(|name| self.by_name.get(name)) {
            Some(handler) => handler(request),
            None => Box::pin(ready(Ok(Status::unimplemented("").into_http()))),
        }
    }
}

/// The service that a path of the form `/SERVICE/METHOD` names.
fn service_of(path: &str) -> Option<&str> {
    path.strip_prefix('/')?.split_once('/').map(|(service, _)| service)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_its_service() {
        assert_eq!(service_of("/grpc.health.v1.Health/Check"), Some("grpc.health.v1.Health"));
        for path in ["", "/", "/grpc.health.v1.Health", "grpc.health.v1.Health/Check", "//Check"] {
            assert_ne!(service_of(path), Some("grpc.health.v1.Health"), "{path}");
        }
    }

    #[tokio::test]
    async fn a_service_that_is_not_there_is_unimplemented() {
        let (_, health) = tonic_health::server::health_reporter();
        let mut services = Services::new().with(health);
        for (path, code) in [
            ("/grpc.health.v1.Health/Check", tonic::Code::Internal),
            ("/grpc.health.v1.Health/Nothing", tonic::Code::Unimplemented),
            ("/other/Check", tonic::Code::Unimplemented),
        ] {
            // The one that is there misses its message.
            let request = Request::builder().uri(path).body(Body::empty()).unwrap();
            let answer = services.call(request).await.unwrap();
            assert_eq!(Status::from_header_map(answer.headers()).unwrap().code(), code, "{path}");
        }
    }
}
