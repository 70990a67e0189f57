//! Stories about jails over real files and real processes, each at every level that the machine
//! grants.
//!
//! The jails' spawner is the example `jailed`, which `cargo test` builds. To run the stories as
//! another user, copy both programs to where that user can read them and name the example in
//! `SANDBOX_SPAWNER`: `tests/as-ordinary-user` does that.
#![expect(clippy::unwrap_used, reason = "a story that cannot go on has failed")]
#![expect(clippy::print_stderr, reason = "what is skipped is said loudly")]

mod confinement;
mod containment;
mod enforcement;
mod network;
mod start;
mod support;
mod work;
