//! What a collector gets of calls, and that without one there is nothing.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};

use goplugin::host::Launch;
use prost::Message;
use serde_json::json;
use tokio::sync::mpsc;

use crate::harness::{Fixture, TEST_TIMEOUT, call};
use crate::trials::{Need, Trial};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_call_is_a_span_below_the_host_s_own needs [Need::Telemetry],
        failures_previews_and_metrics_are_exported_and_a_caller_that_does_not_record_is_counted needs [Need::Telemetry],
        what_is_left_is_sent_at_the_end needs [Need::Telemetry],
        without_a_collector_or_switched_off_nothing_is_connected needs [Need::Telemetry],
        a_collector_that_is_not_there_or_never_answers_costs_nothing_but_a_warning needs [Need::Telemetry],
        commands_do_not_see_where_spans_go needs [Need::Telemetry],
    ]
}

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

/// The parts of OTLP that the stories look at, numbered as OTLP's own files number them.
mod otlp {
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Request {
        #[prost(message, repeated, tag = "1")]
        pub(super) parts: Vec<Part>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Part {
        #[prost(message, optional, tag = "1")]
        pub(super) resource: Option<Resource>,
        #[prost(message, repeated, tag = "2")]
        pub(super) scopes: Vec<Scope>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Resource {
        #[prost(message, repeated, tag = "1")]
        pub(super) attributes: Vec<KeyValue>,
    }

    /// Of spans or of metrics.
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Scope {
        #[prost(bytes = "vec", repeated, tag = "2")]
        pub(super) items: Vec<Vec<u8>>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Span {
        #[prost(bytes = "vec", tag = "1")]
        pub(super) trace_id: Vec<u8>,
        #[prost(bytes = "vec", tag = "2")]
        pub(super) span_id: Vec<u8>,
        #[prost(string, tag = "3")]
        pub(super) trace_state: String,
        #[prost(bytes = "vec", tag = "4")]
        pub(super) parent_span_id: Vec<u8>,
        #[prost(string, tag = "5")]
        pub(super) name: String,
        #[prost(fixed64, tag = "7")]
        pub(super) start: u64,
        #[prost(fixed64, tag = "8")]
        pub(super) end: u64,
        #[prost(message, repeated, tag = "9")]
        pub(super) attributes: Vec<KeyValue>,
        #[prost(message, optional, tag = "15")]
        pub(super) status: Option<Status>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Status {
        #[prost(int32, tag = "3")]
        pub(super) code: i32,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct KeyValue {
        #[prost(string, tag = "1")]
        pub(super) key: String,
        #[prost(message, optional, tag = "2")]
        pub(super) value: Option<AnyValue>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct AnyValue {
        #[prost(string, optional, tag = "1")]
        pub(super) text: Option<String>,
        #[prost(int64, optional, tag = "3")]
        pub(super) number: Option<i64>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Metric {
        #[prost(string, tag = "1")]
        pub(super) name: String,
        #[prost(message, optional, tag = "7")]
        pub(super) sum: Option<Sum>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Sum {
        #[prost(message, repeated, tag = "1")]
        pub(super) points: Vec<Point>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Point {
        #[prost(sfixed64, tag = "6")]
        pub(super) value: i64,
        #[prost(message, repeated, tag = "7")]
        pub(super) attributes: Vec<KeyValue>,
    }
}

fn text<'a>(attributes: &'a [otlp::KeyValue], name: &str) -> Option<&'a str> {
    let found = attributes.iter().find(|attribute| attribute.key == name)?;
    found.value.as_ref()?.text.as_deref()
}

fn number(attributes: &[otlp::KeyValue], name: &str) -> Option<i64> {
    attributes.iter().find(|attribute| attribute.key == name)?.value.as_ref()?.number
}

/// A message as a collector gets it: the path, the headers, the body.
struct Received {
    path: String,
    head: String,
    request: otlp::Request,
}

impl Received {
    fn spans(&self) -> Vec<otlp::Span> {
        let items = self.request.parts.iter().flat_map(|part| &part.scopes);
        let items = items.flat_map(|scope| &scope.items);
        items.map(|item| otlp::Span::decode(item.as_slice()).unwrap()).collect()
    }

    fn metrics(&self) -> Vec<otlp::Metric> {
        let items = self.request.parts.iter().flat_map(|part| &part.scopes);
        let items = items.flat_map(|scope| &scope.items);
        items.map(|item| otlp::Metric::decode(item.as_slice()).unwrap()).collect()
    }
}

/// A collector over HTTP that takes everything.
fn http_collector() -> (SocketAddr, mpsc::UnboundedReceiver<Received>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, received) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let sender = sender.clone();
            // A client may hold one connection and open another.
            std::thread::spawn(move || take_posts(stream.unwrap(), &sender));
        }
    });
    (address, received)
}

fn take_posts(mut stream: TcpStream, sender: &mpsc::UnboundedSender<Received>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if !matches!(reader.read_line(&mut head), Ok(1..)) {
                return;
            }
        }
        let head = head.to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.unwrap().parse().unwrap()];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let path = head.split(' ').nth(1).unwrap().to_owned();
        let request = otlp::Request::decode(body.as_slice()).unwrap();
        // The story may have seen enough.
        let _ = sender.send(Received { path, head, request });
        // A plugin that ends may be gone already.
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
        if stream.write_all(answer).is_err() {
            return;
        }
    }
}

