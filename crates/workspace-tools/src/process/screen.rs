//! A command's output as a terminal would show it in the end: without escape sequences, and with every
//! line in its last state.
//!
//! Only the last few KiB can still change. What is above is settled and passed on, so that memory stays
//! bounded and a progress bar of any length takes the space of its last state. A line has no end on the
//! right, and every character takes one column.

use std::collections::VecDeque;

use anstyle_parse::{Params, Parser, Perform};

use super::utf8::is_continuation;

/// How much of the text a cursor can still reach. It grows to twice that before it is settled.
const REACH: usize = 4 * 1024;

/// How many lines it can go up: more than terminals have, and few enough that doing it again and again
/// costs little.
const MOST_LINES: usize = 100;

/// The longest escape sequence: a title or a link that never ends is text after that.
const LONGEST_SEQUENCE: usize = 4 * 1024;

/// How far a cursor moves to the right of a line's end. Some programs move it as far as it goes, to
/// learn how wide a terminal is.
const MOST_COLUMNS: usize = 500;

const ESCAPE: u8 = 0x1b;
const BACKSPACE: u8 = 0x08;
/// Ends an escape sequence wherever it stands.
const CANCEL: u8 = 0x18;

/// A command's output on its way, as it is shown.
#[derive(Debug, Default)]
pub(crate) struct Screen {
    parser: Parser,
    page: Page,
}

/// The end of the text, and a cursor in it.
#[derive(Debug, Default)]
struct Page {
    /// The end of the text, above the lines that are in `edited`.
    recent: Vec<u8>,
    /// The last lines, while the cursor is not at the end of the text.
    edited: Option<Edited>,
    /// How many bytes of an escape sequence were read.
    sequence: Option<usize>,
}

/// The last lines, and where in them the next character goes. There is always one.
#[derive(Debug, Default)]
struct Edited {
    lines: VecDeque<Vec<char>>,
    line: usize,
    column: usize,
}

impl Screen {
    /// Adds a piece that ends at a character. `settled` is passed what can no longer change.
    pub(crate) fn push(&mut self, piece: &[u8], settled: &mut dyn FnMut(&[u8])) {
        let mut rest = piece;
        while !rest.is_empty() {
            let taken = if self.page.sequence.is_some() {
                self.take_sequence(rest, settled)
            } else {
                match plain_length(rest) {
                    0 => self.take_control(rest, settled),
                    plain => {
                        self.page.print(&rest[..plain], settled);
                        plain
                    }
                }
            };
            rest = &rest[taken..];
        }
    }

    /// Passes on all that is left.
    pub(crate) fn finish(mut self, settled: &mut dyn FnMut(&[u8])) {
        self.page.leave_lines();
        settled(&self.page.recent);
    }

    /// How many bytes of memory it takes, about.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        let lines = self.page.edited.iter().flat_map(|edited| &edited.lines);
        self.page.recent.capacity() + lines.map(|line| 4 * line.capacity()).sum::<usize>()
    }

    /// Acts on a control character, the first of `rest`. Returns how many bytes that took.
    fn take_control(&mut self, rest: &[u8], settled: &mut dyn FnMut(&[u8])) -> usize {
        match (rest[0], rest.get(1)) {
            (ESCAPE, _) => {
                self.page.sequence = Some(0);
                self.advance(ESCAPE, settled);
                1
            }
            // The second form of the same, one character where ESC and a letter are two.
            (0xc2, Some(second)) => {
                self.page.sequence = Some(0);
                self.advance(ESCAPE, settled);
                self.advance(second - 0x40, settled);
                2
            }
            (b'\r', Some(b'\n')) => {
                self.page.print(b"\n", settled);
                2
            }
            // Line feed, vertical tab and form feed all begin a line.
            (0x0b | 0x0c, _) => {
                self.page.print(b"\n", settled);
                1
            }
            (byte @ (b'\r' | BACKSPACE), _) => {
                self.page.execute(byte);
                1
            }
            _ => inert_length(rest),
        }
    }

    /// Reads on in an escape sequence.
    fn take_sequence(&mut self, rest: &[u8], settled: &mut dyn FnMut(&[u8])) -> usize {
        let mut taken = 0;
        while let (Some(read), Some(&byte)) = (self.page.sequence, rest.get(taken)) {
            // None reaches over a line's end: what began by accident would take the rest of the output.
            if byte == b'\n' || read >= LONGEST_SEQUENCE {
                self.advance(CANCEL, settled);
                self.page.sequence = None;
                break;
            }
            self.page.sequence = Some(read + 1);
            self.advance(byte, settled);
            taken += 1;
        }
        taken
    }

    fn advance(&mut self, byte: u8, settled: &mut dyn FnMut(&[u8])) {
        self.parser.advance(&mut Performer { page: &mut self.page, settled }, byte);
    }
}

