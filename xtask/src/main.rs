//! Chores of this repository. They are a crate of their own, so that no build of the product needs
//! what they need.
//!
//! `cargo run -p xtask -- messages` writes the Rust of all `.proto` files.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::Write as _;
use std::process::ExitCode;

mod messages;

fn main() -> ExitCode {
    let chores: Vec<String> = std::env::args().skip(1).collect();
    let done = match chores.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["messages"] => messages::write(),
        _ => Err("usage: cargo run -p xtask -- messages".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Where standard error is gone, too, the exit code has to do.
            let _ = writeln!(std::io::stderr(), "{}", chain(&*error));
            ExitCode::FAILURE
        }
    }
}

/// An error with its sources.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}
