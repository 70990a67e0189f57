//! What shell_read can keep from staying here, tried with a command that does nothing.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use sandbox::{Command, Jail, Level, StartError, Surroundings};
use serde_json::{Value, json};
use tool_provider::error::chain;
use tool_provider::view::{Style, View};

/// What was found.
pub(super) enum ShellRead {
    /// Layers take what is written, but in these directories and files, which are read-only.
    Layers { read_only: Vec<PathBuf> },
    /// Nothing can be written but in a directory of the command's own.
    NoWriting,
    /// It refuses to run, or cannot.
    Unavailable(String),
}

/// What stays open without layers.
const OPEN_WITHOUT_LAYERS: &str = "shell_read: what others write into a named pipe that commands may read can be \
     taken out of it, files that are read get a new time of access, and commands can lock them until they end";

impl ShellRead {
    pub(super) fn try_it(jail: &Jail, shell: &Path) -> Self {
        let level = jail.enforcement().level;
        if jail.throw_away().is_none() {
            return Self::Unavailable(format!(
                "it refuses to run at the level {:?}: nothing would keep what commands do from staying",
                level.name()
            ));
        }
        match (run(jail, shell), level) {
            (Err(problem), _) => Self::Unavailable(problem),
            (Ok(read_only), Level::Full) => Self::Layers { read_only },
            (Ok(_), _) => Self::NoWriting,
        }
    }

    pub(super) fn view(&self) -> Vec<View> {
        let works = |text: &str| View::text(format!("✓ shell_read: {text}"), Style::Success);
        let warning = |text: String| View::text(format!("! {text}"), Style::Warning);
        match self {
            Self::Layers { read_only } => {
                let mut nodes = vec![works("what commands write is discarded after them")];
                nodes.extend(read_only.iter().map(|path| {
                    warning(format!(
                        "shell_read: {} is read-only for it, as nothing can take what is written there",
                        path.display()
                    ))
                }));
                nodes
            }
            Self::NoWriting => vec![
                works(
                    "commands write in a directory of their own only; builds and tests need namespaces",
                ),
                warning(OPEN_WITHOUT_LAYERS.to_owned()),
            ],
            Self::Unavailable(problem) => {
                vec![View::text(format!("✗ shell_read: {problem}"), Style::Warning)]
            }
        }
    }

    pub(super) fn json(&self) -> Value {
        match self {
            Self::Layers { read_only } => json!({"writes": "discarded", "read_only": read_only}),
            Self::NoWriting => json!({"writes": "refused", "left_open": [OPEN_WITHOUT_LAYERS]}),
            Self::Unavailable(problem) => json!({"unavailable": problem}),
        }
    }
}

/// Runs the shell, and returns what got no layer.
#[expect(clippy::disallowed_methods, reason = "a device that holds nothing")]
fn run(jail: &Jail, shell: &Path) -> Result<Vec<PathBuf>, String> {
    let null = || -> Result<OwnedFd, String> {
        let file = std::fs::File::options().read(true).write(true).open("/dev/null");
        file.map(Into::into).map_err(|error| format!("/dev/null cannot be opened: {error}"))
    };
    let command = Command {
        program: shell.to_owned(),
        argv: [shell.as_os_str(), "-c".as_ref(), ":".as_ref()].map(OsString::from).to_vec(),
        env: Vec::new(),
        // Open to commands at every level: without namespaces / is not, and a root may be closed to its user.
        cwd: "/proc".into(),
        stdin: null()?,
        input: sandbox::Input::Fixed,
        stdout: null()?,
        stderr: null()?,
        limits: None,
    };
    let failed = |error: StartError| chain(&error);
    let running = jail.start_in(Surroundings::ThrowAway, command).map_err(failed)?;
    let report = running.wait().map_err(|error| chain(&error))?;
    Ok(report.changes.map(|changes| changes.read_only).unwrap_or_default())
}
