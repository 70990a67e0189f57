//! Attempts to get out of a jail, by subject. Each has a twin that is allowed.

mod kernel;
mod metadata;
mod paths;
mod processes;
mod sockets;

use crate::attack;
use crate::story::Story;

pub(crate) fn stories() -> Vec<Story> {
    [
        paths::stories(),
        processes::stories(),
        metadata::stories(),
        kernel::stories(),
        sockets::stories(),
    ]
    .concat()
}

pub(crate) fn attacks() -> Vec<attack::Named> {
    [paths::ATTACKS, processes::ATTACKS, metadata::ATTACKS, kernel::ATTACKS, sockets::ATTACKS]
        .concat()
}
