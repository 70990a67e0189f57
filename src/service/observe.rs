//! A client that keeps what came over the wire as it came, right or wrong: for whoever judges a
//! provider. [`super::ToolClient`] is the one to use a provider with.
//!
//! Enumerations are wire numbers here, as a provider may send one that does not exist.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::time::Duration;

use prost::Message as _;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{Code, Request, Status, Streaming};
use tonic_types::pb::{ErrorInfo, Status as RpcStatus};

use crate::tools::Payload;

use super::MOST_MESSAGE_BYTES;
use super::convert::{payload, to_struct};
use super::pb::common::v1::CallContext;
use super::pb::config::v1::ConfigAttribute;
use super::pb::schema::v1::Schema;
use super::pb::tool::v1::tool_event::Event;
use super::pb::tool::v1::tool_service_client::ToolServiceClient;
use super::pb::tool::v1::{self as wire};
use super::status::{ERROR_INFO, TOOL_ERROR};

mod trees;

pub use trees::SeenTree;

/// A client that observes. Clones share one connection.
#[derive(Clone, Debug)]
pub struct Observer {
    inner: ToolServiceClient<Channel>,
    channel: Channel,
}

/// A call of the service that failed.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The status code's name, such as `INVALID_ARGUMENT`.
    pub code: &'static str,
    /// Its text.
    pub message: String,
    /// Who made it.
    pub origin: Origin,
    /// What `grpc-status-details-bin` holds.
    pub details: Details,
}

/// Who made a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It came over the wire.
    Provider,
    /// Our side made it: the connection broke, or could not be made.
    Connection,
}

/// What a status carries.
#[derive(Clone, Debug)]
pub enum Details {
    /// Nothing.
    Absent,
    /// Bytes that are no google.rpc.Status.
    Unreadable,
    /// A google.rpc.Status.
    Read {
        /// Whether its code is that of the status that carries it.
        same_code: bool,
        /// The reason and the domain of its ErrorInfo.
        info: Option<(String, String)>,
        /// Its ToolError.
        error: Option<SeenError>,
    },
}

/// What a provider says of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenProducer {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Where it comes from.
    pub source: String,
    /// Its category.
    pub category: i32,
    /// The protocol's version that it speaks.
    pub protocol_version: u32,
}

/// What a provider advertises.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenSchema {
    /// Its operations.
    pub tools: Vec<SeenTool>,
    /// The keys of its configuration.
    pub config: Vec<SeenAttribute>,
    /// Name and template of each slash command.
    pub slash_commands: Vec<(String, String)>,
    /// The hook points that it can subscribe to.
    pub hook_points: Vec<i32>,
}

/// What a provider says of one operation.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenTool {
    /// Its name.
    pub name: String,
    /// A ToolKind.
    pub kind: i32,
    /// A RiskClass.
    pub risk: i32,
    /// For the model.
    pub description: String,
    /// The shape of its arguments.
    pub input: Option<Shape>,
    /// The shape of its result.
    pub output: Option<Shape>,
    /// Whether events come before the last.
    pub streaming: bool,
    /// Whether it is safe to run beside others, and the arguments that serialize it.
    pub concurrency: Option<(bool, Vec<String>)>,
    /// Seconds and nanoseconds of its deadline.
    pub default_timeout: Option<(i64, i32)>,
    /// Whether running it twice is like running it once.
    pub idempotent: bool,
    /// Whether it ends the model's turn.
    pub terminates_turn: bool,
}

/// The shape of a value, in the wire's subset of JSON Schema.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shape {
    /// A SchemaType.
    pub kind: i32,
    /// What it is for.
    pub description: String,
    /// The properties of an object.
    pub properties: BTreeMap<String, Shape>,
    /// Those that must be there.
    pub required: Vec<String>,
    /// The items of an array.
    pub items: Option<Box<Shape>>,
    /// The words that a string may be.
    pub words: Vec<String>,
}

/// One key of a configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenAttribute {
    /// Its name.
    pub name: String,
    /// An AttrType.
    pub kind: i32,
    /// Whether it must be written.
    pub required: bool,
    /// Whether it is a secret.
    pub sensitive: bool,
    /// The keys of an object.
    pub attributes: Vec<SeenAttribute>,
    /// What holds where it is left out, as JSON text.
    pub default_json: Option<String>,
}

/// A call as it is sent.
#[derive(Clone, Debug, Default)]
pub struct Sent {
    /// The call's id.
    pub id: String,
    /// The operation.
    pub tool: String,
    /// Its arguments; `None` leaves the field out.
    pub arguments: Option<Payload>,
    /// Where it belongs; `None` leaves the field out.
    pub context: Option<SentContext>,
}

/// Where a call belongs.
#[derive(Clone, Debug, Default)]
pub struct SentContext {
    /// The session.
    pub session_id: String,
    /// The turn.
    pub turn_id: String,
    /// What relative paths start from.
    pub working_directory: String,
}

