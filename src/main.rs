//! The provider for a host, the command line for a person.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use provider_workspace::{backend, cli, plugin};

fn main() -> ExitCode {
    plugin::main(backend::provider, || cli::run(std::env::args_os()))
}
