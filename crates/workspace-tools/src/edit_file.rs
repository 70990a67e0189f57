//! `edit_file`: replaces strings in a text file, byte for byte.

pub mod spec;

use crate::change::view_hunks;
use serde_json::Value;

use workspace_fs::text::diff::{self, Diff, Limits, Side};
use workspace_fs::text::edit::{Bounds, Count, Edit, EditError, Edited, Refusal, Scope, apply};
use workspace_fs::text::encoding::{Detected, Encoding, detect, is_well_guessed};
use workspace_fs::text::lines::Unit;
use workspace_fs::text::name;
use workspace_fs::text::patch::Patch;
use workspace_fs::{Extent, Knowledge, OpenFile, VersionHasher};

use super::change::{self, Base, MAX_FILE, Made, PREVIEW_LINES, endings, syntax};
use super::field::{Details, FILE, Field, Text};
use crate::{Context, Files};
use spec::{EDITS, NEW_STRING, OLD_STRING, REPLACE_ALL};
use tool_provider::view::{Style, View};
use tool_provider::{Payload, Tool, ToolError, ToolSpec};

/// The tool.
#[derive(Debug)]
pub struct EditFile {
    spec: ToolSpec,
}

impl Default for EditFile {
    fn default() -> Self {
        Self { spec: spec::spec() }
    }
}

/// The arguments, as meant.
struct Arguments<'a> {
    path: &'a str,
    edits: Vec<Edit<'a>>,
    expected_version: Option<&'a str>,
    details: Details,
}

impl<'a> Arguments<'a> {
    fn of(arguments: &'a Payload) -> Result<Self, ToolError> {
        let path = FILE.get(arguments);
        let path = path.ok_or_else(|| ToolError::invalid_arguments("path must be a string"))?;
        let has = |name| arguments.contains_key(name);
        // Where old_string says what to edit, an empty list asks for nothing.
        let asks =
            |edits: &&Value| !(has(OLD_STRING.name) && edits.as_array().is_some_and(Vec::is_empty));
        let edits = match arguments.get(EDITS.name).filter(asks) {
            None if !has(OLD_STRING.name) && !has(NEW_STRING.name) => {
                return Err(ToolError::invalid_arguments(
                    "nothing to edit: give old_string and new_string, or edits with several of both",
                ));
            }
            None => vec![edit_of(arguments, "")?],
            Some(_)
                if [OLD_STRING.name, NEW_STRING.name, REPLACE_ALL.name].into_iter().any(has) =>
            {
                return Err(ToolError::invalid_arguments(
                    "give either edits, or old_string, new_string and replace_all: not both; beside \
                     edits they belong into each of them",
                ));
            }
            Some(Value::Array(edits)) if !edits.is_empty() => edits
                .iter()
                .enumerate()
                .map(|(index, edit)| match edit {
                    Value::Object(edit) => edit_of(edit, &format!("edits[{index}].")),
                    _ => Err(ToolError::invalid_arguments(format!(
                        "edits[{index}] must be an object with old_string and new_string"
                    ))),
                })
                .collect::<Result<_, _>>()?,
            Some(_) => {
                return Err(ToolError::invalid_arguments("edits must list at least one edit"));
            }
        };
        for (index, edit) in edits.iter().enumerate() {
            edit.check().map_err(|reason| {
                let is_empty = matches!(reason, Refusal::EmptyOld);
                let error = EditError { index, of: edits.len(), reason };
                let new =
                    ToolError::invalid_arguments(error.to_string()).with_detail("edit", index);
                if is_empty {
                    new.with_hint(
                        "give the text to replace; write_file creates a file, or replaces all of one",
                    )
                } else {
                    new
                }
            })?;
        }
        let expected_version = change::expected_version(arguments)?;
        Ok(Self { path, edits, expected_version, details: Details::of(arguments) })
    }
}

fn edit_of<'a>(arguments: &'a Payload, prefix: &str) -> Result<Edit<'a>, ToolError> {
    let text = |field: Field<Text>, remedy: &str| {
        field.get(arguments).ok_or_else(|| {
            ToolError::invalid_arguments(format!(
                "{prefix}{} is missing: a string is required{remedy}",
                field.name
            ))
        })
    };
    let scope = match REPLACE_ALL.get(arguments) {
        Some(true) => Scope::All,
        Some(false) | None => Scope::Only,
    };
    let old = text(OLD_STRING, "")?;
    Ok(Edit { old, new: text(NEW_STRING, "; to delete, give \"\"")?, scope })
}

/// A file and what the edits do to it.
struct Prepared {
    base: Base,
    encoding: Encoding,
    edited: Edited,
}

