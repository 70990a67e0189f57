//! What a running call reports, and to whom: the part of a tool's contract that whoever runs a
//! command needs too.

mod event;

pub use event::{EmitError, Event, EventSink, OutputStream};

/// Arguments and results: a JSON object.
pub type Payload = serde_json::Map<String, serde_json::Value>;
