//! session_start: starts a command that goes on when the call has ended.

use std::io;
use std::num::NonZeroU16;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use regex_automata::meta::Regex;
use sandbox::Level;

use crate::bash::protect::Guarded;
use crate::bash::{self, directory, notice, shell};
use crate::field::{Field, Whole};
use crate::process::RunError;
use crate::process::session::{AtEnd, EndCause, Session, SessionCommand, TerminalSize};
use crate::shell_session::answer::{Shown, add_notice, answer};
use crate::shell_session::ports::listed;
use crate::shell_session::watch::{Asks, Met, Until, Wanted, watch};
use crate::shell_session::{
    Entry, NoPlace, Ready, ShellSessions, deadline, fields, regex, show, wait, wake_on_cancel,
};
use crate::{Context, Files};
use tool_provider::shorten::{shorten, shorten_masked};
use tool_provider::view::View;
use tool_provider::{Payload, Tool, ToolError, ToolSpec};
use workspace_fs::text::hidden::one_line;

pub mod spec;

const NAME: &str = "session_start";

/// How long a call waits that says nothing else.
const WAIT_MS: u64 = 2000;

/// How much of a command the list of sessions shows.
const COMMAND_BYTES: usize = 80;

/// The longest name.
const MOST_NAME: usize = 40;

/// The tool.
pub struct SessionStart {
    shared: Arc<ShellSessions>,
    spec: ToolSpec,
}

impl SessionStart {
    /// The tool over these sessions.
    #[must_use]
    pub fn new(shared: Arc<ShellSessions>) -> Self {
        Self { shared, spec: spec::spec() }
    }
}

/// The arguments of one call, checked.
struct Arguments<'a> {
    command: &'a str,
    cwd: Option<&'a str>,
    name: Option<&'a str>,
    terminal: Option<TerminalSize>,
    ready: Option<ReadyWhen>,
    wait: Duration,
}

/// What a session is ready by.
enum ReadyWhen {
    Prints(Regex),
    Listens(u16),
}

impl<'a> Arguments<'a> {
    fn parse(payload: &'a Payload) -> Result<Self, ToolError> {
        let command = spec::COMMAND.get(payload).unwrap_or_default();
        shell::check_command(command)?;
        let name = spec::NAME_OF_SESSION.get(payload);
        if let Some(name) = name {
            check_name(name)?;
        }
        let on_terminal = spec::TTY.get(payload) == Some(true);
        let usual = TerminalSize::default();
        let size = TerminalSize {
            rows: side(&spec::ROWS, payload, 5..=200, usual.rows)?,
            columns: side(&spec::COLUMNS, payload, 20..=500, usual.columns)?,
        };
        Ok(Self {
            command,
            cwd: spec::CWD.get(payload),
            name,
            terminal: on_terminal.then_some(size),
            ready: spec::READY.get(payload).map(ready).transpose()?,
            wait: wait(payload, WAIT_MS),
        })
    }
}

fn check_name(name: &str) -> Result<(), ToolError> {
    let is_good =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.');
    if name.is_empty() || name.len() > MOST_NAME || !name.chars().all(is_good) {
        return Err(ToolError::invalid_arguments(format!(
            "name must be 1 to {MOST_NAME} letters, digits, dots, hyphens or underscores"
        )));
    }
    Ok(())
}

fn side(
    field: &Field<Whole>,
    payload: &Payload,
    range: RangeInclusive<u16>,
    usual: NonZeroU16,
) -> Result<NonZeroU16, ToolError> {
    let Some(asked) = field.get(payload) else { return Ok(usual) };
    let size = u16::try_from(asked).ok().filter(|size| range.contains(size));
    size.and_then(NonZeroU16::new).ok_or_else(|| {
        let (least, most) = (range.start(), range.end());
        ToolError::invalid_arguments(format!("{} must be {least} to {most}", field.name))
    })
}

fn ready(text: &str) -> Result<ReadyWhen, ToolError> {
    if text.is_empty() {
        return Err(ToolError::invalid_arguments(
            "ready is empty: give a regex or a port, or leave it out",
        ));
    }
    let port = port_of_address(text).unwrap_or(text);
    if port.bytes().all(|byte| byte.is_ascii_digit()) {
        let port = port.parse().ok().filter(|port| *port != 0);
        return port.map(ReadyWhen::Listens).ok_or_else(|| {
            ToolError::invalid_arguments("ready: a port is a number from 1 to 65535")
        });
    }
    regex::compile(spec::READY.name, text).map(ReadyWhen::Prints)
}

