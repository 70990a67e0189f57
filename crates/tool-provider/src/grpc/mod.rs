//! The protocol's ToolService over the provider. Wire types come in here and end here.
//!
//! - [`ToolService`] answers the six calls.
//! - [`HookService`] hears of the end of a host's sessions, for a backend that wants to.
//! - [`ToolClient`] is the other side, for the command line, tests and examples.
//! - [`handshake`] has the constants by which a host and its plugins know each other.
//! - [`HostLog`] carries log entries back to the host.

pub mod call_span;
pub mod handshake;

mod client;
mod codec;
mod convert;
mod hook_service;
mod host;
mod host_log;
pub mod pb;
mod persisted;
mod request_span;
mod status;
mod timeout;
mod tool_service;
mod typed_server;

pub use client::{
    Advertised, AdvertisedTool, ClientError, Failure, InvokeItem, InvokeStream, Producer,
    ToolClient,
};
pub use convert::{ConvertError, payload, to_struct};
pub use hook_service::HookService;
pub use host::{Callbacks, HostEvent, HostLogEntry, host_callbacks, host_callbacks_keeping};
pub use host_log::{DialError, HostLog, HostLogLayer, LogRecord};
pub use persisted::{persisted_call, persisted_result};
pub use status::{ERROR_INFO, TOOL_ERROR, code_name, grpc_code};
pub use tool_service::ToolService;
pub use typed_server::TypedServer;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod wire_numbers;

/// Largest message that either side takes, in bytes: room for a file's whole content, and a bound
/// on what one request can make this process hold. gRPC's own 4 MiB would refuse ordinary writes.
pub const MOST_MESSAGE_BYTES: usize = 64 * 1024 * 1024;
