//! How a file below the start is named.

/// The start of a search, as its paths begin.
#[derive(Debug)]
pub(super) struct Prefix(String);

impl Prefix {
    /// The paths below what a caller called `path`: as the caller wrote it, with what follows behind
    /// it. So they can be given to other tools as they are.
    pub(super) fn of(path: &str) -> Self {
        let mut path = path;
        while let Some(rest) = path.strip_prefix("./") {
            path = rest.trim_start_matches('/');
        }
        let trimmed = path.trim_end_matches('/');
        Self(match (trimmed, path) {
            ("", "") | (".", _) => String::new(),
            ("", _) => "/".to_owned(),
            _ => format!("{trimmed}/"),
        })
    }

    /// The path to show of what lies at `path` below the start; nothing where it is the start.
    pub(super) fn join(&self, path: &[u8]) -> String {
        if path.is_empty() {
            return shown(self.0.strip_suffix('/').unwrap_or(&self.0).as_bytes());
        }
        shown(&[self.0.as_bytes(), path].concat())
    }
}

/// A path as text that names it and no other: as it is, or, where it is not UTF-8 or holds control
/// characters, in double quotes with escapes as git writes them.
fn shown(path: &[u8]) -> String {
    match std::str::from_utf8(path) {
        Ok(text) if !text.starts_with('"') && !text.contains(char::is_control) => text.to_owned(),
        _ => quoted(path),
    }
}

fn quoted(path: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::from("\"");
    for piece in path.utf8_chunks() {
        for c in piece.valid().chars() {
            // Writing to a string cannot fail.
            let _ = match c {
                '"' | '\\' => write!(text, "\\{c}"),
                '\n' => write!(text, "\\n"),
                '\t' => write!(text, "\\t"),
                '\r' => write!(text, "\\r"),
                c if c.is_control() => {
                    let mut bytes = [0; 4];
                    let bytes = c.encode_utf8(&mut bytes).bytes();
                    bytes.into_iter().try_for_each(|byte| write!(text, "\\{byte:03o}"))
                }
                c => write!(text, "{c}"),
            };
        }
        for byte in piece.invalid() {
            let _ = write!(text, "\\{byte:03o}");
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_begin_as_the_caller_wrote_them() {
        for (start, path, expected) in [
            (".", "a/b", "a/b"),
            ("./", "a", "a"),
            ("./src", "a", "src/a"),
            ("src/", "a", "src/a"),
            ("/w", "a", "/w/a"),
            ("/", "a", "/a"),
            ("..", "a", "../a"),
            ("src/a.rs", "", "src/a.rs"),
            ("./a.rs", "", "a.rs"),
        ] {
            assert_eq!(Prefix::of(start).join(path.as_bytes()), expected);
        }
    }

    #[test]
    fn unusual_names_are_told_apart() {
        let here = Prefix::of(".");
        assert_eq!(here.join(b"a\nb"), r#""a\nb""#);
        assert_eq!(here.join(b"\xff\"x\\"), r#""\377\"x\\""#);
        assert_eq!(here.join("größe \\ x".as_bytes()), "größe \\ x");
        assert_eq!(here.join(b"\"x\""), r#""\"x\"""#);
    }
}
