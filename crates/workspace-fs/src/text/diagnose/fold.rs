//! Folding: what two lines have in common apart from certain kinds of difference.

use unicode_normalization::char::decompose_canonical;

use crate::text::hidden::is_hidden;

/// A kind of difference between two texts that look alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Spaces, tabs and other blanks, and characters that show nothing.
    Whitespace,
    /// Composed and decomposed forms of one character, such as U+00E9 and `e` + U+0301.
    UnicodeForm,
    /// Typographic and plain quotes, dashes and dots.
    Punctuation,
    /// Upper and lower case.
    Case,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 4] = [Kind::Whitespace, Kind::UnicodeForm, Kind::Punctuation, Kind::Case];

    /// The kind in words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Whitespace => "whitespace",
            Kind::UnicodeForm => "Unicode form (composed or decomposed characters)",
            Kind::Punctuation => "quotes or dashes",
            Kind::Case => "upper and lower case",
        }
    }
}

/// Appends `text` to `folded`, looking past all kinds of difference.
pub(super) fn fold_all(text: &str, folded: &mut String) {
    if text.is_ascii() {
        let kept = text.bytes().filter(|byte| !byte.is_ascii_whitespace());
        folded.extend(kept.map(|byte| char::from(byte.to_ascii_lowercase())));
        return;
    }
    for character in text.chars() {
        fold_char(character, &Kind::ALL, &mut |folded_char| folded.push(folded_char));
    }
}

/// `text` with the given kinds of difference looked past.
pub(super) fn fold(text: &str, kinds: &[Kind]) -> String {
    let mut folded = String::with_capacity(text.len());
    for character in text.chars() {
        fold_char(character, kinds, &mut |folded_char| folded.push(folded_char));
    }
    folded
}

/// Where in `text` the character stands whose folded form reaches beyond `position` of the whole
/// folded text.
pub(super) fn unfold(text: &str, position: usize) -> usize {
    let mut length = 0;
    let reached = text.char_indices().find(|(_, character)| {
        fold_char(*character, &Kind::ALL, &mut |folded| length += folded.len_utf8());
        length > position
    });
    reached.map_or(text.len(), |(at, _)| at)
}

fn fold_char(character: char, kinds: &[Kind], push: &mut impl FnMut(char)) {
    if character.is_ascii() {
        if character.is_ascii_whitespace() && kinds.contains(&Kind::Whitespace) {
            return;
        }
        let lower = kinds.contains(&Kind::Case);
        push(if lower { character.to_ascii_lowercase() } else { character });
        return;
    }
    if kinds.contains(&Kind::Whitespace) && (character.is_whitespace() || is_invisible(character)) {
        return;
    }
    if kinds.contains(&Kind::Punctuation)
        && let Some(plain) = plain_punctuation(character)
    {
        plain.chars().for_each(push);
        return;
    }
    let mut cased = |character: char| {
        if kinds.contains(&Kind::Case) {
            character.to_lowercase().for_each(&mut *push);
        } else {
            push(character);
        }
    };
    if kinds.contains(&Kind::UnicodeForm) {
        decompose_canonical(character, cased);
    } else {
        cased(character);
    }
}

/// Characters that have no width and no glyph, or only a blank.
pub(super) fn is_invisible(character: char) -> bool {
    is_hidden(character) && !character.is_control()
}

/// What is typed for a typographic character.
pub(crate) fn plain_punctuation(character: char) -> Option<&'static str> {
    Some(match character {
        '\u{2018}' | '\u{2019}' | '\u{201A}' | '\u{201B}' | '\u{2032}' | '\u{B4}' => "'",
        '\u{201C}' | '\u{201D}' | '\u{201E}' | '\u{201F}' | '\u{2033}' => "\"",
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{FE58}' | '\u{FF0D}' => "-",
        '\u{2026}' => "...",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_looks_past_its_own_difference_only() {
        let cases = [
            (Kind::Whitespace, "\tif  a\u{A0}b", "if ab"),
            (Kind::UnicodeForm, "caf\u{E9}", "cafe\u{301}"),
            (Kind::Punctuation, "\u{201C}a\u{201D} \u{2014} b\u{2026}", "\"a\" - b..."),
            (Kind::Case, "École", "éCOLE"),
        ];
        for (kind, left, right) in cases {
            for tried in Kind::ALL {
                assert_eq!(fold(left, &[tried]) == fold(right, &[tried]), tried == kind, "{left}");
            }
        }
    }

    #[test]
    fn both_ways_of_folding_agree() {
        for text in ["", "\t If  (A)\r\x0b\x0c{ \"B-C\" }", "É \u{2019}x\u{a0}"] {
            let mut folded = String::new();
            fold_all(text, &mut folded);
            assert_eq!(folded, fold(text, &Kind::ALL));
        }
    }

    #[test]
    fn a_place_in_folded_text_leads_back() {
        let text = "  A\tB é x";
        let folded = fold(text, &Kind::ALL);
        assert_eq!(folded, "abe\u{301}x");
        assert_eq!(unfold(text, 0), 2);
        assert_eq!(unfold(text, 1), 4);
        assert_eq!(unfold(text, 2), 6);
        assert_eq!(unfold(text, 5), 9);
    }
}
