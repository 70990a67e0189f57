//! The echo of what was typed: a terminal shows it too, and a pattern must not match it.

/// `shown` without the lines that were typed, each where it is found first. Blanks do not count, as a
/// terminal breaks lines. Of a line that is not there yet the beginning at the end of `shown` is left out.
pub(crate) fn without_echo(shown: &str, typed: &str) -> String {
    let mut rest = Squeezed::of(shown);
    let mut kept = String::new();
    let mut from = 0;
    for line in typed.split(['\n', '\r']).map(squeezed).filter(|line| !line.is_empty()) {
        let Some(begin) = rest.text.find(&line) else {
            let partial = (1..line.len())
                .rev()
                .filter(|&length| line.is_char_boundary(length))
                .find(|&length| rest.text.ends_with(&line[..length]));
            let Some(length) = partial else { break };
            kept.push_str(&shown[from..rest.places[rest.text.len() - length]]);
            return kept;
        };
        let end = begin + line.len();
        kept.push_str(&shown[from..rest.places[begin]]);
        from = rest.places.get(end).copied().unwrap_or(shown.len());
        // What stands between lines belongs to what was printed.
        from = shown[..from].trim_end().len();
        rest = rest.behind(end);
    }
    kept.push_str(&shown[from..]);
    kept
}

fn squeezed(text: &str) -> String {
    text.chars().filter(|character| !character.is_whitespace()).collect()
}

/// Text without blanks, and where each byte of it stood.
struct Squeezed {
    text: String,
    places: Vec<usize>,
}

impl Squeezed {
    fn of(text: &str) -> Self {
        let mut squeezed = Self { text: String::new(), places: Vec::new() };
        for (at, character) in text.char_indices().filter(|(_, letter)| !letter.is_whitespace()) {
            squeezed.text.push(character);
            squeezed.places.extend((0..character.len_utf8()).map(|byte| at + byte));
        }
        squeezed
    }

    fn behind(&self, at: usize) -> Self {
        Self { text: self.text[at..].to_owned(), places: self.places[at..].to_vec() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_is_left_out_once_and_what_was_printed_stays() {
        for (shown, typed, expected) in [
            ("echo done\ndone\n$ ", "echo done", "\ndone\n$ "),
            ("$ echo done", "echo done\n", "$ "),
            ("$ echo do", "echo done\n", "$ "),
            ("a\nb\nA\nB\n", "a\nb\n", "\n\nA\nB\n"),
            ("echo lo\nng\nlong\n", "echo long", "\nlong\n"),
            ("secret prompt: ", "hunter2", "secret prompt: "),
            ("größe\ngröße", "größe", "\ngröße"),
            ("x", "", "x"),
        ] {
            assert_eq!(without_echo(shown, typed), expected, "{shown:?}");
        }
    }
}
