//! The provider behind the wire: configuration as it is meant, the registry of tools, dispatch,
//! argument validation, deadlines, cancellation, the event contract and the state of sessions.
//!
//! [`Provider`] is the whole of it. It knows no wire type; whoever serves it converts.

pub mod config;
pub mod validate;

mod configured;
mod core;
mod dispatch;
mod identity;
mod masking;
mod nearest;
mod registry;
mod render;
mod running;
mod sessions;
mod stream;
mod sweep;

pub use self::core::{Call, Provider};
pub use config::{Config, ConfigureError, Surroundings};
pub use configured::Report;
pub use identity::Identity;
pub use registry::{Registry, Setup, ToolFactory};
pub use render::Stored;
pub use stream::{EventStream, Outcome, StreamItem};

#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod tests;
