//! How what is found below a search's start is named.

use std::borrow::Cow;

use workspace_fs::text::name;

/// The start of a search, as the paths below it begin: as the caller wrote it, so that they can be
/// given to other tools as they are.
#[derive(Debug)]
pub(super) struct Prefix(Vec<u8>);

impl Prefix {
    /// The paths below what a caller called `path`.
    pub(super) fn of(path: &str) -> Self {
        let path = name::decode(path);
        let mut rest = &*path;
        while let Some(behind) = rest.strip_prefix(b"./") {
            let slashes = behind.iter().take_while(|byte| **byte == b'/').count();
            rest = &behind[slashes..];
        }
        let end = rest.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
        Self(match (&rest[..end], rest.first()) {
            (b"", Some(_)) => b"/".to_vec(),
            (b"" | b".", _) => Vec::new(),
            (named, _) => [named, b"/"].concat(),
        })
    }

    /// The path of what lies at `path` below the start; that of the start itself where it is empty.
    pub(super) fn join(&self, path: &[u8]) -> String {
        if path.is_empty() {
            return owned(name::encode(self.0.strip_suffix(b"/").unwrap_or(&self.0)));
        }
        owned(name::encode(&[&self.0, path].concat()))
    }
}

fn owned(text: Cow<'_, str>) -> String {
    text.into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_begin_as_the_caller_wrote_them() {
        for (start, path, expected) in [
            (".", "a/b", "a/b"),
            ("./", "a", "a"),
            (".//./src", "a", "src/a"),
            ("src/", "a", "src/a"),
            ("src//", "a", "src/a"),
            ("/w", "a", "/w/a"),
            ("/", "a", "/a"),
            ("//", "a", "/a"),
            ("..", "a", "../a"),
            (".hidden", "a", ".hidden/a"),
            ("src/a.rs", "", "src/a.rs"),
            ("./a.rs", "", "a.rs"),
            (".", "\"a", "\"\\\"a\""),
            ("src", "\"a", "src/\"a"),
            ("\"a\\377\"", "b", "\"a\\377/b\""),
            ("\"src\"", "b", "src/b"),
        ] {
            assert_eq!(Prefix::of(start).join(path.as_bytes()), expected);
        }
    }
}
