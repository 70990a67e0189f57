//! Directories of HOME that hold links to what is granted of the operator's. Programs keep what they get
//! from a network beside what is there already, and the operator's own directory is not theirs to write:
//! here they find the one and put the other.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use rustix::fs::{
    AtFlags, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, fstat, openat, symlinkat, unlinkat,
    utimensat,
};
use rustix::io::Errno;

use super::anywhere;
use crate::beneath;
use crate::grants::{Grants, matching};
use crate::policy::Network;
use crate::private::enter;
use crate::private::remove::each;
use crate::rights::Rights;

mod copy;
mod whole;

/// A directory of HOME with links to what a program has in one of the operator's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlay {
    /// Cargo's home: crates and the registries' indexes.
    Cargo,
    /// Npm's cache: packages.
    Npm,
    /// Pnpm's store: packages.
    Pnpm,
    /// Pnpm's cache: what a registry says of packages.
    PnpmCache,
    /// Rustup's home: toolchains.
    Rustup,
    /// The base of what a user installs for Python. Its modules name the operator's as the next place to
    /// look.
    Python,
    /// Uv's cache: packages, and what a registry says of them.
    Uv,
    /// Yarn's cache: packages.
    Yarn,
}

/// Where programs install what a command has them install, within HOME, if the usual place shows what the
/// operator has.
pub const PREFIX: &str = ".prefix";

/// A part of an operator's directory, with a `*` where a name ends in a version.
type Part = (&'static str, Entries);

/// What of a part is linked.
#[derive(Clone, Copy, Debug)]
enum Entries {
    /// The entries that lie so deep within it. Above them are directories of HOME's own. A file that lies
    /// higher is linked where it is.
    At(usize),
    /// The same, but a directory for which too few links are left is linked itself: to read what is there is
    /// worth more than to add to it.
    Shared(usize),
    /// All files below the directories in it: a program follows no link to a directory there. It takes one
    /// that is there for whole.
    Files,
    /// None: it is a file that a program writes in place. HOME has a copy, until the operator's is newer.
    Copied,
}
use Entries::{At, Copied, Files, Shared};

/// Where programs have a network: what they get comes beside what is there.
const WITH_NETWORK: [(Overlay, &str, &[Part]); 2] = [
    (
        Overlay::Cargo,
        ".cargo",
        &[
            ("config.toml", At(0)),
            ("config", At(0)),
            ("registry/cache", At(2)),
            ("registry/src", At(2)),
            ("registry/index", At(6)),
        ],
    ),
    (Overlay::Rustup, ".rustup", &[("settings.toml", At(0)), ("toolchains", At(1))]),
];
/// Where they have none. They write there even so: npm renews an index that it has read, uv builds the
/// project's own package, pnpm adds one of a local file.
const WITHOUT_NETWORK: [(Overlay, &str, &[Part]); 6] = [
    (Overlay::Npm, ".npm", &[("_cacache/content-v2", At(2)), ("_cacache/index-v5", At(3))]),
    (Overlay::PnpmCache, ".cache/pnpm", &[("metadata*", At(3)), ("v*/metadata*", At(3))]),
    (
        Overlay::Uv,
        ".cache/uv",
        &[
            ("archive-v*", Files),
            ("simple-v*", At(3)),
            ("wheels-v*/pypi", At(2)),
            ("wheels-v*/index", At(3)),
            ("sdists-v*/pypi", At(4)),
            ("sdists-v*/index", At(5)),
        ],
    ),
    (Overlay::Yarn, ".cache/yarn", &[("v6", At(1))]),
    (Overlay::Yarn, OF_ROOT, &[("v6", At(1))]),
    (
        Overlay::Pnpm,
        ".local/share/pnpm/store",
        &[("v*/files", Shared(2)), ("v*/index", Shared(2)), ("v*/index.db", Copied)],
    ),
];

/// Where Yarn has the cache of root, whose HOME it does not ask for.
const OF_ROOT: &str = "/usr/local/share/.cache/yarn";

/// The most links: it takes a jail's start to make them.
const MOST_LINKS: usize = 20_000;
/// When so few are left, a shared directory with more entries is linked itself.
const FEW_LINKS: usize = 2_000;

impl Overlay {
    /// Where it lies within HOME.
    #[must_use]
    pub fn path(self) -> &'static Path {
        Path::new(match self {
            Overlay::Cargo => ".prefix/cargo",
            Overlay::Npm => ".prefix/npm",
            Overlay::Pnpm => ".prefix/pnpm/store",
            Overlay::PnpmCache => ".prefix/cache/pnpm",
            Overlay::Rustup => ".prefix/rustup",
            Overlay::Python => PREFIX,
            Overlay::Uv => ".prefix/cache/uv",
            Overlay::Yarn => ".prefix/cache/yarn",
        })
    }
}

