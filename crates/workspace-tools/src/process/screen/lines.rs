//! The lines that a cursor is in, by the character.

use std::collections::VecDeque;

use super::REACH;

/// How much text is written to lines at once, in bytes.
pub(super) const MOST_AT_ONCE: usize = REACH / 4;

/// How far a cursor moves to the right of a line's end. Some programs move it as far as it goes, to
/// learn how wide a terminal is.
const MOST_COLUMNS: usize = 500;

/// How much all lines hold, in characters and [`LINE`]s. It leaves room beyond what is taken out of the
/// text at most, so that lines that were put back for their size are not too large again at once.
const MOST_HELD: usize = 4 * REACH;

/// The columns of one line: an erase costs that much.
const MOST_OF_A_LINE: usize = 2 * REACH;

/// What a line takes besides its characters, as if it were some.
const LINE: usize = 16;

/// The last lines of a text, and where in them the next character goes. There is always one.
#[derive(Debug)]
pub(super) struct Lines {
    lines: VecDeque<Vec<char>>,
    line: usize,
    column: usize,
    /// The length of all lines, each with [`LINE`].
    held: usize,
    /// How many bytes of output have come since the lines were taken out of the text, at least.
    paid: usize,
}

/// What is below the cursor alone takes too much.
#[derive(Debug)]
pub(super) struct TooLarge;

impl Lines {
    /// The last line, and the cursor at its end.
    pub(super) fn new(last: Vec<char>) -> Self {
        let (column, held) = (last.len(), last.len() + LINE);
        Self { lines: VecDeque::from([last]), line: 0, column, held, paid: 0 }
    }

    /// How many bytes of memory they take, about.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        let characters = self.lines.iter().map(Vec::capacity).sum::<usize>();
        size_of::<char>() * characters + size_of::<Vec<char>>() * self.lines.capacity()
    }

    pub(super) fn count(&self) -> usize {
        self.lines.len()
    }

    /// How many lines are above the cursor's.
    pub(super) fn above(&self) -> usize {
        self.line
    }

    pub(super) fn put_above(&mut self, line: Vec<char>) {
        self.held += line.len() + LINE;
        self.lines.push_front(line);
        self.line += 1;
    }

    pub(super) fn is_at_the_end(&self) -> bool {
        self.line + 1 == self.lines.len() && self.column == self.lines[self.line].len()
    }

    /// Every change took one byte of output or more.
    pub(super) fn count_change(&mut self) {
        self.paid += 1;
    }

    /// Whether as much has come as it costs to put the lines back.
    pub(super) fn may_leave(&self) -> bool {
        self.paid >= self.held
    }

    pub(super) fn is_too_large(&self) -> bool {
        self.held > MOST_HELD || self.lines[self.line].len() > MOST_OF_A_LINE
    }

    /// Passes on what is above the cursor, and what is far to the left of it in its line. Fails where
    /// that does not make much room.
    pub(super) fn settle_above(&mut self, settled: &mut dyn FnMut(&[u8])) -> Result<(), TooLarge> {
        for line in self.lines.drain(..self.line) {
            self.held -= line.len() + LINE;
            settled(encoded(&line).as_bytes());
            settled(b"\n");
        }
        self.line = 0;
        let length = self.lines[0].len();
        let far = self.column.saturating_sub(REACH).min(length);
        if far > 0 {
            settled(encoded(&self.lines[0][..far]).as_bytes());
            self.column -= far;
            self.change(|line| drop(line.drain(..far)));
            cost(length);
        }
        let is_roomy = self.held <= MOST_HELD - REACH && self.lines[0].len() <= MOST_OF_A_LINE;
        if is_roomy { Ok(()) } else { Err(TooLarge) }
    }

    /// Passes on all of the text, in pieces.
    pub(super) fn put_back(self, text: &mut dyn FnMut(&[u8])) {
        for (number, line) in self.lines.into_iter().enumerate() {
            if number > 0 {
                text(b"\n");
            }
            for part in line.chunks(MOST_AT_ONCE) {
                text(encoded(part).as_bytes());
            }
        }
    }

    /// Writes text that holds no control characters but tabs.
    pub(super) fn write(&mut self, text: &[u8]) {
        self.paid += text.len();
        if text.is_empty() {
            return;
        }
        let mut column = self.column;
        self.change(|line| {
            if line.len() < column {
                cost(column - line.len());
                line.resize(column, ' ');
            }
            for character in String::from_utf8_lossy(text).chars() {
                match line.get_mut(column) {
                    Some(there) => *there = character,
                    None => line.push(character),
                }
                column += 1;
            }
        });
        cost(text.len());
        self.column = column;
    }

    /// Goes to the next line, which is a new one behind the last.
    pub(super) fn feed_line(&mut self) {
        self.line += 1;
        self.column = 0;
        if self.line == self.lines.len() {
            self.lines.push_back(Vec::new());
            self.held += LINE;
        }
    }

    /// Goes to a line behind all text.
    pub(super) fn begin_line(&mut self) {
        self.line = self.lines.len() - 1;
        self.column = 0;
        if !self.lines[self.line].is_empty() {
            self.feed_line();
        }
    }

    pub(super) fn up(&mut self, by: usize) {
        self.line = self.line.saturating_sub(by);
    }

    pub(super) fn down(&mut self, by: usize) {
        self.line = (self.line + by).min(self.lines.len() - 1);
    }

    pub(super) fn left(&mut self, by: usize) {
        self.column = self.column.saturating_sub(by);
    }

    pub(super) fn set_column(&mut self, of: impl Fn(usize) -> usize) {
        self.column = of(self.column).min(self.lines[self.line].len().max(MOST_COLUMNS));
    }

    pub(super) fn erase_to_the_right(&mut self) {
        let column = self.column;
        self.change(|line| line.truncate(column));
    }

    pub(super) fn erase_to_the_left(&mut self) {
        let line = &mut self.lines[self.line];
        let end = (self.column + 1).min(line.len());
        line[..end].fill(' ');
        cost(end);
    }

    pub(super) fn erase_line(&mut self) {
        self.change(Vec::clear);
    }

    pub(super) fn erase_below(&mut self) {
        self.erase_to_the_right();
        for line in self.lines.drain(self.line + 1..) {
            self.held -= line.len() + LINE;
        }
    }

    /// Changes the length of the cursor's line. What it no longer needs of its memory is given back.
    fn change(&mut self, change: impl FnOnce(&mut Vec<char>)) {
        let line = &mut self.lines[self.line];
        self.held -= line.len();
        change(line);
        self.held += line.len();
        if line.capacity() > 2 * (line.len() + LINE) {
            line.shrink_to(line.len());
            cost(line.len());
        }
    }
}

fn encoded(characters: &[char]) -> String {
    cost(characters.len());
    characters.iter().collect()
}

#[cfg(test)]
thread_local! {
    /// How many characters were touched, for the tests.
    pub(super) static COST: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The work on some characters, which tests hold against the length of the output.
#[cfg(test)]
pub(super) fn cost(characters: usize) {
    COST.set(COST.get() + characters);
}

#[cfg(not(test))]
pub(super) const fn cost(_: usize) {}
