//! Turns a policy into grants: the directories that it names, and what commands need besides.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::policy::{Network, Policy};
use crate::rights::{Grant, Rights, identity};

use caches::CACHES;
pub(crate) use caches::matching;
pub use keys::holds_keys;
use keys::is_token;

mod caches;
mod keys;
mod programs;

/// What a policy grants. Every path is resolved.
#[derive(Debug, Default)]
pub(crate) struct Grants {
    /// For file jobs.
    pub(crate) files: Vec<Grant>,
    /// For commands, without the private directories.
    pub(crate) commands: Vec<Grant>,
    /// Symbolic links on the way to the grants of commands, each with its target.
    pub(crate) links: BTreeMap<PathBuf, PathBuf>,
    /// What the policy itself names, and the links on the way there.
    pub(crate) named: Vec<PathBuf>,
    /// Links that paths of the policy led through, and that nobody has judged yet.
    followed: Vec<Followed>,
    /// What is not granted because it leads through a link that commands may change, with that link.
    pub(crate) skipped: Vec<(PathBuf, PathBuf)>,
    /// Whether programs find more on the network than what is granted.
    pub(crate) network: Network,
    /// The operator's home directory. `None` where there is none, or a root holds it.
    pub(crate) home: Option<PathBuf>,
}

/// A link that a path of the policy led through.
#[derive(Debug)]
struct Followed {
    setting: &'static str,
    path: PathBuf,
    link: PathBuf,
}

/// Why a policy cannot become grants.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GrantError {
    /// A path of the policy cannot be opened. The jail never skips a missing root.
    #[error("{setting}: cannot use {}", path.display())]
    Unusable {
        /// The setting that names the path.
        setting: &'static str,
        /// The path.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A root is not a directory.
    #[error("{setting}: {} is not a directory", path.display())]
    NotADirectory {
        /// The setting that names the path.
        setting: &'static str,
        /// The path.
        path: PathBuf,
    },
    /// A path of the policy is relative.
    #[error("{setting}: {} is not absolute", path.display())]
    Relative {
        /// The setting that names the path.
        setting: &'static str,
        /// The path.
        path: PathBuf,
    },
    /// A path of the policy leads through a link that commands may change: what is granted would be up
    /// to them.
    #[error(
        "{setting}: {} leads through the link {}, which commands may change; name where it leads",
        path.display(), link.display()
    )]
    ThroughWritable {
        /// The setting that names the path.
        setting: &'static str,
        /// The path.
        path: PathBuf,
        /// The link.
        link: PathBuf,
    },
    /// A read-only root lies in a writable one, where the kernel cannot protect it.
    #[error("read_only_roots: {} lies in the writable root {}", path.display(), root.display())]
    ReadOnlyInRoot {
        /// The directory.
        path: PathBuf,
        /// The root.
        root: PathBuf,
    },
}

