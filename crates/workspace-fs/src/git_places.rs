//! Where git keeps what it runs, and what says where that is: the places that a person's own
//! `git status` trusts. Everything that this project knows of git's layout is here.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Dir, FileType, Mode, OFlags};

use super::resolve::{HANDLE, open_beneath};
use super::roots::lexically_clean;

/// The name of a repository's git directory in its working tree, or of a file that names it.
pub(super) const DOT_GIT: &str = ".git";

/// The longest `.git` or `commondir` file that is read: a path and what stands before it.
const POINTER_BYTES: usize = 4096 + 16;

/// How many entries of all `worktrees` of a repository are looked at, how many below all `modules`, and how
/// deep a submodule's name may lead. Names of submodules hold slashes, so a directory there may only lead to
/// others.
const MOST_WORKTREES: usize = 256;
const MOST_MODULES: usize = 256;
const DEEPEST_MODULE: usize = 8;

/// Which of the places a git directory has. What is wanted first where there is room for some only is the
/// lowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// All of them: a repository's.
    Whole,
    /// All of them: a submodule's.
    Module,
    /// Those of a worktree, which takes the rest from its repository.
    Worktree,
}

impl Part {
    /// The files, relative to the git directory.
    ///
    /// `commondir` is one of them: where it exists, git takes `config` and `hooks` from the directory
    /// that it names (gitrepository-layout(5)).
    pub(super) fn files(self) -> &'static [&'static str] {
        match self {
            Part::Whole | Part::Module => {
                &["config", "config.worktree", "commondir", "info/attributes"]
            }
            Part::Worktree => &["config.worktree", "commondir"],
        }
    }

    /// The directory of hooks.
    pub(super) fn hooks(self) -> Option<&'static str> {
        match self {
            Part::Whole | Part::Module => Some("hooks"),
            Part::Worktree => None,
        }
    }

    /// The directories in it that lead to places.
    pub(super) fn ways(self) -> &'static [&'static str] {
        match self {
            Part::Whole | Part::Module => &["info", "modules", "worktrees"],
            Part::Worktree => &[],
        }
    }
}

/// A git directory beneath one of several directories that are open.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GitDirectory {
    pub(super) part: Part,
    /// Which of them.
    pub(super) top: usize,
    /// Its path from there.
    pub(super) path: PathBuf,
}

/// An open directory, and its absolute path without links.
pub(super) struct Top<'a> {
    pub(super) directory: BorrowedFd<'a>,
    pub(super) path: &'a Path,
}

/// The file whose presence makes a directory a bare repository, with `objects` and `refs` beside it.
pub(super) const HEAD: &str = "HEAD";

/// Whether a path, relative to a root, is the root's own `.git`, or git's own in it. Case is ignored: some
/// file systems ignore it.
pub(super) fn is_gits_of_root(inside: &Path) -> bool {
    let mut names = inside.components();
    names.next().is_some_and(|first| is(first.as_os_str(), DOT_GIT)) && is_gits(names.as_path())
}

/// Whether a path, relative to a git directory, is git's own. All of it is, but for what a person edits
/// there: with a broken `HEAD` or without its `objects`, git takes the directory above for a repository.
pub(super) fn is_gits(inside: &Path) -> bool {
    let mut names = inside.components();
    let of_worktree = names.next().is_some_and(|first| first.as_os_str() == "worktrees")
        && names.next().is_some();
    let inside = if of_worktree { names.as_path() } else { inside };
    let messages = ["COMMIT_EDITMSG", "MERGE_MSG", "SQUASH_MSG"];
    let is_edited = messages.iter().any(|name| inside == Path::new(name))
        || inside == Path::new("info/exclude")
        || inside.strip_prefix("rebase-merge").is_ok_and(|name| name.components().count() == 1);
    !is_edited
}

/// Whether a path, relative to a git directory, is one of the places or lies in one.
pub(super) fn is_place(inside: &Path) -> bool {
    let names: Vec<&OsStr> = inside.components().map(Component::as_os_str).collect();
    let at = |index: usize, name: &str| names.get(index).is_some_and(|found| is(found, name));
    let rest = |from: usize| names[from..].iter().collect::<PathBuf>();
    ["config", "config.worktree", "commondir", "hooks"].iter().any(|name| at(0, name))
        || (at(0, "info") && at(1, "attributes"))
        || (at(0, "worktrees") && names.len() > 2 && is_place(&rest(2)))
        || (at(0, "modules") && (2..names.len()).any(|from| is_place(&rest(from))))
}

