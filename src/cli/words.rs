//! A command for bash or shell_read that is written as words: `call bash ls -la`.
//!
//! The command has options of its own, which the parser of the line cannot tell from this program's. So
//! its words become one argument before the line is parsed.

use std::borrow::Cow;
use std::ffi::OsString;

use clap::Command;

use super::tool_args::is_json;

/// The tools whose argument is a command.
pub(super) const TOOLS: [&str; 2] = ["bash", "shell_read"];

/// How the words are told apart from this program's options, for the help.
pub(super) const RULE: &str = "Words are run as they are given: in call bash ls -la everything from \
     ls on is the command's. Options of this page stand before the first word; they may stand behind \
     it where nothing else does, as in call bash 'ls | wc' --json. Behind -- all words are the \
     command's";

/// The line with the words of its command as one argument behind `--`; any other line as it is.
pub(super) fn joined(arguments: Vec<OsString>) -> Vec<OsString> {
    match split(&arguments) {
        Some((ours, words)) => {
            let words: Vec<Cow<'_, str>> = words.iter().map(|word| quoted(word)).collect();
            let command = OsString::from(words.join(" "));
            let ours = arguments.into_iter().take(ours);
            ours.chain(["--".into(), command]).collect()
        }
        None => arguments,
    }
}

/// How many of the arguments come before the words, and the words, where there are several.
fn split(arguments: &[OsString]) -> Option<(usize, Vec<&str>)> {
    let texts: Vec<&str> =
        arguments.iter().map(|argument| argument.to_str()).collect::<Option<_>>()?;
    if !TOOLS.iter().any(|tool| texts.contains(tool)) {
        return None;
    }
    let mut root = super::command();
    root.build();
    let mut level = &root;
    let mut at = behind_options(level, &texts, 1);
    while !TOOLS.contains(&level.get_name()) {
        level = level.find_subcommand(texts.get(at)?)?;
        at = behind_options(level, &texts, at + 1);
    }
    let first = *texts.get(at)?;
    let words = if first == "--" {
        &texts[at + 1..]
    } else {
        let is_whole = is_json(first) || first.contains(char::is_whitespace);
        let is_option = first.starts_with('-');
        if is_whole || is_option || behind_options(level, &texts, at + 1) == texts.len() {
            return None;
        }
        &texts[at..]
    };
    (words.len() > 1).then(|| (at, words.to_vec()))
}

/// The first argument from `at` on that is neither an option of this level nor its value.
fn behind_options(level: &Command, texts: &[&str], mut at: usize) -> usize {
    while let Some(length) = texts.get(at).and_then(|text| length_of_option(level, text)) {
        at += length;
    }
    at.min(texts.len())
}

/// How many arguments an option takes, itself counted. None for what is no option of this level.
fn length_of_option(level: &Command, text: &str) -> Option<usize> {
    if let Some(long) = text.strip_prefix("--") {
        let (name, value) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (long, None),
        };
        let option = level.get_arguments().find(|arg| {
            let aliases = arg.get_all_aliases().unwrap_or_default();
            !name.is_empty() && (arg.get_long() == Some(name) || aliases.contains(&name))
        })?;
        let has_value_behind = value.is_none() && option.get_action().takes_values();
        return Some(1 + usize::from(has_value_behind));
    }
    let flags = text.strip_prefix('-').filter(|flags| !flags.is_empty())?;
    let is_flag = |flag: char| {
        level
            .get_arguments()
            .any(|arg| arg.get_short() == Some(flag) && !arg.get_action().takes_values())
    };
    flags.chars().all(is_flag).then_some(1)
}

/// The word as a shell reads it back. An @ would mean a file at the start of an argument.
fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "%+,-./:=_".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        Cow::Borrowed(word)
    } else {
        Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &[&str]) -> Vec<String> {
        let words = ["provider-workspace"].iter().chain(words).map(OsString::from).collect();
        joined(words).into_iter().skip(1).map(|word| word.into_string().unwrap()).collect()
    }

    #[test]
    fn words_of_a_command_become_one_argument() {
        let cases: [(&[&str], &[&str]); 10] = [
            (&["call", "bash", "ls", "-la"], &["call", "bash", "--", "ls -la"]),
            (
                &["call", "--json", "--root", "bash", "bash", "--stdin", "x", "cat", "-v", "-"],
                &["call", "--json", "--root", "bash", "bash", "--stdin", "x", "--", "cat -v -"],
            ),
            (
                &["--color", "never", "preview", "bash", "grep", "-v", "a b", "it's", ""],
                &["--color", "never", "preview", "bash", "--", r"grep -v 'a b' 'it'\''s' ''"],
            ),
            (&["apply", "bash", "-y", "rm", "-y", "x"], &["apply", "bash", "-y", "--", "rm -y x"]),
            (&["call", "bash", "ls", "--json", "-l"], &["call", "bash", "--", "ls --json -l"]),
            (&["call", "bash", "ls", "--", "-l"], &["call", "bash", "--", "ls -- -l"]),
            (&["call", "bash", "--", "ls", "--json"], &["call", "bash", "--", "ls --json"]),
            (&["call", "bash", "--", "@a", "{"], &["call", "bash", "--", "'@a' '{'"]),
            (&["call", "shell_read", "ls", "-la"], &["call", "shell_read", "--", "ls -la"]),
            (&["call", "bash", "FOO=1", "env"], &["call", "bash", "--", "FOO=1 env"]),
        ];
        for (given, expected) in cases {
            assert_eq!(line(given), expected, "{given:?}");
        }
    }

    #[test]
    fn any_other_line_stays_as_it_is() {
        let lines: [&[&str]; 12] = [
            &["call", "bash", "ls", "--root", "d", "--json", "-v", "--timeout_ms=5"],
            &["call", "bash", "ls -l", "--roots", "d"],
            &["call", "bash", "ls -l", "extra"],
            &["call", "bash", "@call.json", "extra"],
            &["call", "bash", "-", "--stdin"],
            &["call", "bash", "--", "ls | wc"],
            &["call", "bash", "--unknown", "ls", "-l"],
            &["call", "bash"],
            &["call", "bash", "ls", "--root"],
            &["completions", "bash", "x"],
            &["call", "grep", "bash", "-x"],
            &["bash", "ls", "-l"],
        ];
        for given in lines {
            assert_eq!(line(given), given, "{given:?}");
        }
    }
}
