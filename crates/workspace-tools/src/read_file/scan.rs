//! Finds a window of lines in an open file, of any size, in a few hundred KiB of memory.
//!
//! A file's first bytes are read once; a small file is all in them. Beyond that, lines before the
//! window are counted and not kept, a window counted from the end is searched backwards from there,
//! and after the window a little more is read in case the end is near.

use crate::classify::Classify as _;
use std::cell::Cell;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use crate::Context;
use tool_provider::ToolError;
use workspace_fs::text::encoding::{Detected, Encoding, SAMPLE_BYTES, detect};
use workspace_fs::text::lines::{LineEnding, LineEndings, Unit};
use workspace_fs::text::window::{Collector, Full, Numbering, Window};
use workspace_fs::{OpenFile, Version, VersionHasher};

/// Which lines are wanted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    /// The first line: 1 is the first of the file, -1 the last.
    pub(super) offset: i64,
    /// How many lines.
    pub(super) limit: u64,
    pub(super) numbering: Numbering,
}

/// What a file turned out to be.
pub(super) enum Found {
    Binary { kind: Option<&'static str> },
    Text(Text),
}

/// A window and what became known of the file on the way.
pub(super) struct Text {
    pub(super) encoding: Encoding,
    pub(super) window: Window,
    /// The number of the window's first line; negative where the file's beginning was not seen.
    pub(super) start: i64,
    /// Whether the file goes on after the window.
    pub(super) more: bool,
    /// How lines end in what was read of the file; in the window where it was sought from the end.
    pub(super) ending: LineEndings,
    /// The file's lines and bytes, where its end was seen.
    pub(super) total: Option<Total>,
    /// The content's version, where all of it was seen.
    pub(super) version: Option<Version>,
}

#[derive(Clone, Copy)]
pub(super) struct Total {
    pub(super) lines: u64,
    pub(super) bytes: u64,
}

/// How much is read after the window, looking for the end.
const LOOK_AHEAD: u64 = 1024 * 1024;

/// For how long the end of a file is looked for that is no larger than [`COUNTED`]: a disk can be slow.
const LOOK_TIME: Duration = Duration::from_millis(250);

/// The size up to which the lines of a file are counted whatever is shown of it, and up to which
/// content gets a version.
const COUNTED: u64 = 64 * 1024 * 1024;
const VERSIONED: u64 = 256 * 1024 * 1024;

/// How much is read at a time.
const CHUNK: usize = SAMPLE_BYTES;

pub(super) fn scan(
    file: &OpenFile,
    context: &Context<'_>,
    request: Request,
) -> Result<Found, ToolError> {
    let size = file.stat().size;
    // A size of 0 means nothing: the proc file system reports it for everything.
    let capacity = match usize::try_from(size) {
        Ok(size) if size > 0 && size < SAMPLE_BYTES => size + 1,
        _ => SAMPLE_BYTES,
    };
    let mut head = vec![0; capacity];
    let filled = file.fill(&mut head).classified()?;
    let is_all = filled < capacity;
    head.truncate(filled);
    let encoding = match detect(&head) {
        Detected::Text(encoding) => encoding,
        Detected::Binary { kind } => return Ok(Found::Binary { kind }),
    };
    let scan = Scan {
        file,
        context,
        position: Cell::new(head.len() as u64),
        head,
        is_all,
        encoding,
        unit: Unit::of(encoding),
        request,
    };
    let text = match u64::try_from(request.offset) {
        Ok(offset) => scan.window_from_start(offset),
        Err(_) => scan.window_from_end(request.offset.unsigned_abs()),
    };
    text.map(Found::Text)
}

struct Scan<'a> {
    file: &'a OpenFile,
    context: &'a Context<'a>,
    /// The file's first bytes.
    head: Vec<u8>,
    /// Whether there are no others.
    is_all: bool,
    /// Where the file's next read starts.
    position: Cell<u64>,
    encoding: Encoding,
    unit: Unit,
    request: Request,
}

