//! The service: four operations, and every wrong answer.

mod refusal;

use std::io::Write as _;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use goplugin::Broker;
use prost::Message as _;
use prost_types::value::Kind;
use prost_types::{Struct, Value};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt as _};
use tonic::metadata::MetadataMap;
use tonic::{Code, Request, Response, Status};

use super::declared;
use super::fault::Fault;
use super::run::{self, Groups};
use tool_provider::grpc::handshake::HOST_CALLBACKS;
use tool_provider::grpc::pb::event::v1::{ToolCallEvent, ToolResultEvent};
use tool_provider::grpc::pb::kernel::v1::kernel_callback_service_client::KernelCallbackServiceClient;
use tool_provider::grpc::pb::kernel::v1::{EmitRequest, LogRequest};
use tool_provider::grpc::pb::log::v1::{LogEntry, LogLevel};
use tool_provider::grpc::pb::render::v1::{RenderNode, RenderTree, TextNode, render_node::Node};
use tool_provider::grpc::pb::tool::v1::tool_event::{Event, ExitStatus, Progress};
use tool_provider::grpc::pb::tool::v1::tool_service_server::{ToolService, ToolServiceServer};
use tool_provider::grpc::pb::tool::v1::{self as wire, ToolErrorCategory};

pub(crate) use refusal::error;
use refusal::status;

type Events = Pin<Box<dyn Stream<Item = Result<wire::InvokeResponse, Status>> + Send>>;

#[derive(Clone)]
pub(crate) struct Provider {
    fault: Fault,
    state: Arc<State>,
    groups: Groups,
}

#[derive(Default)]
struct State {
    configured: AtomicBool,
    asked: AtomicUsize,
    broker: OnceLock<Broker>,
}

impl Provider {
    pub(crate) fn new(fault: Fault) -> Self {
        Self { fault, state: Arc::default(), groups: Groups::default() }
    }

    pub(crate) fn into_server(self) -> ToolServiceServer<Self> {
        ToolServiceServer::new(self)
    }

    pub(crate) fn has_broker(&self, broker: Broker) {
        let _ = self.state.broker.set(broker);
    }

    pub(crate) fn stop(&self) {
        self.groups.kill_all();
    }

    /// Says something to the host.
    async fn log(&self, token: String) {
        let Some(broker) = self.state.broker.get() else { return };
        let Ok(channel) = broker.dial(HOST_CALLBACKS).await else { return };
        let is_nameless = self.fault.is("logs-without-a-level");
        let level = if is_nameless { LogLevel::Unspecified } else { LogLevel::Info };
        let entry = LogEntry {
            level: level.into(),
            logger: "bad".to_owned(),
            message: "configured".to_owned(),
            ..LogEntry::default()
        };
        let request = LogRequest { entries: vec![entry], ..LogRequest::default() };
        let mut host = KernelCallbackServiceClient::new(channel);
        let _ = host.log(request).await;
        if self.fault.is("emits-a-secret") {
            let payload = token.into_bytes();
            let _ = host.emit(EmitRequest { payload, ..EmitRequest::default() }).await;
        }
    }

