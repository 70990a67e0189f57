//! Values that must never be shown, and the masking of them in what a command prints.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use memchr::memmem::Finder;

use spelt::Spelt;

mod cuts;
mod spelt;

/// The values that must not be shown, each with the name that stands in for it. Clones share them.
#[derive(Clone, Default)]
pub struct Secrets {
    entries: Arc<[Secret]>,
}

struct Secret {
    label: String,
    value: Finder<'static>,
    /// Where it has characters that messages spell out.
    spelt: Option<Spelt>,
}

/// Shorter values are left alone: they turn up by chance, and masking them would garble output
/// without hiding anything.
pub const SHORTEST_SECRET: usize = 6;

/// The same for one line of a value that has several. Keys in text form have lines of 64; of what is
/// shorter, much is punctuation.
const SHORTEST_LINE: usize = 12;

/// Less than this of a secret, beside a cut or where a text pauses, may as well be the text's own.
const LEAST_HALF: usize = SHORTEST_SECRET / 2;

impl Secrets {
    /// Takes named values. Blanks around a value are not part of what is looked for, because a
    /// shell drops them easily; a value of less than [`SHORTEST_SECRET`] bytes is not looked for.
    /// Each longer line of a value is looked for by itself too: whatever shows files numbers their
    /// lines, or shows some of them.
    pub fn new<N, V>(values: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: fmt::Display,
        V: AsRef<[u8]>,
    {
        let entries = values
            .into_iter()
            .flat_map(|(name, value)| {
                let label = format!("[{name}]");
                let secret = |value: &[u8]| Secret {
                    label: label.clone(),
                    value: Finder::new(value).into_owned(),
                    spelt: Spelt::of(value),
                };
                parts(value.as_ref().trim_ascii()).map(secret).collect::<Vec<_>>()
            })
            .collect();
        Self { entries }
    }

    /// Whether there is nothing to look for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// A masker for one stream of bytes.
    #[must_use]
    pub fn masker(&self) -> Masker {
        Masker { secrets: self.clone(), held: Vec::new(), covered: 0, shown: 0 }
    }

    /// Masks a text that is whole, also where it spells a value's characters out. It is borrowed
    /// where there was nothing to mask.
    #[must_use]
    pub fn mask_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut masked = self.mask_plain(text);
        for secret in &*self.entries {
            let Some(spelt) = &secret.spelt else { continue };
            let mut from = 0;
            while let Some(found) = spelt.find(&masked, from) {
                from = found.start + secret.label.len();
                masked.to_mut().replace_range(found, &secret.label);
            }
        }
        masked
    }

    fn mask_plain<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let bytes = text.as_bytes();
        if self.entries.iter().all(|secret| secret.value.find(bytes).is_none()) {
            return Cow::Borrowed(text);
        }
        let mut masker = self.masker();
        let mut masked = masker.push(bytes.to_vec());
        masked.extend(masker.finish());
        // A value that is not UTF-8 can end inside a character.
        Cow::Owned(match String::from_utf8(masked) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        })
    }

    /// Masks what is whole, and returns where the bytes of `span` are then: an end of it that lies in
    /// a secret is moved out to the end of what stands in for that. `None` where there was nothing to
    /// mask.
    #[must_use]
    pub fn mask_around(&self, bytes: &[u8], span: Range<usize>) -> Option<(Vec<u8>, Range<usize>)> {
        let occurrences = self.occurrences(bytes);
        if occurrences.is_empty() {
            return None;
        }
        let mut shown = Vec::with_capacity(bytes.len());
        let (mut start, mut end) = (None, None);
        let mut covered = 0;
        for (run, label) in runs(&occurrences) {
            let label_at = shown.len() + run.start - covered;
            shown.extend_from_slice(&bytes[covered..run.start]);
            shown.extend_from_slice(label.as_bytes());
            covered = run.end;
            let before = |at: usize| label_at.saturating_sub(run.start.saturating_sub(at));
            if start.is_none() && span.start < run.end {
                start = Some(before(span.start));
            }
            if end.is_none() && span.end <= run.end {
                end = Some(if span.end <= run.start { before(span.end) } else { shown.len() });
            }
        }
        shown.extend_from_slice(&bytes[covered..]);
        let behind = |at: usize| shown.len().saturating_sub(bytes.len().saturating_sub(at));
        let start = start.unwrap_or_else(|| behind(span.start));
        let end = end.unwrap_or_else(|| behind(span.end));
        Some((shown, start..end))
    }

    /// The occurrences in `bytes` in order of their start, the longest first among equals. Those of
    /// one value that overlap each other count as one.
    fn occurrences(&self, bytes: &[u8]) -> Vec<Occurrence<'_>> {
        let mut found: Vec<Occurrence<'_>> = Vec::new();
        for secret in &*self.entries {
            let first_of_this = found.len();
            let mut from = 0;
            while let Some(offset) = secret.value.find(&bytes[from..]) {
                let start = from + offset;
                let end = start + secret.value.needle().len();
                match found[first_of_this..].last_mut() {
                    Some(last) if start < last.end => last.end = end,
                    _ => found.push(Occurrence { start, end, label: &secret.label }),
                }
                from = start + 1;
            }
        }
        found.sort_by_key(|occurrence| (occurrence.start, std::cmp::Reverse(occurrence.end)));
        found
    }

    /// Where the longest end of `bytes` begins that more bytes could turn into a secret.
    fn unfinished(&self, bytes: &[u8]) -> usize {
        let starts = self.entries.iter().filter_map(|secret| {
            let needle = secret.value.needle();
            let earliest = bytes.len().saturating_sub(needle.len() - 1);
            (earliest..bytes.len()).find(|&start| needle.starts_with(&bytes[start..]))
        });
        starts.min().unwrap_or(bytes.len())
    }
}

