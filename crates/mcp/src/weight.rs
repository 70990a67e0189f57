//! How many values a line holds, found without holding one.
//!
//! A value of two bytes becomes one of a hundred in memory, and a message is taken apart in several
//! steps. So a line of many values would make this process hold a multiple of what was sent.

/// Values that one message may hold. The arguments of a call hold a few; what is large is a text.
pub(crate) const MOST_VALUES: usize = 1 << 16;

/// Whether a line may hold more values than are taken. Of what is no JSON the answer does not matter.
pub(crate) fn is_too_heavy(line: &[u8]) -> bool {
    // Each value but the first has a comma, a colon or a bracket before it.
    if line.len() <= MOST_VALUES {
        return false;
    }
    let mut values = 0;
    let mut rest = line;
    while let Some(at) =
        rest.iter().position(|byte| matches!(byte, b',' | b':' | b'[' | b'{' | b'"'))
    {
        values += 1;
        if values > MOST_VALUES {
            return true;
        }
        let is_text = rest[at] == b'"';
        rest = &rest[at + 1..];
        if is_text {
            rest = behind_text(rest);
        }
    }
    false
}

/// What follows the text that has begun.
fn behind_text(mut rest: &[u8]) -> &[u8] {
    while let Some(at) = memchr::memchr2(b'"', b'\\', rest) {
        if rest[at] == b'"' {
            return &rest[at + 1..];
        }
        rest = rest.get(at + 2..).unwrap_or_default();
    }
    &[]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_values_are_too_heavy_and_a_long_text_is_not() {
        let list = format!("[0{}]", ",0".repeat(MOST_VALUES));
        assert!(is_too_heavy(list.as_bytes()));
        let object = format!("{{\"a\":0{}}}", ",\"a\":0".repeat(MOST_VALUES));
        assert!(is_too_heavy(object.as_bytes()));
        let nested = "[".repeat(2 * MOST_VALUES);
        assert!(is_too_heavy(nested.as_bytes()));
        let text = format!("{{\"a\":\"{}\"}}", r#",:[{\\\" "#.repeat(MOST_VALUES));
        assert!(!is_too_heavy(text.as_bytes()));
        let behind = format!("[\"\\\\\"{}]", ",0".repeat(MOST_VALUES));
        assert!(is_too_heavy(behind.as_bytes()));
    }
}