impl Page {
    /// Writes text that holds no control characters but line feeds and tabs.
    fn print(&mut self, mut text: &[u8], settled: &mut dyn FnMut(&[u8])) {
        while let Some(edited) = &mut self.edited {
            let end = memchr::memchr(b'\n', text);
            edited.write(&text[..end.unwrap_or(text.len())]);
            if end.is_some() {
                edited.feed_line();
            }
            text = &text[end.map_or(text.len(), |end| end + 1)..];
            self.leave_lines_at_the_end();
            if text.is_empty() {
                self.settle(settled);
                return;
            }
        }
        if text.len() >= REACH {
            settled(&self.recent);
            self.recent.clear();
            let (first, last) = text.split_at(character_at(text, text.len() - REACH));
            settled(first);
            self.recent.extend_from_slice(last);
        } else {
            self.recent.extend_from_slice(text);
            self.settle(settled);
        }
    }

    fn settle(&mut self, settled: &mut dyn FnMut(&[u8])) {
        if self.recent.len() > 2 * REACH {
            let out_of_reach = character_at(&self.recent, self.recent.len() - REACH);
            settled(&self.recent[..out_of_reach]);
            self.recent.drain(..out_of_reach);
        }
    }

    /// Acts on a control character that moves the cursor.
    fn execute(&mut self, control: u8) {
        let is_at_start = self.edited.is_none() && matches!(self.recent.last(), None | Some(b'\n'));
        match control {
            _ if is_at_start => return,
            b'\r' => self.edit().column = 0,
            BACKSPACE => self.edit().left(1),
            _ => return,
        }
        self.leave_lines_at_the_end();
    }

    /// Acts on a control sequence that moves the cursor or erases.
    fn control(&mut self, count: Option<u16>, action: u8) {
        let by = usize::from(count.unwrap_or(0).max(1));
        let is_at_end = self.edited.is_none();
        match (action, count.unwrap_or(0)) {
            (b'A' | b'F', _) => self.up(by),
            (b'B' | b'E', _) if !is_at_end => self.edit().down(by),
            (b'C', _) => self.edit().set_column(|column| column + by),
            (b'D', _) => self.edit().left(by),
            (b'G' | b'`', _) => self.edit().set_column(|_| by - 1),
            (b'K' | b'J', 0) if is_at_end => {}
            (b'K', 0) => self.edit().erase_to_the_right(),
            (b'K', 1) => self.edit().erase_to_the_left(),
            (b'K', 2) => self.edit().erase_line(),
            (b'J', 0) => self.edit().erase_below(),
            // Where on the screen a line would stand is not known. What is put somewhere begins one.
            (b'H' | b'f', _) => {
                self.leave_lines();
                if !matches!(self.recent.last(), None | Some(b'\n')) {
                    self.recent.push(b'\n');
                }
            }
            _ => {}
        }
        if let (b'E' | b'F', Some(edited)) = (action, &mut self.edited) {
            edited.column = 0;
        }
        self.leave_lines_at_the_end();
    }

    fn up(&mut self, by: usize) {
        self.edit();
        while let Some(edited) = &mut self.edited {
            if edited.line >= by {
                edited.line -= by;
                return;
            }
            let is_in_reach = edited.lines.len() < MOST_LINES;
            match is_in_reach.then(|| take_line(&mut self.recent)).flatten() {
                Some(line) => {
                    edited.lines.push_front(line);
                    edited.line += 1;
                }
                None => {
                    edited.line = 0;
                    return;
                }
            }
        }
    }

    /// The lines to change, with the cursor where it is: at the end of the text if it was there.
    fn edit(&mut self) -> &mut Edited {
        let recent = &mut self.recent;
        self.edited.get_or_insert_with(|| {
            let line = line_of(recent);
            Edited { column: line.len(), line: 0, lines: VecDeque::from([line]) }
        })
    }

    fn leave_lines_at_the_end(&mut self) {
        if self.edited.as_ref().is_some_and(Edited::is_at_the_end) {
            self.leave_lines();
        }
    }

    /// Puts the lines back that were changed, and the cursor to the end of the text.
    fn leave_lines(&mut self) {
        let lines = self.edited.take().map(|edited| edited.lines).unwrap_or_default();
        for (number, line) in lines.into_iter().enumerate() {
            if number > 0 {
                self.recent.push(b'\n');
            }
            let text: String = line.into_iter().collect();
            self.recent.extend_from_slice(text.as_bytes());
        }
    }
}

impl Edited {
    fn is_at_the_end(&self) -> bool {
        self.line + 1 == self.lines.len() && self.column == self.lines[self.line].len()
    }

    fn write(&mut self, text: &[u8]) {
        let line = &mut self.lines[self.line];
        for character in String::from_utf8_lossy(text).chars() {
            while line.len() < self.column {
                line.push(' ');
            }
            match line.get_mut(self.column) {
                Some(there) => *there = character,
                None => line.push(character),
            }
            self.column += 1;
        }
    }

    /// Goes to the next line, which is a new one behind the last.
    fn feed_line(&mut self) {
        self.line += 1;
        self.column = 0;
        if self.line == self.lines.len() {
            self.lines.push_back(Vec::new());
        }
    }

