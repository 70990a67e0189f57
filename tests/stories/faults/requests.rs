//! Requests that are no requests: garbage, halves, what is too large, what was never agreed on.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use serde_json::json;
use tokio_stream::iter;
use tool_provider::grpc::MOST_MESSAGE_BYTES;

use super::raw::{Raw, classified, fields, text};
use crate::dice::Dice;
use crate::harness::{Fixture, TEST_TIMEOUT};
use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_connection_that_stops_in_the_middle_bothers_nobody,
        a_request_that_is_too_large_is_refused_with_the_limit,
        a_message_that_cannot_be_read_is_the_callers_fault,
        a_removed_socket_ends_no_connection,
        another_protocol_is_hung_up_on,
    ]
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The headers of a call, in HPACK's plainest form.
fn headers(method: &str) -> Vec<u8> {
    let path = format!("/pluggableharness.tool.v1.ToolService/{method}");
    let literal = |name: &str, value: &str| {
        let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
        [vec![0], text(name), text(value)].concat()
    };
    let fields = [
        literal(":method", "POST"),
        literal(":scheme", "http"),
        literal(":path", &path),
        literal(":authority", "localhost"),
        literal("content-type", "application/grpc"),
        literal("te", "trailers"),
    ];
    frame(HEADERS, END_HEADERS, 1, &fields.concat())
}

fn beginning(method: &str) -> Vec<u8> {
    [PREFACE.to_vec(), frame(SETTINGS, 0, 0, &[]), headers(method)].concat()
}

/// The five bytes before each message of gRPC.
fn message_of(length: u32) -> Vec<u8> {
    [&[0], &length.to_be_bytes()[..]].concat()
}

/// Everything that a connection may say and then fall silent, or hang up.
fn halves() -> Vec<Vec<u8>> {
    let mut dice = Dice::new(7);
    let mut garbage = vec![0; 4096];
    garbage.fill_with(|| dice.throw() as u8);
    let whole = [beginning("Invoke"), frame(DATA, END_STREAM, 1, &message_of(0))].concat();
    let mut halves = vec![
        Vec::new(),
        garbage.clone(),
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        [PREFACE, garbage.as_slice()].concat(),
        // A frame of 16 MiB that is announced, and one of a kind that nobody knows.
        [PREFACE, &[0xff, 0xff, 0xff, DATA, 0, 0, 0, 0, 1]].concat(),
        [PREFACE.to_vec(), frame(0xfa, 0xff, 0x7fff_ffff, &garbage)].concat(),
        // Messages that are announced and do not come.
        [beginning("Invoke"), frame(DATA, 0, 1, &message_of(60 << 20))].concat(),
        [beginning("Configure"), frame(DATA, 0, 1, &message_of(u32::MAX))].concat(),
        [beginning("Preview"), frame(DATA, 0, 1, &[0, 0, 0])].concat(),
        [beginning("Render"), frame(DATA, END_STREAM, 1, &message_of(100))].concat(),
        [beginning("Nothing"), frame(DATA, END_STREAM, 1, &message_of(0))].concat(),
    ];
    // A good call, cut off after each of its bytes.
    halves.extend((0..whole.len()).map(|end| whole[..end].to_vec()));
    halves
}

/// Each of them is alone with its trouble: the others are answered meanwhile and afterwards, and
/// nothing of them stays.
async fn a_connection_that_stops_in_the_middle_bothers_nobody() {
    let mut fixture = Fixture::configured().await;
    fixture.write("a.txt", "here\n");
    let read = || json!({"path": "a.txt"});
    fixture.result("read_file", read()).await;
    let socket = socket(&fixture);
    let (before, memory) = (fixture.descriptors(), fixture.status("VmRSS"));
    for round in 0..3 {
        let mut open = Vec::new();
        for half in halves() {
            let mut connection = UnixStream::connect(&socket).unwrap();
            // It may be turned away before it has said everything.
            let _ = connection.write_all(&half);
            open.push(connection);
        }
        tokio::time::timeout(TEST_TIMEOUT, fixture.result("read_file", read())).await.unwrap();
        if round == 1 {
            // Said its piece, and only reads from now on.
            open.iter().for_each(|half| half.shutdown(std::net::Shutdown::Write).unwrap());
            fixture.result("read_file", read()).await;
        }
    }
    // Whatever is left of them goes as the provider notices, which is at once.
    if let Some(before) = before {
        let gone = tokio::time::timeout(TEST_TIMEOUT, async {
            while fixture.descriptors().unwrap() > before + 1 {
                fixture.plugin.ping().await.unwrap();
            }
        });
        gone.await.expect("connections stay open");
    }
    // Three times 60 MiB were announced, and none of it came.
    let grown = fixture.status("VmRSS").saturating_sub(memory);
    assert!(grown < 60 * 1024, "{grown} KiB for requests that never came");
    fixture.end().await;
}

