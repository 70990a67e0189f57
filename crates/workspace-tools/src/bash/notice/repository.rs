//! A repository whose git directory commands do not reach.

use sandbox::Access;
use workspace_fs::text::name;

use super::command::{only_shows_text, runs};
use super::{Facts, Outside};

/// How git says that there is none.
const NONE: &str = "fatal: not a git repository";

/// Where the git directory is, and what lets git work.
pub(super) fn notice(facts: &Facts<'_>) -> Option<String> {
    pointed_to(facts).or_else(|| above(facts))
}

fn pointed_to(facts: &Facts<'_>) -> Option<String> {
    let directory = facts.git_directory?;
    let is_about_git = facts.output.contains("fatal:") || facts.output.contains("git");
    (is_about_git && facts.reasons.is_git_directory(directory)).then(|| {
        format!(
            "the .git file here points to a git directory outside the roots; such a file never \
             widens what commands may reach, so git cannot work here unless the operator puts {} \
             into bash_write",
            name::of(directory)
        )
    })
}

/// A root may be a part of a repository only.
fn above(facts: &Facts<'_>) -> Option<String> {
    let is_gits_own = runs(facts.command, "git") || !only_shows_text(facts.command);
    if !is_gits_own || !facts.output.lines().any(|line| line.starts_with(NONE)) {
        return None;
    }
    let top = facts.cwd.ancestors().skip(1).find(|directory| {
        let git = directory.join(".git");
        facts.reasons.explain(Access::Read, &git).is_some() && facts.reasons.is_git_directory(&git)
    })?;
    (facts.reasons.outside(top) == Outside::Grantable).then(|| {
        format!(
            "the repository that this directory belongs to lies outside the roots, in {}: git works here \
             if the operator makes that a root; ask if this is needed",
            name::of(top)
        )
    })
}
