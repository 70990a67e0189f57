//! What a result keeps of a command's output: its head and its tail.

use std::path::PathBuf;
use std::sync::Arc;

use super::spool::{Spool, SpoolFile};
use super::utf8::{is_continuation, unfinished_character};
use workspace_fs::text::cut;

/// Collects the output of one call, both streams in the order of arrival.
///
/// Memory is bounded by a small multiple of the limit. Once more has come than a result keeps, the
/// whole of it goes to a file as well; until then nothing is written.
#[derive(Debug)]
pub(crate) struct Transcript {
    /// How many bytes of text a result keeps.
    limit: usize,
    head: Vec<u8>,
    /// The end of what did not fit into the head; grows to twice its share before it is cut.
    tail: Vec<u8>,
    total: u64,
    spool: Spooling,
}

/// What a transcript has to say when the call is over.
#[derive(Debug)]
pub struct Output {
    /// The text: invalid bytes as U+FFFD, and a marker where something was left out.
    pub text: String,
    /// How many bytes were left out of it.
    pub left_out: u64,
    /// Where all of it is, when something was left out.
    pub full: Option<FullOutput>,
}

/// The file that holds what a result had to leave out.
#[derive(Debug)]
pub enum FullOutput {
    /// Everything is in it.
    Complete(PathBuf),
    /// It holds only the beginning.
    Beginning {
        /// Where it is.
        path: PathBuf,
        /// How many bytes it holds.
        bytes: u64,
    },
    /// It could not be written, and this is why.
    Failed(std::io::Error),
}

#[derive(Debug)]
enum Spooling {
    Waiting(Arc<Spool>),
    Running(SpoolFile),
    Failed(std::io::Error),
}

impl Transcript {
    pub(crate) fn new(limit: usize, spool: Arc<Spool>) -> Self {
        Self {
            limit,
            head: Vec::new(),
            tail: Vec::new(),
            total: 0,
            spool: Spooling::Waiting(spool),
        }
    }

    /// Adds a piece that ends at a character of its stream.
    pub(crate) fn push(&mut self, piece: &[u8]) {
        self.total += piece.len() as u64;
        if let Spooling::Waiting(_) = self.spool
            && self.total > self.limit as u64
        {
            self.begin_spool();
        }
        if let Spooling::Running(file) = &mut self.spool
            && let Err(error) = file.append(piece)
        {
            self.spool = Spooling::Failed(error);
        }

        let limit = self.head_share() - self.head.len();
        let (first, rest) = piece.split_at(piece.len().min(limit));
        self.head.extend_from_slice(first);
        let share = self.limit - self.head_share();
        if rest.len() >= share {
            self.tail.clear();
            self.tail.extend_from_slice(&rest[rest.len() - share..]);
        } else {
            self.tail.extend_from_slice(rest);
            if self.tail.len() > 2 * share {
                self.tail.drain(..self.tail.len() - share);
            }
        }
    }

    /// The call is over.
    pub(crate) fn finish(mut self) -> Output {
        let share = self.limit - self.head_share();
        self.tail.drain(..self.tail.len().saturating_sub(share));
        if self.total <= self.limit as u64 {
            let whole = [&*self.head, &*self.tail].concat();
            let text = String::from_utf8(whole)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
            if text.len() <= self.limit {
                return Output { text, left_out: 0, full: None };
            }
            // Few bytes, but so many invalid ones that their replacements take too many.
            self.begin_spool();
        }
        let (head, head_bytes) = beginning(&self.head, self.head_share());
        let (tail, tail_bytes) = end(&self.tail, share);
        let left_out = self.total - (head_bytes + tail_bytes) as u64;
        let before = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
        let text = format!("{head}{before}[… {left_out} bytes left out …]\n{tail}");
        let full = match self.spool {
            Spooling::Running(file) => Some(file.finish()),
            Spooling::Failed(error) => Some(FullOutput::Failed(error)),
            Spooling::Waiting(_) => None,
        };
        Output { text, left_out, full }
    }

    fn head_share(&self) -> usize {
        self.limit / 2
    }

    /// Opens the file and writes to it what came so far, which head and tail still hold whole.
    fn begin_spool(&mut self) {
        let Spooling::Waiting(spool) = &self.spool else { return };
        let begun = spool.begin().and_then(|mut file| {
            file.append(&self.head)?;
            file.append(&self.tail)?;
            Ok(file)
        });
        self.spool = begun.map_or_else(Spooling::Failed, Spooling::Running);
    }
}

/// The beginning of `bytes` as at most `limit` bytes of text, and how many bytes it stands for. Ends
/// at the end of a line where one is near.
fn beginning(bytes: &[u8], limit: usize) -> (String, usize) {
    let whole = &bytes[..bytes.len() - unfinished_character(bytes)];
    let near = whole.len() - whole.len() / 4;
    let bytes = match memchr::memrchr(b'\n', whole) {
        Some(newline) if newline >= near => &whole[..=newline],
        _ => whole,
    };
    let mut text = String::new();
    let mut taken = 0;
    for chunk in bytes.utf8_chunks() {
        let valid = cut::beginning(chunk.valid(), limit - text.len());
        text.push_str(valid);
        taken += valid.len();
        if valid.len() < chunk.valid().len() {
            break;
        }
        if !chunk.invalid().is_empty() {
            if text.len() + char::REPLACEMENT_CHARACTER.len_utf8() > limit {
                break;
            }
            text.push(char::REPLACEMENT_CHARACTER);
            taken += chunk.invalid().len();
        }
    }
    (text, taken)
}

/// The end of `bytes` as at most `limit` bytes of text, and how many bytes it stands for. Starts at
/// the start of a line where one is near.
fn end(bytes: &[u8], limit: usize) -> (String, usize) {
    let broken = bytes.iter().take(3).take_while(|&&byte| is_continuation(byte)).count();
    let whole = &bytes[broken..];
    let bytes = match memchr::memchr(b'\n', whole) {
        Some(newline) if newline < whole.len() / 4 => &whole[newline + 1..],
        _ => whole,
    };
    let text = String::from_utf8_lossy(bytes);
    let mut excess = text.len().saturating_sub(limit);
    let mut skipped = 0;
    for chunk in bytes.utf8_chunks() {
        if excess == 0 {
            break;
        }
        let valid = chunk.valid();
        let cut = ceil(valid, excess.min(valid.len()));
        skipped += cut;
        excess = excess.saturating_sub(cut);
        if excess > 0 && !chunk.invalid().is_empty() {
            skipped += chunk.invalid().len();
            excess = excess.saturating_sub(char::REPLACEMENT_CHARACTER.len_utf8());
        }
    }
    let kept = &bytes[skipped..];
    (String::from_utf8_lossy(kept).into_owned(), kept.len())
}

/// The first character boundary at `at` or after it.
fn ceil(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests;
