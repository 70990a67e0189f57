//! The other side of the service: a client that speaks domain types, for the command line, tests
//! and examples.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_util::Stream;
use prost::Message as _;
use serde::Serialize;
use serde_json::Value;
use tonic::metadata::AsciiMetadataValue;
use tonic::transport::Channel;
use tonic::{Request, Status, Streaming};
use tonic_types::pb::Status as RpcStatus;

use crate::Call;
use crate::error::without_hint;
use crate::view::View;
use crate::{Event, Payload};

use super::convert::{
    config_to_json, event_from_wire, failure_from_wire, schema_to_json, to_struct, tool_call, view,
};
use super::pb::tool::v1::tool_service_client::ToolServiceClient;
use super::pb::tool::v1::{self as wire};
use super::status::TOOL_ERROR;
use super::{ConvertError, MOST_MESSAGE_BYTES};

/// A client of a tool provider. Clones share one connection.
#[derive(Clone, Debug)]
pub struct ToolClient {
    inner: ToolServiceClient<Channel>,
    trace: Option<Trace>,
}

/// Where calls stand in a trace, in the headers of W3C Trace Context.
#[derive(Clone, Debug)]
struct Trace {
    parent: AsciiMetadataValue,
    state: Option<AsciiMetadataValue>,
}

/// Why a call of the service failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The provider refused, and said why in the protocol's own words.
    #[error("{failure}")]
    Refused {
        /// What it said.
        failure: Failure,
        /// The status that carried it.
        #[source]
        status: Box<Status>,
    },
    /// The provider could not be asked, or its answer does not say why it failed.
    #[error("the provider did not answer: {}", .0.message())]
    Status(#[source] Box<Status>),
    /// The answer holds what JSON cannot.
    #[error("the provider's answer cannot be read")]
    Answer(#[from] ConvertError),
    /// The stream of events ended without a result or an error.
    #[error("the call ended without a result")]
    Unfinished,
    /// The stream went on after a result or an error.
    #[error("the provider sent an event after the call's last one")]
    AfterTheEnd,
}

impl From<Status> for ClientError {
    fn from(status: Status) -> Self {
        match carried_failure(&status) {
            Some(failure) => ClientError::Refused { failure, status: Box::new(status) },
            None => ClientError::Status(Box::new(status)),
        }
    }
}

/// A failure as it came over the wire, from a provider or a host.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Failure {
    /// The protocol's name of the category, such as `not_found`.
    pub category: String,
    /// What went wrong.
    pub message: String,
    /// Whether the same call may be tried again.
    pub retryable: bool,
    /// The structured details.
    pub details: Payload,
}

impl Failure {
    /// What can be done about it, where that is known.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.details.get("hint").and_then(Value::as_str)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.category, without_hint(&self.message, self.hint()))
    }
}

/// Who a provider says it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Producer {
    /// Its name.
    pub name: String,
    /// Its semantic version.
    pub version: String,
    /// Where it comes from.
    pub source: String,
    /// The wire number of its category; a tool provider has 2.
    pub category: i32,
    /// The version of the tool protocol that it speaks.
    pub protocol_version: u32,
}

/// What a provider advertises.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advertised {
    /// Its tools.
    pub tools: Vec<AdvertisedTool>,
    /// The keys of its configuration.
    pub config: Value,
}

/// What a provider says of one tool.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AdvertisedTool {
    /// Its name.
    pub name: String,
    /// `resource` or `data_source`.
    pub kind: String,
    /// `read_only`, `low`, `moderate`, `high` or `critical`.
    pub risk: String,
    /// For the model.
    pub description: String,
    /// The shape of its arguments, in JSON Schema's words.
    pub input_schema: Value,
    /// The shape of its result.
    pub output_schema: Value,
    /// Whether events come before the last.
    pub streaming: bool,
    /// Whether other calls may run beside it.
    pub safe: bool,
    /// The arguments whose equal values make calls wait for each other.
    pub key_fields: Vec<String>,
    /// The deadline that a host gives it, in milliseconds.
    pub default_timeout_ms: Option<u64>,
    /// Whether running it twice is like running it once.
    pub idempotent: bool,
}

