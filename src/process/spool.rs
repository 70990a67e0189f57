//! Files that hold the whole output of calls whose results had to leave something out.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{Mode, OFlags};

use super::output::FullOutput;

/// The most that is kept of one call's output, in bytes.
pub const SPOOL_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// The most that all kept files take together, in bytes: the oldest make room for a new one.
const SPOOL_TOTAL_BYTES: u64 = 8 * SPOOL_FILE_BYTES;

/// The folder of those files. It must be one that no command can write, since what a later
/// `read_file` shows from it is taken for what a command printed.
#[derive(Debug)]
pub struct Spool {
    folder: PathBuf,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    begun: u64,
    files: VecDeque<(PathBuf, u64)>,
}

/// One file while it is written.
#[derive(Debug)]
pub(crate) struct SpoolFile {
    spool: Arc<Spool>,
    path: PathBuf,
    file: std::fs::File,
    written: u64,
    asked: u64,
}

impl Spool {
    /// A spool in `folder`, which must exist and outlive every file in it.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, kept: Mutex::default() }
    }

    /// Makes a new file.
    pub(crate) fn begin(self: &Arc<Self>) -> io::Result<SpoolFile> {
        let number = {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.begun += 1;
            kept.begun
        };
        let path = self.folder.join(format!("output-{number}.txt"));
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW;
        let file = rustix::fs::open(&path, flags | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR)?;
        Ok(SpoolFile { spool: self.clone(), path, file: file.into(), written: 0, asked: 0 })
    }

    /// Counts a finished file, and removes the oldest ones that no longer fit beside it.
    fn keep(&self, path: PathBuf, bytes: u64) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.files.push_back((path, bytes));
        let mut total: u64 = kept.files.iter().map(|(_, bytes)| bytes).sum();
        while total > SPOOL_TOTAL_BYTES
            && let Some((oldest, bytes)) = kept.files.pop_front()
        {
            total -= bytes;
            // One that cannot be removed goes with the folder.
            let _ = rustix::fs::unlink(&oldest);
        }
    }
}

impl SpoolFile {
    /// Appends `piece`, as far as there is room for it.
    pub(crate) fn append(&mut self, piece: &[u8]) -> io::Result<()> {
        self.asked += piece.len() as u64;
        let room = usize::try_from(SPOOL_FILE_BYTES - self.written).unwrap_or(usize::MAX);
        let fits = &piece[..piece.len().min(room)];
        if let Err(error) = self.file.write_all(fits) {
            let _ = rustix::fs::unlink(&self.path);
            return Err(error);
        }
        self.written += fits.len() as u64;
        Ok(())
    }

    pub(crate) fn finish(self) -> FullOutput {
        self.spool.keep(self.path.clone(), self.written);
        if self.written == self.asked {
            FullOutput::Complete(self.path)
        } else {
            FullOutput::Beginning { path: self.path, bytes: self.written }
        }
    }
}
