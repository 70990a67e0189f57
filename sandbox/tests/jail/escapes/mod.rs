//! Attempts to get out of a jail, by subject. Each has a twin that is allowed.

mod paths;
mod processes;

use crate::attack;
use crate::story::Story;

pub(crate) fn stories() -> Vec<Story> {
    [paths::stories(), processes::stories()].concat()
}

pub(crate) fn attacks() -> Vec<attack::Named> {
    [paths::ATTACKS, processes::ATTACKS].concat()
}
