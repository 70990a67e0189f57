//! session_write: types into a session.

use std::sync::Arc;
use std::time::{Duration, Instant};

use regex_automata::meta::Regex;
use rustix::process::Signal;

use crate::process::session::Session;
use crate::shell_session::answer::{Shown, answer};
use crate::shell_session::keys::{Arrows, Key, Press, keys};
use crate::shell_session::watch::{Asks, Met, Until, Wanted, watch};
use crate::shell_session::{ShellSessions, deadline, fields, regex, show, wait, wake_on_cancel};
use crate::{Context, Files};
use tool_provider::shorten::shorten;
use tool_provider::view::{Style, View};
use tool_provider::{Payload, Tool, ToolError, ToolSpec};
use workspace_fs::text::hidden::{one_line, visible};

pub mod spec;

const NAME: &str = "session_write";

/// How long a call waits that says nothing else.
const WAIT_MS: u64 = 2000;

/// How long a call waits for a pattern that does not say how long.
const WAIT_FOR_PATTERN_MS: u64 = 10_000;

/// The tool.
pub struct SessionWrite {
    shared: Arc<ShellSessions>,
    spec: ToolSpec,
}

impl SessionWrite {
    /// The tool over these sessions.
    #[must_use]
    pub fn new(shared: Arc<ShellSessions>) -> Self {
        Self { shared, spec: spec::spec() }
    }
}

impl Tool<Files> for SessionWrite {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, arguments: &Payload, context: &Context<'_>) -> Result<Payload, ToolError> {
        let shared = &*self.shared;
        let name = named(arguments)?;
        let pattern = pattern(arguments)?;
        let wait = wait(arguments, if pattern.is_some() { WAIT_FOR_PATTERN_MS } else { WAIT_MS });
        let entry = shared.find(context, name)?;
        let session = &entry.session;
        let _in_use = session.in_use();
        if session.standing().ended.is_some() {
            return Err(ToolError::execution_failed(format!(
                "session {name} has ended: session_read shows how, session_start starts another"
            )));
        }
        wake_on_cancel(session, context);
        let typed = typed(arguments, session, name)?;
        context.begin_commit()?;
        let from = session.standing().end;
        send(typed, session, name)?;
        let waits_for_pattern = pattern.is_some();
        let until = match pattern {
            Some(pattern) => {
                let echo = session.is_on_terminal().then(|| typed_text(arguments));
                Until::Matches(Wanted { pattern, from, echo, asks: Asks::Return })
            }
            None if fields::WAIT_MS.get(arguments).is_some() => Until::WaitsForInput,
            None => Until::Settled,
        };
        let mut met = Met::No;
        if !wait.is_zero() || waits_for_pattern {
            met = watch(session, context, &until, from, deadline(wait, context))
                .map_err(|cancelled| cancelled.with_detail("applied", true))?;
        }
        let shown = Shown::since(session, from);
        let most = shared.bash.output_bytes;
        let mut payload = answer(&entry, shown, met.found(), most, shared.settings, context);
        session.set_answered(fields::NEXT.unsigned(&payload).unwrap_or_default());
        if waits_for_pattern {
            spec::MATCHED.put(&mut payload, met.found().is_some());
        }
        Ok(payload)
    }

    fn bare_fields(&self) -> &'static [&'static str] {
        &["output"]
    }

    fn preview(&self, arguments: &Payload, _: &Context<'_>) -> Result<View, ToolError> {
        named(arguments)?;
        pattern(arguments)?;
        Ok(self.render_call(arguments))
    }

    fn render_call(&self, arguments: &Payload) -> View {
        let mut parts = vec![show::line("types into session", arguments)];
        if let Some(text) = spec::TEXT.get(arguments) {
            parts.push(View::code(None, visible(text)));
        }
        if let Some(keys) = spec::KEYS.get(arguments) {
            parts.push(View::text(format!("keys: {}", one_line(keys)), Style::Code));
        }
        View::Group(parts)
    }

    fn render_result(&self, payload: &Payload) -> View {
        show::result(NAME, payload)
    }
}

fn named(arguments: &Payload) -> Result<&str, ToolError> {
    fields::SESSION
        .get(arguments)
        .ok_or_else(|| ToolError::invalid_arguments("session: a string is required"))
}

