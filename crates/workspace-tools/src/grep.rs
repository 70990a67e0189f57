//! `grep`: finds lines that match a pattern, in a file or in all files beneath a directory.

mod arguments;
mod collect;
mod compile;
mod expression;
mod headings;
mod interruptible;
mod matcher;
mod notice;
mod pattern;
mod pike_vm;
mod report;
mod search;
mod show;
mod snippet;
pub mod spec;
mod types;

use crate::classify::Classify as _;
use std::num::NonZero;

use super::field::{Details, NOTICE};
use super::prefix::Prefix;
use crate::{Context, Files, change, wildcards};
use arguments::{Arguments, Around, DEFAULT_PER_FILE};
use collect::{Hits, Lines, SearchLimits};
use headings::Gaps;
use notice::SearchReport;
use report::{Full, Layout, Listed, Pages};
use search::Search;
use tool_provider::view::View;
use tool_provider::{Payload, Tool, ToolError, ToolSpec};
use workspace_fs::text::name;
use workspace_fs::tree::{
    self, Counts, Named, Options, Selection, Skip, Start, StopCondition, StopReason,
};
use workspace_fs::{Action, FileKind, PathArgument, Target};

/// The tool.
#[derive(Debug)]
pub struct Grep {
    spec: ToolSpec,
}

impl Default for Grep {
    fn default() -> Self {
        Self { spec: spec::spec() }
    }
}

impl Tool<Files> for Grep {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, arguments: &Payload, context: &Context<'_>) -> Result<Payload, ToolError> {
        wildcards::search_or_literally(arguments, spec::GLOB, report::is_empty, |arguments| {
            search(arguments, context)
        })
    }

    fn preview(&self, arguments: &Payload, context: &Context<'_>) -> Result<View, ToolError> {
        let parsed = Arguments::of(arguments, exists(context))?;
        parsed.wanted.compile(context)?;
        Ok(match start(&parsed, context) {
            Ok(_) => self.render_call(arguments),
            Err(fault) => change::failure(&fault),
        })
    }

    fn render_call(&self, arguments: &Payload) -> View {
        show::call(arguments)
    }

    fn render_result(&self, payload: &Payload) -> View {
        show::result(payload)
    }

    fn bare_fields(&self) -> &'static [&'static str] {
        &[spec::HITS.name, spec::FILES.name, spec::FILE_COUNTS.name]
    }
}

fn search(arguments: &Payload, context: &Context<'_>) -> Result<Payload, ToolError> {
    let arguments = Arguments::of(arguments, exists(context))?;
    let pattern = arguments.wanted.compile(context)?;
    let start = start(&arguments, context)?;
    // One more than the page holds shows whether there is more.
    let page = arguments.page;
    let want = page.offset.saturating_add(page.limit).saturating_add(1);
    let lines = if arguments.wanted.multiline { Lines::Many } else { Lines::One };
    let most_per_file = arguments.most_per_file.unwrap_or(match start.kind() {
        FileKind::Directory => DEFAULT_PER_FILE,
        _ => usize::MAX,
    });
    let limits = SearchLimits { mode: arguments.mode, lines, skip: 0, want, most_per_file };
    let secrets = context.secrets.clone();
    let search = Search { pattern, around: arguments.around, limits, secrets };
    let cancelled = || context.cancel.is_cancelled();
    let until = StopCondition { cancelled: &cancelled, deadline: context.search_deadline() };
    let mut again = |path: &[u8], skip: usize| {
        let limits = SearchLimits { skip, ..limits };
        let search = Search {
            pattern: search.pattern.clone(),
            secrets: search.secrets.clone(),
            limits,
            ..search
        };
        search_one(&start, path, &search, until)
    };
    let prefix = Prefix::of(arguments.path);
    let gaps = match arguments.around == Around::default() {
        true => Gaps::Silent,
        false => Gaps::Marked,
    };
    let (mode, details) = (arguments.mode, arguments.details);
    let layout = Layout { mode, details, gaps, page, most_per_file };
    let mut pages = Pages::new(context, prefix, layout, &mut again);
    let options = Options { want, threads: None };
    let summary = tree::walk(&start, &arguments.selection, &search, options, until, &mut pages)
        .map_err(|error| ToolError::from_io("start a search", arguments.path, error))?;
    if context.cancel.is_cancelled() {
        return Err(ToolError::cancelled("the search was cancelled"));
    }
    let listed = pages.finish();
    let outcome = match (listed.full, summary.stop_reason) {
        (Some(full), _) => SearchOutcome::Full(full),
        (None, StopReason::Stopped) => SearchOutcome::Stopped(summary.open),
        (None, StopReason::All | StopReason::Enough) if listed.is_cut => {
            SearchOutcome::Stopped(None)
        }
        (None, StopReason::All | StopReason::Enough) => SearchOutcome::All,
    };
    let counts = match &outcome {
        SearchOutcome::Full(full) => full.counts,
        SearchOutcome::Stopped(_) | SearchOutcome::All => summary.counts,
    };
    if let (SearchOutcome::Stopped(_), true) = (&outcome, listed.count == 0) {
        return Err(nothing_in_time(counts));
    }
    let start = start.kind();
    let report = SearchReport {
        listed: &listed,
        arguments: &arguments,
        outcome: &outcome,
        counts,
        named: &summary.named,
        start,
    };
    let notice = report.notice();
    Ok(result(listed, &arguments, &outcome, counts, notice))
}

