//! `glob`: finds files, directories and links by their names.

mod find;
mod list;
mod outcome;
mod pattern;
mod show;
pub mod spec;

use crate::classify::Classify as _;
use crate::classify::classify;
use workspace_fs::text::name;
use workspace_fs::tree::{IgnoreRules, PathGlob, Selection};
use workspace_fs::{Action, Fault, FileKind, PathArgument, ResolvedPath, Target};

use crate::field::Details;
use crate::{Context, Files};
use crate::{change, wildcards};
use find::{Page, Search, Sort};
use pattern::{Kinds, Pattern};
use tool_provider::view::View;
use tool_provider::{Payload, Tool, ToolError, ToolSpec};

/// The tool.
#[derive(Debug)]
pub struct Glob {
    spec: ToolSpec,
}

impl Default for Glob {
    fn default() -> Self {
        Self { spec: spec::spec() }
    }
}

/// The arguments, as meant.
struct Arguments<'a> {
    text: &'a str,
    pattern: Pattern,
    glob: PathGlob,
    details: Details,
    path: Option<&'a str>,
    rules: IgnoreRules,
    page: Page,
    sort: Sort,
}

/// How many paths are listed when the call does not say, and at most.
const DEFAULT_LIMIT: u64 = 100;
const MOST_LIMIT: u64 = 10_000;
/// How many of the newest are held to be put in order.
const MOST_SORTED: usize = 100_000;

impl<'a> Arguments<'a> {
    fn of(arguments: &'a Payload, context: &Context<'_>) -> Result<Self, ToolError> {
        let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let given = spec::PATTERN
            .get(arguments)
            .ok_or_else(|| ToolError::invalid_arguments("pattern must be a string"))?;
        let start = spec::START.get(arguments);
        let mut pattern = Pattern::parse(given, exists(start, context))?;
        match (spec::ONLY.get(arguments), pattern.kinds) {
            (None, _) | (Some("directory"), Kinds::Directories) => {}
            (Some(kind), Kinds::Directories) => {
                return Err(ToolError::invalid_arguments(format!(
                    "pattern {} ends in a slash and finds directories only, but kind is {kind}",
                    name::shown(given)
                ))
                .with_hint("leave out the slash, or kind"));
            }
            (Some(kind), _) => pattern.kinds = Kinds::named(kind),
        }
        let glob = PathGlob::any(&pattern.globs).map_err(|error| {
            ToolError::invalid_arguments(format!("pattern {}: {error}", name::shown(given)))
                .with_hint("a backslash before a wildcard takes its meaning away: \\[")
                .with_source(error)
        })?;
        let rules = match spec::INCLUDE_IGNORED.get(arguments) {
            Some(true) => IgnoreRules::Disregard,
            Some(false) | None => IgnoreRules::Honour,
        };
        let limit = spec::LIMIT.unsigned(arguments).unwrap_or(DEFAULT_LIMIT).clamp(1, MOST_LIMIT);
        let offset = spec::OFFSET.unsigned(arguments).unwrap_or(0);
        let page = Page { offset: whole(offset), limit: whole(limit) };
        let sort = match spec::SORT.get(arguments) {
            Some("modified") => Sort::Modified,
            Some("size") => Sort::Size,
            _ => Sort::Path,
        };
        if sort != Sort::Path && page.end() > MOST_SORTED {
            return Err(ToolError::invalid_arguments(format!(
                "offset and limit make {}, and sorted by modified or size only the first {MOST_SORTED} can \
                 be listed",
                page.end()
            ))
            .with_hint("start deeper, or sort by path"));
        }
        Ok(Self {
            text: given,
            pattern,
            glob,
            details: Details::of(arguments),
            path: start,
            rules,
            page,
            sort,
        })
    }

