//! Markdown.

/// A table. Its cells are Markdown.
pub(super) fn table(headers: &[&str], rows: &[Vec<String>]) -> String {
    let row = |cells: &mut dyn Iterator<Item = &str>| {
        format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
    };
    let mut text = row(&mut headers.iter().copied());
    text.push_str(&format!("|{}\n", "---|".repeat(headers.len())));
    for cells in rows {
        text.push_str(&row(&mut cells.iter().map(String::as_str)));
    }
    text
}

/// Plain text as Markdown for one cell or one sentence.
pub(super) fn prose(text: &str) -> String {
    let mut prose = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => prose.push(' '),
            '*' | '|' | '<' | '`' | '\\' | '[' | ']' => prose.extend(['\\', character]),
            _ => prose.push(character),
        }
    }
    prose
}

/// A name, a value or a piece of code; none of ours holds a backtick.
pub(super) fn code(text: &str) -> String {
    format!("`{}`", text.replace('|', "\\|"))
}

/// A block of text that is kept as it is.
pub(super) fn block(language: &str, text: &str) -> String {
    format!("```{language}\n{}\n```\n", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_text_holds_is_not_taken_for_markup() {
        assert_eq!(prose("src/**/*.rs <x> a|b\nc"), "src/\\*\\*/\\*.rs \\<x> a\\|b c");
        let rows = [vec![code("a|b"), prose("c")]];
        assert_eq!(table(&["x", "y"], &rows), "| x | y |\n|---|---|\n| `a\\|b` | c |\n");
    }
}