    fn down(&mut self, by: usize) {
        self.line = (self.line + by).min(self.lines.len() - 1);
    }

    fn left(&mut self, by: usize) {
        self.column = self.column.saturating_sub(by);
    }

    fn set_column(&mut self, of: impl Fn(usize) -> usize) {
        self.column = of(self.column).min(self.lines[self.line].len().max(MOST_COLUMNS));
    }

    fn erase_to_the_right(&mut self) {
        self.lines[self.line].truncate(self.column);
    }

    fn erase_to_the_left(&mut self) {
        let line = &mut self.lines[self.line];
        let end = (self.column + 1).min(line.len());
        line[..end].fill(' ');
    }

    fn erase_line(&mut self) {
        self.lines[self.line].clear();
    }

    fn erase_below(&mut self) {
        self.erase_to_the_right();
        self.lines.truncate(self.line + 1);
    }
}

/// What the parser of escape sequences reports.
struct Performer<'a> {
    page: &'a mut Page,
    settled: &'a mut dyn FnMut(&[u8]),
}

impl Perform for Performer<'_> {
    /// A sequence that means nothing ends without a word; the text behind it shows that.
    fn print(&mut self, character: char) {
        self.page.sequence = None;
        if !character.is_control() {
            let bytes = &mut [0; 4];
            self.page.print(character.encode_utf8(bytes).as_bytes(), self.settled);
        }
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            CANCEL | 0x1a => self.page.sequence = None,
            byte => self.page.execute(byte),
        }
    }

    fn csi_dispatch(&mut self, params: &Params, between: &[u8], is_ignored: bool, action: u8) {
        self.page.sequence = None;
        if !is_ignored && between.is_empty() {
            let count = params.iter().next().and_then(|param| param.first().copied());
            self.page.control(count, action);
        }
    }

    fn esc_dispatch(&mut self, _: &[u8], _: bool, _: u8) {
        self.page.sequence = None;
    }

    fn osc_dispatch(&mut self, _: &[&[u8]], bell_terminated: bool) {
        // Otherwise the rest of the sequence that ended it is still to come.
        if bell_terminated {
            self.page.sequence = None;
        }
    }
}

/// Takes the last line of a text that ends behind a line feed.
fn take_line(text: &mut Vec<u8>) -> Option<Vec<char>> {
    text.pop_if(|last| *last == b'\n')?;
    Some(line_of(text))
}

/// Takes what stands behind the last line feed.
fn line_of(text: &mut Vec<u8>) -> Vec<char> {
    let start = memchr::memrchr(b'\n', text).map_or(0, |newline| newline + 1);
    let line = String::from_utf8_lossy(&text[start..]).chars().collect();
    text.truncate(start);
    line
}

/// The start of the character that `at` lies in.
fn character_at(text: &[u8], at: usize) -> usize {
    let back = text[..=at].iter().rev().take(4).position(|byte| !is_continuation(*byte));
    at - back.unwrap_or(0)
}

/// How many bytes at the start of `bytes` are text, line feeds and tabs. Looked at by the block, as
/// nearly all output is nothing else.
fn plain_length(bytes: &[u8]) -> usize {
    const BLOCK: usize = 64;
    let mut at = 0;
    loop {
        while let Some(block) = bytes.get(at..at + BLOCK)
            && !block.iter().fold(false, |any, byte| any | may_act(*byte))
        {
            at += BLOCK;
        }
        let Some(found) = bytes[at..].iter().position(|byte| may_act(*byte)) else {
            return bytes.len();
        };
        at += found;
        match (bytes[at], bytes.get(at + 1)) {
            (0xc2, Some(0x80..=0x9f)) => return at,
            // The first byte of a character that is no control, such as a no-break space.
            (0xc2, _) => at += 1,
            _ => return at,
        }
    }
}

/// How many bytes at the start of `bytes` have no effect and are not shown, as the zeros of a device.
fn inert_length(bytes: &[u8]) -> usize {
    const BLOCK: usize = 64;
    // Those from backspace to carriage return all do something.
    let is_inert = |byte: u8| (byte < 0x08) | (byte > 0x0d) & (byte < 0x20) & (byte != ESCAPE);
    let blocks = bytes.chunks_exact(BLOCK);
    let whole =
        blocks.take_while(|block| block.iter().fold(true, |all, byte| all & is_inert(*byte)));
    let at = BLOCK * whole.count();
    let rest = bytes[at..].iter().position(|byte| !is_inert(*byte) && *byte != 0x7f);
    rest.map_or(bytes.len(), |rest| at + rest)
}

/// Whether a byte is a control character that is not left as it is, or the first of one.
const fn may_act(byte: u8) -> bool {
    (byte < 0x20 && byte != b'\n' && byte != b'\t') | (byte == 0x7f) | (byte == 0xc2)
}

#[cfg(test)]
mod tests;