/// System directories that commands may read and execute. All are optional.
const SYSTEM: [&str; 15] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix",
    "/home/linuxbrew/.linuxbrew",
    "/sys/devices/system/cpu",
    // Which packages are installed: without it their tools say that none is.
    "/var/lib/dpkg",
    "/var/lib/apt",
    "/var/lib/rpm",
    "/var/lib/pacman",
];
/// Settings of the system, among them what only root may read.
const SETTINGS: &str = "/etc";
/// Devices that commands may use, and the directories of terminals and shared memory. /dev/tty is no
/// terminal of its own, but the name of the one that a session has.
pub(crate) const DEVICES: [&str; 6] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];
pub(crate) const DEVICES_IN: &str = "/dev";
pub(crate) const TERMINALS: &str = "/dev/pts";
pub(crate) const SHARED_MEMORY: &str = "/dev/shm";
pub(crate) const PROC: &str = "/proc";
/// Parts of the operator's home: toolchains, what version managers install, programs of the user's own, and
/// git's settings. Of a manager that keeps tokens or much else beside its programs, only these.
const HOME: [(&str, Part); 24] = [
    (".cargo", Part::Entries),
    (".rustup", Part::Whole),
    (".pyenv", Part::Whole),
    (".nvm", Part::Whole),
    (".rbenv", Part::Whole),
    (".asdf", Part::Whole),
    (".tool-versions", Part::Whole),
    (".sdkman", Part::Whole),
    (".volta", Part::Whole),
    (".juliaup", Part::Whole),
    (".julia/juliaup", Part::Whole),
    (".bun/bin", Part::Whole),
    (".bun/install/global", Part::Whole),
    (".deno/bin", Part::Whole),
    (".local/share/uv/python", Part::Whole),
    (".local/share/uv/tools", Part::Whole),
    (".local/share/mise/installs", Part::Whole),
    (".local/share/mise/shims", Part::Whole),
    (".local/share/fnm", Part::Whole),
    (".local/share/pipx/venvs", Part::Whole),
    (".local/pipx/venvs", Part::Whole),
    ("go/bin", Part::Whole),
    (".gitconfig", Part::Whole),
    (".config/git", Part::Entries),
];
/// Where the user's own programs lie, most of them as links, whether or not PATH names it.
const OWN_PROGRAMS: &str = ".local/bin";
/// How much of a part of the home directory is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// All of it, also what is made later, as long as it holds no tokens.
    Whole,
    /// The entries that are there, since programs may put tokens beside them.
    Entries,
}

impl Grants {
    /// Resolves the paths that `policy` names and adds what commands need besides.
    pub(crate) fn of(policy: &Policy) -> Result<Self, GrantError> {
        let mut grants = Self { network: policy.network, ..Self::default() };
        let named = [
            ("roots", &policy.roots, Rights::ReadWrite),
            ("read_only_roots", &policy.read_only_roots, Rights::ReadExecute),
        ];
        for (setting, paths, rights) in named {
            for path in paths {
                let grant = grants.name(setting, path, rights)?;
                if !grant.path.is_dir() {
                    return Err(GrantError::NotADirectory { setting, path: path.clone() });
                }
                grants.files.push(grant.clone());
                grants.commands.push(grant);
            }
        }
        grants.refuse_read_only_in_root()?;
        grants.spellings(policy);
        grants.refuse_through_writable()?;
        for path in &policy.command_write {
            let grant = grants.name("bash_write", path, Rights::ReadWrite)?;
            grants.commands.push(grant);
        }
        for path in &policy.command_read {
            let grant = grants.name("bash_read", path, Rights::ReadExecute)?;
            grants.commands.push(grant);
        }
        grants.refuse_through_writable()?;
        grants.system(policy);
        grants.home(policy);
        let mut programs = grants.search_path(policy);
        programs.extend(grants.home.as_ref().map(|home| home.join(OWN_PROGRAMS)));
        programs::grant(&mut grants, policy, programs);
        Ok(grants)
    }

    fn name(
        &mut self,
        setting: &'static str,
        path: &Path,
        rights: Rights,
    ) -> Result<Grant, GrantError> {
        if !path.is_absolute() {
            return Err(GrantError::Relative { setting, path: path.to_owned() });
        }
        let unusable = |source| GrantError::Unusable { setting, path: path.to_owned(), source };
        let (grant, links) = resolved(path, rights).map_err(unusable)?;
        self.named.push(grant.path.clone());
        self.named.extend(links.iter().map(|(link, _)| link.clone()));
        self.follow(setting, path, &links);
        self.links.extend(links);
        Ok(grant)
    }

    /// Shows the links by which the policy's roots are known too, if that is where they lead.
    fn spellings(&mut self, policy: &Policy) {
        for path in policy.spellings.iter().filter(|path| path.is_absolute()) {
            let mut links = Links::new();
            let Ok(root) = resolve(path, &mut links) else { continue };
            if self.files.iter().any(|grant| grant.path == root) {
                self.named.extend(links.iter().map(|(link, _)| link.clone()));
                self.links.extend(links.iter().cloned());
            }
            self.follow("roots", path, &links);
        }
    }

