//! What a glob pattern means: the directories that it spells out, and the rest to be matched there.

use std::borrow::Cow;

use tool_provider::ToolError;
use workspace_fs::text::name;

use crate::wildcards;

/// A pattern in its parts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    /// The directories that it spells out before its first wildcard: absolute, relative, or empty. The
    /// walk begins there, so the rest of the tree costs nothing.
    pub(super) directories: String,
    /// What is matched from there, at least one of several. One begins with a slash where it is about
    /// paths from there, and without one where it is about names in any directory.
    pub(super) globs: Vec<String>,
    /// What of the matches is listed.
    pub(super) kinds: Kinds,
    /// What of its beginning was taken for names although it holds wildcards.
    pub(super) named: Option<String>,
}

/// What of the matches is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kinds {
    /// Everything.
    All,
    Files,
    /// Also where the pattern ends in a slash.
    Directories,
    Links,
}

impl Kinds {
    /// What the argument `kind` asks for.
    pub(super) fn named(kind: &str) -> Self {
        match kind {
            "file" => Kinds::Files,
            "directory" => Kinds::Directories,
            "link" => Kinds::Links,
            _ => Kinds::All,
        }
    }
}

/// The longest pattern in bytes, which is that of a path (`PATH_MAX`).
const MAX_PATTERN: usize = 4096;

impl Pattern {
    /// Understands a pattern, all but the syntax of its wildcards. `exists` says whether there is
    /// something at a path that it spells out.
    ///
    /// # Errors
    /// `invalid_arguments` for what can match nothing, whatever there is.
    pub(super) fn parse(text: &str, exists: impl Fn(&str) -> bool) -> Result<Self, ToolError> {
        check(text)?;
        match wildcards::list(text) {
            None => Self::one(text, &exists),
            Some(list) => Self::any(&list, &exists),
        }
    }

    /// Several patterns from one start.
    fn any(list: &[Cow<'_, str>], exists: &impl Fn(&str) -> bool) -> Result<Self, ToolError> {
        let (mut globs, mut kinds, mut named) = (Vec::new(), Vec::new(), None);
        for text in list {
            let mut one = Self::one(text, exists)?;
            let directories = &one.directories;
            if directories.starts_with('/') || directories.split('/').any(|part| part == "..") {
                return Err(ToolError::invalid_arguments(format!(
                    "{} in a list of patterns leads out of the start",
                    name::shown(text)
                ))
                .with_hint("give it as the only pattern, or its directory as path"));
            }
            if let (false, [glob]) = (directories.is_empty(), one.globs.as_mut_slice()) {
                *glob = format!("/{}{glob}", wildcards::escaped(directories));
            }
            globs.append(&mut one.globs);
            kinds.push(one.kinds);
            named = named.or(one.named);
        }
        let are_directories = kinds.iter().all(|kind| *kind == Kinds::Directories);
        let kinds = if are_directories { Kinds::Directories } else { Kinds::All };
        Ok(Self { directories: String::new(), globs, kinds, named })
    }

    fn one(text: &str, exists: &impl Fn(&str) -> bool) -> Result<Self, ToolError> {
        let end = wildcards::named(text, exists).unwrap_or_default();
        let (named, rest) = text.split_at(end);
        let mut kinds = Kinds::All;
        if rest.ends_with('/') {
            kinds = Kinds::Directories;
        }
        let rest = if named.is_empty() { rest } else { rest.trim_start_matches('/') };
        let named_parts = named.split('/').map(|text| Part { text, is_named: true });
        let rest_parts =
            wildcards::split(rest, '/').into_iter().map(|text| Part { text, is_named: false });
        let mut parts: Vec<Part<'_>> = named_parts.chain(rest_parts).collect();
        parts.retain(|part| !matches!(part.text, "" | "."));
        if parts.last().is_none_or(|last| last.text == "..") {
            // Nothing but a directory is named: it is listed.
            parts.push(Part { text: "*", is_named: false });
            kinds = Kinds::All;
        }
        let spelt = parts.iter().take_while(|part| part.is_named || is_spelt(part.text)).count();
        let (directories, rest) = parts.split_at(spelt.min(parts.len() - 1));
        if rest.iter().any(|part| part.text == "..") {
            return Err(ToolError::invalid_arguments(format!(
                "pattern {} has .. behind a wildcard, where it leads nowhere definite",
                name::shown(text)
            ))
            .with_hint("put .. before the first wildcard"));
        }
        let top = if text.starts_with('/') { "/" } else { "" };
        let directories: Vec<&str> = directories.iter().map(|part| part.text).collect();
        let rest: Vec<Cow<'_, str>> = rest.iter().map(Part::glob).collect();
        let is_about_names = !text.contains('/') && rest != ["*"];
        let glob = if is_about_names { in_any_directory(&rest) } else { from_here(&rest) };
        Ok(Self {
            directories: format!("{top}{}", directories.join("/")),
            globs: vec![glob],
            kinds,
            named: (end > 0).then(|| named.to_owned()),
        })
    }
}

/// What stands between two slashes.
struct Part<'a> {
    text: &'a str,
    /// Whether it is a name, whatever is in it.
    is_named: bool,
}

