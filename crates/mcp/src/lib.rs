//! A provider's tools for a host of the Model Context Protocol, over one pair of streams.
//!
//! It stands beside the protocol of `tool-provider`'s module `grpc` and knows as little as that of any
//! single tool: what it lists and calls is what the provider's registry has.
//!
//! - [`serve`]: answers one client until it goes away.
//! - [`stdio`]: the streams of a process that a host launched.
//! - [`Settings`]: what an operator chooses of it.
//! - [`Roots`]: whether the configuration names its directories or the client does.
//! - [`Log`]: entries of the process's log on their way to the client.
//!
//! Messages, versions and their order are the SDK's affair. Ours is what it leaves open: how much one
//! client can make this process hold (no message is read before there is room for its answer), the
//! text that a model reads, and the end of everything when the client goes away.
#![forbid(unsafe_code)]

mod call;
mod handler;
mod lines;
mod load;
mod log;
mod printed;
mod progress;
mod roots;
mod server;
mod stdio;
mod tools;
mod transport;
mod weight;

pub use log::{Log, LogEntry, LogFeed};
pub use roots::{BlockOf, ClientRoots, Roots};
pub use server::{ServeError, Settings, Structured, serve};
pub use stdio::{Input, Output, reader_gone, stdio};