/// What is looked for of a value: the whole, and its lines where it has several.
fn parts(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let whole = Some(value).filter(|value| value.len() >= SHORTEST_SECRET);
    let lines = value.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    whole.into_iter().chain(lines.filter(move |line| line.len() >= SHORTEST_LINE && *line != value))
}

struct Occurrence<'a> {
    start: usize,
    end: usize,
    label: &'a str,
}

/// Occurrences that overlap, as one: under the label of the first.
fn runs<'a>(occurrences: &[Occurrence<'a>]) -> Vec<(Range<usize>, &'a str)> {
    let mut runs: Vec<(Range<usize>, &str)> = Vec::with_capacity(occurrences.len());
    for occurrence in occurrences {
        match runs.last_mut() {
            Some((run, _)) if occurrence.start < run.end => run.end = run.end.max(occurrence.end),
            _ => runs.push((occurrence.start..occurrence.end, occurrence.label)),
        }
    }
    runs
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.entries.iter().map(|secret| &secret.label)).finish()
    }
}

/// Masks one stream of bytes as it passes, in pieces of any size: every byte of every occurrence is
/// hidden, and what comes out does not depend on where the pieces were cut.
///
/// An end of a piece that may be the start of a secret is held back, however long the rest takes to
/// come: at most one byte less than the longest secret.
#[derive(Debug)]
pub struct Masker {
    secrets: Secrets,
    held: Vec<u8>,
    /// How many of the first held bytes a label that has gone out already stands for.
    covered: usize,
    /// How many bytes of `held` were shown all the same.
    shown: usize,
}

impl Masker {
    /// Whether there is anything to look for.
    #[must_use]
    pub fn is_needed(&self) -> bool {
        !self.secrets.is_empty()
    }

    /// Takes the next piece and returns what can be shown. Without secrets nothing is copied.
    #[must_use]
    pub fn push(&mut self, piece: Vec<u8>) -> Vec<u8> {
        if self.secrets.is_empty() {
            return piece;
        }
        let bytes = if self.held.is_empty() {
            piece
        } else {
            let mut bytes = std::mem::take(&mut self.held);
            bytes.extend_from_slice(&piece);
            bytes
        };
        let end = self.secrets.unfinished(&bytes);
        self.release(bytes, end)
    }

    /// Whether [`settle`](Self::settle) would show something.
    #[must_use]
    pub fn can_settle(&self) -> bool {
        self.held.len() < LEAST_HALF && self.held.len() > self.covered.max(self.shown)
    }

    /// Nothing comes for now: returns what is held back, where that is so little that it may as well be the
    /// text's own. If the rest of a secret comes after all, its name stands in place of that.
    #[must_use]
    pub fn settle(&mut self) -> Vec<u8> {
        if !self.can_settle() {
            return Vec::new();
        }
        let told = self.covered.max(self.shown);
        self.shown = self.held.len();
        self.held[told..].to_vec()
    }

    /// The stream has ended: returns what was held back.
    #[must_use]
    pub fn finish(&mut self) -> Vec<u8> {
        let bytes = std::mem::take(&mut self.held);
        let end = bytes.len();
        self.release(bytes, end)
    }

