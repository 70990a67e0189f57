//! A client that keeps what came over the wire as it came, right or wrong, in order to judge a
//! provider. [`tool_provider::grpc::ToolClient`] is the one to use a provider with.
//!
//! Enumerations are wire numbers here, as a provider may send one that does not exist.

use std::error::Error as _;
use std::time::Duration;

use prost::Message as _;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{Request, Status, Streaming};
use tonic_types::pb::{ErrorInfo, Status as RpcStatus};

use tool_provider::Payload;

use tool_provider::grpc::pb::common::v1::CallContext;
use tool_provider::grpc::pb::config::v1::ConfigAttribute;
use tool_provider::grpc::pb::hook::v1 as hook;
use tool_provider::grpc::pb::hook::v1::hook_subscriber_service_client::HookSubscriberServiceClient;
use tool_provider::grpc::pb::schema::v1::Schema;
use tool_provider::grpc::pb::tool::v1::tool_event::Event;
use tool_provider::grpc::pb::tool::v1::tool_service_client::ToolServiceClient;
use tool_provider::grpc::pb::tool::v1::{self as wire};
use tool_provider::grpc::{
    ERROR_INFO, MOST_MESSAGE_BYTES, TOOL_ERROR, code_name, payload, to_struct,
};

mod seen;
mod trees;

pub(crate) use seen::{
    Details, ObservedAttribute, ObservedError, ObservedEvent, ObservedProducer, ObservedSchema,
    ObservedTool, Origin, Refusal, Sent, SentContext, Shape,
};
pub(crate) use trees::ObservedTree;

/// A client that observes. Clones share one connection.
#[derive(Clone, Debug)]
pub(crate) struct Observer {
    inner: ToolServiceClient<Channel>,
    channel: Channel,
}

/// The events of a running call. Dropping it cancels the call.
#[derive(Debug)]
pub(crate) struct ObservedStream(Streaming<wire::InvokeResponse>);

impl Observer {
    /// An observer on this connection.
    #[must_use]
    pub(crate) fn new(channel: Channel) -> Self {
        let inner = ToolServiceClient::new(channel.clone())
            .max_decoding_message_size(MOST_MESSAGE_BYTES)
            .max_encoding_message_size(MOST_MESSAGE_BYTES);
        Self { inner, channel }
    }

    /// Calls Describe; `None` when the answer names no producer.
    ///
    /// # Errors
    /// [`Refusal`].
    pub(crate) async fn describe(&mut self) -> Result<Option<ObservedProducer>, Refusal> {
        let answer = self.inner.describe(wire::DescribeRequest {}).await?.into_inner();
        Ok(answer.producer.map(|producer| ObservedProducer {
            name: producer.name,
            version: producer.version,
            source: producer.source,
            category: producer.category,
            protocol_version: producer.protocol_version,
        }))
    }