impl Scan<'_> {
    fn window_from_start(&self, offset: u64) -> Result<Text, ToolError> {
        let first = i64::try_from(offset).unwrap_or(i64::MAX);
        let mut collector = self.collector(first);
        let mut before = offset - 1;
        let mut more = false;
        let mut ahead = 0;
        let is_counted = self.file.stat().size <= COUNTED;
        let mut until = None;
        let hasher = (self.file.stat().size <= VERSIONED).then(VersionHasher::default);
        let mut count = Count::new(self.unit, hasher);
        let end = self.pieces(0, u64::MAX, &mut |piece, position| {
            let feeds = count.take(piece, position);
            if feeds < before {
                before -= feeds;
                return ControlFlow::Continue(());
            }
            // A byte order mark holds no line feed.
            let mut rest = if position == 0 { self.behind_bom(piece) } else { piece };
            if let Some(at) = self.unit.behind_lf(rest, before) {
                (rest, before) = (&rest[at..], 0);
            }
            let was_full = collector.is_full();
            let taken = collector.push(rest);
            more |= taken < rest.len();
            if was_full {
                ahead += piece.len() as u64;
            }
            if ahead < LOOK_AHEAD {
                return ControlFlow::Continue(());
            }
            let goes_on = is_counted && Instant::now() < *until.get_or_insert_with(look_until);
            if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        let total = (end == Eof::Reached).then(|| count.total(self.encoding));
        let version = total.and(count.hasher.take()).map(|hasher| hasher.finish());
        let window = collector.finish();
        more |= window.full == Some(Full::Content);
        let ending = count.ending;
        Ok(Text { encoding: self.encoding, window, start: first, more, ending, total, version })
    }

    fn window_from_end(&self, lines: u64) -> Result<Text, ToolError> {
        let size = self.file.stat_now().classified()?.size;
        if self.is_all || size == 0 || size <= COUNTED {
            let mut count = Count::new(self.unit, Some(VersionHasher::default()));
            self.pieces(0, u64::MAX, &mut |piece, position| {
                count.take(piece, position);
                ControlFlow::Continue(())
            })?;
            let total = count.total(self.encoding);
            let offset = total.lines.saturating_sub(lines) + 1;
            return self.window_from_start(offset);
        }
        let (position, found) = self.search_backwards(size, lines)?;
        let start = match found {
            Reach::Line => -i64::try_from(lines).unwrap_or(i64::MAX),
            Reach::Start => 1,
        };
        let mut collector = self.collector(start);
        let mut more = false;
        self.pieces(position, size, &mut |piece, _| {
            more |= collector.push(piece) < piece.len();
            if more { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        let window = collector.finish();
        more |= window.full == Some(Full::Content);
        let (encoding, ending) = (self.encoding, window.ending);
        Ok(Text { encoding, window, start, more, ending, total: None, version: None })
    }

    /// Where the last `lines` lines of the first `size` bytes begin.
    fn search_backwards(&self, size: u64, lines: u64) -> Result<(u64, Reach), ToolError> {
        let bom = self.encoding.bom().len() as u64;
        let unit = self.encoding.unit() as u64;
        let mut chunk = vec![0; CHUNK];
        // The line feed at the very end ends the last line, it does not begin another.
        let mut end = size - size % unit;
        let mut wanted = lines;
        let mut is_first = true;
        while end > bom {
            self.context.check()?;
            let start = end.saturating_sub(CHUNK as u64).max(bom);
            // No more than CHUNK, which fits.
            let length = usize::try_from(end - start).unwrap_or(CHUNK);
            let filled = self.read(start, &mut chunk[..length])?;
            let mut piece = &chunk[..filled];
            if is_first && self.unit.ends_in_lf(piece) {
                piece = &piece[..piece.len() - self.unit.width()];
            }
            is_first = false;
            let feeds = self.unit.count_lf(piece) as u64;
            if feeds < wanted {
                wanted -= feeds;
                end = start;
                continue;
            }
            while let Some(at) = self.unit.rfind_lf(piece, piece.len()) {
                wanted -= 1;
                if wanted == 0 {
                    return Ok((start + (at + self.unit.width()) as u64, Reach::Line));
                }
                piece = &piece[..at];
            }
            end = start;
        }
        Ok((bom, Reach::Start))
    }

    /// Hands out the file's bytes from `start` to `until` in pieces, with their positions, from
    /// memory as far as they are there.
    fn pieces(
        &self,
        start: u64,
        until: u64,
        take: &mut dyn FnMut(&[u8], u64) -> ControlFlow<()>,
    ) -> Result<Eof, ToolError> {
        let mut position = start;
        let known = self.head.len() as u64;
        if position < known {
            let from = usize::try_from(position).unwrap_or(0);
            if take(&self.head[from..], position).is_break() {
                return Ok(if self.is_all { Eof::Reached } else { Eof::NotReached });
            }
            position = known;
        }
        if self.is_all {
            return Ok(Eof::Reached);
        }
        let mut chunk = vec![0; CHUNK];
        while position < until {
            self.context.check()?;
            let length = usize::try_from(until - position).map_or(CHUNK, |left| left.min(CHUNK));
            let filled = self.read(position, &mut chunk[..length])?;
            let is_last = filled < length;
            if take(&chunk[..filled], position).is_break() && !is_last {
                return Ok(Eof::NotReached);
            }
            position += filled as u64;
            if is_last {
                break;
            }
        }
        Ok(Eof::Reached)
    }

    /// Reads at `position`. Files that cannot seek can still be read in order.
    fn read(&self, position: u64, buffer: &mut [u8]) -> Result<usize, ToolError> {
        if position != self.position.get() {
            self.file.seek(position).classified()?;
        }
        let filled = self.file.fill(buffer).classified()?;
        self.position.set(position + filled as u64);
        Ok(filled)
    }

    fn collector(&self, first: i64) -> Collector {
        Collector::new(self.encoding, self.request.numbering, first, self.request.limit)
    }

    fn behind_bom<'b>(&self, piece: &'b [u8]) -> &'b [u8] {
        piece.get(self.encoding.bom().len()..).unwrap_or(&[])
    }
}

/// Until when the end is looked for.
fn look_until() -> Instant {
    Instant::now() + LOOK_TIME
}

/// Whether a file's end was seen.
#[derive(PartialEq)]
enum Eof {
    Reached,
    NotReached,
}

/// How far a search from the end came.
enum Reach {
    Line,
    Start,
}

/// What is counted of all bytes that come by.
struct Count {
    unit: Unit,
    line_feeds: u64,
    bytes: u64,
    ends_in_feed: bool,
    ends_in_cr: bool,
    ending: LineEndings,
    hasher: Option<VersionHasher>,
}

impl Count {
    fn new(unit: Unit, hasher: Option<VersionHasher>) -> Self {
        Self {
            unit,
            line_feeds: 0,
            bytes: 0,
            ends_in_feed: true,
            ends_in_cr: false,
            ending: LineEndings::None,
            hasher,
        }
    }

    /// Returns the line feeds in the piece.
    fn take(&mut self, piece: &[u8], position: u64) -> u64 {
        if piece.is_empty() {
            return 0;
        }
        let feeds = self.unit.count_lf(piece) as u64;
        self.line_feeds += feeds;
        if feeds > 0 && self.ending != LineEndings::Mixed {
            self.ending = self.ending.and(self.endings(piece));
        }
        self.ends_in_cr = self.unit.without_cr(piece) < piece.len();
        self.bytes = position + piece.len() as u64;
        self.ends_in_feed = self.unit.ends_in_lf(piece);
        if let Some(hasher) = &mut self.hasher {
            hasher.update(piece);
        }
        feeds
    }

    /// How the lines end whose line feeds are in the piece, which has some.
    fn endings(&self, piece: &[u8]) -> LineEndings {
        if !self.ends_in_cr && memchr::memchr(b'\r', piece).is_none() {
            return LineEndings::Lf;
        }
        let (mut ending, mut from) = (LineEndings::None, 0);
        while let Some(feed) = self.unit.find_lf(piece, from) {
            let is_crlf = match feed {
                0 => self.ends_in_cr,
                _ => self.unit.ending_at(piece, feed) == LineEnding::CrLf,
            };
            ending = ending.and(if is_crlf { LineEndings::Crlf } else { LineEndings::Lf });
            if ending == LineEndings::Mixed {
                break;
            }
            from = feed + self.unit.width();
        }
        ending
    }

    fn total(&self, encoding: Encoding) -> Total {
        let has_rest = !self.ends_in_feed && self.bytes > encoding.bom().len() as u64;
        Total { lines: self.line_feeds + u64::from(has_rest), bytes: self.bytes }
    }
}