/// What a running call yields.
#[derive(Clone, Debug, PartialEq)]
pub enum InvokeItem {
    /// An event before the last.
    Event(Event),
    /// The call succeeded. Nothing follows.
    Result(Payload),
    /// The call failed. Nothing follows.
    Failure(Failure),
}

impl ToolClient {
    /// A client on this connection.
    #[must_use]
    pub fn new(channel: Channel) -> Self {
        // What is too large to send is for the provider to say: it names its limit.
        let inner = ToolServiceClient::new(channel).max_decoding_message_size(MOST_MESSAGE_BYTES);
        Self { inner, trace: None }
    }

    /// The same client, whose calls and previews are part of a trace: `parent` is the caller's own
    /// span as a `traceparent` header has it, `state` what goes with it as `tracestate`. None where
    /// that can be no header.
    #[must_use]
    pub fn in_trace(mut self, parent: &str, state: Option<&str>) -> Option<Self> {
        let state = state.map(AsciiMetadataValue::try_from).transpose().ok()?;
        self.trace = Some(Trace { parent: parent.try_into().ok()?, state });
        Some(self)
    }

    /// Asks who the provider is.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn describe(&mut self) -> Result<Producer, ClientError> {
        let answer = self.inner.describe(wire::DescribeRequest {}).await?.into_inner();
        let producer = answer.producer.unwrap_or_default();
        Ok(Producer {
            name: producer.name,
            version: producer.version,
            source: producer.source,
            category: producer.category,
            protocol_version: producer.protocol_version,
        })
    }

    /// Asks what the provider offers.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn schema(&mut self) -> Result<Advertised, ClientError> {
        let answer = self.inner.get_schema(wire::GetSchemaRequest {}).await?.into_inner();
        let config = answer.config_schema.unwrap_or_default();
        Ok(Advertised {
            tools: answer.tools.into_iter().map(advertised_tool).collect(),
            config: config_to_json(&config.attributes),
        })
    }

    /// Configures the provider.
    ///
    /// # Errors
    /// [`ClientError::Refused`] with everything that is wrong with `config`.
    pub async fn configure(&mut self, config: Payload) -> Result<(), ClientError> {
        let request = wire::ConfigureRequest { config: Some(to_struct(config)) };
        self.inner.configure(request).await?;
        Ok(())
    }

    /// Runs a call. Dropping the stream cancels it.
    ///
    /// # Errors
    /// [`ClientError`] when the provider cannot be reached; what goes wrong with the call itself
    /// is the stream's last item.
    pub async fn invoke(&mut self, call: Call) -> Result<InvokeStream, ClientError> {
        let deadline = call.deadline;
        let request = wire::InvokeRequest { call: Some(tool_call(call)) };
        let request = self.request(deadline, request);
        let events = self.inner.invoke(request).await?.into_inner();
        Ok(InvokeStream { events: Some(events), last: None })
    }

    /// Runs a call to its end and returns how it ended, with the events before that.
    ///
    /// # Errors
    /// [`ClientError`] when the stream broke off.
    pub async fn invoke_to_end(
        &mut self,
        call: Call,
    ) -> Result<(Vec<Event>, Result<Payload, Failure>), ClientError> {
        let mut stream = self.invoke(call).await?;
        let mut events = Vec::new();
        while let Some(item) = futures_util::StreamExt::next(&mut stream).await {
            match item? {
                InvokeItem::Event(event) => events.push(event),
                InvokeItem::Result(result) => return Ok((events, Ok(result))),
                InvokeItem::Failure(failure) => return Ok((events, Err(failure))),
            }
        }
        Err(ClientError::Unfinished)
    }

    /// Asks what a call would do.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn preview(&mut self, call: Call) -> Result<View, ClientError> {
        let deadline = call.deadline;
        let request = wire::PreviewRequest { call: Some(tool_call(call)) };
        let request = self.request(deadline, request);
        let answer = self.inner.preview(request).await?.into_inner();
        Ok(view(answer.preview.unwrap_or_default()))
    }

    /// Has a stored payload shown.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn render(
        &mut self,
        schema_version: &str,
        payload: Vec<u8>,
    ) -> Result<View, ClientError> {
        let request = wire::RenderRequest { payload, schema_version: schema_version.to_owned() };
        let answer = self.inner.render(request).await?.into_inner();
        Ok(view(answer.tree.unwrap_or_default()))
    }

    fn request<T>(&self, deadline: Option<Instant>, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(left) = left(deadline) {
            request.set_timeout(left);
        }
        if let Some(Trace { parent, state }) = &self.trace {
            request.metadata_mut().insert("traceparent", parent.clone());
            if let Some(state) = state {
                request.metadata_mut().insert("tracestate", state.clone());
            }
        }
        request
    }
}

