//! `write_file`: creates a file, or replaces all of one.
//!
//! The content is written byte for byte, as UTF-8, whatever the file was before: a caller who hands
//! over a whole file says what it shall hold, and a provider that turned it into another encoding,
//! or put back a mark or line endings that the caller left out, could not be used to change them.
//! What a file loses that way is told in the notice; `edit_file` is the tool that keeps it.

mod spec;

use serde_json::Value;

use crate::text::diff::{self, Diff, Side};
use crate::text::encoding::{Detected, Encoding, detect};
use crate::text::patch::Patch;
use crate::text::units::{Ending, Unit};
use crate::workspace::{Extent, OpenFile};

use super::change::{self, Base, PREVIEW_LINES};
use super::view::{Style, View};
use super::{Context, Payload, Tool, ToolError, ToolSpec};

/// The tool.
#[derive(Debug)]
pub struct WriteFile {
    spec: ToolSpec,
    overwrite: Overwrite,
}

/// Which files may be overwritten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overwrite {
    /// Any, except those that have changed since the session read them.
    #[default]
    Any,
    /// Only those that the session has read to their end, or written, in their present version.
    Known,
}

impl WriteFile {
    /// The tool, ready to be registered.
    #[must_use]
    pub fn new(overwrite: Overwrite) -> Self {
        Self { spec: spec::spec(), overwrite }
    }
}

/// The arguments, as meant.
struct Arguments<'a> {
    path: &'a str,
    content: &'a str,
    expected_version: Option<&'a str>,
}

impl<'a> Arguments<'a> {
    fn of(arguments: &'a Payload) -> Result<Self, ToolError> {
        let text = |name: &str| {
            let value = arguments.get(name).and_then(Value::as_str);
            value.ok_or_else(|| ToolError::invalid_arguments(format!("{name} must be a string")))
        };
        let expected_version = arguments.get("expected_version").and_then(Value::as_str);
        Ok(Self { path: text("path")?, content: text("content")?, expected_version })
    }
}

/// A file that is to be written, as it is.
struct Prepared<'a> {
    /// Absent for a new file.
    base: Option<Base>,
    content: &'a str,
}

impl<'a> Prepared<'a> {
    fn of(
        arguments: &Arguments<'a>,
        file: Option<&OpenFile>,
        overwrite: Overwrite,
        context: &Context<'_>,
    ) -> Result<Self, ToolError> {
        let Arguments { path, content, expected_version } = *arguments;
        let Some(file) = file else {
            if expected_version.is_some() {
                let message = format!(
                    "cannot write {path}: it does not exist, so it is not at the expected version"
                );
                return Err(change::conflict(message, path, None));
            }
            return Ok(Self { base: None, content });
        };
        let base = Base::read(file, "write", path)?;
        base.expect(expected_version, "write", path)?;
        let known = context.session.knows(file.path());
        if expected_version.is_none() {
            let stale = known.is_some_and(|knowledge| base.differs_from(&knowledge));
            if stale {
                let message = format!(
                    "cannot write {path}: it has changed since this session read it, and that \
                     change would be lost"
                );
                return Err(change::conflict(message, path, Some(base.version)));
            }
            let read = known.is_some_and(|knowledge| knowledge.extent == Extent::Whole);
            if overwrite == Overwrite::Known && !read {
                return Err(unread(path, &base));
            }
        }
        Ok(Self { base: Some(base), content })
    }

    fn old(&self) -> &[u8] {
        self.base.as_ref().map_or(&[], |base| &base.content)
    }

    fn old_encoding(&self) -> Detected {
        detect(self.old())
    }

    fn side(&self) -> Side {
        let old = match self.old_encoding() {
            Detected::Text(encoding) => encoding,
            Detected::Binary { .. } => Encoding::Utf8,
        };
        Side { old, new: Encoding::Utf8 }
    }

    fn is_unchanged(&self) -> bool {
        self.base.as_ref().is_some_and(|base| base.content == self.content.as_bytes())
    }

    fn diff(&self, max_lines: usize) -> Diff<'_> {
        let (old, new) = (self.old(), self.content.as_bytes());
        match self.old_encoding() {
            // Nobody can read the lines of a binary file.
            Detected::Binary { .. } => {
                diff::of_patch(&[], &Patch::between(&[], new), Unit::Byte, max_lines)
            }
            Detected::Text(encoding) if Unit::of(encoding) != Unit::Byte => {
                let body = &old[encoding.bom().len()..];
                diff::of_rewrite((body, Unit::of(encoding)), (new, Unit::Byte), max_lines)
            }
            Detected::Text(_) => {
                diff::of_patch(old, &Patch::between(old, new), Unit::Byte, max_lines)
            }
        }
    }

    /// What the file loses or gains besides its lines.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.is_unchanged() {
            return vec!["The file has this content already; it is left as it is.".to_owned()];
        }
        match self.old_encoding() {
            Detected::Binary { kind } => {
                let kind = kind.map_or_else(String::new, |kind| format!(" ({kind})"));
                notes.push(format!("It was a binary file{kind}, {} bytes.", self.old().len()));
            }
            Detected::Text(Encoding::Utf8) => {}
            Detected::Text(Encoding::Utf8Bom) if self.content.starts_with('\u{FEFF}') => {}
            Detected::Text(Encoding::Utf8Bom) => {
                notes.push("The byte order mark at its start is gone.".to_owned());
            }
            Detected::Text(encoding) => {
                notes.push(format!("The encoding was {}; it is utf-8 now.", encoding.name()));
            }
        }
        let unit = Unit::of(self.side().old);
        let only = |text: &[u8], unit: Unit, wanted: Ending| {
            let mut endings = endings(text, unit).take(10_000).peekable();
            endings.peek().is_some() && endings.all(|ending| ending == wanted)
        };
        let new = self.content.as_bytes();
        for (was, is, text) in [
            (Ending::CrLf, Ending::Lf, "Line endings were CR LF; they are LF now."),
            (Ending::Lf, Ending::CrLf, "Line endings were LF; they are CR LF now."),
        ] {
            if only(self.old(), unit, was) && only(new, Unit::Byte, is) {
                notes.push(text.to_owned());
            }
        }
        notes
    }
}

fn endings(text: &[u8], unit: Unit) -> impl Iterator<Item = Ending> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let lf = unit.find_lf(text, from)?;
        from = lf + unit.width();
        Some(unit.ending_at(text, lf))
    })
}

fn unread(path: &str, base: &Base) -> ToolError {
    let message = format!(
        "cannot write {path}: this session has not read it to its end, and the operator allows \
         overwriting only what was read (read_before_write)"
    );
    ToolError::invalid_arguments(message)
        .with_detail("path", path)
        .with_detail("current_version", base.version.to_string())
        .with_hint("read the file first, or use edit_file to change a part of it")
}