    /// Grants a path if it exists, unless it leads out of what commands may write by a link there: then
    /// an earlier command would have chosen what this jail grants.
    fn optional(&mut self, path: &Path, rights: Rights) {
        let Ok((grant, links)) = resolved(path, rights) else { return };
        match links.iter().find(|(link, _)| self.holds(link)) {
            Some((link, _)) if !self.holds(&grant.path) => {
                self.skipped.push((path.to_owned(), link.clone()));
            }
            _ => {
                self.commands.push(grant);
                self.links.extend(links);
            }
        }
    }

    /// Looks at the links that were followed, not at those that are there now: a command that runs under
    /// an earlier jail may change them meanwhile.
    fn refuse_through_writable(&mut self) -> Result<(), GrantError> {
        for Followed { setting, path, link } in std::mem::take(&mut self.followed) {
            if self.holds(&link) {
                return Err(GrantError::ThroughWritable { setting, path, link });
            }
        }
        Ok(())
    }

    fn follow(&mut self, setting: &'static str, path: &Path, links: &Links) {
        self.followed.extend(links.iter().map(|(link, _)| Followed {
            setting,
            path: path.to_owned(),
            link: link.clone(),
        }));
    }

    fn refuse_read_only_in_root(&self) -> Result<(), GrantError> {
        let (roots, others): (Vec<_>, Vec<_>) =
            self.files.iter().partition(|grant| grant.rights == Rights::ReadWrite);
        for dir in others {
            if let Some(root) = roots.iter().find(|root| dir.path.starts_with(&root.path)) {
                let (path, root) = (dir.path.clone(), root.path.clone());
                return Err(GrantError::ReadOnlyInRoot { path, root });
            }
        }
        Ok(())
    }

    fn system(&mut self, policy: &Policy) {
        for path in SYSTEM {
            self.optional(Path::new(path), Rights::ReadExecute);
        }
        // From other users the modes keep what they are not to read.
        let root = rustix::process::geteuid().is_root();
        let rights = if root { Rights::AsOthers } else { Rights::ReadExecute };
        self.optional(Path::new(SETTINGS), rights);
        // A network needs this file to look up names; it is often a link to /run.
        if policy.network == Network::Allow {
            self.optional(Path::new("/etc/resolv.conf"), Rights::Read);
        }
    }

    fn home(&mut self, policy: &Policy) {
        let named = policy.home.clone().or_else(|| std::env::var_os("HOME").map(PathBuf::from));
        let Some(named) = named.filter(|home| home.is_absolute()) else { return };
        let mut links = Vec::new();
        let Ok(home) = resolve(&named, &mut links) else { return };
        if home.parent().is_none() || !home.is_dir() || self.holds(&home) {
            return;
        }
        for (path, part) in HOME {
            self.without_tokens(&named.join(path), part);
        }
        self.without_tokens(&named.join(OWN_PROGRAMS), Part::Whole);
        if policy.network == Network::Deny {
            // The names in these are those of packages: a package may be named as a token is.
            for within in CACHES.iter().flat_map(|cache| matching(&named, cache)) {
                self.optional(&named.join(within), Rights::ReadExecute);
            }
        }
        self.links.extend(links);
        self.home = Some(home);
    }

    /// Grants a part of the home directory without the tokens in it.
    fn without_tokens(&mut self, path: &Path, part: Part) {
        let names: Vec<_> =
            fs::read_dir(path).into_iter().flatten().flatten().map(|e| e.file_name()).collect();
        if part == Part::Whole && !names.iter().any(|name| is_token(name)) {
            self.optional(path, Rights::ReadExecute);
            return;
        }
        self.optional(path, Rights::List);
        for name in names.iter().filter(|name| !is_token(name)) {
            self.optional(&path.join(name), Rights::ReadExecute);
        }
    }