    /// Calls Describe of a service that a tool provider does not have, as a host does that looks
    /// for a plugin's category.
    ///
    /// # Errors
    /// [`Refusal`], as it should.
    pub(crate) async fn describe_as_a_model(&mut self) -> Result<(), Refusal> {
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
    pub(crate) async fn schema(&mut self) -> Result<ObservedSchema, Refusal> {
        let answer = self.inner.get_schema(wire::GetSchemaRequest {}).await?.into_inner();
        let config = answer.config_schema.unwrap_or_default().attributes;
        Ok(ObservedSchema {
            tools: answer.tools.into_iter().map(seen_tool).collect(),
            config: config.into_iter().map(seen_attribute).collect(),
            slash_commands: answer
                .slash_commands
                .into_iter()
                .map(|command| (command.name, command.template))
                .collect(),
            hook_points: answer.supported_hook_points,
        })
    }

    /// Calls DispatchHook of the hook service.
    ///
    /// # Errors
    /// [`Refusal`].
    pub(crate) async fn dispatch_hook(
        &mut self,
        request: hook::DispatchHookRequest,
    ) -> Result<hook::DispatchHookResponse, Refusal> {
        let mut client = HookSubscriberServiceClient::new(self.channel.clone());
        Ok(client.dispatch_hook(request).await?.into_inner())
    }

    /// Calls Configure.
    ///
    /// # Errors
    /// [`Refusal`].
    pub(crate) async fn configure(&mut self, config: Payload) -> Result<(), Refusal> {
        self.inner.configure(wire::ConfigureRequest { config: Some(to_struct(config)) }).await?;
        Ok(())
    }

    /// Calls Invoke, with a deadline in the request where one is given; nothing here enforces it.
    /// `None` sends a request without a call.
    ///
    /// # Errors
    /// [`Refusal`] when there is no stream at all.
    pub(crate) async fn invoke(
        &mut self,
        call: Option<Sent>,
        deadline: Option<Duration>,
    ) -> Result<ObservedStream, Refusal> {
        let mut request = Request::new(wire::InvokeRequest { call: call.map(tool_call) });
        if let Some(deadline) = deadline {
            request.set_timeout(deadline);
        }
        Ok(ObservedStream(self.inner.invoke(request).await?.into_inner()))
    }

    /// Calls Preview; `None` when the answer holds no tree.
    ///
    /// # Errors
    /// [`Refusal`].
    pub(crate) async fn preview(
        &mut self,
        call: Option<Sent>,
    ) -> Result<Option<ObservedTree>, Refusal> {
        let request = wire::PreviewRequest { call: call.map(tool_call) };
        let answer = self.inner.preview(request).await?.into_inner();
        Ok(answer.preview.as_ref().map(ObservedTree::of))
    }

    /// Calls Render; `None` when the answer holds no tree.
    ///
    /// # Errors
    /// [`Refusal`].
    pub(crate) async fn render(
        &mut self,
        schema_version: &str,
        payload: Vec<u8>,
    ) -> Result<Option<ObservedTree>, Refusal> {
        let request = wire::RenderRequest { payload, schema_version: schema_version.to_owned() };
        let answer = self.inner.render(request).await?.into_inner();
        Ok(answer.tree.as_ref().map(ObservedTree::of))
    }
}

impl ObservedStream {
    /// The next event; `None` at the end of the stream.
    ///
    /// # Errors
    /// [`Refusal`] when the stream ends with a status.
    pub(crate) async fn next(&mut self) -> Option<Result<ObservedEvent, Refusal>> {
        match self.0.message().await {
            Ok(Some(response)) => {
                Some(Ok(seen_event(response.event.and_then(|event| event.event))))
            }
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

fn seen_tool(tool: wire::ToolSchema) -> ObservedTool {
    ObservedTool {
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

fn seen_attribute(attribute: ConfigAttribute) -> ObservedAttribute {
    ObservedAttribute {
        name: attribute.name,
        kind: attribute.r#type,
        required: attribute.required,
        sensitive: attribute.sensitive,
        attributes: attribute.object_attributes.into_iter().map(seen_attribute).collect(),
        default_json: attribute.default_json,
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

fn seen_event(event: Option<Event>) -> ObservedEvent {
    match event {
        None => ObservedEvent::Empty,
        Some(Event::OutputChunk(chunk)) => {
            ObservedEvent::Output { stream: chunk.stream, data: chunk.data.to_vec() }
        }
        Some(Event::Progress(progress)) => ObservedEvent::Progress {
            message: progress.message,
            fraction: progress.fraction_complete,
        },
        Some(Event::PartialResult(_)) => ObservedEvent::Partial,
        Some(Event::ExitStatus(exit)) => ObservedEvent::Exit { code: exit.exit_code },
        Some(Event::Result(result)) => ObservedEvent::Result(
            result.payload.map(|of| payload(of).map_err(|error| error.to_string())),
        ),
        Some(Event::Error(error)) => ObservedEvent::Error(seen_error(error)),
    }
}

fn seen_error(error: wire::ToolError) -> ObservedError {
    ObservedError {
        category: error.category,
        message: error.message,
        retryable: error.retryable,
        details: error.details.and_then(|details| payload(details).ok()),
    }
}
