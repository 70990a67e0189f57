//! Landlock: which rights a grant means, and the domains that are made of grants.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope, make_bitflags,
};

use crate::explain::Subject;

/// The newest ABI whose rights are asked for; an older kernel gives what it has.
const NEWEST: ABI = ABI::V10;

/// What may be done beneath a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rights {
    /// List directories, and no more.
    List,
    /// Read.
    Read,
    /// Read and execute.
    ReadExecute,
    /// Use a device that is there.
    Device,
    /// Everything but device nodes, and executing for file jobs.
    ReadWrite,
}

/// Rights beneath one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    /// The path, without symbolic links.
    pub(crate) path: PathBuf,
    pub(crate) rights: Rights,
    /// What lay there when the policy was read: device and inode. Another thing there is an error,
    /// so that nobody can swap in a directory while a jail is being built.
    pub(crate) identity: Option<(u64, u64)>,
}

/// Whether a domain takes TCP away. Where commands have a network of their own it need not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tcp {
    Handled,
    Untouched,
}

/// Why a domain could not be made.
#[derive(Debug, thiserror::Error)]
pub enum DomainError {
    /// A granted path cannot be opened.
    #[error("cannot open {}", path.display())]
    Open {
        /// The path.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A granted path is another file or directory than it was when the jail was begun.
    #[error("{} was replaced while the jail was being built", path.display())]
    Replaced {
        /// The path.
        path: PathBuf,
    },
    /// The kernel refused the rules.
    #[error("the kernel refused the Landlock rules")]
    Landlock(#[from] RulesetError),
}

/// A domain that grants `grants` and takes every other file right that the kernel knows.
/// Fails where the kernel has no Landlock.
pub(crate) fn domain(
    subject: Subject,
    grants: &[Grant],
    tcp: Tcp,
) -> Result<RulesetCreated, DomainError> {
    let mut rules = ruleset(AccessFs::from_all(NEWEST))?;
    if tcp == Tcp::Handled {
        // TCP only: on ABI 10 UDP too.
        rules = rules.handle_access(AccessNet::from_all(NEWEST))?;
    }
    let mut domain = rules.scope(Scope::from_all(NEWEST))?.create()?;
    for grant in grants {
        domain = add(domain, subject, grant)?;
    }
    Ok(domain)
}

/// The domain that sets one call apart from all others. It takes no file right from the command
/// that the spawner's domain left, so it stays small: the price of a path walk grows with rules.
///
/// It must name `Refer`, and grant it everywhere: a domain that does not would forbid renaming
/// between directories.
pub(crate) fn call_domain() -> Result<Option<OwnedFd>, DomainError> {
    let root = Grant { path: "/".into(), rights: Rights::List, identity: None };
    let fd = open(&root)?;
    let domain = ruleset(AccessFs::MakeBlock | AccessFs::Refer)?
        .scope(Scope::from_all(NEWEST))?
        .create()?
        .add_rule(PathBeneath::new(fd, AccessFs::Refer))?;
    Ok(domain.into())
}

/// Insists on the rights of the first ABI and takes the others where they are.
fn ruleset(access: BitFlags<AccessFs>) -> Result<Ruleset, RulesetError> {
    let first = access & AccessFs::from_all(ABI::V1);
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(first)?
        .set_compatibility(CompatLevel::BestEffort);
    let later = access & !first;
    if later.is_empty() { Ok(rules) } else { rules.handle_access(later) }
}

fn add(
    domain: RulesetCreated,
    subject: Subject,
    grant: &Grant,
) -> Result<RulesetCreated, DomainError> {
    let fd = open(grant)?;
    let file = rustix::fs::fstat(&fd)
        .map(|found| rustix::fs::FileType::from_raw_mode(found.st_mode))
        .is_ok_and(|kind| kind != rustix::fs::FileType::Directory);
    let mut rights = bits(subject, grant.rights);
    if file {
        rights &= AccessFs::from_file(NEWEST);
    }
    if rights.is_empty() {
        return Ok(domain);
    }
    Ok(domain.add_rule(PathBeneath::new(fd, rights))?)
}

fn open(grant: &Grant) -> Result<OwnedFd, DomainError> {
    use rustix::fs::{Mode, OFlags};
    let opened = rustix::fs::open(&grant.path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    let fd = opened
        .map_err(|source| DomainError::Open { path: grant.path.clone(), source: source.into() })?;
    let Some(identity) = grant.identity else { return Ok(fd) };
    let found = rustix::fs::fstat(&fd).map(|stat| (stat.st_dev, stat.st_ino));
    if found == Ok(identity) {
        Ok(fd)
    } else {
        Err(DomainError::Replaced { path: grant.path.clone() })
    }
}

fn bits(subject: Subject, rights: Rights) -> BitFlags<AccessFs> {
    let read = make_bitflags!(AccessFs::{ReadFile | ReadDir});
    let device = make_bitflags!(AccessFs::{WriteFile | Truncate | IoctlDev});
    let nodes = make_bitflags!(AccessFs::{MakeBlock | MakeChar | IoctlDev});
    match (rights, subject) {
        (Rights::List, _) => AccessFs::ReadDir.into(),
        (Rights::Read, _) | (Rights::ReadExecute, Subject::FileJob) => read,
        (Rights::ReadExecute, Subject::Command) => read | AccessFs::Execute,
        (Rights::Device, _) => read | device,
        (Rights::ReadWrite, Subject::Command) => AccessFs::from_all(NEWEST) & !nodes,
        (Rights::ReadWrite, Subject::FileJob) => {
            let special = make_bitflags!(AccessFs::{Execute | MakeSock | MakeFifo | ResolveUnix});
            AccessFs::from_all(NEWEST) & !nodes & !special
        }
    }
}

/// The rights that a kernel of this ABI knows, by name, for the report.
pub(crate) fn names(abi: u32) -> Vec<&'static str> {
    let known: [(u32, &[&'static str]); 8] = [
        (1, &["execute", "write_file", "read_file", "read_dir", "remove_dir", "remove_file"]),
        (
            1,
            &[
                "make_char",
                "make_dir",
                "make_reg",
                "make_sock",
                "make_fifo",
                "make_block",
                "make_sym",
            ],
        ),
        (2, &["refer"]),
        (3, &["truncate"]),
        (4, &["bind_tcp", "connect_tcp"]),
        (5, &["ioctl_dev"]),
        (6, &["scope_abstract_unix_socket", "scope_signal"]),
        (9, &["resolve_unix"]),
    ];
    known.iter().filter(|(since, _)| *since <= abi).flat_map(|(_, names)| *names).copied().collect()
}

/// Device and inode of what lies at `path`.
pub(crate) fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let found = path.metadata()?;
    Ok((found.dev(), found.ino()))
}
