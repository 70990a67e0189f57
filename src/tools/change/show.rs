//! How a change of a file is told: in a result, in a preview, and of a result that was kept.

use serde_json::Value;

use crate::tools::schema::{Kind, Property};
use crate::tools::view::{Style, View};
use crate::tools::{Payload, ToolError};
use workspace_fs::text::diff::{Diff, End, Shown, Side, parse_unified, unified};
use workspace_fs::text::encoding::Encoding;
use workspace_fs::text::name;
use workspace_fs::{How, Version};

/// How many lines of hunks a preview shows.
pub(in crate::tools) const PREVIEW_LINES: usize = 2000;

/// How many lines of a diff a result holds, for a model that knows what it wrote.
pub(in crate::tools) const RESULT_LINES: usize = 200;

/// When a result's diff is longer than this, in bytes, it is made again with fewer lines.
const RESULT_BYTES: usize = 32 * 1024;
const FEWER_LINES: usize = 40;

pub(in crate::tools) const EXPECTED_VERSION: &str = "The version that the file must have, from read_file or an earlier result; if it has another, \
     nothing is changed.";

/// The properties of a result that tell of the change.
pub(in crate::tools) fn properties() -> Vec<Property> {
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

/// Puts the fields of [`properties`] into a result.
pub(in crate::tools) fn put(
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
pub(in crate::tools) struct Told {
    pub(in crate::tools) unified: String,
    pub(in crate::tools) notes: Vec<String>,
}

/// The diff that `make` makes with at most so many lines, in a length that suits a result.
pub(in crate::tools) fn told<'a>(make: impl Fn(usize) -> Diff<'a>, side: Side) -> (Diff<'a>, Told) {
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
pub(in crate::tools) fn notes(diff: &Diff<'_>, shown: &Shown, side: Side) -> Vec<String> {
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
pub(in crate::tools) fn view(
    path: &str,
    verb: &str,
    diff: &Diff<'_>,
    side: Side,
    more: &[String],
) -> View {
    let shown = diff.shown(side);
    let mut notes = notes(diff, &shown, side);
    notes.extend_from_slice(more);
    let heading = format!("{verb} {}  {}", name::shown(path), counts(diff.added, diff.removed));
    let mut views = vec![View::text(heading, Style::Bold)];
    if !shown.hunks.is_empty() {
        views.push(View::Diff(shown.hunks));
    }
    views.extend(notes.into_iter().map(|note| View::text(note, Style::Warning)));
    View::Group(views)
}

/// A call that would fail, as a person sees it before it is made.
pub(in crate::tools) fn failure(error: &ToolError) -> View {
    let mut views = vec![View::text(format!("This call would fail: {error}"), Style::Error)];
    if let Some(hint) = error.hint() {
        views.push(View::text(hint, Style::Dim));
    }
    View::Group(views)
}

/// A result as a person sees it, from whatever of it is there.
pub(in crate::tools) fn render(payload: &Payload, verb: &str) -> View {
    let text = |name: &str| payload.get(name).and_then(Value::as_str);
    let count = |name: &str| payload.get(name).and_then(Value::as_f64);
    let mut heading = format!("{verb} {}", name::shown(text("path").unwrap_or("a file")));
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

/// What a caller should know of how a file was written.
pub(in crate::tools) fn notice(how: How) -> Option<String> {
    match how {
        How::Created | How::Replaced { parted_names: 0 } => None,
        How::Replaced { parted_names } => Some(format!(
            "The file had {parted_names} other name{} (hard links); they keep the old content.",
            if parted_names == 1 { "" } else { "s" }
        )),
        How::InPlace(why) => Some(format!("The file was written in place, because {why}.")),
    }
}
