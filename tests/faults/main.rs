//! What the world may do to a provider: hostile arguments, half requests, killed processes, full
//! disks, failing system calls, limits that are reached, clocks that jump. Whatever it is, no call
//! brings the provider down, each failure is classified, and the next call is answered.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "stories prepare real files, start real programs, fail where that \
              fails, and say what they skip"
)]

mod clock;
mod deaths;
mod dice;
mod disk;
#[path = "../stories/harness.rs"]
#[expect(dead_code, reason = "shared with the other stories, which use all of it")]
mod harness;
mod hostile;
mod injected;
mod killed_writes;
mod limits;
mod raw;
mod requests;
#[path = "../stories/surroundings.rs"]
#[expect(dead_code, reason = "shared with the other stories, which use all of it")]
mod surroundings;

/// A number that the environment sets for this run.
fn number_from(variable: &str) -> Option<usize> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text:?} is no whole number")))
}
