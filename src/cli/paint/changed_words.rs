//! Which words of a line a change touches.

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// A piece of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) text: String,
    pub(super) part: Part,
}

/// Whether the other line has a piece too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Same,
    Changed,
}

/// Longer lines are not compared: the time grows with the square of their words.
const MOST_WORDS: usize = 400;

impl Piece {
    /// A whole line.
    pub(super) fn whole(text: String) -> Self {
        Self { text, part: Part::Same }
    }
}

/// The old and the new line in pieces. None where they have so little in common that all of them is
/// changed, and where they are too long to be compared.
pub(super) fn changed_words(old: &str, new: &str) -> Option<(Vec<Piece>, Vec<Piece>)> {
    let (old_words, new_words) = (words(old), words(new));
    if old_words.len().max(new_words.len()) > MOST_WORDS {
        return None;
    }
    let (mut olds, mut news) = (Pieces::default(), Pieces::default());
    let mut same = 0;
    for op in capture_diff_slices(Algorithm::Myers, &old_words, &new_words) {
        let (gone, come) = (old_words[op.old_range()].concat(), new_words[op.new_range()].concat());
        let part = match op {
            DiffOp::Equal { .. } => Part::Same,
            _ => Part::Changed,
        };
        if part == Part::Same {
            same += letters(&gone);
        }
        olds.push(gone, part);
        news.push(come, part);
    }
    let is_alike = same > 0 && same * 3 >= letters(old).max(letters(new));
    is_alike.then_some((olds.0, news.0))
}

/// The line as words, and each other character by itself. Whatever is not ASCII stays with its
/// neighbours: a terminal may draw several such characters as one.
fn words(line: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii();
    let mut words = Vec::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let length = match is_word(first) {
            true => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        let (word, behind) = rest.split_at(length);
        words.push(word);
        rest = behind;
    }
    words
}

/// How much of a text can be seen.
fn letters(text: &str) -> usize {
    text.chars().filter(|c| !c.is_whitespace()).count()
}

#[derive(Default)]
struct Pieces(Vec<Piece>);

impl Pieces {
    fn push(&mut self, text: String, part: Part) {
        match self.0.last_mut() {
            _ if text.is_empty() => {}
            Some(last) if last.part == part => last.text.push_str(&text),
            _ => self.0.push(Piece { text, part }),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Both lines, with brackets around what differs.
    fn marked(old: &str, new: &str) -> Option<(String, String)> {
        let line = |pieces: Vec<Piece>| -> String {
            let mark = |piece: Piece| match piece.part {
                Part::Same => piece.text,
                Part::Changed => format!("[{}]", piece.text),
            };
            pieces.into_iter().map(mark).collect()
        };
        changed_words(old, new).map(|(old, new)| (line(old), line(new)))
    }

    #[test]
    fn words_that_differ_are_marked_where_the_lines_are_alike() {
        let pair = |old: &str, new: &str| Some((old.to_owned(), new.to_owned()));
        assert_eq!(
            marked("    let limit = foo(a, 10);", "    let limit = bar(a, 10, b);"),
            pair("    let limit = [foo](a, 10);", "    let limit = [bar](a, 10[, b]);")
        );
        assert_eq!(
            marked("gr\u{fc}n a b", "gr\u{fc}n  a b"),
            pair("gr\u{fc}n a b", "gr\u{fc}n [ ]a b")
        );
        assert_eq!(marked("hello", "bye"), None);
        assert_eq!(marked("", "bye"), None);
        let long = "a ".repeat(MOST_WORDS);
        assert_eq!(marked(&long, &format!("{long}b")), None);
    }

    proptest! {
        #[test]
        fn pieces_are_the_lines(old in "[ab_ (é🙂]{0,20}", new in "[ab_ (é🙂]{0,20}") {
            if let Some((olds, news)) = changed_words(&old, &new) {
                let text = |pieces: &[Piece]| -> String {
                    pieces.iter().map(|piece| piece.text.as_str()).collect()
                };
                prop_assert_eq!((text(&olds), text(&news)), (old, new));
            }
        }
    }
}
