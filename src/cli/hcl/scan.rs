//! Where in a text the reader is, and the small pieces that everything else is made of.

use super::SyntaxError;

/// How deeply blocks and expressions may lie in each other: each level takes some of the stack.
const DEEPEST: usize = 100;

/// Whether a line's end means something: it ends an argument, but not between parentheses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineEnds {
    Count,
    Skipped,
}

pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    line_starts: Vec<usize>,
    pub(super) line_ends: LineEnds,
    depth: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let line_starts = text.match_indices('\n').map(|(at, _)| at + 1).collect();
        Self { text, at: 0, line_starts, line_ends: LineEnds::Count, depth: 0 }
    }

    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(super) fn next_is(&self, sign: &str) -> bool {
        self.rest().starts_with(sign)
    }

    pub(super) fn take(&mut self, sign: &str) -> bool {
        let is_next = self.next_is(sign);
        if is_next {
            self.at += sign.len();
        }
        is_next
    }

    pub(super) fn take_bytes(&mut self, count: usize) -> &'a str {
        let taken = &self.rest()[..count];
        self.at += count;
        taken
    }

    pub(super) fn take_char(&mut self) -> Option<char> {
        let next = self.rest().chars().next()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Takes `sign`, or says that it is missing.
    pub(super) fn expect(&mut self, sign: &str, context: &str) -> Result<(), SyntaxError> {
        match self.take(sign) {
            true => Ok(()),
            false => {
                Err(self.error(format!("{context}: {sign} is missing before {}", self.seen())))
            }
        }
    }

    /// The number of the line that the reader is in.
    pub(super) fn line(&self) -> usize {
        1 + self.line_starts.partition_point(|start| *start <= self.at)
    }

    pub(super) fn error(&self, problem: impl Into<String>) -> SyntaxError {
        SyntaxError { line: self.line(), problem: problem.into() }
    }

    /// What stands here, for a message.
    pub(super) fn seen(&self) -> String {
        match self.rest().chars().next() {
            None => "the end of the file".to_owned(),
            Some('\n' | '\r') => "the end of the line".to_owned(),
            Some(first) if is_start(first) => {
                let rest = self.rest();
                format!("{:?}", &rest[..name_length(rest).min(rest.len())])
            }
            Some(first) => format!("{first:?}"),
        }
    }

    /// Skips blanks and comments, and the ends of lines where they mean nothing.
    pub(super) fn skip(&mut self) -> Result<(), SyntaxError> {
        loop {
            let rest = self.rest();
            let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
            self.at += blanks;
            if self.next_is("/*") {
                let Some(end) = self.rest().find("*/") else {
                    return Err(self.error("the comment that begins with /* here is never closed"));
                };
                self.at += end + 2;
            } else if self.line_ends == LineEnds::Count || !self.take_line_end() {
                return Ok(());
            }
        }
    }

    /// Takes a line's end, and the comment before it.
    pub(super) fn take_line_end(&mut self) -> bool {
        if self.next_is("#") || self.next_is("//") {
            self.at += self.rest().find('\n').map_or(self.rest().len(), |end| end + 1);
            return true;
        }
        self.take("\n") || self.take("\r\n")
    }

    /// Whether nothing more stands in this line, at a place where blanks have been skipped.
    pub(super) fn is_line_over(&self) -> bool {
        ["", "\n", "\r\n", "#", "//"].iter().any(|end| match *end {
            "" => self.rest().is_empty(),
            end => self.next_is(end),
        })
    }

    /// The name that begins here, if one does.
    pub(super) fn take_name(&mut self) -> Option<&'a str> {
        let length = name_length(self.rest());
        (length > 0).then(|| self.take_bytes(length))
    }

    /// Takes this very word.
    pub(super) fn take_word(&mut self, word: &str) -> bool {
        let rest = self.rest();
        let is_next = &rest[..name_length(rest)] == word;
        if is_next {
            self.at += word.len();
        }
        is_next
    }

    /// Runs `read` one level deeper, with line ends meaning what is said.
    pub(super) fn within<T>(
        &mut self,
        line_ends: LineEnds,
        read: impl FnOnce(&mut Self) -> Result<T, SyntaxError>,
    ) -> Result<T, SyntaxError> {
        if self.depth >= DEEPEST {
            return Err(self.error(format!("more than {DEEPEST} levels lie in each other here")));
        }
        self.depth += 1;
        let outer = std::mem::replace(&mut self.line_ends, line_ends);
        let outcome = read(self);
        self.line_ends = outer;
        self.depth -= 1;
        outcome
    }
}

fn is_start(letter: char) -> bool {
    letter.is_alphabetic() || letter == '_'
}

/// Whether a text is one name and nothing else.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty() && name_length(text) == text.len()
}

/// How many bytes the name at the start of `text` has.
fn name_length(text: &str) -> usize {
    match text.chars().next() {
        Some(first) if is_start(first) => {
            let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '-';
            text.find(|letter| !is_part(letter)).unwrap_or(text.len())
        }
        _ => 0,
    }
}
