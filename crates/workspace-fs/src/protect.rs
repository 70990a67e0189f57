//! Keeps the places from which a person's own git takes what it runs as they are while commands work in
//! the roots.
//!
//! Where the jail mounts a place read-only, nothing is to be done here but to see that the mount stands.
//! Every other place is remembered when a call begins, compared when it ends, and set back where it differs.
//! Calls that overlap share what the first of them remembered, so that none of them takes what another one
//! wrote for what was there. Calls of other providers share nothing: while they run, only what was seen
//! before them is set back.

mod beside;
mod finding;
mod item;
mod places;
mod providers;
mod refusal;
mod remember;
mod set_back;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::git_places::{self, DOT_GIT, GitDirectory};
use super::{Access, FileKind, FileStat, StateDirectory, Workspace};
use beside::Beside;
pub use finding::{Finding, Outcome};
use item::Item;
use places::{Kind, Place};
use providers::{Company, Locks};
use set_back::{Changed, give_owner_rights};

/// How many places are mounted at most: each takes a descriptor. The others are compared.
const MOST_MOUNTED: usize = 128;

/// How many git directories are known before those that are gone are forgotten: what comes back under its
/// old name has to be what it was.
const MOST_KNOWN: usize = 1024;

/// The protected places of a workspace.
#[derive(Debug)]
pub struct Protection {
    /// The writable roots, then git directories outside of them.
    tops: Vec<Top>,
    roots: usize,
    keep: Option<Arc<StateDirectory>>,
    /// Every git directory that was seen, also if there are too many to be found again.
    known: Mutex<BTreeSet<GitDirectory>>,
    /// Those that were there at the beginning, which are never forgotten.
    first: BTreeSet<GitDirectory>,
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
    /// Held while calls run.
    locks: Locks,
}

