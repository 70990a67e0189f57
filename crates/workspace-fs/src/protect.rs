//! Keeps the places from which a person's own git takes what it runs as they are while commands work in
//! the roots.
//!
//! Where the jail mounts a place read-only, nothing is to be done here but to see that the mount stands.
//! Every other place is remembered when a call begins, compared when it ends, and set back where it differs.
//! Calls that overlap share what the first of them remembered, so that none of them takes what another one
//! wrote for what was there.

mod beside;
mod finding;
mod item;
mod set_back;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::git_places::{self, DOT_GIT, GitDirectory, Part};
use super::{Access, FileKind, FileStat, ResolvedPath, StateDirectory, Target, Workspace};
use beside::Beside;
pub use finding::{Finding, Outcome};
use item::{Depth, Item};
use set_back::{Changed, now};

/// How many places are mounted at most: each takes a descriptor. The others are compared.
const MOST_MOUNTED: usize = 128;

/// The protected places of a workspace.
#[derive(Debug)]
pub struct Protection {
    /// The writable roots, then git directories outside of them.
    tops: Vec<Top>,
    roots: usize,
    keep: Option<StateDirectory>,
    /// Every git directory that was seen, also if there are too many to be found again.
    known: Mutex<BTreeSet<GitDirectory>>,
    remembered: Arc<Remembered>,
}

/// What was there before the calls that run. Configurations that follow one another share it: a call of
/// the new one must not take for granted what a call of the old one wrote.
#[derive(Debug, Default)]
pub struct Remembered(Mutex<State>);

/// A directory that everything beneath is opened from.
#[derive(Debug)]
struct Top {
    directory: OwnedFd,
    path: PathBuf,
}

#[derive(Debug, Default)]
struct State {
    /// How many calls run.
    running: usize,
    /// What was at each path when the first of the running calls began.
    before: BTreeMap<PathBuf, Seen>,
    /// What was replaced from outside since, and is to be told.
    replaced: Vec<PathBuf>,
}

/// A protected place: a name in a git directory, or `.git` in a root.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    top: usize,
    /// The git directory, or the root itself.
    within: PathBuf,
    name: &'static str,
}

#[derive(Clone, Debug)]
enum Seen {
    /// The jail's mount of it stands, so no command can change it.
    Mounted,
    Found(Item),
}

/// What keeps places read-only for commands, where anything does.
pub trait Mounts {
    /// Whether a mount of what is at this path now stands.
    fn stands(&self, path: &Path) -> bool;

    /// Mounts all of `paths` for later commands. False where that cannot be had.
    fn renew(&self, paths: &dyn Fn() -> Vec<PathBuf>) -> bool;
}

/// A call under way. What it began with is compared by [`Protection::end`].
#[derive(Debug)]
#[must_use = "a call that begins has to end"]
pub struct Watched {
    cwd: PathBuf,
    /// Which roots have their paths.
    in_place: Vec<bool>,
    beside: Beside,
}

impl Protection {
    /// Protects the writable roots of `workspace`, and their repositories where those lie in one of
    /// `more`: what commands, but not the file tools, may write.
    ///
    /// # Errors
    /// When a root's handle cannot be copied.
    pub fn of(
        workspace: &Workspace,
        more: &[PathBuf],
        remembered: Arc<Remembered>,
    ) -> io::Result<Self> {
        let mut tops = Vec::new();
        for root in workspace.roots().iter().filter(|root| root.access() == Access::ReadWrite) {
            let directory = root.directory().try_clone_to_owned()?;
            tops.push(Top { directory, path: root.path().to_owned() });
        }
        let roots = tops.len();
        let repositories: Vec<PathBuf> =
            views(&tops).iter().filter_map(git_places::elsewhere).collect();
        for path in repositories {
            let is_inside = |top: &Top| path.starts_with(&top.path);
            if tops.iter().any(is_inside) || !more.iter().any(|more| path.starts_with(more)) {
                continue;
            }
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            // One that cannot be opened is nothing that git could use.
            if let Ok(directory) = rustix::fs::open(&path, flags, Mode::empty()) {
                tops.push(Top { directory, path });
            }
        }
        let known = Mutex::default();
        let protection = Self { tops, roots, keep: None, known, remembered };
        protection.renew_known();
        Ok(protection)
    }