    /// Grants the directories of PATH, and returns them.
    fn search_path(&mut self, policy: &Policy) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let path = policy.search_path.clone().or_else(|| std::env::var_os("PATH"));
        for dir in std::env::split_paths(&path.unwrap_or_default()) {
            // A grant of a directory that holds the home directory would grant all of that too.
            let too_much = self
                .home
                .as_ref()
                .is_some_and(|home| fs::canonicalize(&dir).is_ok_and(|dir| home.starts_with(dir)));
            if dir.is_absolute() && dir.parent().is_some() && !too_much {
                self.optional(&dir, Rights::ReadExecute);
                found.push(dir);
            }
        }
        found
    }

    /// The path that commands may write and that holds `path` (a resolved one), under any name.
    /// Ignores a grant of the root directory: no path lies outside it.
    pub(crate) fn writable(&self, path: &Path) -> Option<&Path> {
        self.holder(path, |grant| {
            grant.rights == Rights::ReadWrite && grant.path.parent().is_some()
        })
    }

    /// The path that commands may read or write and that holds `path` (a resolved one), under any
    /// name.
    pub(crate) fn reachable(&self, path: &Path) -> Option<&Path> {
        self.holder(path, |grant| grant.rights != Rights::List)
    }

    fn holder(&self, path: &Path, counts: impl Fn(&Grant) -> bool) -> Option<&Path> {
        let shared = Path::new(SHARED_MEMORY);
        if path.starts_with(shared) {
            return Some(shared);
        }
        let above: Vec<_> = path.ancestors().filter_map(|path| identity(path).ok()).collect();
        let holds = |grant: &&Grant| {
            // A directory mounted twice has two paths.
            let same = grant.identity.is_some_and(|identity| above.contains(&identity));
            counts(grant) && (same || path.starts_with(&grant.path))
        };
        self.commands.iter().find(holds).map(|grant| grant.path.as_path())
    }

    /// Whether commands may write a path that holds `path`.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        self.commands
            .iter()
            .any(|grant| grant.rights == Rights::ReadWrite && path.starts_with(&grant.path))
    }
}

/// Symbolic links, each with its target.
type Links = Vec<(PathBuf, PathBuf)>;

/// The grant of a path that may lead through links, and those links.
fn resolved(path: &Path, rights: Rights) -> io::Result<(Grant, Links)> {
    let mut links = Vec::new();
    let path = resolve(path, &mut links)?;
    let identity = Some(identity(&path)?);
    Ok((Grant { path, rights, identity }, links))
}

/// Orders grants so that a path comes after those that hold it, and merges grants of one path.
pub(crate) fn ordered(mut grants: Vec<Grant>) -> Vec<Grant> {
    grants.sort_by(|a, b| a.path.cmp(&b.path).then(b.rights.cmp(&a.rights)));
    grants.dedup_by(|later, kept| later.path == kept.path);
    grants
}

/// The most links that one path may lead through, as in the kernel.
const MOST_LINKS: usize = 40;

/// Resolves a path as the kernel does and collects the links on the way.
fn resolve(path: &Path, links: &mut Links) -> io::Result<PathBuf> {
    let mut at = PathBuf::from("/");
    let mut rest: Vec<PathBuf> = steps(path);
    let mut followed = 0;
    while let Some(step) = rest.pop() {
        if step == Path::new("/") {
            at = step;
            continue;
        }
        if step == Path::new("..") {
            at.pop();
            continue;
        }
        let next = at.join(&step);
        if !next.symlink_metadata()?.is_symlink() {
            at = next;
            continue;
        }
        followed += 1;
        if followed > MOST_LINKS {
            return Err(io::Error::from_raw_os_error(libc::ELOOP));
        }
        let target = fs::read_link(&next)?;
        rest.extend(steps(&target));
        links.push((next, target));
    }
    Ok(at)
}

/// The components of a path in reverse order.
fn steps(path: &Path) -> Vec<PathBuf> {
    let steps = path.components().filter(|step| *step != Component::CurDir);
    steps.rev().map(|step| PathBuf::from(step.as_os_str())).collect()
}

#[cfg(test)]
mod tests;
