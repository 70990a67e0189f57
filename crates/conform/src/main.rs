//! `provider-workspace-conform`: launches a tool provider as a host does, and checks what the
//! protocol requires of it.
//!
//! - `checks` is the table: each check with its rule.
//! - `probes` tries things, `trial` holds every answer to what holds for all, `report` keeps what
//!   was found, `paint` shows it.
//! - `observe` is the client: it keeps what came over the wire as it came.
//! - `settings` is the file in which a user says what cannot be guessed, `derive` guesses the rest.
//! - `fixture` and `processes` are what is seen from outside: a directory, and what runs.
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
