//! A patch: which bytes of a text are replaced by which others. It is exact, can be undone, and
//! copies nothing that it does not change.

use std::borrow::Cow;
use std::collections::TryReserveError;
use std::ops::Range;

/// One replaced run of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change<'a> {
    /// Where the replaced bytes stand in the old text; empty for an insertion.
    pub old: Range<usize>,
    /// What stands there afterwards.
    pub text: Cow<'a, [u8]>,
}

/// Changes of one text, in order, neither overlapping nor touching.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patch<'a> {
    changes: Vec<Change<'a>>,
}

/// More changes than this are joined into their last one, so that a patch's bookkeeping stays small
/// beside the text whatever is replaced in it.
const MAX_CHANGES: usize = 16_384;

impl<'a> Patch<'a> {
    /// The patch that turns `old` into `new`: one change, between what both have in common at their
    /// start and at their end.
    #[must_use]
    pub fn between(old: &[u8], new: &'a [u8]) -> Self {
        let prefix = common_prefix(old, new);
        let suffix = common_prefix_rev(&old[prefix..], &new[prefix..]);
        let change = Change {
            old: prefix..old.len() - suffix,
            text: Cow::Borrowed(&new[prefix..new.len() - suffix]),
        };
        let unchanged = change.old.is_empty() && change.text.is_empty();
        Self { changes: if unchanged { Vec::new() } else { vec![change] } }
    }

    /// Adds a change behind all others. Where it touches the last one, both become one.
    ///
    /// `base` is the old text. Changes must come in order.
    pub fn push(&mut self, base: &[u8], change: Change<'a>) {
        let full = self.changes.len() >= MAX_CHANGES;
        match self.changes.last_mut() {
            Some(last) if full || last.old.end >= change.old.start => {
                debug_assert!(last.old.end <= change.old.start, "changes come in order");
                let text = last.text.to_mut();
                text.extend_from_slice(&base[last.old.end..change.old.start]);
                text.extend_from_slice(&change.text);
                last.old.end = change.old.end;
            }
            _ => self.changes.push(change),
        }
    }

    /// The changes, in order.
    #[must_use]
    pub fn changes(&self) -> &[Change<'a>] {
        &self.changes
    }

    /// Whether nothing is replaced.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// The length of the new text.
    #[must_use]
    pub fn new_len(&self, old_len: usize) -> usize {
        let removed: usize = self.changes.iter().map(|change| change.old.len()).sum();
        let added: usize = self.changes.iter().map(|change| change.text.len()).sum();
        old_len - removed + added
    }

    /// The pieces that the new text is made of, in order, without a copy.
    pub fn segments<'s>(&'s self, old: &'s [u8]) -> impl Iterator<Item = &'s [u8]> {
        let ends = self.changes.iter().map(|change| change.old.end);
        let starts = self.changes.iter().map(|change| change.old.start);
        let kept = std::iter::once(0).chain(ends).zip(starts.chain(std::iter::once(old.len())));
        let texts = self.changes.iter().map(|change| &*change.text).chain(std::iter::once(&[][..]));
        kept.zip(texts)
            .flat_map(|((from, to), text)| [&old[from..to], text])
            .filter(|piece| !piece.is_empty())
    }

    /// The new text.
    #[must_use]
    pub fn apply(&self, old: &[u8]) -> Vec<u8> {
        let mut new = Vec::with_capacity(self.new_len(old.len()));
        self.segments(old).for_each(|piece| new.extend_from_slice(piece));
        new
    }

