//! What a glob pattern means: the directories that it spells out, and the rest to be matched there.

use tool_provider::ToolError;
use workspace_fs::text::name;

/// A pattern in its parts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    /// The directories that it spells out before its first wildcard: absolute, relative, or empty. The
    /// walk begins there, so the rest of the tree costs nothing.
    pub(super) directories: String,
    /// What is matched from there. It begins with a slash where it is about paths from there, and
    /// without one where it is about names in any directory.
    pub(super) glob: String,
    /// What of the matches is listed.
    pub(super) kinds: Kinds,
}

/// What of the matches is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kinds {
    /// Everything.
    All,
    /// Directories: the pattern ends in a slash.
    Directories,
}

/// The longest pattern in bytes, which is that of a path (`PATH_MAX`).
const MAX_PATTERN: usize = 4096;

impl Pattern {
    /// Understands a pattern, all but the syntax of its wildcards.
    ///
    /// # Errors
    /// `invalid_arguments` for what can match nothing, whatever there is.
    pub(super) fn parse(text: &str) -> Result<Self, ToolError> {
        check(text)?;
        let mut parts = parts(text);
        let mut kinds = Kinds::All;
        if parts.last() == Some(&"") {
            kinds = Kinds::Directories;
        }
        parts.retain(|part| !matches!(*part, "" | "."));
        if parts.last().is_none_or(|last| *last == "..") {
            // Nothing but a directory is named: it is listed.
            parts.push("*");
            kinds = Kinds::All;
        }
        let spelt = parts.iter().take_while(|part| is_spelt(part)).count();
        let (directories, rest) = parts.split_at(spelt.min(parts.len() - 1));
        if rest.contains(&"..") {
            return Err(ToolError::invalid_arguments(format!(
                "pattern {} has .. behind a wildcard, where it leads nowhere definite",
                name::shown(text)
            ))
            .with_hint("put .. before the first wildcard"));
        }
        let top = if text.starts_with('/') { "/" } else { "" };
        let is_about_names = !text.contains('/') && rest != ["*"];
        Ok(Self {
            directories: format!("{top}{}", directories.join("/")),
            glob: if is_about_names { in_any_directory(rest) } else { from_here(rest) },
            kinds,
        })
    }
}

fn check(text: &str) -> Result<(), ToolError> {
    let problem = if text.is_empty() {
        "is empty: * lists a directory, ** everything beneath it".to_owned()
    } else if text.contains('\0') {
        "holds a NUL byte, which no path does".to_owned()
    } else if text.len() >= MAX_PATTERN {
        format!("has {} bytes, and no path has {MAX_PATTERN}", text.len())
    } else {
        return Ok(());
    };
    Err(ToolError::invalid_arguments(format!("pattern {problem}")))
}

/// The parts between the slashes; those within braces and brackets part nothing.
fn parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut braces, mut in_class, mut is_escaped) = (0, 0_usize, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => {
                is_escaped = false;
                continue;
            }
            '\\' => is_escaped = true,
            '[' => in_class = true,
            ']' => in_class = false,
            '{' => braces += 1,
            '}' => braces = braces.saturating_sub(1),
            '/' if braces == 0 && !in_class => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Whether a part means one name, the one that is written there.
fn is_spelt(part: &str) -> bool {
    !part.contains(['*', '?', '[', '{', '\\'])
}

/// The two forms of a `.gitignore`, whose own marks (`!`, `#`, blanks at the end) mean nothing here.
fn from_here(parts: &[&str]) -> String {
    blank_kept(format!("/{}", parts.join("/")))
}

fn in_any_directory(parts: &[&str]) -> String {
    let glob = parts.concat();
    let escape = if glob.starts_with(['!', '#']) { "\\" } else { "" };
    blank_kept(format!("{escape}{glob}"))
}

fn blank_kept(mut glob: String) -> String {
    if let Some(blank) = glob.chars().next_back().filter(|last| last.is_whitespace()) {
        glob.truncate(glob.len() - blank.len_utf8());
        let backslashes = glob.len() - glob.trim_end_matches('\\').len();
        if backslashes % 2 == 1 {
            glob.pop();
        }
        glob.extend(['[', blank, ']']);
    }
    glob
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> (String, String, Kinds) {
        let Pattern { directories, glob, kinds } = Pattern::parse(text).unwrap();
        (directories, glob, kinds)
    }

    #[test]
    fn a_pattern_starts_at_the_directory_that_it_spells_out() {
        use Kinds::{All, Directories};
        for (text, directories, glob, kinds) in [
            ("*.rs", "", "*.rs", All),
            ("./*.rs", "", "/*.rs", All),
            ("*", "", "/*", All),
            ("**", "", "**", All),
            ("**/*.rs", "", "/**/*.rs", All),
            ("src/*.rs", "src", "/*.rs", All),
            ("src//./a/**/*.rs", "src/a", "/**/*.rs", All),
            ("src/main.rs", "src", "/main.rs", All),
            ("Cargo.toml", "", "Cargo.toml", All),
            ("-*", "", "-*", All),
            ("!a", "", "\\!a", All),
            ("#a", "", "\\#a", All),
            ("!a/*", "!a", "/*", All),
            ("a ", "", "a[ ]", All),
            ("b/a\\ ", "b", "/a[ ]", All),
            ("{src,tests}/*.rs", "", "/{src,tests}/*.rs", All),
            ("a/{b/c,d}/e", "a", "/{b/c,d}/e", All),
            ("a/[/]/e", "a", "/[/]/e", All),
            ("a\\*/b", "", "/a\\*/b", All),
            ("src/", "", "/src", Directories),
            ("a/*/", "a", "/*", Directories),
            ("**/", "", "/**", Directories),
            (".", "", "/*", All),
            ("./", "", "/*", All),
            ("..", "..", "/*", All),
            ("../", "..", "/*", All),
            ("../*", "..", "/*", All),
            ("a/../b/*", "a/../b", "/*", All),
            ("/", "/", "/*", All),
            ("/etc/host*", "/etc", "/host*", All),
            ("//etc", "/", "/etc", All),
        ] {
            let expected = (directories.to_owned(), glob.to_owned(), kinds);
            assert_eq!(parsed(text), expected, "{text}");
        }
    }

    #[test]
    fn what_can_match_nothing_is_reported() {
        for (text, reason) in [
            ("", "empty"),
            ("a\0", "NUL"),
            ("*/../a", "behind a wildcard"),
            ("a*/..", "behind a wildcard"),
            (&"a/".repeat(2100), "4200 bytes"),
        ] {
            let error = Pattern::parse(text).unwrap_err();
            assert!(error.message().contains(reason), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(text in "[a*./{}\\[\\]\\\\! ,]{0,12}") {
            if let Ok(pattern) = Pattern::parse(&text) {
                prop_assert!(pattern.glob.trim_end() == pattern.glob);
                prop_assert!(!pattern.glob.is_empty() && pattern.glob != "/");
                prop_assert!(is_spelt(&pattern.directories));
            }
        }
    }
}
