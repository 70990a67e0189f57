//! Files that hold the whole output of calls whose results had to leave something out.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cap_std::fs::{Dir, File, OpenOptions, OpenOptionsExt as _};

use super::output::FullOutput;

/// The most that is kept of one call's output, in bytes.
pub const SPOOL_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// How much is kept of all calls together.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    bytes: u64,
    files: usize,
}

/// The oldest files are removed for a new one.
const BOUNDS: Bounds = Bounds { bytes: 8 * SPOOL_FILE_BYTES, files: 256 };

/// The directory of those files. It must be one that no command can write, since what a later
/// `read_file` shows from it is taken for what a command printed.
#[derive(Debug)]
pub struct Spool {
    directory: Dir,
    /// Where it is, for those who are to read the files.
    path: PathBuf,
    bounds: Bounds,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    begun: u64,
    /// Bytes of all files, of those too that are being written.
    bytes: u64,
    /// How many are being written.
    open: usize,
    /// The names of those that are finished, the oldest first, with their bytes.
    finished: VecDeque<(String, u64)>,
}

/// One file while it is written. Dropping it unfinished removes it.
#[derive(Debug)]
pub(crate) struct SpoolFile {
    spool: Arc<Spool>,
    name: String,
    file: File,
    written: u64,
    asked: u64,
    fate: Fate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Removed,
    Kept,
}

impl Spool {
    /// A spool in the directory `path`, which must outlive every file in it.
    ///
    /// # Errors
    /// What keeps the directory from being opened.
    #[expect(clippy::disallowed_methods, reason = "the provider's own directory")]
    pub fn open(path: &Path) -> io::Result<Self> {
        let directory = Dir::open_ambient_dir(path, cap_std::ambient_authority())?;
        Ok(Self { directory, path: path.to_owned(), bounds: BOUNDS, kept: Mutex::default() })
    }

    /// Makes a new file.
    pub(crate) fn begin(self: &Arc<Self>) -> io::Result<SpoolFile> {
        let number = {
            let mut kept = self.lock();
            kept.begun += 1;
            kept.begun
        };
        let name = format!("output-{number}.txt");
        let file = self
            .directory
            .open_with(&name, OpenOptions::new().write(true).create_new(true).mode(0o600))?;
        let mut kept = self.lock();
        kept.open += 1;
        kept.free_space(0, self);
        drop(kept);
        let fate = Fate::Removed;
        Ok(SpoolFile { spool: self.clone(), name, file, written: 0, asked: 0, fate })
    }

    /// Reserves up to `wanted` bytes, and returns how many there are.
    fn claim(&self, wanted: u64) -> u64 {
        let mut kept = self.lock();
        kept.free_space(wanted, self);
        let granted = wanted.min(self.bounds.bytes.saturating_sub(kept.bytes));
        kept.bytes += granted;
        granted
    }

    /// Removes a file. One that stays goes with the directory.
    fn remove(&self, name: &str) {
        let _ = self.directory.remove_file(name);
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// Removes the oldest files until `wanted` more bytes fit, as far as that is possible: what is
    /// being written stays.
    fn free_space(&mut self, wanted: u64, spool: &Spool) {
        let bounds = spool.bounds;
        while (self.bytes + wanted > bounds.bytes || self.open + self.finished.len() > bounds.files)
            && let Some((oldest, bytes)) = self.finished.pop_front()
        {
            self.bytes -= bytes;
            spool.remove(&oldest);
        }
    }
}

impl SpoolFile {
    /// Appends as much of `piece` as fits. What comes after a gap is not written.
    pub(crate) fn append(&mut self, piece: &[u8]) -> io::Result<()> {
        let is_whole = self.written == self.asked;
        self.asked += piece.len() as u64;
        if !is_whole {
            return Ok(());
        }
        let wanted = (piece.len() as u64).min(SPOOL_FILE_BYTES - self.written);
        let granted = self.spool.claim(wanted);
        self.written += granted;
        // No larger than the piece.
        let fits = usize::try_from(granted).unwrap_or(piece.len());
        self.file.write_all(&piece[..fits])
    }

    /// Where it is, and whether all that was appended is in it.
    pub(crate) fn so_far(&self) -> FullOutput {
        let path = self.spool.path.join(&self.name);
        if self.written == self.asked {
            FullOutput::Complete(path)
        } else {
            FullOutput::Beginning { path, bytes: self.written }
        }
    }

    pub(crate) fn finish(mut self) -> FullOutput {
        self.fate = Fate::Kept;
        self.so_far()
    }
}

impl Drop for SpoolFile {
    fn drop(&mut self) {
        let mut kept = self.spool.lock();
        kept.open -= 1;
        match self.fate {
            Fate::Kept => kept.finished.push_back((std::mem::take(&mut self.name), self.written)),
            Fate::Removed => {
                kept.bytes -= self.written;
                self.spool.remove(&self.name);
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test looks at the files")]
mod tests {
    use super::*;

    fn spool(directory: &tempfile::TempDir, bytes: u64, files: usize) -> Arc<Spool> {
        Arc::new(Spool {
            bounds: Bounds { bytes, files },
            ..Spool::open(directory.path()).unwrap()
        })
    }

    fn keep(spool: &Arc<Spool>, text: &[u8]) -> FullOutput {
        let mut file = spool.begin().unwrap();
        file.append(text).unwrap();
        file.finish()
    }

    fn names(directory: &tempfile::TempDir) -> Vec<String> {
        let entries = std::fs::read_dir(directory.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_oldest_files_make_room_by_number_and_by_size() {
        let directory = tempfile::tempdir().unwrap();
        let few = spool(&directory, 1000, 2);
        (0..5).for_each(|_| drop(keep(&few, b"text")));
        assert_eq!(names(&directory), ["output-4.txt", "output-5.txt"]);

        let directory = tempfile::tempdir().unwrap();
        let small = spool(&directory, 10, 100);
        (0..5).for_each(|_| drop(keep(&small, b"text")));
        assert_eq!(names(&directory), ["output-4.txt", "output-5.txt"]);
    }

    #[test]
    fn files_that_are_written_side_by_side_share_the_room_and_none_is_taken_away() {
        let directory = tempfile::tempdir().unwrap();
        let spool = spool(&directory, 10, 1);
        let [mut one, mut other] = [spool.begin().unwrap(), spool.begin().unwrap()];
        one.append(b"123456").unwrap();
        other.append(b"123456").unwrap();
        other.append(b"7").unwrap();
        one.append(b"").unwrap();
        assert!(matches!(one.finish(), FullOutput::Complete(path) if path.exists()));
        let FullOutput::Beginning { path, bytes } = other.finish() else { panic!() };
        assert_eq!((std::fs::read(path).unwrap().as_slice(), bytes), (&b"1234"[..], 4));
        assert_eq!(names(&directory).len(), 2);
        assert!(matches!(keep(&spool, b"next"), FullOutput::Complete(_)));
        assert_eq!(names(&directory), ["output-3.txt"]);
    }

    #[test]
    fn a_file_that_is_not_finished_goes_and_gives_its_room_back() {
        let directory = tempfile::tempdir().unwrap();
        let spool = spool(&directory, 10, 10);
        let mut file = spool.begin().unwrap();
        file.append(b"1234567890").unwrap();
        drop(file);
        assert_eq!(names(&directory), [""; 0]);
        assert!(matches!(keep(&spool, b"1234567890"), FullOutput::Complete(_)));
    }
}
