//! How a change of a file is shown: in a result, in a preview, and from a stored result.

use crate::field::{self, Declared, Details, Field, NOTICE, PATH, Text, Whole, text, whole};
use tool_provider::schema::Schema;
use tool_provider::view::{DiffLine, DiffOp, Hunk, Style, View};
use tool_provider::{Payload, Secrets, ToolError};
use workspace_fs::text::diff::{
    self, Diff, FinalNewline, Limits, Shown, Side, parse_unified, unified,
};
use workspace_fs::text::disguise;
use workspace_fs::text::encoding::Encoding;
use workspace_fs::text::name;
use workspace_fs::{How, Version};

/// How many lines of hunks a preview shows.
pub(crate) const PREVIEW_LINES: usize = 2000;

/// What of a change a result shows, to a model that knows what it wrote and pays for each line.
const RESULT: Limits = Limits { lines: 40, context: 1 };

/// When a result's diff is longer than this, in bytes, it is made again with fewer lines.
const RESULT_BYTES: usize = 4 * 1024;
const FEWER: Limits = Limits { lines: 8, context: 0 };

/// The argument by which a change names the version that it was decided on.
pub const EXPECTED_VERSION: Field<Text> = text(
    "expected_version",
    "A version that read_file or a change gave; if the file has another, nothing is changed.",
);

const VERSION: Field<Text> = text(
    "version",
    "Names the new content: an expected_version. Its first 12 digits; all 32 with details.",
)
.required();
const FIRST_CHANGED_LINE: Field<Whole> =
    whole("first_changed_line", 1, "The first line that is different now.");
pub(crate) const DIFF: Field<Text> = text(
    "diff",
    "What changed in a file that existed, as a unified diff with one line around each change; at most \
     40 lines of it.",
);
const LINES_ADDED: Field<Whole> = whole(
    "lines_added",
    0,
    "How many lines were added, where diff does not show them all, or with details.",
);
const LINES_REMOVED: Field<Whole> =
    whole("lines_removed", 0, "How many lines were removed; there with lines_added.");
const ENCODING: Field<Text> = text("encoding", "The file's encoding. With details only.");

/// The schema of a change's result: with fields of the tool's own, and those that describe the change.
pub(crate) fn result(tool: &'static [&'static str; 1], own: &[&dyn Declared]) -> Schema {
    let mut fields: Vec<&dyn Declared> = vec![&VERSION];
    fields.extend_from_slice(own);
    fields.extend_from_slice(&[
        &FIRST_CHANGED_LINE,
        &DIFF,
        &NOTICE,
        &LINES_ADDED,
        &LINES_REMOVED,
        &ENCODING,
    ]);
    field::result(tool, &fields)
}

/// A change that was made.
pub(crate) struct Made<'a> {
    pub(crate) version: Version,
    pub(crate) encoding: Encoding,
    /// What it did to the lines of a file that existed; absent for a new one.
    pub(crate) diff: Option<(Diff<'a>, Rendered)>,
    pub(crate) notices: Vec<String>,
}

impl Made<'_> {
    /// Puts the fields that describe the change into a result.
    pub(crate) fn put(self, payload: &mut Payload, details: Details) {
        let Self { version, encoding, diff, mut notices } = self;
        let all = details == Details::All;
        VERSION.put(payload, details.version(version));
        if all {
            ENCODING.put(payload, encoding.name());
        }
        if let Some((diff, rendered)) = diff {
            FIRST_CHANGED_LINE.put_some(payload, diff.first_changed_line);
            if all || diff.left_out > 0 {
                LINES_ADDED.put(payload, diff.added);
                LINES_REMOVED.put(payload, diff.removed);
            }
            let unified = Some(rendered.unified).filter(|unified| !unified.is_empty());
            DIFF.put_some(payload, unified);
            notices.extend(rendered.notes);
        }
        NOTICE.put_some(payload, (!notices.is_empty()).then(|| notices.join(" ")));
    }
}

/// A diff as a result holds it.
#[derive(Debug)]
pub(crate) struct Rendered {
    pub(crate) unified: String,
    pub(crate) notes: Vec<String>,
}

/// The diff that `make` makes with these limits, in a length that suits a result.
pub(crate) fn rendered<'a>(
    make: impl Fn(Limits) -> Diff<'a>,
    side: Side,
    secrets: &Secrets,
) -> (Diff<'a>, Rendered) {
    let diff = make(RESULT);
    let shown = without_halves(diff.shown(side), secrets);
    let text = unified(&diff, &shown);
    if text.len() <= RESULT_BYTES {
        let notes = other_notes(&diff, &shown, side);
        return (diff, Rendered { unified: text, notes });
    }
    let diff = make(FEWER);
    let shown = without_halves(diff.shown_clipped(side), secrets);
    let rendered =
        Rendered { unified: unified(&diff, &shown), notes: other_notes(&diff, &shown, side) };
    (diff, rendered)
}

/// Without what a cut leaves of a secret, which nobody recognises when the whole is masked.
fn without_halves(mut shown: Shown, secrets: &Secrets) -> Shown {
    if shown.clipped > 0 && !secrets.is_empty() {
        for line in shown.hunks.iter_mut().flat_map(|hunk| &mut hunk.lines) {
            line.text = secrets.without_halves(&line.text).into_owned();
        }
    }
    shown
}

