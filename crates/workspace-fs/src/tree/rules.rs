//! Ignore files: which rules hold in a directory, and what they say of an entry.
//!
//! As in ripgrep: `.rgignore` before `.ignore` before `.gitignore` before `.git/info/exclude`, and of
//! one kind the file nearest to the entry before those above it. They hold with or without a git
//! repository; but git's own two are not looked for above the directory that holds a `.git`, because
//! what lies above a repository is not part of it.
//!
//! Nothing outside the root is read. A link in place of an ignore file is not followed, as git
//! does not follow it either.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::directory::OPENING;
use super::selection::IgnoreRules;
use crate::{FileKind, FileStat};

/// The rules of one directory that has any, and of those above it.
#[derive(Debug)]
pub(super) struct Rules {
    above: Option<Arc<Rules>>,
    /// How much of a path lies before the part that these rules are about.
    offset: usize,
    files: [Option<Gitignore>; KINDS],
    /// Whether the directory is the top of a git repository.
    is_repository: bool,
    /// How many bytes of ignore files these rules and those above came from.
    bytes: usize,
}

/// Which names of ignore files a directory has.
#[derive(Clone, Copy, Default)]
pub(super) struct Names {
    present: [bool; KINDS],
}

const KINDS: usize = 4;
const NAMES: [&str; KINDS] = [".rgignore", ".ignore", ".gitignore", ".git"];
/// Of these kinds and those behind them, only those inside the repository count.
const GIT: usize = 2;
const EXCLUDE: usize = 3;

/// What is read of an ignore file, and of all those that hold in one directory. Rules behind that
/// do not count, which is reported: anybody who writes into a tree could make its rules take any
/// memory, because a rule takes up to a thousand times its length once it is compiled.
pub const MOST_RULE_BYTES: RuleBytes = RuleBytes { of_one: 128 * 1024, in_all: 256 * 1024 };
/// How many rules are taken of an ignore file. Nothing stops them while they are compiled.
pub const MOST_RULES: usize = 4096;

/// Sizes in bytes.
#[derive(Clone, Copy, Debug)]
pub struct RuleBytes {
    /// Of one ignore file.
    pub of_one: usize,
    /// Of all ignore files that hold in one directory.
    pub in_all: usize,
}

impl Names {
    pub(super) fn note(&mut self, name: &[u8]) {
        if name.starts_with(b".")
            && let Some(kind) = NAMES.iter().position(|known| known.as_bytes() == name)
        {
            self.present[kind] = true;
        }
    }

    /// For a directory that is not listed: any of them may be there.
    pub(super) fn unknown() -> Self {
        Self { present: [true; KINDS] }
    }
}

impl Rules {
    /// The rules that hold for the entries of a directory whose path has this length, and of how many
    /// ignore files of the directory's own they are not all.
    pub(super) fn of_directory(
        directory: &OwnedFd,
        names: Names,
        path_len: usize,
        above: Option<Arc<Rules>>,
        mode: IgnoreRules,
    ) -> (Option<Arc<Rules>>, u32) {
        if mode == IgnoreRules::Disregard || !names.present.contains(&true) {
            return (above, 0);
        }
        let mut files = [const { None }; KINDS];
        let mut bytes = above.as_ref().map_or(0, |above| above.bytes);
        let mut cut = 0;
        let mut take = |directory: &OwnedFd, name: &str| {
            let capacity = MOST_RULE_BYTES.in_all.saturating_sub(bytes);
            let (text, extent) = read_beneath(directory, name, capacity)?;
            bytes += text.len();
            let (rules, count) = parse(&text);
            cut += u32::from(extent == Extent::Cut || count > MOST_RULES);
            rules
        };
        for kind in (0..EXCLUDE).filter(|kind| names.present[*kind]) {
            files[kind] = take(directory, NAMES[kind]);
        }
        let mut is_repository = false;
        if names.present[EXCLUDE] {
            is_repository = exists(directory, NAMES[EXCLUDE]);
            files[EXCLUDE] = info_directory(directory).and_then(|info| take(&info, "exclude"));
        }
        if files.iter().all(Option::is_none) && (!is_repository || above.is_none()) {
            return (above, cut);
        }
        let offset = if path_len == 0 { 0 } else { path_len + 1 };
        (Some(Arc::new(Self { above, offset, files, is_repository, bytes })), cut)
    }

