//! A line of any length, shown around its match.

use std::ops::Range;

use tool_provider::Secrets;

/// How many characters of a line are shown.
pub(super) const MOST_CHARS: usize = 500;

const CUT: char = '…';

/// A line, or the part of it around its match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Snippet {
    pub(super) text: String,
    /// Where the match stands in the text, in characters. Absent where it is empty.
    pub(super) highlight: Option<Range<usize>>,
}

impl Snippet {
    /// Shows `line`, which is without its end, around the bytes at `matched`. Bytes that are no
    /// UTF-8 are shown as U+FFFD.
    pub(super) fn around(line: &[u8], matched: Range<usize>, secrets: &Secrets) -> Self {
        let start = matched.start.min(line.len());
        let end = matched.end.clamp(start, line.len());
        let is_empty = start == end;
        // Before anything is cut: nobody recognises half a secret.
        let masked = secrets.mask_around(line, start..end);
        let (line, Range { start, end }) = match &masked {
            Some((line, matched)) => (line.as_slice(), matched.clone()),
            None => (line, start..end),
        };
        // No character has more than 4 bytes, and none of what is further away is shown.
        let reach = MOST_CHARS * 4;
        let before = lossy(&line[start.saturating_sub(reach)..start]);
        let inner = lossy(&line[start..end.min(start + reach)]);
        let after = lossy(&line[end..line.len().min(end + reach)]);
        let count = |text: &str| text.chars().count();
        let (left, middle, right) = (count(&before), count(&inner), count(&after));
        let is_cut_left = start > reach;
        let is_cut_right = line.len() - end > reach || end - start > reach;
        if left + middle + right <= MOST_CHARS && !is_cut_left && !is_cut_right {
            let highlight = (!is_empty).then_some(left..left + middle);
            return Self { text: before + &inner + &after, highlight };
        }
        // Enough for both marks, whether or not both are needed.
        let width = MOST_CHARS - 2;
        let middle = middle.min(width);
        let mut take_left = left.min((width - middle) / 2);
        let take_right = right.min(width - middle - take_left);
        take_left = left.min(width - middle - take_right);
        let mut text = String::new();
        if take_left < left || is_cut_left {
            text.push(CUT);
        }
        let marked = text.chars().count() + take_left;
        text.extend(before.chars().skip(left - take_left));
        text.extend(inner.chars().take(middle));
        text.extend(after.chars().take(take_right));
        if take_right < right || is_cut_right {
            text.push(CUT);
        }
        Self { text, highlight: (!is_empty).then_some(marked..marked + middle) }
    }

    /// Shows the beginning of a line.
    pub(super) fn plain(line: &[u8], secrets: &Secrets) -> String {
        let masked = secrets.mask_around(line, 0..0);
        let line = masked.as_ref().map_or(line, |(line, _)| line);
        let reach = line.len().min(MOST_CHARS * 4);
        let text = lossy(&line[..reach]);
        let is_cut = reach < line.len();
        match text.char_indices().nth(MOST_CHARS - usize::from(is_cut)) {
            None if !is_cut => text,
            None => text + &CUT.to_string(),
            Some(_) => text.chars().take(MOST_CHARS - 1).chain([CUT]).collect(),
        }
    }
}

/// `line` without its end: LF, or CR and LF.
pub(super) fn without_ending(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// The text of a piece of a line. It may begin or end in the middle of a character, but never where
/// that would be shown.
fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn around(line: &[u8], matched: Range<usize>) -> Snippet {
        Snippet::around(line, matched, &Secrets::default())
    }

    fn plain(line: &[u8]) -> String {
        Snippet::plain(line, &Secrets::default())
    }

    fn marked(snippet: &Snippet) -> String {
        let range = snippet.highlight.clone().unwrap();
        snippet.text.chars().skip(range.start).take(range.len()).collect()
    }

    #[test]
    fn a_short_line_is_shown_whole() {
        let snippet = around("größe = x".as_bytes(), 0..7);
        assert_eq!((snippet.text.as_str(), marked(&snippet).as_str()), ("größe = x", "größe"));
        let snippet = around(b"a\xff needle \xff", 3..9);
        assert_eq!(snippet.text, "a\u{fffd} needle \u{fffd}");
        assert_eq!(marked(&snippet), "needle");
        assert_eq!(around(b"abc", 3..3).highlight, None);
    }

    #[test]
    fn a_long_line_is_shown_around_its_match() {
        let line = "é".repeat(100_000) + "needle" + &"x".repeat(100_000);
        let snippet = around(line.as_bytes(), 200_000..200_006);
        assert_eq!(marked(&snippet), "needle");
        assert_eq!(snippet.text.chars().count(), MOST_CHARS);
        assert!(snippet.text.starts_with("…é") && snippet.text.ends_with("x…"));
        let start = around(line.as_bytes(), 0..2);
        assert!(start.text.starts_with("éé") && start.text.ends_with("é…"));
        let end = around(line.as_bytes(), line.len() - 1..line.len());
        assert!(end.text.starts_with("…x") && end.text.ends_with('x'));
        let all = around(line.as_bytes(), 0..line.len());
        assert!(all.text.chars().count() <= MOST_CHARS && all.text.ends_with('…'));
        assert_eq!(plain(line.as_bytes()).chars().count(), MOST_CHARS);
        assert_eq!(plain(b"abc"), "abc");
        assert_eq!(plain("é".repeat(500).as_bytes()), "é".repeat(500));
    }

    proptest! {
        #[test]
        fn no_snippet_is_too_long_and_its_mark_lies_in_it(
            parts in proptest::collection::vec(("[aé漢]{0,400}", any::<u8>()), 0..6),
            at in any::<proptest::sample::Index>(),
            length in 0usize..700,
        ) {
            let line: Vec<u8> =
                parts.iter().flat_map(|(text, byte)| text.bytes().chain([*byte])).collect();
            let start = at.index(line.len() + 1);
            let snippet = around(&line, start..start + length);
            let chars = snippet.text.chars().count();
            prop_assert!(chars <= MOST_CHARS);
            if let Some(mark) = snippet.highlight {
                prop_assert!(mark.start < mark.end && mark.end <= chars);
            }
            prop_assert!(plain(&line).chars().count() <= MOST_CHARS);
        }

        #[test]
        fn no_part_of_a_secret_is_shown_wherever_a_line_is_cut(
            left in 0usize..1100, right in 0usize..1100, at in 0usize..2200, length in 0usize..700,
        ) {
            let secrets = Secrets::new([("KEY", "hunter2!")]);
            let line = "é".repeat(left) + "hunter2!" + &"x".repeat(right);
            let snippet = Snippet::around(line.as_bytes(), at..at + length, &secrets);
            let context = Snippet::plain(line.as_bytes(), &secrets);
            prop_assert!(!snippet.text.contains(['h', 'u', 'n', 't', 'e', 'r', '2', '!']));
            prop_assert!(!context.contains(['h', 'u', 'n', 't', 'e', 'r', '2', '!']));
            prop_assert!(snippet.text.chars().count() <= MOST_CHARS);
            if let Some(mark) = snippet.highlight {
                prop_assert!(mark.start < mark.end && mark.end <= snippet.text.chars().count());
            }
        }
    }
}
