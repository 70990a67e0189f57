//! Names for new files that are most likely no names: what a shell, an editor or a model's own text
//! would have made something else of.

use std::ffi::OsString;
use std::path::{Component, Path};

use tool_provider::ToolError;
use workspace_fs::text::name;

/// Refuses to make `path`, of which the directories `missing` are not there, if its text is most likely
/// not meant as the name that it would make. Names in double quotes, as results show them, are meant.
///
/// # Errors
/// `invalid_arguments` with the reason and what to write instead.
pub(super) fn check(path: &str, missing: &[OsString]) -> Result<(), ToolError> {
    if path.starts_with('"') {
        return Ok(());
    }
    let Some((why, instead)) = as_a_whole(path).or_else(|| {
        let first = Path::new(path).components().next()?;
        is_missing(path, first, missing).then(|| beginning(path)).flatten()
    }) else {
        return Ok(());
    };
    let message = format!("{} is no path here: {why}; nothing was written", name::shown(path));
    Err(ToolError::invalid_arguments(message).with_detail("path", path).with_hint(instead))
}

type Reason = (&'static str, &'static str);

/// What is wrong with the text itself, whatever is there: nothing has this name yet.
fn as_a_whole(path: &str) -> Option<Reason> {
    let is_wrapped = |mark: char| path.len() > 2 && path.starts_with(mark) && path.ends_with(mark);
    if path.ends_with(['\n', '\r']) {
        Some(("it ends in a line break", "leave the line break out"))
    } else if path.trim() != path {
        Some((
            "it begins or ends with a blank",
            "leave the blanks out, or put the name in double quotes",
        ))
    } else if is_wrapped('`') || is_wrapped('\'') {
        Some(("it stands in quotes", "write it without them"))
    } else {
        None
    }
}

/// What is wrong with how the text begins, where nothing of that name is there.
fn beginning(path: &str) -> Option<Reason> {
    let bytes = path.as_bytes();
    let scheme = path.split_once(":/").map(|(scheme, _)| scheme);
    if path.starts_with('~') {
        Some(("~ is not expanded", "write the path out, from / or from the working directory"))
    } else if bytes.len() > 2 && bytes[0].is_ascii_alphabetic() && bytes[1..].starts_with(b":\\") {
        Some((
            "it is a path of Windows",
            "write a path with slashes, from / or from the working directory",
        ))
    } else if scheme.is_some_and(is_a_scheme) {
        Some(("it is a URL", "write the path alone, without scheme and host"))
    } else if is_a_variable(path) {
        Some(("variables are not expanded", "write the value out"))
    } else {
        None
    }
}

fn is_a_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

/// `$NAME`, `${NAME}` or `%NAME%` as the first name of a path.
fn is_a_variable(path: &str) -> bool {
    let first = path.split('/').next().unwrap_or(path);
    let is_name = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let windows = path.strip_prefix('%').and_then(|rest| rest.split_once('%'));
    windows.is_some_and(|(name, _)| is_name(name))
        || first.strip_prefix('$').is_some_and(|rest| {
            is_name(rest.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(rest))
        })
}

/// Whether the first name of a relative path is among what would have to be made.
fn is_missing(path: &str, first: Component<'_>, missing: &[OsString]) -> bool {
    let Component::Normal(first) = first else { return false };
    match missing.first() {
        Some(outermost) => outermost == first,
        None => Path::new(path).components().count() == 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(path: &str, missing: &[&str]) -> Option<String> {
        let missing: Vec<OsString> = missing.iter().map(Into::into).collect();
        check(path, &missing).err().map(|error| error.message().to_owned())
    }

    #[test]
    fn what_is_most_likely_no_name_is_refused_with_the_reason() {
        for (path, missing, reason) in [
            ("~/notes.md", &["~"][..], "not expanded"),
            ("~root/x", &["~root"], "not expanded"),
            ("~", &[], "not expanded"),
            ("file:///w/a.txt", &["file:"], "URL"),
            ("vscode://file/a", &["vscode:", "file"], "URL"),
            ("$HOME/x", &["$HOME"], "variables"),
            ("${HOME}/x", &["${HOME}"], "variables"),
            ("%USERPROFILE%/x", &["%USERPROFILE%"], "variables"),
            ("`a.txt`", &[], "quotes"),
            ("a.txt\n", &[], "line break"),
            (" a.txt", &[], "blank"),
            ("src/a.txt ", &[], "blank"),
            ("C:\\Users\\x", &[], "Windows"),
        ] {
            let message = refusal(path, missing).unwrap_or_else(|| panic!("{path:?} passes"));
            assert!(message.contains(reason), "{path:?}: {message}");
        }
    }

    #[test]
    fn names_that_are_only_unusual_and_directories_that_are_there_pass() {
        for (path, missing) in [
            ("@src/q.md", &["@src"][..]),
            ("a b/c d.txt", &["a b"]),
            ("~/notes.md", &[]),
            ("~/new/notes.md", &["new"]),
            ("$fixtures.json", &[]),
            ("src/$id.tsx", &[]),
            ("backup~", &[]),
            ("/w/~x/a", &["~x"]),
            ("\" a.txt\"", &[]),
            ("c:d", &[]),
            ("100%/x", &["100%"]),
        ] {
            assert_eq!(refusal(path, missing), None, "{path:?}");
        }
    }
}