    /// The new text, where there is one change in the memory of the old one if that is owned.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn try_apply(&self, old: Cow<'_, [u8]>) -> Result<Vec<u8>, TryReserveError> {
        let new_len = self.new_len(old.len());
        match (&self.changes[..], old) {
            ([only], Cow::Owned(mut old)) => {
                old.try_reserve(new_len.saturating_sub(old.len()))?;
                old.splice(only.old.clone(), only.text.iter().copied());
                Ok(old)
            }
            (_, old) => {
                let mut new = Vec::new();
                new.try_reserve_exact(new_len)?;
                self.segments(&old).for_each(|piece| new.extend_from_slice(piece));
                Ok(new)
            }
        }
    }

    /// The patch that undoes this one: it applies to the new text and gives the old one.
    #[must_use]
    pub fn inverse<'o>(&self, old: &'o [u8]) -> Patch<'o> {
        let changes = self.placed().map(|(change, new)| Change {
            old: new,
            text: Cow::Borrowed(&old[change.old.clone()]),
        });
        Patch { changes: changes.collect() }
    }

    /// This patch followed by `next`, as one patch of the first text. `middle` is the text between
    /// the two: what this patch makes, and what `next` changes.
    #[must_use]
    pub fn then(&self, middle: &[u8], next: &Patch<'_>) -> Patch<'static> {
        let mut first = self.placed().peekable();
        let mut second = next.changes.iter().peekable();
        let mut merged: Vec<Change<'static>> = Vec::new();
        // How far the middle text has moved against the old one, up to the current place.
        let mut shift: isize = 0;
        loop {
            let at = match (first.peek(), second.peek()) {
                (Some((_, new)), Some(change)) => new.start.min(change.old.start),
                (Some((_, new)), None) => new.start,
                (None, Some(change)) => change.old.start,
                (None, None) => return Patch { changes: merged },
            };
            // One run of changes of either patch that touch each other, `at..end` in the middle.
            let start = at.wrapping_add_signed(-shift);
            let (mut end, mut copied) = (at, at);
            let mut text = Vec::new();
            loop {
                if let Some((change, new)) = first.next_if(|(_, new)| new.start <= end) {
                    end = end.max(new.end);
                    shift += new.len().cast_signed() - change.old.len().cast_signed();
                } else if let Some(change) = second.next_if(|change| change.old.start <= end) {
                    text.extend_from_slice(&middle[copied..change.old.start]);
                    text.extend_from_slice(&change.text);
                    copied = change.old.end;
                    end = end.max(change.old.end);
                } else {
                    break;
                }
            }
            text.extend_from_slice(&middle[copied..end]);
            merged.push(Change { old: start..end.wrapping_add_signed(-shift), text: text.into() });
        }
    }

    /// Where, in the new text, the first change that reaches beyond `at` of the old text begins to
    /// differ; none where it only deletes.
    #[must_use]
    pub fn first_new_from(&self, at: usize, old: &[u8]) -> Option<usize> {
        let (change, new) = self.placed().find(|(change, _)| {
            change.old.end > at || (change.old.is_empty() && change.old.start >= at)
        })?;
        let same = common_prefix(&old[change.old.clone()], &change.text);
        (same < change.text.len()).then_some(new.start + same)
    }

    /// Each change with its place in the new text.
    fn placed(&self) -> impl Iterator<Item = (&Change<'a>, Range<usize>)> {
        let mut shift: isize = 0;
        self.changes.iter().map(move |change| {
            let start = change.old.start.wrapping_add_signed(shift);
            shift += change.text.len().cast_signed() - change.old.len().cast_signed();
            (change, start..start + change.text.len())
        })
    }
}

/// How many bytes two texts have in common at their start; by words, as the compiler turns slice
/// comparison into `memcmp`.
fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    const BLOCK: usize = 4096;
    let blocks = a.chunks(BLOCK).zip(b.chunks(BLOCK)).take_while(|(a, b)| a == b);
    let equal: usize = blocks.map(|(a, _)| a.len()).sum();
    equal + a[equal..].iter().zip(&b[equal..]).take_while(|(a, b)| a == b).count()
}

