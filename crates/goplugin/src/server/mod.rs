//! The plugin's side: everything between being launched and serving the application's services.
//!
//! ```text
//! environment → Settings → serve(): bind → handshake line → services … stop → sockets gone
//! ```
//! The composition root asks [`HandshakeEnvironment::launched_by_host`] whether to serve at all,
//! calls [`hclog::init`] and then awaits [`serve`].

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
pub use serve::{Listen, Settings, serve};
pub use stdio::StandardStreams;

#[cfg(test)]
pub(super) use {serve::Prepared, serve::STOP_LIMIT, serve::Stop, stdio::Stdio};
