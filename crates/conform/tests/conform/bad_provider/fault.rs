//! The one rule that is broken.

use std::sync::Arc;

/// Makes this program the provider. It names the fault, or nothing.
pub(crate) const VARIABLE: &str = "BAD_PROVIDER";

#[derive(Clone)]
pub(crate) struct Fault(Arc<str>);

impl Fault {
    pub(crate) fn from_process() -> Option<Self> {
        std::env::var(VARIABLE).ok().map(|name| Self(name.into()))
    }

    pub(crate) fn is(&self, name: &str) -> bool {
        *self.0 == *name
    }
}
