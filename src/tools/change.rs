//! What `edit_file` and `write_file` have in common: the file as it was, and how its change is told.

use std::path::Path;

use serde_json::Value;

use crate::text::diff::{Diff, End, Shown, Side, parse_unified, unified};
use crate::text::encoding::Encoding;
use crate::workspace::{
    AccessTime, Action, Fault, Guard, How, Knowledge, Mode, OpenFile, PathArgument, Place,
    Replacement, Stamp, Target, Version, VersionHasher, WorkspaceError, Written,
};

use super::schema::{Kind, Property};
use super::view::{Style, View};
use super::{Category, Context, Payload, ToolError};

/// Files beyond this are not changed here: they are held in memory while they are.
pub(super) const MAX_FILE: usize = 256 * 1024 * 1024;

/// How many lines of hunks a preview shows.
pub(super) const PREVIEW_LINES: usize = 2000;

/// How many lines of a diff a result holds, for a model that knows what it wrote.
pub(super) const RESULT_LINES: usize = 200;

/// When a result's diff is longer than this, in bytes, it is made again with fewer lines.
const RESULT_BYTES: usize = 32 * 1024;
const FEWER_LINES: usize = 40;

pub(super) const EXPECTED_VERSION: &str = "The version that the file must have, from read_file or an earlier result; if it has another, \
     nothing is changed.";

/// The properties of a result that tell of the change.
pub(super) fn properties() -> Vec<Property> {
    let count = || Kind::Whole { min: 0 };
    vec![
        Property::required("lines_added", count(), "How many lines came."),
        Property::required("lines_removed", count(), "How many lines went."),
        Property::optional(
            "first_changed_line",
            Kind::Whole { min: 1 },
            "The first line that is different now.",
        ),
        Property::required(
            "diff",
            Kind::String(&[]),
            "The changed lines with three around them, as a unified diff; the first 200 lines of it.",
        ),
        Property::required(
            "version",
            Kind::String(&[]),
            "Identifies the new content; an expected_version for the next change.",
        ),
        Property::required("encoding", Kind::String(&[]), "The file's encoding."),
        Property::optional("notice", Kind::String(&[]), "What else to know."),
    ]
}

/// A file as it was found.
#[derive(Debug)]
pub(super) struct Base {
    pub content: Vec<u8>,
    pub version: Version,
    pub stamp: Stamp,
}

impl Base {
    /// Reads a file to its end.
    ///
    /// # Errors
    /// When it is too large, or the system fails to read.
    pub(super) fn read(file: &OpenFile, action: &str, path: &str) -> Result<Self, ToolError> {
        let too_large = |size: u64| {
            ToolError::execution_failed(format!(
                "cannot {action} {path}: it has {size} bytes, and files over {MAX_FILE} bytes \
                 ({} MiB) are not changed",
                MAX_FILE >> 20
            ))
            .with_detail("path", path)
            .with_detail("size_bytes", size)
            .with_hint("change it with bash, for example with sed")
        };
        let size = file.stat().size;
        let expected = usize::try_from(size).unwrap_or(usize::MAX);
        if expected > MAX_FILE {
            return Err(too_large(size));
        }
        let mut content = vec![0; expected + 1];
        let mut filled = file.fill(&mut content)?;
        // It grew, or is one of those whose size is not known before they are read.
        while filled == content.len() {
            if filled > MAX_FILE {
                return Err(too_large(filled as u64));
            }
            content.resize((filled * 2).clamp(64 * 1024, MAX_FILE + 1), 0);
            filled += file.fill(&mut content[filled..])?;
        }
        content.truncate(filled);
        let version = Version::of(&content);
        Ok(Self { content, version, stamp: file.stat().stamp() })
    }

    /// Whether this content is not the one that a session knows.
    pub(super) fn is_news_to(&self, known: &Knowledge) -> bool {
        is_stale(known, Some(self.version), self.stamp)
    }
}

/// The version of a file that is too large to be held in memory.
///
/// # Errors
/// When the call ends meanwhile, or the system fails to read.
pub(super) fn version_of(file: &OpenFile, context: &Context<'_>) -> Result<Version, ToolError> {
    let mut hasher = VersionHasher::default();
    let mut buffer = vec![0; 1024 * 1024];
    loop {
        context.check()?;
        match file.fill(&mut buffer)? {
            0 => return Ok(hasher.finish()),
            filled => hasher.update(&buffer[..filled]),
        }
    }
}

/// Refuses when a file is not at the version that the caller expects.
///
/// # Errors
/// `concurrency_conflict`, with the version that the file has.
pub(super) fn expect(
    expected: Option<&str>,
    version: Version,
    action: &str,
    path: &str,
) -> Result<(), ToolError> {
    match expected {
        Some(expected) if !version.matches(expected) => {
            let message = format!(
                "cannot {action} {path}: it is not at the expected version; it has been changed"
            );
            Err(conflict(message, path, Some(version)))
        }
        _ => Ok(()),
    }
}

