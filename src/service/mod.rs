//! The protocol's ToolService over the provider. Wire types come in here and end here.
//!
//! - [`ToolService`] answers the six calls.
//! - [`ToolClient`] is the other side, for the command line, tests and examples.
//! - [`observe`] is a client for whoever judges a provider: it keeps what came as it came.
//! - [`plugin`] puts everything together for a host.
//! - [`KernelLog`] carries log entries back to the kernel.

mod client;
mod codec;
mod convert;
mod kernel;
mod kernel_log;
pub mod observe;
pub mod pb;
mod persisted;
pub mod plugin;
mod status;
mod timeout;
mod tool_service;
mod traced;
mod typed_server;

pub use client::{
    Advertised, AdvertisedTool, ClientError, Failure, InvokeItem, InvokeStream, Producer,
    ToolClient,
};
pub use convert::ConvertError;
pub use kernel::{KernelEvent, KernelLogEntry, kernel_callbacks, kernel_callbacks_keeping};
pub use kernel_log::{DialError, KernelLog, KernelLogLayer};
pub use persisted::{persisted_call, persisted_result};
pub use status::grpc_code;
pub use tool_service::ToolService;
pub use typed_server::TypedServer;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod wire_numbers;

/// Largest message that either side takes, in bytes: room for a file's whole content, and a bound
/// on what one request can make this process hold. gRPC's own 4 MiB would refuse ordinary writes.
pub const MOST_MESSAGE_BYTES: usize = 64 * 1024 * 1024;
