//! Running a command behind the jail: its environment, its output, its end.
//!
//! Everything here is synchronous and runs on the calling thread; memory is bounded whatever a
//! command prints and however slowly its output is taken.

pub mod environment;

mod output;
mod secrets;
mod spool;
mod utf8;

pub use environment::{Environment, EnvironmentError, PrivateFolders, Requested};
pub use output::{FullOutput, Output};
pub use secrets::{Masker, SHORTEST_SECRET, Secrets};
pub use spool::{SPOOL_FILE_BYTES, Spool};
