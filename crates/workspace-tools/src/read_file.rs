//! `read_file`: shows a window of a text file's lines.

mod scan;
mod show;
pub mod spec;

use crate::classify::classify;
use crate::lock_wait::waiting;
use workspace_fs::text::encoding::Encoding;
use workspace_fs::text::lines::LineEndings;
use workspace_fs::text::name;
use workspace_fs::text::window::{MAX_LINE, Numbering};
use workspace_fs::{
    AccessTime, Action, Extent, Fault, FileKind, Knowledge, OpenFile, PathArgument, Target,
};

use super::field::{Details, FILE, NOTICE};
use crate::change;
use crate::{Context, Files};
use scan::{Found, Request, Text, Total};
use tool_provider::view::View;
use tool_provider::{Payload, Tool, ToolError, ToolSpec};

/// The tool.
#[derive(Debug)]
pub struct ReadFile {
    spec: ToolSpec,
}

impl Default for ReadFile {
    fn default() -> Self {
        Self { spec: spec::spec() }
    }
}

/// The arguments, as meant.
struct Arguments<'a> {
    path: &'a str,
    request: Request,
    details: Details,
}

/// How many lines are shown when the call does not say.
const DEFAULT_LIMIT: u64 = 2000;

impl<'a> Arguments<'a> {
    fn of(arguments: &'a Payload) -> Result<Self, ToolError> {
        let path = FILE.get(arguments);
        let path = path.ok_or_else(|| ToolError::invalid_arguments("path must be a string"))?;
        let offset = spec::OFFSET.get(arguments).unwrap_or(1);
        if offset == 0 {
            return Err(ToolError::invalid_arguments(
                "offset cannot be 0: 1 is the first line, -1 the last",
            ));
        }
        let limit = spec::LIMIT.unsigned(arguments).unwrap_or(DEFAULT_LIMIT);
        let numbering = match spec::LINE_NUMBERS.get(arguments) {
            Some(false) => Numbering::Off,
            Some(true) | None => Numbering::On,
        };
        let request = Request { offset, limit: limit.max(1), numbering };
        Ok(Self { path, request, details: Details::of(arguments) })
    }
}

impl Tool<Files> for ReadFile {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, arguments: &Payload, context: &Context<'_>) -> Result<Payload, ToolError> {
        let Arguments { path, request, details } = Arguments::of(arguments)?;
        let argument = PathArgument { text: path, working_directory: context.working_directory };
        let file = context
            .state
            .workspace
            .open_file(argument, AccessTime::Touch)
            .map_err(suggest_listing)?;
        let _lock = waiting(context, |wait| file.lock_shared(&context.state.workspace, wait))?;
        match scan::scan(&file, context, request)? {
            Found::Binary { kind } => Err(binary(path, kind, &file)),
            Found::Text(mut text) => {
                // Half a secret is not recognised any more when the result is masked.
                text.window.shorten_cuts(|line| context.secrets.before_cut(line));
                remember(context, &file, &text);
                Ok(result(request, &file, text, details))
            }
        }
    }

    fn preview(&self, arguments: &Payload, context: &Context<'_>) -> Result<View, ToolError> {
        let Arguments { path, .. } = Arguments::of(arguments)?;
        let argument = PathArgument { text: path, working_directory: context.working_directory };
        let found = context.state.workspace.locate_existing(argument, Action::Read);
        let fault = match found.map(|resolved| resolved.target) {
            Ok(Target::Found { stat, .. }) => match stat.kind {
                FileKind::Directory => Some(is_directory(path)),
                FileKind::Special(special) => Some(ToolError::execution_failed(format!(
                    "cannot read {}: it is {special}",
                    name::shown(path)
                ))),
                FileKind::Regular | FileKind::Link => None,
            },
            Ok(Target::Missing { .. }) => None,
            Err(error) => Some(suggest_listing(error)),
        };
        Ok(match fault {
            Some(fault) => change::failure(&fault),
            None => self.render_call(arguments),
        })
    }

    fn render_call(&self, arguments: &Payload) -> View {
        show::call(arguments)
    }

    fn render_result(&self, payload: &Payload) -> View {
        show::result(payload)
    }

    fn bare_fields(&self) -> &'static [&'static str] {
        &[spec::TEXT.name]
    }
}