/// The port of an address on this machine that is given instead of a port.
fn port_of_address(text: &str) -> Option<&str> {
    const HOSTS: [&str; 5] = ["localhost:", "127.0.0.1:", "0.0.0.0:", "[::1]:", ":"];
    let scheme = ["http://", "https://"].iter().find_map(|scheme| text.strip_prefix(scheme));
    let address = scheme.unwrap_or(text);
    let port = HOSTS.iter().find_map(|host| address.strip_prefix(host))?;
    let port = if scheme.is_some() { port.split('/').next()? } else { port };
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    is_port.then_some(port)
}

impl Tool<Files> for SessionStart {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, arguments: &Payload, context: &Context<'_>) -> Result<Payload, ToolError> {
        let awaited = spec::READY.get(arguments).unwrap_or_default();
        let arguments = Arguments::parse(arguments)?;
        let shared = &*self.shared;
        let shared_ready = shared.ready()?;
        let no_network = has_no_network(shared_ready);
        if no_network && matches!(arguments.ready, Some(ReadyWhen::Listens(_))) {
            return Err(ToolError::permission_denied(format!("ready: {NO_SOCKETS}; give a regex"))
                .with_hint("the operator can set network = \"allow\""));
        }
        let cwd = directory::working_directory(context, arguments.cwd)?;
        context.begin_commit()?;
        let entry = self.start(&arguments, &cwd, context)?;
        let session = &entry.session;
        let _in_use = session.in_use();
        wake_on_cancel(session, context);
        let until = match arguments.ready {
            None => Until::Settled,
            Some(ReadyWhen::Prints(pattern)) => {
                Until::Matches(Wanted { pattern, from: 0, echo: None, asks: Asks::Return })
            }
            Some(ReadyWhen::Listens(port)) => Until::Listens(port),
        };
        let asked_for_ready = !matches!(until, Until::Settled);
        let deadline = deadline(arguments.wait, context);
        let met = match watch(session, context, &until, 0, deadline) {
            Ok(met) => met,
            Err(cancelled) => {
                session.stop(EndCause::Cancelled);
                session.join();
                return Err(cancelled
                    .with_hint("what was started was ended")
                    .with_detail("applied", false));
            }
        };
        let most = shared.bash.output_bytes;
        let shown = Shown::since(session, 0);
        let mut payload = answer(&entry, shown, met.found(), most, shared.settings, context);
        session.set_answered(fields::NEXT.unsigned(&payload).unwrap_or_default());
        if asked_for_ready {
            spec::IS_READY.put(&mut payload, met != Met::No);
            if met == Met::No {
                let standing = session.standing();
                add_notice(&mut payload, &not_ready(awaited, &until, standing.ports()));
            }
        }
        if no_network && session.standing().ended.is_none() {
            add_notice(&mut payload, NO_SOCKETS);
        }
        Ok(payload)
    }

    fn bare_fields(&self) -> &'static [&'static str] {
        &["output"]
    }

    fn preview(&self, arguments: &Payload, context: &Context<'_>) -> Result<View, ToolError> {
        let parsed = Arguments::parse(arguments)?;
        let cwd = directory::working_directory(context, parsed.cwd);
        let shared = &*self.shared;
        let shown = bash::show::StartShown {
            command: parsed.command,
            description: spec::DESCRIPTION.get(arguments),
            stdin: None,
            cwd,
        };
        let lasts = format!(
            "runs on after the call, until it is stopped or not used for {}",
            bash::show::duration(shared.settings.idle_limit)
        );
        Ok(shown.view(&shared.bash, shared.jail(), ("session", &lasts)))
    }

    fn render_call(&self, arguments: &Payload) -> View {
        bash::show::call(arguments)
    }

    fn render_result(&self, payload: &Payload) -> View {
        show::result(NAME, payload)
    }
}

/// What is said where commands make no sockets.
const NO_SOCKETS: &str =
    "commands have no sockets here (jail level kernel, network denied), so no server can listen";

