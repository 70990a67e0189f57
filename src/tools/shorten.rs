//! Long texts, cut where a character ends.

use std::borrow::Cow;

use workspace_fs::text::cut::beginning;

/// The text, or its first `most` bytes and an ellipsis where it is longer.
pub(crate) fn shorten(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{}…", beginning(text, most)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_is_never_cut() {
        assert_eq!(shorten("abc", 3), "abc");
        assert_eq!(shorten("abcd", 3), "abc…");
        assert_eq!(shorten("aéd", 2), "a…");
        assert_eq!(shorten("é", 1), "…");
    }
}
