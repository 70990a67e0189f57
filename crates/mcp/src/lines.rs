//! Lines of a stream, each of a bounded length.

use std::io;

use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

/// What was read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line, without its end.
    Whole(Vec<u8>),
    /// A line that is longer than allowed. It is passed over and never held.
    TooLong,
    /// The stream is over.
    End,
}

/// Reads lines.
pub(crate) struct Lines<R> {
    input: BufReader<R>,
    /// What there is of the line so far: a read that is given up loses nothing.
    line: Vec<u8>,
    most: usize,
    rest: Rest,
}

/// What becomes of the bytes up to the next line break.
#[derive(Clone, Copy, PartialEq)]
enum Rest {
    Kept,
    PassedOver,
}

const BUFFER: usize = 64 * 1024;

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Lines of at most `most` bytes.
    pub(crate) fn new(input: R, most: usize) -> Self {
        let input = BufReader::with_capacity(BUFFER, input);
        Self { input, line: Vec::new(), most, rest: Rest::Kept }
    }

    /// The next line. What follows the last line break counts as one.
    ///
    /// # Errors
    /// What the stream says.
    pub(crate) async fn next(&mut self) -> io::Result<Line> {
        loop {
            let bytes = self.input.fill_buf().await?;
            if bytes.is_empty() {
                let last = std::mem::take(&mut self.line);
                return Ok(if last.is_empty() { Line::End } else { Line::Whole(last) });
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let piece = &bytes[..end.unwrap_or(bytes.len())];
            let fits = self.line.len() + piece.len() <= self.most;
            if self.rest == Rest::Kept && fits {
                self.line.extend_from_slice(piece);
            }
            let read = piece.len() + usize::from(end.is_some());
            self.input.consume(read);
            match (self.rest, fits, end) {
                (Rest::Kept, true, Some(_)) => {
                    return Ok(Line::Whole(std::mem::take(&mut self.line)));
                }
                (Rest::Kept, true, None) | (Rest::PassedOver, _, None) => {}
                (Rest::PassedOver, _, Some(_)) => self.rest = Rest::Kept,
                (Rest::Kept, false, end) => {
                    self.line = Vec::new();
                    if end.is_none() {
                        self.rest = Rest::PassedOver;
                    }
                    return Ok(Line::TooLong);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(input: &[u8], most: usize) -> Vec<Line> {
        let mut lines = Lines::new(input, most);
        let mut found = Vec::new();
        loop {
            match lines.next().await.unwrap() {
                Line::End => return found,
                line => found.push(line),
            }
        }
    }

    fn whole(text: &str) -> Line {
        Line::Whole(text.as_bytes().to_vec())
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_passed_over_and_the_next_one_read() {
        assert_eq!(
            all(b"ab\n\nabcd\nef", 3).await,
            [whole("ab"), whole(""), Line::TooLong, whole("ef")]
        );
        assert_eq!(all(b"abc\nabc", 3).await, [whole("abc"), whole("abc")]);
        assert_eq!(all(b"abcd", 3).await, [Line::TooLong]);
        assert_eq!(all(b"", 3).await, []);
    }

    #[tokio::test]
    async fn nothing_of_a_line_that_is_too_long_is_kept() {
        let long = [vec![b'x'; 5 * BUFFER], b"\nok\n".to_vec()].concat();
        let mut lines = Lines::new(&*long, 2 * BUFFER);
        assert_eq!(lines.next().await.unwrap(), Line::TooLong);
        assert_eq!(lines.line.capacity(), 0);
        assert_eq!(lines.next().await.unwrap(), whole("ok"));
    }
}
