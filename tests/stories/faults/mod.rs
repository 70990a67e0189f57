//! What can happen to a provider: hostile arguments, half requests, killed processes, full
//! disks, failing system calls, limits that are reached, clocks that jump. Whatever it is, no call
//! brings the provider down, each failure is classified, and the next call is answered.

mod clock;
mod deaths;
mod disk;
mod hostile;
mod injected;
mod killed_writes;
mod limits;
mod raw;
mod requests;

use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    let trials = [
        // What takes longest comes first.
        injected::trials(),
        killed_writes::trials(),
        hostile::trials(),
        clock::trials(),
        limits::trials(),
        deaths::trials(),
        disk::trials(),
        requests::trials(),
    ];
    trials.into_iter().flatten().collect()
}

/// A number that the environment sets for this run.
fn number_from(variable: &str) -> Option<usize> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text:?} is no whole number")))
}