/// Whether a file has been changed since a session got to know it. `version` is its present one,
/// where that is known.
pub(super) fn is_stale(known: &Knowledge, version: Option<Version>, stamp: Stamp) -> bool {
    match (known.version, version) {
        (Some(known), Some(version)) => known != version,
        _ => known.stamp != stamp,
    }
}

/// A file that is about to be changed, under its lock.
pub(super) struct Writing<'w> {
    place: Place<'w>,
    current: Option<OpenFile>,
    _lock: Guard,
}

/// Locks the file at `path`, or its name where there is none, and opens it.
///
/// # Errors
/// When the path cannot be written, or the lock is not free in time.
pub(super) fn begin<'w>(context: &Context<'w>, path: &str) -> Result<Writing<'w>, ToolError> {
    let workspace = context.workspace;
    let argument = argument(context, path);
    let (place, lock) = context
        .waiting(|wait| workspace.lock_place(argument, Action::Write, Mode::Exclusive, wait))?;
    let current = open(context, path, &place)?;
    Ok(Writing { place, current, _lock: lock })
}

impl Writing<'_> {
    /// The file as it is; absent where there is none.
    pub(super) fn current(&self) -> Option<&OpenFile> {
        self.current.as_ref()
    }

    /// The path that it has without links.
    pub(super) fn path(&self) -> &Path {
        &self.place.path
    }

    /// Gives the file its new content. The call can be stopped while the content is put on the
    /// disk, and not any more once it takes its place.
    ///
    /// # Errors
    /// When the call was stopped, someone else changed the file since it was opened, or the system
    /// fails. Then the file is as it was.
    pub(super) fn commit(
        self,
        context: &Context<'_>,
        path: &str,
        content: &[&[u8]],
    ) -> Result<Written, ToolError> {
        let Self { place, current, _lock } = self;
        let base = current.as_ref();
        let should_stop = || context.check().is_err();
        let new = Replacement { text: path, base, content, should_stop: &should_stop };
        let staged = context.workspace.stage(place, new).map_err(|error| {
            match (&*error.fault, context.check()) {
                (Fault::Stopped, Err(ended)) => ended,
                _ => error.into(),
            }
        })?;
        context.begin_commit()?;
        Ok(staged.commit()?)
    }
}

/// What a caller should know of how a file was written.
pub(super) fn notice(how: How) -> Option<String> {
    match how {
        How::Created | How::Replaced { parted_names: 0 } => None,
        How::Replaced { parted_names } => Some(format!(
            "The file had {parted_names} other name{} (hard links); they keep the old content.",
            if parted_names == 1 { "" } else { "s" }
        )),
        How::InPlace(why) => Some(format!("The file was written in place, because {why}.")),
    }
}

fn argument<'a>(context: &Context<'a>, path: &'a str) -> PathArgument<'a> {
    PathArgument { text: path, working_directory: context.working_directory }
}

/// The file at `path` for a preview: nothing is locked, and not even its access time changes. None
/// where nothing is there yet.
///
/// # Errors
/// As a change of the file would fail.
pub(super) fn look(context: &Context<'_>, path: &str) -> Result<Option<OpenFile>, ToolError> {
    let place = context.workspace.locate(argument(context, path), Action::Write)?;
    let current = open(context, path, &place)?;
    place.check_permitted(path)?;
    Ok(current)
}

/// Opens what is at `place`. Its access time stays: what is read to be changed is not being used.
fn open(
    context: &Context<'_>,
    path: &str,
    place: &Place<'_>,
) -> Result<Option<OpenFile>, ToolError> {
    place.check_writable(context.workspace, path)?;
    if let Target::Missing { .. } = place.target {
        return Ok(None);
    }
    let opened = context.workspace.open_file(argument(context, path), AccessTime::Keep);
    opened.map(Some).map_err(|error| WorkspaceError { action: Action::Write, ..error }.into())
}

/// The error of a file that is not there and should be.
pub(super) fn missing(context: &Context<'_>, path: &str) -> ToolError {
    match context.workspace.locate_existing(argument(context, path), Action::Write) {
        Err(error) => error.into(),
        // It has just been made.
        Ok(_) => ToolError::not_found(format!("cannot write {path}: it did not exist")),
    }
}

/// A version that is not the expected one. `current` is absent where there is no file.
pub(super) fn conflict(message: String, path: &str, current: Option<Version>) -> ToolError {
    let current = current.map_or(Value::Null, |version| version.to_string().into());
    ToolError::version_mismatch(message)
        .with_detail("path", path)
        .with_detail("current_version", current)
        .with_hint("read the file again and decide anew; pass its version as expected_version")
}

