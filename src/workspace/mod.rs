//! Roots and handles: the only place in this crate that touches the file system.

mod session;

pub use session::Session;

/// The roots and what may be done beneath them.
#[derive(Debug)]
pub struct Workspace {}
