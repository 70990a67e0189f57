//! Characters that a reader takes for nothing, or for others: what a person who approves a text has to
//! be told.

use std::collections::BTreeMap;

use super::hidden::hidden_in;

/// Characters of a kind that a sentence names; the others are counted.
const MOST_NAMED: usize = 5;

/// What is to be said of these lines, each with its number: a sentence about characters that cannot be
/// seen, and one about those that look like others.
///
/// A character looks like another if it is a blank but no space, a letter or digit in the form of
/// ASCII's, or a Greek, Cyrillic or Armenian letter in a word that has ASCII letters too.
#[must_use]
pub fn warnings<'a>(lines: impl IntoIterator<Item = (usize, &'a str)>) -> Vec<String> {
    let (mut hidden, mut alike) = (Found::default(), Found::default());
    for (number, line) in lines {
        // The CR of a CR LF is no part of what a reader sees.
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.is_ascii() && !line.contains(|c: char| c.is_ascii_control() && c != '\t') {
            continue;
        }
        hidden_in(line).for_each(|c| hidden.add(c, number));
        look_alikes(line).for_each(|c| alike.add(c, number));
    }
    let seen = "The new text has characters that cannot be seen, or change how others are seen";
    let alike = alike.sentence("The new text has characters that look like others");
    [hidden.sentence(seen), alike].into_iter().flatten().collect()
}

/// What is to be said of a command whose hidden characters are shown: that some look like others.
#[must_use]
pub fn look_alike_warning<'a>(lines: impl IntoIterator<Item = (usize, &'a str)>) -> Option<String> {
    let mut alike = Found::default();
    for (number, line) in lines {
        look_alikes(line).for_each(|c| alike.add(c, number));
    }
    alike.sentence("The command has characters that look like others")
}

/// Each character with the first line that has it.
#[derive(Default)]
struct Found(BTreeMap<char, usize>);

impl Found {
    fn add(&mut self, c: char, line: usize) {
        self.0.entry(c).or_insert(line);
    }

    fn sentence(&self, what: &str) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        let mut named: Vec<_> = self.0.iter().collect();
        named.sort_by_key(|(_, line)| **line);
        let more = named.len().saturating_sub(MOST_NAMED);
        let named: Vec<String> = named
            .into_iter()
            .take(MOST_NAMED)
            .map(|(c, line)| format!("U+{:04X} (line {line})", u32::from(*c)))
            .collect();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        Some(format!("{what}: {}{more}.", named.join(", ")))
    }
}

/// The characters of a line that look like others.
fn look_alikes(line: &str) -> impl Iterator<Item = char> {
    let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
    let mixed = words
        .filter(|word| word.contains(|c: char| c.is_ascii_alphabetic()))
        .flat_map(|word| word.chars().filter(|c| is_of_a_like_script(*c)));
    line.chars().filter(|c| is_blank(*c) || is_a_form_of_ascii(*c)).chain(mixed)
}

fn is_blank(c: char) -> bool {
    matches!(
        c,
        '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}'
    )
}

/// Mathematical and full-width letters, digits and signs.
fn is_a_form_of_ascii(c: char) -> bool {
    matches!(c, '\u{ff01}'..='\u{ff5e}' | '\u{1d400}'..='\u{1d7ff}')
}

/// Scripts whose letters are drawn as Latin ones are.
fn is_of_a_like_script(c: char) -> bool {
    matches!(c, '\u{370}'..='\u{52f}' | '\u{531}'..='\u{587}' | '\u{1f00}'..='\u{1fff}')
        && c.is_alphabetic()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<String> {
        warnings(text.lines().enumerate().map(|(index, line)| (index + 1, line)))
    }

    #[test]
    fn what_cannot_be_seen_and_what_looks_like_something_else_is_named_with_its_line() {
        let said = of("plain\nif admin\u{202e}\u{200b}\np\u{430}ypal.com\na\u{a0}b\n\u{ff52}m\n");
        let [hidden, alike] = said.as_slice() else { panic!("{said:?}") };
        assert!(hidden.contains("U+200B (line 2), U+202E (line 2)"), "{hidden}");
        assert!(alike.contains("U+0430 (line 3), U+00A0 (line 4), U+FF52 (line 5)"), "{alike}");
    }

    #[test]
    fn text_in_other_scripts_and_emoji_is_nothing_to_speak_of() {
        for text in
            ["größe\tnaïve", "привет, мир", "λ x → α", "漢字 かな", "I ❤\u{fe0f} it 👩\u{200d}💻"]
        {
            assert_eq!(of(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn a_long_list_is_cut() {
        let many: String = ('\u{200b}'..='\u{200f}').chain('\u{202a}'..='\u{202e}').collect();
        assert!(of(&many)[0].ends_with("and 5 more."), "{:?}", of(&many));
    }
}