    /// Keeps what is found instead of a place's content in `keep`, and beside the place where that is absent.
    #[must_use]
    pub fn keeping_in(self, keep: Option<StateDirectory>) -> Self {
        Self { keep, ..self }
    }

    /// The git directories outside of the roots that are protected too.
    pub fn outside(&self) -> impl Iterator<Item = &Path> {
        self.tops[self.roots..].iter().map(|top| top.path.as_path())
    }

    /// The places that exist and that no daily work of git removes, for the jail to mount read-only.
    /// Worktrees are left out: `git worktree remove` removes theirs.
    #[must_use]
    pub fn to_mount(&self) -> Vec<PathBuf> {
        let known = self.renew_known();
        let places = self.places(&known).filter(|(_, part)| *part != Some(Part::Worktree));
        let exists = |place: &Place| match self.stat(place).map(|stat| stat.kind) {
            Some(FileKind::Regular) => true,
            Some(FileKind::Directory) => place.name != DOT_GIT,
            _ => false,
        };
        let places = places.map(|(place, _)| place).filter(exists).take(MOST_MOUNTED);
        places.map(|place| self.path(&place)).collect()
    }

    fn stat(&self, place: &Place) -> Option<FileStat> {
        let (directory, name) = self.parent(place)?;
        let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(FileStat::from_raw(&stat))
    }

    /// Remembers what is there before a call that runs in `cwd`.
    pub fn begin(&self, cwd: &Path, mounts: &dyn Mounts) -> Watched {
        let views = views(&self.tops);
        let mut state = self.state();
        if state.running == 0 {
            self.remember(&mut state, mounts);
        } else {
            self.remember_more(&mut state, mounts);
        }
        state.running += 1;
        drop(state);
        let roots = &views[..self.roots];
        let in_place = roots.iter().map(is_in_place).collect();
        Watched { cwd: cwd.to_owned(), in_place, beside: Beside::of(roots, cwd) }
    }

    /// Looks at every place, and has those mounted that are not and could be.
    fn remember(&self, state: &mut State, mounts: &dyn Mounts) {
        let known = self.renew_known();
        let views = views(&self.tops);
        let mut before = BTreeMap::new();
        let (mut mounted, mut unmounted) = (Vec::new(), Vec::new());
        let mut last = None;
        for (place, part) in self.places(&known) {
            let path = self.path(&place);
            let earlier = state.before.get(&path);
            let within = (place.top, place.within.clone());
            let is_there = match &last {
                Some((known, is_there)) if *known == within => *is_there,
                _ => git_places::open(&views[place.top], &place.within).is_ok(),
            };
            last = Some((within, is_there));
            let seen = match earlier {
                // What comes back there later is compared with what was.
                Some(earlier) if !is_there => earlier.clone(),
                _ => self.see(&place, earlier, mounts),
            };
            if mounted.len() + unmounted.len() < MOST_MOUNTED && part != Some(Part::Worktree) {
                match &seen {
                    Seen::Mounted => mounted.push(place.clone()),
                    Seen::Found(item) if item.is_mountable() && is_there => {
                        unmounted.push(place.clone());
                    }
                    Seen::Found(_) => {}
                }
            }
            before.insert(path, seen);
        }
        let paths = || mounted.iter().chain(&unmounted).map(|place| self.path(place)).collect();
        if !unmounted.is_empty() && mounts.renew(&paths) {
            for place in &unmounted {
                before.insert(self.path(place), self.see(place, None, mounts));
            }
        }
        state.before = before;
    }

    /// While other calls run: looks at what nobody has looked at, and compares from now on what something
    /// outside took the mount of. A running call can write there, with new mounts too.
    fn remember_more(&self, state: &mut State, mounts: &dyn Mounts) {
        let known = self.renew_known();
        let mut replaced = Vec::new();
        for (place, _) in self.places(&known) {
            let path = self.path(&place);
            match state.before.get(&path) {
                None => {
                    let seen = self.see(&place, None, mounts);
                    state.before.insert(path, seen);
                }
                Some(Seen::Mounted) if !mounts.stands(&path) => {
                    state.before.insert(path.clone(), Seen::Found(self.look(&place, None)));
                    replaced.push(path);
                }
                Some(_) => {}
            }
        }
        if !replaced.is_empty() {
            mounts.renew(&|| self.to_mount());
            state.replaced.append(&mut replaced);
        }
    }