    fn check(&self, config: &Struct) -> Result<(), Status> {
        let refused = |message: &str| {
            Err(match () {
                () if self.fault.is("gives-unreadable-details") => {
                    Status::with_details(Code::InvalidArgument, message, vec![0xff; 9].into())
                }
                () => status(Code::InvalidArgument, message),
            })
        };
        if self.fault.is("accepts-no-configuration") {
            return refused("no");
        }
        for (name, value) in &config.fields {
            let fits = match (name.as_str(), &value.kind) {
                ("roots" | "token" | "verbose", None | Some(Kind::NullValue(_))) => {
                    if self.fault.is("refuses-null") && name == "verbose" {
                        return refused("null");
                    }
                    true
                }
                ("roots", Some(Kind::ListValue(_)))
                | ("token", Some(Kind::StringValue(_)))
                | ("verbose", Some(Kind::BoolValue(_))) => true,
                ("roots" | "token" | "verbose", _) if self.fault.is("breaks-at-any-type") => {
                    return Err(status(Code::Internal, "broken"));
                }
                ("roots" | "token" | "verbose", _) => self.fault.is("takes-any-type"),
                _ if self.fault.is("breaks-at-any-key") => {
                    return Err(status(Code::Internal, "broken"));
                }
                _ => self.fault.is("takes-any-key"),
            };
            if !fits {
                return refused(name);
            }
        }
        let has_roots = matches!(
            config.fields.get("roots"),
            Some(Value { kind: Some(Kind::ListValue(_) | Kind::NumberValue(_)) })
        );
        if !has_roots && self.fault.is("refuses-by-an-unknown-status") {
            return Err(Status::unknown("roots is missing"));
        }
        if !has_roots && !self.fault.is("requires-nothing") {
            return refused("roots is missing");
        }
        Ok(())
    }

    /// Looks or puts.
    fn answer(&self, call: &wire::ToolCall) -> Result<String, wire::ToolError> {
        let arguments = call.arguments.clone().unwrap_or_default();
        let path = text(&arguments, "path")?;
        let mut file = PathBuf::new();
        if !self.fault.is("ignores-the-working-directory") {
            file.push(directory(call));
        }
        file.push(&path);
        if call.tool_name == "put" {
            let mut content = text(&arguments, "content")?;
            if self.fault.is("puts-more-each-time") {
                content += &std::fs::read_to_string(&file).unwrap_or_default();
            }
            return std::fs::write(file, content)
                .map(|()| "written".to_owned())
                .map_err(|failure| error(ToolErrorCategory::NotFound, &failure.to_string()));
        }
        if self.fault.is("changes-by-looking") {
            let _ = std::fs::write(file.with_file_name("touched"), "");
        }
        if self.fault.is("looks-once-at-a-time") && call.id.ends_with(char::is_numeric) {
            return Err(error(ToolErrorCategory::ExecutionFailed, "another call runs"));
        }
        std::fs::read_to_string(file).map_err(|failure| self.not_found(&failure.to_string()))
    }

    fn not_found(&self, message: &str) -> wire::ToolError {
        let mut failure = error(ToolErrorCategory::NotFound, message);
        match () {
            () if self.fault.is("classifies-nothing") => failure.category = 0,
            () if self.fault.is("says-nothing") => failure.message.clear(),
            () if self.fault.is("hides-its-hint") => {
                let hint = Kind::StringValue("look in the other directory".to_owned());
                let hint = ("hint".to_owned(), Value { kind: Some(hint) });
                failure.details = Some(Struct { fields: [hint].into() });
            }
            () if self.fault.is("crashes-by-its-own-word") => {
                failure.set_category(ToolErrorCategory::ProcessCrashed);
            }
            () if self.fault.is("knows-nothing") => {
                failure.set_category(ToolErrorCategory::Unknown);
                failure.details = None;
            }
            () => {}
        }
        failure
    }

    /// The events of a call that is no process, right or wrong.
    fn events(&self, call: &wire::ToolCall) -> Vec<Event> {
        let is_looking = call.tool_name == "look";
        let answer = match call.tool_name.as_str() {
            "look" | "put" => self.answer(call),
            "ask" => Err(error(ToolErrorCategory::ExecutionFailed, "nobody is there")),
            _ if self.fault.is("knows-any-operation") => Ok("done".to_owned()),
            _ => Err(error(ToolErrorCategory::NotFound, "no such operation")),
        };
        let is_result = answer.is_ok();
        let end = match answer {
            Ok(text) => result(&text),
            Err(failure) if failure.category() == ToolErrorCategory::InvalidArguments => {
                let retryable = self.fault.is("retries-invalid-arguments");
                Event::Error(wire::ToolError { retryable, ..failure })
            }
            Err(failure) => Event::Error(failure),
        };
        if !is_looking || !is_result {
            return vec![end];
        }
        match () {
            () if self.fault.is("ends-twice") => vec![end.clone(), end],
            () if self.fault.is("leads-up") => {
                vec![Event::Progress(Progress::default()), end]
            }
            () if self.fault.is("exits-without-a-process") => {
                vec![Event::ExitStatus(ExitStatus::default()), end]
            }
            () if self.fault.is("gives-what-does-not-fit") => {
                vec![Event::Result(wire::ToolResult { payload: Some(Struct::default()) })]
            }
            () => vec![end],
        }
    }
}

