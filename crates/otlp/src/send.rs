//! One message to one collector, over gRPC or over HTTP.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderMap, Request, StatusCode, Uri, header};
use http_body_util::Full;
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use prost::Message;
use tonic::metadata::MetadataMap;
use tonic::transport::Channel;
use tonic::{Code, Extensions};
use tonic_prost::ProstCodec;

use super::pb::collector::metrics::v1::ExportMetricsServiceRequest;
use super::pb::collector::trace::v1::ExportTraceServiceRequest;
use super::pb::common::v1::ExportResponse;
use super::settings::{Endpoint, Protocol};

/// A collector. Nothing is connected before the first message.
pub(super) struct Sender {
    way: Way,
    headers: HeaderMap,
    timeout: Duration,
}

enum Way {
    Grpc(Channel),
    Http(Box<Http>),
}

struct Http {
    client: HttpClient<HttpConnector, Full<Bytes>>,
    uri: Uri,
}

/// A message that a collector takes.
pub(super) trait Export: Message + 'static {
    /// The method that takes it over gRPC.
    const METHOD: &'static str;
}

impl Export for ExportTraceServiceRequest {
    const METHOD: &'static str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
}

impl Export for ExportMetricsServiceRequest {
    const METHOD: &'static str = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export";
}

/// Why a message did not arrive.
#[derive(Debug, thiserror::Error)]
pub(super) enum SendError {
    /// The collector cannot be reached.
    #[error("the collector cannot be reached")]
    Unreachable(#[source] Box<dyn Error + Send + Sync>),
    #[error("the collector did not answer in {} ms", .0.as_millis())]
    TimedOut(Duration),
    #[error("the collector answered {0}")]
    Http(StatusCode),
    #[error("the collector answered {:?}: {}", .0.code(), .0.message())]
    Grpc(#[source] Box<tonic::Status>),
}

impl SendError {
    /// Whether the same message may arrive another time, by OTLP's own table.
    pub(super) fn is_retryable(&self) -> bool {
        match self {
            SendError::Unreachable(_) | SendError::TimedOut(_) => true,
            SendError::Http(status) => matches!(status.as_u16(), 429 | 502 | 503 | 504),
            SendError::Grpc(status) => matches!(
                status.code(),
                Code::Cancelled
                    | Code::DeadlineExceeded
                    | Code::Aborted
                    | Code::OutOfRange
                    | Code::Unavailable
                    | Code::DataLoss
            ),
        }
    }
}

impl Sender {
    /// A sender to this endpoint. Needs a runtime.
    pub(super) fn new(endpoint: Endpoint) -> Self {
        let Endpoint { uri, protocol, headers, timeout } = endpoint;
        let way = match protocol {
            Protocol::Grpc => Way::Grpc(Channel::builder(uri).connect_lazy()),
            Protocol::Http => {
                let client = HttpClient::builder(TokioExecutor::new()).build_http();
                Way::Http(Box::new(Http { client, uri }))
            }
        };
        Self { way, headers, timeout }
    }

    /// Sends one message.
    ///
    /// # Errors
    /// [`SendError`], also where there is no answer in time.
    pub(super) async fn send(&self, message: impl Export) -> Result<(), SendError> {
        let sending = async {
            match &self.way {
                Way::Grpc(channel) => self.call(channel, message).await,
                Way::Http(http) => self.post(http, &message).await,
            }
        };
        let sent = tokio::time::timeout(self.timeout, sending).await;
        sent.unwrap_or(Err(SendError::TimedOut(self.timeout)))
    }

    async fn call<M: Export>(&self, channel: &Channel, message: M) -> Result<(), SendError> {
        let metadata = MetadataMap::from_headers(self.headers.clone());
        let request = tonic::Request::from_parts(metadata, Extensions::default(), message);
        let mut client = tonic::client::Grpc::new(channel.clone());
        client.ready().await.map_err(|error| SendError::Unreachable(error.into()))?;
        let codec = ProstCodec::<M, ExportResponse>::default();
        let path = PathAndQuery::from_static(M::METHOD);
        client.unary(request, path, codec).await.map(drop).map_err(refused)
    }

    async fn post(&self, http: &Http, message: &impl Message) -> Result<(), SendError> {
        let mut request = Request::new(Full::from(message.encode_to_vec()));
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = http.uri.clone();
        *request.headers_mut() = self.headers.clone();
        let kind = header::HeaderValue::from_static("application/x-protobuf");
        request.headers_mut().insert(header::CONTENT_TYPE, kind);
        let answer = http
            .client
            .request(request)
            .await
            .map_err(|error| SendError::Unreachable(error.into()))?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            status => Err(SendError::Http(status)),
        }
    }
}

fn refused(status: tonic::Status) -> SendError {
    match status.source().is_some_and(|source| source.is::<tonic::transport::Error>()) {
        true => SendError::Unreachable(status.into()),
        false => SendError::Grpc(Box::new(status)),
    }
}