    /// Compares what is there after a call, and sets back what differs.
    pub fn end(&self, watched: Watched, mounts: &dyn Mounts) -> Vec<Finding> {
        let views = views(&self.tops);
        let mut findings = Vec::new();
        let mut state = self.state();
        state.running = state.running.saturating_sub(1);
        for path in std::mem::take(&mut state.replaced) {
            findings.push(Finding { path, outcome: Outcome::ReplacedOutside });
        }
        // A root's `.git` comes before what is in it, which is found through it.
        let known = held(&self.known).clone();
        for (place, _) in self.places(&known) {
            let Some(before) = state.before.get_mut(&self.path(&place)) else { continue };
            let found = findings.len();
            self.compare(&place, before, mounts, &mut findings);
            if findings.len() > found {
                *before = self.see(&place, None, mounts);
            }
        }
        drop(state);
        for (root, was_in_place) in views[..self.roots].iter().zip(watched.in_place) {
            if was_in_place && !is_in_place(root) {
                findings.push(Finding { path: root.path.to_owned(), outcome: Outcome::Gone });
            }
        }
        let told = watched.beside.changed(&views[..self.roots], &watched.cwd);
        findings.extend(told.into_iter().map(|path| Finding { path, outcome: Outcome::Told }));
        findings
    }

    fn compare(
        &self,
        place: &Place,
        before: &mut Seen,
        mounts: &dyn Mounts,
        findings: &mut Vec<Finding>,
    ) {
        let path = self.path(place);
        let Seen::Found(item) = before else {
            if !mounts.stands(&path) {
                findings.push(Finding { path, outcome: Outcome::ReplacedOutside });
            }
            return;
        };
        let after = self.look(place, Some(item));
        if item.is_same(&after) {
            // Its stamp may have settled since.
            *item = after;
            return;
        }
        let told = match (&*item, &after) {
            // What is in the new one is compared with what was in the old one.
            (Item::Folder(_), Item::Folder(_)) => return *item = after,
            (Item::Missing, _) if place.name == DOT_GIT => Some(Outcome::Told),
            _ => None,
        };
        if let Some(outcome) = told {
            findings.push(Finding { path, outcome });
            return;
        }
        let parent = match self.parent(place) {
            Some((directory, _)) => Ok(directory),
            None => self.make_parent(place),
        };
        // Its repository or worktree is gone: `.git` itself says that, or it was removed by git.
        let Ok(directory) = parent else { return };
        let (_, name) = split(place);
        let (before, after) = (&*item, &after);
        let keep = self.keep.as_ref();
        let changed =
            Changed { directory: directory.as_fd(), name, path: &path, before, after, keep };
        let found = findings.len();
        changed.set_back(findings);
        let is_gone = |finding: &Finding| matches!(finding.outcome, Outcome::NotSetBack { .. });
        if let (Item::Folder(_), Item::Missing) = (before, after)
            && let [finding] = &mut findings[found..]
            && is_gone(finding)
        {
            finding.outcome = Outcome::Gone;
        }
    }

    fn see(&self, place: &Place, earlier: Option<&Seen>, mounts: &dyn Mounts) -> Seen {
        if mounts.stands(&self.path(place)) {
            return Seen::Mounted;
        }
        let earlier = match earlier {
            Some(Seen::Found(item)) => Some(item),
            _ => None,
        };
        Seen::Found(self.look(place, earlier))
    }

    fn look(&self, place: &Place, earlier: Option<&Item>) -> Item {
        // Most places are missing: one look says so, whatever links are on the way.
        let at = place.within.join(place.name);
        let top = &self.tops[place.top].directory;
        if matches!(rustix::fs::statat(top, at, AtFlags::SYMLINK_NOFOLLOW), Err(Errno::NOENT)) {
            return Item::Missing;
        }
        let parent = self.parent(place);
        let directory = parent.as_ref().map(|(directory, _)| directory.as_fd());
        let name = parent.as_ref().map_or(OsStr::new(place.name), |(_, name)| *name);
        now(directory, name, depth(place), earlier)
    }

    /// The directory that holds a place, and the place's name in it.
    fn parent(&self, place: &Place) -> Option<(OwnedFd, &'static OsStr)> {
        let top = &views(&self.tops)[place.top];
        let (within, name) = split(place);
        git_places::open(top, &within).ok().map(|directory| (directory, name))
    }

