//! hashicorp/go-plugin in Rust, both sides of it, knowing nothing of tools.
//!
//! go-plugin starts a plugin as a subprocess, reads one line from its standard output (the
//! *handshake line*), connects to the socket that the line names and speaks gRPC over it.
//!
//! # Layout
//! - [`server`]: what a plugin does: cookie, handshake line, listener, the services that every
//!   plugin serves, logging as the host wants it, and the end of its life.
//! - [`host`]: what a host does: launch, connect, serve callbacks, kill in order.
//! - [`Broker`]: further connections between the two, in both directions and both forms.
//! - [`Signals`]: what ends a plugin, and Ctrl-C at a host.
//! - `handshake`, `tls`, `listener`, `mux`, `duplex`, `buffers`, `watch`: what both sides
//!   share.
//!
//! Behaviour follows go-plugin 1.8; where this module differs on purpose, the item says so.

mod broker;
mod buffers;
mod duplex;
mod handshake;
mod listener;
mod mux;
mod pb;
mod signals;
mod tls;
mod watch;

pub mod host;
pub mod server;

pub use broker::{Broker, BrokerError, Served};
pub use handshake::{
    Address, Cookie, HandshakeLine, LineError, MultiplexField, is_plugin_variable,
};
pub use listener::{ListenError, PortRange};
pub use signals::Signals;
pub use tls::TlsError;

/// The service name under which a host asks a plugin for its health.
const HEALTH_NAME: &str = "plugin";

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests look for the sockets' files")]
mod tests;
