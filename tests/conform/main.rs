//! The checker of providers, checked: ours keeps every rule, a small good one does, and each check
//! fails for one that breaks its rule, so that no check passes for nothing.
//!
//! The providers of these stories are this program too, hence a `main` of our own. Filters and flags
//! are those of `cargo test`.
#![expect(clippy::unwrap_used, reason = "stories fail where what they prepare fails")]

mod bad_provider;
mod checker;
mod faults;
mod providers;
mod story;
mod untestable;

use std::process::ExitCode;

/// How many stories are told at once: most of their time goes to waiting for what hangs.
const AT_ONCE: usize = 4;

fn main() -> ExitCode {
    if let Some(code) = bad_provider::run_if_asked() {
        return code;
    }
    let mut arguments = libtest_mimic::Arguments::from_args();
    arguments.test_threads.get_or_insert(AT_ONCE);
    // What takes longest comes first.
    let stories = [faults::stories(), providers::stories(), untestable::stories()].concat();
    let trials = stories
        .into_iter()
        .map(|(name, story)| {
            libtest_mimic::Trial::test(name, move || {
                story.tell();
                Ok(())
            })
        })
        .collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}