/// A collector over gRPC that takes everything.
async fn grpc_collector() -> (SocketAddr, mpsc::UnboundedReceiver<Received>) {
    #[derive(Clone)]
    struct Collector(mpsc::UnboundedSender<Received>);

    impl tonic::server::UnaryService<otlp::Request> for Collector {
        type Response = ();
        type Future = std::future::Ready<Result<tonic::Response<()>, tonic::Status>>;

        fn call(&mut self, request: tonic::Request<otlp::Request>) -> Self::Future {
            let head = format!("{:?}", request.metadata());
            let received = Received { path: String::new(), head, request: request.into_inner() };
            let _ = self.0.send(received);
            std::future::ready(Ok(tonic::Response::new(())))
        }
    }

    impl tower::Service<http::Request<tonic::body::Body>> for Collector {
        type Response = http::Response<tonic::body::Body>;
        type Error = std::convert::Infallible;
        type Future = futures_util::future::BoxFuture<'static, Result<Self::Response, Self::Error>>;

        fn poll_ready(
            &mut self,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Result<(), Self::Error>> {
            std::task::Poll::Ready(Ok(()))
        }

        fn call(&mut self, request: http::Request<tonic::body::Body>) -> Self::Future {
            let this = self.clone();
            Box::pin(async move {
                let codec = tonic_prost::ProstCodec::<(), otlp::Request>::default();
                Ok(tonic::server::Grpc::new(codec).unary(this, request).await)
            })
        }
    }

    impl tonic::server::NamedService for Collector {
        const NAME: &'static str = "opentelemetry.proto.collector.trace.v1.TraceService";
    }

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, received) = mpsc::unbounded_channel();
    let server = tonic::transport::Server::builder();
    let incoming = tonic::transport::server::TcpIncoming::from(listener);
    tokio::spawn(server.serve_with_incoming(Collector(sender), incoming));
    (address, received)
}

async fn next(received: &mut mpsc::UnboundedReceiver<Received>) -> Received {
    tokio::time::timeout(TEST_TIMEOUT, received.recv()).await.unwrap().unwrap()
}

/// Launched with a collector, whose spans come soon.
async fn exporting_to(address: SocketAddr, more: &[(&str, &str)]) -> Fixture {
    Fixture::launched_with(|launch| {
        let launch = launch
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{address}"))
            .env("OTEL_BSP_SCHEDULE_DELAY", "20")
            .env("OTEL_SERVICE_NAME", "the-host's-tools")
            .env("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=story");
        more.iter().fold(launch, |launch: Launch, (name, value)| launch.env(name, value))
    })
    .await
}

/// Every variable's value that must not reach a collector.
const SECRET: &str = "a-text-that-is-nobody-s-business";

