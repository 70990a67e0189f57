//! The composition root: this crate's provider for a kernel, the command line for a person.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use provider_workspace::cli;
use provider_workspace::service::plugin;

fn main() -> ExitCode {
    plugin::main(plugin::provider, || cli::run(std::env::args_os()))
}
