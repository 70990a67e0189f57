//! The composition root: a kernel's handshake in the environment means serve, else the command line.
#![forbid(unsafe_code)]

use std::io::{self, Write as _};
use std::process::ExitCode;

use provider_workspace::cli;
use provider_workspace::goplugin::server::{CookieCheck, HandshakeEnvironment};
use provider_workspace::service::plugin::{self, COOKIE};

fn main() -> ExitCode {
    if sandbox::is_spawner_invocation() {
        return sandbox::spawner_main();
    }
    // Before anything is read that another process of the user should not see.
    if let Err(error) = sandbox::harden_provider() {
        let _ = writeln!(io::stderr(), "cannot close this process to others: {error}");
        return ExitCode::FAILURE;
    }
    let environment = HandshakeEnvironment::from_process(&COOKIE);
    match environment.launched_by_host(&COOKIE) {
        CookieCheck::Launched => match plugin::run(environment) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        CookieCheck::Missing | CookieCheck::Wrong => cli::run(std::env::args_os()),
    }
}
