//! How blanks differ, in words.

/// How the blanks at the start or the end of a line differ; none where it is those between.
pub(super) fn difference(line: usize, file: &str, wanted: &str) -> Option<String> {
    let start = |text: &str| text[..text.len() - text.trim_start().len()].to_owned();
    let end = |text: &str| text[text.trim_end().len()..].to_owned();
    if start(file) != start(wanted) {
        let (file, wanted) = (counted(&start(file))?, counted(&start(wanted))?);
        Some(format!("line {line} begins with {file}, old_string's with {wanted}"))
    } else if end(file) != end(wanted) {
        let (file, wanted) = (counted(&end(file))?, counted(&end(wanted))?);
        Some(format!("line {line} ends with {file}, old_string's with {wanted}"))
    } else {
        None
    }
}

/// Blanks by their number; none where they are of more than one kind, or of a rare one.
fn counted(blanks: &str) -> Option<String> {
    let (name, count) = match blanks.chars().next() {
        None => return Some("no blank".to_owned()),
        Some(' ') => ("space", blanks.len()),
        Some('\t') => ("tab", blanks.len()),
        Some(_) => return None,
    };
    let first = blanks.chars().next();
    if blanks.chars().any(|blank| Some(blank) != first) {
        return None;
    }
    Some(format!("{count} {name}{}", if count == 1 { "" } else { "s" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_are_counted() {
        let said = |file: &str, wanted: &str| difference(7, file, wanted).unwrap_or_default();
        assert_eq!(said("\tx", "    x"), "line 7 begins with 1 tab, old_string's with 4 spaces");
        assert_eq!(said("x", "x   "), "line 7 ends with no blank, old_string's with 3 spaces");
        assert_eq!(said("a  b", "a b"), "");
        assert_eq!(said("\t x", "  x"), "");
    }
}