/// Makes the overlays that these grants call for, and says which links belong in them. What cannot be made is
/// missing, and programs get it from the network, or do without.
pub(super) fn make(grants: &Grants, home: &OwnedFd) -> io::Result<(Vec<Overlay>, Links)> {
    let mut links = Links {
        home: home.try_clone()?,
        parts: Vec::new(),
        left: MOST_LINKS,
        network: grants.network,
        stop: Arc::default(),
    };
    let Some(real) = &grants.home else { return Ok((Vec::new(), links)) };
    let mut made = Vec::new();
    let overlays: &[_] = match grants.network {
        Network::Allow => &WITH_NETWORK,
        Network::Deny => &WITHOUT_NETWORK,
    };
    let is_root = rustix::process::geteuid().is_root();
    for (overlay, of, parts) in overlays.iter().filter(|(_, of, _)| is_root || *of != OF_ROOT) {
        if links.add(grants, &real.join(of), overlay.path(), parts) && !made.contains(overlay) {
            made.push(*overlay);
        }
    }
    if made.contains(&Overlay::Pnpm) {
        let _ = write_new(home, Path::new(".config/pnpm"), "rc", PNPM);
    }
    if python(grants, real, home) {
        made.push(Overlay::Python);
    }
    Ok((made, links))
}

/// Settings of pnpm before its version 11, which has no variables for them that npm does not warn of. It
/// would install a hard link of a link, which leads to the operator's store, and have a store in the root
/// where it cannot make one.
const PNPM: &str = "package-import-method=clone-or-copy\ncache-dir=${HOME}/.prefix/cache/pnpm\n\
    store-dir=${HOME}/.prefix/pnpm/store\n";

/// The links of overlays, which may be thousands.
pub(crate) struct Links {
    home: OwnedFd,
    /// What of the operator's is linked, where in HOME, and what of it.
    parts: Vec<(PathBuf, PathBuf, Entries)>,
    left: usize,
    network: Network,
    stop: Arc<AtomicBool>,
}

