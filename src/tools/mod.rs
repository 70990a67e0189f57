//! The tools: one file a tool, each with the same parts in the same order (arguments, schema, run,
//! preview, render), and the few types that they share.
//!
//! A tool works on a [`Context`] and reports to an [`EventSink`]; it knows neither the wire nor
//! any async runtime, so the same code serves a kernel, the command line and a test.

pub mod bash;
pub mod cancel;
pub mod edit_file;
pub mod error;
pub mod glob;
pub mod grep;
pub mod read_file;
pub mod schema;
pub(crate) mod shorten;
pub mod taxonomy;
pub mod view;
pub mod write_file;

mod call;
mod change;
mod fault;
mod hidden;
mod ignore_files;
mod language;
mod prefix;
mod stored;

pub use crate::contract::{EmitError, Event, EventSink, OutputStream, Payload};
pub use bash::{Bash, BashSettings};
pub use call::{Concurrency, RiskClass, ToolKind};
pub use call::{Context, Phase, Tool, ToolSpec};
pub use cancel::CancelToken;
pub use edit_file::EditFile;
pub use error::{Category, ToolError, ToolErrorKind};
pub use glob::Glob;
pub use grep::Grep;
pub use read_file::ReadFile;
pub use write_file::{Overwrite, WriteFile};