/// What was awaited in vain, and where it listens instead.
fn not_ready(awaited: &str, until: &Until, ports: &[u16]) -> String {
    let problem = match until {
        Until::Listens(port) => format!("nothing of it listens on port {port}"),
        _ => format!("its output does not match {}", one_line(&shorten(awaited, COMMAND_BYTES))),
    };
    match listed(ports) {
        Some(ports) => format!("{problem}; it listens on {ports}"),
        None => problem,
    }
}

fn has_no_network(ready: &Ready) -> bool {
    ready.jail.enforcement().level != Level::Full && ready.jail.explain_network().is_some()
}

impl SessionStart {
    fn start(
        &self,
        arguments: &Arguments<'_>,
        cwd: &Path,
        context: &Context<'_>,
    ) -> Result<Entry, ToolError> {
        let shared = &*self.shared;
        let ready = shared.ready()?;
        let place = ready
            .sessions
            .reserve(context.session_id, arguments.name, shared.settings.most)
            .map_err(|refusal| no_place(refusal, arguments.name))?;
        let guarded = Arc::new(Mutex::new(Some(Guarded::begin(context, &ready.jail, cwd))));
        let (session, _) = shell::in_first(&shared.bash, cwd, |shell| {
            let job = self.job(arguments, shell, cwd, &guarded, ready);
            ready
                .starter
                .run(job)
                .unwrap_or_else(|| Err(RunError::Pipe(io::ErrorKind::BrokenPipe.into())))
        })?;
        let command = shorten_masked(arguments.command, COMMAND_BYTES, context.secrets);
        Ok(place.fill(command, session))
    }

    /// What starts the session, to be run on a thread that is not confined.
    fn job(
        &self,
        arguments: &Arguments<'_>,
        shell: &Path,
        cwd: &Path,
        guarded: &Arc<Mutex<Option<Guarded>>>,
        ready: &Ready,
    ) -> impl FnOnce() -> Result<Session, RunError> + Send + 'static {
        let environment = self.shared.bash.environment.clone();
        let (jail, spool) = (ready.jail.clone(), ready.spool.clone());
        let (shell, cwd) = (shell.to_owned(), cwd.to_owned());
        let argv = shell::arguments(&shell, shell::script(arguments.command));
        let terminal = arguments.terminal;
        let idle_limit = self.shared.settings.idle_limit;
        let guarded = guarded.clone();
        let settings = self.shared.bash.clone();
        let command = arguments.command.to_owned();
        move || {
            let private = jail.private();
            let env = match terminal {
                Some(_) => environment.variables_on_terminal(private),
                None => environment.variables(private),
            };
            let (of_jail, of_cwd) = (jail.clone(), cwd.clone());
            let at_end = AtEnd(Box::new(move |ended, output| {
                let report = ended.end.as_ref().ok().filter(|_| ended.stopped.is_none());
                let mut notices = report.map_or_else(Vec::new, |report| {
                    notice::of_session(&settings, &of_jail, &command, &of_cwd, report, output)
                });
                let guarded = guarded.lock().unwrap_or_else(PoisonError::into_inner).take();
                if let Some(guarded) = guarded {
                    let status = report.map(|report| report.status);
                    notices.extend(guarded.end().notices(status, &command, output));
                }
                notices
            }));
            Session::start(
                &jail,
                SessionCommand {
                    program: &shell,
                    argv,
                    env,
                    cwd,
                    terminal,
                    spool,
                    secrets: environment.secrets(),
                    idle_limit,
                    at_end,
                },
            )
        }
    }
}

fn no_place(refusal: NoPlace, name: Option<&str>) -> ToolError {
    let shown = one_line(name.unwrap_or_default()).into_owned();
    match refusal {
        NoPlace::Full(running) => ToolError::execution_failed(format!(
            "{running} sessions run already, which is the most: end one with session_stop (session_read \
             without a session lists them)"
        )),
        NoPlace::Taken => ToolError::invalid_arguments(format!(
            "a session called {shown:?} runs already: use it, end it with session_stop, or give another \
             name"
        )),
        NoPlace::Outdated => {
            ToolError::execution_failed("the provider was configured anew meanwhile: call again")
        }
    }
}