/// What hunks do not say.
fn notes(diff: &Diff<'_>, shown: &Shown, side: Side) -> Vec<String> {
    let mut notes = other_notes(diff, shown, side);
    if diff.left_out > 0 {
        notes.push(format!("{} more changed lines are not shown.", diff.left_out));
    }
    notes
}

/// What neither hunks nor the number of changed lines say.
fn other_notes(diff: &Diff<'_>, shown: &Shown, side: Side) -> Vec<String> {
    let mut notes = Vec::new();
    match (diff.old_end, diff.new_end) {
        (FinalNewline::Missing, FinalNewline::Present) => {
            notes.push("A newline is added at the end.".to_owned())
        }
        (FinalNewline::Present, FinalNewline::Missing) => {
            notes.push("The newline at the end is removed.".to_owned())
        }
        (FinalNewline::EmptyText, FinalNewline::Missing) => {
            notes.push("There is no newline at the end.".to_owned())
        }
        _ => {}
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
pub(crate) fn view(
    path: &str,
    verb: &str,
    diff: &Diff<'_>,
    side: Side,
    more: &[String],
    secrets: &Secrets,
) -> View {
    let shown = without_halves(diff.shown(side), secrets);
    let mut notes = notes(diff, &shown, side);
    notes.extend_from_slice(more);
    notes.extend(disguise::warnings(shown.hunks.iter().flat_map(added)));
    let heading = format!("{verb} {}  {}", name::shown(path), counts(diff.added, diff.removed));
    let mut views = vec![View::text(heading, Style::Bold)];
    if !shown.hunks.is_empty() {
        views.push(View::Diff(view_hunks(shown.hunks)));
    }
    views.extend(notes.into_iter().map(|note| View::text(note, Style::Warning)));
    View::Group(views)
}

/// The lines that a hunk adds, with the numbers that they will have.
fn added(hunk: &diff::Hunk) -> impl Iterator<Item = (usize, &str)> {
    let new = hunk.lines.iter().filter(|line| line.op != diff::Op::Remove);
    let numbered = new.zip(usize::try_from(hunk.new_start).unwrap_or_default()..);
    let added = numbered.filter(|(line, _)| line.op == diff::Op::Add);
    added.map(|(line, number)| (number, line.text.as_str()))
}

/// A call that would fail, as a person sees it before it is made.
pub(crate) fn failure(error: &ToolError) -> View {
    let mut views = vec![View::text(format!("This call would fail: {error}"), Style::Error)];
    if let Some(hint) = error.hint() {
        views.push(View::text(hint, Style::Dim));
    }
    View::Group(views)
}

/// A result as a person sees it, from whatever of it is there.
pub(crate) fn render(payload: &Payload, verb: &str) -> View {
    let mut heading = verb.to_owned();
    if let Some(path) = PATH.get(payload) {
        heading.push_str(&format!(" {}", name::shown(path)));
    }
    let hunks = DIFF.get(payload).map(parse_unified).unwrap_or_default();
    match (LINES_ADDED.get(payload), LINES_REMOVED.get(payload)) {
        (Some(added), Some(removed)) => heading.push_str(&format!("  {}", counts(added, removed))),
        _ if hunks.is_empty() => {}
        _ => {
            let lines = || hunks.iter().flat_map(|hunk| &hunk.lines);
            let count = |op| lines().filter(|line| line.op == op).count();
            heading
                .push_str(&format!("  {}", counts(count(diff::Op::Add), count(diff::Op::Remove))));
        }
    }
    let mut views = vec![View::text(heading, Style::Bold)];
    if !hunks.is_empty() {
        views.push(View::Diff(view_hunks(hunks)));
    }
    if let Some(notice) = NOTICE.get(payload) {
        views.push(View::text(notice, Style::Warning));
    }
    View::Group(views)
}

/// `+a −b`.
fn counts(added: impl std::fmt::Display, removed: impl std::fmt::Display) -> String {
    format!("+{added} −{removed}")
}

/// What a caller should know of how a file was written.
pub(crate) fn notice(how: How) -> Option<String> {
    match how {
        How::Created | How::Replaced { parted_names: 0 } => None,
        How::Replaced { parted_names } => Some(format!(
            "The file had {parted_names} other name{} (hard links); they keep the old content.",
            if parted_names == 1 { "" } else { "s" }
        )),
        How::InPlace(why) => Some(format!("The file was written in place, because {why}.")),
    }
}

/// Hunks as a person is shown them.
pub(crate) fn view_hunks(hunks: Vec<diff::Hunk>) -> Vec<Hunk> {
    let line = |line: diff::Line| DiffLine {
        op: match line.op {
            diff::Op::Context => DiffOp::Context,
            diff::Op::Add => DiffOp::Add,
            diff::Op::Remove => DiffOp::Remove,
        },
        text: line.text,
    };
    let hunk = |hunk: diff::Hunk| Hunk {
        old_start: hunk.old_start,
        old_lines: hunk.old_lines,
        new_start: hunk.new_start,
        new_lines: hunk.new_lines,
        lines: hunk.lines.into_iter().map(line).collect(),
    };
    hunks.into_iter().map(hunk).collect()
}
