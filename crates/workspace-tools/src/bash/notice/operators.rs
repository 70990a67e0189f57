//! Programs that would change what is the operator's: they name a file, and not the way that works.

use super::command::Speakers;
use super::{Facts, MOST_COMMAND};

/// How programs and the C library say that something cannot be written.
const REFUSALS: [&str; 8] = [
    "Device or resource busy",
    "Permission denied",
    "Read-only file system",
    "EACCES: permission denied",
    "EROFS: read-only file system",
    // Of Go.
    ".lock: read-only file system",
    ".lock: permission denied",
    // Of rustup, where its home is a link to the operator's.
    "cleaning up cached downloads: No such file or directory",
];

/// Says what to do instead, however the command ended: what came after may hide that it was refused.
pub(super) fn notice(facts: &Facts<'_>) -> Option<String> {
    let command = facts.command.get(..MOST_COMMAND).unwrap_or(facts.command);
    let speakers = Speakers::of(facts.command);
    let is_refusal =
        |line: &&str| REFUSALS.iter().any(|refusal| line.contains(refusal)) && speakers.say(line);
    facts.output.lines().map(str::trim).filter(is_refusal).find_map(|line| {
        settings_of_git(line)
            .or_else(|| of_corepack(command, line))
            .or_else(|| of_rustup(command, line))
            .or_else(|| of_rustup_without_network(facts, line))
            .or_else(|| of_go_without_network(facts, line))
    })
}

/// Git's settings of a user, which are bound read-only or led to by a link.
fn settings_of_git(line: &str) -> Option<String> {
    const FILES: [&str; 2] = ["/.gitconfig: ", "/.config/git/config: "];
    let failed = ["error: could not write config file ", "error: could not lock config file "];
    let is_theirs = failed.iter().any(|start| line.starts_with(start))
        && FILES.iter().any(|file| line.contains(file));
    is_theirs.then(|| {
        "the operator's own git settings are read-only for commands: `git -c NAME=VALUE` sets something for \
         one command"
            .to_owned()
    })
}

/// Corepack puts its programs beside node.
fn of_corepack(command: &str, line: &str) -> Option<String> {
    let is_it = command.contains("corepack ")
        && line.starts_with("Internal Error: ")
        && [", symlink '", ", unlink '", ", open '"].iter().any(|call| line.contains(call));
    is_it.then(|| {
        "corepack cannot put programs beside the operator's node: `mkdir -p ~/.prefix/bin && corepack enable \
         --install-directory ~/.prefix/bin` puts them on PATH"
            .to_owned()
    })
}

/// A toolchain that rustup did not install for commands.
fn of_rustup(command: &str, line: &str) -> Option<String> {
    if !command.contains("rustup ") || !line.starts_with("error: could not ") {
        return None;
    }
    let toolchain = line.split_once("/toolchains/")?.1;
    let end = toolchain.find(|c: char| !c.is_ascii_alphanumeric() && !"-._".contains(c))?;
    Some(format!(
        "the toolchain {} is the operator's, and cannot be changed here: install another one by its version \
         (`rustup toolchain install VERSION --profile minimal --target TARGET --component COMPONENT`) and use \
         it with `cargo +VERSION`",
        &toolchain[..end]
    ))
}

/// Rustup looks at what it has before it looks for a network.
fn of_rustup_without_network(facts: &Facts<'_>, line: &str) -> Option<String> {
    facts.reasons.explain_network()?;
    line.starts_with("error: component download failed for ").then(|| {
        "rustup cannot add to the operator's toolchains; with `network = \"allow\"` it can install others \
         for commands: ask if this is needed"
            .to_owned()
    })
}

/// Go locks its module cache, which is the operator's, before it looks for a network.
fn of_go_without_network(facts: &Facts<'_>, line: &str) -> Option<String> {
    facts.reasons.explain_network()?;
    let (_, entry) = line.split_once("/pkg/mod/cache/download/")?;
    let (module, version) = entry.split_once("/@v/")?;
    let (version, _) = version.split_once(".lock: ")?;
    let is_plain = |text: &str| {
        text.len() < 256
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~!/+".contains(&byte))
    };
    // An exclamation mark stands before what is a capital letter in the path.
    let mut parts = module.split('!');
    let mut module = parts.next()?.to_owned();
    for part in parts {
        let (capital, rest) = part.split_at_checked(1)?;
        module.push_str(&(capital.to_ascii_uppercase() + rest));
    }
    (is_plain(&module) && is_plain(version)).then(|| {
        format!(
            "the operator's module cache lacks {module} {version}, and the network is closed: ask for \
             `network = \"allow\"`, or to have the module fetched"
        )
    })
}
