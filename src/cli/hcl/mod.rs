//! HCL, as much of it as a host's `agent.hcl` is made of: `init` writes it.

mod write;

pub(crate) use write::{Unwritable, quoted};
