//! What developers do all day works in a jail: the real programs, at every level.

mod compilers;
mod git;
mod installations;
mod overlays;
mod shell;

use crate::case::Case;

pub(crate) fn stories() -> Vec<Case> {
    [
        shell::stories(),
        git::stories(),
        compilers::stories(),
        installations::stories(),
        overlays::stories(),
    ]
    .concat()
}
