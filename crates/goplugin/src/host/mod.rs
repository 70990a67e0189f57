//! The host's side: launch a plugin, call it, serve callbacks to it, kill it in order.
//!
//! ```no_run
//! # use goplugin::{Cookie, host::{Launch, LaunchError, Security}};
//! # async fn example() -> Result<(), LaunchError> {
//! let cookie = Cookie { key: "MY_PLUGIN", value: "a fixed text" };
//! let plugin = Launch::new("target/debug/my-plugin", cookie, [1])
//!     .security(Security::AutoMtls)
//!     .start()
//!     .await?;
//! let channel = plugin.channel(); // for a tonic client
//! plugin.kill().await;
//! # Ok(())
//! # }
//! ```

mod child;
mod launch;
mod log;
mod plugin;
mod stderr;

pub use child::Exit;
pub use launch::{Environment, Launch, LaunchError, Multiplex, Security};
pub use log::LogLine;
pub use plugin::{OutputChunk, Plugin, Shutdown};

#[cfg(test)]
mod tests;
