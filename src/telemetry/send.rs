//! One message to one collector, over gRPC or over HTTP.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, Uri, header};
use http_body_util::Full;
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use prost::Message;
use tonic::metadata::MetadataMap;
use tonic::transport::Channel;
use tonic::{Code, Extensions};

use super::pb::collector::metrics::v1::ExportMetricsServiceRequest;
use super::pb::collector::metrics::v1::metrics_service_client::MetricsServiceClient;
use super::pb::collector::trace::v1::ExportTraceServiceRequest;
use super::pb::collector::trace::v1::trace_service_client::TraceServiceClient;
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
    /// A sender to this place. Needs a runtime.
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

    pub(super) async fn spans(&self, message: ExportTraceServiceRequest) -> Result<(), SendError> {
        self.in_time(async {
            match &self.way {
                Way::Grpc(channel) => {
                    let mut client = TraceServiceClient::new(channel.clone());
                    client.export(self.request(message)).await.map(drop).map_err(refused)
                }
                Way::Http(http) => self.post(http, &message).await,
            }
        })
        .await
    }

    pub(super) async fn figures(
        &self,
        message: ExportMetricsServiceRequest,
    ) -> Result<(), SendError> {
        self.in_time(async {
            match &self.way {
                Way::Grpc(channel) => {
                    let mut client = MetricsServiceClient::new(channel.clone());
                    client.export(self.request(message)).await.map(drop).map_err(refused)
                }
                Way::Http(http) => self.post(http, &message).await,
            }
        })
        .await
    }

    async fn in_time(
        &self,
        sending: impl Future<Output = Result<(), SendError>>,
    ) -> Result<(), SendError> {
        let sent = tokio::time::timeout(self.timeout, sending).await;
        sent.unwrap_or(Err(SendError::TimedOut(self.timeout)))
    }

    fn request<T>(&self, message: T) -> tonic::Request<T> {
        let metadata = MetadataMap::from_headers(self.headers.clone());
        tonic::Request::from_parts(metadata, Extensions::default(), message)
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
