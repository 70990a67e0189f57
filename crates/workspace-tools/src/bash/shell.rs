//! The shell that runs a command: the first that is there.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

use rustix::io::Errno;
use sandbox::{SpawnerError, Stage, StartError};

use super::{BashSettings, start_files};
use crate::process::RunError;
use tool_provider::{Category, ToolError};
use workspace_fs::text::name;

/// Starts something in the first shell that is there, and says which one that was.
pub(crate) fn in_first<'a, T>(
    settings: &'a BashSettings,
    cwd: &Path,
    mut start: impl FnMut(&'a Path) -> Result<T, RunError>,
) -> Result<(T, &'a Path), ToolError> {
    let mut missing = None;
    for shell in &settings.shells {
        match start(shell) {
            Ok(started) => return Ok((started, shell)),
            Err(RunError::Start(StartError::Stage { stage: Stage::Program, source }))
                if source.raw_os_error() != Some(rustix::io::Errno::TOOBIG.raw_os_error()) =>
            {
                missing.get_or_insert((shell, source));
            }
            Err(error) => return Err(failure(cwd, error)),
        }
    }
    Err(match missing {
        Some((shell, source)) => {
            let name = name::of(shell).into_owned();
            ToolError::execution_failed(format!("the shell {name} cannot be run: {source}"))
                .with_detail("path", name)
                .with_hint("the operator can name another one with the setting `shell`")
                .with_source(source)
        }
        None => ToolError::execution_failed("no shell is configured"),
    })
}

/// Checks that a shell can be given a command as an argument.
///
/// # Errors
/// `invalid_arguments` where it is empty, too long or holds a NUL byte.
pub(crate) fn check_command(command: &str) -> Result<(), ToolError> {
    check_text(command)?;
    if script(command).len() > LONGEST_ARGUMENT {
        return Err(ToolError::invalid_arguments(format!(
            "command is longer than {LONGEST_ARGUMENT} bytes: write a script with write_file and run that"
        )));
    }
    Ok(())
}

/// [`check_command`] for a command of any length.
pub(crate) fn check_text(command: &str) -> Result<(), ToolError> {
    if command.trim().is_empty() {
        return Err(ToolError::invalid_arguments(
            "command is empty: name what the shell should run",
        ));
    }
    if let Some(position) = command.find('\0') {
        return Err(ToolError::invalid_arguments(format!(
            "command holds a NUL byte (at byte {position}), which no shell command can carry: \
             let the command make it (printf '\\0') or pass it in stdin"
        )));
    }
    Ok(())
}

/// The longest command that fits into one argument: Linux allows 128 KiB with the NUL at its end
/// (`MAX_ARG_STRLEN`).
pub(crate) const LONGEST_ARGUMENT: usize = 128 * 1024 - 1;

/// A command as a shell takes it for one: it takes what starts with - or + for one more option.
pub(crate) fn script(command: &str) -> String {
    let guard = if command.starts_with(['-', '+']) { " " } else { "" };
    format!("{guard}{command}")
}

/// The arguments with which a shell serves a person. It reads no files of HOME, as before a command: an
/// earlier one may have written them.
pub(crate) fn interactive(shell: &Path) -> Vec<OsString> {
    let name = shell.file_name().unwrap_or(shell.as_os_str()).to_owned();
    let bare: &[&str] = match name.to_str() {
        Some("bash") => &["--norc", "--noprofile"],
        _ => &[],
    };
    [name]
        .into_iter()
        .chain(bare.iter().map(OsString::from))
        .chain(start_files::without(shell).map(OsStr::to_owned))
        .chain(["-i".into()])
        .collect()
}

/// The arguments with which a shell runs a script.
pub(crate) fn arguments(shell: &Path, script: impl Into<OsString>) -> Vec<OsString> {
    let name = shell.file_name().unwrap_or(shell.as_os_str()).to_owned();
    [name]
        .into_iter()
        .chain(start_files::without(shell).map(OsStr::to_owned))
        .chain(["-c".into(), script.into()])
        .collect()
}

/// The failure of a command that was not started.
fn failure(cwd: &Path, error: RunError) -> ToolError {
    let cwd = name::of(cwd).into_owned();
    match error {
        RunError::Pipe(source) => ToolError::from_io("make a pipe for the command", "", source),
        RunError::Start(StartError::Nul { what }) => {
            ToolError::invalid_arguments(format!("{what} holds a NUL byte"))
        }
        RunError::Start(StartError::Stage { stage: Stage::Program, source }) => {
            ToolError::invalid_arguments(
                "the command and its environment are too long to start a program with",
            )
            .with_source(source)
        }
        RunError::Start(StartError::Stage { stage: Stage::WorkingDirectory, source }) => {
            let failed = ToolError::from_io(&format!("run in {cwd}"), &cwd, source);
            match failed.category() {
                Category::PermissionDenied => failed.with_hint(
                    "the provider's user may not enter this directory, or one above it: change \
                     their permissions, or name another cwd",
                ),
                _ => failed,
            }
        }
        RunError::Start(StartError::Stage { stage, source }) => {
            short_of_something(&format!("start the command ({stage})"), &cwd, source)
        }
        RunError::Start(StartError::HandOver(source)) => {
            short_of_something("hand the command to the jail", &cwd, source)
        }
        RunError::Start(StartError::Surroundings(failed)) => no_surroundings(&cwd, failed),
        RunError::Start(gone @ StartError::SpawnerGone(_)) => {
            ToolError::execution_failed(gone.to_string())
                .with_hint("configuring the provider again makes a new jail")
                .with_source(gone)
        }
        other => {
            let raw = format!("{other:?}");
            ToolError::unknown("the command could not be started", raw).with_source(other)
        }
    }
}

/// The failure of a step that takes processes and descriptors.
fn short_of_something(action: &str, cwd: &str, source: io::Error) -> ToolError {
    let errno = Errno::from_io_error(&source);
    let failed = ToolError::from_io(action, cwd, source);
    match errno {
        Some(Errno::AGAIN) => {
            failed.with_hint("a limit of processes may be hit: the machine's, or limits.processes")
        }
        Some(Errno::TOOMANYREFS) => failed.with_hint(
            "other programs of this user have more descriptors in flight between sockets than the \
             provider may open: try again, or raise its hard limit (ulimit -Hn)",
        ),
        _ => failed,
    }
}

/// The failure of a command whose surroundings could not be made.
fn no_surroundings(cwd: &str, error: SpawnerError) -> ToolError {
    const ACTION: &str = "prepare what the command is to have of its own";
    let source = error.raw_os_error().map(io::Error::from_raw_os_error);
    let short = source.map(|source| short_of_something(ACTION, cwd, source));
    if let Some(short) = short.filter(ToolError::is_retryable) {
        return short;
    }
    let failed = StartError::Surroundings(error);
    ToolError::execution_failed(tool_provider::error::chain(&failed))
        .with_hint(
            "bash may work; `provider-workspace doctor` tells the operator what this machine grants",
        )
        .with_source(failed)
}
