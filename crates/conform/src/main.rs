//! `provider-workspace-conform`: launches a tool provider as a host does, and checks what the
//! protocol requires of it.
//!
//! - `checks` is the table: each check with its rule.
//! - `probes` makes requests, `trial` checks every answer against the common rules, `report` keeps
//!   what was found, `paint` shows it.
//! - `observe` is the client: it keeps what came over the wire as it came.
//! - `settings` is the file in which a user says what cannot be guessed, `derive` guesses the rest.
//! - `fixture` and `processes` observe from outside: a directory, and the running processes.
#![forbid(unsafe_code)]

mod args;
mod checks;
mod derive;
mod fixture;
mod observe;
mod paint;
mod probes;
mod processes;
mod report;
mod run;
mod runs;
mod session;
mod settings;
mod shapes;
mod trial;

use std::process::ExitCode;

use clap::Parser as _;

use args::Options;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    run::run(&Options::parse()).await
}
