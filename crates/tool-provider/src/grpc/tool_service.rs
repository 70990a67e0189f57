//! The six calls of the protocol.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::{Stream, StreamExt as _};
use prost::Message as _;
use tokio::sync::oneshot;
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status};

use super::call_span::{CallOutcome, CallSpan, Operation, call_span};
use crate::ToolError;
use crate::{Call, EventStream, Hooks, Provider, State, StreamItem};

use super::convert::{ConvertError, call, config_schema, payload, tool_event, tool_schema, tree};
use super::pb::common::v1::{Category, HookPoint, ProducerRef};
use super::pb::tool::v1::tool_service_server as server;
use super::pb::tool::v1::{self as wire};
use super::request_span::{RequestSpan, call_outcome, failure};
use super::status::{configure_status, status};
use super::typed_server::TypedServer;
use super::{HostLog, MOST_MESSAGE_BYTES, persisted, timeout};

/// The protocol's ToolService.
pub struct ToolService<S = ()> {
    provider: Arc<Provider<S>>,
    host_log: HostLog,
}

impl<S> Clone for ToolService<S> {
    fn clone(&self) -> Self {
        Self { provider: self.provider.clone(), host_log: self.host_log.clone() }
    }
}

impl<S: State> ToolService<S> {
    /// A service over `provider` that informs `host_log` when the host can be reached.
    #[must_use]
    pub fn new(provider: Arc<Provider<S>>, host_log: HostLog) -> Self {
        Self { provider, host_log }
    }

    /// The service as a server takes it: every failure that it answers with is one of ours.
    #[must_use]
    pub fn into_server(self) -> TypedServer<server::ToolServiceServer<Self>> {
        let server = server::ToolServiceServer::new(self)
            .max_decoding_message_size(MOST_MESSAGE_BYTES)
            .max_encoding_message_size(MOST_MESSAGE_BYTES);
        TypedServer::new(server)
    }

    /// Invoke without a status: what is wrong with the request itself ends the stream too, so that
    /// a host finds every failure of a call in one place.
    fn invoke_stream(&self, metadata: &MetadataMap, request: wire::InvokeRequest) -> EventStream {
        match self.call(metadata, request.call) {
            Ok(call) => self.provider.invoke(call),
            Err(error) => EventStream::failed(error),
        }
    }

    fn call(
        &self,
        metadata: &MetadataMap,
        wire: Option<wire::ToolCall>,
    ) -> Result<Call, ToolError> {
        let wire = wire.ok_or_else(|| ToolError::invalid_arguments("the request has no call"))?;
        let mut call = call(wire).map_err(|error| self.provider.masked(bad_arguments(error)))?;
        call.deadline = timeout::deadline(metadata);
        Ok(call)
    }
}

#[tonic::async_trait]
impl<S: State> server::ToolService for ToolService<S> {
    type InvokeStream = Events;

    async fn get_schema(
        &self,
        _: Request<wire::GetSchemaRequest>,
    ) -> Result<Response<wire::GetSchemaResponse>, Status> {
        Ok(Response::new(wire::GetSchemaResponse {
            tools: self.provider.schema().iter().map(tool_schema).collect(),
            slash_commands: Vec::new(),
            config_schema: Some(config_schema(&self.provider.keys())),
            supported_hook_points: match self.provider.hooks() {
                Hooks::None => Vec::new(),
                Hooks::SessionEnd => vec![HookPoint::SessionEnd.into()],
            },
        }))
    }

    async fn configure(
        &self,
        request: Request<wire::ConfigureRequest>,
    ) -> Result<Response<wire::ConfigureResponse>, Status> {
        self.host_log.connect();
        let config = payload(request.into_inner().config.unwrap_or_default())
            .map_err(|error| status(&bad_arguments(error)))?;
        // Opening roots and building the jail blocks. The runtime's own threads for that panic where
        // none can be started.
        let (say, answered) = oneshot::channel();
        let answer = move |outcome| {
            // The host may be gone.
            let _ = say.send(outcome);
        };
        let begun = self.provider.clone().configure_beside(config, answer);
        begun.map_err(|error| status(&error))?;
        answered
            .await
            .map_err(|lost| {
                status(&ToolError::unknown("a fault ended Configure", lost.to_string()))
            })?
            .map_err(|error| configure_status(&error))?;
        Ok(Response::new(wire::ConfigureResponse {}))
    }

    async fn invoke(
        &self,
        request: Request<wire::InvokeRequest>,
    ) -> Result<Response<Events>, Status> {
        self.host_log.connect();
        let (metadata, _, request) = request.into_parts();
        let request_span = RequestSpan { metadata: &metadata, call: request.call.as_ref() };
        let span = call_span(Operation::Invoke, &request_span);
        let mut stream = self.invoke_stream(&metadata, request);
        // Most calls have one event. Waiting for it here lets headers, event and trailers leave
        // in one write. A host that goes away meanwhile drops this future, and the stream in it.
        let first = stream.next().await;
        Ok(Response::new(Events { first, stream, span }))
    }

    async fn render(
        &self,
        request: Request<wire::RenderRequest>,
    ) -> Result<Response<wire::RenderResponse>, Status> {
        let request = request.into_inner();
        let stored = persisted::stored(&request.schema_version, &request.payload)
            .map_err(|error| status(&error))?;
        let view = self.provider.render(&stored);
        Ok(Response::new(wire::RenderResponse { tree: Some(tree(view)) }))
    }

    async fn preview(
        &self,
        request: Request<wire::PreviewRequest>,
    ) -> Result<Response<wire::PreviewResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        let request_span = RequestSpan { metadata: &metadata, call: request.call.as_ref() };
        let mut span = call_span(Operation::Preview, &request_span);
        let view = async { self.provider.preview(self.call(&metadata, request.call)?).await };
        let view = view.await.map_err(|error| {
            span.ended(failure(&error));
            status(&error)
        })?;
        let answer = wire::PreviewResponse { preview: Some(tree(view)) };
        span.sent(|| answer.encoded_len());
        span.ended(CallOutcome::Result);
        Ok(Response::new(answer))
    }

    async fn describe(
        &self,
        _: Request<wire::DescribeRequest>,
    ) -> Result<Response<wire::DescribeResponse>, Status> {
        let identity = self.provider.describe();
        Ok(Response::new(wire::DescribeResponse {
            producer: Some(ProducerRef {
                name: identity.name.to_owned(),
                version: identity.version.to_owned(),
                source: identity.source.to_owned(),
                category: Category::Tool.into(),
                protocol_version: identity.protocol_version,
            }),
        }))
    }
}

fn bad_arguments(error: ConvertError) -> ToolError {
    ToolError::invalid_arguments(format!("the request cannot be read: {error}")).with_source(error)
}

/// The events of one call on their way to the wire.
pub struct Events {
    first: Option<StreamItem>,
    stream: EventStream,
    span: CallSpan,
}

impl Events {
    fn recorded(&mut self, item: StreamItem) -> wire::InvokeResponse {
        if let StreamItem::Outcome(outcome) = &item {
            self.span.ended(call_outcome(outcome));
        }
        let response = wire::InvokeResponse { event: Some(tool_event(item)) };
        self.span.sent(|| response.encoded_len());
        response
    }
}

impl Stream for Events {
    type Item = Result<wire::InvokeResponse, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let next = match this.first.take() {
            Some(first) => Poll::Ready(Some(first)),
            None => this.stream.poll_next_unpin(cx),
        };
        next.map(|item| item.map(|item| Ok(this.recorded(item))))
    }
}
