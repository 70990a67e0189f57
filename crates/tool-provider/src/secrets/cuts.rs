//! The halves of a secret that a cut leaves: nobody recognises them as a part of it later.

use std::borrow::Cow;

use crate::shorten::beginning;

use super::{LEAST_HALF, Secrets};

/// Stands where text was left out.
const CUT: char = '…';

impl Secrets {
    /// A text that is cut at its end, without the end that may be the beginning of a secret.
    #[must_use]
    pub fn before_cut<'a>(&self, text: &'a str) -> &'a str {
        let mut kept = text;
        // What is left may end in the beginning of another secret, or of the same.
        loop {
            let shorter = beginning(kept, self.unfinished(kept.as_bytes()));
            if shorter.len() == kept.len() {
                return kept;
            }
            kept = shorter;
        }
    }

    /// A text that pauses, without an end that may be the beginning of a secret. One or two bytes stay, as
    /// [`Masker::settle`](super::Masker::settle) lets them.
    #[must_use]
    pub fn before_pause<'a>(&self, text: &'a str) -> &'a str {
        let kept = self.before_cut(text);
        if text.len() - kept.len() < LEAST_HALF { text } else { kept }
    }

    /// A text that is cut at its start, without the start that may be the end of a secret.
    #[must_use]
    pub fn behind_cut<'a>(&self, text: &'a str) -> &'a str {
        let mut kept = text;
        loop {
            let begin = self.unbegun(kept.as_bytes());
            let begin = (begin..kept.len()).find(|&at| kept.is_char_boundary(at));
            match begin.unwrap_or(kept.len()) {
                0 => return kept,
                begin => kept = &kept[begin..],
            }
        }
    }

    /// A text that begins anywhere, without a start that may be the end of a secret, but for one or two bytes.
    #[must_use]
    pub fn behind_pause<'a>(&self, text: &'a str) -> &'a str {
        let kept = self.behind_cut(text);
        if text.len() - kept.len() < LEAST_HALF { text } else { kept }
    }

    /// A text that was cut wherever it holds `…`, without the halves of secrets beside it. One or two
    /// bytes stay: the text may hold the character for another reason.
    #[must_use]
    pub fn without_halves<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.is_empty() || !text.contains(CUT) {
            return Cow::Borrowed(text);
        }
        let shortened = |whole: &'a str, kept: &'a str| {
            if whole.len() - kept.len() < LEAST_HALF { whole } else { kept }
        };
        let mut pieces: Vec<&str> = text.split(CUT).collect();
        let last = pieces.len() - 1;
        for piece in &mut pieces[..last] {
            *piece = shortened(piece, self.before_cut(piece));
        }
        for piece in &mut pieces[1..] {
            *piece = shortened(piece, self.behind_cut(piece));
        }
        Cow::Owned(pieces.join("…"))
    }

    /// How long the longest start of `bytes` is that a secret could end in.
    fn unbegun(&self, bytes: &[u8]) -> usize {
        let ends = self.entries.iter().filter_map(|secret| {
            let needle = secret.value.needle();
            let longest = bytes.len().min(needle.len() - 1);
            (1..=longest).rev().find(|&end| needle.ends_with(&bytes[..end]))
        });
        ends.max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn no_half_is_left_at_a_cut() {
        let secrets = Secrets::new([("KEY", "hunter2!"), ("TWICE", "aabbaab"), ("É", "été-été")]);
        assert_eq!(secrets.before_cut("a hunter2"), "a ");
        assert_eq!(secrets.before_cut("a hunter2!"), "a hunter2!");
        assert_eq!(secrets.before_cut("xaabbaab"), "x");
        assert_eq!(secrets.before_cut("x é"), "x ");
        assert_eq!(secrets.behind_cut("unter2! b"), " b");
        assert_eq!(secrets.behind_cut("hunter2! b"), "hunter2! b");
        assert_eq!(secrets.behind_cut("té b"), " b");
        for (text, before, behind) in
            [("er2!", "er2!", ""), ("2!", "2!", "2!"), ("hunt", "", "hunt")]
        {
            assert_eq!((secrets.before_pause(text), secrets.behind_pause(text)), (before, behind));
        }
    }

    #[test]
    fn a_mark_within_a_text_counts_as_a_cut() {
        let secrets = Secrets::new([("KEY", "hunter2!")]);
        assert_eq!(secrets.without_halves("\"hunte…\" is no …ter2! or"), "\"…\" is no … or");
        for as_it_is in ["hu… …2! hunter2", "nothing"] {
            assert_eq!(secrets.without_halves(as_it_is), as_it_is);
        }
    }

    proptest! {
        #[test]
        fn wherever_a_text_is_cut_the_halves_are_gone(
            before in "[ab]{0,9}", after in "[ab]{0,9}", at in 1usize..7,
        ) {
            let value = "aabbaab";
            let secrets = Secrets::new([("ONE", value)]);
            let text = format!("{before}{value}{after}");
            let cut = before.len() + at;
            prop_assert!(secrets.before_cut(&text[..cut]).len() <= before.len());
            prop_assert!(secrets.behind_cut(&text[cut..]).len() <= after.len());
        }
    }
}
