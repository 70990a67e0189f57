//! The provider's private state directory: for what has to outlive a process and what no command
//! may read or write.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, OpenOptions, OpenOptionsExt};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::FileStat;
use super::roots::path_of;

/// The name of the provider's directory among those that programs keep their state in.
const NAME: &str = "provider-workspace";

/// A directory that only the provider's user may enter, held as a handle.
#[derive(Debug)]
pub struct StateDirectory {
    directory: Dir,
    path: PathBuf,
}

/// Why there is no state directory to use.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The environment names no directory for it.
    #[error("neither XDG_STATE_HOME nor HOME is set to an absolute path")]
    NoHome,
    /// It cannot be made or opened.
    #[error("cannot open {}: {}", path.display(), super::plain_reason(source))]
    Open {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// It is not the user's own, or others may enter it.
    #[error(
        "{} has the owner uid {owner} and the mode {mode:04o}: it must be this user's own and of \
         mode 0700",
        path.display()
    )]
    Exposed {
        /// The directory.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// Its permission bits.
        mode: u32,
    },
}

impl StateDirectory {
    /// Opens `$XDG_STATE_HOME/provider-workspace`, or `~/.local/state/provider-workspace` where that
    /// variable is not set to an absolute path, as the XDG Base Directory Specification 0.8 has it.
    /// What is missing of it is made, with mode 0700.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn open(variables: &BTreeMap<OsString, OsString>) -> Result<Self, StateError> {
        let absolute = |name: &str| {
            let value = variables.get(OsStr::new(name))?;
            Some(PathBuf::from(value)).filter(|path| path.is_absolute())
        };
        let named = absolute("XDG_STATE_HOME");
        let base = named.or_else(|| Some(absolute("HOME")?.join(".local/state")));
        Self::at(base.ok_or(StateError::NoHome)?.join(NAME))
    }

    /// Opens the directory at `path`, which is made where it is missing.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn at(path: PathBuf) -> Result<Self, StateError> {
        let fail = |source| StateError::Open { path: path.clone(), source };
        make(&path).map_err(|errno| fail(errno.into()))?;
        let directory = Dir::open_ambient_dir(&path, ambient_authority()).map_err(fail)?;
        let stat = FileStat::of(&directory).map_err(|errno| fail(errno.into()))?;
        if stat.uid != rustix::process::geteuid().as_raw() || stat.mode & 0o077 != 0 {
            return Err(StateError::Exposed { path, owner: stat.uid, mode: stat.mode });
        }
        let path = path_of(directory.as_fd()).map_err(|errno| fail(errno.into()))?;
        Ok(Self { directory, path })
    }

    /// Opens a directory in this one, which is made where it is missing.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn subdirectory(&self, name: &str) -> Result<Self, StateError> {
        Self::at(self.path.join(name))
    }

    /// The directory's path, free of links.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a file that is not there yet, for reading and writing, with mode 0600.
    pub(super) fn create(&self, name: &str) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        self.directory.open_with(name, &options)
    }

    /// Opens a file for reading and writing, which is made where it is missing.
    pub(super) fn create_or_open(&self, name: &str) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).mode(0o600);
        self.directory.open_with(name, &options)
    }

    /// Opens a file for reading and writing.
    pub(super) fn file(&self, name: &str) -> io::Result<File> {
        self.directory.open_with(name, OpenOptions::new().read(true).write(true))
    }

    /// The names in it that are UTF-8. All that the provider gives are.
    pub(super) fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in self.directory.entries()? {
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        self.directory.remove_file(name)
    }

    pub(super) fn rename(&self, from: &str, to: &OsStr) -> io::Result<()> {
        self.directory.rename(from, &self.directory, to)
    }

    /// Writes the directory's entries to the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        // The handle itself only leads to what is in it.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let readable = rustix::fs::openat(&self.directory, ".", flags, Mode::empty())?;
        Ok(rustix::fs::fsync(readable)?)
    }
}

/// Makes the directory and those above it.
fn make(path: &Path) -> rustix::io::Result<()> {
    match rustix::fs::mkdir(path, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(Errno::NOENT) => {
            make(path.parent().ok_or(Errno::NOENT)?)?;
            match rustix::fs::mkdir(path, Mode::RWXU) {
                // Another provider made it meanwhile.
                Ok(()) | Err(Errno::EXIST) => Ok(()),
                Err(errno) => Err(errno),
            }
        }
        Err(errno) => Err(errno),
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests set up real files")]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    fn open(variables: &[(&str, &Path)]) -> Result<StateDirectory, StateError> {
        let pair = |(name, value): &(&str, &Path)| ((*name).into(), value.as_os_str().to_owned());
        StateDirectory::open(&variables.iter().map(pair).collect())
    }

    #[test]
    fn it_is_made_for_its_user_alone() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        let state = open(&[("HOME", &home), ("XDG_STATE_HOME", Path::new("relative"))]).unwrap();
        assert_eq!(state.path(), home.join(".local/state/provider-workspace"));
        for made in state.path().ancestors().take(3) {
            assert_eq!(fs::metadata(made).unwrap().mode() & 0o7777, 0o700, "{}", made.display());
        }
        let inner = state.subdirectory("inner").unwrap();
        assert_eq!(inner.path(), state.path().join("inner"));
        let named = open(&[("HOME", &home), ("XDG_STATE_HOME", &home.join("x/y"))]).unwrap();
        assert_eq!(named.path(), home.join("x/y/provider-workspace"));
    }

    #[test]
    fn one_that_others_may_enter_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        let set = |mode| {
            fs::set_permissions(home.join("provider-workspace"), fs::Permissions::from_mode(mode))
                .unwrap();
        };
        drop(open(&[("XDG_STATE_HOME", &home)]).unwrap());
        for mode in [0o750, 0o701, 0o777] {
            set(mode);
            let error = open(&[("XDG_STATE_HOME", &home)]).unwrap_err();
            assert!(matches!(error, StateError::Exposed { .. }), "{error}");
        }
        set(0o700);
        symlink(".", home.join("link")).unwrap();
        let linked = open(&[("XDG_STATE_HOME", &home.join("link"))]).unwrap();
        assert_eq!(linked.path(), home.join("provider-workspace"));
        assert!(matches!(open(&[]).unwrap_err(), StateError::NoHome));
        fs::write(home.join("file"), "").unwrap();
        let error = open(&[("XDG_STATE_HOME", &home.join("file"))]).unwrap_err();
        assert!(matches!(error, StateError::Open { .. }), "{error}");
    }
}
