//! What package managers have got for the operator, by its usual places.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The places in the home directory. Where commands have a network, they get what they need into directories
/// of theirs; in these they could not put what is missing. A `*` at the end of a name stands for the version
/// of a layout. What a manager keeps beside these is not granted: repositories of git, whose settings may
/// hold tokens, and what it built of the operator's own projects.
pub(super) const CACHES: [&str; 15] = [
    "go/pkg/mod",
    ".m2/repository",
    ".npm/_cacache/content-v2",
    ".npm/_cacache/index-v5",
    ".cache/uv/archive-v*",
    ".cache/uv/simple-v*",
    ".cache/uv/sdists-v*/index",
    ".cache/uv/sdists-v*/pypi",
    ".cache/uv/wheels-v*/index",
    ".cache/uv/wheels-v*/pypi",
    ".cache/pnpm/metadata*",
    ".cache/pnpm/v*/metadata*",
    ".cache/yarn/v6",
    ".local/share/pnpm/store/v*/files",
    ".local/share/pnpm/store/v*/index*",
];

/// The paths within `directory` that a pattern matches, in which a `*` ends a name.
pub(crate) fn matching(directory: &Path, pattern: &str) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for name in pattern.split('/') {
        let Some(start) = name.strip_suffix('*') else {
            found.iter_mut().for_each(|path| path.push(name));
            continue;
        };
        let entries = |path: &PathBuf| {
            let entries = fs::read_dir(directory.join(path)).into_iter().flatten().flatten();
            let names = entries.map(|entry| entry.file_name());
            let fits = names.filter(|name| name.as_bytes().starts_with(start.as_bytes()));
            fits.map(|name| path.join(name)).collect::<Vec<_>>()
        };
        found = found.iter().flat_map(entries).collect();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_the_rest_of_a_name() {
        let home = tempfile::tempdir().unwrap();
        for path in ["uv/wheels-v8/pypi", "uv/wheels-v9", "uv/archive-v0"] {
            fs::create_dir_all(home.path().join(path)).unwrap();
        }
        let mut found = matching(home.path(), "uv/wheels-v*/pypi");
        found.sort();
        assert_eq!(found, [Path::new("uv/wheels-v8/pypi"), Path::new("uv/wheels-v9/pypi")]);
        assert_eq!(matching(home.path(), "npm/content-v2"), [Path::new("npm/content-v2")]);
        assert_eq!(matching(home.path(), "none/v*"), [] as [&Path; 0]);
    }
}
