//! Texts cut where a character ends.

/// The longest beginning of `text` that has at most `most` bytes.
pub fn beginning(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_is_whole_or_left_out() {
        assert_eq!(beginning("abc", 5), "abc");
        assert_eq!(beginning("abc", 2), "ab");
        assert_eq!(beginning("aéd", 2), "a");
        assert_eq!(beginning("é", 1), "");
    }
}
