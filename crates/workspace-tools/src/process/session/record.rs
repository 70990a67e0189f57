//! What a session printed: the last of it in memory, and from the moment that this is not all, the whole
//! in a file.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use super::super::output::FullOutput;
use super::super::spool::{Spool, SpoolFile};

/// How much is kept in memory, in bytes.
pub(crate) const MEMORY_BYTES: usize = 1024 * 1024;

/// The output of a session, masked.
#[derive(Debug)]
pub(crate) struct Record {
    recent: VecDeque<u8>,
    /// How many bytes came before those.
    begin: u64,
    file: File,
    is_finished: bool,
}

#[derive(Debug)]
enum File {
    NotNeeded(Arc<Spool>),
    Open(SpoolFile),
    Finished(FullOutput),
    Failed,
}

impl Record {
    pub(crate) fn new(spool: Arc<Spool>) -> Self {
        Self { recent: VecDeque::new(), begin: 0, file: File::NotNeeded(spool), is_finished: false }
    }

    /// Adds a piece that ends at a character.
    pub(crate) fn push(&mut self, piece: &[u8]) {
        let excess = (self.recent.len() + piece.len()).saturating_sub(MEMORY_BYTES);
        if excess > 0 {
            self.begin_file();
        }
        if let File::Open(file) = &mut self.file
            && let Err(error) = file.append(piece)
        {
            self.file = File::failed(&error);
        }
        self.recent.extend(piece);
        self.recent.drain(..excess);
        self.begin += excess as u64;
    }

    /// Nothing comes any more.
    pub(crate) fn finish(&mut self) {
        self.is_finished = true;
        let finished = match &self.file {
            File::Open(file) => File::Finished(file.so_far()),
            _ => return,
        };
        if let File::Open(file) = std::mem::replace(&mut self.file, finished) {
            file.finish();
        }
    }

    /// How many bytes there were.
    pub(crate) fn end(&self) -> u64 {
        self.begin + self.recent.len() as u64
    }

    /// The first byte that is still in memory.
    pub(crate) fn begin(&self) -> u64 {
        self.begin
    }

    /// What is in memory from `from` on, at most `most` bytes.
    pub(crate) fn bytes(&self, from: u64, most: usize) -> Vec<u8> {
        let skipped = usize::try_from(from.saturating_sub(self.begin)).unwrap_or(usize::MAX);
        self.recent.iter().skip(skipped.min(self.recent.len())).take(most).copied().collect()
    }

    /// The file, begun now where all is still in memory.
    pub(crate) fn keep(&mut self) -> Option<FullOutput> {
        self.begin_file();
        if self.is_finished {
            self.finish();
        }
        self.full()
    }

    /// The file, where there is one.
    pub(crate) fn full(&self) -> Option<FullOutput> {
        match &self.file {
            File::NotNeeded(_) | File::Failed => None,
            File::Open(file) => Some(file.so_far()),
            File::Finished(FullOutput::Complete(path)) => Some(FullOutput::Complete(path.clone())),
            File::Finished(FullOutput::Beginning { path, bytes }) => {
                Some(FullOutput::Beginning { path: path.clone(), bytes: *bytes })
            }
            File::Finished(FullOutput::Failed(_)) => None,
        }
    }

    fn begin_file(&mut self) {
        let File::NotNeeded(spool) = &self.file else { return };
        let begun = spool.begin().and_then(|mut file| {
            let (first, second) = self.recent.as_slices();
            file.append(first)?;
            file.append(second)?;
            Ok(file)
        });
        self.file = begun.map_or_else(|error| File::failed(&error), File::Open);
    }
}

impl File {
    fn failed(error: &io::Error) -> Self {
        tracing::warn!(%error, "the output of a session cannot be kept in a file");
        Self::Failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test looks at the file")]
    fn the_end_is_in_memory_and_the_whole_in_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let mut record = Record::new(Arc::new(Spool::open(directory.path()).unwrap()));
        record.push(b"first ");
        assert!(record.full().is_none() && record.begin() == 0);
        let piece = vec![b'x'; 300_000];
        (0..5).for_each(|_| record.push(&piece));
        assert_eq!((record.end(), record.begin()), (1_500_006, 1_500_006 - MEMORY_BYTES as u64));
        assert_eq!(record.bytes(0, 3), b"xxx");
        assert_eq!(record.bytes(record.end() - 2, 9), b"xx");
        assert_eq!(record.bytes(u64::MAX, 9), b"");
        record.finish();
        let Some(FullOutput::Complete(path)) = record.full() else { panic!() };
        let whole = std::fs::read(path).unwrap();
        assert!(whole.starts_with(b"first xxx") && whole.len() == 1_500_006);
        let huge = vec![b'y'; 3 * MEMORY_BYTES];
        record.push(&huge);
        assert_eq!(record.end() - record.begin(), MEMORY_BYTES as u64);
    }
}