/// Says of a call that ended early that nothing was changed.
pub(super) fn not_applied(error: ToolError) -> ToolError {
    match error.category() {
        Category::Cancelled | Category::Timeout => error.with_detail("applied", false),
        _ => error,
    }
}

/// Puts the fields of [`properties`] into a result.
pub(super) fn put(
    payload: &mut Payload,
    diff: &Diff<'_>,
    told: Told,
    version: Version,
    encoding: Encoding,
    notices: &[String],
) {
    let mut put = |name: &str, value: Value| payload.insert(name.to_owned(), value);
    put("lines_added", diff.added.into());
    put("lines_removed", diff.removed.into());
    if let Some(line) = diff.first_changed_line {
        put("first_changed_line", line.into());
    }
    put("diff", told.unified.into());
    put("version", version.to_string().into());
    put("encoding", encoding.name().into());
    if !notices.is_empty() {
        put("notice", notices.join(" ").into());
    }
}

/// A diff as a result holds it.
#[derive(Debug)]
pub(super) struct Told {
    pub unified: String,
    pub notes: Vec<String>,
}

/// The diff that `make` makes with at most so many lines, in a length that suits a result.
pub(super) fn told<'a>(make: impl Fn(usize) -> Diff<'a>, side: Side) -> (Diff<'a>, Told) {
    let diff = make(RESULT_LINES);
    let shown = diff.shown(side);
    let text = unified(&diff, &shown);
    if text.len() <= RESULT_BYTES {
        let notes = notes(&diff, &shown, side);
        return (diff, Told { unified: text, notes });
    }
    let diff = make(FEWER_LINES);
    let shown = diff.shown_clipped(side);
    let told = Told { unified: unified(&diff, &shown), notes: notes(&diff, &shown, side) };
    (diff, told)
}

/// What hunks do not say.
pub(super) fn notes(diff: &Diff<'_>, shown: &Shown, side: Side) -> Vec<String> {
    let mut notes = Vec::new();
    match (diff.old_end, diff.new_end) {
        (End::NoNewline, End::Newline) => notes.push("A newline is added at the end.".to_owned()),
        (End::Newline, End::NoNewline) => {
            notes.push("The newline at the end is removed.".to_owned())
        }
        (End::Empty, End::NoNewline) => notes.push("There is no newline at the end.".to_owned()),
        _ => {}
    }
    if diff.left_out > 0 {
        notes.push(format!("{} more changed lines are not shown.", diff.left_out));
    }
    if shown.clipped > 0 {
        notes.push("Very long lines are shown in part.".to_owned());
    }
    if shown.undecodable > 0 {
        let encoding = side.old.name();
        notes.push(format!("Bytes that are not {encoding} text are shown as \u{FFFD} and kept."));
    }
    notes
}

/// A change as a person sees it.
pub(super) fn view(path: &str, verb: &str, diff: &Diff<'_>, side: Side, more: &[String]) -> View {
    let shown = diff.shown(side);
    let mut notes = notes(diff, &shown, side);
    notes.extend_from_slice(more);
    let heading = format!("{verb} {path}  {}", counts(diff.added, diff.removed));
    let mut views = vec![View::text(heading, Style::Bold)];
    if !shown.hunks.is_empty() {
        views.push(View::Diff(shown.hunks));
    }
    views.extend(notes.into_iter().map(|note| View::text(note, Style::Warning)));
    View::Group(views)
}

/// A call that would fail, as a person sees it before it is made.
pub(super) fn failure(error: &ToolError) -> View {
    let mut views = vec![View::text(format!("This call would fail: {error}"), Style::Error)];
    if let Some(hint) = error.hint() {
        views.push(View::text(hint, Style::Dim));
    }
    View::Group(views)
}

/// A result as a person sees it, from whatever of it is there.
pub(super) fn render(payload: &Payload, verb: &str) -> View {
    let text = |name: &str| payload.get(name).and_then(Value::as_str);
    let count = |name: &str| payload.get(name).and_then(Value::as_f64);
    let mut heading = format!("{verb} {}", text("path").unwrap_or("a file"));
    if let (Some(added), Some(removed)) = (count("lines_added"), count("lines_removed")) {
        heading.push_str(&format!("  {}", counts(added, removed)));
    }
    let mut views = vec![View::text(heading, Style::Bold)];
    let hunks = text("diff").map(parse_unified).unwrap_or_default();
    if !hunks.is_empty() {
        views.push(View::Diff(hunks));
    }
    if let Some(notice) = text("notice") {
        views.push(View::text(notice, Style::Warning));
    }
    View::Group(views)
}

/// `+a −b`.
fn counts(added: impl std::fmt::Display, removed: impl std::fmt::Display) -> String {
    format!("+{added} −{removed}")
}