/// What can be answered is answered with a failure of the protocol's own.
async fn a_request_that_is_too_large_is_refused_with_the_limit() {
    let mut fixture = Fixture::configured().await;
    let mut raw = Raw::of(&fixture);
    let memory = fixture.status("VmHWM");
    for size in [70_000_000, 200_000_000] {
        let arguments = || fields([("path", text("large")), ("content", text("x".repeat(size)))]);
        for failure in [
            raw.invoke("write_file", arguments()).await.unwrap_err(),
            raw.preview("write_file", arguments()).await.unwrap_err(),
        ] {
            assert_eq!((&*failure.category, failure.retryable), ("invalid_arguments", false));
            assert!(failure.message.contains("at most 64 MiB"), "{}", failure.message);
        }
    }
    // None of it was taken in.
    let grown = fixture.status("VmHWM") - memory;
    assert!(grown < 50_000, "{grown} KiB for requests that were refused");
    // The client of the command line hears the same.
    let large = json!({"path": "large", "content": "x".repeat(70_000_000)});
    let error = fixture.client.invoke_to_end(crate::harness::call("write_file", large)).await;
    let (code, failure) = crate::harness::refusal(error.unwrap_err());
    assert_eq!(code, tonic::Code::InvalidArgument);
    assert!(failure.message.contains("at most 64 MiB"), "{}", failure.message);
    assert!(!fixture.path("large").exists());
    // The allowed twin.
    let fits = "x".repeat(MOST_MESSAGE_BYTES - 1000);
    raw.invoke("write_file", fields([("path", text("large")), ("content", text(fits))]))
        .await
        .unwrap();
    fixture.end().await;
}

/// Bytes that are no message, and a message that was compressed or left out.
async fn a_message_that_cannot_be_read_is_the_callers_fault() {
    let fixture = Fixture::configured().await;
    let not_utf8 = b"\x0a\x06\x12\x04\xff\xfe\xfd\xfc";
    let cut_off = b"\x0a\x7f\x0a";
    for (flag, message) in [(0, &not_utf8[..]), (0, cut_off), (1, b""), (7, b"")] {
        for method in ["Invoke", "Preview", "Configure", "Render"] {
            let status = ask(&fixture, method, flag, message).await;
            let failure = classified(&status);
            assert_eq!(failure.category, "invalid_arguments", "{method}: {failure:?}");
        }
    }
    // No message at all.
    let mut grpc = tonic::client::Grpc::new(fixture.plugin.channel());
    grpc.ready().await.unwrap();
    let path =
        http::uri::PathAndQuery::from_static("/pluggableharness.tool.v1.ToolService/Preview");
    let codec = tonic_prost::ProstCodec::<(), ()>::default();
    let status = grpc
        .client_streaming::<_, (), (), _>(tonic::Request::new(iter(Vec::<()>::new())), path, codec)
        .await
        .unwrap_err();
    assert_eq!(classified(&status).category, "invalid_arguments");
    fixture.end().await;
}

/// Sends one message as it is, over a connection of its own, and returns the status.
async fn ask(fixture: &Fixture, method: &str, flag: u8, message: &[u8]) -> tonic::Status {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    let body = [&[flag], &length[..], message].concat();
    let request = http::Request::post(format!(
        "http://localhost/pluggableharness.tool.v1.ToolService/{method}"
    ))
    .header("content-type", "application/grpc")
    .header("te", "trailers")
    .body(tonic::body::Body::new(http_body_util::Full::from(body)))
    .unwrap();
    let mut channel = fixture.plugin.channel();
    use tower::{Service as _, ServiceExt as _};
    let answer = channel.ready().await.unwrap().call(request).await.unwrap();
    tonic::Status::from_header_map(answer.headers()).expect("a refusal")
}

/// The provider has gone on without its socket's file; only new connections need that.
async fn a_removed_socket_ends_no_connection() {
    let mut fixture = Fixture::configured().await;
    let socket = socket(&fixture);
    std::fs::remove_file(&socket).unwrap();
    fixture.write("a.txt", "here\n");
    fixture.result("read_file", json!({"path": "a.txt"})).await;
    let (_, outcome) = fixture.call("bash", json!({"command": "echo on"})).await;
    assert_eq!(outcome.unwrap()["output"], "on\n");
    assert!(UnixStream::connect(&socket).is_err());
    fixture.configure(json!({})).await.unwrap();
    fixture.result("read_file", json!({"path": "a.txt"})).await;
    fixture.end().await;
}

/// Whoever speaks another protocol is not left waiting.
async fn another_protocol_is_hung_up_on() {
    let fixture = Fixture::configured().await;
    let mut connection = UnixStream::connect(socket(&fixture)).unwrap();
    connection.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    connection.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let read = tokio::task::spawn_blocking(move || connection.read_to_end(&mut answer));
    if let Err(error) = read.await.unwrap() {
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    }
    fixture.end().await;
}

pub(crate) fn socket(fixture: &Fixture) -> std::path::PathBuf {
    use std::os::unix::fs::FileTypeExt as _;
    let sockets = fixture.sockets();
    let is_socket = |path: &&std::path::PathBuf| {
        std::fs::symlink_metadata(path).unwrap().file_type().is_socket()
    };
    sockets.iter().find(is_socket).unwrap().clone()
}
