//! The composition root: a kernel's handshake in the environment means serve, else the command line.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    if sandbox::is_spawner_invocation() {
        return sandbox::spawner_main();
    }
    ExitCode::SUCCESS
}
