//! Commands whose effects are discarded: what they did is reported, and nothing of it stays.

mod changes;
mod doors;
mod storm;

use crate::case::Case;

pub(crate) fn stories() -> Vec<Case> {
    [changes::stories(), doors::stories(), storm::stories()].concat()
}
