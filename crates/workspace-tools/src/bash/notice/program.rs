//! A program that cannot be run because it is a link to what commands may not read.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use sandbox::{Access, ExitStatus};
use workspace_fs::lexically_clean;
use workspace_fs::text::name;

use super::{Facts, MOST_CANDIDATES, Outside, ask, candidates};

/// How shells and programs say that a program is not there, or may not be run.
const ABSENCES: [&str; 5] = [
    "No such file or directory",
    "Permission denied",
    "cannot execute",
    "command not found",
    "not found",
];

/// The programs that run most scripts, for a script whose interpreter lies beside it.
const INTERPRETERS: [&str; 2] = ["python3", "python"];

/// At most this many directories of PATH are looked into, and this many paths are looked at. The command's
/// author chooses what there is to look at, and nothing interrupts this check.
const MOST_DIRECTORIES: usize = 64;
pub(super) const MOST_LOOKS: usize = 1000;

/// As many links as the kernel follows.
const MOST_LINKS: usize = 40;

/// How many more paths may be looked at.
struct Looks(Cell<usize>);

impl Looks {
    fn take(&self) -> Option<()> {
        self.0.set(self.0.get().checked_sub(1)?);
        Some(())
    }
}

/// Names the link, where it leads, and what would grant that.
pub(super) fn unreachable(facts: &Facts<'_>) -> Option<String> {
    let looks = Looks(Cell::new(MOST_LOOKS));
    let mut left = MOST_CANDIDATES;
    let is_of_shell = matches!(facts.status, ExitStatus::Exited(126 | 127));
    facts.output.lines().find_map(|line| {
        let absence = ABSENCES.iter().find(|absence| line.contains(**absence))?;
        let (before, after) = line.split_once(absence)?;
        candidates(before, after).take(left).find_map(|candidate| {
            left -= 1;
            let named = named(facts, candidate, is_of_shell, &looks);
            named.into_iter().find_map(|path| explained(facts, &path, &looks))
        })
    })
}

/// What the text may name: a path, a script that an interpreter beside it runs, or a program of PATH.
fn named(facts: &Facts<'_>, candidate: &str, is_of_shell: bool, looks: &Looks) -> Vec<PathBuf> {
    let mut named = Vec::new();
    if candidate.contains('/') {
        named.push(lexically_clean(&facts.cwd.join(candidate)));
    } else if is_of_shell {
        let directories = facts.search_path.map(std::env::split_paths).into_iter().flatten();
        let directories = directories.filter(|directory| directory.is_absolute());
        named.extend(directories.take(MOST_DIRECTORIES).map(|directory| directory.join(candidate)));
    }
    if is_of_shell {
        let is_script = |path: &&PathBuf| {
            looks.take().is_some()
                && facts.reasons.is_program(path)
                && facts.reasons.link(path).is_none()
        };
        let scripts: Vec<_> = named.iter().filter(is_script).cloned().collect();
        let beside = scripts.iter().filter_map(|script| script.parent());
        named.extend(beside.flat_map(|directory| INTERPRETERS.map(|name| directory.join(name))));
    }
    named
}

fn explained(facts: &Facts<'_>, path: &Path, looks: &Looks) -> Option<String> {
    let (link, target) = left_by(facts, path, looks)?;
    let is_program =
        facts.reasons.outside(&target) == Outside::Grantable && facts.reasons.is_program(&target);
    if !is_program {
        return None;
    }
    let mut reason = facts.reasons.explain(Access::Execute, &target)?;
    reason.value = installation(facts, &target).unwrap_or(&target).to_owned();
    Some(ask(&format!("{} is a link to {}: {reason}", name::of(&link), name::of(&target))))
}

/// The link by which a path leaves what commands may read, and where the path leads then.
fn left_by(facts: &Facts<'_>, path: &Path, looks: &Looks) -> Option<(PathBuf, PathBuf)> {
    let is_open = |path: &Path| facts.reasons.explain(Access::Execute, path).is_none();
    let mut at = path.to_owned();
    for _ in 0..MOST_LINKS {
        let (link, target) = first_link(facts, &at, looks, is_open)?;
        let rest = at.strip_prefix(&link).ok()?;
        let next = lexically_clean(&link.parent()?.join(target).join(rest));
        if !is_open(&next) {
            return Some((link, next));
        }
        at = next;
    }
    None
}

/// The first link on the way to `path`, with its target, among what commands may read.
fn first_link(
    facts: &Facts<'_>,
    path: &Path,
    looks: &Looks,
    is_open: impl Fn(&Path) -> bool,
) -> Option<(PathBuf, PathBuf)> {
    let mut ancestors: Vec<&Path> = path.ancestors().collect();
    ancestors.reverse();
    ancestors.into_iter().find_map(|at| {
        looks.take()?;
        let target = is_open(at).then(|| facts.reasons.link(at))?;
        Some((at.to_owned(), target?))
    })
}

/// The directory of the installation that a program is part of: what a grant of the program alone would
/// leave out.
fn installation<'p>(facts: &Facts<'_>, program: &'p Path) -> Option<&'p Path> {
    let bin = program.parent().filter(|bin| bin.ends_with("bin"))?;
    let prefix = bin.parent()?;
    let has_parts = ["lib", "libexec", "pyvenv.cfg"]
        .iter()
        .any(|part| facts.reasons.outside(&prefix.join(part)) != Outside::Missing);
    (has_parts && facts.reasons.outside(prefix) == Outside::Grantable).then_some(prefix)
}
