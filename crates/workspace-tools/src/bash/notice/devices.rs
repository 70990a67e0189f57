//! A rename or a hard link between two directories that only in the jail are two file systems.

use std::path::{Path, PathBuf};

use workspace_fs::lexically_clean;
use workspace_fs::text::name;

use super::{Facts, MOST_CANDIDATES, MOST_COMMAND};

/// How programs and the C library name this error (EXDEV).
const REFUSALS: [&str; 4] = ["ross-device link", "EXDEV", "os error 18", "Errno 18"];

const QUOTES: &[char] = &['\'', '"', '`', '‘', '’', '“', '”'];

/// Names the two, where the paths that the program or the command line has lead to two.
pub(super) fn notice(facts: &Facts<'_>) -> Option<String> {
    let refused = |line: &&str| REFUSALS.iter().any(|refusal| line.contains(refusal));
    if facts.mounts.is_empty() || super::command::only_shows_text(facts.command) {
        return None;
    }
    let line = facts.output.lines().rev().find(refused)?;
    let command = facts.command.get(..MOST_COMMAND).unwrap_or(facts.command);
    let said = places(facts, quoted(line).chain(words(line)));
    let (one, other) = match said[..] {
        [one, other, ..] => (one, other),
        _ => {
            let more = places(facts, quoted(line).chain(words(line)).chain(words(command)));
            let [one, other, ..] = more[..] else { return None };
            (one, other)
        }
    };
    // On the machine they are two as well: then a jail changes nothing.
    if facts.reasons.device(one)? != facts.reasons.device(other)? {
        return None;
    }
    Some(format!(
        "rename and link do not work between {} and {}: in the jail each root, HOME and /tmp is a file \
         system of its own; copy, and then remove, as mv does",
        name::of(one),
        name::of(other)
    ))
}

/// The file systems that paths lie in, each once.
fn places<'f>(facts: &Facts<'f>, paths: impl Iterator<Item = &'f str>) -> Vec<&'f Path> {
    let mut places: Vec<&Path> = Vec::new();
    for path in paths.take(MOST_CANDIDATES) {
        let path = lexically_clean(&facts.cwd.join(path));
        let holding = facts.mounts.iter().filter(|mount| path.starts_with(mount));
        let nearest = holding.max_by_key(|mount| mount.components().count());
        if let Some(place) = nearest.map(PathBuf::as_path)
            && !places.contains(&place)
        {
            places.push(place);
        }
    }
    places
}

/// What stands in quotes.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split(QUOTES).skip(1).step_by(2).filter(|text| !text.is_empty() && text.len() < 4096)
}

/// Words that are paths for certain.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_end = |c: char| c.is_whitespace() || QUOTES.contains(&c) || ",;()[]<>=|&".contains(c);
    let words = text.split(is_end).map(|word| word.trim_end_matches(':'));
    words.filter(|word| word.contains('/') && word.len() < 4096)
}
