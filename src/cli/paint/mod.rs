//! The one painter: what Preview, Render and a search return, as text for a terminal or a file.
//!
//! Everything that comes from a payload passes [`Escape`] before it is coloured, so that nothing but
//! the painter's own colours can steer a terminal.

mod changed_words;
mod diff;
mod escape;
mod hits;
mod ink;
mod table;
#[cfg(test)]
mod tests;
mod tree;
mod wrap;

pub(crate) use escape::escape;
pub(crate) use escape::{Escape, StyleFilter};
pub(crate) use hits::{Hits, Layout};
pub(crate) use ink::{Ink, Paint};
pub(crate) use tree::Painter;
pub(crate) use wrap::cut;
