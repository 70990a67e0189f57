//! `shell`: an interactive shell in the jail, on the person's terminal.
//!
//! The shell has a terminal of its own, and this process passes on what is typed and printed: on the
//! person's own terminal, a command could type into it.

use std::io::{self, Read as _, Write as _};
use std::num::NonZeroU16;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetwinsize, tcsetattr};
use sandbox::ExitStatus;
use signal_hook::consts::SIGWINCH;
use signal_hook::low_level::pipe;

use super::CliError;
use super::args::RootOptions;
use super::files::Source;
use super::host::configuration;
use super::output::Output;
use super::paint::Ink;
use crate::backend::WorkspaceBackend;
use workspace_tools::process::session::{EndCause, Session, TerminalSize};

/// The most that is passed on at once, in bytes.
const PIECE: usize = 64 * 1024;

/// How long nothing may change before it is looked again whether anything did.
const LONG: Duration = Duration::from_secs(60);

pub(super) fn run(options: &RootOptions, output: Output) -> Result<ExitCode, CliError> {
    let failed =
        |what| move |source: rustix::io::Errno| CliError::Io { what, source: source.into() };
    let stdin = io::stdin();
    if !isatty(&stdin) || !isatty(io::stdout()) {
        return Err(CliError::NoTerminal);
    }
    let block = configuration(options, &mut Source::default())?;
    let size = size(&tcgetwinsize(&stdin).map_err(failed("ask for the terminal's size"))?);
    let shell = WorkspaceBackend::of_this_process().interactive(&block, size)?;
    let level = shell.report.enforcement.level;
    output.note("jail", Ink::Green, &format!("{level}; leave with exit or Ctrl-D"));
    let session = shell.session;
    // Nobody else uses it, and it does not end for want of use.
    let _in_use = session.in_use();
    follow_size(&session).map_err(|source| CliError::Io { what: "wait for signals", source })?;
    let raw = Raw::begin().map_err(failed("take the terminal"))?;
    let typing = session.clone();
    // It ends with the process: nothing wakes a read from a terminal.
    thread::Builder::new()
        .name("keys".to_owned())
        .spawn(move || pass_keys(&typing))
        .map_err(|source| CliError::Io { what: "start a thread", source })?;
    let passed = pass_output(&session);
    session.stop(EndCause::Stopped);
    session.join();
    drop(raw);
    passed?;
    let status =
        session.standing().ended.and_then(|ended| ended.end.as_ref().ok().map(|end| end.status));
    Ok(ExitCode::from(
        status
            .map(ExitStatus::shell_code)
            .and_then(|code| u8::try_from(code).ok())
            .unwrap_or(super::exit::FAILED),
    ))
}

fn size(window: &rustix::termios::Winsize) -> TerminalSize {
    let usual = TerminalSize::default();
    TerminalSize {
        rows: NonZeroU16::new(window.ws_row).unwrap_or(usual.rows),
        columns: NonZeroU16::new(window.ws_col).unwrap_or(usual.columns),
    }
}

/// Gives the shell's terminal the size of the person's, whenever that changes.
fn follow_size(session: &Arc<Session>) -> io::Result<()> {
    let (mut signals, sender) = UnixStream::pair()?;
    pipe::register(SIGWINCH, sender)?;
    let session = session.clone();
    thread::Builder::new().name("size".to_owned()).spawn(move || {
        while signals.read(&mut [0; 64]).is_ok_and(|count| count > 0) {
            if let Ok(window) = tcgetwinsize(io::stdin()) {
                session.resize(size(&window));
            }
        }
    })?;
    Ok(())
}

fn pass_keys(session: &Session) {
    let mut keys = [0; 4096];
    let mut stdin = io::stdin().lock();
    loop {
        match stdin.read(&mut keys) {
            Ok(0) => return session.stop(EndCause::Stopped),
            Ok(count) => {
                // Who does not read what is typed gets no more of it, as on any terminal.
                let _ = session.write(&keys[..count]);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return session.stop(EndCause::Stopped),
        }
    }
}

fn pass_output(session: &Session) -> Result<(), CliError> {
    let mut stdout = io::stdout().lock();
    let mut from = 0;
    loop {
        let standing = session.standing();
        from = from.max(standing.begin);
        while from < standing.end {
            let piece = session.bytes(from, PIECE);
            from += piece.len() as u64;
            stdout
                .write_all(&piece)
                .and_then(|()| stdout.flush())
                .map_err(|_| CliError::OutputClosed)?;
        }
        if standing.ended.is_some() {
            return Ok(());
        }
        session.wait_beyond(&standing, Instant::now() + LONG);
    }
}

/// The person's terminal, which passes on each key until this is dropped.
struct Raw(Termios);

impl Raw {
    fn begin() -> rustix::io::Result<Self> {
        let stdin = io::stdin();
        let before = tcgetattr(stdin.as_fd())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(stdin.as_fd(), OptionalActions::Drain, &raw)?;
        Ok(Self(before))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin().as_fd(), OptionalActions::Drain, &self.0);
    }
}