/// A thread that makes links. Dropping this stops it.
#[derive(Debug)]
pub(crate) struct Linking {
    thread: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

impl Linking {
    /// Waits until all links are there.
    pub(crate) fn wait(mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Linking {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Links {
    /// Makes them, while the jail does other things.
    pub(crate) fn make(mut self) -> Linking {
        let stop = self.stop.clone();
        if self.parts.is_empty() {
            return Linking { thread: None, stop };
        }
        let thread = thread::Builder::new().name("home-links".to_owned());
        // Without a thread there are no links: programs do without.
        let thread = thread.spawn(move || {
            for (real, within, entries) in std::mem::take(&mut self.parts) {
                self.part(&real, &within, entries);
            }
        });
        Linking { thread: thread.ok(), stop }
    }

    /// Adds the parts of `real` at `within`. False where there is nothing of the operator's.
    fn add(&mut self, grants: &Grants, real: &Path, within: &Path, parts: &[Part]) -> bool {
        let Ok(real) = fs::canonicalize(real) else { return false };
        let before = self.parts.len();
        for &(pattern, entries) in parts {
            for part in matching(&real, pattern) {
                let Ok(target) = fs::canonicalize(real.join(&part)) else { continue };
                if is_readable(grants, &target) {
                    self.parts.push((target, within.join(part), entries));
                }
            }
        }
        // With a network they get what is missing there.
        let is_of_use = self.network == Network::Allow || self.parts.len() > before;
        is_of_use && beneath::directory(self.home.as_fd(), within, anywhere()).is_ok()
    }

    fn part(&mut self, real: &Path, within: &Path, entries: Entries) {
        if matches!(entries, Copied) {
            let _ = copy::renew(&self.home, real, within);
            return;
        }
        if matches!(entries, At(0)) || !real.is_dir() {
            // What a command made in its place stays.
            let _ = beneath::link(self.home.as_fd(), within, real, beneath::InTheWay::Refused);
            return;
        }
        let Ok(at) = beneath::directory(self.home.as_fd(), within, anywhere()) else { return };
        match entries {
            At(depth) => self.entries(real, &at, depth, false),
            Shared(depth) => self.entries(real, &at, depth, true),
            Files => self.whole(real, &at),
            Copied => {}
        }
    }

    /// Links what is in `real` at the same names in the directory `at`. That gets the time of `real`, so that
    /// one in which nothing changed is known again.
    fn entries(&mut self, real: &Path, at: &OwnedFd, depth: usize, is_shared: bool) {
        let Some(time) = Time::of(real) else { return };
        let is_linked = time.is_of(at);
        if (is_linked && depth == 1) || self.is_stopped() {
            return;
        }
        let mut deeper = Vec::new();
        for entry in fs::read_dir(real).into_iter().flatten().flatten() {
            let name = entry.file_name();
            // Those that may be linked themselves are few.
            if !is_shared || depth == 1 {
                let Some(left) = self.left.checked_sub(1) else { return };
                self.left = left;
            }
            if is_written(&name) {
                continue;
            }
            if depth > 1 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                deeper.push(name);
            } else if !is_linked {
                let _ = symlinkat(entry.path(), at, &name);
            }
        }
        if !is_linked {
            remove_dangling(at, real);
        }
        for name in deeper {
            let inner = real.join(&name);
            if is_shared && self.links_itself(&inner, at, &name) {
                continue;
            }
            if let Ok(at) = beneath::directory(at.as_fd(), Path::new(&name), anywhere()) {
                self.entries(&inner, &at, depth - 1, is_shared);
            }
        }
        time.set(at);
    }

    /// Whether a directory is linked itself, since its entries are too many.
    fn links_itself(&self, real: &Path, at: &OwnedFd, name: &OsStr) -> bool {
        let are_too_many =
            || self.left < FEW_LINKS && fs::read_dir(real).is_ok_and(|all| all.count() > self.left);
        beneath::leads_to(at, name, real) || (are_too_many() && symlinkat(real, at, name).is_ok())
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Whether programs write an entry in place: repositories (half of one in links would be none), locks, and
/// what is not ready.
fn is_written(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name == b".git" || name.ends_with(b".lock") || name.starts_with(b".tmp")
}

/// When the entries of a directory last changed.
struct Time(i64, i64);

impl Time {
    fn of(real: &Path) -> Option<Self> {
        fs::metadata(real).ok().map(|found| Self(found.mtime(), found.mtime_nsec()))
    }

    fn is_of(&self, at: &OwnedFd) -> bool {
        fstat(at).is_ok_and(|own| (own.st_mtime, own.st_mtime_nsec as i64) == (self.0, self.1))
    }

    fn set(&self, at: &OwnedFd) {
        let modified = Timespec { tv_sec: self.0, tv_nsec: self.1 };
        let times = Timestamps { last_access: UNCHANGED, last_modification: modified };
        let _ = utimensat(at, "", &times, AtFlags::EMPTY_PATH);
    }
}

const UNCHANGED: Timespec = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };

/// Removes links to what the operator no longer has: programs could not put anything there.
fn remove_dangling(at: &OwnedFd, real: &Path) {
    let Ok(listed) = enter(at, ".") else { return };
    let mut dangling = Vec::new();
    let _ = each(&listed, |name| {
        let entry = OsStr::from_bytes(name.to_bytes());
        let target = real.join(entry);
        if beneath::leads_to(at, entry, &target) && target.symlink_metadata().is_err() {
            dangling.push(name.to_owned());
        }
        Ok(())
    });
    for name in dangling {
        let _ = unlinkat(at, name.as_c_str(), AtFlags::empty());
    }
}

/// Lets each Python that looks for modules of the user's in HOME's own prefix look among the operator's
/// next. False where the operator has none, and nothing else is in the way of the usual place.
fn python(grants: &Grants, real: &Path, home: &OwnedFd) -> bool {
    let lib = real.join(".local/lib");
    let mut found = is_readable(grants, &real.join(".local/bin"));
    for entry in fs::read_dir(&lib).into_iter().flatten().flatten() {
        let packages = entry.path().join("site-packages");
        let is_python = entry.file_name().as_encoded_bytes().starts_with(b"python");
        if !is_python || !packages.is_dir() || !is_readable(grants, &packages) {
            continue;
        }
        found = true;
        let own = Path::new(PREFIX).join("lib").join(entry.file_name()).join("site-packages");
        if let Some(line) = next_place(&packages) {
            let _ = write_new(home, &own, "operator.pth", &line);
        }
    }
    found
}

/// A line of a path configuration file of Python's that adds a directory.
fn next_place(packages: &Path) -> Option<String> {
    let packages = packages.to_str()?;
    let plain = !packages.contains(['\'', '\\', '\n', '\r']);
    plain.then(|| format!("import site; site.addsitedir('{packages}')\n"))
}

/// Writes a file that is not there yet.
fn write_new(home: &OwnedFd, within: &Path, name: &str, text: &str) -> Result<(), Errno> {
    let at = beneath::directory(home.as_fd(), within, anywhere())?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = openat(&at, name, flags, Mode::from_raw_mode(0o644))?;
    rustix::io::write(&file, text.as_bytes()).map(drop)
}

/// Whether commands may read a path of the operator's.
fn is_readable(grants: &Grants, path: &Path) -> bool {
    let Ok(path) = fs::canonicalize(path) else { return false };
    let enough = [Rights::ReadExecute, Rights::ReadWrite];
    grants
        .commands
        .iter()
        .any(|grant| enough.contains(&grant.rights) && path.starts_with(&grant.path))
}
