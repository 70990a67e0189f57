//! Landlock: the rights that a grant means, and the domains built from grants.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope, make_bitflags,
};

use crate::explain::Subject;

/// The newest ABI whose rights the jail asks for. An older kernel grants what it knows.
const NEWEST: ABI = ABI::V10;

/// What a grant allows beneath a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rights {
    /// List directories only.
    List,
    /// Read and execute what others may, and nothing that only the owner or a group may.
    AsOthers,
    /// Read.
    Read,
    /// Read and execute.
    ReadExecute,
    /// Use an existing device.
    Device,
    /// Everything but making device nodes and device ioctls. File jobs also may not execute, nor
    /// make sockets and named pipes.
    ReadWrite,
}

/// Rights beneath one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    /// The path, without symbolic links.
    pub(crate) path: PathBuf,
    pub(crate) rights: Rights,
    /// Device and inode of the file when the policy was read. A different file there is an error,
    /// so nobody can swap in a directory while the jail is being built.
    pub(crate) identity: Option<(u64, u64)>,
}

/// Whether a domain forbids TCP. It need not where commands have their own network namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tcp {
    Handled,
    Untouched,
}

/// A Landlock domain could not be made.
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
    /// A granted path no longer leads to the file that was there when the policy was read.
    #[error("{} was replaced while the jail was being built", path.display())]
    Replaced {
        /// The path.
        path: PathBuf,
    },
    /// The kernel refused the rules.
    #[error("the kernel refused the Landlock rules")]
    Landlock(#[from] RulesetError),
}

impl DomainError {
    /// Whether the file is not there any more, or something else is on the way there.
    fn is_of_change(&self) -> bool {
        const CHANGED: [i32; 4] = [libc::ENOENT, libc::ENOTDIR, libc::ELOOP, libc::EACCES];
        match self {
            Self::Open { source, .. } => {
                source.raw_os_error().is_some_and(|number| CHANGED.contains(&number))
            }
            Self::Replaced { .. } => true,
            Self::Landlock(_) => false,
        }
    }
}

/// A domain that allows `grants` and forbids every other file right that the kernel knows. Of those that
/// let nothing be written, and of `entries`, the ones that are gone or were replaced since are left out:
/// other programs make and remove files in a toolchain at any time. Fails where the kernel has no
/// Landlock.
pub(crate) fn domain(
    subject: Subject,
    grants: &[Grant],
    entries: &[Grant],
    tcp: Tcp,
) -> Result<RulesetCreated, DomainError> {
    let mut rules = ruleset(AccessFs::from_all(NEWEST))?;
    if tcp == Tcp::Handled {
        // TCP before ABI 10, which adds UDP.
        rules = rules.handle_access(AccessNet::from_all(NEWEST))?;
    }
    let mut domain = rules.scope(Scope::from_all(NEWEST))?.create()?;
    for grant in grants {
        match open(grant) {
            Ok(fd) => domain = add(domain, subject, grant.rights, fd)?,
            Err(error) if grant.rights == Rights::ReadWrite || !error.is_of_change() => {
                return Err(error);
            }
            Err(_) => {}
        }
    }
    for entry in entries {
        if let Ok(fd) = open(entry) {
            domain = add(domain, subject, entry.rights, fd)?;
        }
    }
    Ok(domain)
}

/// The domain that isolates one call from all others. It forbids no file right that the spawner's
/// domain allows, so it has few rules: every rule makes a path walk slower.
///
/// It must handle `Refer` and allow it everywhere: a domain that does not handle it forbids
/// renaming between directories.
pub(crate) fn call_domain() -> Result<Option<OwnedFd>, DomainError> {
    let root = Grant { path: "/".into(), rights: Rights::List, identity: None };
    let fd = open(&root)?;
    let domain = ruleset(AccessFs::MakeBlock | AccessFs::Refer)?
        .scope(Scope::from_all(NEWEST))?
        .create()?
        .add_rule(PathBeneath::new(fd, AccessFs::Refer))?;
    Ok(domain.into())
}

/// Requires the rights of the first ABI and takes later ones where the kernel has them.
fn ruleset(access: BitFlags<AccessFs>) -> Result<Ruleset, RulesetError> {
    let first = access & AccessFs::from_all(ABI::V1);
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(first)?
        .set_compatibility(CompatLevel::BestEffort);
    let later = access & !first;
    if later.is_empty() { Ok(rules) } else { rules.handle_access(later) }
}

/// Adds rights of commands beneath paths, whatever lies there.
pub(crate) fn extend(
    mut domain: RulesetCreated,
    grants: impl Iterator<Item = Grant>,
) -> Result<RulesetCreated, DomainError> {
    for grant in grants {
        domain = add(domain, Subject::Command, grant.rights, open(&grant)?)?;
    }
    Ok(domain)
}

fn add(
    domain: RulesetCreated,
    subject: Subject,
    rights: Rights,
    fd: OwnedFd,
) -> Result<RulesetCreated, DomainError> {
    let file = rustix::fs::fstat(&fd)
        .map(|found| rustix::fs::FileType::from_raw_mode(found.st_mode))
        .is_ok_and(|kind| kind != rustix::fs::FileType::Directory);
    let mut rights = bits(subject, rights);
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
        (Rights::Read, _) | (Rights::AsOthers | Rights::ReadExecute, Subject::FileJob) => read,
        (Rights::AsOthers | Rights::ReadExecute, Subject::Command) => read | AccessFs::Execute,
        (Rights::Device, _) => read | device,
        (Rights::ReadWrite, Subject::Command) => AccessFs::from_all(NEWEST) & !nodes,
        (Rights::ReadWrite, Subject::FileJob) => {
            let special = make_bitflags!(AccessFs::{Execute | MakeSock | MakeFifo | ResolveUnix});
            AccessFs::from_all(NEWEST) & !nodes & !special
        }
    }
}

/// The names of the rights that a kernel of this ABI knows, for the report.
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

/// Device and inode of the file at `path`.
pub(crate) fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let found = path.metadata()?;
    Ok((found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of a toolchain that comes and goes stops no jail; what commands are to write has to be
    /// what the policy named.
    #[test]
    fn what_is_gone_since_is_left_out_unless_it_was_to_be_written() {
        let directory = tempfile::tempdir().unwrap();
        let granted = |name: &str, rights| {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            let identity = Some(identity(&path).unwrap());
            Grant { path, rights, identity }
        };
        let built = |grant: &Grant| {
            domain(Subject::Command, std::slice::from_ref(grant), &[], Tcp::Untouched).map(drop)
        };
        for rights in [Rights::ReadExecute, Rights::ReadWrite] {
            let (gone, replaced) = (granted("gone", rights), granted("replaced", rights));
            built(&gone).unwrap();
            std::fs::remove_file(&gone.path).unwrap();
            std::fs::write(directory.path().join("new"), "").unwrap();
            std::fs::rename(directory.path().join("new"), &replaced.path).unwrap();
            let looped = granted("looped/file", rights);
            std::fs::remove_dir_all(directory.path().join("looped")).unwrap();
            std::os::unix::fs::symlink("looped", directory.path().join("looped")).unwrap();
            for grant in [&gone, &replaced, &looped] {
                assert_eq!(built(grant).is_ok(), rights == Rights::ReadExecute, "{grant:?}");
            }
            std::fs::remove_file(directory.path().join("looped")).unwrap();
        }
    }
}
