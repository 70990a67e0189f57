//! A story and its name.

use crate::faults::Row;

/// What is told.
#[derive(Clone, Copy)]
pub(crate) enum Story {
    /// A function that panics when it fails.
    Told(fn()),
    /// A provider with a fault.
    Fault(&'static Row),
}

impl Story {
    pub(crate) fn tell(self) {
        match self {
            Story::Told(story) => story(),
            Story::Fault(row) => row.must_be_found(),
        }
    }
}

/// Stories under a module's name.
pub(crate) fn named(module: &str, stories: &[(&str, fn())]) -> Vec<(String, Story)> {
    let one = |&(name, story): &(&str, fn())| (format!("{module}::{name}"), Story::Told(story));
    stories.iter().map(one).collect()
}
