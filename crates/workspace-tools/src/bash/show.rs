//! What a person sees of a call, before it and later.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sandbox::{Access, Jail, Level, Lifetime, Network, Subject};

use super::plain::without_escapes;
use super::{Arguments, BashSettings, spec};
use crate::change::failure;
use crate::field::NOTICE;
use tool_provider::shorten::shorten;
use tool_provider::view::{Fold, Style, View};
use tool_provider::{Payload, ToolError};
use workspace_fs::text::disguise;
use workspace_fs::text::hidden::visible;
use workspace_fs::text::name;

/// The longest line that stands for a command.
const TITLE_BYTES: usize = 100;

/// What the call would do.
pub(super) fn preview(
    arguments: &Arguments<'_>,
    settings: &BashSettings,
    jail: Option<&Jail>,
    cwd: Result<PathBuf, ToolError>,
) -> View {
    let shown = StartShown {
        command: arguments.command,
        description: arguments.description,
        stdin: arguments.stdin,
        cwd,
    };
    shown.view(settings, jail, ("timeout", &duration(arguments.timeout)))
}

/// What a person sees of a command that is to be started.
pub(crate) struct StartShown<'a> {
    pub(crate) command: &'a str,
    pub(crate) description: Option<&'a str>,
    pub(crate) stdin: Option<&'a str>,
    pub(crate) cwd: Result<PathBuf, ToolError>,
}

impl StartShown<'_> {
    /// The command and all that an approval of it rests on; `lasts` says how long it runs.
    pub(crate) fn view(
        self,
        settings: &BashSettings,
        jail: Option<&Jail>,
        lasts: (&str, &str),
    ) -> View {
        let mut parts = Vec::new();
        if let Err(error) = &self.cwd {
            parts.push(failure(error));
        }
        parts.extend(command(self.command));
        let fact = |name: &str, text: &str| View::text(format!("{name}: {text}"), Style::Dim);
        if let Ok(cwd) = self.cwd {
            parts.push(fact("directory", &name::of(&cwd)));
        }
        parts.push(fact(lasts.0, lasts.1));
        parts.push(fact("network", network(settings.policy.network)));
        parts.push(fact("may write", &writable(settings)));
        match jail {
            Some(jail) => {
                parts.extend(scratch(jail).map(|text| fact("private scratch", &text)));
                parts.extend(enforcement(jail));
            }
            None => parts.push(View::text("not configured: no roots", Style::Error)),
        }
        if let Some(stdin) = self.stdin {
            parts.push(View::Collapsible {
                summary: format!("stdin: {} bytes", stdin.len()),
                children: vec![View::code(None, visible(stdin))],
                initially: Fold::Closed,
            });
        }
        if let Some(description) = self.description.filter(|text| !text.trim().is_empty()) {
            // The model wrote it to ask for approval, so it is shown as the model's words.
            let text = format!("described as: {}", visible(description));
            parts.push(View::text(text, Style::Italic));
        }
        View::Group(parts)
    }
}

/// A call, from nothing but its arguments.
pub(crate) fn call(arguments: &Payload) -> View {
    let mut parts = Vec::new();
    if let Some(description) = spec::DESCRIPTION.get(arguments) {
        parts.push(View::text(visible(description), Style::Italic));
    }
    parts.extend(command(spec::COMMAND.get(arguments).unwrap_or_default()));
    if let Some(cwd) = spec::CWD.get(arguments) {
        parts.push(View::text(format!("directory: {}", name::shown(cwd)), Style::Dim));
    }
    View::Group(parts)
}

/// A call in one line, for a tool that needs no approval.
pub(super) fn line(tool: &str, arguments: &Payload) -> View {
    let command = spec::COMMAND.get(arguments).map(title).unwrap_or_default();
    let place = spec::CWD.get(arguments).map(|cwd| format!(" in {}", name::shown(cwd)));
    View::plain(format!("{tool}: {command}{}", place.unwrap_or_default()))
}

/// The first line of a command.
fn title(command: &str) -> String {
    let first = command.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let more = if command.trim().lines().nth(1).is_some() { " …" } else { "" };
    format!("{}{more}", shorten(&visible(first), TITLE_BYTES))
}

