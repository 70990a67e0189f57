//! `docs`: the reference pages, made from the code's own schemas and tables, so that they say what
//! the code does.

mod configuration;
mod errors;
mod markdown;
mod properties;
mod tools;

use std::process::ExitCode;

use super::CliError;
use super::args::DocsOptions;
use super::files;
use super::output::Output;

/// What stands at the head of every page.
const MADE: &str =
    "<!-- Made by `cargo run -- docs` from the code's own tables: change those. -->\n";

/// Every page, by the name of its file.
fn pages() -> [(&'static str, String); 3] {
    [
        ("tools.md", tools::page()),
        ("configuration.md", configuration::page()),
        ("errors.md", errors::page()),
    ]
}

/// Writes the pages, or tells which are not as they would be written.
pub(super) fn run(options: &DocsOptions, output: Output) -> Result<ExitCode, CliError> {
    let mut outdated = Vec::new();
    for (name, page) in pages() {
        let path = options.folder.join(name);
        // A page that is missing is not current either.
        let is_current = files::read(&path).is_ok_and(|old| old == page.as_bytes());
        let shown = path.display().to_string();
        match (options.check, is_current) {
            (_, true) => output.print(&format!("{shown} is current\n"))?,
            (true, false) => outdated.push(shown),
            (false, false) => {
                files::write(&path, page.as_bytes())?;
                output.print(&format!("{shown} is written\n"))?;
            }
        }
    }
    match outdated.is_empty() {
        true => Ok(ExitCode::SUCCESS),
        false => Err(CliError::Outdated { pages: outdated }),
    }
}
