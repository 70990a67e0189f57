//! Long texts, cut where a character ends.

use std::borrow::Cow;

use crate::Secrets;

/// The text, or its first `most` bytes and an ellipsis where it is longer.
pub fn shorten(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{}…", beginning(text, most)))
}

/// The longest beginning of at most `most` bytes that cuts no character.
#[must_use]
pub fn beginning(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|&at| text.is_char_boundary(at));
    &text[..end.unwrap_or_default()]
}

/// [`shorten`] for a text that may hold a secret. The provider masks all that leaves it, so a tool
/// masks nothing but what it cuts: half a secret is not recognised any more.
pub fn shorten_masked(text: &str, most: usize, secrets: &Secrets) -> String {
    shorten(&secrets.mask_text(text), most).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_half_of_a_secret_is_left() {
        let secrets = Secrets::new([("KEY", "hunter2!")]);
        assert_eq!(shorten_masked("a hunter2!", 8, &secrets), "a [KEY]");
        assert_eq!(shorten_masked("a hunter2! b", 8, &secrets), "a [KEY] …");
    }

    #[test]
    fn a_character_is_never_cut() {
        assert_eq!(shorten("abc", 3), "abc");
        assert_eq!(shorten("abcd", 3), "abc…");
        assert_eq!(shorten("aéd", 2), "a…");
        assert_eq!(shorten("é", 1), "…");
    }
}
