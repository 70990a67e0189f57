//! The roots: directories that an operator names, held as handles.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};

use crate::text::name;

use super::replace::Linking;
use super::{FileId, FileStat, Journal, LockTable, Protection};

/// What to open as a [`Workspace`], as an operator wrote it.
#[derive(Clone, Debug, Default)]
pub struct RootsSpec {
    /// Directories to read and write. The first is where relative paths start from when a call
    /// names no working directory.
    pub roots: Vec<String>,
    /// Directories to read.
    pub read_only_roots: Vec<String>,
    /// The table of file locks. Configurations that follow one another share it, so that calls
    /// under the old one and calls under the new one exclude each other.
    pub locks: Arc<LockTable>,
}

/// The roots and what may be done beneath them.
#[derive(Debug)]
pub struct Workspace {
    /// What paths may lead to: the roots, then directories of our own.
    pub(super) roots: Vec<Root>,
    /// How many of them are roots.
    named: usize,
    pub(super) locks: Arc<LockTable>,
    pub(super) linking: Linking,
    pub(super) journal: Option<Arc<Journal>>,
    protection: Option<Arc<Protection>>,
}

/// One root.
#[derive(Debug)]
pub struct Root {
    given: String,
    spellings: Vec<PathBuf>,
    access: Access,
    id: FileId,
    directory: OwnedFd,
}

/// What may be done beneath a root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading and writing.
    ReadWrite,
    /// Reading alone.
    ReadOnly,
}

/// The setting that names a root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// `roots`
    Roots,
    /// `read_only_roots`
    ReadOnlyRoots,
}

impl Setting {
    /// The setting's name in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Setting::Roots => "roots",
            Setting::ReadOnlyRoots => "read_only_roots",
        }
    }
}

/// A root that cannot be one.
#[derive(Debug, thiserror::Error)]
#[error("{}: {given:?}: {fault}", setting.name())]
pub struct RootError {
    /// Where it was named.
    pub setting: Setting,
    /// As it was written.
    pub given: String,
    /// What is wrong with it.
    #[source]
    pub fault: RootFault,
}

/// What is wrong with a root.
#[derive(Debug, thiserror::Error)]
pub enum RootFault {
    /// No root is named at all.
    #[error("name at least one directory")]
    NoRoot,
    /// The text is empty or holds a NUL byte.
    #[error("this is no path")]
    NoPath,
    /// It starts with `~` but not with `~/`, or `HOME` is not set to an absolute path.
    #[error("~ cannot be expanded: only ~/ can, from an absolute HOME")]
    NoHome,
    /// The process's own working directory is gone.
    #[error(
        "it is relative to the provider's working directory, which cannot be found out ({0}): name \
         an absolute path"
    )]
    NoWorkingDirectory(#[source] io::Error),
    /// It does not exist, or cannot be opened.
    #[error("{}: {source}", name::of(.path))]
    Open {
        /// The absolute path that was tried.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// It is not a directory.
    #[error("{} is not a directory", name::of(.0))]
    NotADirectory(PathBuf),
    /// A read-only root is, or lies in, a writable one; the kernel's jail cannot take away below
    /// what it grants above.
    #[error(
        "it lies in the writable root {outer:?}, so it cannot be made read-only: name the writable directories beside it instead"
    )]
    InsideWritable {
        /// The writable root.
        outer: String,
    },
}

impl Workspace {
    /// Opens every root and keeps its handle. Relative roots start from the process's working
    /// directory, `~/` means `HOME`.
    ///
    /// # Errors
    /// Every fault of every root, not only the first.
    pub fn open(spec: &RootsSpec) -> Result<Self, Vec<RootError>> {
        let mut errors = Vec::new();
        let mut roots = Vec::new();
        let named = (spec.roots.iter().map(|given| (Setting::Roots, given)))
            .chain(spec.read_only_roots.iter().map(|given| (Setting::ReadOnlyRoots, given)));
        for (setting, given) in named {
            match Root::open(given, setting) {
                Ok(root) => roots.push(root),
                Err(fault) => errors.push(RootError { setting, given: given.clone(), fault }),
            }
        }
        if spec.roots.is_empty() && spec.read_only_roots.is_empty() {
            let fault = RootFault::NoRoot;
            errors.push(RootError { setting: Setting::Roots, given: String::new(), fault });
        }
        errors.extend(read_only_inside_writable(&roots));
        if !errors.is_empty() {
            return Err(errors);
        }
        let named = roots.len();
        let linking = roots.first().map(|root| Linking::find_out(root.directory()));
        let linking = linking.unwrap_or(Linking::Never);
        Ok(Self {
            roots,
            named,
            locks: spec.locks.clone(),
            linking,
            journal: None,
            protection: None,
        })
    }

    /// Lists writes under way in a journal, from which [`Workspace::recover`] of a later process
    /// clears away what they leave when this one is killed.
    #[must_use]
    pub fn with_journal(self, journal: Journal) -> Self {
        Self { journal: Some(Arc::new(journal)), ..self }
    }

