//! A part of a session's output as text: what a terminal would show of it in the end.

use super::super::screen::Screen;
use super::super::utf8::{is_continuation, unfinished_character};
use super::Session;
use tool_provider::Secrets;
use workspace_fs::text::cut;

/// How far back an escape sequence that has not ended is looked for.
const LONGEST_SEQUENCE: usize = 4 * 1024;

/// How far the start and the rest of a sequence are looked for where a part begins in its midst.
const MOST_REST: usize = 64;

/// How many characters are taken back at most where the end of a part may be the beginning of a secret.
const MOST_TAKEN_BACK: usize = 256;

/// A part of the output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// What a terminal would show of it; invalid bytes as U+FFFD.
    pub text: String,
    /// Where it begins.
    pub begin: u64,
    /// Where the next part begins.
    pub next: u64,
}

impl Session {
    /// The output from `from` on, of at most `most` bytes.
    #[must_use]
    pub fn part(&self, from: u64, most: usize, secrets: &Secrets) -> Part {
        let standing = self.standing();
        let begin = from.clamp(standing.begin, standing.end);
        let mut bytes = self.bytes(begin, most);
        if begin > from {
            // What was there before is no longer, and the rest of a line says little.
            let skipped = line_begin(&bytes);
            bytes.drain(..skipped);
            return self.shown(begin + skipped as u64, bytes, secrets);
        }
        self.shown(begin, bytes, secrets)
    }

    /// The end of the output from `from` on, of at most `most` bytes.
    #[must_use]
    pub fn last_part(&self, from: u64, most: usize, secrets: &Secrets) -> Part {
        let end = self.standing().end;
        self.part_behind(from, end.saturating_sub(most as u64), most, secrets)
    }

    fn part_behind(&self, from: u64, least: u64, most: usize, secrets: &Secrets) -> Part {
        if from >= least {
            return self.part(from, most, secrets);
        }
        let bytes = self.bytes(least, most);
        let skipped = line_begin(&bytes);
        self.shown(least + skipped as u64, bytes[skipped..].to_vec(), secrets)
    }

    /// How many bytes at the start of these, which begin there, belong to an escape sequence that began before.
    fn rest_of_sequence(&self, begin: u64, bytes: &[u8]) -> usize {
        let from = begin.saturating_sub(MOST_REST as u64);
        let mut around = self.bytes(from, usize::try_from(begin - from).unwrap_or(0));
        if unfinished_sequence(&around) == 0 {
            return 0;
        }
        let is_end = |byte: &u8| {
            around.push(*byte);
            unfinished_sequence(&around) == 0
        };
        bytes.iter().take(MOST_REST).position(is_end).map_or(0, |at| at + 1)
    }

    fn shown(&self, begin: u64, mut bytes: Vec<u8>, secrets: &Secrets) -> Part {
        let standing = self.standing();
        let is_last = begin + bytes.len() as u64 >= standing.end && standing.ended.is_some();
        if !is_last {
            bytes.truncate(bytes.len() - unfinished_character(&bytes));
            bytes.truncate(bytes.len() - unfinished_sequence(&bytes));
        }
        let skipped = self.rest_of_sequence(begin, &bytes);
        let shown = |bytes: &[u8]| plain(bytes.get(skipped..).unwrap_or_default());
        let mut text = shown(&bytes);
        if !is_last && !secrets.is_empty() {
            // An escape sequence in it may have hidden the beginning of a secret from the first look.
            let mut left = MOST_TAKEN_BACK;
            while secrets.before_pause(&text).len() < text.len() && left > 0 && !bytes.is_empty() {
                take_back(&mut bytes);
                text = shown(&bytes);
                left -= 1;
            }
            text.truncate(secrets.before_pause(&text).len());
        }
        if begin > 0 && !secrets.is_empty() && self.bytes(begin - 1, 1) != b"\n" {
            // The same of its end.
            text = secrets.behind_pause(&text).to_owned();
        }
        let text = secrets.mask_text(&text).into_owned();
        Part { text, begin, next: begin + bytes.len() as u64 }
    }
}

/// What a terminal would show of all this in the end.
pub(crate) fn plain(bytes: &[u8]) -> String {
    let mut screen = Screen::default();
    let mut text = Vec::with_capacity(bytes.len());
    screen.push(bytes, &mut |settled| text.extend_from_slice(settled));
    screen.finish(&mut |settled| text.extend_from_slice(settled));
    let text = String::from_utf8_lossy(&text);
    // A cursor that went far to the right makes much text of few bytes.
    cut::beginning(&text, 8 * bytes.len() + 1024).to_owned()
}

/// Where the first line begins that is whole, if there is one; else the first character.
fn line_begin(bytes: &[u8]) -> usize {
    match memchr::memchr(b'\n', bytes) {
        Some(at) if at < bytes.len() / 2 => at + 1,
        _ => bytes.iter().take(3).take_while(|&&byte| is_continuation(byte)).count(),
    }
}

/// Takes the last character or escape sequence away.
fn take_back(bytes: &mut Vec<u8>) {
    while bytes.pop().is_some_and(is_continuation) {}
    bytes.truncate(bytes.len() - unfinished_sequence(bytes));
}

/// How many bytes at the end are the start of an escape sequence whose rest is missing.
fn unfinished_sequence(bytes: &[u8]) -> usize {
    let reach = bytes.len().saturating_sub(LONGEST_SEQUENCE);
    let tail = &bytes[reach..];
    let line = memchr::memrchr(b'\n', tail).map_or(0, |at| at + 1);
    let tail = &tail[line..];
    let Some(at) = memchr::memrchr(0x1b, tail) else { return 0 };
    let sequence = &tail[at..];
    let is_whole = match sequence.get(1) {
        None => false,
        Some(b'[') => sequence[2..].iter().any(|byte| (0x40..=0x7e).contains(byte)),
        // A text, which ends with BEL or ESC \.
        Some(b']' | b'P' | b'X' | b'^' | b'_') => sequence.contains(&0x07),
        Some(0x20..=0x2f) => sequence[2..].iter().any(|byte| (0x30..=0x7e).contains(byte)),
        Some(_) => true,
    };
    if is_whole { 0 } else { sequence.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_escape_sequence_waits_for_its_end() {
        for (text, unfinished) in [
            ("plain", 0),
            ("a\u{1b}", 1),
            ("a\u{1b}[1;3", 5),
            ("a\u{1b}[1;31m", 0),
            ("a\u{1b}]0;title", 9),
            ("a\u{1b}]0;title\u{7}", 0),
            ("a\u{1b}]0;title\u{1b}\\b", 0),
            ("a\u{1b}(", 2),
            ("a\u{1b}(B", 0),
            ("a\u{1b}[1;3\nb", 0),
        ] {
            assert_eq!(unfinished_sequence(text.as_bytes()), unfinished, "{text:?}");
        }
    }

    #[test]
    fn the_last_character_or_sequence_is_taken_back() {
        let mut bytes = "a€\u{1b}[1m".as_bytes().to_vec();
        take_back(&mut bytes);
        assert_eq!(bytes, "a€".as_bytes());
        take_back(&mut bytes);
        assert_eq!(bytes, b"a");
    }
}
