//! What a change does to a file whose format has one strict grammar: it is made all the same, but whoever
//! makes it should know that nothing can read the file any more.

use std::borrow::Cow;
use std::path::Path;

use serde_core::de::IgnoredAny;
use toml::de::DeTable;
use workspace_fs::text::name;

#[derive(Clone, Copy)]
enum Format {
    Json,
    Toml,
}

/// What is to be said of a file at `path` that gets `new` for `old`, if there was something: that it can
/// no longer be read, or, of a new one, that it cannot be read. Both are all of the file in UTF-8, the new
/// one in pieces.
pub(crate) fn notice(path: &str, old: Option<&[u8]>, new: &[&[u8]]) -> Option<String> {
    let bytes = name::decode(path);
    let path = Path::new(std::str::from_utf8(&bytes).ok()?);
    let format = Format::of(path)?;
    if new.iter().map(|piece| piece.len()).sum::<usize>() > format.most() {
        return None;
    }
    let fault = format.fault(&joined(new))?;
    let name = format.name();
    match old {
        Some(old) if format.fault(old).is_some() => None,
        Some(_) => Some(format!("The file is no longer valid {name}: {}.", fault.reason)),
        None if fault.is_comment || takes_more_than_json(path) => None,
        None => Some(format!("This is not valid {name}: {}.", fault.reason)),
    }
}

/// Whether those who read this file take comments and commas that JSON does not have.
fn takes_more_than_json(path: &Path) -> bool {
    let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_config =
        ["tsconfig", "jsconfig", "devcontainer"].iter().any(|name| file.starts_with(name));
    is_config || path.components().any(|part| part.as_os_str() == ".vscode")
}

/// Why a text cannot be read.
struct Fault {
    /// With the line.
    reason: String,
    /// Whether a comment is what stands in the way.
    is_comment: bool,
}

impl Format {
    fn of(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?;
        match extension {
            _ if extension.eq_ignore_ascii_case("json") => Some(Format::Json),
            _ if extension.eq_ignore_ascii_case("toml") => Some(Format::Toml),
            _ => None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Format::Json => "JSON",
            Format::Toml => "TOML",
        }
    }

    /// Longer texts are not looked at: the values of TOML are held in memory.
    const fn most(self) -> usize {
        match self {
            Format::Json => 16 << 20,
            Format::Toml => 4 << 20,
        }
    }

    /// None where it can be read, and where nobody looks.
    fn fault(self, text: &[u8]) -> Option<Fault> {
        let text = std::str::from_utf8(text).ok()?;
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        match self {
            Format::Json => {
                let error = serde_json::from_str::<IgnoredAny>(text).err()?;
                let line = text.lines().nth(error.line().saturating_sub(1)).unwrap_or_default();
                let at = line.as_bytes().get(error.column().saturating_sub(1));
                Some(Fault { reason: error.to_string(), is_comment: at == Some(&b'/') })
            }
            Format::Toml => {
                let error = DeTable::parse(text).err()?;
                let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or(text);
                let line = before.matches('\n').count() + 1;
                let reason = format!("{} at line {line}", error.message());
                Some(Fault { reason, is_comment: false })
            }
        }
    }
}

/// A file's content in one piece.
fn joined<'a>(pieces: &[&'a [u8]]) -> Cow<'a, [u8]> {
    match pieces {
        [only] => Cow::Borrowed(only),
        _ => Cow::Owned(pieces.concat()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(path: &str, old: Option<&str>, new: &str) -> String {
        notice(path, old.map(str::as_bytes), &[new.as_bytes()]).unwrap_or_default()
    }

    #[test]
    fn a_file_that_can_no_longer_be_read_is_reported_with_its_line() {
        assert_eq!(
            said("a/b.json", Some("{}"), "{\n \"a\": 1\n \"b\": 2\n}"),
            "The file is no longer valid JSON: expected `,` or `}` at line 3 column 2."
        );
        assert_eq!(
            said("Cargo.toml", Some(""), "[a]\nb = 1\nb = 2\n"),
            "The file is no longer valid TOML: duplicate key at line 3."
        );
        assert!(said("Cargo.TOML", Some(""), "[a\n").contains("unclosed table"));
        assert_eq!(
            said("new.json", None, "{\"a\": 1,}"),
            "This is not valid JSON: key must be a string at line 1 column 9."
        );
    }

    #[test]
    fn what_was_never_valid_or_is_read_otherwise_is_nothing_to_speak_of() {
        for (path, old, new) in [
            ("a.json", Some("{"), "{{"),
            ("a.json", Some("{}"), "{\"a\": [1, 2.5e3, null, \"\\u00e9\"]}\n"),
            ("a.json", None, "\u{FEFF}[]"),
            ("a.json", None, "{\n  // why\n  \"a\": 1\n}"),
            ("tsconfig.base.json", None, "{\"a\": 1,}"),
            ("x/.vscode/settings.json", None, "{\"a\": 1,}"),
            ("a.jsonc", Some("{}"), "{"),
            ("a.json5", Some("{}"), "{"),
            ("json", Some("{}"), "{"),
            ("a.toml", Some(""), "a = 1\n[b]\nc = [1, 2]\n"),
        ] {
            assert_eq!(said(path, old, new), "", "{path} {new}");
        }
        // But what was valid and is not is, whoever reads it.
        assert!(said("tsconfig.json", Some("{}"), "{").contains("no longer"));
    }
}