    /// Whether the rules leave out the entry at `path`.
    pub(super) fn ignore(&self, path: &[u8], is_directory: bool) -> bool {
        let mut said: [Option<bool>; KINDS] = [None; KINDS];
        let mut is_inside = true;
        let mut next = Some(self);
        while let Some(rules) = next {
            for (kind, file) in rules.files.iter().enumerate() {
                let counts = said[kind].is_none() && (is_inside || kind < GIT);
                if let (true, Some(file)) = (counts, file) {
                    said[kind] = match file.matched(as_path(&path[rules.offset..]), is_directory) {
                        Match::None => None,
                        Match::Ignore(_) => Some(true),
                        Match::Whitelist(_) => Some(false),
                    };
                }
            }
            if said[0].is_some() {
                break;
            }
            is_inside &= !rules.is_repository;
            next = rules.above.as_deref();
        }
        said.into_iter().flatten().next().unwrap_or(false)
    }
}

pub(super) fn as_path(bytes: &[u8]) -> &Path {
    use std::os::unix::ffi::OsStrExt;
    Path::new(std::ffi::OsStr::from_bytes(bytes))
}

/// The rules in the text of an ignore file, and how many there are, with those for which there is no
/// room. One that cannot be understood is passed over, as git does.
fn parse(text: &[u8]) -> (Option<Gitignore>, usize) {
    // Paths are given relative to the directory of the file.
    let mut builder = GitignoreBuilder::new("");
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let lines = text.split(|byte| *byte == b'\n');
    let lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let is_rule = |line: &&[u8]| !line.is_empty() && !line.starts_with(b"#");
    let mut count = 0;
    for line in lines.filter(is_rule) {
        count += 1;
        if count > MOST_RULES {
            break;
        }
        if let Ok(line) = std::str::from_utf8(line) {
            let _ = builder.add_line(None, line);
        }
    }
    (builder.build().ok().filter(|rules| !rules.is_empty()), count)
}

fn exists(directory: &OwnedFd, name: &str) -> bool {
    rustix::fs::statat(directory, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

/// Where the repository's own ignore file lies. Where `.git` is a file, the repository lies elsewhere.
fn info_directory(directory: &OwnedFd) -> Option<OwnedFd> {
    let git = rustix::fs::openat(directory, ".git", OPENING, Mode::empty()).ok()?;
    rustix::fs::openat(&git, "info", OPENING, Mode::empty()).ok()
}

/// How much of an ignore file was read.
#[derive(Clone, Copy, PartialEq)]
enum Extent {
    Whole,
    Cut,
}

/// An ignore file, or as many whole lines of it as fit.
fn read_beneath(directory: &OwnedFd, name: &str, capacity: usize) -> Option<(Vec<u8>, Extent)> {
    let most = capacity.min(MOST_RULE_BYTES.of_one);
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(directory, name, flags, Mode::empty()).ok()?;
    if FileStat::of(&file).ok()?.kind != FileKind::Regular {
        return None;
    }
    let mut text = Vec::new();
    let mut piece = [0; 8192];
    while text.len() <= most {
        match rustix::io::read(file.as_fd(), &mut piece) {
            Ok(0) => return Some((text, Extent::Whole)),
            Ok(count) => text.extend_from_slice(&piece[..count]),
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
    text.truncate(most);
    // Not the half of a rule.
    let end = text.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
    text.truncate(end);
    Some((text, Extent::Cut))
}