#[derive(Clone, Debug)]
enum Seen {
    /// The jail's mount of it stands, so no command can change it.
    Mounted,
    Found(Item),
    /// Seen while a command of another provider ran, which may have written it.
    Unsure {
        now: Item,
        /// What was there before that, where somebody looked.
        earlier: Option<Item>,
    },
    /// It could not be set back.
    Refused {
        wanted: Item,
        /// What was left there.
        found: Item,
    },
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
    /// Which roots and git directories outside have their paths.
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
        let (known, first) = Default::default();
        let mut protection = Self { tops, roots, keep: None, known, first, remembered };
        protection.first = protection.renew_known();
        Ok(protection)
    }

    /// Keeps what is found instead of a place's content in `keep`, and beside the place where that is absent.
    #[must_use]
    pub fn keeping_in(self, keep: Option<StateDirectory>) -> Self {
        Self { keep: keep.map(Arc::new), ..self }
    }

    /// The git directories outside of the roots that are protected too.
    pub fn outside(&self) -> impl Iterator<Item = &Path> {
        self.tops[self.roots..].iter().map(|top| top.path.as_path())
    }

    /// The places that exist and that no daily work of git removes, for the jail to mount read-only.
    #[must_use]
    pub fn to_mount(&self) -> Vec<PathBuf> {
        let known = self.renew_known();
        let exists = |place: &Place| match self.stat(place).map(|stat| stat.kind) {
            Some(FileKind::Regular) => true,
            Some(FileKind::Directory) => place.kind != Kind::DotGit,
            _ => false,
        };
        let places = self.places(&known).filter(Place::may_be_mounted).filter(exists);
        places.take(MOST_MOUNTED).map(|place| self.path(&place)).collect()
    }

    fn stat(&self, place: &Place) -> Option<FileStat> {
        let stat =
            rustix::fs::statat(self.parent(place)?, place.split().1, AtFlags::SYMLINK_NOFOLLOW)
                .ok()?;
        Some(FileStat::from_raw(&stat))
    }

    /// Remembers what is there before a call that runs in `cwd`.
    pub fn begin(&self, cwd: &Path, mounts: &dyn Mounts) -> Watched {
        let views = views(&self.tops);
        let mut state = self.state();
        let known = self.renew_known();
        let company = match &self.keep {
            Some(keep) => state.locks.hold(keep, self.repositories(&known)),
            None => Company::Alone,
        };
        if state.running == 0 {
            self.remember(&mut state, &known, company, mounts);
        } else {
            self.remember_more(&mut state, &known, company, mounts);
        }
        state.running += 1;
        state.locks.settle();
        drop(state);
        let roots = &views[..self.roots];
        let in_place = views.iter().map(is_in_place).collect();
        Watched { cwd: cwd.to_owned(), in_place, beside: Beside::of(roots, cwd) }
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
        // What leads to a place comes before it.
        let known = held(&self.known).clone();
        for place in self.places(&known) {
            let Some(before) = state.before.get_mut(&self.path(&place)) else { continue };
            self.compare(&place, before, mounts, &mut findings);
        }
        if state.running == 0 {
            state.locks.release();
        }
        drop(state);
        for (root, was_in_place) in views.iter().zip(watched.in_place) {
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
        let wanted = match before {
            Seen::Mounted => {
                if !mounts.stands(&path) {
                    findings.push(Finding { path, outcome: Outcome::ReplacedOutside });
                    *before = self.see(place, None, mounts);
                }
                return;
            }
            Seen::Unsure { now, earlier } => {
                let after = self.look(place);
                if earlier.as_ref().is_some_and(|earlier| earlier.is_same(&after)) {
                    *before = Seen::Found(after);
                } else if !now.is_same(&after) {
                    let why = io::Error::other(UNSURE);
                    findings
                        .push(Finding { path, outcome: Outcome::NotSetBack { why, kept: None } });
                    *now = after;
                }
                return;
            }
            Seen::Found(item) | Seen::Refused { wanted: item, .. } => item.clone(),
        };
        let after = self.look(place);
        match (&wanted, &after) {
            _ if wanted.is_same(&after) => return *before = Seen::Found(wanted),
            // What is in the new one is compared with what was in the old one.
            (Item::Folder { mode, .. }, Item::Folder { mode: found, .. })
                if mode & !found & 0o700 == 0 =>
            {
                return *before = Seen::Found(after);
            }
            (Item::Missing, Item::Folder { .. }) if place.kind == Kind::Way => {
                return *before = Seen::Found(after);
            }
            // What comes back there is compared with what was in it.
            (Item::Folder { .. }, Item::Missing) if place.kind == Kind::Way => return,
            (Item::Missing, _) if place.kind == Kind::DotGit => {
                findings.push(Finding { path, outcome: Outcome::Told });
                return *before = Seen::Found(after);
            }
            _ => {}
        }
        let parent = match self.parent(place) {
            Some(directory) => Ok(directory),
            None => self.make_parent(place),
        };
        // Its repository or worktree is gone: `.git` itself says that, or it was removed by git.
        let Ok(directory) = parent else { return };
        let mut done = self.set_back(place, &directory, &wanted, &after);
        let is_refused = |finding: &Finding| matches!(&finding.outcome, Outcome::NotSetBack { why, .. } if why.kind() == io::ErrorKind::PermissionDenied);
        if done.iter().any(is_refused) && give_owner_rights(directory.as_fd()).is_ok() {
            done = self.set_back(place, &directory, &wanted, &self.look(place));
        }
        let is_left = |finding: &Finding| matches!(finding.outcome, Outcome::NotSetBack { .. });
        if let (Item::Folder { .. }, Item::Missing) = (&wanted, &after)
            && let [finding] = &mut done[..]
            && is_left(finding)
        {
            finding.outcome = Outcome::Gone;
        }
        *before = match self.see(place, None, mounts) {
            Seen::Found(found) if done.iter().any(is_left) && !matches!(found, Item::Missing) => {
                Seen::Refused { wanted, found }
            }
            seen => seen,
        };
        findings.append(&mut done);
    }

    fn set_back(
        &self,
        place: &Place,
        directory: &OwnedFd,
        before: &Item,
        after: &Item,
    ) -> Vec<Finding> {
        let mut findings = Vec::new();
        let path = &self.path(place);
        let (directory, name) = (directory.as_fd(), place.split().1);
        let keep = self.keep.as_deref();
        Changed { directory, name, path, before, after, keep }.set_back(&mut findings);
        findings
    }

    fn see(&self, place: &Place, earlier: Option<&Seen>, mounts: &dyn Mounts) -> Seen {
        if mounts.stands(&self.path(place)) {
            return Seen::Mounted;
        }
        let now = self.look(place);
        match earlier {
            // Unless somebody outside has seen to it.
            Some(refused @ Seen::Refused { found, .. }) if found.is_same(&now) => refused.clone(),
            _ => Seen::Found(now),
        }
    }

    fn look(&self, place: &Place) -> Item {
        // Most places are missing: one look says so, whatever links are on the way.
        let top = &self.tops[place.top].directory;
        let found = rustix::fs::statat(top, &place.path, AtFlags::SYMLINK_NOFOLLOW);
        if matches!(found, Err(Errno::NOENT)) {
            return Item::Missing;
        }
        self.parent(place).map_or(Item::Missing, |directory| {
            Item::at(directory.as_fd(), place.split().1, place.depth())
        })
    }

    /// The directory that holds a place.
    fn parent(&self, place: &Place) -> Option<OwnedFd> {
        git_places::open(&self.tops[place.top].view(), place.split().0).ok()
    }

    /// Makes the directory that holds a place, in a git directory that is there.
    fn make_parent(&self, place: &Place) -> io::Result<OwnedFd> {
        let top = &self.tops[place.top].view();
        let directory = git_places::open(top, &place.within)?;
        let parent = place.split().0;
        if let Ok(inner) = parent.strip_prefix(&place.within) {
            rustix::fs::mkdirat(&directory, inner, Mode::from_raw_mode(0o755))?;
        }
        Ok(git_places::open(top, parent)?)
    }

    fn path(&self, place: &Place) -> PathBuf {
        self.tops[place.top].path.join(&place.path)
    }

    fn places(&self, known: &BTreeSet<GitDirectory>) -> impl Iterator<Item = Place> {
        places::all(self.roots, known)
    }

    /// The git directories that there are, with those that were known.
    fn renew_known(&self) -> BTreeSet<GitDirectory> {
        let views = views(&self.tops);
        let mut known = held(&self.known);
        // A worktree or a submodule that is gone may be forgotten, a repository is not.
        if known.len() > MOST_KNOWN {
            known.retain(|directory| {
                let GitDirectory { top, path, .. } = directory;
                path.ends_with(DOT_GIT)
                    || self.first.contains(directory)
                    || git_places::open(&views[*top], path).is_ok()
            });
        }
        known.extend(git_places::directories(&views, self.roots));
        known.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        held(&self.remembered.0)
    }
}

/// Why a change is only told.
const UNSURE: &str = "a command of another provider ran in this repository too, so what was there before \
                      is not known";

/// Whether a root's path still leads to it.
fn is_in_place(root: &git_places::Top<'_>) -> bool {
    let id =
        |stat: rustix::io::Result<rustix::fs::Stat>| stat.map(|stat| FileStat::from_raw(&stat).id);
    id(rustix::fs::stat(root.path)) == id(rustix::fs::fstat(root.directory))
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn views(tops: &[Top]) -> Vec<git_places::Top<'_>> {
    tops.iter().map(Top::view).collect()
}

impl Top {
    fn view(&self) -> git_places::Top<'_> {
        git_places::Top { directory: self.directory.as_fd(), path: &self.path }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests set up real files")]
mod tests;
