//! Why something could not be done to a path.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Access, AtFlags, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::text::name;

use super::{FileKind, FileStat, InPlace, Special};

/// An action on a path that failed. Its message says what, where and why; [`WorkspaceError::hint`]
/// says what to do about it.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {fault}", name::shown(path))]
pub struct WorkspaceError {
    /// What was tried.
    pub action: Action,
    /// The path as the caller wrote it.
    pub path: String,
    /// Where it led, as far as it was followed; never a path outside the roots.
    pub resolved: Option<PathBuf>,
    /// Why it failed.
    #[source]
    pub fault: Box<Fault>,
}

/// What was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Reading a file's content.
    Read,
    /// Creating or changing a file.
    Write,
    /// Listing a directory.
    List,
    /// Looking at what is there.
    Inspect,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Action::Read => "read",
            Action::Write => "write",
            Action::List => "list",
            Action::Inspect => "look at",
        })
    }
}

/// A symbolic link on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Where the link is.
    pub path: PathBuf,
    /// What it says.
    pub target: PathBuf,
}

/// Why it failed.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The text is no path.
    #[error("{0}")]
    NoPath(&'static str),
    /// The path leads out of every root.
    #[error("{}", Outside { roots, link: link.as_ref() })]
    Outside {
        /// The roots, as the operator wrote them.
        roots: Vec<String>,
        /// The link that leads outside, where one does.
        link: Option<Link>,
    },
    /// The directory that relative paths start from is outside every root.
    #[error("the working directory {directory} is outside the roots [{}]", roots.join(", "))]
    WorkingDirectoryOutside {
        /// The directory.
        directory: String,
        /// The roots.
        roots: Vec<String>,
    },
    /// The path may be read but not written.
    #[error("outside the writable roots [{}] (it is under read_only_roots: {root})", writable.join(", "))]
    ReadOnly {
        /// The read-only root that contains it.
        root: String,
        /// The writable roots.
        writable: Vec<String>,
    },
    /// A person's own git takes what it runs from there.
    #[error("git outside runs what this says, so the operator protects it (protect = \"git\")")]
    Protected,
    /// Nothing is there.
    #[error("{}", Missing { missing, link: link.as_ref() })]
    NotFound {
        /// The first part of the resolved path that does not exist.
        missing: PathBuf,
        /// The link that led there, where one did.
        link: Option<Link>,
        /// Names in the same directory that are much like it, as paths to try.
        near: Vec<String>,
        /// In what the only one of these differs that reads the same.
        alike: Option<String>,
    },
    /// A file stands where the path needs a directory.
    #[error("{} is not a directory", name::of(.0))]
    NotADirectory(PathBuf),
    /// It is a directory where a file is needed.
    #[error("it is a directory")]
    IsDirectory,
    /// It is a pipe, a socket or a device.
    #[error("it is {0}")]
    Special(Special),
    /// A directory on the way lets nobody through to what is in it.
    #[error("{}", plain_reason(source))]
    Barred {
        /// What is in it.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The links on the way lead in a circle, or there are more than 40 of them.
    #[error("too many symbolic links, {} among them", name::of(.0))]
    TooManyLinks(PathBuf),
    /// A link of the kernel's own, which leads to an open file instead of a path.
    #[error("{} is a magic link of the proc file system, which is not followed", name::of(.0))]
    MagicLink(PathBuf),
    /// Another call holds the file's lock.
    #[error("another call is using it and did not finish within {} s", .0.as_secs())]
    Locked(Duration),
    /// The call had to end before this was done; nothing was changed.
    #[error("the call ended before this was done")]
    Stopped,
    /// Another program made, changed or removed the file since it was looked at.
    #[error("another program changed it in the meantime")]
    Changed,
    /// It can only be written in place, and must not be, because it has other names.
    #[error("{why}, and writing in place would reach its {} other name(s) too", links - 1)]
    Shared {
        /// Why it cannot be replaced.
        why: InPlace,
        /// How many names it has.
        links: u64,
    },
    /// Writing in place failed half-way, and so did putting the old content back.
    #[error(
        "{}; its old content could not be put back and is kept in {}",
        plain_reason(source),
        name::of(recovery)
    )]
    Torn {
        /// The copy of the old content.
        recovery: PathBuf,
        /// Why writing failed.
        source: io::Error,
    },
    /// The system refused.
    #[error("{}", plain_reason(.0))]
    System(#[source] io::Error),
}

impl Fault {
    /// This fault, as an error about `path`.
    pub(super) fn of(self, action: Action, path: &str) -> WorkspaceError {
        WorkspaceError { action, path: path.to_owned(), resolved: None, fault: Box::new(self) }
    }
}

impl From<Errno> for Fault {
    fn from(errno: Errno) -> Self {
        Fault::System(errno.into())
    }
}

impl WorkspaceError {
    /// Adds where the path led.
    pub(super) fn at(mut self, resolved: impl Into<PathBuf>) -> Self {
        self.resolved = Some(resolved.into());
        self
    }

