//! The default tool provider of an agent harness: files, search and a shell for a coding agent,
//! kept inside the folders that an operator names.
//!
//! # Layout
//! Imports point one way: `cli` → `service`, `telemetry` → `provider` → `tools` → `process`, `contract`.
//! The crates beneath: `goplugin` carries the connection, `workspace_fs` the files, `sandbox` the jail.
//!
//! - [`service`]: the protocol's ToolService over the provider; wire types end here.
//! - [`telemetry`]: spans and figures of calls, where the environment names a collector.
//! - [`provider`]: configuration, dispatch, validation, deadlines, cancellation, sessions.
//! - [`tools`]: one file a tool.
//! - [`contract`]: the events of a call, and who takes them.
//! - [`process`]: a command behind the jail: its environment, its output, its end.
//! - [`workspace`]: roots and handles; the only place that touches the file system.
//! - [`text`]: encodings, line endings, matching, diffs; pure.
//! - [`cli`]: the commands for a person.
#![forbid(unsafe_code)]

#[cfg(not(target_os = "linux"))]
compile_error!("provider-workspace runs on Linux only: its jail is made of Landlock and seccomp");

pub mod cli;
pub mod contract;
pub mod process;
pub mod provider;
pub mod service;
pub mod telemetry;
pub mod tools;