#[tonic::async_trait]
impl ToolService for Provider {
    type InvokeStream = Events;

    async fn get_schema(
        &self,
        _: Request<wire::GetSchemaRequest>,
    ) -> Result<Response<wire::GetSchemaResponse>, Status> {
        if self.fault.is("lists-nothing-yet") {
            return Err(status(Code::FailedPrecondition, "not configured"));
        }
        let asked = self.state.asked.fetch_add(1, Ordering::Relaxed);
        Ok(Response::new(declared::schema(&self.fault, asked)))
    }

    async fn configure(
        &self,
        request: Request<wire::ConfigureRequest>,
    ) -> Result<Response<wire::ConfigureResponse>, Status> {
        let config = request.into_inner().config.unwrap_or_default();
        self.check(&config)?;
        let token = text(&config, "token").unwrap_or_default();
        if self.fault.is("leaks-a-secret") && !token.is_empty() {
            let _ = writeln!(std::io::stderr(), "the token is {token}");
        }
        self.state.configured.store(true, Ordering::Relaxed);
        let provider = self.clone();
        tokio::spawn(async move { provider.log(token).await });
        Ok(Response::new(wire::ConfigureResponse {}))
    }

    async fn invoke(
        &self,
        request: Request<wire::InvokeRequest>,
    ) -> Result<Response<Events>, Status> {
        let deadline = deadline(request.metadata());
        let Some(call) = request.into_inner().call else {
            if self.fault.is("needs-everything") {
                return Ok(Response::new(stream(Vec::new())));
            }
            return Err(status(Code::InvalidArgument, "no call"));
        };
        if !self.state.configured.load(Ordering::Relaxed) {
            if self.fault.is("is-silent-before-it-is-configured") {
                return Ok(Response::new(stream(Vec::new())));
            }
            let failure = error(ToolErrorCategory::PermissionDenied, "not configured");
            return Ok(Response::new(stream(vec![Event::Error(failure)])));
        }
        if self.fault.is("fails-by-a-status") {
            return Err(status(Code::Internal, "failed"));
        }
        if self.fault.is("sends-nothing-as-an-event") {
            let nothing = wire::InvokeResponse { event: Some(wire::ToolEvent { event: None }) };
            return Ok(Response::new(Box::pin(tokio_stream::iter([Ok(nothing)]))));
        }
        if call.tool_name != "run" {
            return Ok(Response::new(stream(self.events(&call))));
        }
        let command = match text(&call.arguments.clone().unwrap_or_default(), "command") {
            Ok(command) => command,
            Err(failure) => return Ok(Response::new(stream(vec![Event::Error(failure)]))),
        };
        let (sender, events) = mpsc::channel(16);
        let (fault, groups) = (self.fault.clone(), self.groups.clone());
        tokio::spawn(run::run(fault, groups, command, directory(&call), deadline, sender));
        Ok(Response::new(Box::pin(ReceiverStream::new(events).map(response))))
    }

