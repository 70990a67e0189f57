//! The directory that a provider is tested on: known files, and the state of all of it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, mkdirat, openat, unlinkat};

/// A file at the top of the directory, with three lines.
pub(crate) const KNOWN: &str = "known.txt";
/// What it holds.
const KNOWN_TEXT: &str = "alpha\nbeta\ngamma\n";
/// A directory in it, which is some calls' working directory.
pub(crate) const INNER: &str = "inner";
/// A file that is nowhere but in there.
pub(crate) const INNER_FILE: &str = "only-here.txt";
/// A file that a running call makes grow.
pub(crate) const TICKS: &str = "ticks";

const WORK: &str = "work";
const TMP: &str = "tmp";

/// Longest path of a directory for sockets: a socket's path has 107 bytes.
const MOST_PATH: usize = 60;

/// The most of a file that is compared. Beyond it, size and times show a change.
const MOST_CONTENT: u64 = 1 << 20;

/// A directory of this process's own, removed with the value: `work` is what a provider is tried on,
/// `tmp` its temporary directory.
///
/// A provider may put a link in the place of either. What is removed is removed through a handle
/// that follows none, so that it is never anything outside.
#[derive(Debug)]
pub(crate) struct Fixture {
    directory: PathBuf,
    handle: OwnedFd,
    /// What is the provider's own in `work`: its state, which it relies on finding again.
    own: Vec<OsString>,
}

/// What is in a directory: each entry's path, and what would change if it were touched.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct State(BTreeMap<PathBuf, Entry>);

#[derive(Debug, PartialEq, Eq)]
struct Entry {
    mode: u32,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    content: Option<Vec<u8>>,
}

impl Fixture {
    pub(crate) fn new() -> io::Result<Self> {
        let mut base = std::env::temp_dir();
        if base.as_os_str().len() > MOST_PATH {
            base = PathBuf::from("/tmp");
        }
        let directory = fresh_directory(&base)?;
        let handle = open_directory(CWD, &directory)?;
        let fixture = Self { directory, handle, own: Vec::new() };
        fs::create_dir(fixture.tmp())?;
        fixture.reset()?;
        Ok(fixture)
    }

    /// The directory that the provider works on.
    pub(crate) fn work(&self) -> PathBuf {
        self.directory.join(WORK)
    }

    /// Where the provider may keep state: what it keeps of a check is not the operator's.
    pub(crate) fn state_home(&self) -> PathBuf {
        self.directory.join("state")
    }

    /// The provider's temporary directory.
    pub(crate) fn tmp(&self) -> PathBuf {
        self.directory.join(TMP)
    }

    /// Takes what a provider made in `work` while it was configured for its own.
    pub(crate) fn adopt(&mut self) -> io::Result<()> {
        let work = self.open(WORK)?;
        for entry in fs::read_dir(through(&work))? {
            let name = entry?.file_name();
            if name != KNOWN && name != INNER && name != TICKS && !self.own.contains(&name) {
                self.own.push(name);
            }
        }
        Ok(())
    }

    /// Brings `work` back to what it was at first, but for what is the provider's own.
    pub(crate) fn reset(&self) -> io::Result<()> {
        // The directory itself stays: a provider may hold it open.
        let work = match self.open(WORK) {
            Ok(work) => work,
            Err(_) => {
                // It is gone, or something else is there.
                let _ = unlinkat(&self.handle, WORK, AtFlags::empty());
                mkdirat(&self.handle, WORK, Mode::from_raw_mode(0o777))?;
                self.open(WORK)?
            }
        };
        let work = through(&work);
        for entry in fs::read_dir(&work)? {
            let entry = entry?;
            if self.own.contains(&entry.file_name()) {
                continue;
            }
            if entry.file_type()?.is_dir() {
                fs::remove_dir_all(entry.path())?;
            } else {
                fs::remove_file(entry.path())?;
            }
        }
        fs::write(work.join(KNOWN), KNOWN_TEXT)?;
        fs::create_dir(work.join(INNER))?;
        fs::write(work.join(INNER).join(INNER_FILE), "beta\n")
    }

