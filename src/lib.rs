//! The default tool provider of an agent host: files, search and a shell for a coding agent, kept
//! inside the directories that an operator names.
//!
//! # Layout
//! This crate is the product: it puts the crates beneath it together.
//!
//! - [`plugin`]: the provider as a plugin of a host: handshake, logs, telemetry.
//! - `mcp`: the provider as a server of the Model Context Protocol (feature `mcp`).
//! - [`cli`]: the commands for a person. They launch the plugin and act as its host.
//! - [`backend`]: what a configuration builds: roots, jail, tools.
//! - [`config`]: the configuration's keys and what they mean.
//!
//! The crates, each of which imports only those below it: `workspace-tools` (the tools),
//! `tool-provider` (the contract), `workspace-fs` (files and text), `goplugin` (the connection),
//! `otlp` (telemetry, unless the feature of that name is off) and `sandbox` (the jail).
#![forbid(unsafe_code)]

#[cfg(not(target_os = "linux"))]
compile_error!("provider-workspace runs on Linux only: its jail is made of Landlock and seccomp");

pub mod backend;
pub mod cli;
pub mod config;
#[cfg(feature = "mcp")]
pub mod mcp;
pub mod plugin;

mod homes;
mod identity;
mod recovery;
mod telemetry;
mod warnings;
