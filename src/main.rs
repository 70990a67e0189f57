//! The provider for a host, the command line for a person.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use provider_workspace::{cli, plugin};

fn main() -> ExitCode {
    plugin::main(plugin::provider, || cli::run(std::env::args_os()))
}