    /// Lets one more directory be read, which is no root: one that this provider keeps for itself,
    /// such as that of outputs too long for a result. Only a caller who was given a path in it gets
    /// there.
    ///
    /// # Errors
    /// When it cannot be opened, or its path is not UTF-8.
    pub fn with_own_directory(mut self, directory: &Path) -> Result<Self, RootFault> {
        let given = directory.to_str().ok_or(RootFault::NoPath)?;
        self.roots.push(Root::open(given, Setting::ReadOnlyRoots)?);
        Ok(self)
    }

    /// Refuses writes to what `protection` covers.
    #[must_use]
    pub fn with_protection(self, protection: Arc<Protection>) -> Self {
        Self { protection: Some(protection), ..self }
    }

    /// What is protected, where anything is.
    #[must_use]
    pub fn protection(&self) -> Option<&Arc<Protection>> {
        self.protection.as_ref()
    }

    /// The roots: the writable ones first, each kind in the order in which they were named.
    #[must_use]
    pub fn roots(&self) -> &[Root] {
        &self.roots[..self.named]
    }

    /// The table of file locks.
    #[must_use]
    pub fn locks(&self) -> &Arc<LockTable> {
        &self.locks
    }

    /// The roots as an operator knows them, for messages.
    pub(super) fn names(&self) -> Vec<String> {
        self.roots().iter().map(Root::name).collect()
    }
}

impl Root {
    fn open(given: &str, setting: Setting) -> Result<Self, RootFault> {
        if given.is_empty() || given.contains('\0') {
            return Err(RootFault::NoPath);
        }
        let path = absolute(given)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = match rustix::fs::open(&path, flags, Mode::empty()) {
            Ok(directory) => directory,
            Err(rustix::io::Errno::NOTDIR) => return Err(RootFault::NotADirectory(path)),
            Err(errno) => return Err(RootFault::Open { path, source: errno.into() }),
        };
        let open_fault =
            |errno: rustix::io::Errno| RootFault::Open { path: path.clone(), source: errno.into() };
        let id = FileStat::of(&directory).map_err(open_fault)?.id;
        let canonical = path_of(directory.as_fd()).map_err(open_fault)?;
        let access = match setting {
            Setting::Roots => Access::ReadWrite,
            Setting::ReadOnlyRoots => Access::ReadOnly,
        };
        let spellings = spellings(canonical, &path, given, id);
        Ok(Self { given: given.to_owned(), spellings, access, id, directory })
    }

    /// The root as it was written in the configuration.
    #[must_use]
    pub fn given(&self) -> &str {
        &self.given
    }

    /// The root's own path, free of links.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.spellings[0]
    }

    /// Every absolute path under which the root is known: its own, and as it was written when that
    /// leads through a link.
    #[must_use]
    pub fn spellings(&self) -> &[PathBuf] {
        &self.spellings
    }

    /// What may be done beneath it.
    #[must_use]
    pub fn access(&self) -> Access {
        self.access
    }

    /// Which directory it is.
    #[must_use]
    pub fn id(&self) -> FileId {
        self.id
    }

    /// The handle (`O_PATH`) that everything beneath is opened from.
    #[must_use]
    pub fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// The absolute path to show: as it was written where that was absolute.
    pub(super) fn name(&self) -> String {
        name::of(&self.spellings[self.spellings.len() - 1]).into_owned()
    }
}

/// The absolute path that an operator's text means.
fn absolute(given: &str) -> Result<PathBuf, RootFault> {
    if let Some(rest) = given.strip_prefix('~') {
        let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        return match (home, rest.strip_prefix('/'), rest) {
            (Some(home), Some(rest), _) => Ok(home.join(rest.trim_start_matches('/'))),
            (Some(home), None, "") => Ok(home),
            _ => Err(RootFault::NoHome),
        };
    }
    let path = Path::new(given);
    if path.is_absolute() {
        return Ok(path.to_owned());
    }
    Ok(std::env::current_dir().map_err(RootFault::NoWorkingDirectory)?.join(path))
}

/// The root's own path and the other absolute ones that people and programs may call it by.
///
/// A relative root starts from the working directory, which a Go program's `os.Getwd` (and a shell)
/// calls by `PWD`, links and all.
fn spellings(canonical: PathBuf, path: &Path, given: &str, id: FileId) -> Vec<PathBuf> {
    let mut spellings = vec![canonical];
    let logical = (!given.starts_with(['/', '~']))
        .then(|| std::env::var_os("PWD").map(|pwd| Path::new(&pwd).join(given)))
        .flatten();
    for candidate in [Some(path.to_owned()), logical].into_iter().flatten() {
        let candidate = lexically_clean(&candidate);
        let is_same = || {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let directory = rustix::fs::open(&candidate, flags, Mode::empty()).ok();
            directory
                .and_then(|directory| FileStat::of(directory).ok())
                .is_some_and(|stat| stat.id == id)
        };
        if candidate.is_absolute() && !spellings.contains(&candidate) && is_same() {
            spellings.push(candidate);
        }
    }
    spellings
}

