//! A package manager of the system, which could not use what it keeps in /var.

use std::path::Path;

use sandbox::Access;

use super::Facts;

/// How they say so: how a line begins, and what else is in it.
const REFUSALS: [(&str, &str); 13] = [
    ("W: Not using locking for read only lock file /var/lib/dpkg/", ""),
    ("W: Problem unlinking the file /var/lib/apt/lists/", ""),
    ("E: Archives directory /var/cache/apt/archives/partial is missing", ""),
    ("E: Could not open lock file /var/lib/", " - open ("),
    ("E: List directory /var/lib/apt/lists/partial is missing", ""),
    ("E: Unable to acquire the dpkg frontend lock", "are you root?"),
    ("E: can not open /var/lib/apt/lists/", " - fopen ("),
    ("dpkg: error: unable to access the dpkg database directory", ""),
    ("dpkg: error: cannot create the dpkg database directory", ""),
    ("dpkg: error: you do not have permission to lock the dpkg database", ""),
    ("error: can't create transaction lock on /var/lib/rpm", ""),
    ("ERROR: Unable to lock database: ", ""),
    ("error: failed to initialize alpm library", ""),
];

/// Says whose these packages are, where commands may not write what the package manager keeps.
pub(super) fn notice(facts: &Facts<'_>) -> Option<String> {
    if super::command::only_shows_text(facts.command) {
        return None;
    }
    let is_refusal = |line: &str| {
        REFUSALS.iter().any(|(start, part)| line.starts_with(start) && line.contains(part))
    };
    let is_refused = facts.output.lines().any(is_refusal);
    let is_withheld = || facts.reasons.explain(Access::Write, Path::new("/var/lib")).is_some();
    (is_refused && is_withheld()).then(|| {
        "commands cannot install packages of the system; ask the operator to install what is needed, \
         or take it from a language's package manager, which installs below HOME"
            .to_owned()
    })
}
