//! What one session has read and written, to notice another program's changes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::{Stamp, Version};

/// The files that one session knows, by their resolved paths: a path is what stays the same when
/// another program replaces a file, as editors and git do.
///
/// Forgetting is always safe: an unknown file is merely not protected against a lost update.
#[derive(Debug, Default)]
pub struct Session {
    known: Mutex<Known>,
}

/// What a session knows of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Knowledge {
    /// The content's version; absent when the file was too large to be read to its end.
    pub version: Option<Version>,
    /// The file's stamp at that time. Equal stamps save a comparison of contents.
    pub stamp: Stamp,
    /// How much of the content the session has seen.
    pub extent: Extent,
}

/// How much of a file a session has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All of it, by reading or because it wrote it.
    Whole,
    /// Some lines.
    Part,
}

/// How many files a session remembers, about 1 MiB. A session that touches more forgets the ones
/// that it has not touched for longest.
const CAPACITY: usize = 4096;

#[derive(Debug, Default)]
struct Known {
    files: HashMap<PathBuf, (u64, Knowledge)>,
    clock: u64,
}

impl Session {
    /// Notes what was read of the file at `path`. Several parts of one version never add up to the
    /// whole, but a part does not take away what was known of that version.
    pub fn record_read(&self, path: &Path, mut knowledge: Knowledge) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, before)) = known.files.get(path) {
            let same = before.version.is_some() && before.version == knowledge.version;
            if same && before.extent == Extent::Whole {
                knowledge.extent = Extent::Whole;
            }
        }
        known.insert(path, knowledge);
    }

    /// Notes what this session itself wrote to the file at `path`.
    pub fn record_own_write(&self, path: &Path, version: Version, stamp: Stamp) {
        let knowledge = Knowledge { version: Some(version), stamp, extent: Extent::Whole };
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(path, knowledge);
    }

    /// What this session knows of the file at `path`.
    #[must_use]
    pub fn knows(&self, path: &Path) -> Option<Knowledge> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.files.get(path).map(|(_, knowledge)| *knowledge)
    }

    /// Drops what is known of the file at `path`.
    pub fn forget(&self, path: &Path) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).files.remove(path);
    }
}

impl Known {
    fn insert(&mut self, path: &Path, knowledge: Knowledge) {
        self.clock += 1;
        if let Some(entry) = self.files.get_mut(path) {
            *entry = (self.clock, knowledge);
            return;
        }
        if self.files.len() >= CAPACITY {
            self.forget_oldest_quarter();
        }
        self.files.insert(path.to_owned(), (self.clock, knowledge));
    }

    fn forget_oldest_quarter(&mut self) {
        let mut times: Vec<u64> = self.files.values().map(|(time, _)| *time).collect();
        let (_, limit, _) = times.select_nth_unstable(CAPACITY / 4);
        let limit = *limit;
        self.files.retain(|_, (time, _)| *time >= limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FileStat;

    fn knowledge(content: &[u8], extent: Extent) -> Knowledge {
        let stamp = FileStat::of(tempfile::tempfile().unwrap()).unwrap().stamp();
        Knowledge { version: Some(Version::of(content)), stamp, extent }
    }

    #[test]
    fn a_part_does_not_undo_the_whole_of_the_same_version() {
        let session = Session::default();
        let path = Path::new("/w/a");
        session.record_read(path, knowledge(b"1", Extent::Whole));
        session.record_read(path, knowledge(b"1", Extent::Part));
        assert_eq!(session.knows(path).unwrap().extent, Extent::Whole);
        session.record_read(path, knowledge(b"2", Extent::Part));
        assert_eq!(session.knows(path).unwrap().extent, Extent::Part);
        session.record_own_write(path, Version::of(b"3"), knowledge(b"", Extent::Whole).stamp);
        assert_eq!(session.knows(path).unwrap().version, Some(Version::of(b"3")));
        session.forget(path);
        assert_eq!(session.knows(path), None);
    }

    #[test]
    fn memory_is_bounded_and_the_newest_stay() {
        let session = Session::default();
        let something = knowledge(b"x", Extent::Whole);
        for number in 0..CAPACITY * 2 {
            session.record_read(Path::new(&format!("/w/{number}")), something);
        }
        assert!(session.known.lock().unwrap().files.len() <= CAPACITY);
        assert!(session.knows(Path::new("/w/0")).is_none());
        let newest = format!("/w/{}", CAPACITY * 2 - 1);
        assert!(session.knows(Path::new(&newest)).is_some());
    }
}
