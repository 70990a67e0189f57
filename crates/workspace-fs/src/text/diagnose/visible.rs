//! Lines with their invisible characters made visible, short enough for a message.

use std::fmt::Write as _;

use super::fold::{Kind, is_invisible};

/// What the marks stand for; goes behind a sentence and ends the line.
pub(super) const LEGEND: &str = " (→ is a tab, · a space):";

/// The marks themselves.
pub(super) const MARKS: [char; 2] = ['→', '·'];

/// Characters shown before and behind the first difference.
const BEFORE: usize = 40;
const AFTER: usize = 120;

/// Two lines that differ in `kinds`, each with the text around their first difference.
pub(super) fn pair(file: &str, wanted: &str, kinds: &[Kind]) -> (String, String) {
    let same = file.chars().zip(wanted.chars()).take_while(|(a, b)| a == b).count();
    (around(file, same, kinds), around(wanted, same, kinds))
}

/// A line alone.
pub(super) fn line(text: &str) -> String {
    around(text, 0, &[Kind::Whitespace])
}

/// A line alone, its blanks as they are.
pub(super) fn plain(text: &str) -> String {
    around(text, 0, &[])
}

fn around(text: &str, at: usize, kinds: &[Kind]) -> String {
    let start = at.saturating_sub(BEFORE);
    let mut shown = String::new();
    if start > 0 {
        shown.push('…');
    }
    let mut characters = text.chars().skip(start).peekable();
    let code_is_space = kinds.contains(&Kind::Whitespace);
    let mut at_edge = start == 0;
    for _ in 0..at - start + AFTER {
        let Some(character) = characters.next() else { return shown };
        let doubled = characters.peek().is_none_or(|next| *next == ' ') || shown.ends_with('·');
        match character {
            ' ' if code_is_space && (at_edge || doubled) => shown.push('·'),
            '\t' => shown.push('→'),
            ' ' => shown.push(' '),
            '\r' => shown.push('␍'),
            other if is_opaque(other, kinds) => {
                let _ = write!(shown, "<U+{:04X}>", u32::from(other));
            }
            other => shown.push(other),
        }
        at_edge &= matches!(character, ' ' | '\t');
    }
    if characters.peek().is_some() {
        shown.push('…');
    }
    shown
}

/// Characters that look alike.
fn is_opaque(character: char, kinds: &[Kind]) -> bool {
    let blank = character.is_whitespace() || is_invisible(character) || character.is_control();
    blank || (!character.is_ascii() && kinds.contains(&Kind::UnicodeForm))
}
