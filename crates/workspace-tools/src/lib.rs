//! The tools of provider-workspace: one file a tool, each with the same parts in the same order
//! (arguments, schema, run, preview, render), and the few types that they share.
//!
//! - [`ReadFile`], [`WriteFile`], [`EditFile`], [`Grep`], [`Glob`] work on the roots of [`Files`].
//! - [`Bash`] runs a command in the jail, by means of [`process`].
//!
//! A tool knows neither the wire nor any async runtime: see the `tool-provider` crate.
#![forbid(unsafe_code)]

pub mod bash;
pub mod change;
pub mod edit_file;
pub mod field;
pub mod glob;
pub mod grep;
pub mod process;
pub mod read_file;
pub mod write_file;

mod classify;
mod files;
mod ignore_files;
mod language;
mod lock_wait;
mod prefix;
mod sessions;

pub use bash::{Bash, BashSettings};
pub use edit_file::EditFile;
pub use files::Files;
pub use glob::Glob;
pub use grep::Grep;
pub use read_file::ReadFile;
pub use sessions::Sessions;
pub use write_file::{Overwrite, WriteFile};

/// What one call of these tools may use.
pub type Context<'a> = tool_provider::Context<'a, Files>;
