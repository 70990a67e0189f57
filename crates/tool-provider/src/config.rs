//! A configuration as an operator writes it: read strictly, with everything that is wrong in one
//! error.

mod fault;
mod values;

pub use fault::{ConfigureError, Fault, FaultKind};
pub use values::Values;
