//! Stories about a whole jail: real files, real processes, the real kernel.
//!
//! A jail starts the running program once more as its spawner, and the attackers of these stories
//! are this program too; hence a `main` of our own. Filters and flags are those of `cargo test`.
//!
//! Each story runs once at every level. What the machine lacks for one makes it ignored, with the
//! reason; with `CI` set a missing program or level is a failure, and `SANDBOX_LEVEL=kernel` says
//! that the full level is not to be expected.
#![expect(clippy::unwrap_used, reason = "a story that panics has failed, which is what is meant")]

mod attack;
mod case;
mod containment;
mod daily_work;
mod enforcement;
mod escapes;
mod fixture;
mod kept_home;
mod network;
mod provider;
mod raw;
mod start;
mod support;
mod throw_away;

use std::process::ExitCode;

fn main() -> ExitCode {
    if sandbox::is_spawner_invocation() {
        return sandbox::spawner_main();
    }
    if let Some(code) = attack::run_if_asked(&attacks()) {
        return code;
    }
    if let Some(code) = provider::run_if_asked() {
        return code;
    }
    let arguments = libtest_mimic::Arguments::from_args();
    let stories = [
        start::stories(),
        daily_work::stories(),
        escapes::stories(),
        kept_home::stories(),
        network::stories(),
        containment::stories(),
        enforcement::stories(),
        throw_away::stories(),
    ]
    .concat();
    libtest_mimic::run(&arguments, case::trials(&stories)).exit_code()
}

fn attacks() -> Vec<attack::Named> {
    escapes::attacks()
}