impl Prepared {
    fn of(
        arguments: &Arguments<'_>,
        file: &OpenFile,
        context: &Context<'_>,
    ) -> Result<Self, ToolError> {
        let path = arguments.path;
        let base = Base::read(file, "edit", path)?;
        change::expect(arguments.expected_version, base.version, "edit", path)?;
        let encoding = match detect(&base.content) {
            Detected::Text(encoding) => encoding,
            Detected::Binary { kind } => return Err(binary(path, kind)),
        };
        let body = &base.content[encoding.bom().len()..];
        let should_stop = || context.check().is_err();
        let bounds = Bounds { size: MAX_FILE, should_stop: &should_stop };
        match apply(body, encoding, &arguments.edits, bounds) {
            Ok(edited) => {
                check_guess(arguments, encoding, &base.content)?;
                Ok(Self { base, encoding, edited })
            }
            Err(error) => {
                context.check()?;
                let known = context.state.session(context.session_id).knows(file.path());
                let content = match known {
                    Some(known) if base.is_news_to(&known) => Content::Changed,
                    _ => Content::AsRead,
                };
                Err(refused(path, &error, content))
            }
        }
    }

    fn body(&self) -> &[u8] {
        &self.base.content[self.encoding.bom().len()..]
    }

    fn side(&self) -> Side {
        Side { old: self.encoding, new: self.encoding }
    }

    /// What is to be said of the file afterwards, beside its lines.
    fn notices(&self, path: &str) -> Vec<String> {
        let endings = endings::notice(self.body(), &self.edited.patch, Unit::of(self.encoding));
        endings.into_iter().chain(self.syntax_notice(path)).collect()
    }

    fn syntax_notice(&self, path: &str) -> Option<String> {
        if !matches!(self.encoding, Encoding::Utf8 | Encoding::Utf8Bom) {
            return None;
        }
        let old = self.body();
        let pieces: Vec<&[u8]> = self.edited.patch.segments(old).collect();
        syntax::notice(path, Some(old), &pieces)
    }

    fn diff(&self, limits: impl Into<Limits>) -> Diff<'_> {
        diff::of_patch(self.body(), &self.edited.patch, Unit::of(self.encoding), limits)
    }
}

/// Refuses to write characters by a guess that may be wrong. Those that an edit found in the file are
/// known by their bytes.
fn check_guess(
    arguments: &Arguments<'_>,
    encoding: Encoding,
    content: &[u8],
) -> Result<(), ToolError> {
    if !matches!(encoding, Encoding::Legacy(_)) || is_well_guessed(content) {
        return Ok(());
    }
    let unknown = arguments
        .edits
        .iter()
        .find_map(|edit| edit.new.chars().find(|c| !c.is_ascii() && !edit.old.contains(*c)));
    let Some(unknown) = unknown else { return Ok(()) };
    let (path, name) = (arguments.path, encoding.name());
    let message = format!(
        "cannot edit {}: its encoding is a guess ({name}) from a few bytes, and {unknown:?} (U+{:04X}) in \
         new_string would be other bytes in another encoding",
        name::shown(path),
        u32::from(unknown)
    );
    Err(ToolError::invalid_arguments(message).with_detail("path", path).with_hint(format!(
        "write ASCII only, or turn the file into UTF-8 first, with bash, if the guess is right: iconv -f \
         {name} -t utf-8"
    )))
}

fn binary(path: &str, kind: Option<&'static str>) -> ToolError {
    let what = kind.map_or_else(String::new, |kind| format!(" ({kind})"));
    let shown = name::shown(path);
    ToolError::execution_failed(format!("cannot edit {shown}: it is a binary file{what}"))
        .with_detail("path", path)
        .with_detail("type", kind.unwrap_or("unknown"))
        .with_hint("change it with bash, or replace all of it with write_file")
}

/// Whether a file has the content that the session knows, if it knows any.
#[derive(Clone, Copy, PartialEq)]
enum Content {
    AsRead,
    Changed,
}

/// The error of an edit that cannot be made.
fn refused(path: &str, error: &EditError, content: Content) -> ToolError {
    let message = format!("cannot edit {}: {error}", name::shown(path));
    let new = match &error.reason {
        Refusal::NotFound(diagnosis)
            if content == Content::Changed && diagnosis.taken.is_none() =>
        {
            let message = message.strip_suffix(": read the file again").unwrap_or(&message);
            ToolError::not_found(format!(
                "{message}\nThe file has changed since this session read it: read it again."
            ))
        }
        Refusal::NotFound(_) => ToolError::not_found(message),
        Refusal::NoMemory(_) => change::no_memory("edit", path),
        _ => ToolError::invalid_arguments(message),
    };
    let new = new.with_detail("path", path);
    let new = if error.of > 1 { new.with_detail("edit", error.index) } else { new };
    match &error.reason {
        Refusal::NotFound(diagnosis) => {
            let shown = diagnosis.nearest.as_ref().filter(|_| diagnosis.taken.is_none());
            let lines = shown.map(|near| (near.first_line, near.last_line));
            match lines {
                Some((first, last)) => new
                    .with_detail("nearest_first_line", first)
                    .with_detail("nearest_last_line", last),
                None => new,
            }
        }
        Refusal::Ambiguous(ambiguity) => {
            let (Count::Exactly(count) | Count::AtLeast(count)) = ambiguity.count;
            new.with_detail("matches", count).with_detail("lines", ambiguity.lines.clone())
        }
        _ => new,
    }
}

