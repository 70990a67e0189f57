//! The checker of providers, checked: ours keeps every rule, a small good one does, and each check
//! fails for one that breaks its rule, so that no check passes for nothing.
//!
//! The providers of these stories are this program too.

mod bad_provider;
mod checker;
mod faults;
mod providers;
mod untestable;

use crate::trials::Trial;

pub(crate) use bad_provider::run_if_asked as provider_if_asked;

pub(crate) fn trials() -> Vec<Trial> {
    let trials = [faults::trials(), providers::trials(), untestable::trials()];
    trials.into_iter().flatten().collect()
}