/// Whether an entry of `hooks` is one of those that `git init` puts there as examples, and git never runs.
pub(super) fn is_sample(name: &OsStr) -> bool {
    name.as_bytes().ends_with(b".sample")
}

fn is(found: &OsStr, name: &str) -> bool {
    found.as_bytes().eq_ignore_ascii_case(name.as_bytes())
}

/// What `.git` in a root's top leads to.
enum DotGit {
    Directory,
    /// The path that a file or a link names, taken from the root.
    Elsewhere(PathBuf),
    Nothing,
}

/// The git directories of the first `roots` of `tops`, with their worktrees and submodules, as far as
/// they lie beneath one of `tops`. Nothing else is walked.
pub(super) fn directories(tops: &[Top<'_>], roots: usize) -> Vec<GitDirectory> {
    let mut found = Vec::new();
    for (index, root) in tops.iter().enumerate() {
        if index >= roots {
            // A repository of a root, outside of every root.
            add_repository(tops, index, PathBuf::new(), &mut found);
            continue;
        }
        match dot_git(root) {
            DotGit::Nothing => {}
            DotGit::Directory => add_repository(tops, index, DOT_GIT.into(), &mut found),
            DotGit::Elsewhere(target) => {
                if let Some((top, path)) = locate(tops, &target) {
                    let directory = open(&tops[top], &path);
                    let common =
                        directory.ok().and_then(|directory| common_of(&directory, &target));
                    let Some(common) = common else {
                        add_repository(tops, top, path, &mut found);
                        continue;
                    };
                    found.push(GitDirectory { top, path, part: Part::Worktree });
                    if let Some((top, path)) = locate(tops, &common) {
                        add_repository(tops, top, path, &mut found);
                    }
                }
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

/// The repository that a root's `.git` file or link leads to, as an absolute path.
pub(super) fn elsewhere(root: &Top<'_>) -> Option<PathBuf> {
    let DotGit::Elsewhere(target) = dot_git(root) else { return None };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(&target, flags, Mode::empty()).ok()?;
    Some(common_of(&directory, &target).unwrap_or(target))
}

fn dot_git(root: &Top<'_>) -> DotGit {
    let Ok(handle) = rustix::fs::openat(root.directory, DOT_GIT, HANDLE, Mode::empty()) else {
        return DotGit::Nothing;
    };
    let Ok(stat) = rustix::fs::fstat(&handle) else { return DotGit::Nothing };
    let target = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => return DotGit::Directory,
        FileType::Symlink => rustix::fs::readlinkat(&handle, "", Vec::new())
            .ok()
            .map(|target| PathBuf::from(OsStr::from_bytes(target.as_bytes()))),
        FileType::RegularFile => read_short(root.directory, DOT_GIT).and_then(|text| {
            let target = text.strip_prefix(b"gitdir:")?.trim_ascii();
            Some(PathBuf::from(OsStr::from_bytes(target)))
        }),
        _ => None,
    };
    match target.filter(|target| !target.as_os_str().is_empty()) {
        Some(target) => {
            // As git goes there: through further links.
            let named = root.path.join(target);
            let real = rustix::fs::open(&named, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
                .ok()
                .and_then(|handle| super::roots::path_of(handle.as_fd()).ok());
            DotGit::Elsewhere(real.unwrap_or_else(|| lexically_clean(&named)))
        }
        None => DotGit::Nothing,
    }
}

/// The directory that a worktree's git directory takes its settings from.
fn common_of(directory: impl AsFd, path: &Path) -> Option<PathBuf> {
    let text = read_short(directory.as_fd(), "commondir")?;
    let common = Path::new(OsStr::from_bytes(text.trim_ascii())).to_owned();
    Some(lexically_clean(&path.join(common)))
}

fn read_short(directory: BorrowedFd<'_>, name: &str) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(directory, name, flags, Mode::empty()).ok()?;
    let mut text = vec![0; POINTER_BYTES];
    let mut filled = 0;
    while filled < text.len() {
        match rustix::io::read(&file, &mut text[filled..]).ok()? {
            0 => break,
            more => filled += more,
        }
    }
    text.truncate(filled);
    Some(text)
}

/// Where an absolute path lies beneath `tops`: in the innermost one.
fn locate(tops: &[Top<'_>], path: &Path) -> Option<(usize, PathBuf)> {
    let inside = tops.iter().enumerate().filter_map(|(index, top)| {
        path.strip_prefix(top.path).ok().map(|rest| (index, rest.to_owned()))
    });
    inside.min_by_key(|(_, rest)| rest.as_os_str().len())
}

pub(super) fn open(top: &Top<'_>, path: &Path) -> rustix::io::Result<std::os::fd::OwnedFd> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    open_beneath(top.directory, path, HANDLE | OFlags::DIRECTORY)
}

/// A repository's git directory, its worktrees and its submodules.
fn add_repository(tops: &[Top<'_>], top: usize, path: PathBuf, found: &mut Vec<GitDirectory>) {
    let mut left = Left { worktrees: MOST_WORKTREES, modules: MOST_MODULES };
    add_whole(tops, GitDirectory { top, path, part: Part::Whole }, &mut left, found);
}

/// How many more entries are looked at. Many of one kind hide none of the other.
struct Left {
    worktrees: usize,
    modules: usize,
}

fn add_whole(
    tops: &[Top<'_>],
    whole: GitDirectory,
    left: &mut Left,
    found: &mut Vec<GitDirectory>,
) {
    let top = whole.top;
    let worktrees = whole.path.join("worktrees");
    for name in subdirectories(&tops[top], &worktrees, &mut left.worktrees) {
        found.push(GitDirectory { top, path: worktrees.join(name), part: Part::Worktree });
    }
    let modules = whole.path.join("modules");
    found.push(whole);
    add_modules(tops, top, &modules, DEEPEST_MODULE, left, found);
}

fn add_modules(
    tops: &[Top<'_>],
    top: usize,
    within: &Path,
    deeper: usize,
    left: &mut Left,
    found: &mut Vec<GitDirectory>,
) {
    for name in subdirectories(&tops[top], within, &mut left.modules) {
        let path = within.join(name);
        let is_repository = open(&tops[top], &path).is_ok_and(|directory| {
            ["HEAD", "config"].iter().any(|name| {
                let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
                rustix::fs::statat(&directory, *name, flags).is_ok()
            })
        });
        if is_repository {
            add_whole(tops, GitDirectory { top, path, part: Part::Module }, left, found);
        } else if deeper > 1 {
            add_modules(tops, top, &path, deeper - 1, left, found);
        }
    }
}

/// The directories in a directory, at most `left` of them; none where it is missing.
fn subdirectories(top: &Top<'_>, path: &Path, left: &mut usize) -> Vec<PathBuf> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(directory) = open_beneath(top.directory, path, flags) else { return Vec::new() };
    let Ok(entries) = Dir::new(directory) else { return Vec::new() };
    let mut names = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name().to_bytes();
        // What a file system does not tell the kind of is looked at when it is opened.
        let may_be = matches!(entry.file_type(), FileType::Directory | FileType::Unknown);
        if !may_be || name == b"." || name == b".." {
            continue;
        }
        if *left == 0 {
            break;
        }
        *left -= 1;
        names.push(PathBuf::from(OsStr::from_bytes(name)));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gits_is_known_by_name() {
        for place in [
            ".git",
            ".git/config",
            ".GIT/Config",
            ".git/config.worktree",
            ".git/commondir",
            ".git/hooks",
            ".git/hooks/deep/er",
            ".git/info/attributes",
            ".git/worktrees/w/config.worktree",
            ".git/worktrees/w/commondir",
            ".git/modules/m/config",
            ".git/modules/a/b/hooks/post-checkout",
            ".git/modules/m/modules/n/info/attributes",
            ".git/HEAD",
            ".git/objects/x",
            ".git/refs/heads/hooks",
            ".git/index",
            ".git/config.lock",
            ".git/worktrees/w/HEAD",
            ".git/worktrees/w",
            ".git/modules/m/HEAD",
            ".git/rebase-merge",
        ] {
            assert!(is_gits_of_root(Path::new(place)), "{place}");
        }
        for other in [
            "config",
            ".gitignore",
            "sub/.git/config",
            ".git/info/exclude",
            ".git/COMMIT_EDITMSG",
            ".git/worktrees/w/MERGE_MSG",
            ".git/rebase-merge/git-rebase-todo",
        ] {
            assert!(!is_gits_of_root(Path::new(other)), "{other}");
        }
        assert!(is_place(Path::new("hooks/x")) && !is_place(Path::new("HEAD")));
    }
}
