//! A jail for file work and child processes, enforced by the Linux kernel.
//!
//! A [`Policy`] is plain data. [`Jail::build`] turns it into restricted file workers and a spawner
//! process, and reports in [`Enforcement`] what the kernel really enforces.
//!
//! The jail starts the running program a second time as its spawner, so `main` must begin with
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

#[cfg(not(target_os = "linux"))]
compile_error!("the jail uses Landlock and seccomp, which only Linux has");

mod approach;
mod attempts;
mod beneath;
mod call_groups;
mod cgroup;
mod changes;
mod command;
mod confine;
mod descendants;
mod enforcement;
mod explain;
mod filter;
mod grants;
mod home;
mod jail;
mod kept_home;
mod launcher;
mod layers;
mod listening;
mod masks;
mod namespaces;
mod others;
mod own_sockets;
mod plan;
mod policy;
mod private;
mod program;
mod protected;
mod report;
mod rights;
mod spares;
mod spawner;
mod spawners;
mod supervisor;
mod sys;
mod tmp_bound;
mod waiting;
mod wire;
mod workers;

pub use changes::{Change, ChangeKind, Changes, Space};
pub use command::{
    Command, ExitStatus, Input, LimitHit, Look, LostCall, ProcessId, Report, Running, Stage,
    StartError,
};
pub use enforcement::{Channel, Channels, Enforcement, Level};
pub use explain::{Access, Explanation, Setting, Subject};
pub use grants::{GrantError, holds_keys};
pub use home::{Home, Lifetime, Overlay, PREFIX};
pub use jail::{Jail, JailError};
pub use kept_home::{Cleared, HomeEntry, HomeError, Homes, Size};
pub use launcher::{SpawnerError, harden_provider};
pub use policy::{Commands, LAYER_BYTES, Limits, Mode, Namespaces, Network, Policy, Surroundings};
pub use private::{Private, PrivateError, Sharing};
pub use program::ProgramName;
pub use rights::DomainError;
pub use spawner::{is_spawner_invocation, spawner_main};
pub use waiting::{Waiting, WaitsOn};
pub use workers::{FileJob, SubmitError};