fn common_prefix_rev(a: &[u8], b: &[u8]) -> usize {
    const BLOCK: usize = 4096;
    let blocks = a.rchunks(BLOCK).zip(b.rchunks(BLOCK)).take_while(|(a, b)| a == b);
    let equal: usize = blocks.map(|(a, _)| a.len()).sum();
    let (a, b) = (&a[..a.len() - equal], &b[..b.len() - equal]);
    equal + a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Changes that fit a text of the given length, from arbitrary cut points.
    fn patch_of(base: &[u8], cuts: &[(usize, usize, Vec<u8>)]) -> Patch<'static> {
        let mut patch = Patch::default();
        let mut at = 0;
        for (skip, take, text) in cuts {
            let start = (at + skip).min(base.len());
            let end = (start + take).min(base.len());
            patch.push(base, Change { old: start..end, text: Cow::Owned(text.clone()) });
            at = end;
        }
        patch
    }

    fn cuts() -> impl Strategy<Value = Vec<(usize, usize, Vec<u8>)>> {
        prop::collection::vec(
            (0..6_usize, 0..4_usize, prop::collection::vec(any::<u8>(), 0..4)),
            0..5,
        )
    }

    proptest! {
        #[test]
        fn a_patch_can_be_undone(old in prop::collection::vec(any::<u8>(), 0..40), cuts in cuts()) {
            let patch = patch_of(&old, &cuts);
            let new = patch.apply(&old);
            prop_assert_eq!(new.len(), patch.new_len(old.len()));
            prop_assert_eq!(&patch.try_apply(Cow::Borrowed(&old)).unwrap(), &new);
            prop_assert_eq!(&patch.try_apply(Cow::Owned(old.clone())).unwrap(), &new);
            prop_assert_eq!(patch.inverse(&old).apply(&new), old);
        }

        #[test]
        fn two_patches_are_one(
            old in prop::collection::vec(any::<u8>(), 0..40),
            first in cuts(),
            second in cuts(),
        ) {
            let first = patch_of(&old, &first);
            let middle = first.apply(&old);
            let second = patch_of(&middle, &second);
            let both = first.then(&middle, &second);
            prop_assert_eq!(both.apply(&old), second.apply(&middle));
            for pair in both.changes().windows(2) {
                prop_assert!(pair[0].old.end <= pair[1].old.start);
            }
        }

        #[test]
        fn between_finds_the_one_change(
            old in prop::collection::vec(0..3_u8, 0..40),
            new in prop::collection::vec(0..3_u8, 0..40),
        ) {
            prop_assert_eq!(Patch::between(&old, &new).apply(&old), new);
        }
    }

    #[test]
    fn between_trims_across_blocks() {
        let old = vec![7_u8; 10_000];
        let mut new = old.clone();
        new[6000] = 8;
        let patch = Patch::between(&old, &new);
        assert_eq!(patch.changes(), [Change { old: 6000..6001, text: Cow::Borrowed(&[8][..]) }]);
        assert!(Patch::between(&old, &old).is_empty());
    }

    #[test]
    fn what_a_change_brings_is_found_in_the_new_text() {
        let old = b"one two three";
        let mut patch = Patch::default();
        for (range, text) in [(0..3, &b"1"[..]), (4..7, b"twenty")] {
            patch.push(old, Change { old: range, text: Cow::Borrowed(text) });
        }
        assert_eq!(patch.apply(old), b"1 twenty three");
        assert_eq!(patch.first_new_from(0, old), Some(0));
        assert_eq!(patch.first_new_from(3, old), Some(4));
        assert_eq!(patch.first_new_from(7, old), None);
        let mut deleted = Patch::default();
        deleted.push(old, Change { old: 3..13, text: Cow::Borrowed(b"") });
        assert_eq!(deleted.first_new_from(4, old), None);
    }

    #[test]
    fn endless_replacements_stay_few_changes() {
        let base = b"ab".repeat(MAX_CHANGES * 2);
        let mut patch = Patch::default();
        for at in (0..base.len()).step_by(2) {
            patch.push(&base, Change { old: at..at + 1, text: Cow::Borrowed(b"x") });
        }
        assert_eq!(patch.changes().len(), MAX_CHANGES);
        assert_eq!(patch.apply(&base), b"xb".repeat(MAX_CHANGES * 2));
    }
}
