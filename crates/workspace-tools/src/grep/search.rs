//! Searches one file after the other, with buffers that are used again.

use std::cell::Cell;
use std::io::{self, Read};

use encoding_rs::{Decoder, Encoding, UTF_8, UTF_16BE, UTF_16LE};
use grep_searcher::{BinaryDetection, MmapChoice, Searcher, SearcherBuilder};

use super::arguments::{Around, Mode};
use super::collect::{Collector, Hits, Lines, SearchLimits};
use super::matcher::{self, Compiled};
use tool_provider::Secrets;
use workspace_fs::FileKind;
use workspace_fs::tree::{Content, Entry, Skip, Stop, Visit, VisitResult};

/// Files up to this size are read whole before they are searched.
const SMALL: usize = 256 * 1024;
/// The same where a match may go over several lines, which needs the whole file.
pub(super) const MOST_MULTILINE: usize = 16 * 1024 * 1024;
/// The longest line that is searched.
pub(super) const MOST_LINE: usize = 8 * 1024 * 1024;

/// What is searched for, and how.
pub(super) struct Search {
    pub(super) pattern: Compiled,
    pub(super) around: Around,
    pub(super) limits: SearchLimits,
    pub(super) secrets: Secrets,
}

/// What a thread uses again from file to file.
pub(super) struct Local {
    matcher: matcher::Local,
    searcher: Searcher,
    bytes: Vec<u8>,
    decoded: String,
}

impl Visit for Search {
    type Local = Local;
    type Found = Hits;

    fn local(&self) -> Local {
        let lines = self.limits.lines;
        let searcher = SearcherBuilder::new()
            .line_number(true)
            .multi_line(lines == Lines::Many)
            .before_context(self.around.before)
            .after_context(self.around.after)
            // A file that is cut while it is mapped kills the process.
            .memory_map(MmapChoice::never())
            .heap_limit(Some(MOST_LINE))
            // Both are done here: the searcher's own ways differ between slices and readers.
            .binary_detection(BinaryDetection::none())
            .bom_sniffing(false)
            // The searcher is quick where it and the matcher agree on how a line ends.
            .line_terminator(self.pattern.line_terminator().unwrap_or_default())
            .build();
        Local {
            matcher: matcher::Local::new(&self.pattern),
            searcher,
            bytes: Vec::new(),
            decoded: String::new(),
        }
    }

    fn wants(&self, kind: FileKind) -> bool {
        kind == FileKind::Regular
    }

    fn visit(&self, local: &mut Local, entry: &Entry<'_>, stop: &Stop) -> VisitResult<Hits> {
        match entry.open() {
            Ok(content) => self.search(local, &content, stop),
            // Removed since its directory was listed, or no file any more.
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::LOOP) => VisitResult::nothing(),
            Err(_) => VisitResult::skipped(Skip::Unreadable),
        }
    }
}

impl Search {
    fn search(&self, local: &mut Local, content: &Content, stop: &Stop) -> VisitResult<Hits> {
        let most = match self.limits.lines {
            Lines::One => SMALL,
            Lines::Many => MOST_MULTILINE,
        };
        let length = match read_whole(content, &mut local.bytes, most, stop) {
            Ok(length) => length,
            Err(_) => return VisitResult::skipped(Skip::Unreadable),
        };
        let Local { matcher, searcher, bytes, decoded } = local;
        let is_stopped = || stop.is_set();
        let matcher = matcher.until(&is_stopped);
        let mut collector = Collector::new(&matcher, self.limits, &self.secrets, stop);
        let skip = match (length, self.limits.lines) {
            (Whole::Yes(length), _) => {
                let (text, skip) = text_of(&bytes[..length], decoded);
                // Only a stop ends the search of a text that is there, and what was found counts.
                let _ = searcher.search_slice(&matcher, text, &mut collector);
                skip
            }
            (Whole::No(_), Lines::Many) => return VisitResult::skipped(Skip::TooLarge),
            (Whole::No(length), Lines::One) => {
                let seen = Cell::new(Reached::Limit);
                let text = Text::new(&bytes[..length], content, stop, &seen);
                let searched = searcher.search_reader(&matcher, text, &mut collector);
                match (seen.get(), searched) {
                    (Reached::Fault, _) => Some(Skip::Unreadable),
                    (Reached::Nul, _) => Some(Skip::Binary),
                    (Reached::Limit, Ok(())) => None,
                    (Reached::Limit, Err(_)) if stop.is_set() => None,
                    // The only error of the searcher's own: a line that exceeds its heap limit.
                    (Reached::Limit, Err(_)) => Some(Skip::TooLarge),
                }
            }
        };
        let (found, weight) = collector.finish();
        if found.count == 0 {
            return VisitResult { skip, ..VisitResult::nothing() };
        }
        let hits = match self.limits.mode {
            Mode::Content => found.count.min(self.limits.most_per_file),
            Mode::Files | Mode::Count => 1,
        };
        VisitResult { hits, weight, skip, found: Some(found) }
    }
}

/// How much of a file was read.
enum Whole {
    /// All of it: so many bytes.
    Yes(usize),
    /// It is larger than it may be; these many bytes are its beginning.
    No(usize),
}

