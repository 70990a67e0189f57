//! Attempts to get out of a jail, by subject. Each has a twin that is allowed.

mod calls;
mod file_jobs;
mod hiding;
mod ipc;
mod kernel;
mod leading;
mod machine;
mod means;
mod metadata;
mod own_sockets;
mod paths;
mod processes;
mod protected;
mod secrets;
mod set_user_id;
mod settings;
mod sockets;
mod stock;
mod terminals;

use crate::attack;
use crate::case::Case;

pub(crate) fn stories() -> Vec<Case> {
    [
        paths::stories(),
        secrets::stories(),
        set_user_id::stories(),
        metadata::stories(),
        file_jobs::stories(),
        processes::stories(),
        calls::stories(),
        hiding::stories(),
        ipc::stories(),
        kernel::stories(),
        leading::stories(),
        machine::stories(),
        settings::stories(),
        own_sockets::stories(),
        protected::stories(),
        sockets::stories(),
        stock::stories(),
        terminals::stories(),
    ]
    .concat()
}

pub(crate) fn attacks() -> Vec<attack::Named> {
    [
        paths::ATTACKS,
        secrets::ATTACKS,
        set_user_id::ATTACKS,
        metadata::ATTACKS,
        processes::ATTACKS,
        calls::ATTACKS,
        hiding::ATTACKS,
        ipc::ATTACKS,
        kernel::ATTACKS,
        sockets::ATTACKS,
        stock::ATTACKS,
        terminals::ATTACKS,
    ]
    .concat()
}
