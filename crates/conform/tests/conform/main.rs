//! The checker of providers, checked: ours keeps every rule, a small good one does, and each check
//! fails for one that breaks its rule, so that no check passes for nothing.
//!
//! The providers of these stories are this program too, hence a `main` of our own. Filters and flags
//! are those of `cargo test`; `--ignored` runs those that wait for something that hangs.
#![expect(clippy::unwrap_used, reason = "stories fail where what they prepare fails")]

/// Lists the trials of a module.
macro_rules! trials {
    ($($name:ident),+ $(,)?) => {
        vec![$(crate::trial(concat!(module_path!(), "::", stringify!($name)), $name)),+]
    };
}

mod bad_provider;
mod checker;
mod faults;
mod providers;
mod untestable;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// How many stories run at once: most of their time goes to waiting for what hangs.
const AT_ONCE: usize = 4;

fn main() -> ExitCode {
    if let Some(code) = bad_provider::run_if_asked() {
        return code;
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(AT_ONCE);
    // What takes longest comes first.
    let trials = [faults::trials(), providers::trials(), untestable::trials()];
    libtest_mimic::run(&arguments, trials.into_iter().flatten().collect()).exit_code()
}

/// A trial of what panics when it fails, named after its path in this program.
fn trial(path: &str, run: impl FnOnce() + Send + 'static) -> Trial {
    let name = path.strip_prefix("conform::").unwrap_or(path);
    Trial::test(name, || {
        run();
        Ok(())
    })
}
