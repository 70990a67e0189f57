//! `write_file`: creates a file, or replaces all of one.
//!
//! The content is written byte for byte, as UTF-8, whatever the file was before: a caller who hands
//! over a whole file says what it shall hold, and a provider that turned it into another encoding,
//! or put back a mark or line endings that the caller left out, could not be used to change them.
//! The notice says what a file loses that way; `edit_file` is the tool that keeps it.

pub mod spec;

use workspace_fs::text::diff::{self, Diff, Limits, Side};
use workspace_fs::text::encoding::{Detected, Encoding, detect};
use workspace_fs::text::lines::Unit;
use workspace_fs::text::name;
use workspace_fs::text::patch::Patch;
use workspace_fs::{Extent, OpenFile, Version};

use super::change::endings::Endings;
use super::change::{self, Base, MAX_FILE, Made, PREVIEW_LINES, syntax};
use super::field::{Details, FILE, Field, Text};
use super::language::language_of;
use crate::{Context, Files};
use spec::CONTENT;
use tool_provider::view::{Style, View};
use tool_provider::{Payload, Tool, ToolError, ToolSpec};

/// The tool.
#[derive(Debug)]
pub struct WriteFile {
    spec: ToolSpec,
    overwrite: Overwrite,
}

/// Which files may be overwritten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overwrite {
    /// Any, except those that someone else has changed since the session read them.
    #[default]
    Always,
    /// Only those that the session has read to their end, or written, in their present version.
    AfterRead,
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
    details: Details,
}

impl<'a> Arguments<'a> {
    fn of(arguments: &'a Payload) -> Result<Self, ToolError> {
        let text = |field: Field<Text>| {
            let missing = || format!("{} must be a string", field.name);
            field.get(arguments).ok_or_else(|| ToolError::invalid_arguments(missing()))
        };
        let expected_version = change::expected_version(arguments)?;
        let (path, content) = (text(FILE)?, text(CONTENT)?);
        Ok(Self { path, content, expected_version, details: Details::of(arguments) })
    }
}

/// A file that is to be written, as it is.
struct Prepared<'a> {
    old: Old,
    /// What the old content is.
    was: Detected,
    content: &'a str,
}

/// What a write replaces.
enum Old {
    /// Nothing: the file is new.
    Nothing,
    /// This content.
    Content(Base),
    /// Content of so many bytes, more than is held in memory.
    Large(u64),
}

impl<'a> Prepared<'a> {
    fn of(
        arguments: &Arguments<'a>,
        file: Option<&OpenFile>,
        overwrite: Overwrite,
        context: &Context<'_>,
    ) -> Result<Self, ToolError> {
        let Arguments { path, content, expected_version: expected, .. } = *arguments;
        let Some(file) = file else {
            if expected.is_some() {
                let message = format!(
                    "cannot write {}: it does not exist, and a version of it is expected",
                    name::shown(path)
                );
                return Err(change::conflict(message, path, None));
            }
            return Ok(Self::new(Old::Nothing, content));
        };
        let known = context.state.session(context.session_id).knows(file.path());
        let size = file.stat().size;
        let (old, version) = if size <= MAX_FILE as u64 {
            let base = Base::read(file, "write", path)?;
            let version = base.version;
            (Old::Content(base), Some(version))
        } else {
            // Only where there is something to compare it with.
            let version = match known {
                None if expected.is_none() => None,
                _ => Some(change::version_of(file, context)?),
            };
            (Old::Large(size), version)
        };
        if let (Some(_), Some(version)) = (expected, version) {
            change::expect(expected, version, "write", path)?;
            return Ok(Self::new(old, content));
        }
        let stamp = file.stat().stamp();
        if known.is_some_and(|known| change::is_stale(&known, version, stamp)) {
            let message = format!(
                "cannot write {}: it has changed since this session read it, and that change \
                 would be lost",
                name::shown(path)
            );
            return Err(change::conflict(message, path, version));
        }
        let read = known.is_some_and(|known| known.extent == Extent::Whole);
        if overwrite == Overwrite::AfterRead && !read {
            return Err(unread(path, version));
        }
        Ok(Self::new(old, content))
    }

    fn new(old: Old, content: &'a str) -> Self {
        let was = match &old {
            Old::Content(base) => detect(&base.content),
            Old::Nothing | Old::Large(_) => Detected::Text(Encoding::Utf8),
        };
        Self { old, was, content }
    }

    fn is_new(&self) -> bool {
        matches!(self.old, Old::Nothing)
    }

    fn base(&self) -> Option<&Base> {
        match &self.old {
            Old::Content(base) => Some(base),
            Old::Nothing | Old::Large(_) => None,
        }
    }

    fn old(&self) -> &[u8] {
        self.base().map_or(&[], |base| &base.content)
    }

    fn side(&self) -> Side {
        let old = match self.was {
            Detected::Text(encoding) => encoding,
            Detected::Binary { .. } => Encoding::Utf8,
        };
        Side { old, new: Encoding::Utf8 }
    }

    fn is_unchanged(&self) -> bool {
        self.base().is_some_and(|base| base.content == self.content.as_bytes())
    }

