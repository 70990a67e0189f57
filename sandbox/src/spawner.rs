//! The spawner process.

use std::ffi::OsStr;
use std::process::ExitCode;

const ARGUMENT: &str = "__sandbox-spawner";

/// Whether this process was started as a jail's spawner. `main` asks this first of all, before any
/// thread is started, and if so does nothing but return [`spawner_main`].
#[must_use]
pub fn is_spawner_invocation() -> bool {
    std::env::args_os().nth(1).as_deref() == Some(OsStr::new(ARGUMENT))
}

/// Serves as a jail's spawner until the jail is dropped and its calls have ended.
#[must_use]
pub fn spawner_main() -> ExitCode {
    ExitCode::FAILURE
}
