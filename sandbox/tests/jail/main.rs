//! Stories about jails over real files and real processes, each at every level that the machine
//! grants.
//!
//! The jails' spawner is the example `jailed`, which `cargo test` builds. To run the stories as
//! another user, copy both programs to where that user can read them and name the example in
//! `SANDBOX_SPAWNER`: `tests/as-ordinary-user` does that.

mod confinement;
mod containment;
mod support;
