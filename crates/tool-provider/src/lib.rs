//! The contract of a tool provider, and everything that a provider of it needs besides its tools.
//!
//! A host asks a provider six things: who it is, what its tools are, to take a configuration, to run
//! a call, to show what a call would do, and to show what a call did. This crate answers all six for
//! whoever brings the tools:
//!
//! - [`Tool`] is one operation: a [`ToolSpec`] with its [`schema`], and the work on a [`Context`]. It
//!   reports [`Event`]s to an [`EventSink`] and fails with a [`ToolError`]; what it shows is a
//!   [`view::View`].
//! - [`Backend`] is what the tools stand on: which configuration keys there are, and what a
//!   configuration makes. What calls share is its [`Backend::State`]; threads for them come from its
//!   [`Workers`], so that a jail can confine them.
//! - [`Provider`] puts both together: checked arguments, concurrent calls, deadlines, cancellation,
//!   one terminal event for each call, masked [`Secrets`].
//! - [`grpc`] (feature `grpc`, on by default) is the protocol's ToolService over a provider, and its
//!   client. Nothing else in this crate names a wire type.
//!
//! No tool knows who calls it: the same code serves a host, a command line and a test.
//!
//! # A provider
//! The crate's README has a complete one, with its `main`.

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
mod provider;
mod registry;
mod render;
mod running;
mod secrets;
mod stream;
mod tool;
mod workers;

pub use backend::{Backend, Configuration, State};
pub use cancel::CancelToken;
pub use config::ConfigureError;
pub use error::{Category, ToolError, ToolErrorKind};
pub use event::{EmitError, Event, EventSink, OutputStream};
pub use identity::Identity;
pub use provider::{Call, Provider};
pub use render::Stored;
pub use secrets::{Masker, SHORTEST_SECRET, Secrets};
pub use stream::{EventStream, Outcome, StreamItem};
pub use tool::{Concurrency, Context, Phase, RiskClass, Tool, ToolKind, ToolSpec};
pub use workers::{Job, Threads, Workers};

/// Arguments and results: a JSON object.
pub type Payload = serde_json::Map<String, serde_json::Value>;

#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;