    /// The state of `work`.
    pub(crate) fn state(&self) -> io::Result<State> {
        let work = self.open(WORK)?;
        let top = through(&work);
        let mut entries = BTreeMap::new();
        let mut directories = vec![top.clone()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(&directory)? {
                let path = entry?.path();
                let metadata = fs::symlink_metadata(&path)?;
                if metadata.is_dir() {
                    directories.push(path.clone());
                }
                let content = metadata.is_file().then(|| beginning(&path)).transpose()?;
                let modified = (metadata.mtime(), metadata.mtime_nsec());
                let (mode, inode, size) = (metadata.mode(), metadata.ino(), metadata.len());
                let shown = self.work().join(path.strip_prefix(&top).unwrap_or(&path));
                entries.insert(shown, Entry { mode, inode, size, modified, content });
            }
        }
        Ok(State(entries))
    }

    /// How large a file in `work` is; nothing where there is none.
    pub(crate) fn size(&self, name: &str) -> u64 {
        fs::symlink_metadata(self.work().join(name)).map_or(0, |metadata| metadata.len())
    }

    /// The sockets in `tmp`.
    pub(crate) fn sockets(&self) -> io::Result<Vec<PathBuf>> {
        let tmp = self.open(TMP)?;
        let names = sockets_in(&tmp)?;
        Ok(names.into_iter().map(|name| self.tmp().join(name)).collect())
    }

    /// Removes the sockets in `tmp`, so that each launch answers for its own.
    pub(crate) fn clear_sockets(&self) -> io::Result<()> {
        let tmp = self.open(TMP)?;
        let names = sockets_in(&tmp)?;
        Ok(names.iter().try_for_each(|name| unlinkat(&tmp, name, AtFlags::empty()))?)
    }

    /// Opens one of the two directories; a link in its place is none.
    fn open(&self, name: &str) -> io::Result<OwnedFd> {
        open_directory(&self.handle, Path::new(name))
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        // What cannot be removed is left in the temporary directory.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

impl State {
    /// What is another thing in `after`, or holds another: when it was written does not matter.
    pub(crate) fn differences(&self, after: &State) -> Vec<String> {
        let paths: BTreeSet<&PathBuf> = self.0.keys().chain(after.0.keys()).collect();
        let differs = |path: &&&PathBuf| {
            let compared = |state: &State| {
                let entry = state.0.get(**path)?;
                Some((entry.mode, entry.size, entry.content.clone()))
            };
            compared(self) != compared(after)
        };
        paths.iter().filter(differs).map(|path| path.display().to_string()).collect()
    }

    /// What is different in `after`, a line each.
    pub(crate) fn changes(&self, after: &State) -> Vec<String> {
        let mut changes = Vec::new();
        for (path, entry) in &self.0 {
            match after.0.get(path) {
                None => changes.push(format!("{} was removed", path.display())),
                Some(other) if other != entry => {
                    changes.push(format!("{} was changed", path.display()));
                }
                Some(_) => {}
            }
        }
        for path in after.0.keys().filter(|path| !self.0.contains_key(*path)) {
            changes.push(format!("{} was made", path.display()));
        }
        changes
    }
}

/// Whether a socket is there.
pub(crate) fn is_socket(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket())
}

/// The text of a file that the user named.
pub(crate) fn file_text(path: &Path) -> io::Result<String> {
    fs::read_to_string(path)
}

fn open_directory(at: impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(at, path, flags, Mode::empty())?)
}

/// The path that leads to an open directory, whatever is where it was opened.
fn through(directory: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()))
}

fn sockets_in(directory: &OwnedFd) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(through(directory))? {
        let entry = entry?;
        if entry.file_type()?.is_socket() {
            names.push(entry.file_name());
        }
    }
    Ok(names)
}

