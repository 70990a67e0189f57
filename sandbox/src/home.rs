//! The HOME of commands: a directory of the jail's own, in which what is granted of the operator's home is
//! shown.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, SeekFrom, openat, seek, unlinkat};

use crate::approach;
use crate::beneath::{self, InTheWay, kind, status};
use crate::grants::Grants;
use crate::private::remove::each;
use crate::private::{PrivateDirs, PrivateError, Sharing, enter};
use crate::rights::Rights;

pub(crate) use overlay::Linking;
pub use overlay::{Overlay, PREFIX};

mod overlay;

/// `HOME` of commands: a writable directory that holds what is granted of the operator's home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    /// Its path, as commands name it. At the full level that is the path of the operator's home.
    pub path: PathBuf,
    /// Where it lies on the machine.
    pub at: PathBuf,
    /// How long what commands write there lasts.
    pub lifetime: Lifetime,
    /// Whether other jails may have it at the same time.
    pub sharing: Sharing,
    /// What is shown in it of the operator's home, as commands name it. Whatever else is in it, commands
    /// may have written.
    pub shown: Vec<PathBuf>,
    /// Directories that commands may write and that hold links to what is granted of the operator's.
    pub overlays: Vec<Overlay>,
}

/// How long something lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// It is there for the next jail of the same rights.
    Kept,
    /// It ends with the jail.
    Jail,
}

impl Home {
    pub(crate) fn new(path: PathBuf, shown: Vec<PathBuf>, dirs: &PrivateDirs) -> Self {
        let (lifetime, sharing) = match dirs.kept() {
            Some(kept) => (Lifetime::Kept, kept.sharing),
            None => (Lifetime::Jail, Sharing::First),
        };
        Self { path, at: dirs.home(), lifetime, sharing, shown, overlays: Vec::new() }
    }

    /// Makes the overlays in HOME, `top`. They may be thousands of entries, so it is left until a jail
    /// that commands run in has this HOME, and then to a thread.
    pub(crate) fn add_overlays(&mut self, grants: &Grants, top: &TopOfHome) -> Option<Linking> {
        let handle = top.handle.lock().unwrap_or_else(PoisonError::into_inner);
        let (overlays, links) = overlay::make(grants, &handle).ok()?;
        self.overlays = overlays;
        Some(links.make())
    }
}

/// Everything in HOME is written by commands, and may be in the way of what is to be shown there.
fn anywhere() -> InTheWay<'static> {
    InTheWay::SetAsideBelow(Path::new(""))
}

/// Makes a directory at the top of HOME.
pub(crate) fn add(dirs: &PrivateDirs, name: &str) -> Result<(), PrivateError> {
    let home = dirs.home_handle()?;
    let made = beneath::directory(home.as_fd(), Path::new(name), anywhere());
    made.map(drop)
        .map_err(|source| PrivateError { path: dirs.home().join(name), source: source.into() })
}

/// What mounts show of the operator's home.
pub(crate) fn mounted(grants: &Grants, home: &Path) -> Vec<PathBuf> {
    let granted = grants.commands.iter().filter(|grant| grant.rights != Rights::List);
    let paths = granted.map(|grant| &grant.path).chain(grants.links.keys());
    paths.filter(|path| path.starts_with(home)).cloned().collect()
}

