//! The bash tool in this process: real commands in a real jail, seen by their events and outcomes.

mod directories;
mod ends;
mod environment;
mod fixture;
mod git;
mod notices;
mod protect;
mod protect_attacks;
mod read_only;
mod results;
mod shows;
mod streams;
mod waits;

use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    let trials = [
        // What waits longest comes first.
        waits::trials(),
        ends::trials(),
        notices::trials(),
        streams::trials(),
        results::trials(),
        read_only::trials(),
        directories::trials(),
        git::trials(),
        protect::trials(),
        protect_attacks::trials(),
        shows::trials(),
        environment::trials(),
    ];
    trials.into_iter().flatten().collect()
}
