//! Finds the known name that a misspelt one probably stands for.

/// The nearest of `known`, where one is near enough to be worth a guess.
pub fn nearest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
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
pub fn suggestion<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
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

/// What other tools, and the programs behind them, call the arguments that ours have, and models
/// therefore write: in lower case, without underscores. One word may mean several; the tool decides.
const SYNONYMS: [(&str, &[&str]); 20] = [
    ("path", &["filepath", "file", "filename", "target", "targetfile", "absolutepath", "uri"]),
    ("path", &["dir", "directory", "folder", "dirpath", "root", "cwd", "paths"]),
    ("cwd", &["dir", "directory", "folder", "workdir", "workingdirectory", "path"]),
    ("command", &["cmd", "script", "code", "shell"]),
    ("content", &["contents", "text", "data", "body", "filetext", "newcontent"]),
    ("old_string", &["old", "oldstr", "oldtext", "search", "find", "target"]),
    ("new_string", &["new", "newstr", "newtext", "replace", "replacement", "insert"]),
    ("replace_all", &["all", "global", "expectedreplacements", "allowmultiple", "count"]),
    ("edits", &["changes", "operations", "patches", "replacements"]),
    ("pattern", &["query", "regex", "regexp", "search", "searchterm", "glob", "globpattern"]),
    ("glob", &["include", "includes", "includepattern", "filepattern", "globs", "globpattern"]),
    ("mode", &["outputmode", "output"]),
    ("ignore_case", &["-i", "i", "caseinsensitive", "casesensitive", "insensitive"]),
    ("before", &["-b"]),
    ("after", &["-a"]),
    ("context", &["-c", "contextlines"]),
    ("timeout_ms", &["timeout", "timeoutseconds"]),
    ("stdin", &["input"]),
    ("offset", &["start", "startline", "line", "from", "skip"]),
    ("limit", &["lines", "maxlines", "count", "headlimit", "maxresults", "maxcount", "endline"]),
];

/// Like [`suggestion`], for the name of an argument: a usual other name is known for what it means.
pub fn argument_suggestion<'a>(
    wanted: &str,
    known: impl IntoIterator<Item = &'a str> + Clone,
) -> String {
    let lower = wanted.to_lowercase().replace('_', "");
    let meant = SYNONYMS.iter().find(|(name, others)| {
        others.contains(&lower.as_str()) && known.clone().into_iter().any(|known| known == *name)
    });
    match meant {
        Some((name, _)) => format!("did you mean {name:?}?"),
        None => suggestion(wanted, known),
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

    #[test]
    fn other_tools_names_are_known_for_what_they_mean_here() {
        let edit = ["path", "old_string", "new_string", "replace_all", "edits"];
        let grep = ["pattern", "path", "glob", "mode", "ignore_case", "include_ignored", "limit"];
        let bash = ["command", "cwd", "timeout_ms"];
        let meant = |wanted: &str, known: &[&'static str]| {
            argument_suggestion(wanted, known.iter().copied())
        };
        for (wanted, known, name) in [
            ("oldText", &edit[..], "old_string"),
            ("search", &edit, "old_string"),
            ("search", &grep, "pattern"),
            ("query", &grep, "pattern"),
            ("include", &grep, "glob"),
            ("output_mode", &grep, "mode"),
            ("-i", &grep, "ignore_case"),
            ("head_limit", &grep, "limit"),
            ("directory", &grep, "path"),
            ("directory", &bash, "cwd"),
            ("file_path", &edit, "path"),
            ("expected_replacements", &edit, "replace_all"),
        ] {
            assert_eq!(meant(wanted, known), format!("did you mean {name:?}?"), "{wanted}");
        }
        assert_eq!(meant("zzz", &bash), "there are: command, cwd, timeout_ms");
    }
}