    async fn render(
        &self,
        request: Request<wire::RenderRequest>,
    ) -> Result<Response<wire::RenderResponse>, Status> {
        let wire::RenderRequest { payload, schema_version } = request.into_inner();
        if schema_version != "1" && self.fault.is("breaks-at-a-version") {
            return Err(status(Code::Internal, "broken"));
        }
        if schema_version != "1" && !self.fault.is("knows-any-version") {
            return Err(status(Code::InvalidArgument, "the version is not known"));
        }
        let is_result =
            ToolResultEvent::decode(payload.as_slice()).is_ok_and(|event| event.outcome.is_some());
        let is_call =
            ToolCallEvent::decode(payload.as_slice()).is_ok_and(|event| event.call.is_some());
        if !is_result && !is_call {
            if self.fault.is("dies-of-garbage") {
                std::process::abort();
            }
            return Err(status(Code::InvalidArgument, "no event"));
        }
        let is_empty = self.fault.is("renders-nothing");
        let tree = if is_empty { RenderTree::default() } else { shown("a call") };
        Ok(Response::new(wire::RenderResponse { tree: Some(tree) }))
    }

    async fn preview(
        &self,
        request: Request<wire::PreviewRequest>,
    ) -> Result<Response<wire::PreviewResponse>, Status> {
        let call = request.into_inner().call.unwrap_or_default();
        let arguments = call.arguments.clone().unwrap_or_default();
        let first = if call.tool_name == "run" { "command" } else { "path" };
        let Ok(subject) = text(&arguments, first) else {
            return Err(match () {
                () if self.fault.is("answers-unavailable") => Status::unavailable("later"),
                () if self.fault.is("breaks-at-a-probe") => status(Code::Internal, "broken"),
                () if self.fault.is("denies-its-previews") => status(Code::Unimplemented, "none"),
                () => status(Code::InvalidArgument, "something is missing"),
            });
        };
        if call.tool_name == "put" && self.fault.is("does-what-it-previews") {
            let _ = self.answer(&call);
        }
        let is_missing = subject.contains("no-such");
        let is_empty = match is_missing {
            true => self.fault.is("previews-no-failure"),
            false => self.fault.is("previews-nothing"),
        };
        let preview = if is_empty { RenderTree::default() } else { shown(&subject) };
        Ok(Response::new(wire::PreviewResponse { preview: Some(preview) }))
    }

    async fn describe(
        &self,
        _: Request<wire::DescribeRequest>,
    ) -> Result<Response<wire::DescribeResponse>, Status> {
        if self.fault.is("waits-for-the-host")
            && let Some(broker) = self.state.broker.get()
        {
            while broker.dial(HOST_CALLBACKS).await.is_err() {}
        }
        let producer = Some(declared::producer(&self.fault));
        Ok(Response::new(wire::DescribeResponse { producer }))
    }
}

/// The event of a result.
pub(crate) fn result(text: &str) -> Event {
    let value = Value { kind: Some(Kind::StringValue(text.to_owned())) };
    let payload = Struct { fields: [("text".to_owned(), value)].into() };
    Event::Result(wire::ToolResult { payload: Some(payload) })
}

fn stream(events: Vec<Event>) -> Events {
    Box::pin(tokio_stream::iter(events).map(response))
}

fn response(event: Event) -> Result<wire::InvokeResponse, Status> {
    Ok(wire::InvokeResponse { event: Some(wire::ToolEvent { event: Some(event) }) })
}

fn shown(content: &str) -> RenderTree {
    let text = TextNode { content: content.to_owned(), style: None };
    RenderTree { root: Some(RenderNode { node: Some(Node::Text(text)) }) }
}

fn text(arguments: &Struct, name: &str) -> Result<String, wire::ToolError> {
    match arguments.fields.get(name).and_then(|value| value.kind.as_ref()) {
        Some(Kind::StringValue(text)) => Ok(text.clone()),
        _ => Err(error(ToolErrorCategory::InvalidArguments, &format!("{name} must be a text"))),
    }
}

fn directory(call: &wire::ToolCall) -> String {
    call.call_context.clone().unwrap_or_default().working_directory
}

/// The time that the caller gives, as gRPC writes it.
fn deadline(metadata: &MetadataMap) -> Option<Duration> {
    let text = metadata.get("grpc-timeout")?.to_str().ok()?;
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let number: u64 = number.parse().ok()?;
    Some(match unit {
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}