/// A file's content, as far as it is compared. What has taken the file's place meanwhile is not
/// waited for.
fn beginning(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = fs::File::from(openat(CWD, path, flags, Mode::empty())?);
    let mut content = Vec::new();
    file.take(MOST_CONTENT).read_to_end(&mut content)?;
    Ok(content)
}

fn fresh_directory(base: &Path) -> io::Result<PathBuf> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.subsec_nanos());
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("conform-{}-{now:x}-{count}", std::process::id());
    let directory = base.join(name);
    fs::DirBuilder::new().mode(0o700).create(&directory)?;
    Ok(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_change_is_seen_and_a_reset_undoes_it() {
        let fixture = Fixture::new().unwrap();
        let before = fixture.state().unwrap();
        assert_eq!(before.changes(&fixture.state().unwrap()), [""; 0]);
        fs::write(fixture.work().join("new"), "").unwrap();
        fs::write(fixture.work().join(KNOWN), "x").unwrap();
        fs::remove_file(fixture.work().join(INNER).join(INNER_FILE)).unwrap();
        let changes = before.changes(&fixture.state().unwrap());
        assert_eq!(changes.iter().filter(|change| change.ends_with("was made")).count(), 1);
        assert_eq!(changes.iter().filter(|change| change.ends_with("was removed")).count(), 1);
        assert!(changes.iter().any(|change| change.ends_with("known.txt was changed")));
        assert_eq!(before.differences(&fixture.state().unwrap()).len(), 3);
        fixture.reset().unwrap();
        assert_eq!(before.differences(&fixture.state().unwrap()), [""; 0]);
        assert!(fixture.work().join(INNER).join(INNER_FILE).is_file());
        let directory = fixture.directory.clone();
        drop(fixture);
        assert!(!directory.exists());
    }

    #[test]
    fn what_a_provider_made_when_it_was_configured_stays() {
        let mut fixture = Fixture::new().unwrap();
        fs::write(fixture.work().join("state.db"), "").unwrap();
        fixture.adopt().unwrap();
        fs::write(fixture.work().join("of-a-call"), "").unwrap();
        fs::remove_file(fixture.work().join(KNOWN)).unwrap();
        fixture.reset().unwrap();
        assert!(fixture.work().join("state.db").exists() && fixture.work().join(KNOWN).exists());
        assert!(!fixture.work().join("of-a-call").exists());
    }

    #[test]
    fn a_link_in_the_place_of_a_directory_leads_to_no_harm() {
        let other = tempfile::tempdir().unwrap();
        let other = other.path();
        fs::write(other.join("precious"), "x").unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(other.join("socket")).unwrap();
        let fixture = Fixture::new().unwrap();
        for name in [WORK, TMP] {
            fs::rename(
                fixture.directory.join(name),
                fixture.directory.join(format!("{name}-away")),
            )
            .unwrap();
            std::os::unix::fs::symlink(other, fixture.directory.join(name)).unwrap();
        }
        assert!(fixture.sockets().is_err() && fixture.clear_sockets().is_err());
        assert!(fixture.state().is_err());
        fixture.reset().unwrap();
        assert!(other.join("precious").exists() && other.join("socket").exists());
        assert!(!other.join(KNOWN).exists() && fixture.work().join(KNOWN).exists());
        drop(fixture);
        assert!(other.join("precious").exists());
    }

    #[test]
    fn a_file_of_any_size_is_compared_in_bounded_memory() {
        let fixture = Fixture::new().unwrap();
        let path = fixture.work().join("huge");
        fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
        let before = fixture.state().unwrap();
        assert_eq!(before.0[&path].content.as_ref().unwrap().len() as u64, MOST_CONTENT);
        fs::File::options().write(true).open(&path).unwrap().set_len(1 << 39).unwrap();
        assert_eq!(before.changes(&fixture.state().unwrap()).len(), 1);
    }
}