    /// What the caller or the operator can do.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        Some(match &*self.fault {
            Fault::Outside { .. } if self.action == Action::Write => {
                "use a path inside the roots, or have the operator add the directory to roots".to_owned()
            }
            Fault::Outside { .. } => "use a path inside the roots, or have the operator add the directory to \
                 roots or read_only_roots"
                .to_owned(),
            Fault::WorkingDirectoryOutside { .. } => "use an absolute path inside the roots".to_owned(),
            Fault::ReadOnly { .. } => {
                "write elsewhere, or have the operator move the directory from read_only_roots to roots"
                    .to_owned()
            }
            Fault::Protected => {
                "only the operator changes it: outside, or by setting protect = \"none\"".to_owned()
            }
            Fault::NotFound { .. } if self.path.starts_with('~') => {
                "~ is not expanded here: write the path out".to_owned()
            }
            Fault::NotFound { near, alike: Some(difference), .. } => format!(
                "did you mean {}? It reads the same, but {difference}: give it as it stands here, quotes \
                 and escapes included",
                near.join(" or ")
            ),
            Fault::NotFound { near, .. } if !near.is_empty() => {
                format!("did you mean {}?", near.join(" or "))
            }
            Fault::NotFound { .. } if self.path.contains(['*', '?']) => {
                "a path is taken as it is; glob takes patterns".to_owned()
            }
            // What a link leads to has a name of its own.
            Fault::NotFound { missing, link, .. } => match link
                .as_ref()
                .map_or(Path::new(&self.path), |_| missing)
                .file_name()
            {
                Some(last) => format!(
                    "glob finds it in any directory by its name, as pattern {}; with pattern * it lists \
                     the directory above it",
                    name::of(Path::new(last))
                ),
                None => "list the directory above it with glob to find the path".to_owned(),
            },
            Fault::NotADirectory(_) => "shorten the path to the file, or choose another directory".to_owned(),
            Fault::IsDirectory => "name a file; glob lists a directory".to_owned(),
            Fault::Special(_) => "only regular files are read and written here".to_owned(),
            Fault::TooManyLinks(_) => "name the file itself instead of a link to it".to_owned(),
            Fault::MagicLink(_) => "name the file by its own path".to_owned(),
            Fault::Locked(_) => "try again".to_owned(),
            Fault::Changed => "read it again, then decide anew".to_owned(),
            Fault::Shared { .. } => "write to another name, or part the hard links first".to_owned(),
            Fault::Torn { recovery, .. } => {
                format!("free some space, then copy {} over it", name::of(recovery))
            }
            Fault::System(source)
                if matches!(
                    Errno::from_io_error(source),
                    Some(Errno::ACCESS | Errno::PERM | Errno::ROFS)
                ) =>
            {
                return obstacle(self.action, self.resolved.as_deref()?);
            }
            Fault::Barred { path, .. } => return obstacle(self.action, path),
            Fault::NoPath(_) | Fault::Stopped | Fault::System(_) => return None,
        })
    }
}

struct Outside<'a> {
    roots: &'a [String],
    link: Option<&'a Link>,
}

impl fmt::Display for Outside<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Link { path, target }) = self.link {
            write!(f, "the link {} leads to {}, ", name::of(path), name::of(target))?;
        }
        write!(f, "outside the roots [{}]", self.roots.join(", "))
    }
}

struct Missing<'a> {
    missing: &'a PathBuf,
    link: Option<&'a Link>,
}

impl fmt::Display for Missing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Link { path, target }) = self.link {
            write!(f, "the link {} leads to {}, but ", name::of(path), name::of(target))?;
        }
        write!(f, "{} does not exist", name::of(self.missing))
    }
}

/// The part of a system's refusal that can be seen: the file or the directory whose permissions are in
/// the way. `path` is free of links, and none that came there since is followed.
fn obstacle(action: Action, path: &Path) -> Option<String> {
    let (wanted, refused) = match action {
        Action::Write => (Access::WRITE_OK, "written"),
        Action::Read | Action::List | Action::Inspect => (Access::READ_OK, "read"),
    };
    for (index, ancestor) in path.ancestors().enumerate() {
        let Ok(handle) = open_unfollowed(ancestor) else { continue };
        let stat = FileStat::of(&handle).ok()?;
        let may = |access| may(ancestor, &handle, stat.kind, access);
        let is_target = index == 0;
        let verb = if !is_target && !may(Access::EXEC_OK) {
            "searched"
        } else if !may(wanted) {
            refused
        } else if is_target && action == Action::Write {
            // Creating or replacing the file asks its directory.
            continue;
        } else {
            return None;
        };
        let what = if stat.kind == FileKind::Directory { "the directory" } else { "the file" };
        return Some(format!(
            "{what} {} cannot be {verb}: its mode is {:04o} and its owner uid {}, and the provider \
             runs as uid {}",
            name::of(ancestor),
            stat.mode & 0o7777,
            stat.uid,
            rustix::process::geteuid().as_raw()
        ));
    }
    None
}

fn open_unfollowed(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let links = ResolveFlags::NO_SYMLINKS;
    rustix::fs::openat2(rustix::fs::CWD, path, flags, Mode::empty(), links)
}

/// Whether this process has `access` to a path. A directory is asked from within; anything else from
/// the directory that holds it, because not every kernel answers for the handle itself.
fn may(ancestor: &Path, handle: &OwnedFd, kind: FileKind, access: Access) -> bool {
    match (kind, ancestor.parent()) {
        (FileKind::Directory, _) | (_, None) => {
            rustix::fs::accessat(handle, c".", access, AtFlags::EACCESS).is_ok()
        }
        (_, Some(directory)) => open_unfollowed(directory).is_ok_and(|directory| {
            let flags = AtFlags::EACCESS | AtFlags::SYMLINK_NOFOLLOW;
            let name = ancestor.file_name().unwrap_or_default();
            rustix::fs::accessat(directory, name, access, flags).is_ok()
        }),
    }
}

/// The reason in the system's own words, to stand inside a sentence: in lower case, and without the
/// number, which stands in the details.
pub fn plain_reason(error: &io::Error) -> String {
    let text = error.to_string();
    let plain = text.split(" (os error").next().unwrap_or(&text);
    let mut chars = plain.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}
