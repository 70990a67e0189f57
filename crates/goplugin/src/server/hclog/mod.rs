//! Logging as a go-plugin host wants it: JSON lines on standard error, in hclog's shape.
//!
//! The host reads standard error by line for the plugin's whole life and passes each line on at
//! its level. What it cannot parse it passes on as debug text, and a line whose `@` keys are not
//! strings crashes it; so nothing but this module may write there.

//!
//! A plugin logs with `tracing`, and [`init`] is all that it needs. One that combines these lines with
//! layers of its own takes the parts: [`Sink`], [`layer`], [`targets`], [`install_panic_hook`]. One that
//! logs by another way, and here only what that does not take, writes [`Entry`]s.

mod layer;
mod line;
mod sink;

pub use layer::{HclogLayer, layer};
pub use sink::{Entry, Sink};

use std::io;
use std::panic::PanicHookInfo;

use time::OffsetDateTime;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;

use line::Line;

/// The crates that carry the connection, as their targets begin. Their own entries would be several
/// for each log line that is sent.
const TRANSPORT: [&str; 10] = [
    "h2::",
    "hyper::",
    "hyper_util::",
    "mio::",
    "rustls::",
    "tokio::",
    "tokio_util::",
    "tonic::",
    "tower::",
    "yamux::",
];

/// Sends what the process logs to its host, from `level` up, panics included, for the rest of its
/// life. `module` is the program's name, as the host shows it. Call it before
/// [`serve`](crate::server::serve).
///
/// # Errors
/// When standard error is closed, or the process has a `tracing` subscriber already.
pub fn init(module: &'static str, level: LevelFilter) -> io::Result<()> {
    let sink = Sink::stderr()?;
    let lines = layer(sink.clone(), module);
    let subscriber = tracing_subscriber::registry().with(level).with(targets()).with(lines);
    tracing::subscriber::set_global_default(subscriber).map_err(io::Error::other)?;
    install_panic_hook(sink, module);
    Ok(())
}

/// What a plugin's author expects to be logged: every target at every level, except for the crates that
/// carry the connection, which are heard from WARN up. Further targets can be set on it; of the targets
/// that an entry's target begins with, the longest counts.
#[must_use]
pub fn targets() -> Targets {
    let quiet = TRANSPORT.map(|target| (target, LevelFilter::WARN));
    Targets::new().with_default(LevelFilter::TRACE).with_targets(quiet)
}

/// Reports every panic as one error line. A host would show Rust's own report as debug text, which
/// usually means not at all.
pub fn install_panic_hook(sink: Sink, module: &'static str) {
    std::panic::set_hook(Box::new(move |panic| sink.write(panic_line(panic, module).as_bytes())));
}

fn panic_line(panic: &PanicHookInfo<'_>, module: &str) -> String {
    let payload = panic.payload();
    let message = (payload.downcast_ref::<&str>().copied())
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    let thread = std::thread::current();
    let message = format!("panic: {message}");
    let mut line = Line::new(OffsetDateTime::now_utc(), &tracing::Level::ERROR, module, &message);
    line.field("thread", thread.name().unwrap_or("unnamed").into());
    if let Some(location) = panic.location() {
        line.field("location", location.to_string().into());
    }
    line.finish()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};

    use super::*;

    #[test]
    fn a_panic_is_one_error_line_with_its_place() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let usual = std::panic::take_hook();
        install_panic_hook(Sink::new(writer), "thing");
        let panicked =
            std::thread::Builder::new().name("worker".into()).spawn(|| panic!("boo {}", 1));
        assert!(panicked.unwrap().join().is_err());
        std::panic::set_hook(usual);
        let lines = BufReader::new(std::fs::File::from(reader)).lines().map(Result::unwrap);
        // Another test may fail meanwhile; its panic is not ours.
        let ours = lines.filter(|line| line.contains("boo")).collect::<Vec<_>>();
        let line: serde_json::Value = serde_json::from_str(&ours[0]).unwrap();
        assert_eq!(line["@level"], "error");
        assert_eq!(line["@message"], "panic: boo 1");
        assert_eq!(line["thread"], "worker");
        assert!(line["location"].as_str().unwrap().contains(file!()));
    }
}
