//! A provider of its own, for stories in which the provider dies or finds another kernel: this
//! program once more, with `ROOT PROGRAM [ARGUMENT]…`.

use std::error::Error;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;

use sandbox::{Command, Jail, Mode, Namespaces, Policy};

const ARGUMENT: &str = "__provider";

/// The command line of a provider, up to the root.
pub(crate) fn provider() -> std::process::Command {
    let mut command = std::process::Command::new(crate::arena::this_program());
    command.arg(ARGUMENT);
    command
}

/// Runs the program in a jail when this process was started as a provider.
pub(crate) fn run_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != ARGUMENT {
        return None;
    }
    Some(match run(arguments.next()?, arguments.collect()) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let _ = writeln!(io::stderr(), "provider: {error}");
            ExitCode::FAILURE
        }
    })
}

fn run(root: OsString, argv: Vec<OsString>) -> Result<u8, Box<dyn Error>> {
    let root = PathBuf::from(root);
    let program = PathBuf::from(argv.first().ok_or("which program?")?);
    let jail = Jail::build(&Policy {
        roots: vec![root.clone()],
        namespaces: match std::env::var("JAILED_NAMESPACES").as_deref() {
            Ok("never") => Namespaces::Never,
            _ => Namespaces::Auto,
        },
        mode: match std::env::var("JAILED_MODE").as_deref() {
            Ok("best_effort") => Mode::BestEffort,
            _ => Mode::Enforce,
        },
        ..Policy::default()
    })?;
    let mut errors = io::stderr();
    writeln!(errors, "level {}", jail.enforcement().level)?;
    for sentence in &jail.enforcement().left_open {
        writeln!(errors, "open: {sentence}")?;
    }
    let running = jail.start(Command {
        program,
        argv,
        env: vec![
            ("PATH".into(), std::env::var_os("PATH").unwrap_or_default()),
            ("TMPDIR".into(), jail.private().tmp.clone().into()),
        ],
        cwd: root,
        stdin: io::stdin().as_fd().try_clone_to_owned()?,
        stdout: io::stdout().as_fd().try_clone_to_owned()?,
        stderr: io::stderr().as_fd().try_clone_to_owned()?,
        limits: None,
    })?;
    Ok(u8::try_from(running.wait()?.status.shell_code()).unwrap_or(1))
}