/// A result of this or an older version: what is missing is not shown.
/// `changes` stands behind its output.
pub(super) fn result(tool: &str, payload: &Payload, changes: Option<View>) -> View {
    let (badge, style) = badge(spec::EXIT_CODE.get(payload), spec::SIGNAL.get(payload));
    let title = spec::COMMAND.get(payload).map(title);
    let summary = [title.as_deref(), Some(badge.as_str())].into_iter().flatten();
    let summary: Vec<&str> = summary.filter(|text| !text.is_empty()).collect();

    let mut children = Vec::new();
    if let Some(command_text) = spec::COMMAND.get(payload) {
        children.extend(command(command_text));
    }
    match spec::OUTPUT.get(payload) {
        Some("") => children.push(View::text("(no output)", Style::Dim)),
        Some(output) => {
            let plain = without_escapes(output);
            children.push(View::code(None, visible(&plain)));
        }
        None => {}
    }
    if !badge.is_empty() {
        children.push(View::text(badge.clone(), style));
    }
    let facts: Vec<String> = [
        spec::DURATION_MS.unsigned(payload).map(|ms| duration(Duration::from_millis(ms))),
        spec::CWD.get(payload).map(|cwd| format!("in {}", name::shown(cwd))),
        spec::FULL_OUTPUT_PATH
            .get(payload)
            .map(|path| format!("whole output: {}", name::shown(path))),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !facts.is_empty() {
        children.push(View::text(facts.join(" · "), Style::Dim));
    }
    children.extend(changes);
    if let Some(notice) = NOTICE.get(payload) {
        children.push(View::text(visible(notice), Style::Warning));
    }
    View::Collapsible {
        summary: if summary.is_empty() { tool.to_owned() } else { summary.join(" — ") },
        children,
        initially: if style == Style::Error { Fold::Open } else { Fold::Closed },
    }
}

/// A command as it is, and warnings of what in it could be overlooked.
fn command(command: &str) -> Vec<View> {
    let shown = visible(command);
    let mut parts = vec![View::code(Some("bash"), shown.clone())];
    if shown != command {
        let warning = "the command holds characters that cannot be seen; they are shown as \\u{…}";
        parts.push(View::text(warning, Style::Warning));
    }
    if let Some(warning) = disguise::look_alike_warning((1..).zip(command.lines())) {
        parts.push(View::text(warning, Style::Warning));
    }
    parts
}

pub(crate) fn badge(exit_code: Option<i64>, signal: Option<&str>) -> (String, Style) {
    match (exit_code, signal) {
        (_, Some(signal)) => (format!("ended by {}", visible(signal)), Style::Error),
        (Some(0), None) => ("exit 0".to_owned(), Style::Success),
        (Some(code), None) => (format!("exit {code}"), Style::Error),
        (None, None) => (String::new(), Style::Normal),
    }
}

fn network(network: Network) -> &'static str {
    match network {
        Network::Deny => "closed",
        Network::Allow => "open",
    }
}

fn writable(settings: &BashSettings) -> String {
    let policy = &settings.policy;
    let paths: Vec<String> = policy
        .roots
        .iter()
        .chain(&policy.command_write)
        .map(|path| name::of(path).into_owned())
        .collect();
    paths.join(", ")
}

/// Where a write succeeds and changes nothing on the machine.
fn scratch(jail: &Jail) -> Option<String> {
    const FATE: &str = "unseen by others, discarded when the provider ends";
    const KEPT: &str = "unseen by others, kept for later sessions with the same rights";
    let private = jail.private();
    let mut writable: Vec<String> = match jail.enforcement().level {
        Level::Off => return None,
        Level::Full => ["/tmp", "/var/tmp"]
            .iter()
            .filter(|path| jail.explain(Subject::Command, Access::Write, Path::new(path)).is_some())
            .map(|&path| path.to_owned())
            .collect(),
        Level::Kernel | Level::Partial => Vec::new(),
    };
    let home = private.home.as_ref();
    let (kept, discarded): (Vec<_>, Vec<_>) =
        home.into_iter().partition(|home| home.lifetime == Lifetime::Kept);
    let own = discarded.iter().map(|home| &home.path).chain([&private.tmp]);
    for path in own.map(|path| name::of(path).into_owned()) {
        if !writable.contains(&path) {
            writable.push(path);
        }
    }
    let mut text = format!("{} ({FATE})", writable.join(", "));
    for home in kept {
        text = format!("{text}, {} ({KEPT})", name::of(&home.path));
    }
    Some(text)
}

fn enforcement(jail: &Jail) -> Vec<View> {
    let achieved = jail.enforcement();
    let (text, style) = match achieved.level {
        Level::Full => ("jail: full (namespaces, Landlock, seccomp)", Style::Dim),
        Level::Kernel => ("jail: kernel (Landlock, seccomp)", Style::Dim),
        Level::Partial => ("jail: partial", Style::Warning),
        Level::Off => {
            ("jail: off; the command may do whatever the provider's user may", Style::Warning)
        }
    };
    let mut parts = vec![View::text(text, style)];
    if !achieved.left_open.is_empty() {
        parts.push(View::text(format!("left open: {}", achieved.left_open.join(" ")), style));
    }
    parts
}

pub(crate) fn duration(duration: Duration) -> String {
    let ms = duration.as_millis();
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..60_000 => format!("{} s", decimal(ms, 1000)),
        _ => format!("{} min", decimal(ms, 60_000)),
    }
}

/// `count / unit` with at most one decimal.
fn decimal(count: u128, unit: u128) -> String {
    let tenths = count * 10 / unit;
    match tenths % 10 {
        0 => (tenths / 10).to_string(),
        tenth => format!("{}.{tenth}", tenths / 10),
    }
}

#[cfg(test)]
mod tests;