/// Fills HOME with links to what the policy grants of the operator's home directory, `real`. A directory
/// that only leads to what the policy names is a link too: there is nothing to write in it. Returns the
/// links' paths within HOME.
pub(crate) fn link(
    grants: &Grants,
    real: &Path,
    dirs: &PrivateDirs,
) -> Result<BTreeSet<PathBuf>, PrivateError> {
    let granted = grants.commands.iter().filter(|grant| grant.rights != Rights::List);
    let mut paths: Vec<PathBuf> = granted.map(|grant| grant.path.clone()).collect();
    paths.extend(grants.links.keys().cloned());
    paths.extend(grants.named.iter().filter_map(|path| approach::first(real, Some(real), path)));
    paths.sort();
    let mut links: BTreeMap<PathBuf, PathBuf> = BTreeMap::new();
    for path in paths {
        let Ok(within) = path.strip_prefix(real) else { continue };
        // What a link shows already, or HOME itself.
        let shown = within.ancestors().any(|above| links.contains_key(above));
        if !shown && within != Path::new("") {
            links.insert(within.to_owned(), path);
        }
    }
    let home = dirs.home_handle()?;
    for (within, target) in &links {
        let failed = |source: rustix::io::Errno| PrivateError {
            path: dirs.home().join(within),
            source: source.into(),
        };
        beneath::link(home.as_fd(), within, target, anywhere()).map_err(failed)?;
    }
    remove_stale(&home, real, &links);
    Ok(links.into_keys().collect())
}

/// Removes links to what an earlier jail showed and this one does not: they would keep a command from
/// making a file of its own there.
fn remove_stale(home: &OwnedFd, real: &Path, links: &BTreeMap<PathBuf, PathBuf>) {
    let mut within: BTreeSet<&Path> = links.keys().filter_map(|link| link.parent()).collect();
    within.extend([Path::new(""), Path::new(".cargo"), Path::new(".config/git")]);
    for directory in within {
        let found = beneath::find(home.as_fd(), directory);
        let Ok(at) = found.and_then(|found| enter(found, ".")) else { continue };
        let mut stale = Vec::new();
        // What cannot be listed is no directory of links.
        let _ = each(&at, |name| {
            let link = directory.join(OsStr::from_bytes(name.to_bytes()));
            let is_ours = || {
                let name = OsStr::from_bytes(name.to_bytes());
                beneath::leads_to(&at, name, &real.join(&link))
            };
            if !links.contains_key(&link) && is_ours() {
                stale.push(name.to_owned());
            }
            Ok(())
        });
        for name in stale {
            let _ = unlinkat(&at, name.as_c_str(), AtFlags::empty());
        }
    }
}

/// The top of a HOME, held open: a thread that may not open it can still list it.
#[derive(Debug)]
pub(crate) struct TopOfHome {
    /// Its position is that of one listing at a time.
    handle: Mutex<OwnedFd>,
}

/// The most entries that are listed.
const MOST_LISTED: usize = 1000;

impl TopOfHome {
    pub(crate) fn new(handle: OwnedFd) -> Self {
        Self { handle: Mutex::new(handle) }
    }

    /// The names there that do not begin with a dot. `None` where there are too many, or the directory
    /// cannot be read.
    pub(crate) fn names(&self) -> Option<BTreeSet<OsString>> {
        let handle = self.handle.lock().unwrap_or_else(PoisonError::into_inner);
        seek(&*handle, SeekFrom::Start(0)).ok()?;
        let mut buffer = [MaybeUninit::uninit(); 8192];
        let mut entries = RawDir::new(&*handle, &mut buffer);
        let (mut names, mut seen) = (BTreeSet::new(), 0);
        while let Some(entry) = entries.next() {
            let entry = entry.ok()?;
            seen += 1;
            if seen > MOST_LISTED {
                return None;
            }
            let name = entry.file_name().to_bytes();
            if !name.starts_with(b".") {
                names.insert(OsStr::from_bytes(name).to_owned());
            }
        }
        Some(names)
    }

    /// Whether an entry is a directory with a file `.git`, as a worktree of git's is.
    pub(crate) fn is_worktree(&self, name: &OsStr) -> bool {
        let handle = self.handle.lock().unwrap_or_else(PoisonError::into_inner);
        let looked = || -> io::Result<bool> {
            // A handle like this needs no right to the file that it leads to.
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let entry = openat(&*handle, CString::new(name.as_bytes())?, flags, Mode::empty())?;
            let found = status(&entry, OsStr::new(".git"))?;
            Ok(kind(&found) == FileType::RegularFile)
        };
        looked().unwrap_or(false)
    }
}