/// Reads a file of at most `most` bytes into the buffer, or the beginning of a larger one.
fn read_whole(
    content: &Content,
    buffer: &mut Vec<u8>,
    most: usize,
    stop: &Stop,
) -> io::Result<Whole> {
    let expected = usize::try_from(content.size()).unwrap_or(usize::MAX);
    let capacity = expected.clamp(SMALL, most) + 1;
    if buffer.len() < capacity {
        buffer.resize(capacity, 0);
    }
    let mut filled = 0;
    while !stop.is_set() {
        if filled == buffer.len() {
            // It has grown, or never reported its size.
            buffer.resize((filled * 2).min(most + 1), 0);
        }
        // In pieces, so that a stop is seen soon.
        let end = buffer.len().min(filled + SMALL + 1);
        match content.read(&mut buffer[filled..end])? {
            0 => break,
            count => filled += count,
        }
        if filled > most || (expected > most && filled >= SMALL) {
            return Ok(Whole::No(filled));
        }
        // To ask for its end would only tell what its size says already.
        if filled == expected {
            break;
        }
    }
    Ok(Whole::Yes(filled))
}

/// The text of a file that was read whole, up to its first NUL.
fn text_of<'a>(bytes: &'a [u8], decoded: &'a mut String) -> (&'a [u8], Option<Skip>) {
    let text = match byte_order_mark(bytes) {
        None => bytes,
        Some((encoding, mark)) if encoding == UTF_8 => &bytes[mark..],
        Some((encoding, mark)) => {
            decoded.clear();
            let mut decoder = encoding.new_decoder_without_bom_handling();
            let bytes = &bytes[mark..];
            decoded.reserve(decoder.max_utf8_buffer_length(bytes.len()).unwrap_or(0));
            let _ = decoder.decode_to_string(bytes, decoded, true);
            decoded.as_bytes()
        }
    };
    match memchr::memchr(0, text) {
        Some(nul) => (&text[..nul], Some(Skip::Binary)),
        None => (text, None),
    }
}

fn byte_order_mark(bytes: &[u8]) -> Option<(&'static Encoding, usize)> {
    match bytes {
        [0xef, 0xbb, 0xbf, ..] => Some((UTF_8, 3)),
        [0xff, 0xfe, ..] => Some((UTF_16LE, 2)),
        [0xfe, 0xff, ..] => Some((UTF_16BE, 2)),
        _ => None,
    }
}

/// How far a reader came.
#[derive(Clone, Copy, PartialEq)]
enum Reached {
    /// To the end, or to where it was expected to stop.
    Limit,
    /// To a NUL.
    Nul,
    /// To where the system failed.
    Fault,
}

/// The text of a large file as it is read, up to its first NUL.
struct Text<'a> {
    /// The file's beginning, which was read already, as far as it was not handed out.
    head: &'a [u8],
    content: &'a Content,
    stop: &'a Stop,
    reached: &'a Cell<Reached>,
    decoder: Option<Transcoder>,
}

struct Transcoder {
    decoder: Decoder,
    raw: Vec<u8>,
    /// What was decoded, and how much of it was handed out. A place of its own, because a reader may
    /// ask for less than one character.
    decoded: String,
    taken: usize,
    is_last: bool,
}

/// How much is read for decoding at a time.
const RAW: usize = 32 * 1024;

impl<'a> Text<'a> {
    fn new(
        head: &'a [u8],
        content: &'a Content,
        stop: &'a Stop,
        reached: &'a Cell<Reached>,
    ) -> Self {
        let (encoding, mark) = byte_order_mark(head).unwrap_or((UTF_8, 0));
        let decoder = (encoding != UTF_8).then(|| Transcoder {
            decoder: encoding.new_decoder_without_bom_handling(),
            raw: vec![0; RAW],
            decoded: String::new(),
            taken: 0,
            is_last: false,
        });
        Self { head: &head[mark..], content, stop, reached, decoder }
    }

    fn read_raw(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_set() {
            return Ok(0);
        }
        if !self.head.is_empty() {
            return self.head.read(buffer);
        }
        self.content.read(buffer).map_err(|errno| {
            self.reached.set(Reached::Fault);
            errno.into()
        })
    }

    fn read_decoded(&mut self, buffer: &mut [u8], with: &mut Transcoder) -> io::Result<usize> {
        while with.taken == with.decoded.len() && !with.is_last {
            let count = self.read_raw(&mut with.raw)?;
            with.is_last = count == 0;
            with.decoded.clear();
            with.taken = 0;
            let capacity = with.decoder.max_utf8_buffer_length(count).unwrap_or(RAW * 4);
            with.decoded.reserve(capacity);
            let raw = &with.raw[..count];
            let _ = with.decoder.decode_to_string(raw, &mut with.decoded, with.is_last);
        }
        let mut left = &with.decoded.as_bytes()[with.taken..];
        let count = left.read(buffer)?;
        with.taken += count;
        Ok(count)
    }
}

impl Read for Text<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.reached.get() != Reached::Limit {
            return Ok(0);
        }
        let count = match self.decoder.take() {
            Some(mut with) => {
                let count = self.read_decoded(buffer, &mut with)?;
                self.decoder = Some(with);
                count
            }
            None => self.read_raw(buffer)?,
        };
        match memchr::memchr(0, &buffer[..count]) {
            Some(nul) => {
                self.reached.set(Reached::Nul);
                Ok(nul)
            }
            None => Ok(count),
        }
    }
}