/// The events of a running call. It ends after the first result or failure.
#[derive(Debug)]
pub struct InvokeStream {
    events: Option<Streaming<wire::InvokeResponse>>,
    /// The result or failure, while the stream is read to its end. Letting go of a stream before
    /// its trailers came would reset it, and HTTP/2 ends connections that see many resets.
    last: Option<InvokeItem>,
}

impl Stream for InvokeStream {
    type Item = Result<InvokeItem, ClientError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            let Some(events) = &mut this.events else { return Poll::Ready(None) };
            let next = std::task::ready!(Pin::new(events).poll_next(cx));
            let item = match (next, this.last.take()) {
                (None, Some(last)) => Ok(last),
                (None, None) => Err(ClientError::Unfinished),
                (Some(Err(status)), _) => Err(ClientError::from(status)),
                (Some(Ok(_)), Some(_)) => Err(ClientError::AfterTheEnd),
                (Some(Ok(response)), None) => {
                    match event_from_wire(response.event.unwrap_or_default()) {
                        Ok(None) => continue,
                        Ok(Some(event @ InvokeItem::Event(_))) => {
                            return Poll::Ready(Some(Ok(event)));
                        }
                        Ok(last) => {
                            this.last = last;
                            continue;
                        }
                        Err(error) => Err(ClientError::Answer(error)),
                    }
                }
            };
            this.events = None;
            return Poll::Ready(Some(item));
        }
    }
}

/// What is left until `deadline`, as the wire wants it.
fn left(deadline: Option<Instant>) -> Option<Duration> {
    deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
}

fn advertised_tool(tool: wire::ToolSchema) -> AdvertisedTool {
    let kind = tool.kind().as_str_name().trim_start_matches("TOOL_KIND_").to_lowercase();
    let risk = tool.risk().as_str_name().trim_start_matches("RISK_CLASS_").to_lowercase();
    let shape = |schema: Option<_>| schema_to_json(&schema.unwrap_or_default());
    let concurrency = tool.concurrency.unwrap_or_default();
    AdvertisedTool {
        name: tool.name,
        kind,
        risk,
        description: tool.description,
        input_schema: shape(tool.input_schema),
        output_schema: shape(tool.output_schema),
        streaming: tool.streaming,
        safe: concurrency.safe,
        key_fields: concurrency.key_fields,
        default_timeout_ms: tool
            .default_timeout
            .and_then(|timeout| Duration::try_from(timeout).ok())
            .and_then(|timeout| timeout.as_millis().try_into().ok()),
        idempotent: tool.idempotent,
    }
}

/// The protocol's own error among a status's details.
fn carried_failure(status: &Status) -> Option<Failure> {
    let rpc = RpcStatus::decode(status.details()).ok()?;
    let carried = rpc.details.iter().find(|detail| detail.type_url == TOOL_ERROR)?;
    failure_from_wire(wire::ToolError::decode(carried.value.as_slice()).ok()?).ok()
}
