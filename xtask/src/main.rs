//! Chores of this repository, in a crate of their own, so that no build of the product needs their
//! dependencies.
//!
//! - `cargo run -p xtask -- messages` writes the Rust of all `.proto` files. With
//!   `--no-default-features` it builds nothing of the product, which may not compile without it.
//! - `cargo run -p xtask -- docs` writes the reference pages of docs/; with `--check` it fails
//!   where one is not as it would be written.
//! - `cargo run -p xtask -- toolchains FILE…` stores what the stories of package managers recorded, and
//!   writes docs/toolchains.md. They record into the file that `TOOLCHAINS_RECORD` names.
//! - `cargo run -p xtask -- report [BENCH…]` runs the benches, stores their measurements and shows
//!   them in docs/performance.md and README; `report --table` only shows what is stored.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[cfg(feature = "docs")]
mod docs;
mod messages;
mod report;

fn main() -> ExitCode {
    let chores: Vec<String> = std::env::args().skip(1).collect();
    let done = match chores.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["messages"] => messages::write(),
        #[cfg(feature = "docs")]
        ["docs"] => docs::write(),
        #[cfg(feature = "docs")]
        ["docs", "--check"] => docs::check(),
        #[cfg(feature = "docs")]
        ["toolchains", ref files @ ..] if !files.is_empty() => docs::toolchains::store(files),
        ["report", "--table"] => report::write_tables(),
        ["report", ref benches @ ..] => report::measure(benches),
        _ => Err("usage: cargo run -p xtask -- messages | docs [--check] | toolchains FILE… | \
                 report [BENCH…|--table]"
            .into()),
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

/// The repository's root.
fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_path_buf()
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