    fn diff(&self, limits: impl Into<Limits>) -> Diff<'_> {
        let limits = limits.into();
        let (old, new) = (self.old(), self.content.as_bytes());
        match self.was {
            // Nobody can read the lines of a binary file.
            Detected::Binary { .. } => {
                diff::of_patch(&[], &Patch::between(&[], new), Unit::Byte, limits)
            }
            Detected::Text(encoding) if Unit::of(encoding) != Unit::Byte => {
                let body = &old[encoding.bom().len()..];
                diff::of_rewrite((body, Unit::of(encoding)), (new, Unit::Byte), limits)
            }
            Detected::Text(_) => diff::of_patch(old, &Patch::between(old, new), Unit::Byte, limits),
        }
    }

    fn syntax_notice(&self, path: &str) -> Option<String> {
        let old = match &self.old {
            Old::Nothing => None,
            Old::Content(base) => Some(&*base.content),
            Old::Large(_) => return None,
        };
        syntax::notice(path, old, &[self.content.as_bytes()])
    }

    /// What the file loses or gains besides its lines.
    fn notes(&self, path: &str) -> Vec<String> {
        let mut notes = Vec::new();
        if self.is_unchanged() {
            return vec!["The file has this content already; it is left as it is.".to_owned()];
        }
        notes.extend(self.syntax_notice(path));
        if let Old::Large(size) = self.old {
            notes.push(format!("Its {size} bytes are all replaced; they are too many to show."));
        }
        match self.was {
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
        if let Detected::Text(encoding) = self.was {
            let old = Endings::of([self.old()], Unit::of(encoding));
            notes.extend(old.notice(&Endings::of([self.content.as_bytes()], Unit::Byte)));
        }
        notes
    }
}

fn unread(path: &str, version: Option<Version>) -> ToolError {
    let message = format!(
        "cannot write {}: this session has not read it to its end, and the operator allows \
         overwriting only what was read (read_before_write)",
        name::shown(path)
    );
    ToolError::invalid_arguments(message)
        .with_detail("path", path)
        .with_detail("current_version", version.map(|version| version.to_string()))
        .with_hint("read the file first, or use edit_file to change a part of it")
}

impl Tool<Files> for WriteFile {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, arguments: &Payload, context: &Context<'_>) -> Result<Payload, ToolError> {
        let arguments = Arguments::of(arguments)?;
        self.write(&arguments, context).map_err(change::not_applied)
    }

    fn preview(&self, arguments: &Payload, context: &Context<'_>) -> Result<View, ToolError> {
        let arguments = Arguments::of(arguments)?;
        let prepared = change::look(context, arguments.path).and_then(|destination| {
            let link = destination.link_notice();
            Prepared::of(&arguments, destination.current(), self.overwrite, context)
                .map(|prepared| (prepared, link))
        });
        Ok(match prepared {
            Ok((prepared, link)) => {
                let verb = if prepared.is_new() { "Create" } else { "Overwrite" };
                let mut notes = prepared.notes(arguments.path);
                notes.extend(link);
                let diff = prepared.diff(PREVIEW_LINES);
                change::view(arguments.path, verb, &diff, prepared.side(), &notes, context.secrets)
            }
            Err(error) => change::failure(&error),
        })
    }

    fn render_call(&self, arguments: &Payload) -> View {
        let path = FILE.get(arguments).unwrap_or("a file");
        let mut views = vec![View::text(format!("Write {}", name::shown(path)), Style::Bold)];
        if let Some(content) = CONTENT.get(arguments) {
            views.push(View::code(language_of(path), content));
        }
        View::Group(views)
    }

    fn render_result(&self, payload: &Payload) -> View {
        let created = spec::CREATED.get(payload) == Some(true);
        change::render(payload, if created { "Created" } else { "Wrote" })
    }

    fn bare_fields(&self) -> &'static [&'static str] {
        &[change::DIFF.name]
    }
}

impl WriteFile {
    fn write(
        &self,
        arguments: &Arguments<'_>,
        context: &Context<'_>,
    ) -> Result<Payload, ToolError> {
        let Arguments { path, content, details, .. } = *arguments;
        let writing = change::begin(context, path)?;
        let prepared =
            Prepared::of(arguments, writing.destination.current(), self.overwrite, context)?;
        let mut notices = prepared.notes(path);
        notices.extend(writing.destination.link_notice());
        let version = Version::of(content.as_bytes());
        let written = if prepared.is_unchanged() {
            if let Some(base) = prepared.base() {
                context.state.session(context.session_id).record_own_write(
                    writing.path(),
                    version,
                    base.stamp,
                );
            }
            0
        } else {
            let resolved = writing.path().to_owned();
            let committed = writing.commit(path, &[content.as_bytes()])?;
            let written = committed.written;
            context.state.session(context.session_id).record_own_write(
                &resolved,
                version,
                written.stat.stamp(),
            );
            notices.extend(change::notice(written.how));
            content.len()
        };
        let mut payload = Payload::new();
        if prepared.is_new() {
            spec::CREATED.put(&mut payload, true);
        }
        if details == Details::All {
            spec::BYTES_WRITTEN.put(&mut payload, written);
        }
        let (side, secrets) = (prepared.side(), context.secrets);
        let diff = (!prepared.is_new())
            .then(|| change::rendered(|limits| prepared.diff(limits), side, secrets));
        Made { version, encoding: Encoding::Utf8, diff, notices }.put(&mut payload, details);
        Ok(payload)
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests set up real files")]
mod tests;