/// One event of a call.
#[derive(Clone, Debug)]
pub enum SeenEvent {
    /// None at all: the field, or the choice in it, is not set.
    Empty,
    /// A piece of output.
    Output {
        /// An OutputStream.
        stream: i32,
        /// The piece.
        data: Vec<u8>,
    },
    /// How far the call is.
    Progress {
        /// What goes on.
        message: String,
        /// How much of it is done.
        fraction: Option<f64>,
    },
    /// A part of the result.
    Partial,
    /// The child process ended.
    Exit {
        /// Its exit code.
        code: i32,
    },
    /// The call succeeded. `None` where the payload is not set; else the payload, or why it is no
    /// JSON.
    Result(Option<Result<Payload, String>>),
    /// The call failed.
    Error(SeenError),
}

/// An error as it came.
#[derive(Clone, Debug)]
pub struct SeenError {
    /// A ToolErrorCategory.
    pub category: i32,
    /// What went wrong.
    pub message: String,
    /// Whether the same call may be tried again.
    pub retryable: bool,
    /// The structured details.
    pub details: Option<Payload>,
}

/// The events of a running call. Dropping it cancels the call.
#[derive(Debug)]
pub struct SeenStream(Streaming<wire::InvokeResponse>);

impl Observer {
    /// An observer on this connection.
    #[must_use]
    pub fn new(channel: Channel) -> Self {
        let inner = ToolServiceClient::new(channel.clone())
            .max_decoding_message_size(MOST_MESSAGE_BYTES)
            .max_encoding_message_size(MOST_MESSAGE_BYTES);
        Self { inner, channel }
    }

    /// Calls Describe; `None` when the answer names no producer.
    ///
    /// # Errors
    /// [`Refusal`].
    pub async fn describe(&mut self) -> Result<Option<SeenProducer>, Refusal> {
        let answer = self.inner.describe(wire::DescribeRequest {}).await?.into_inner();
        Ok(answer.producer.map(|producer| SeenProducer {
            name: producer.name,
            version: producer.version,
            source: producer.source,
            category: producer.category,
            protocol_version: producer.protocol_version,
        }))
    }

    /// Calls Describe of a service that a tool provider does not have, as a kernel does that looks
    /// for a plugin's category.
    ///
    /// # Errors
    /// [`Refusal`], as it should.
    pub async fn describe_as_a_model(&mut self) -> Result<(), Refusal> {
        let mut client = tonic::client::Grpc::new(self.channel.clone());
        client.ready().await.map_err(|error| Status::from_error(error.into()))?;
        let path = PathAndQuery::from_static("/pluggableharness.model.v1.ModelService/Describe");
        let codec =
            tonic_prost::ProstCodec::<wire::DescribeRequest, wire::DescribeResponse>::default();
        client.unary(Request::new(wire::DescribeRequest {}), path, codec).await?;
        Ok(())
    }

    /// Calls GetSchema.
    ///
    /// # Errors
    /// [`Refusal`].
    pub async fn schema(&mut self) -> Result<SeenSchema, Refusal> {
        let answer = self.inner.get_schema(wire::GetSchemaRequest {}).await?.into_inner();
        let config = answer.config_schema.unwrap_or_default().attributes;
        Ok(SeenSchema {
            tools: answer.tools.into_iter().map(tool).collect(),
            config: config.into_iter().map(attribute).collect(),
            slash_commands: answer
                .slash_commands
                .into_iter()
                .map(|command| (command.name, command.template))
                .collect(),
            hook_points: answer.supported_hook_points,
        })
    }

    /// Calls Configure.
    ///
    /// # Errors
    /// [`Refusal`].
    pub async fn configure(&mut self, config: Payload) -> Result<(), Refusal> {
        self.inner.configure(wire::ConfigureRequest { config: Some(to_struct(config)) }).await?;
        Ok(())
    }

    /// Calls Invoke, with a deadline in the request where one is given; nothing here enforces it.
    /// `None` sends a request without a call.
    ///
    /// # Errors
    /// [`Refusal`] when there is no stream at all.
    pub async fn invoke(
        &mut self,
        call: Option<Sent>,
        deadline: Option<Duration>,
    ) -> Result<SeenStream, Refusal> {
        let mut request = Request::new(wire::InvokeRequest { call: call.map(tool_call) });
        if let Some(deadline) = deadline {
            request.set_timeout(deadline);
        }
        Ok(SeenStream(self.inner.invoke(request).await?.into_inner()))
    }

    /// Calls Preview; `None` when the answer holds no tree.
    ///
    /// # Errors
    /// [`Refusal`].
    pub async fn preview(&mut self, call: Option<Sent>) -> Result<Option<SeenTree>, Refusal> {
        let request = wire::PreviewRequest { call: call.map(tool_call) };
        let answer = self.inner.preview(request).await?.into_inner();
        Ok(answer.preview.as_ref().map(SeenTree::of))
    }

