//! A command's output as a terminal would show it in the end: without escape sequences, and with every
//! line in its last state.
//!
//! Only the last few KiB can still change. What is above is settled and passed on, so that memory stays
//! bounded and a progress bar of any length takes the space of its last state. A line has no end on the
//! right, but the cursor reaches only its last few thousand columns, and every character takes one
//! column.
//!
//! The output is hostile: whatever it holds, [`lines`] bounds what the lines under the cursor take, and
//! the work is linear in the length of the output. To take lines out of the text and to put them back
//! costs as much as they are long, so they are put back only once as many bytes have come.

mod lines;

use anstyle_parse::{Params, Parser, Perform};

use self::lines::Lines;
use super::utf8::is_continuation;

/// How much of the text a cursor can still reach. It grows to twice that before it is settled.
const REACH: usize = 4 * 1024;

/// How many lines are taken out of the text for it to go up: more than terminals have.
const MOST_LINES: usize = 100;

/// The longest escape sequence: a title or a link that never ends is text after that.
const LONGEST_SEQUENCE: usize = 4 * 1024;

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
    /// The last lines, while the cursor is not at the end of the text and for some time after that.
    edited: Option<Lines>,
    /// How many bytes of an escape sequence were read.
    sequence: Option<usize>,
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
        self.page.leave_lines(settled);
        settled(&self.page.recent);
    }

    /// How many bytes of memory it takes, about.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.page.recent.capacity() + self.page.edited.as_ref().map_or(0, Lines::held)
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
                self.page.execute(byte, settled);
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
        while self.edited.is_some() && !text.is_empty() {
            // No more at once than the bounds allow for.
            let most = &text[..character_at(text, text.len().min(lines::MOST_AT_ONCE))];
            let most = if most.is_empty() { text } else { most };
            let end = memchr::memchr(b'\n', most);
            let line = &most[..end.unwrap_or(most.len())];
            let edited = self.edit();
            edited.write(line);
            if end.is_some() {
                edited.feed_line();
            }
            text = &text[line.len() + usize::from(end.is_some())..];
            self.after_edit(settled);
        }
        if text.is_empty() {
            return;
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
    fn execute(&mut self, control: u8, settled: &mut dyn FnMut(&[u8])) {
        let is_at_start = self.edited.is_none() && matches!(self.recent.last(), None | Some(b'\n'));
        match control {
            _ if is_at_start => return,
            b'\r' => self.edit().set_column(|_| 0),
            BACKSPACE => self.edit().left(1),
            _ => return,
        }
        self.after_edit(settled);
    }

    /// Acts on a control sequence that moves the cursor or erases.
    fn control(&mut self, count: Option<u16>, action: u8, settled: &mut dyn FnMut(&[u8])) {
        let by = usize::from(count.unwrap_or(0).max(1));
        let is_at_end = self.edited.as_ref().is_none_or(Lines::is_at_the_end);
        match (action, count.unwrap_or(0)) {
            (b'B' | b'E', _) | (b'K' | b'J', 0) if is_at_end => return,
            (b'A' | b'F', _) => self.up(by),
            (b'B' | b'E', _) => self.edit().down(by),
            (b'C', _) => self.edit().set_column(|column| column + by),
            (b'D', _) => self.edit().left(by),
            (b'G' | b'`', _) => self.edit().set_column(|_| by - 1),
            (b'K', 0) => self.edit().erase_to_the_right(),
            (b'K', 1) => self.edit().erase_to_the_left(),
            (b'K', 2) => self.edit().erase_line(),
            (b'J', 0) => self.edit().erase_below(),
            // Where on the screen a line would stand is not known. What is put somewhere begins one.
            (b'H' | b'f', _) => match &mut self.edited {
                Some(edited) => edited.begin_line(),
                None if matches!(self.recent.last(), None | Some(b'\n')) => {}
                None => self.recent.push(b'\n'),
            },
            _ => return,
        }
        if matches!(action, b'E' | b'F') {
            self.edit().set_column(|_| 0);
        }
        self.after_edit(settled);
    }

    fn up(&mut self, by: usize) {
        let missing = by.saturating_sub(self.edit().above());
        for _ in 0..missing {
            if self.edit().count() >= MOST_LINES {
                break;
            }
            let Some(line) = take_line(&mut self.recent) else { break };
            self.edit().put_above(line);
        }
        self.edit().up(by);
    }

    /// The lines to change, with the cursor where it is: at the end of the text if it was there.
    fn edit(&mut self) -> &mut Lines {
        let recent = &mut self.recent;
        self.edited.get_or_insert_with(|| Lines::new(line_of(recent)))
    }

    /// Keeps the lines within their bounds, and puts them back when the cursor has left them and that
    /// is paid for.
    fn after_edit(&mut self, settled: &mut dyn FnMut(&[u8])) {
        let Some(edited) = &mut self.edited else { return };
        edited.count_change();
        if edited.is_at_the_end() && edited.may_leave() {
            self.leave_lines(settled);
        } else if edited.is_too_large() {
            settled(&self.recent);
            self.recent.clear();
            if edited.settle_above(settled).is_err() {
                self.leave_lines(settled);
            }
        }
    }

    /// Puts the lines back that were changed, and the cursor to the end of the text.
    fn leave_lines(&mut self, settled: &mut dyn FnMut(&[u8])) {
        let Some(edited) = self.edited.take() else { return };
        edited.put_back(&mut |text| {
            self.recent.extend_from_slice(text);
            self.settle(settled);
        });
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
            byte => self.page.execute(byte, self.settled),
        }
    }

    fn csi_dispatch(&mut self, params: &Params, between: &[u8], is_ignored: bool, action: u8) {
        self.page.sequence = None;
        if !is_ignored && between.is_empty() {
            let count = params.iter().next().and_then(|param| param.first().copied());
            self.page.control(count, action, self.settled);
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
    let line: Vec<char> = String::from_utf8_lossy(&text[start..]).chars().collect();
    lines::cost(text.len() - start);
    text.truncate(start);
    line
}

/// The start of the character that `at` lies in.
fn character_at(text: &[u8], at: usize) -> usize {
    if at == text.len() {
        return at;
    }
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
