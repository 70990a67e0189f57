//! One kernel-enforced jail for file work and child processes.
//!
//! A [`Policy`] is plain data. [`Jail::build`] turns it into restricted file workers and a spawner
//! process, and says in [`Enforcement`] what the kernel really enforces.

mod enforcement;
mod jail;
mod policy;

pub use enforcement::{Channel, Channels, Enforcement, Level};
pub use jail::{FileJob, Jail, JailError, SubmitError};
pub use policy::{Limits, Mode, Network, Policy};
