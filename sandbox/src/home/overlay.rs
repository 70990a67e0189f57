//! Directories of HOME that hold links to what is granted of the operator's. Programs keep what they get
//! from a network beside what is there already, and the operator's own directory is not theirs to write:
//! here they find the one and put the other.

use std::ffi::OsStr;
use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, openat, symlinkat, unlinkat};
use rustix::io::Errno;

use super::anywhere;
use crate::beneath;
use crate::grants::{Grants, is_token};
use crate::policy::Network;
use crate::private::enter;
use crate::private::remove::each;
use crate::rights::Rights;

/// A directory of HOME with links to what a program has in one of the operator's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlay {
    /// Cargo's home: crates and the registries' indexes.
    Cargo,
    /// Npm's cache: packages.
    Npm,
    /// Rustup's home: toolchains.
    Rustup,
    /// The base of what a user installs for Python. Its modules name the operator's as the next place to
    /// look.
    Python,
}

/// Where programs install what a command has them install, within HOME, if the usual place shows what the
/// operator has.
pub const PREFIX: &str = ".prefix";

/// A part of an operator's directory, and how deep within it lie the entries that links lead to. Above them
/// are directories of HOME's own. A file that lies higher is linked where it is.
type Part = (&'static str, usize);

/// Where programs have a network: what they get comes beside what is there.
const WITH_NETWORK: [(Overlay, &str, &[Part]); 2] = [
    (
        Overlay::Cargo,
        ".cargo",
        &[
            ("config.toml", 0),
            ("config", 0),
            ("registry/cache", 2),
            ("registry/src", 2),
            ("registry/index", 6),
        ],
    ),
    (Overlay::Rustup, ".rustup", &[("settings.toml", 0), ("toolchains", 1)]),
];
/// Where they have none. They write there even so: npm renews an index that it has read, but no content.
const WITHOUT_NETWORK: [(Overlay, &str, &[Part]); 1] =
    [(Overlay::Npm, ".npm", &[("_cacache/content-v2", 2), ("_cacache/index-v5", 3)])];

/// The most links: it takes a jail's start to make them.
const MOST_LINKS: usize = 20_000;

impl Overlay {
    /// Where it lies within HOME.
    #[must_use]
    pub fn path(self) -> &'static Path {
        Path::new(match self {
            Overlay::Cargo => ".prefix/cargo",
            Overlay::Npm => ".prefix/npm",
            Overlay::Rustup => ".prefix/rustup",
            Overlay::Python => PREFIX,
        })
    }
}

/// Makes the overlays that these grants call for. What cannot be made is missing, and programs get it
/// from the network, or do without.
pub(super) fn make(grants: &Grants, home: &OwnedFd) -> Vec<Overlay> {
    let Some(real) = &grants.home else { return Vec::new() };
    let mut made = Vec::new();
    let overlays: &[_] = match grants.network {
        Network::Allow => &WITH_NETWORK,
        Network::Deny => &WITHOUT_NETWORK,
    };
    let mut links = Links { grants, home: home.as_fd(), left: MOST_LINKS };
    for (overlay, of, parts) in overlays {
        if links.parts(&real.join(of), overlay.path(), parts) {
            made.push(*overlay);
        }
    }
    if python(grants, real, home) {
        made.push(Overlay::Python);
    }
    made
}

struct Links<'a> {
    grants: &'a Grants,
    home: BorrowedFd<'a>,
    left: usize,
}

impl Links<'_> {
    /// Links the parts of `real` at `within`. False where there is nothing of the operator's.
    fn parts(&mut self, real: &Path, within: &Path, parts: &[Part]) -> bool {
        let Ok(real) = fs::canonicalize(real) else { return false };
        for &(part, depth) in parts {
            let Ok(target) = fs::canonicalize(real.join(part)) else { continue };
            if is_readable(self.grants, &target) {
                self.part(&target, &within.join(part), depth);
            }
        }
        beneath::directory(self.home, within, anywhere()).is_ok()
    }

    fn part(&mut self, real: &Path, within: &Path, depth: usize) {
        if depth == 0 || !real.is_dir() {
            // What a command made in its place stays.
            let _ = beneath::link(self.home, within, real, beneath::InTheWay::Refused);
            return;
        }
        if let Ok(at) = beneath::directory(self.home, within, anywhere()) {
            self.entries(real, &at, depth);
        }
    }

    /// Links what is in `real` at the same names in the directory `at`.
    fn entries(&mut self, real: &Path, at: &OwnedFd, depth: usize) {
        let mut deeper = Vec::new();
        for entry in fs::read_dir(real).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(left) = self.left.checked_sub(1) else { return };
            self.left = left;
            // A repository is written in place: half of it in links would be none.
            if name == ".git" || is_token(&name) {
                continue;
            }
            if depth > 1 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                deeper.push(name);
            } else {
                let _ = symlinkat(entry.path(), at, &name);
            }
        }
        remove_dangling(at, real);
        for name in deeper {
            if let Ok(inner) = beneath::directory(at.as_fd(), Path::new(&name), anywhere()) {
                self.entries(&real.join(&name), &inner, depth - 1);
            }
        }
    }
}

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
