//! `conform`: launches a tool provider as a kernel does, and checks what the protocol requires of
//! it.
//!
//! - `checks` is the table: each check with its rule.
//! - `probes` tries things, `trial` holds every answer to what holds for all, `report` keeps what
//!   was found, `paint` shows it.
//! - `settings` is the file by which a user tells what cannot be guessed, `derive` guesses the rest.
//! - `ground` and `processes` are what is seen from outside: a folder, and what runs.

mod checks;
mod derive;
mod ground;
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

pub(crate) use run::run;
