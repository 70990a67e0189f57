//! What a plugin writes to standard error: log lines in hclog's JSON, or anything else.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::unix::pipe;

/// Longest line that is taken as one; go-plugin's own buffer.
const MAX_LINE: usize = 64 * 1024;

/// Lines that are kept for the message of a failed start.
const TAIL: usize = 20;

/// One line that a plugin logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// The level; what is no JSON line of hclog counts as debug text.
    pub level: tracing::Level,
    /// The message, or the whole line when it is no JSON line of hclog.
    pub message: String,
    /// The logger's name.
    pub module: Option<String>,
    /// All other fields, `@timestamp` among them.
    pub fields: Map<String, Value>,
}

impl LogLine {
    /// Reads one line.
    #[must_use]
    pub fn parse(line: &str) -> Self {
        Self::parse_json(line).unwrap_or_else(|| LogLine {
            level: tracing::Level::DEBUG,
            message: line.to_owned(),
            module: None,
            fields: Map::new(),
        })
    }

    fn parse_json(line: &str) -> Option<Self> {
        let mut fields: Map<String, Value> = serde_json::from_str(line).ok()?;
        let level = fields.get("@level")?.as_str()?.parse().ok()?;
        let message = fields.get("@message")?.as_str()?.to_owned();
        let module = fields.remove("@module").and_then(|name| Some(name.as_str()?.to_owned()));
        fields.remove("@level");
        fields.remove("@message");
        Some(LogLine { level, message, module, fields })
    }
}

/// Receives each line as it comes. It is called on the runtime's threads: it must not block.
pub(super) type LogHandler = Arc<dyn Fn(LogLine) + Send + Sync>;

/// The last lines of a plugin's standard error.
#[derive(Clone, Default)]
pub(super) struct Tail(Arc<Mutex<VecDeque<String>>>);

impl Tail {
    fn push(&self, line: String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() >= TAIL {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    pub(super) fn text(&self) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}

/// Reads standard error to its end. What is longer than a line may be comes in pieces.
pub(super) async fn follow(stderr: pipe::Receiver, tail: Tail, handler: Option<LogHandler>) {
    let mut reader = BufReader::with_capacity(MAX_LINE / 8, stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        let limit = MAX_LINE as u64;
        match (&mut reader).take(limit).read_until(b'\n', &mut line).await {
            Ok(1..) => {}
            Ok(0) | Err(_) => return,
        }
        let text = String::from_utf8_lossy(line.trim_ascii_end());
        let parsed = LogLine::parse(&text);
        tail.push(parsed.message.clone());
        if let Some(handler) = &handler {
            handler(parsed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_hclog_is_taken_apart() {
        let line = LogLine::parse(
            r#"{"@level":"warn","@message":"slow","@module":"x","@timestamp":"t","n":1}"#,
        );
        assert_eq!(line.level, tracing::Level::WARN);
        assert_eq!(line.message, "slow");
        assert_eq!(line.module.as_deref(), Some("x"));
        assert_eq!(line.fields.len(), 2);
        assert_eq!(line.fields["n"], 1);
    }

    #[test]
    fn anything_else_is_debug_text() {
        for text in ["plain", "{\"@message\":5}", "{\"@level\":\"fatal\",\"@message\":\"x\"}", "[]"]
        {
            let line = LogLine::parse(text);
            assert_eq!((line.level, line.message.as_str()), (tracing::Level::DEBUG, text));
        }
    }
}