/// `path` without `.` and `..`, taken as text.
pub fn lexically_clean(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                clean.pop();
            }
            Component::CurDir => {}
            other => clean.push(other),
        }
    }
    clean
}

fn read_only_inside_writable(roots: &[Root]) -> Vec<RootError> {
    let mut errors = Vec::new();
    for inner in roots.iter().filter(|root| root.access == Access::ReadOnly) {
        let outer = roots.iter().find(|outer| {
            let contains = inner.path().starts_with(outer.path()) || inner.id == outer.id;
            outer.access == Access::ReadWrite && contains
        });
        if let Some(outer) = outer {
            errors.push(RootError {
                setting: Setting::ReadOnlyRoots,
                given: inner.given.clone(),
                fault: RootFault::InsideWritable { outer: outer.given.clone() },
            });
        }
    }
    errors
}

/// Where an open directory is. Whether threads that serve calls learn it is up to the jail: roots ask when
/// they are opened.
pub(super) fn path_of(directory: BorrowedFd<'_>) -> rustix::io::Result<PathBuf> {
    use std::os::fd::AsRawFd;
    let link = format!("/proc/self/fd/{}", directory.as_raw_fd());
    let target = rustix::fs::readlink(link, Vec::new())?;
    Ok(PathBuf::from(std::ffi::OsStr::from_bytes(target.as_bytes())))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests set up real files")]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn open(roots: &[&Path], read_only: &[&Path]) -> Result<Workspace, Vec<RootError>> {
        let texts = |paths: &[&Path]| paths.iter().map(|path| path.display().to_string()).collect();
        let spec = RootsSpec {
            roots: texts(roots),
            read_only_roots: texts(read_only),
            locks: Arc::default(),
        };
        Workspace::open(&spec)
    }

    fn directory() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap();
        (directory, path)
    }

    #[test]
    fn paths_are_cleaned_by_their_text() {
        assert_eq!(lexically_clean(Path::new("/a/b/../c/./d/../../e")), Path::new("/a/e"));
        assert_eq!(lexically_clean(Path::new("/../x")), Path::new("/x"));
    }

    #[test]
    fn every_fault_is_reported_in_one_go() {
        let (_keep, path) = directory();
        std::fs::write(path.join("file"), "").unwrap();
        let errors = open(&[&path.join("missing"), &path.join("file"), &path], &[Path::new("")])
            .unwrap_err();
        let text: Vec<_> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(errors.len(), 3, "{text:?}");
        assert!(matches!(errors[0].fault, RootFault::Open { .. }), "{text:?}");
        assert!(matches!(errors[1].fault, RootFault::NotADirectory(_)), "{text:?}");
        assert!(matches!(errors[2].fault, RootFault::NoPath), "{text:?}");
        assert!(
            text[0].starts_with("roots: \"") && text[2].starts_with("read_only_roots: "),
            "{text:?}"
        );
    }

    #[test]
    fn a_root_behind_a_link_is_known_by_both_names() {
        let (_keep, path) = directory();
        std::fs::create_dir(path.join("real")).unwrap();
        symlink("real", path.join("link")).unwrap();
        let workspace = open(&[&path.join("link")], &[]).unwrap();
        assert_eq!(workspace.roots()[0].spellings(), [path.join("real"), path.join("link")]);
        assert_eq!(workspace.roots()[0].name(), path.join("link").display().to_string());
    }

    #[test]
    fn read_only_may_contain_writable_but_not_the_other_way_round() {
        let (_keep, path) = directory();
        let inner = path.join("inner");
        std::fs::create_dir(&inner).unwrap();
        assert!(open(&[&inner], &[&path]).is_ok());
        let errors = open(&[&path], &[&inner]).unwrap_err();
        assert!(matches!(errors[0].fault, RootFault::InsideWritable { .. }));
        assert!(open(&[&path], &[&path]).is_err());
        assert!(open(&[&path, &path, &inner], &[]).is_ok(), "duplicates and nesting are fine");
        let beside = PathBuf::from(format!("{}-beside", inner.display()));
        std::fs::create_dir(&beside).unwrap();
        assert!(
            open(&[&inner], &[&beside]).is_ok(),
            "a common beginning of the name is no nesting"
        );
    }

    #[test]
    fn no_root_at_all_is_a_fault() {
        let errors = open(&[], &[]).unwrap_err();
        assert_eq!(errors[0].to_string(), "roots: \"\": name at least one directory");
    }

    #[test]
    fn relative_roots_start_from_the_working_directory() {
        let spec = RootsSpec { roots: vec![".".to_owned()], ..RootsSpec::default() };
        let workspace = Workspace::open(&spec).unwrap();
        assert_eq!(workspace.roots()[0].path(), std::env::current_dir().unwrap());
        assert_eq!(workspace.roots()[0].given(), ".");
        let everything = RootsSpec { roots: vec!["/".to_owned()], ..RootsSpec::default() };
        assert_eq!(Workspace::open(&everything).unwrap().roots()[0].path(), Path::new("/"));
    }
}