    /// The directory where the search starts, and what the caller calls it; or why there is nothing to
    /// match, where the pattern spells out directories that are not there.
    ///
    /// # Errors
    /// When `path` is no directory, or the search would start outside the roots.
    fn start<'w>(
        &self,
        context: &Context<'w>,
    ) -> Result<Result<(ResolvedPath<'w>, String), String>, ToolError> {
        let working_directory = context.working_directory;
        let argument = |text| PathArgument { text, working_directory };
        let directories = &self.pattern.directories;
        let path = self.path.unwrap_or(".");
        if !directories.starts_with('/') {
            let resolved = context
                .state
                .workspace
                .locate_existing(argument(path), Action::List)
                .classified()?;
            if !is_directory(&resolved) {
                return Err(no_directory(path));
            }
            if directories.is_empty() {
                return Ok(Ok((resolved, path.to_owned())));
            }
        }
        let start = match (directories.strip_prefix('/'), self.path) {
            (Some(_), _) | (None, None) => directories.as_bytes().to_vec(),
            (None, Some(path)) => [&*name::decode(path), b"/", directories.as_bytes()].concat(),
        };
        let start = name::encode(&start).into_owned();
        match context.state.workspace.locate(argument(&start), Action::List) {
            Ok(resolved) if is_directory(&resolved) => Ok(Ok((resolved, start))),
            Ok(resolved) => Ok(Err(match resolved.target {
                Target::Found { .. } => format!("{} is not a directory.", name::shown(&start)),
                Target::Missing { .. } => {
                    let workspace = &context.state.workspace;
                    let missing = workspace.not_found(&resolved, argument(&start), Action::List);
                    match &*missing.fault {
                        Fault::NotFound { near, .. } if !near.is_empty() => format!(
                            "{} Did you mean {}?",
                            no_such_directory(&start),
                            near.join(" or ")
                        ),
                        _ => no_such_directory(&start),
                    }
                }
            })),
            Err(error) => match *error.fault {
                // A pattern matches what is there. What a link leads to outside is not, as far as
                // anyone is informed.
                Fault::NotFound { .. }
                | Fault::NotADirectory(_)
                | Fault::TooManyLinks(_)
                | Fault::Outside { link: Some(_), .. } => Ok(Err(no_such_directory(&start))),
                _ => Err(classify(error)),
            },
        }
    }
}

/// Whether something is at a name from a start.
fn exists(start: Option<&str>, context: &Context<'_>) -> impl Fn(&str) -> bool {
    move |name| {
        let text = match start {
            Some(start) if !name.starts_with('/') => {
                name::encode(&[&*name::decode(start), b"/", name.as_bytes()].concat()).into_owned()
            }
            _ => name::encode(name.as_bytes()).into_owned(),
        };
        let path = PathArgument { text: &text, working_directory: context.working_directory };
        let resolved = context.state.workspace.locate(path, Action::List);
        resolved.is_ok_and(|resolved| matches!(resolved.target, Target::Found { .. }))
    }
}

fn no_such_directory(path: &str) -> String {
    format!("there is no directory {}.", name::shown(path))
}

fn is_directory(resolved: &ResolvedPath<'_>) -> bool {
    matches!(&resolved.target, Target::Found { stat, .. } if stat.kind == FileKind::Directory)
}

fn no_directory(path: &str) -> ToolError {
    ToolError::invalid_arguments(format!(
        "cannot list {}: it is not a directory",
        name::shown(path)
    ))
    .with_detail("path", path)
    .with_hint("path names the directory to start from; the pattern names files in it")
}

impl Tool<Files> for Glob {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, arguments: &Payload, context: &Context<'_>) -> Result<Payload, ToolError> {
        wildcards::search_or_literally(arguments, spec::PATTERN, outcome::is_empty, |arguments| {
            find(arguments, context)
        })
    }

    fn preview(&self, arguments: &Payload, context: &Context<'_>) -> Result<View, ToolError> {
        let meant = Arguments::of(arguments, context)?;
        Ok(match meant.start(context) {
            Ok(_) => self.render_call(arguments),
            Err(error) => change::failure(&error),
        })
    }

    fn render_call(&self, arguments: &Payload) -> View {
        show::call(arguments)
    }

    fn render_result(&self, payload: &Payload) -> View {
        show::result(payload)
    }

    fn bare_fields(&self) -> &'static [&'static str] {
        &[spec::FOUND.name]
    }
}

fn find(arguments: &Payload, context: &Context<'_>) -> Result<Payload, ToolError> {
    let arguments = Arguments::of(arguments, context)?;
    let started = match arguments.start(context)? {
        Err(why) => Err(why),
        Ok((resolved, text)) => Ok((resolved.start(&text, arguments.rules).classified()?, text)),
    };
    let start = started.as_ref().map(|(start, text)| (start, text.as_str()));
    let search = Search {
        start: start.map_err(String::as_str),
        selection: Selection::new(arguments.rules).with_glob(arguments.glob.clone()),
        glob: &arguments.glob,
        kinds: arguments.pattern.kinds,
        page: arguments.page,
        sort: arguments.sort,
        details: arguments.details,
    };
    let found = search.run(context)?;
    let mut payload = Payload::new();
    found.put(&mut payload, &arguments);
    Ok(payload)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests set up real files")]
mod tests;