    /// Calls Render; `None` when the answer holds no tree.
    ///
    /// # Errors
    /// [`Refusal`].
    pub async fn render(
        &mut self,
        schema_version: &str,
        payload: Vec<u8>,
    ) -> Result<Option<SeenTree>, Refusal> {
        let request = wire::RenderRequest { payload, schema_version: schema_version.to_owned() };
        let answer = self.inner.render(request).await?.into_inner();
        Ok(answer.tree.as_ref().map(SeenTree::of))
    }
}

impl SeenStream {
    /// The next event; `None` at the end of the stream.
    ///
    /// # Errors
    /// [`Refusal`] when the stream ends with a status.
    pub async fn next(&mut self) -> Option<Result<SeenEvent, Refusal>> {
        match self.0.message().await {
            Ok(Some(response)) => Some(Ok(event(response.event.and_then(|event| event.event)))),
            Ok(None) => None,
            Err(status) => Some(Err(status.into())),
        }
    }
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        Refusal {
            code: code_name(status.code()),
            message: status.message().to_owned(),
            // What came over the wire has no cause of ours.
            origin: match status.source() {
                None => Origin::Provider,
                Some(_) => Origin::Connection,
            },
            details: details(&status),
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "status {}: {}", self.code, self.message)
    }
}

fn code_name(code: Code) -> &'static str {
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

fn details(status: &Status) -> Details {
    if status.details().is_empty() {
        return Details::Absent;
    }
    let Ok(rpc) = RpcStatus::decode(status.details()) else { return Details::Unreadable };
    let find = |url: &str| {
        let detail = rpc.details.iter().find(|detail| detail.type_url == url)?;
        Some(detail.value.as_slice())
    };
    Details::Read {
        same_code: rpc.code == i32::from(status.code()),
        info: find(ERROR_INFO)
            .and_then(|bytes| ErrorInfo::decode(bytes).ok())
            .map(|info| (info.reason, info.domain)),
        error: find(TOOL_ERROR)
            .and_then(|bytes| wire::ToolError::decode(bytes).ok())
            .map(seen_error),
    }
}

fn tool(tool: wire::ToolSchema) -> SeenTool {
    SeenTool {
        name: tool.name,
        kind: tool.kind,
        risk: tool.risk,
        description: tool.description,
        input: tool.input_schema.map(shape),
        output: tool.output_schema.map(shape),
        streaming: tool.streaming,
        concurrency: tool.concurrency.map(|spec| (spec.safe, spec.key_fields)),
        default_timeout: tool.default_timeout.map(|time| (time.seconds, time.nanos)),
        idempotent: tool.idempotent,
        terminates_turn: tool.terminates_turn,
    }
}

fn shape(schema: Schema) -> Shape {
    Shape {
        kind: schema.r#type,
        description: schema.description,
        properties: schema.properties.into_iter().map(|(name, of)| (name, shape(of))).collect(),
        required: schema.required,
        items: schema.items.map(|items| Box::new(shape(*items))),
        words: schema.enum_values,
    }
}

fn attribute(attribute_of: ConfigAttribute) -> SeenAttribute {
    SeenAttribute {
        name: attribute_of.name,
        kind: attribute_of.r#type,
        required: attribute_of.required,
        sensitive: attribute_of.sensitive,
        attributes: attribute_of.object_attributes.into_iter().map(attribute).collect(),
        default_json: attribute_of.default_json,
    }
}

fn tool_call(sent: Sent) -> wire::ToolCall {
    wire::ToolCall {
        id: sent.id,
        tool_name: sent.tool,
        arguments: sent.arguments.map(to_struct),
        call_context: sent.context.map(|context| CallContext {
            session_id: context.session_id,
            turn_id: context.turn_id,
            working_directory: context.working_directory,
        }),
    }
}

fn event(event: Option<Event>) -> SeenEvent {
    match event {
        None => SeenEvent::Empty,
        Some(Event::OutputChunk(chunk)) => {
            SeenEvent::Output { stream: chunk.stream, data: chunk.data.to_vec() }
        }
        Some(Event::Progress(progress)) => {
            SeenEvent::Progress { message: progress.message, fraction: progress.fraction_complete }
        }
        Some(Event::PartialResult(_)) => SeenEvent::Partial,
        Some(Event::ExitStatus(exit)) => SeenEvent::Exit { code: exit.exit_code },
        Some(Event::Result(result)) => SeenEvent::Result(
            result.payload.map(|of| payload(of).map_err(|error| error.to_string())),
        ),
        Some(Event::Error(error)) => SeenEvent::Error(seen_error(error)),
    }
}

fn seen_error(error: wire::ToolError) -> SeenError {
    SeenError {
        category: error.category,
        message: error.message,
        retryable: error.retryable,
        details: error.details.and_then(|details| payload(details).ok()),
    }
}