async fn a_call_is_a_span_below_the_host_s_own() {
    let (http, http_received) = http_collector();
    let (grpc, grpc_received) = grpc_collector().await;
    for (address, protocol, mut received) in
        [(http, "http/protobuf", http_received), (grpc, "grpc", grpc_received)]
    {
        let more = [
            ("OTEL_EXPORTER_OTLP_PROTOCOL", protocol),
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-token=abc%20def"),
        ];
        let mut fixture = exporting_to(address, &more).await;
        fixture.configure(json!({})).await.unwrap();
        fixture.write("file.txt", format!("{SECRET}\n"));
        let parent = format!("00-{TRACE}-{PARENT}-01");
        fixture.client = fixture.client.clone().in_trace(&parent, Some("vendor=1")).unwrap();
        fixture.result("read_file", json!({"path": "file.txt"})).await;

        let message = next(&mut received).await;
        assert!(message.head.contains("abc def"), "{}", message.head);
        if protocol == "http/protobuf" {
            assert_eq!(message.path, "/v1/traces");
        }
        let resource = &message.request.parts[0].resource.as_ref().unwrap().attributes;
        assert_eq!(text(resource, "service.name"), Some("the-host's-tools"));
        assert_eq!(text(resource, "deployment.environment.name"), Some("story"));
        assert_eq!(text(resource, "service.version"), Some(env!("CARGO_PKG_VERSION")));
        let spans = message.spans();
        let [span] = &spans[..] else { panic!("{spans:?}") };
        assert_eq!(span.name, "execute_tool read_file");
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(hex(&span.trace_id), TRACE);
        assert_eq!(hex(&span.parent_span_id), PARENT);
        assert!(span.span_id.len() == 8 && span.span_id != span.parent_span_id);
        assert_eq!(span.trace_state, "vendor=1");
        assert!(span.start > 0 && span.end >= span.start);
        let attributes = &span.attributes;
        assert_eq!(text(attributes, "gen_ai.tool.name"), Some("read_file"));
        assert_eq!(text(attributes, "gen_ai.tool.call.id"), Some("call-1"));
        assert_eq!(text(attributes, "session.id"), Some("session-1"));
        assert_eq!(text(attributes, "tool.outcome"), Some("result"));
        assert_eq!(text(attributes, "error.type"), None);
        assert!(number(attributes, "tool.request.bytes").unwrap() > 10);
        assert!(number(attributes, "tool.response.bytes").unwrap() > SECRET.len() as i64);
        assert_eq!(span.status.as_ref().unwrap().code, 0);
        let whole = format!("{:?}", message.request);
        assert!(!whole.contains(SECRET) && !whole.contains("file.txt"), "{whole}");
        fixture.end().await;
    }
}

async fn failures_previews_and_metrics_are_exported_and_a_caller_that_does_not_record_is_counted() {
    let (address, mut received) = http_collector();
    let mut fixture = exporting_to(address, &[("OTEL_METRIC_EXPORT_INTERVAL", "20")]).await;
    fixture.configure(json!({})).await.unwrap();
    fixture.failure("read_file", json!({"path": SECRET})).await;
    fixture.failure("no such tool: ../../etc/shadow", json!({})).await;
    let unrecorded = format!("00-{TRACE}-{PARENT}-00");
    let recorded = fixture.client.clone();
    fixture.client = fixture.client.clone().in_trace(&unrecorded, None).unwrap();
    fixture.write("file.txt", "one\n");
    fixture.result("read_file", json!({"path": "file.txt"})).await;
    fixture.client = recorded;
    fixture.client.preview(call("read_file", json!({"path": "file.txt"}))).await.unwrap();

    // They come in as many messages as the machine's speed makes of them.
    let mut spans = Vec::new();
    let mut metrics = Vec::new();
    let points = |metrics: &[otlp::Metric], name: &str| {
        let found = metrics.iter().find(|metric| metric.name == name);
        found.map_or_else(Vec::new, |metric| metric.sum.clone().unwrap().points)
    };
    let total = |points: Vec<otlp::Point>| points.iter().map(|point| point.value).sum::<i64>();
    while spans.len() < 3 || total(points(&metrics, "tool.calls")) < 4 {
        let message = next(&mut received).await;
        match message.path.as_str() {
            "/v1/traces" => spans.extend(message.spans()),
            "/v1/metrics" => metrics = message.metrics(),
            other => panic!("{other}"),
        }
    }
    fixture.end().await;

    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["execute_tool read_file", "execute_tool (no name)", "preview read_file"]);
    let failed = &spans[0];
    assert_eq!(text(&failed.attributes, "tool.outcome"), Some("not_found"));
    assert_eq!(text(&failed.attributes, "error.type"), Some("permanent"));
    assert_eq!(failed.status.as_ref().unwrap().code, 2);
    assert!(failed.parent_span_id.is_empty() && failed.trace_id != spans[1].trace_id);
    assert!(!format!("{spans:?}").contains(SECRET));

    assert_eq!(total(points(&metrics, "tool.calls")), 4);
    let errors: Vec<_> = points(&metrics, "tool.errors")
        .iter()
        .map(|point| (text(&point.attributes, "error.type").unwrap().to_owned(), point.value))
        .collect();
    assert_eq!(errors, [("permanent".to_owned(), 1), ("permanent".to_owned(), 1)]);
    assert!(total(points(&metrics, "tool.response.bytes")) > 0);
    assert!(metrics.iter().any(|metric| metric.name == "tool.call.duration"));
}