    /// Makes the directory that holds a place, in a git directory that is there.
    fn make_parent(&self, place: &Place) -> io::Result<OwnedFd> {
        let top = &views(&self.tops)[place.top];
        let (within, _) = split(place);
        let directory = git_places::open(top, &place.within)?;
        if let Ok(inner) = within.strip_prefix(&place.within) {
            rustix::fs::mkdirat(&directory, inner, Mode::from_raw_mode(0o755))?;
        }
        Ok(git_places::open(top, &within)?)
    }

    fn path(&self, place: &Place) -> PathBuf {
        self.tops[place.top].path.join(&place.within).join(place.name)
    }

    /// Every place of the git directories, and `.git` in each root.
    fn places(
        &self,
        known: &BTreeSet<GitDirectory>,
    ) -> impl Iterator<Item = (Place, Option<Part>)> {
        let of_roots = (0..self.roots).map(|top| {
            let place = Place { top, within: PathBuf::new(), name: DOT_GIT };
            (place, None)
        });
        let within = known.iter().flat_map(|GitDirectory { top, path, part }| {
            let names = part.files().iter().copied().chain(part.hooks());
            names.map(|name| (Place { top: *top, within: path.clone(), name }, Some(*part)))
        });
        of_roots.chain(within)
    }

    /// The git directories that there are, with those that were known.
    fn renew_known(&self) -> BTreeSet<GitDirectory> {
        let views = views(&self.tops);
        let mut known = held(&self.known);
        // A worktree or a submodule that is gone is forgotten, a repository is not.
        known.retain(|GitDirectory { top, path, .. }| {
            path.ends_with(DOT_GIT) || git_places::open(&views[*top], path).is_ok()
        });
        known.extend(git_places::directories(&views, self.roots));
        known.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        held(&self.remembered.0)
    }

    /// Whether a path is protected: by its name, or because it is the very file or directory.
    pub(super) fn covers(&self, resolved: &ResolvedPath<'_>) -> bool {
        let by_name = |(index, top): (usize, &Top)| {
            let inside = resolved.path.strip_prefix(&top.path);
            inside.is_ok_and(|inside| match index < self.roots {
                true => git_places::is_place_of_root(inside),
                false => git_places::is_place(inside),
            })
        };
        if self.tops.iter().enumerate().any(by_name) {
            return true;
        }
        let ids = [
            match &resolved.target {
                Target::Found { stat, .. } => Some(stat.id),
                Target::Missing { .. } => None,
            },
            resolved.directory().and_then(|directory| FileStat::of(directory).ok()).map(|s| s.id),
        ];
        let known = self.renew_known();
        self.places(&known).any(|(place, _)| {
            let is_repository = place.name == DOT_GIT;
            let stat = self.stat(&place);
            let id = stat.filter(|stat| !(is_repository && stat.kind == FileKind::Directory));
            id.is_some_and(|stat| ids.contains(&Some(stat.id)))
        }) || known.iter().any(|directory| {
            // A repository whose path is not that of its root's `.git`.
            let path = self.tops[directory.top].path.join(&directory.path);
            let inside = resolved.path.strip_prefix(&path);
            inside.is_ok_and(git_places::is_place)
        })
    }
}

/// Whether a root's path still leads to it.
fn is_in_place(root: &git_places::Top<'_>) -> bool {
    let id =
        |stat: rustix::io::Result<rustix::fs::Stat>| stat.map(|stat| FileStat::from_raw(&stat).id);
    id(rustix::fs::stat(root.path)) == id(rustix::fs::fstat(root.directory))
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn depth(place: &Place) -> Depth {
    if place.name == DOT_GIT { Depth::Itself } else { Depth::Entries }
}

/// The directory of a place, and its name there.
fn split(place: &Place) -> (PathBuf, &'static OsStr) {
    match place.name.rsplit_once('/') {
        Some((inner, name)) => (place.within.join(inner), OsStr::new(name)),
        None => (place.within.clone(), OsStr::new(place.name)),
    }
}

fn views(tops: &[Top]) -> Vec<git_places::Top<'_>> {
    tops.iter()
        .map(|top| git_places::Top { directory: top.directory.as_fd(), path: &top.path })
        .collect()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests set up real files")]
mod tests;
