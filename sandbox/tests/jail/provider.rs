//! A provider of its own, for stories in which the provider dies, is looked at or finds another
//! kernel: this program once more, with `ROOT PROGRAM [ARGUMENT]…`.

use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, ExitCode, Stdio};
use std::time::Instant;

use sandbox::{Command, Jail, Mode, Namespaces, Policy, harden_provider};

use crate::fixture::{TEST_TIMEOUT, readable};

const ARGUMENT: &str = "__provider";

/// A provider that runs beside its story and never outlives it.
pub(crate) struct Provider {
    pub(crate) child: Child,
    stdout: BufReader<ChildStdout>,
}

/// A provider over `base/root`, with `base/tmp` for temporary files; the command is to be added.
pub(crate) fn provider(base: &Path) -> std::process::Command {
    provider_under(crate::fixture::this_program().as_os_str(), &[], base)
}

/// The same as the last arguments of another program.
pub(crate) fn provider_under(
    program: &std::ffi::OsStr,
    arguments: &[&std::ffi::OsStr],
    base: &Path,
) -> std::process::Command {
    let (root, tmp) = (base.join("root"), base.join("tmp"));
    for directory in [&root, &tmp] {
        fs::create_dir_all(directory).unwrap();
    }
    let mut command = std::process::Command::new(program);
    command.args(arguments).arg(ARGUMENT).arg(root).env("TMPDIR", tmp);
    command
}

impl Provider {
    pub(crate) fn start(command: &mut std::process::Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdout }
    }

    /// The next line that its command prints.
    pub(crate) fn line(&mut self) -> String {
        let deadline = Instant::now() + TEST_TIMEOUT;
        let said = !self.stdout.buffer().is_empty() || readable(self.stdout.get_ref(), deadline);
        assert!(said, "the provider said nothing");
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.kill();
    }
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
    if std::env::var_os("JAILED_OPEN").is_none() {
        harden_provider()?;
    }
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
        input: sandbox::Input::Fixed,
        stdout: io::stdout().as_fd().try_clone_to_owned()?,
        stderr: io::stderr().as_fd().try_clone_to_owned()?,
        limits: None,
    })?;
    Ok(u8::try_from(running.wait()?.status.shell_code()).unwrap_or(1))
}
