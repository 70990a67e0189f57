//! The provider's service as the wire has it, without the client's own idea of what is right.

use prost::Message as _;
use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value};
use tonic::transport::Channel;
use tonic::{Code, Status};
use tool_provider::grpc::Failure;

use crate::harness::Fixture;
use tool_provider::grpc::pb::common::v1::CallContext;
use tool_provider::grpc::pb::event::v1::tool_result_event::Outcome;
use tool_provider::grpc::pb::event::v1::{ToolCallEvent, ToolResultEvent};
use tool_provider::grpc::pb::tool::v1::tool_event::Event;
use tool_provider::grpc::pb::tool::v1::tool_service_client::ToolServiceClient;
use tool_provider::grpc::pb::tool::v1::{self as wire};

/// Categories that a provider may answer with. `unknown` is not among them: it stands for a fault of
/// its own.
const CATEGORIES: [wire::ToolErrorCategory; 7] = [
    wire::ToolErrorCategory::InvalidArguments,
    wire::ToolErrorCategory::NotFound,
    wire::ToolErrorCategory::PermissionDenied,
    wire::ToolErrorCategory::ExecutionFailed,
    wire::ToolErrorCategory::Timeout,
    wire::ToolErrorCategory::ConcurrencyConflict,
    wire::ToolErrorCategory::Cancelled,
];

/// A client that sends whatever it is given.
#[derive(Clone)]
pub(crate) struct Raw(pub(crate) ToolServiceClient<Channel>);

impl Raw {
    /// A client on the story's own connection.
    pub(crate) fn of(fixture: &Fixture) -> Self {
        Self(ToolServiceClient::new(fixture.plugin.channel()))
    }

    /// Runs a call to its end: whether it succeeded, or its classified failure.
    pub(crate) async fn invoke(&mut self, tool: &str, arguments: Struct) -> Result<(), Failure> {
        let request = wire::InvokeRequest { call: Some(call(tool, arguments)) };
        let mut events = match self.0.invoke(request).await {
            Ok(answer) => answer.into_inner(),
            Err(status) => return Err(classified(&status)),
        };
        let mut end = None;
        while let Some(answer) = events.message().await.unwrap() {
            assert!(end.is_none(), "{tool}: an event after the last");
            match answer.event.unwrap().event.unwrap() {
                Event::Result(_) => end = Some(Ok(())),
                Event::Error(error) => end = Some(Err(known(error))),
                _ => {}
            }
        }
        end.unwrap_or_else(|| panic!("{tool}: the call ended without a last event"))
    }

    /// Asks for a preview: whether there is one, or the classified failure.
    pub(crate) async fn preview(&mut self, tool: &str, arguments: Struct) -> Result<(), Failure> {
        let request = wire::PreviewRequest { call: Some(call(tool, arguments)) };
        self.0.preview(request).await.map(|_| ()).map_err(|status| classified(&status))
    }

    /// Has shown what a host would have stored of a call, and of a result or a failure that hold
    /// the same struct.
    pub(crate) async fn render(&mut self, tool: &str, stored: Struct) -> Result<(), Failure> {
        let result = wire::ToolResult {
            payload: Some(Struct {
                fields: [("tool".to_owned(), text(tool))]
                    .into_iter()
                    .chain(stored.fields.clone())
                    .collect(),
            }),
        };
        let error = wire::ToolError { details: Some(stored.clone()), ..wire::ToolError::default() };
        let ended =
            |outcome| ToolResultEvent { tool_call_id: "call-1".to_owned(), outcome: Some(outcome) };
        for payload in [
            ToolCallEvent { call: Some(call(tool, stored)) }.encode_to_vec(),
            ended(Outcome::Result(result)).encode_to_vec(),
            ended(Outcome::Error(error)).encode_to_vec(),
        ] {
            let request = wire::RenderRequest { payload, schema_version: "1".to_owned() };
            self.0.render(request).await.map_err(|status| classified(&status))?;
        }
        Ok(())
    }
}

/// The failure that a refused request carries in its details.
pub(crate) fn classified(status: &Status) -> Failure {
    assert_ne!(status.code(), Code::Unavailable, "{status:?}");
    let rpc = tonic_types::pb::Status::decode(status.details()).unwrap();
    let carried = rpc.details.iter().find(|detail| detail.type_url.ends_with(".ToolError"));
    let carried = carried.unwrap_or_else(|| panic!("a bare status: {status:?}"));
    known(wire::ToolError::decode(carried.value.as_slice()).unwrap())
}

fn known(error: wire::ToolError) -> Failure {
    assert!(CATEGORIES.contains(&error.category()), "{error:?}");
    assert!(error.message.len() <= 20_000, "a message of {} bytes", error.message.len());
    let name = error.category().as_str_name().trim_start_matches("TOOL_ERROR_CATEGORY_");
    Failure {
        category: name.to_lowercase(),
        message: error.message,
        retryable: error.retryable,
        details: serde_json::Map::new(),
    }
}

pub(crate) fn call(tool: &str, arguments: Struct) -> wire::ToolCall {
    wire::ToolCall {
        id: "call-1".to_owned(),
        tool_name: tool.to_owned(),
        arguments: Some(arguments),
        call_context: Some(CallContext {
            session_id: "session-1".to_owned(),
            turn_id: "turn-1".to_owned(),
            working_directory: String::new(),
        }),
    }
}

pub(crate) fn fields<N: Into<String>>(of: impl IntoIterator<Item = (N, Value)>) -> Struct {
    Struct { fields: of.into_iter().map(|(name, value)| (name.into(), value)).collect() }
}

pub(crate) fn text(text: impl Into<String>) -> Value {
    Value { kind: Some(Kind::StringValue(text.into())) }
}

pub(crate) fn number(number: f64) -> Value {
    Value { kind: Some(Kind::NumberValue(number)) }
}

pub(crate) fn flag(flag: bool) -> Value {
    Value { kind: Some(Kind::BoolValue(flag)) }
}

pub(crate) fn list(values: Vec<Value>) -> Value {
    Value { kind: Some(Kind::ListValue(ListValue { values })) }
}

pub(crate) fn object(fields: Struct) -> Value {
    Value { kind: Some(Kind::StructValue(fields)) }
}

pub(crate) fn null() -> Value {
    Value { kind: Some(Kind::NullValue(0)) }
}