/// A directory is a slip that a model makes: it means to list.
fn suggest_listing(error: workspace_fs::WorkspaceError) -> ToolError {
    if !matches!(*error.fault, Fault::IsDirectory) {
        return classify(error);
    }
    let new = is_directory(&error.path);
    match error.resolved {
        Some(resolved) => new.with_detail("resolved_path", name::of(&resolved)),
        None => new,
    }
}

fn is_directory(path: &str) -> ToolError {
    let message = format!("cannot read {}: it is a directory", name::shown(path));
    let listing = serde_json::json!({ "pattern": "*", "path": name::shown(path) });
    ToolError::invalid_arguments(message)
        .with_detail("path", path)
        .with_hint(format!("list it with glob: {listing}"))
}

fn binary(path: &str, kind: Option<&'static str>, file: &OpenFile) -> ToolError {
    let size = file.stat().size;
    let what = kind.map_or_else(|| " of unknown type".to_owned(), |kind| format!(" ({kind})"));
    ToolError::execution_failed(format!(
        "cannot read {}: it is a binary file{what}, {size} bytes",
        name::shown(path)
    ))
    .with_detail("path", path)
    .with_detail("resolved_path", name::of(file.path()))
    .with_detail("type", kind.unwrap_or("unknown"))
    .with_detail("size_bytes", size)
    .with_hint("look at it with bash, for example with file, xxd or strings")
}

fn remember(context: &Context<'_>, file: &OpenFile, text: &Text) {
    let is_whole = text.start == 1 && !text.more && text.window.cuts.is_empty();
    let knowledge = Knowledge {
        version: text.version,
        stamp: file.stat().stamp(),
        extent: if is_whole { Extent::Whole } else { Extent::Part },
    };
    context.state.session(context.session_id).record_read(file.path(), knowledge);
}

fn result(request: Request, file: &OpenFile, text: Text, details: Details) -> Payload {
    let notice = notice(request, &text);
    let Text { encoding, window, start, more, ending, total, version } = text;
    let all = details == Details::All;
    let mut payload = Payload::new();
    let to = &mut payload;
    let next = start.saturating_add_unsigned(window.lines);
    spec::TEXT.put(to, window.content);
    if more {
        spec::NEXT_OFFSET.put(to, next);
    }
    if window.lines > 0 {
        let is_unknown = request.numbering == Numbering::Off && request.offset < 0;
        if all || is_unknown {
            spec::START_LINE.put(to, start);
        }
        if all {
            spec::END_LINE.put(to, next - 1);
        }
    }
    let unseen = |total: &Total| window.lines > 0 && window.lines < total.lines;
    let shown_total = total.filter(|total| all || unseen(total));
    spec::TOTAL_LINES.put_some(to, shown_total.map(|total| total.lines));
    if all || encoding != Encoding::Utf8 {
        spec::ENCODING.put(to, encoding.name());
    }
    if all || matches!(ending, LineEndings::Crlf | LineEndings::Mixed) {
        spec::LINE_ENDING.put(to, ending.name());
    }
    if all {
        spec::SIZE_BYTES.put(to, total.map_or(file.stat().size, |total| total.bytes));
    }
    spec::VERSION.put_some(to, version.map(|version| details.version(version)));
    NOTICE.put_some(to, notice);
    payload
}

/// What the caller should know beyond the fields.
fn notice(request: Request, text: &Text) -> Option<String> {
    let mut notices = Vec::new();
    match text.total {
        Some(total) if total.lines == 0 => notices.push("The file is empty.".to_owned()),
        Some(total) if text.window.lines == 0 => notices.push(format!(
            "Offset {} is past the end of the file, which has {} line{}.",
            request.offset,
            total.lines,
            if total.lines == 1 { "" } else { "s" }
        )),
        _ => {}
    }
    if text.start < 0 && text.window.lines > 0 {
        notices
            .push("Lines are numbered from the end (-1 is the last), as the file is large.".into());
    }
    if !text.window.cuts.is_empty() {
        notices
            .push(format!("Lines over {MAX_LINE} characters are cut; bash can show more of them."));
    }
    if let Encoding::Legacy(legacy) = text.encoding {
        notices.push(format!("The encoding {} is a guess.", legacy.name()));
    }
    if text.window.has_invalid_bytes {
        notices.push(format!(
            "Bytes that are not {} are shown as \u{FFFD} and cannot be matched by edit_file.",
            text.encoding.name()
        ));
    }
    (!notices.is_empty()).then(|| notices.join(" "))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests set up real files")]
mod tests;