impl Tool<Files> for EditFile {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, arguments: &Payload, context: &Context<'_>) -> Result<Payload, ToolError> {
        let arguments = Arguments::of(arguments)?;
        edit(&arguments, context).map_err(change::not_applied)
    }

    fn preview(&self, arguments: &Payload, context: &Context<'_>) -> Result<View, ToolError> {
        let arguments = Arguments::of(arguments)?;
        let prepared = change::look(context, arguments.path).and_then(|destination| {
            Prepared::of(&arguments, destination.existing(arguments.path)?, context)
        });
        Ok(match prepared {
            Ok(prepared) => {
                let diff = prepared.diff(PREVIEW_LINES);
                let undone = diff.first_changed_line.is_none().then(|| UNDONE.to_owned());
                let notes: Vec<String> =
                    undone.into_iter().chain(prepared.notices(arguments.path)).collect();
                change::view(
                    arguments.path,
                    "Edit",
                    &diff,
                    prepared.side(),
                    &notes,
                    context.secrets,
                )
            }
            Err(error) => change::failure(&error),
        })
    }

    fn render_call(&self, arguments: &Payload) -> View {
        let path = FILE.get(arguments).unwrap_or("a file");
        let mut views = vec![View::text(format!("Edit {}", name::shown(path)), Style::Bold)];
        match EDITS.get(arguments) {
            Some(edits) if !edits.is_empty() => {
                views.extend(edits.iter().filter_map(Value::as_object).map(asked));
            }
            _ => views.push(asked(arguments)),
        }
        View::Group(views)
    }

    fn render_result(&self, payload: &Payload) -> View {
        change::render(payload, "Edited")
    }

    fn bare_fields(&self) -> &'static [&'static str] {
        &[change::DIFF.name]
    }
}

/// What is said of edits that together change nothing.
const UNDONE: &str = "The edits undo one another; the file is left as it is.";

/// How often an edit is made anew because another program changed the file while it was made.
const ATTEMPTS: usize = 5;

/// An exact match is its own proof, so where another program changes the file between reading and
/// replacing it, the edit is made on what the file holds then.
fn edit(arguments: &Arguments<'_>, context: &Context<'_>) -> Result<Payload, ToolError> {
    let mut attempts = 1;
    loop {
        match edit_once(arguments, context) {
            Err(error) if error.is_race() && attempts < ATTEMPTS => attempts += 1,
            outcome => return outcome,
        }
    }
}

fn edit_once(arguments: &Arguments<'_>, context: &Context<'_>) -> Result<Payload, ToolError> {
    let path = arguments.path;
    let writing = change::begin(context, path)?;
    let prepared = Prepared::of(arguments, writing.destination.existing(path)?, context)?;
    let bom = prepared.encoding.bom();
    let pieces: Vec<&[u8]> =
        std::iter::once(bom).chain(prepared.edited.patch.segments(prepared.body())).collect();
    let mut hasher = VersionHasher::default();
    pieces.iter().for_each(|piece| hasher.update(piece));
    let version = hasher.finish();

    let secrets = context.secrets;
    let diff = Some(change::rendered(|limits| prepared.diff(limits), prepared.side(), secrets));
    let mut payload = Payload::new();
    let replacements = prepared.edited.replacements;
    if arguments.details == Details::All || replacements != arguments.edits.len() {
        spec::REPLACEMENTS.put(&mut payload, replacements);
    }
    let encoding = prepared.encoding;
    if version == prepared.base.version {
        let notices = vec![UNDONE.to_owned()];
        Made { version, encoding, diff, notices }.put(&mut payload, arguments.details);
        return Ok(payload);
    }

    let resolved = writing.path().to_owned();
    let committed = writing.commit(path, &pieces)?;
    let written = committed.written;
    // What the session knows is brought up to date, unless it was out of date: then it has still
    // not seen what someone else changed.
    let known = context.state.session(context.session_id).knows(&resolved);
    if known.is_none_or(|known| !prepared.base.is_news_to(&known)) {
        let extent = known.map_or(Extent::Part, |known| known.extent);
        let knowledge = Knowledge { version: Some(version), stamp: written.stat.stamp(), extent };
        context.state.session(context.session_id).record_read(&resolved, knowledge);
    }
    drop(committed);
    let notices = change::notice(written.how).into_iter().chain(prepared.notices(path)).collect();
    Made { version, encoding, diff, notices }.put(&mut payload, arguments.details);
    Ok(payload)
}

/// One edit as it is asked for: what goes and what comes, wherever that is.
fn asked(edit: &Payload) -> View {
    let [old, new] =
        [OLD_STRING, NEW_STRING].map(|field| field.get(edit).unwrap_or_default().as_bytes());
    let diff = diff::of_patch(old, &Patch::between(old, new), Unit::Byte, PREVIEW_LINES);
    let shown = diff.shown(Side { old: Encoding::Utf8, new: Encoding::Utf8 });
    let mut views = vec![View::Diff(view_hunks(shown.hunks))];
    if REPLACE_ALL.get(edit) == Some(true) {
        views.push(View::text("every occurrence", Style::Dim));
    }
    View::Group(views)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests set up real files")]
mod tests;
