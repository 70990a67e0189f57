//! Logging as a go-plugin host wants it: JSON lines on standard error, in hclog's shape.
//!
//! The host reads standard error by line for the plugin's whole life and passes each line on at
//! its level. What it cannot parse it passes on as debug text, and a line whose `@` keys are not
//! strings crashes it; so nothing but this module may write there.

mod layer;
mod line;
mod sink;

pub use layer::{HclogLayer, layer};
pub use sink::Sink;

use std::panic::PanicHookInfo;

use line::Line;

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
    let mut line = Line::new(&tracing::Level::ERROR, module, &format!("panic: {message}"));
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
