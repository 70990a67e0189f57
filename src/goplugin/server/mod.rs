//! The plugin's side: everything between being launched and serving the application's services.
//!
//! ```text
//! environment → Settings → serve(): bind → handshake line → services … stop → sockets gone
//! ```
//! The composition root asks [`HandshakeEnvironment::launched_by_host`] whether to serve at all,
//! sets up [`hclog`] and then awaits [`serve`].

mod builtin;
mod environment;
mod error;
pub mod hclog;
mod lifetime;
mod serve;
mod stdio;

pub use environment::{CookieCheck, HandshakeEnvironment};
pub use error::ServeError;
pub use lifetime::{HostWatch, StopReason};
pub use serve::{Listen, STOP_LIMIT, Settings, serve};
pub use stdio::StandardStreams;

pub use super::handshake::{Cookie, is_plugin_variable};

#[cfg(test)]
pub(super) use {serve::Prepared, serve::Stop, stdio::Stdio};
