//! What is wrong with a configuration on this machine, in the words of Configure.

use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use sandbox::JailError;
use tool_provider::config::{ConfigureError, Fault};
use tool_provider::error::chain;
use workspace_fs::{RootError, RootFault};
use workspace_tools::process::EnvironmentError;
use workspace_tools::process::outside::{self, NotAProgram};

use crate::config::Shell;

pub(super) fn unprotected(error: &io::Error) -> Fault {
    Fault::machine("protect", format!("cannot look at what git takes from the roots: {error}"))
}

pub(super) fn no_spool(directory: &Path, fault: &dyn Display) -> ConfigureError {
    let problem = format!("cannot keep outputs in {}: {fault}", directory.display());
    ConfigureError::single(Fault::machine("sandbox", problem))
}

/// The fault of a root; `None` for one that the decoder has reported already.
///
/// A directory that is not there is wrongly written. One that is there and cannot be opened is what
/// this machine, or this user on it, cannot do.
pub(super) fn root_fault(error: &RootError) -> Option<Fault> {
    let key = error.setting.name();
    let problem = match &error.fault {
        RootFault::Open { path, source } if source.kind() == ErrorKind::NotFound => {
            let shown = path.to_string_lossy();
            // A relative path, or one with ~, leads where its writer may not expect.
            let led = if shown == *error.given { String::new() } else { format!(" ({shown})") };
            format!("{:?}{led} does not exist: make the directory or name another", error.given)
        }
        RootFault::NotADirectory(_) => {
            format!("{:?} is not a directory: name a directory", error.given)
        }
        fault => format!("{:?}: {fault}", error.given),
    };
    match &error.fault {
        RootFault::NoRoot | RootFault::NoPath => None,
        RootFault::Open { source, .. }
            if !matches!(source.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
        {
            Some(Fault::machine(key, problem))
        }
        RootFault::NoWorkingDirectory(_) => Some(Fault::machine(key, problem)),
        RootFault::Open { .. }
        | RootFault::NoHome
        | RootFault::NotADirectory(_)
        | RootFault::InsideWritable { .. } => Some(Fault::written(key, problem)),
    }
}

/// What bash is to reach and is not there, reported with everything else instead of by the jail.
pub(super) fn missing(key: &'static str, paths: &[PathBuf]) -> impl Iterator<Item = Fault> {
    // What cannot be looked at is reported by the jail.
    let is_missing = |path: &&PathBuf| matches!(outside::exists(path), Ok(false));
    paths.iter().filter(is_missing).map(move |path| {
        let shown = path.to_string_lossy();
        Fault::written(key, format!("{shown:?} does not exist: make it, or leave it out"))
    })
}

/// A shell that the operator named and that no command could be run by.
pub(super) fn unusable(shell: &Shell) -> Option<Fault> {
    let Shell::Named(path) = shell else { return None };
    if !path.is_absolute() {
        // The decoder has reported that.
        return None;
    }
    let shown = path.to_string_lossy();
    Some(match outside::check_program(path).err()? {
        NotAProgram::Unknown(source) => {
            Fault::machine("shell", format!("{shown:?} cannot be run: {source}"))
        }
        fault => {
            Fault::written("shell", format!("{shown:?} {fault}: name another, or leave it out"))
        }
    })
}

pub(super) fn jail_fault(error: &JailError) -> Fault {
    let problem = chain(error);
    match error {
        JailError::Private(_) => Fault::machine(
            "sandbox",
            format!(
                "{problem}; it is made in the directory that TMPDIR names, /tmp where it names none: \
                 set TMPDIR to a directory that exists and can be written"
            ),
        ),
        JailError::SocketsInReach { .. } => Fault::written("roots", problem),
        _ => Fault::machine("sandbox", problem),
    }
}

pub(super) fn environment_fault(error: &EnvironmentError) -> Fault {
    Fault::written(error.key(), error.to_string())
}
