//! The known name that a misspelt one was probably meant to be.

/// The nearest of `known`, where one is near enough to be worth a guess.
pub(crate) fn nearest<'a>(
    wanted: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    // Names are short; a long one is no misspelling, and the distance is quadratic.
    if wanted.len() > 64 {
        return None;
    }
    known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(&wanted.to_lowercase(), name), name))
        .filter(|(likeness, _)| *likeness >= 0.75)
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .map(|(_, name)| name)
}

/// `did you mean "x"?`, or what there is to choose from where nothing is near.
pub(crate) fn suggestion<'a>(
    wanted: &str,
    known: impl IntoIterator<Item = &'a str> + Clone,
) -> String {
    match nearest(wanted, known.clone()) {
        Some(name) => format!("did you mean {name:?}?"),
        None => {
            let names: Vec<&str> = known.into_iter().collect();
            match names.as_slice() {
                [] => "there are none".to_owned(),
                names => format!("there are: {}", names.join(", ")),
            }
        }
    }
}

/// What other tools call the arguments that ours have, and models therefore write.
const SYNONYMS: [(&str, &[&str]); 10] = [
    ("path", &["file_path", "filepath", "file", "filename", "file_name", "target"]),
    ("command", &["cmd", "script", "code", "shell"]),
    ("content", &["contents", "text", "data", "body", "file_text"]),
    ("old_string", &["old", "old_str", "old_text", "search", "find"]),
    ("new_string", &["new", "new_str", "new_text", "replace", "replacement"]),
    ("cwd", &["dir", "directory", "folder", "workdir", "working_directory"]),
    ("timeout_ms", &["timeout", "timeout_seconds"]),
    ("stdin", &["input"]),
    ("offset", &["start", "start_line", "line", "from"]),
    ("limit", &["lines", "max_lines", "count"]),
];

/// Like [`suggestion`], for the name of an argument: a usual other name is known for what it means.
pub(crate) fn argument_suggestion<'a>(
    wanted: &str,
    known: impl IntoIterator<Item = &'a str> + Clone,
) -> String {
    let lower = wanted.to_lowercase();
    let meant = SYNONYMS.iter().find(|(_, others)| others.contains(&lower.as_str()));
    match meant {
        Some((name, _)) if known.clone().into_iter().any(|known| known == *name) => {
            format!("did you mean {name:?}?")
        }
        _ => suggestion(wanted, known),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guesses_only_what_is_near() {
        let known = ["roots", "read_only_roots", "sandbox", "network"];
        assert_eq!(nearest("root", known), Some("roots"));
        assert_eq!(nearest("readonly_roots", known), Some("read_only_roots"));
        assert_eq!(nearest("Sandbox", known), Some("sandbox"));
        assert_eq!(nearest("zzz", known), None);
        assert_eq!(nearest(&"roots".repeat(100), known), None);
    }
}
