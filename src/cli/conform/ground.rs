//! The folder that a provider is tried on: known files, and the state of all of it.
#![expect(
    clippy::disallowed_methods,
    reason = "the checker is a host: it prepares the folder that it hands to a provider, and reads the file that its user named"
)]

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// A file at the top of the folder, with three lines.
pub(crate) const KNOWN: &str = "known.txt";
/// What it holds.
const KNOWN_TEXT: &str = "alpha\nbeta\ngamma\n";
/// A folder in it, which is some calls' working directory.
pub(crate) const INNER: &str = "inner";
/// A file that is nowhere but in there.
pub(crate) const INNER_FILE: &str = "only-here.txt";
/// A file that a running call makes grow.
pub(crate) const TICKS: &str = "ticks";

/// Longest path of a folder for sockets: a socket's path has 107 bytes.
const MOST_PATH: usize = 60;

/// A folder of this process's own, removed with the value: `work` is what a provider is tried on,
/// `tmp` its temporary folder.
#[derive(Debug)]
pub(crate) struct Ground {
    folder: PathBuf,
}

/// What is in a folder: each entry's path, and what would change if it were touched.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct State(BTreeMap<PathBuf, Entry>);

#[derive(Debug, PartialEq, Eq)]
struct Entry {
    mode: u32,
    inode: u64,
    modified: (i64, i64),
    content: Option<Vec<u8>>,
}

impl Ground {
    pub(crate) fn new() -> io::Result<Self> {
        let mut base = std::env::temp_dir();
        if base.as_os_str().len() > MOST_PATH {
            base = PathBuf::from("/tmp");
        }
        let folder = fresh_folder(&base)?;
        let ground = Self { folder };
        fs::create_dir(ground.tmp())?;
        ground.reset()?;
        Ok(ground)
    }

    /// The folder that the provider works on.
    pub(crate) fn work(&self) -> PathBuf {
        self.folder.join("work")
    }

    /// The provider's temporary folder.
    pub(crate) fn tmp(&self) -> PathBuf {
        self.folder.join("tmp")
    }

    /// Brings `work` back to what it was at first.
    pub(crate) fn reset(&self) -> io::Result<()> {
        let work = self.work();
        // The folder itself stays: a provider may hold it open.
        fs::create_dir_all(&work)?;
        for entry in fs::read_dir(&work)? {
            let entry = entry?;
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
        let mut entries = BTreeMap::new();
        let mut folders = vec![self.work()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder)? {
                let path = entry?.path();
                let metadata = fs::symlink_metadata(&path)?;
                if metadata.is_dir() {
                    folders.push(path.clone());
                }
                let content = metadata.is_file().then(|| fs::read(&path)).transpose()?;
                let modified = (metadata.mtime(), metadata.mtime_nsec());
                let (mode, inode) = (metadata.mode(), metadata.ino());
                entries.insert(path, Entry { mode, inode, modified, content });
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
        let mut sockets = Vec::new();
        for entry in fs::read_dir(self.tmp())? {
            let entry = entry?;
            if entry.file_type()?.is_socket() {
                sockets.push(entry.path());
            }
        }
        Ok(sockets)
    }

    /// Removes the sockets in `tmp`, so that each launch answers for its own.
    pub(crate) fn clear_sockets(&self) -> io::Result<()> {
        self.sockets()?.into_iter().try_for_each(fs::remove_file)
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        // What cannot be removed is left in the temporary folder.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl State {
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

fn fresh_folder(base: &Path) -> io::Result<PathBuf> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.subsec_nanos());
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("conform-{}-{now:x}-{count}", std::process::id());
    let folder = base.join(name);
    fs::DirBuilder::new().mode(0o700).create(&folder)?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_change_is_seen_and_a_reset_undoes_it() {
        let ground = Ground::new().unwrap();
        let before = ground.state().unwrap();
        assert_eq!(before.changes(&ground.state().unwrap()), [""; 0]);
        fs::write(ground.work().join("new"), "").unwrap();
        fs::write(ground.work().join(KNOWN), "x").unwrap();
        fs::remove_file(ground.work().join(INNER).join(INNER_FILE)).unwrap();
        let changes = before.changes(&ground.state().unwrap());
        assert_eq!(changes.iter().filter(|change| change.ends_with("was made")).count(), 1);
        assert_eq!(changes.iter().filter(|change| change.ends_with("was removed")).count(), 1);
        assert!(changes.iter().any(|change| change.ends_with("known.txt was changed")));
        ground.reset().unwrap();
        assert!(ground.work().join(INNER).join(INNER_FILE).is_file());
        let folder = ground.folder.clone();
        drop(ground);
        assert!(!folder.exists());
    }
}
