//! The directories that lead to what a policy names. Where a private directory covers them, commands
//! must not find them writable: a file that is moved beside a root would be gone with the jail.

use std::path::{Path, PathBuf};

use crate::grants::Grants;
use crate::rights::Rights;

/// The directories within private ones, mounted at `scratch`, that only lead to what the policy names.
/// They are to be read-only; each holds all that follows on its way.
pub(crate) fn leading(grants: &Grants, scratch: &[&Path]) -> Vec<PathBuf> {
    let real = |dir: &Path| {
        grants.commands.iter().any(|grant| grant.path == dir && grant.rights != Rights::List)
    };
    let mut found: Vec<PathBuf> = grants
        .named
        .iter()
        .flat_map(|path| scratch.iter().filter_map(|dir| first(dir, grants.home.as_deref(), path)))
        .filter(|dir| !real(dir) && !scratch.contains(&dir.as_path()))
        .collect();
    found.sort();
    found.dedup();
    found
}

/// The hidden directories of a home that lead to what the policy names. They stay writable, and must
/// stay where they are: what leads to a root cannot be found again elsewhere.
pub(crate) fn hidden(grants: &Grants) -> Vec<PathBuf> {
    let Some(home) = grants.home.as_deref() else { return Vec::new() };
    let mut found: Vec<PathBuf> = grants
        .named
        .iter()
        .filter_map(|path| {
            let step = path.strip_prefix(home).ok()?.iter().next()?;
            let at = home.join(step);
            (step.as_encoded_bytes().starts_with(b".") && at != *path).then_some(at)
        })
        .collect();
    found.sort();
    found.dedup();
    found
}

/// The first directory below `scratch` on the way to `path`. `None` where `path` lies in `scratch`
/// itself, or elsewhere. Programs of all kinds keep files in the hidden directories of a home, such as
/// `.config`: these count as the home itself.
pub(crate) fn first(scratch: &Path, home: Option<&Path>, path: &Path) -> Option<PathBuf> {
    let mut steps = path.strip_prefix(scratch).ok()?.iter();
    let step = steps.next()?;
    let mut at = scratch.join(step);
    if home == Some(scratch) && step.as_encoded_bytes().starts_with(b".") {
        at.push(steps.next()?);
    }
    (at != path).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_begins_below_what_is_scratch() {
        let first = |scratch: &str, path: &str| {
            let found = super::first(Path::new(scratch), Some(Path::new("/h")), Path::new(path));
            found.map(|found| found.display().to_string())
        };
        assert_eq!(first("/tmp", "/tmp/a/b/root").as_deref(), Some("/tmp/a"));
        assert_eq!(first("/tmp", "/tmp/.a/root").as_deref(), Some("/tmp/.a"));
        assert_eq!(first("/tmp", "/tmp/root"), None);
        assert_eq!(first("/tmp", "/srv/a/root"), None);
        assert_eq!(first("/h", "/h/code/root").as_deref(), Some("/h/code"));
        assert_eq!(first("/h", "/h/.config/a/root").as_deref(), Some("/h/.config/a"));
        assert_eq!(first("/h", "/h/.config/root"), None);
    }
}
