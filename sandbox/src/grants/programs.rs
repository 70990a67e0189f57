//! What programs need besides the directory that they are found in: the files that links there lead to,
//! and the installations that these and the directory belong to.

use std::collections::{BTreeSet, VecDeque};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::keys::holds_keys;
use super::{Grants, resolved};
use crate::policy::Policy;
use crate::rights::Rights;

/// The most entries of directories that are read, links that are followed, and grants that are made. Every
/// grant makes the jail's path walks slower.
const MOST_ENTRIES: usize = 8192;
const MOST_LINKS: usize = 400;
const MOST_GRANTS: usize = 100;
/// Directories whose links lead to what packages of the system have: nearly all of them within it.
const OF_THE_SYSTEM: [&str; 4] = ["/bin", "/sbin", "/usr/bin", "/usr/sbin"];
/// Parts of an installation that its programs read, beside `bin`.
const PARTS: [&str; 5] = ["lib", "lib64", "libexec", "include", "ssl"];
/// Files that show that a directory is a Go tree or a JDK, which need all of themselves.
const WHOLE: [&str; 2] = ["pkg/tool", "lib/modules"];
/// Settings of a Python environment, and how much of them is read.
const PYTHON_ENVIRONMENT: &str = "pyvenv.cfg";
const MOST_SETTINGS: u64 = 16 * 1024;

/// Grants what the programs in `directories` need. Directories in a root, and others that commands may
/// write, choose nothing: an earlier command may have made what lies there, or a stranger whose project it
/// is.
pub(super) fn grant(grants: &mut Grants, policy: &Policy, directories: Vec<PathBuf>) {
    let own = [&policy.file_private, &policy.sockets, &policy.homes];
    let own: Vec<_> = own.into_iter().flatten().map(|path| real(path)).collect();
    let roots = grants.files.iter().map(|grant| grant.path.clone());
    let kept = policy.private_in.as_deref().map(real).into_iter().chain(grants.home.clone());
    let guarded = own.iter().cloned().chain(roots).chain(kept).collect();
    Search {
        grants,
        guarded,
        own,
        ahead: directories.into(),
        seen: BTreeSet::new(),
        entries: MOST_ENTRIES,
        links: MOST_LINKS,
        left: MOST_GRANTS,
    }
    .run();
}

fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

struct Search<'a> {
    grants: &'a mut Grants,
    /// What no grant may hold by accident: the home directory, roots, and directories of the program's own.
    guarded: Vec<PathBuf>,
    /// The program's own directories, of which no grant may be a part either.
    own: Vec<PathBuf>,
    /// Directories with programs that are still to be looked at.
    ahead: VecDeque<PathBuf>,
    seen: BTreeSet<PathBuf>,
    // How many more of each there may be.
    entries: usize,
    links: usize,
    left: usize,
}