/// How a search ended.
enum SearchOutcome {
    /// All was searched.
    All,
    /// The page is full, and there is more.
    Full(Full),
    /// Time was up; everything before this path was searched.
    Stopped(Option<Vec<u8>>),
}

/// Whether something is at a name from a start.
fn exists(context: &Context<'_>) -> impl Fn(&str, &str) -> bool {
    |start, name| {
        let text =
            name::encode(&[&*name::decode(start), b"/", name.as_bytes()].concat()).into_owned();
        let path = PathArgument { text: &text, working_directory: context.working_directory };
        let resolved = context.state.workspace.locate(path, Action::Read);
        resolved.is_ok_and(|resolved| matches!(resolved.target, Target::Found { .. }))
    }
}

fn start(arguments: &Arguments<'_>, context: &Context<'_>) -> Result<Start, ToolError> {
    let text = arguments.path;
    let path = PathArgument { text, working_directory: context.working_directory };
    let resolved = context.state.workspace.locate_existing(path, Action::Read).classified()?;
    resolved.start(text, arguments.selection.ignore_rules()).classified()
}

/// Searches the one file at `path` below a start.
fn search_one(
    start: &Start,
    path: &[u8],
    search: &Search,
    until: StopCondition<'_>,
) -> Option<Hits> {
    struct One(Option<Hits>);
    impl tree::Report<Hits> for One {
        fn found(&mut self, batch: Vec<tree::Found<Hits>>) -> std::ops::ControlFlow<()> {
            self.0 = batch.into_iter().next().map(|found| found.found);
            std::ops::ControlFlow::Continue(())
        }
        fn progress(&mut self, _: u64) {}
    }
    let start = start.file_beneath(path).ok()?;
    let options = Options { want: usize::MAX, threads: Some(NonZero::<usize>::MIN) };
    let mut one = One(None);
    let all = Selection::default();
    tree::walk(&start, &all, search, options, until, &mut one).ok()?;
    one.0
}

fn nothing_in_time(counts: Counts) -> ToolError {
    ToolError::timeout(format!(
        "the search's time is up: no match in the {} files that were searched until then",
        counts.searched
    ))
    .with_detail("files_searched", counts.searched)
    .with_hint("search a narrower path, glob or type")
}

fn result(
    mut listed: Listed,
    arguments: &Arguments<'_>,
    outcome: &SearchOutcome,
    counts: Counts,
    notice: Option<String>,
) -> Payload {
    let mut payload = Payload::new();
    let to = &mut payload;
    listed.put(to);
    if matches!(outcome, SearchOutcome::Full(_)) {
        spec::NEXT_OFFSET.put(to, arguments.page.offset.saturating_add(listed.count));
    }
    if arguments.details == Details::All {
        let total = listed.matches.filter(|_| matches!(outcome, SearchOutcome::All));
        spec::TOTAL_MATCHES.put_some(to, total);
        spec::FILES_SEARCHED.put(to, counts.searched);
        let mut skipped = Payload::new();
        spec::BINARY.put(&mut skipped, counts.skipped(Skip::Binary));
        spec::TOO_LARGE.put(&mut skipped, counts.skipped(Skip::TooLarge));
        spec::UNREADABLE.put(&mut skipped, counts.skipped(Skip::Unreadable));
        spec::SKIPPED.put(to, skipped);
    }
    NOTICE.put_some(to, notice);
    payload
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests set up real files")]
mod tests;
