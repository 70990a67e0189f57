//! Similar names, to suggest for one that does not exist.

use std::ffi::{OsStr, OsString};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{Dir, Mode, OFlags};

use super::look_alike::is_look_alike;
use super::resolve::{HANDLE, open_beneath};

/// How many names are offered.
const OFFERED: usize = 3;

/// The similarity (0 to 1, Jaro-Winkler) from which a name counts as near.
const NEAR: f64 = 0.8;

/// How much of a directory is looked at: a huge one must not make an error slow.
const MOST_ENTRIES: usize = 10_000;
const MOST_TIME: Duration = Duration::from_millis(20);

/// Longer names are not compared letter by letter: that takes time by the product of their lengths.
const MOST_COMPARED: usize = 32;

/// What somebody may have meant by `name` in `directory`, and `rest` beneath it, as paths from that
/// directory, best first, at most three. Where a directory's name is wrong and the rest of the path is
/// there beneath a like one, the whole path is offered; where the directory's own name is written once
/// too often, the path without it; where backslashes part its names, the path with slashes; where it
/// stands in quotes, the path without them. `parent` is the directory's path.
pub(super) fn near_paths(
    directory: BorrowedFd<'_>,
    parent: &Path,
    name: &OsStr,
    rest: &Path,
) -> Vec<PathBuf> {
    let exists = |path: &Path| open_beneath(directory, path, HANDLE).is_ok();
    let has_rest = rest != Path::new("");
    if has_rest && parent.file_name() == Some(name) && exists(rest) {
        return vec![rest.to_owned()];
    }
    if let Some(bare) = unquoted(name, rest)
        && exists(&bare)
    {
        return vec![bare];
    }
    if name.as_bytes().contains(&b'\\') {
        let mut slashed = PathBuf::from(name.to_string_lossy().replace('\\', "/"));
        // To join nothing would add a slash.
        slashed.extend(rest);
        if exists(&slashed) {
            return vec![slashed];
        }
    }
    let (mut whole, mut part) = (Vec::new(), Vec::new());
    for near in near_names(directory, name) {
        let path = Path::new(&near).join(rest);
        if has_rest && exists(&path) { whole.push(path) } else { part.push(PathBuf::from(near)) }
    }
    if whole.is_empty() { part } else { whole }
}

/// The path without the quotes around it.
fn unquoted(name: &OsStr, rest: &Path) -> Option<PathBuf> {
    let mut whole = PathBuf::from(name);
    // To join nothing would add a slash.
    whole.extend(rest);
    let [first, inner @ .., last] = whole.as_os_str().as_bytes() else { return None };
    let is_quoted = first == last && matches!(first, b'`' | b'\'' | b'"');
    (is_quoted && !inner.is_empty() && inner[0] != b'/')
        .then(|| PathBuf::from(OsStr::from_bytes(inner)))
}

/// The names in `directory` that are most like `name`, best first, at most three. A name that reads the
/// same comes first, then one that differs only in its case, then one that differs only in what follows its last dot.
pub(super) fn near_names(directory: BorrowedFd<'_>, name: &OsStr) -> Vec<OsString> {
    let wanted = name.to_string_lossy();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(listing) = rustix::fs::openat(directory, ".", flags, Mode::empty()).and_then(Dir::new)
    else {
        return Vec::new();
    };
    let until = Instant::now() + MOST_TIME;
    let mut near: Vec<(f64, OsString)> = Vec::new();
    for (count, entry) in listing.take(MOST_ENTRIES).enumerate() {
        let Ok(entry) = entry else { break };
        if count % 256 == 255 && Instant::now() > until {
            break;
        }
        let candidate = OsStr::from_bytes(entry.file_name().to_bytes());
        if candidate == "." || candidate == ".." {
            continue;
        }
        let likeness = likeness(&wanted, &candidate.to_string_lossy());
        if likeness >= NEAR {
            near.push((likeness, candidate.to_owned()));
        }
    }
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    near.truncate(OFFERED);
    near.into_iter().map(|(_, name)| name).collect()
}

fn likeness(wanted: &str, candidate: &str) -> f64 {
    if is_look_alike(wanted, candidate) {
        return 3.0;
    }
    let (wanted, candidate) = (wanted.to_lowercase(), candidate.to_lowercase());
    if wanted == candidate {
        return 2.0;
    }
    let stem = |name: &str| name.rsplit_once('.').map_or(name.len(), |(stem, _)| stem.len());
    let (wanted_stem, candidate_stem) = (&wanted[..stem(&wanted)], &candidate[..stem(&candidate)]);
    if !wanted_stem.is_empty() && wanted_stem == candidate_stem {
        return 1.5;
    }
    let is_short = wanted.len().max(candidate.len()) <= MOST_COMPARED;
    // In a short name letters that changed places leave little of the likeness.
    if is_short && wanted.len() > 2 && strsim::osa_distance(&wanted, &candidate) == 1 {
        return 1.0;
    }
    strsim::jaro_winkler(&wanted, &candidate)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests set up real files")]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    fn near(names: &[&str], wanted: &str) -> Vec<OsString> {
        let directory = tempfile::tempdir().unwrap();
        for name in names {
            std::fs::write(directory.path().join(name), "").unwrap();
        }
        let handle = std::fs::File::open(directory.path()).unwrap();
        near_names(handle.as_fd(), OsStr::new(wanted))
    }

    #[test]
    fn case_then_ending_then_spelling() {
        let names = ["README.md", "Readme.txt", "reedme.md", "main.rs", "unrelated"];
        assert_eq!(near(&names, "readme.md"), ["README.md", "Readme.txt", "reedme.md"]);
        assert_eq!(near(&names, "mian.rs"), ["main.rs"]);
        assert_eq!(near(&names, "zzz"), [""; 0]);
        assert_eq!(near(&[], "x"), [""; 0]);
        assert_eq!(near(&["src", "lib", "bin"], "scr"), ["src"]);
        assert_eq!(near(&["a", "b"], "c"), [""; 0]);
    }

    #[test]
    fn a_path_is_offered_whole_where_it_is_there() {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path().join("app");
        std::fs::create_dir_all(top.join("src")).unwrap();
        std::fs::create_dir_all(top.join("srv")).unwrap();
        std::fs::write(top.join("src/main.rs"), "").unwrap();
        let handle = std::fs::File::open(&top).unwrap();
        let near = |name: &str, rest: &str| {
            near_paths(handle.as_fd(), &top, OsStr::new(name), Path::new(rest))
        };
        assert_eq!(near("scr", "main.rs"), [Path::new("src/main.rs")]);
        assert_eq!(near("app", "src/main.rs"), [Path::new("src/main.rs")]);
        assert_eq!(near("sr", "none.rs"), [Path::new("src"), Path::new("srv")]);
        assert_eq!(near(r"src\main.rs", ""), [Path::new("src/main.rs")]);
        for (name, rest) in [("`src", "main.rs`"), ("'src", "main.rs'"), ("\"src", "main.rs\"")] {
            assert_eq!(near(name, rest), [Path::new("src/main.rs")]);
        }
        assert_eq!(near("`src`", ""), [Path::new("src")]);
        assert_eq!(near("`src", "none.rs`"), [Path::new("src")]);
        assert!(near("app", "none.rs").is_empty() && near("app", "").is_empty());
    }
}
