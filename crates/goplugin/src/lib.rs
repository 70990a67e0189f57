//! [hashicorp/go-plugin](https://github.com/hashicorp/go-plugin) in Rust, both sides of it: a
//! program starts another one as its plugin and calls it over gRPC, and either may be written in Go.
//!
//! # The life of a connection
//! 1. The *host* starts the plugin's program ([`host::Launch`]). Environment variables carry what it
//!    asks for: a [`Cookie`] by which the plugin knows that a host launched it, the versions of the
//!    application's protocol, a certificate if it wants TLS, and whether connections share one socket.
//! 2. The *plugin* ([`server::serve`]) chooses a version, listens on a socket for its user alone, and
//!    prints one line on standard output, the [`HandshakeLine`]: version, address, certificate.
//! 3. The host connects there and calls the plugin's [`Services`] by a `tonic` client
//!    ([`host::Plugin::channel`]). Besides them every plugin serves its health, a broker, what it
//!    prints, and a way to end it; all of that is in here.
//! 4. Either side may serve more services to the other while they are connected, through the
//!    [`Broker`]: that is how a plugin calls its host back.
//! 5. The plugin logs with `tracing`; [`server::hclog`] writes that to standard error as hclog does,
//!    and the host gets it line by line as [`host::LogLine`]s.
//! 6. [`host::Plugin::kill`] asks the plugin to end, waits, and then kills. A plugin also ends by a
//!    signal and, other than in Go, when its host dies without a word. Its sockets go with it.
//!
//! # What of go-plugin is here
//! The gRPC protocol as of go-plugin 1.8: version negotiation, unix sockets and TCP on the loopback
//! interface, AutoMTLS, the broker in both forms (a socket each, or all multiplexed over one by yamux),
//! standard streams, health, reattaching, socket directory and group. What is not here: net/rpc,
//! Windows, and checksums of the plugin's program. Where behaviour differs from go-plugin's on
//! purpose, the item says so. Linux only: sockets and processes are handled by its own means.
//!
//! The plugin's socket turns away processes that the plugin itself started. Unless the host names a
//! directory it lies in one of the plugin's own ([`Broker::socket_directory`]), so that a plugin that runs
//! other people's commands can keep them out of it.
//!
//! # Errors
//! [`server::ServeError`] says why a plugin could not serve, [`host::LaunchError`] why a program could
//! not be launched as one, with the last lines of its standard error, and [`BrokerError`] why a
//! further connection failed. All keep their source. Calls fail with [`tonic::Status`], as ever.
//!
//! # Layout
//! `handshake`, `server::environment`, `server::hclog::line`, `host::log`, `mux::table` and
//! `broker::state` know the protocol and do no I/O; `listener`, `tls`, `mux`, `host` and `server` do.
//!
//! A whole program, host and plugin in one, is in the README and in `examples/greeter`.
#![forbid(unsafe_code)]

#[cfg(not(target_os = "linux"))]
compile_error!("goplugin runs on Linux only: it waits for processes by pidfd, and reads /proc");

mod broker;
mod duplex;
mod handshake;
mod listener;
mod malloc;
mod mux;
mod pb;
mod services;
mod signals;
mod tls;
mod watch;

pub mod host;
pub mod server;

pub use broker::{Broker, BrokerError, Served};
pub use handshake::{Address, Cookie, HandshakeLine, LineError, MultiplexField};
pub use listener::ListenError;
pub use services::Services;
pub use signals::Signals;
pub use tls::TlsError;
pub use watch::ProcessWatch;

/// The service name under which a host asks a plugin for its health.
const HEALTH_NAME: &str = "plugin";

#[cfg(test)]
mod tests;
