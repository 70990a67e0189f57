//! Messages as lines: read only while there is room, written one after the other.

use std::future::Future;
use std::io;
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{
    ClientNotification, ErrorCode, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{Mutex, Notify};

use crate::lines::{Line, Lines};
use crate::load::Load;
use crate::weight::{MOST_VALUES, is_too_heavy};

/// Longest line, in bytes: room for the content of a large file, and a bound on what one message makes
/// this process hold.
const MOST_LINE: usize = 16 * 1024 * 1024;

/// The two streams of a client.
pub(crate) struct LineTransport<R, W> {
    lines: Lines<R>,
    output: Arc<Output<W>>,
    load: Arc<Load>,
    lifecycle: Lifecycle,
}

struct Output<W> {
    stream: Mutex<W>,
    gone: Arc<Notify>,
}

/// Where the client stands.
#[derive(Clone, Copy, PartialEq)]
enum Lifecycle {
    /// It has asked for nothing. Notifications are about nothing then, and the SDK would end at one.
    Silent,
    /// It has asked for something.
    Begun,
}

impl<R: AsyncRead + Unpin, W> LineTransport<R, W> {
    /// `gone` is told when the client closes one of the streams.
    pub(crate) fn new(input: R, output: W, gone: Arc<Notify>) -> Self {
        Self {
            lines: Lines::new(input, MOST_LINE),
            output: Arc::new(Output { stream: Mutex::new(output), gone }),
            load: Arc::default(),
            lifecycle: Lifecycle::Silent,
        }
    }

    /// Keeps count of what a message begins and ends, or says why it is none; without a reason for one that
    /// is passed over.
    fn admit(
        &mut self,
        message: RxJsonRpcMessage<RoleServer>,
        bytes: usize,
    ) -> Result<RxJsonRpcMessage<RoleServer>, Option<Refusal>> {
        match &message {
            JsonRpcMessage::Request(request) => {
                self.lifecycle = Lifecycle::Begun;
                if !self.load.opened(&request.id, bytes) {
                    return Err(Some(in_use(&request.id)));
                }
            }
            _ if self.lifecycle == Lifecycle::Silent => return Err(None),
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    // It gets no answer any more.
                    self.load.closed(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        Ok(message)
    }
}

impl<R, W: AsyncWrite + Send + Unpin + 'static> LineTransport<R, W> {
    fn write(
        &self,
        item: &ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + use<R, W> {
        let line = serde_json::to_vec(item).map(|mut line| {
            line.push(b'\n');
            line
        });
        let unsent = self.load.unsent(line.as_ref().map_or(0, Vec::len));
        let output = self.output.clone();
        async move {
            let _unsent = unsent;
            output.write(&line?).await
        }
    }
}

impl<R, W> Transport<RoleServer> for LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        match &item {
            JsonRpcMessage::Response(response) => self.load.closed(&response.id),
            JsonRpcMessage::Error(error) => {
                error.id.iter().for_each(|id| self.load.closed(id));
            }
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => {}
        }
        self.write(&item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            self.load.room().await;
            let refusal = match self.lines.next().await {
                Ok(Line::Whole(line)) => {
                    match read(&line).and_then(|message| self.admit(message, line.len())) {
                        Ok(message) => return Some(message),
                        Err(refusal) => refusal,
                    }
                }
                Ok(Line::TooLong) => Some(too_long()),
                Ok(Line::End) | Err(_) => {
                    self.output.gone.notify_one();
                    return None;
                }
            };
            if let Some(refusal) = refusal {
                // Not waited for: this future may be given up at any time. Nor does it end a request that has
                // the same id.
                tokio::spawn(self.write(&refusal.into_answer()));
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.output.stream.lock().await.shutdown().await
    }
}

impl<W: AsyncWrite + Unpin> Output<W> {
    async fn write(&self, line: &[u8]) -> io::Result<()> {
        let mut stream = self.stream.lock().await;
        let written = match stream.write_all(line).await {
            Ok(()) => stream.flush().await,
            failed => failed,
        };
        if written.is_err() {
            self.gone.notify_one();
        }
        written
    }
}

/// Why a line is no message, and which request it was meant to be.
struct Refusal {
    code: ErrorCode,
    message: String,
    id: Option<RequestId>,
}

impl Refusal {
    fn invalid(message: String) -> Self {
        Self { code: ErrorCode::INVALID_REQUEST, message, id: None }
    }

    fn into_answer(self) -> ServerJsonRpcMessage {
        ServerJsonRpcMessage::error(ErrorData::new(self.code, self.message, None), self.id)
    }
}

/// A message, or why there is none; without a reason for a notification, which has no answer.
fn read(line: &[u8]) -> Result<RxJsonRpcMessage<RoleServer>, Option<Refusal>> {
    if line.trim_ascii().is_empty() {
        return Err(None);
    }
    if is_too_heavy(line) {
        let message = format!("the message holds more than {MOST_VALUES} values and was not read");
        return Err(Some(Refusal::invalid(message)));
    }
    serde_json::from_slice(line).map_err(|error| {
        if line.trim_ascii_start().starts_with(b"[") {
            let message = "a batch is not taken: send each message on a line of its own";
            return Some(Refusal::invalid(message.to_owned()));
        }
        match serde_json::from_slice::<Envelope>(line) {
            Ok(Envelope { id: None, method: Some(_) }) => None,
            Ok(Envelope { id, .. }) => {
                let message = format!("not a message of JSON-RPC 2.0: {error}");
                Some(Refusal { id, ..Refusal::invalid(message) })
            }
            Err(error) => {
                let message = format!("not a JSON object: {error}");
                Some(Refusal { code: ErrorCode::PARSE_ERROR, message, id: None })
            }
        }
    })
}

/// What a message that cannot be read may have all the same.
#[derive(Deserialize)]
struct Envelope {
    #[serde(default)]
    id: Option<RequestId>,
    #[serde(default)]
    method: Option<IgnoredAny>,
}

/// The protocol wants a new id for each request: two that run with one could not be told apart, nor
/// cancelled.
fn in_use(id: &RequestId) -> Refusal {
    let message = "a request of this id has no answer yet, so this one was not run".to_owned();
    Refusal { id: Some(id.clone()), ..Refusal::invalid(message) }
}

fn too_long() -> Refusal {
    Refusal::invalid(format!(
        "the message is longer than {} MiB and was not read: send less at once",
        MOST_LINE >> 20
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(line: &str) -> Option<(i32, Option<RequestId>)> {
        let Err(refusal) = read(line.as_bytes()) else { panic!("a message: {line}") };
        refusal.map(|refusal| (refusal.code.0, refusal.id))
    }

    #[test]
    fn what_is_no_message_is_answered_unless_it_is_a_notification() {
        assert_eq!(answer("{"), Some((-32700, None)));
        assert_eq!(answer("nonsense"), Some((-32700, None)));
        assert_eq!(answer("[]"), Some((-32600, None)));
        let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#;
        assert_eq!(answer(batch), Some((-32600, None)));
        let old = r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#;
        assert_eq!(answer(old), Some((-32600, Some(RequestId::Number(7)))));
        assert_eq!(answer(r#"{"jsonrpc":"1.0","method":"notifications/cancelled"}"#), None);
        assert_eq!(answer("  "), None);
        assert!(read(br#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#).is_ok());
    }
}