    /// Masks `bytes` up to `end` and keeps the rest.
    fn release(&mut self, mut bytes: Vec<u8>, end: usize) -> Vec<u8> {
        let occurrences = self.secrets.occurrences(&bytes);
        if occurrences.is_empty() && self.covered == 0 && self.shown == 0 {
            self.held = bytes.split_off(end);
            return bytes;
        }
        let mut shown = Vec::with_capacity(bytes.len());
        let mut covered = self.covered;
        let mut told = covered.max(self.shown);
        // An occurrence that starts at `end` or later lies in the part that is kept, and is found
        // again there.
        for occurrence in occurrences.iter().take_while(|occurrence| occurrence.start < end) {
            if occurrence.start >= covered {
                shown.extend_from_slice(bytes.get(told..occurrence.start).unwrap_or_default());
                shown.extend_from_slice(occurrence.label.as_bytes());
            }
            covered = covered.max(occurrence.end);
            told = told.max(covered);
        }
        if told < end {
            shown.extend_from_slice(&bytes[told..end]);
        }
        self.covered = covered.saturating_sub(end);
        self.shown = self.shown.saturating_sub(end);
        self.held = bytes.split_off(end);
        shown
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn masked_in_pieces(secrets: &Secrets, text: &[u8], cuts: &[usize]) -> Vec<u8> {
        let mut masker = secrets.masker();
        let mut shown = Vec::new();
        let mut rest = text;
        for &cut in cuts {
            let (piece, later) = rest.split_at(cut.min(rest.len()));
            shown.extend(masker.push(piece.to_vec()));
            rest = later;
        }
        shown.extend(masker.push(rest.to_vec()));
        shown.extend(masker.finish());
        shown
    }

    /// The definition itself: mark every byte of every occurrence, then put a label for each run of
    /// occurrences that overlap.
    fn by_definition(secrets: &[(&str, &[u8])], text: &[u8]) -> Vec<u8> {
        let mut hits: Vec<(usize, usize, &str)> = Vec::new();
        for start in 0..text.len() {
            for (name, value) in secrets {
                if text[start..].starts_with(value) {
                    hits.push((start, start + value.len(), name));
                }
            }
        }
        hits.sort_by_key(|&(start, end, _)| (start, std::cmp::Reverse(end)));
        let mut shown = Vec::new();
        let mut covered = 0;
        for (start, end, name) in hits {
            if start >= covered {
                shown.extend_from_slice(&text[covered..start]);
                shown.extend_from_slice(format!("[{name}]").as_bytes());
            }
            covered = covered.max(end);
        }
        shown.extend_from_slice(&text[covered..]);
        shown
    }

    #[test]
    fn a_value_is_replaced_by_its_name() {
        let secrets = Secrets::new([("TOKEN", "hunter2!"), ("KEY", "\n  sk-12345\n")]);
        assert_eq!(secrets.mask_text("a=hunter2! b=sk-12345."), "a=[TOKEN] b=[KEY].");
        assert!(matches!(secrets.mask_text("nothing here"), Cow::Borrowed(_)));
    }

    #[test]
    fn short_values_are_left_alone() {
        let secrets = Secrets::new([("PIN", "12345")]);
        assert!(secrets.is_empty());
        assert_eq!(secrets.mask_text("12345"), "12345");
    }

    #[test]
    fn the_lines_of_a_value_do_not_show_one_by_one() {
        let key = "-----BEGIN KEY-----\r\nMIIEvQIBADANBgkq\r\n  hkiG9w0BAQEFAASC\r\n}\r\n";
        let secrets = Secrets::new([("KEY", key)]);
        assert_eq!(secrets.mask_text(&format!("<{key}>")), "<[KEY]\r\n>");
        assert_eq!(
            secrets.mask_text("1\tMIIEvQIBADANBgkq\n2\t  hkiG9w0BAQEFAASC\n3\t}\n"),
            "1\t[KEY]\n2\t  [KEY]\n3\t}\n"
        );
        let mut masker = secrets.masker();
        let mut shown = masker.push(key.as_bytes()[..30].to_vec());
        assert_eq!(shown, b"");
        shown.extend(masker.push(key.as_bytes()[30..].to_vec()));
        shown.extend(masker.finish());
        assert_eq!(shown, b"[KEY]\r\n");
    }

    #[test]
    fn the_longer_of_two_nested_values_wins_and_overlaps_hide_every_byte() {
        let secrets = Secrets::new([("A", "abcdef"), ("LONG", "abcdefghij"), ("TAIL", "ghijkl")]);
        assert_eq!(secrets.mask_text("-abcdefghijkl-"), "-[LONG]-");
        assert_eq!(secrets.mask_text("-abcdef-ghijkl-"), "-[A]-[TAIL]-");
    }

    #[test]
    fn a_value_that_arrives_byte_by_byte_never_shows() {
        let secrets = Secrets::new([("TOKEN", "hunter2!")]);
        let mut masker = secrets.masker();
        let mut shown = Vec::new();
        for byte in b"hunter2! hunter2? hunt" {
            shown.extend(masker.push(vec![*byte]));
        }
        assert_eq!(shown, b"[TOKEN] hunter2? ");
        assert_eq!(masker.finish(), b"hunt");
    }

    #[test]
    fn where_a_text_pauses_its_end_shows_unless_that_is_much_of_a_secret() {
        let secrets = Secrets::new([("T", "hunter2!"), ("U", "aabbaab")]);
        let mut masker = secrets.masker();
        assert_eq!(masker.push(b"go: h".to_vec()), b"go: ");
        assert_eq!((masker.can_settle(), masker.settle()), (true, b"h".to_vec()));
        assert_eq!((masker.can_settle(), masker.settle()), (false, b"".to_vec()));
        assert_eq!(masker.push(b"u".to_vec()), b"");
        assert_eq!(masker.settle(), b"u");
        assert_eq!(masker.push(b"nt".to_vec()), b"");
        assert_eq!((masker.can_settle(), masker.settle()), (false, b"".to_vec()), "too much of it");
        assert_eq!(masker.push(b"er2! x h".to_vec()), b"[T] x ");
        assert_eq!(masker.settle(), b"h");
        assert_eq!(masker.push(b"i".to_vec()), b"i", "none after all, and nothing twice");
        assert_eq!(masker.push(b"aabbaab".to_vec()), b"[U]");
        assert_eq!(masker.settle(), b"", "the end of one, and perhaps the beginning of the next");
        assert_eq!(masker.push(b" ah".to_vec()), b" a");
        assert_eq!(masker.settle(), b"h");
        assert_eq!(masker.push(b"hu".to_vec()), b"");
        assert_eq!(masker.settle(), b"hu");
        assert_eq!(masker.finish(), b"");
    }

    #[test]
    fn debug_shows_names_only() {
        let secrets = Secrets::new([("TOKEN", "hunter2!")]);
        assert_eq!(format!("{secrets:?}"), r#"["[TOKEN]"]"#);
    }

    #[test]
    fn a_span_stands_where_its_text_stands_after_masking() {
        let secrets = Secrets::new([("T", "hunter2!"), ("LONG_NAME", "2!2!2!2!")]);
        let around = |text: &str, span| {
            let (shown, span) = secrets.mask_around(text.as_bytes(), span).unwrap();
            let shown = String::from_utf8(shown).unwrap();
            let spanned = shown[span].to_owned();
            (shown, spanned)
        };
        let is = |shown: &str, spanned: &str| (shown.to_owned(), spanned.to_owned());
        assert_eq!(around("a hunter2! b", 0..1), is("a [T] b", "a"));
        assert_eq!(around("a hunter2! b", 11..12), is("a [T] b", "b"));
        assert_eq!(around("a hunter2! b", 4..6), is("a [T] b", "[T]"));
        assert_eq!(around("a hunter2! b", 1..12), is("a [T] b", " [T] b"));
        assert_eq!(around("hunter2!2!2!2! b hunter2!", 15..16), is("[T] b [T]", "b"));
        assert_eq!(around("x2!2!2!2!y", 1..9), is("x[LONG_NAME]y", "[LONG_NAME]"));
        assert!(secrets.mask_around(b"nothing", 0..1).is_none());
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference_and_every_occurrence_is_hidden(
            text in proptest::collection::vec(prop_oneof![Just(b'a'), Just(b'b'), Just(0xff)], 0..80),
            first in proptest::collection::vec(prop_oneof![Just(b'a'), Just(b'b')], 6..9),
            second in proptest::collection::vec(prop_oneof![Just(b'a'), Just(b'b'), Just(0xff)], 6..12),
            cuts in proptest::collection::vec(0usize..9, 0..30),
        ) {
            let named: [(&str, &[u8]); 2] = [("ONE", &first), ("TWO", &second)];
            let secrets = Secrets::new(named);
            let expected = by_definition(&named, &text);
            prop_assert_eq!(&masked_in_pieces(&secrets, &text, &cuts), &expected);
            prop_assert_eq!(&masked_in_pieces(&secrets, &text, &[]), &expected);
            let at = cuts.first().map_or(0, |cut| (*cut).min(text.len()));
            if let Some((masked, span)) = secrets.mask_around(&text, at..text.len()) {
                prop_assert_eq!(masked, expected);
                prop_assert!(span.start <= span.end && span.end <= masked_in_pieces(&secrets, &text, &[]).len());
            } else {
                prop_assert_eq!(&expected, &text);
            }
        }

        #[test]
        fn no_more_is_held_back_than_the_longest_secret_less_one(
            text in proptest::collection::vec(prop_oneof![Just(b'a'), Just(b'b')], 0..80),
        ) {
            let secrets = Secrets::new([("ONE", "aabbaab")]);
            let mut masker = secrets.masker();
            for byte in text {
                let _ = masker.push(vec![byte]);
                prop_assert!(masker.held.len() < 7);
            }
        }
    }
}
