//! Runs a command in the jail: its environment, its output, its exit.
//!
//! Everything here is synchronous and runs on the calling thread; memory is bounded whatever a
//! command prints and however slowly its output is taken.

pub mod environment;
pub mod outside;
pub mod package_managers;
pub mod session;

mod budget;
mod channel;
pub(crate) mod delivery;
mod home;
mod input;
mod interrupt;
mod output;
pub(crate) mod program;
mod pump;
mod run;
mod screen;
mod signal;
mod spool;
pub(crate) mod utf8;

pub use budget::{Budget, TimeLimit, TooLate};
pub use environment::{Environment, EnvironmentError, Requested};
pub use interrupt::Interrupt;
pub use output::{FullOutput, Output};
pub use run::{Call, Finished, RunError, Unreported, open_null, run};
pub use run::{StopCause, StopSignal, Stopped};
pub use signal::signal_name;
pub use spool::{SPOOL_FILE_BYTES, Spool};