/// The last export has a short moment, which a busy machine may need for something else: one of
/// several ends is enough to see that there is one.
async fn what_is_left_is_sent_at_the_end() {
    let (address, mut received) = http_collector();
    for _ in 0..20 {
        let mut fixture = exporting_to(address, &[("OTEL_BSP_SCHEDULE_DELAY", "600000")]).await;
        fixture.configure(json!({})).await.unwrap();
        fixture.failure("read_file", json!({"path": "nothing"})).await;
        fixture.end().await;
        if let Ok(message) = received.try_recv() {
            assert_eq!(message.spans().len(), 1);
            return;
        }
    }
    panic!("nothing was sent at any end");
}

/// The twin: the same call, and the variables say that nothing is to be sent.
async fn without_a_collector_or_switched_off_nothing_is_connected() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let named = ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str());
    let none = ("OTEL_TRACES_EXPORTER", "none");
    let cases = [
        vec![("OTEL_EXPORTER_OTLP_ENDPOINT", ""), ("OTEL_SERVICE_NAME", "x")],
        vec![named, ("OTEL_SDK_DISABLED", "true")],
        vec![named, none, ("OTEL_METRICS_EXPORTER", "none")],
    ];
    for variables in cases {
        let mut fixture = Fixture::launched_with(|launch| {
            let launch = launch.env("OTEL_BSP_SCHEDULE_DELAY", "10");
            variables.iter().fold(launch, |launch: Launch, (name, value)| launch.env(name, value))
        })
        .await;
        fixture.configure(json!({})).await.unwrap();
        fixture.write("file.txt", "one\n");
        fixture.result("read_file", json!({"path": "file.txt"})).await;
        // The end would send what is left.
        fixture.end().await;
        let connected = listener.accept();
        assert!(connected.is_err(), "{variables:?}: {connected:?}");
    }
}

async fn a_collector_that_is_not_there_or_never_answers_costs_nothing_but_a_warning() {
    // Takes connections, as the system does for it, and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for address in [silent.local_addr().unwrap(), gone] {
        for protocol in ["grpc", "http/protobuf"] {
            let mut fixture =
                exporting_to(address, &[("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)]).await;
            fixture.configure(json!({})).await.unwrap();
            fixture.write("file.txt", "one\n");
            for _ in 0..20 {
                fixture.result("read_file", json!({"path": "file.txt"})).await;
            }
            // Ends in time by itself, or this would find it killed.
            fixture.end().await;
        }
    }
}

async fn commands_do_not_see_where_spans_go() {
    let (address, _received) = http_collector();
    let more = [("OTEL_EXPORTER_OTLP_HEADERS", "authorization=hunter2")];
    let mut fixture = exporting_to(address, &more).await;
    fixture.configure(json!({"sandbox": "best_effort"})).await.unwrap();
    let seen = "env; cat /proc/$PPID/environ /proc/self/environ 2>/dev/null | tr '\\0' '\\n'; true";
    let (_, outcome) = fixture.call("bash", json!({"command": seen})).await;
    let output = outcome.unwrap()["output"].to_string();
    assert!(output.contains("PATH=") && !output.contains("OTEL_"), "{output}");
    assert!(!output.contains("hunter2"), "{output}");
    fixture.end().await;
}
