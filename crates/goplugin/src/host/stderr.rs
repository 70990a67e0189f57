//! A plugin's standard error, read line by line for as long as the plugin lives.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::unix::pipe;

use super::log::LogLine;

/// Longest line that is taken as one; go-plugin's own buffer.
const MAX_LINE: usize = 64 * 1024;

/// Lines that are kept for the message of a failed start.
const TAIL: usize = 20;

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
