//! Where log lines go: a private copy of standard error.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use serde_json::{Map, Value};
use time::OffsetDateTime;
use tracing::Level;

use super::line::Line;

/// How long a line waits for a host that does not read. While the pipe stays full, further lines
/// are dropped at once and counted.
const WRITE_TIMEOUT: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// A pipe that polls as writable takes this much without blocking (`PIPE_BUF`).
const PIECE: usize = 4096;

/// Writes lines to the standard error that the process had when this was made. Clones share it.
#[derive(Clone)]
pub struct Sink {
    inner: Arc<Mutex<Inner>>,
}

/// A log entry that is no `tracing` event any more.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The program's name, as the host shows it.
    pub module: &'a str,
    /// How grave it is.
    pub level: Level,
    /// When it was said.
    pub time: SystemTime,
    /// What it says.
    pub message: &'a str,
    /// The structured part.
    pub fields: &'a Map<String, Value>,
}

struct Inner {
    to: OwnedFd,
    dropped: u64,
    in_mid_line: bool,
}

impl Sink {
    /// Keeps a copy of standard error, closed to children. Make it before
    /// [`serve`](crate::server::serve), which gives descriptor 2 another meaning.
    ///
    /// # Errors
    /// When descriptor 2 is closed or no descriptor is free.
    pub fn stderr() -> std::io::Result<Self> {
        Ok(Self::new(fcntl_dupfd_cloexec(rustix::stdio::stderr(), 3)?))
    }

    pub(super) fn new(to: OwnedFd) -> Self {
        Sink { inner: Arc::new(Mutex::new(Inner { to, dropped: 0, in_mid_line: false })) }
    }

    /// Writes an entry that another way of logging did not take.
    pub fn entry(&self, entry: &Entry<'_>) {
        let mut line = Line::new(entry.time.into(), &entry.level, entry.module, entry.message);
        for (name, value) in entry.fields {
            line.field(name, value.clone());
        }
        self.write(line.finish().as_bytes());
    }

    /// Writes one line. A host that is gone or does not read costs the line and nothing else; one
    /// that reads again learns how many lines it missed.
    pub(super) fn write(&self, line: &[u8]) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let written = if inner.dropped == 0 {
            inner.write_all(line, WRITE_TIMEOUT)
        } else {
            let mut caught_up = Vec::new();
            if inner.in_mid_line {
                caught_up.push(b'\n');
            }
            let message =
                format!("{} log lines were dropped: the host did not read", inner.dropped);
            let notice =
                Line::new(OffsetDateTime::now_utc(), &Level::WARN, "log", &message).finish();
            caught_up.extend_from_slice(notice.as_bytes());
            caught_up.extend_from_slice(line);
            inner.write_all(&caught_up, Timespec::default())
        };
        match written {
            Ok(()) => inner.dropped = 0,
            Err(_) => inner.dropped += 1,
        }
    }
}

impl Inner {
    /// Writes in pieces that do not block, each after at most `timeout`.
    fn write_all(&mut self, mut bytes: &[u8], timeout: Timespec) -> Result<(), Errno> {
        while !bytes.is_empty() {
            let mut polled = [PollFd::new(&self.to, PollFlags::OUT)];
            if poll(&mut polled, Some(&timeout))? == 0 {
                return Err(Errno::AGAIN);
            }
            match rustix::io::write(&self.to, &bytes[..bytes.len().min(PIECE)]) {
                Ok(written) => {
                    self.in_mid_line = !bytes[..written].ends_with(b"\n");
                    bytes = &bytes[written..];
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};

    use super::*;

    #[test]
    fn a_reader_that_is_gone_costs_nothing() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        drop(reader);
        let sink = Sink::new(writer);
        sink.write(b"{}\n");
        sink.write(b"{}\n");
    }

    #[test]
    fn a_reader_that_stalls_blocks_nobody_and_learns_what_it_missed() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let sink = Sink::new(writer);
        let line = format!("{{\"text\":\"{}\"}}\n", "x".repeat(10_000));
        for _ in 0..100 {
            sink.write(line.as_bytes());
        }
        let reading = std::thread::spawn(move || {
            BufReader::new(std::fs::File::from(reader)).lines().map(Result::unwrap).collect()
        });
        // Until the reader catches up, each further line is dropped.
        loop {
            sink.write(b"{\"last\":true}\n");
            if sink.inner.lock().unwrap().dropped == 0 {
                break;
            }
            std::thread::yield_now();
        }
        drop(sink);
        let lines: Vec<String> = reading.join().unwrap();
        assert!(lines.len() < 50);
        assert!(lines[lines.len() - 2].contains("log lines were dropped"));
        assert_eq!(lines[lines.len() - 1], "{\"last\":true}");
    }
}
