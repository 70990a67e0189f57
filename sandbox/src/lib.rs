//! One kernel-enforced jail for file work and child processes.
//!
//! A [`Policy`] is plain data. [`Jail::build`] turns it into restricted file workers and a spawner
//! process, and says in [`Enforcement`] what the kernel really enforces.
//!
//! The spawner is the running program itself, started once more: `main` must begin with
//! ```no_run
//! # use std::process::ExitCode;
//! fn main() -> ExitCode {
//!     if sandbox::is_spawner_invocation() {
//!         return sandbox::spawner_main();
//!     }
//!     // …
//! #   ExitCode::SUCCESS
//! }
//! ```
#![deny(unsafe_code)]

mod command;
mod enforcement;
mod explain;
mod jail;
mod policy;
mod private;
mod spawner;
mod wire;
mod workers;

pub use command::{Command, ExitStatus, LimitHit, LostCall, Report, Running, Stage, StartError};
pub use enforcement::{Channel, Channels, Enforcement, Level};
pub use explain::{Access, Explanation, Setting, Subject};
pub use jail::{Jail, JailError};
pub use policy::{Limits, Mode, Namespaces, Network, Policy};
pub use private::{Private, PrivateError};
pub use spawner::{is_spawner_invocation, spawner_main};
pub use workers::{FileJob, SubmitError};
