//! The reference pages of docs/, made from the code's own schemas and tables, so that they say what
//! the code does.

mod configuration;
mod errors;
mod markdown;
mod properties;
pub(crate) mod toolchains;
mod tools;

use std::error::Error;
use std::fs;
use std::path::PathBuf;

use crate::root;

/// What stands at the head of every page.
const MADE: &str =
    "<!-- Made by `cargo run -p xtask -- docs` from the code's own tables: change those. -->\n";

/// Every page, by the name of its file.
fn pages() -> [(&'static str, String); 4] {
    [
        ("tools.md", tools::page()),
        ("configuration.md", configuration::page()),
        ("errors.md", errors::page()),
        ("toolchains.md", toolchains::page()),
    ]
}

/// Writes the pages.
pub(crate) fn write() -> Result<(), Box<dyn Error>> {
    outdated().try_for_each(|(path, page)| Ok(fs::write(path, page)?))
}

/// Fails where a page is not as it would be written.
pub(crate) fn check() -> Result<(), Box<dyn Error>> {
    let outdated: Vec<_> = outdated().map(|(path, _)| path.display().to_string()).collect();
    match outdated.is_empty() {
        true => Ok(()),
        false => Err(format!("`cargo run -p xtask -- docs` renews {}", outdated.join(", ")).into()),
    }
}

/// The pages that are not what is there.
fn outdated() -> impl Iterator<Item = (PathBuf, String)> {
    let docs = root().join("docs");
    let pages = pages().into_iter().map(move |(name, page)| (docs.join(name), page));
    pages.filter(|(path, page)| fs::read_to_string(path).ok().as_ref() != Some(page))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_are_current() {
        check().unwrap();
    }
}
