//! What a result keeps of a command's output: its head and its tail.

use std::path::PathBuf;
use std::sync::Arc;

use super::screen::Screen;
use super::spool::{Spool, SpoolFile};
use super::utf8::{is_continuation, unfinished_character};
use tool_provider::{Masker, Secrets};
use workspace_fs::text::cut;

/// Collects the output of one call, both streams in the order of arrival, as a terminal would show it
/// in the end.
///
/// Memory is bounded by a small multiple of the limit. Once more has come than a result keeps, the
/// whole of it goes to a file as well, as it came; until then nothing is written.
#[derive(Debug)]
pub(crate) struct Transcript {
    screen: Screen,
    /// Masks what is shown: the spelling of a secret may have been interrupted by what a terminal
    /// does not show.
    masker: Masker,
    excerpt: Excerpt,
    spool: Spooling,
}

/// What a transcript has to say when the call is over.
#[derive(Debug)]
pub struct Output {
    /// The text: invalid bytes as U+FFFD, and a marker where something was left out.
    pub text: String,
    /// How many bytes of the text were left out of it.
    pub left_out: u64,
    /// Where all of the output is, when something was left out.
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
    /// All of it so far, which a result may still have room for.
    Waiting(Vec<u8>, Arc<Spool>),
    Running(SpoolFile),
    Failed(std::io::Error),
}

impl Transcript {
    /// `limit` is how many bytes of text a result keeps.
    pub(crate) fn new(limit: usize, spool: Arc<Spool>, secrets: &Secrets) -> Self {
        Self {
            screen: Screen::default(),
            masker: secrets.masker(),
            excerpt: Excerpt { limit, head: Vec::new(), tail: Vec::new(), total: 0 },
            spool: Spooling::Waiting(Vec::new(), spool),
        }
    }

    /// Adds a piece that ends at a character of its stream.
    pub(crate) fn push(&mut self, piece: &[u8]) {
        self.spool.append(piece, self.excerpt.limit);
        let (excerpt, masker) = (&mut self.excerpt, &mut self.masker);
        self.screen.push(piece, &mut |text| excerpt.push_masked(text, masker));
    }

    /// The call is over.
    pub(crate) fn finish(mut self) -> Output {
        let (mut excerpt, mut masker) = (self.excerpt, self.masker);
        self.screen.finish(&mut |text| excerpt.push_masked(text, &mut masker));
        excerpt.push(&masker.finish());
        let (head, left_out, tail) = match excerpt.finish() {
            // The file of a long progress that comes to a few lines is removed.
            Kept::Whole(text) => return Output { text, left_out: 0, full: None },
            Kept::Ends { head, left_out, tail } => (head, left_out, tail),
        };
        // Few bytes can be much text: invalid ones, or a cursor that went far to the right.
        self.spool.begin();
        let full = match self.spool {
            Spooling::Running(file) => Some(file.finish()),
            Spooling::Failed(error) => Some(FullOutput::Failed(error)),
            Spooling::Waiting(..) => None,
        };
        let way_on = match &full {
            Some(FullOutput::Complete(_) | FullOutput::Beginning { .. }) => {
                "; read_file and grep take full_output_path"
            }
            _ => "",
        };
        let before = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
        let text = format!("{head}{before}[… {left_out} bytes left out{way_on} …]\n{tail}");
        Output { text, left_out, full }
    }
}

impl Spooling {
    /// Keeps a piece in memory while there is no more than `limit`.
    fn append(&mut self, piece: &[u8], limit: usize) {
        if let Spooling::Waiting(so_far, _) = self {
            if so_far.len() + piece.len() <= limit {
                so_far.extend_from_slice(piece);
                return;
            }
            self.begin();
        }
        if let Spooling::Running(file) = self
            && let Err(error) = file.append(piece)
        {
            *self = Spooling::Failed(error);
        }
    }

    /// Opens the file, where there is none yet, and writes to it what came so far.
    fn begin(&mut self) {
        let Spooling::Waiting(so_far, spool) = self else { return };
        let begun = spool.begin().and_then(|mut file| {
            file.append(so_far)?;
            Ok(file)
        });
        *self = begun.map_or_else(Spooling::Failed, Spooling::Running);
    }
}

/// The head and the tail of a text.
#[derive(Debug)]
struct Excerpt {
    /// How many bytes of text are kept.
    limit: usize,
    head: Vec<u8>,
    /// The end of what did not fit into the head; grows to twice its share before it is cut.
    tail: Vec<u8>,
    total: u64,
}

/// What is kept of a text.
enum Kept {
    Whole(String),
    Ends { head: String, left_out: u64, tail: String },
}

impl Excerpt {
    fn push_masked(&mut self, piece: &[u8], masker: &mut Masker) {
        match masker.is_needed() {
            true => self.push(&masker.push(piece.to_vec())),
            false => self.push(piece),
        }
    }

    fn push(&mut self, piece: &[u8]) {
        self.total += piece.len() as u64;
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

    fn finish(mut self) -> Kept {
        let share = self.limit - self.head_share();
        self.tail.drain(..self.tail.len().saturating_sub(share));
        if self.total <= self.limit as u64 {
            let whole = [&*self.head, &*self.tail].concat();
            let text = String::from_utf8(whole)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
            if text.len() <= self.limit {
                return Kept::Whole(text);
            }
        }
        let (head, head_bytes) = beginning(&self.head, self.head_share());
        let (tail, tail_bytes) = end(&self.tail, share);
        let left_out = self.total - (head_bytes + tail_bytes) as u64;
        Kept::Ends { head, left_out, tail }
    }

    fn head_share(&self) -> usize {
        self.limit / 2
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
