//! Stories over a real connection, with small tools and a small host made for them.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use futures_util::StreamExt as _;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::UnixStream;
use tokio::sync::mpsc as async_mpsc;
use tonic::Code;
use tonic::body::Body;
use tonic::transport::{Channel, Endpoint, Server};
use tower::{Service, service_fn};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;

use super::*;
use crate::sample::{Sample, object};
use crate::tests::{OneTool, SAMPLE, named};
use crate::view::View;
use crate::{Call, Provider};
use crate::{Context, Event, OutputStream, Payload, ToolError, ToolKind};

/// A client of `service`, on a connection of its own.
async fn connect<S>(service: S) -> Channel
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
{
    let (near, far) = UnixStream::pair().unwrap();
    let incoming = tokio_stream::once(Ok::<_, std::io::Error>(far));
    tokio::spawn(Server::builder().serve_with_incoming(service, incoming));
    let near = Mutex::new(Some(near));
    let connector = service_fn(move |_| {
        let stream = near.lock().unwrap().take();
        async move {
            stream.map(TokioIo::new).ok_or(std::io::Error::from(std::io::ErrorKind::NotConnected))
        }
    });
    Endpoint::from_static("http://localhost").connect_with_connector(connector).await.unwrap()
}

async fn client_with(
    log: HostLog,
    run: impl Fn(&Payload, &Context<'_>) -> Result<Payload, ToolError> + Send + Sync + 'static,
) -> (ToolClient, Arc<Provider>) {
    let tool = Sample::tool("sample", ToolKind::DataSource, run);
    let provider = Arc::new(Provider::new(SAMPLE, OneTool(tool)));
    let service = ToolService::new(provider.clone(), log).into_server();
    (ToolClient::new(connect(service).await), provider)
}

async fn client(
    run: impl Fn(&Payload, &Context<'_>) -> Result<Payload, ToolError> + Send + Sync + 'static,
) -> ToolClient {
    client_with(HostLog::default(), run).await.0
}

fn block() -> Payload {
    named(json!({"mode": null}))
}

fn call(text: &str) -> Call {
    Call {
        id: "call-1".to_owned(),
        tool: "sample".to_owned(),
        arguments: object(json!({"text": text})),
        session_id: "session-1".to_owned(),
        ..Call::default()
    }
}

fn code(error: &ClientError) -> Code {
    match error {
        ClientError::Refused { status, .. } | ClientError::Status(status) => status.code(),
        other => panic!("no status in {other}"),
    }
}

#[tokio::test]
async fn a_host_learns_who_it_is_and_what_there_is() {
    let mut client = client(|_, _| Ok(Payload::new())).await;
    let producer = client.describe().await.unwrap();
    assert_eq!((producer.name.as_str(), producer.category), ("sample", 2));
    assert_eq!((producer.version.as_str(), producer.protocol_version), ("1.0.0", 1));
    let advertised = client.schema().await.unwrap();
    let tool = &advertised.tools[0];
    assert_eq!((tool.kind.as_str(), tool.risk.as_str()), ("data_source", "read_only"));
    assert_eq!(tool.input_schema["required"], json!(["text"]));
    assert_eq!(tool.default_timeout_ms, Some(60_000));
    let keys = advertised.config.as_array().unwrap();
    assert_eq!((&keys[0]["name"], &keys[0]["required"]), (&json!("name"), &json!(true)));
    let limits = keys.iter().find(|key| key["name"] == "limits").unwrap();
    assert_eq!(limits["attributes"][0]["default"], 4096);
    let optional = keys.iter().filter(|key| key["required"] == false);
    assert!(optional.clone().all(|key| key.get("default").is_some()));
    assert_eq!(optional.count(), keys.len() - 1);
}

#[tokio::test]
async fn events_cross_the_wire_as_they_are() {
    let mut client = client(|arguments, context| {
        let data = bytes::Bytes::from_static(b"\xff\0raw");
        let events = [
            Event::Output { stream: OutputStream::Stderr, data },
            Event::Progress { message: "half".into(), fraction: Some(0.5) },
            Event::Partial(object(json!({"hits": [1, {"a": "b"}]}))),
            Event::Exit { code: 137, signal: Some("SIGKILL".into()) },
        ];
        for event in events {
            context.sink.emit(event).unwrap();
        }
        Ok(arguments.clone())
    })
    .await;
    client.configure(block()).await.unwrap();
    let (events, outcome) = client.invoke_to_end(call("é")).await.unwrap();
    assert_eq!(events.len(), 4);
    assert!(matches!(&events[0], Event::Output { data, .. } if &data[..] == b"\xff\0raw"));
    assert_eq!(events[3], Event::Exit { code: 137, signal: Some("SIGKILL".into()) });
    assert_eq!(outcome.unwrap(), object(json!({"text": "é", "tool": "sample"})));
}

#[tokio::test]
async fn a_faulty_configuration_is_refused_with_every_fault_in_the_details() {
    let mut client = client(|_, _| Ok(Payload::new())).await;
    let faulty = object(json!({"nam": "x", "mode": "maybe"}));
    let error = client.configure(faulty).await.expect_err("three faults");
    assert_eq!(code(&error), Code::InvalidArgument);
    let ClientError::Refused { failure, .. } = error else { panic!("{error}") };
    assert_eq!(failure.category, "invalid_arguments");
    for key in ["nam", "name", "mode"] {
        assert!(failure.details.contains_key(key), "{failure:?}");
    }
    let (_, outcome) = client.invoke_to_end(call("x")).await.unwrap();
    assert_eq!(outcome.expect_err("still not configured").category, "permission_denied");
    client.configure(block()).await.unwrap();
    client.invoke_to_end(call("x")).await.unwrap().1.unwrap();
}

#[tokio::test]
async fn a_probe_without_arguments_is_answered_so_before_and_after_configure() {
    let mut client = client(|_, _| Ok(Payload::new())).await;
    let probe = || Call { tool: "sample".to_owned(), ..Call::default() };
    assert_eq!(code(&client.preview(probe()).await.expect_err("empty")), Code::InvalidArgument);
    let unknown = Call { tool: "nothing".to_owned(), ..Call::default() };
    assert_eq!(code(&client.preview(unknown).await.expect_err("unknown")), Code::NotFound);
    client.configure(block()).await.unwrap();
    assert_eq!(code(&client.preview(probe()).await.expect_err("empty")), Code::InvalidArgument);
    assert_eq!(client.preview(call("x")).await.unwrap(), View::plain("x"));
}

#[test]
fn numbers_that_json_cannot_hold_are_refused() {
    let not_a_number =
        prost_types::Value { kind: Some(prost_types::value::Kind::NumberValue(f64::NAN)) };
    let arguments = prost_types::Struct { fields: [("text".to_owned(), not_a_number)].into() };
    let mut raw = convert::tool_call(call("x"));
    raw.arguments = Some(arguments);
    let error = convert::call(raw).expect_err("NaN");
    assert_eq!(error, ConvertError::NotFinite { at: "text".to_owned() });
}

#[tokio::test]
async fn closing_the_stream_reaches_a_tool_that_sends_nothing() {
    let (sender, receiver) = async_mpsc::unbounded_channel();
    let mut receiver = receiver;
    let mut client = client(move |_, context| {
        context.sink.emit(Event::Progress { message: "started".into(), fraction: None }).unwrap();
        let (wake, woken) = mpsc::channel();
        context.cancel.on_cancel(move || wake.send(()).unwrap());
        woken.recv().unwrap();
        sender.send(()).unwrap();
        Ok(Payload::new())
    })
    .await;
    client.configure(block()).await.unwrap();
    let mut stream = client.invoke(call("x")).await.unwrap();
    assert!(matches!(stream.next().await, Some(Ok(InvokeItem::Event(_)))));
    drop(stream);
    receiver.recv().await.expect("the tool was cancelled");
}

#[tokio::test]
async fn closing_the_stream_before_the_first_event_cancels_too() {
    let (started, mut has_started) = async_mpsc::unbounded_channel();
    let (sender, mut receiver) = async_mpsc::unbounded_channel();
    let mut client = client(move |_, context| {
        let (wake, woken) = mpsc::channel();
        context.cancel.on_cancel(move || wake.send(()).unwrap());
        started.send(()).unwrap();
        woken.recv().unwrap();
        sender.send(()).unwrap();
        Ok(Payload::new())
    })
    .await;
    client.configure(block()).await.unwrap();
    let mut other = client.clone();
    let waiting = tokio::spawn(async move { other.invoke(call("x")).await.map(drop) });
    has_started.recv().await.unwrap();
    waiting.abort();
    receiver.recv().await.expect("the tool was cancelled");
}

#[tokio::test]
async fn a_deadline_of_the_host_comes_back_as_a_timeout_in_time() {
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let (mut client, provider) = client_with(HostLog::default(), move |_, _| {
        let _ = released.lock().unwrap().recv();
        Ok(Payload::new())
    })
    .await;
    client.configure(block()).await.unwrap();
    let deadline = Some(std::time::Instant::now() + Duration::from_secs(3));
    let slow = Call { deadline, ..call("x") };
    let (_, outcome) = client.invoke_to_end(slow).await.unwrap();
    let failure = outcome.expect_err("time is up");
    assert_eq!((failure.category.as_str(), failure.retryable), ("timeout", true));
    release.send(()).unwrap();
    provider.shut_down().await;
}

#[tokio::test]
async fn what_a_host_stored_is_shown() {
    let mut client = client(|_, _| Ok(Payload::new())).await;
    let before = persisted_call(&call("x"));
    let result = object(json!({"tool": "sample", "unknown": {"later": true}}));
    let after = persisted_result("call-1", &Ok(result.clone()));
    let bare = serde_json::to_vec(&result).unwrap();
    for version in ["1", "v1"] {
        assert_eq!(client.render(version, before.clone()).await.unwrap(), View::plain("a call"));
        assert_eq!(client.render(version, after.clone()).await.unwrap(), View::plain("a result"));
    }
    for version in ["", "json"] {
        assert_eq!(client.render(version, bare.clone()).await.unwrap(), View::plain("a result"));
    }
    let crashed = Failure {
        category: "process_crashed".into(),
        message: "gone".into(),
        retryable: false,
        details: Payload::new(),
    };
    let crashed = client.render("1", persisted_result("call-1", &Err(crashed))).await.unwrap();
    assert!(matches!(crashed, View::Text { content, .. } if content == "process_crashed: gone"));

    let error = client.render("2", after).await.expect_err("an unknown version");
    assert_eq!(code(&error), Code::InvalidArgument);
    assert!(error.to_string().contains("\"v1\"") && error.to_string().contains("\"json\""));
    for (version, bytes) in [("1", &b"\xff\xff"[..]), ("1", b""), ("json", b"[]"), ("", b"{")] {
        let error = client.render(version, bytes.to_vec()).await.expect_err("nonsense");
        assert_eq!(code(&error), Code::InvalidArgument, "{version} {bytes:?}");
    }
}

#[tokio::test]
async fn the_host_hears_what_happened_to_a_cancelled_call() {
    let (sender, mut heard) = async_mpsc::unbounded_channel();
    let host = host_callbacks(move |entry| sender.send(entry).unwrap());
    let channel = connect(host).await;
    let log = HostLog::default();
    log.dial_with(move || {
        let channel = channel.clone();
        async move { Ok(channel) }
    });
    let subscriber = tracing_subscriber::registry().with(log.layer());
    let (started, mut has_started) = async_mpsc::unbounded_channel();
    let (mut client, provider) = {
        let subscriber = Arc::new(subscriber);
        client_with(log.clone(), move |_, context| {
            // Each worker thread reports to this test's own subscriber.
            let _guard = tracing::subscriber::set_default(subscriber.clone());
            let (wake, woken) = mpsc::channel();
            context.cancel.on_cancel(move || wake.send(()).unwrap());
            started.send(()).unwrap();
            woken.recv().unwrap();
            tracing::info!(session_id = "session-1", applied = true, "what happened");
            Ok(Payload::new())
        })
        .await
    };
    client.configure(block()).await.unwrap();
    let mut other = client.clone();
    let waiting = tokio::spawn(async move { other.invoke(call("x")).await.map(drop) });
    has_started.recv().await.unwrap();
    waiting.abort();
    let entry = heard.recv().await.unwrap();
    assert_eq!(entry.session_id.as_deref(), Some("session-1"));
    assert_eq!((entry.message.as_str(), entry.level.as_str()), ("what happened", "info"));
    assert_eq!(entry.fields["applied"], true);
    provider.shut_down().await;
    log.finish().await;
}

#[tokio::test]
async fn an_entry_goes_one_way_through_the_host_while_it_takes_it_and_otherwise_elsewhere() {
    let elsewhere = Arc::new(Mutex::new(Vec::new()));
    let written = elsewhere.clone();
    let log = HostLog::new(move |record| written.lock().unwrap().push(record.message.clone()));
    let (heard, mut entries) = async_mpsc::unbounded_channel();
    let channel = connect(host_callbacks(move |entry| heard.send(entry.message).unwrap())).await;
    log.dial_with(move || {
        let channel = channel.clone();
        async move { Ok(channel) }
    });
    // Not what the connection itself says of carrying an entry.
    let targets = Targets::new().with_target("tool_provider", LevelFilter::TRACE);
    let subscriber = tracing_subscriber::registry().with(targets).with(log.layer());
    let _guard = tracing::subscriber::set_default(subscriber);
    let ours = |level: &str| format!("{level} of this test");
    tracing::info!("{}", ours("before"));
    log.connect();
    tracing::debug!("{}", ours("debug"));
    while entries.recv().await.unwrap() != ours("debug") {}
    log.finish().await;
    tracing::info!("{}", ours("after"));
    let elsewhere = elsewhere.lock().unwrap();
    let elsewhere: Vec<&String> =
        elsewhere.iter().filter(|message| message.ends_with("of this test")).collect();
    assert_eq!(elsewhere, [&ours("before"), &ours("after")]);
}

#[tokio::test]
async fn a_host_without_a_log_costs_one_dial_and_no_entry() {
    let elsewhere = Arc::new(Mutex::new(Vec::new()));
    let written = elsewhere.clone();
    let log = HostLog::new(move |record| written.lock().unwrap().push(record.message.clone()));
    log.dial_with(|| async { Err("no such service".into()) });
    let subscriber = tracing_subscriber::registry().with(log.layer());
    let _guard = tracing::subscriber::set_default(subscriber);
    tracing::info!("before");
    log.connect();
    tracing::info!("while it is dialled");
    log.finish().await;
    tracing::info!("after");
    log.connect();
    log.finish().await;
    assert_eq!(*elsewhere.lock().unwrap(), ["before", "while it is dialled", "after"]);
}