impl Search<'_> {
    fn run(&mut self) {
        while let Some(directory) = self.ahead.pop_front() {
            let Some(directory) = self.settled(&directory) else { continue };
            let counts = self.is_granted(&directory)
                && !self.is_changeable(&directory)
                && !OF_THE_SYSTEM.iter().any(|system| directory == Path::new(system));
            if counts && self.seen.insert(directory.clone()) {
                self.installation(&directory);
                self.links(&directory);
            }
        }
    }

    /// Grants the programs that links in a directory lead to.
    fn links(&mut self, directory: &Path) {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if self.entries == 0 || self.links == 0 {
                return;
            }
            self.entries -= 1;
            if entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
                self.links -= 1;
                self.link(&entry.path());
            }
        }
    }

    fn link(&mut self, link: &Path) {
        let Ok((target, links)) = resolved(link, Rights::ReadExecute) else { return };
        let target = target.path;
        let is_settled = !links.iter().any(|(link, _)| self.is_changeable(link));
        if !self.is_granted(&target) {
            if self.is_closed(&target) || !is_program(&target) {
                return;
            }
            if is_settled && let Some(directory) = target.parent() {
                self.belonging(directory);
            }
            self.part(link);
        }
        // The links on the way have to exist for commands too.
        if is_settled && self.is_granted(&target) {
            let way = links.into_iter().filter(|(link, _)| !self.is_granted(link));
            let way: Vec<_> = way.collect();
            self.grants.links.extend(way);
        }
    }

    /// Grants a directory that another one leads to, and its installation, if it belongs to one.
    fn belonging(&mut self, bin: &Path) {
        if !self.is_granted(bin) && !self.is_changeable(bin) && self.installation(bin) {
            self.part(bin);
            self.ahead.push_back(bin.to_owned());
        }
    }

    /// Grants the parts of the installation that a directory with programs belongs to. False where it
    /// belongs to none.
    fn installation(&mut self, bin: &Path) -> bool {
        let Some(prefix) = bin.parent() else { return false };
        let is_bin = bin.file_name().is_some_and(|name| name == "bin" || name == "sbin");
        // Directly in the root directory, and of somebody's home, these names can be anything.
        let is_deep = prefix.components().count() > 2;
        let holds_home = self.grants.home.as_ref().is_some_and(|home| home.starts_with(prefix));
        if !is_bin || !is_deep || holds_home {
            return false;
        }
        if self.grants.home.as_ref().is_some_and(|home| prefix == home.join(".local")) {
            self.modules(&prefix.join("lib"));
            return false;
        }
        if WHOLE.iter().any(|mark| prefix.join(mark).exists()) {
            self.part(prefix);
            return true;
        }
        let environment = self.python_environment(prefix);
        let parts: Vec<_> =
            PARTS.map(|name| prefix.join(name)).into_iter().filter(|part| part.is_dir()).collect();
        // Alone, the name says too little.
        if parts.iter().any(|part| part.ends_with("lib") || part.ends_with("libexec")) {
            self.part(&prefix.join("share"));
        }
        parts.iter().for_each(|part| self.part(part));
        environment || !parts.is_empty()
    }

    /// Grants what a directory that other programs share holds for Python and Node.
    fn modules(&mut self, lib: &Path) {
        for entry in fs::read_dir(lib).into_iter().flatten().flatten().take(self.entries) {
            self.entries -= 1;
            let name = entry.file_name();
            if name == "node_modules" || name.as_encoded_bytes().starts_with(b"python") {
                self.part(&entry.path());
            }
        }
    }

    /// Grants the settings of a Python environment, and the interpreter that they name.
    fn python_environment(&mut self, prefix: &Path) -> bool {
        let path = prefix.join(PYTHON_ENVIRONMENT);
        let Some(found) = self.settled(&path) else { return false };
        if !found.is_file() || self.is_closed(&found) || self.is_changeable(&found) {
            return false;
        }
        self.part(&path);
        let mut settings = String::new();
        let read = File::open(&found)
            .and_then(|file| file.take(MOST_SETTINGS).read_to_string(&mut settings));
        let home = settings.lines().filter_map(|line| line.split_once('='));
        let home = home.filter(|(key, _)| key.trim() == "home").map(|(_, value)| value.trim());
        if let (Ok(_), Some(home)) = (read, home.map(Path::new).find(|home| home.is_absolute()))
            && let Some(home) = self.settled(home)
        {
            self.belonging(&home);
        }
        true
    }

    /// Grants a path, unless it is granted already, or is nothing to grant without the operator's word.
    fn part(&mut self, path: &Path) {
        let Ok((found, _)) = resolved(path, Rights::ReadExecute) else { return };
        if self.left == 0 || self.is_granted(&found.path) || self.is_closed(&found.path) {
            return;
        }
        self.left -= 1;
        self.grants.optional(path, Rights::ReadExecute);
    }

    /// Where a path leads. `None` where a link on the way is one that commands or strangers may have made.
    fn settled(&self, path: &Path) -> Option<PathBuf> {
        let (found, links) = resolved(path, Rights::ReadExecute).ok()?;
        let settled = !links.iter().any(|(link, _)| self.is_changeable(link));
        settled.then_some(found.path)
    }

    /// Whether commands may read and execute a resolved path already.
    fn is_granted(&self, path: &Path) -> bool {
        let enough = [Rights::ReadExecute, Rights::ReadWrite];
        let mut grants = self.grants.commands.iter();
        grants.any(|grant| enough.contains(&grant.rights) && path.starts_with(&grant.path))
    }

    /// Whether a stranger or a command may have chosen what lies there.
    fn is_changeable(&self, path: &Path) -> bool {
        let in_root = self.grants.files.iter().any(|root| path.starts_with(&root.path));
        in_root || self.grants.holds(path)
    }

    fn is_closed(&self, path: &Path) -> bool {
        const OF_THE_KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];
        path.parent().is_none()
            || OF_THE_KERNEL.iter().any(|directory| path.starts_with(directory))
            || self.guarded.iter().any(|guarded| guarded.starts_with(path))
            || self.own.iter().any(|own| path.starts_with(own))
            || holds_keys(path)
    }
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests;
