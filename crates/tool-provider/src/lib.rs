#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod config;
pub mod error;
#[cfg(feature = "grpc")]
pub mod grpc;
pub mod nearest;
pub mod schema;
pub mod shorten;
pub mod taxonomy;
pub mod validate;
pub mod view;

mod backend;
mod cancel;
mod controls;
mod dispatch;
mod event;
mod identity;
mod masking;
mod plain_text;
mod provider;
mod registry;
mod render;
mod running;
mod secrets;
mod slips;
mod stream;
mod tool;
mod workers;

pub use backend::{Backend, Configuration, Hooks, State};
pub use cancel::CancelToken;
pub use config::ConfigureError;
pub use error::{Category, ToolError, ToolErrorKind};
pub use event::{EmitError, Event, EventSink, OutputStream, Partials};
pub use identity::Identity;
pub use provider::{Call, Provider};
pub use render::Stored;
pub use secrets::{Masker, SHORTEST_SECRET, Secrets};
pub use slips::{Asks, Slips};
pub use stream::{EventStream, Outcome, StreamItem};
pub use tool::{Concurrency, Context, Phase, RiskClass, Tool, ToolKind, ToolSpec};
pub use workers::{Job, Threads, Workers};

/// Arguments and results: a JSON object.
pub type Payload = serde_json::Map<String, serde_json::Value>;

#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;