impl<'a> Part<'a> {
    fn glob(&self) -> Cow<'a, str> {
        match self.is_named {
            true => Cow::Owned(wildcards::escaped(self.text)),
            false => Cow::Borrowed(self.text),
        }
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

/// Whether a part means one name, the one that is written there.
fn is_spelt(part: &str) -> bool {
    !part.contains(['*', '?', '[', '{', '\\'])
}

/// The two forms of a `.gitignore`, whose own marks (`!`, `#`, blanks at the end) mean nothing here.
fn from_here(parts: &[Cow<'_, str>]) -> String {
    blank_kept(format!("/{}", parts.join("/")))
}

fn in_any_directory(parts: &[Cow<'_, str>]) -> String {
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
        let Pattern { directories, globs, kinds, .. } = Pattern::parse(text, |_| false).unwrap();
        (directories, globs.concat(), kinds)
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
    fn names_that_look_like_patterns_are_names_where_they_exist() {
        let exists = |path: &str| ["app/[slug]", "x [1].txt", "/w/{a}/b [2]"].contains(&path);
        for (text, directories, glob) in [
            ("app/[slug]/*", "app/[slug]", "/*"),
            ("app/[slug]/[id].ts", "app/[slug]", "/[id].ts"),
            ("app/[slug]", "app", "/\\[slug\\]"),
            ("app/[slug]/", "app", "/\\[slug\\]"),
            ("x [1].txt", "", "x \\[1\\].txt"),
            ("x [2].txt", "", "x [2].txt"),
        ] {
            let pattern = Pattern::parse(text, exists).unwrap();
            assert_eq!((&*pattern.directories, &*pattern.globs.concat()), (directories, glob));
            assert_eq!(pattern.named.is_some(), !text.contains("[2]"), "{text}");
        }
    }

    #[test]
    fn a_list_is_matched_from_one_start() {
        let list = |text| Pattern::parse(text, |_| false);
        let pattern = list("**/*.ts,*.tsx, src/a/*.js").unwrap();
        assert_eq!(pattern.globs, ["/**/*.ts", "*.tsx", "/src/a/*.js"]);
        assert_eq!((&*pattern.directories, pattern.kinds), ("", Kinds::All));
        assert_eq!(list("*/,src/*/").unwrap().kinds, Kinds::Directories);
        assert!(list("*.ts,../*.ts").is_err() && list("/a/*,*.ts").is_err());
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
            let error = Pattern::parse(text, |_| false).unwrap_err();
            assert!(error.message().contains(reason), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(text in "[a*./{}\\[\\]\\\\! ,]{0,12}") {
            if let Ok(pattern) = Pattern::parse(&text, |_| false) {
                for glob in &pattern.globs {
                    prop_assert!(glob.trim_end() == glob);
                    prop_assert!(!glob.is_empty() && glob != "/");
                }
                prop_assert!(is_spelt(&pattern.directories));
            }
        }
    }
}