/// What to wait for, where there is something to type at all.
fn pattern(arguments: &Payload) -> Result<Option<Regex>, ToolError> {
    let named = spec::KEYS.get(arguments).unwrap_or_default();
    if spec::TEXT.get(arguments).unwrap_or_default().is_empty() && named.trim().is_empty() {
        return Err(ToolError::invalid_arguments("nothing to type: give text, keys or both"));
    }
    let unknown = keys(named, Arrows::Usual).into_iter().find_map(|key| match key {
        Key::Unknown(word) => Some(word),
        _ => None,
    });
    if let Some(word) = unknown {
        return Err(ToolError::invalid_arguments(format!(
            "keys: there is no key {}: there are Enter, Tab, Space, Esc, Backspace, Up, Down, Left, Right, \
             Home, End, PageUp, PageDown, Insert, Delete, F1 to F12, with C- (Ctrl), M- (Alt) or S- (Shift) \
             before them; what is to be typed as it is goes into text",
            one_line(&shorten(&word, 40))
        )));
    }
    let until = spec::UNTIL.get(arguments);
    until.map(|until| regex::compile(spec::UNTIL.name, until)).transpose()
}

/// What a terminal echoes of a call.
fn typed_text(arguments: &Payload) -> String {
    let mut typed = spec::TEXT.get(arguments).unwrap_or_default().to_owned();
    for key in keys(spec::KEYS.get(arguments).unwrap_or_default(), Arrows::Usual) {
        match key {
            Key::Text(text) => typed.push_str(&text),
            Key::Press(_, Press::Bytes(bytes)) => typed.push_str(&String::from_utf8_lossy(&bytes)),
            Key::Press(..) | Key::Unknown(_) => {}
        }
    }
    typed
}

/// What a call types, in order.
enum Typed {
    Bytes(Vec<u8>),
    Signal(Signal),
    EndOfInput,
}

/// How long a program may take to read one key before the next comes: keys that come together are taken for
/// pasted text, and an Esc for a part of the next key.
const BETWEEN_KEYS: Duration = Duration::from_millis(250);

/// How often it is looked whether it has.
const STEP: Duration = Duration::from_millis(2);

fn typed(arguments: &Payload, session: &Session, name: &str) -> Result<Vec<Typed>, ToolError> {
    let arrows = match session.has_application_keys() {
        true => Arrows::Application,
        false => Arrows::Usual,
    };
    let text = spec::TEXT.get(arguments).filter(|text| !text.is_empty());
    let mut typed: Vec<Typed> =
        text.into_iter().map(|text| Typed::Bytes(text.as_bytes().to_vec())).collect();
    for key in keys(spec::KEYS.get(arguments).unwrap_or_default(), arrows) {
        let (name_of_key, press) = match key {
            Key::Text(text) => {
                typed.push(Typed::Bytes(text.into_bytes()));
                continue;
            }
            Key::Press(name, press) => (name, press),
            // Refused before.
            Key::Unknown(_) => continue,
        };
        typed.push(match (press, session.is_on_terminal()) {
            // A terminal makes a line feed of it, unless a program wants to see the key itself.
            (Press::Bytes(bytes), true) if bytes == b"\n" => Typed::Bytes(b"\r".to_vec()),
            (Press::Bytes(bytes), _) | (Press::OnlyOnTerminal(bytes), true) => {
                Typed::Bytes(bytes)
            }
            (Press::Control(byte), true) => Typed::Bytes(vec![byte]),
            (Press::Control(3), false) => Typed::Signal(Signal::INT),
            (Press::Control(0x1c), false) => Typed::Signal(Signal::QUIT),
            (Press::Control(4), false) => Typed::EndOfInput,
            (Press::Control(_) | Press::OnlyOnTerminal(_), _) => {
                return Err(ToolError::invalid_arguments(format!(
                    "keys: {} means nothing without a terminal, and {name} has none: start it with tty: \
                     true, or use text, Enter, Tab, C-c (interrupt) and C-d (end of input)",
                    one_line(&name_of_key)
                )));
            }
        });
    }
    Ok(typed)
}

/// Types all of it, or as much as is taken.
fn send(typed: Vec<Typed>, session: &Session, name: &str) -> Result<(), ToolError> {
    for (number, typed) in typed.into_iter().enumerate() {
        if number > 0 && session.is_on_terminal() {
            wait_until_read(session);
        }
        match typed {
            Typed::Signal(signal) => session.signal(signal.as_raw()),
            Typed::EndOfInput => session.close_input(),
            Typed::Bytes(bytes) => session.write(&bytes).map_err(|full| {
                ToolError::execution_failed(format!(
                    "session {name} does not read its input: {full}, and nothing was added to it"
                ))
                .with_detail("applied", number > 0)
                .with_source(full)
            })?,
        }
    }
    Ok(())
}

fn wait_until_read(session: &Session) {
    let latest = Instant::now() + BETWEEN_KEYS;
    loop {
        let standing = session.standing();
        if !standing.has_unread_input || standing.ended.is_some() || Instant::now() >= latest {
            return;
        }
        session.wait_beyond(&standing, latest.min(Instant::now() + STEP));
    }
}
