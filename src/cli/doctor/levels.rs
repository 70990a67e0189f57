//! Which level each setting of `sandbox` gives here: to this user, and to an ordinary one.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use serde_json::Value;
use tool_provider::config::FaultKind;
use tool_provider::view::{Style, View};
use tool_provider::{ConfigureError, Payload};

use crate::backend::{Report, WorkspaceBackend};

/// The user that nobody is, on every Linux.
const NOBODY: u32 = 65534;

/// What `doctor` is told by whoever asks it for another user, so that it asks no further.
const ASKED: &str = "PROVIDER_WORKSPACE_DOCTOR_ASKED";

/// What each setting gives.
pub(super) struct Levels {
    pub(super) full: Result<Report, ConfigureError>,
    pub(super) enforce: Result<Report, ConfigureError>,
    /// What is left where `enforce` fails.
    pub(super) best_effort: Option<Report>,
    /// The level that `enforce` gives an ordinary user, where this one is root; or why that is not
    /// known.
    pub(super) ordinary_user: Option<Result<String, String>>,
}

impl Levels {
    pub(super) fn of(config: &Payload) -> Self {
        let under = |mode: &str| {
            let mut config = config.clone();
            config.insert("sandbox".to_owned(), mode.into());
            let prepared = WorkspaceBackend::of_this_process().prepare(&config);
            prepared.map(|(_, report)| report)
        };
        let enforce = under("enforce");
        let best_effort = if enforce.is_err() { under("best_effort").ok() } else { None };
        let asks = rustix::process::geteuid().is_root() && std::env::var_os(ASKED).is_none();
        Self { full: under("full"), enforce, best_effort, ordinary_user: asks.then(ordinary_user) }
    }

    /// What the best setting that can be had achieves.
    pub(super) fn report(&self) -> Option<&Report> {
        self.enforce.as_ref().ok().or(self.best_effort.as_ref())
    }

    /// A line for `full`, and one for the other kind of user.
    pub(super) fn view(&self) -> Vec<View> {
        let full = match &self.full {
            // The configuration itself is at fault, which was said.
            Err(error) if error.kind() == FaultKind::Written => return Vec::new(),
            Ok(_) => View::text("✓ sandbox = \"full\" works", Style::Success),
            Err(error) => {
                let faults: Vec<String> =
                    error.faults().iter().map(|fault| fault.problem.clone()).collect();
                let what = format!("  sandbox = \"full\" fails: {}", faults.join("; "));
                View::plain(what)
            }
        };
        let other = match &self.ordinary_user {
            None => "  as root the levels may be others: run doctor as root to see them".to_owned(),
            Some(Ok(level)) => format!("  an ordinary user gets the level {level:?} here"),
            Some(Err(why)) => format!("  what an ordinary user gets here is not known: {why}"),
        };
        vec![full, View::plain(other)]
    }

    /// The same for a program.
    pub(super) fn json(&self, to: &mut Value) {
        to["full"] = self.full.is_ok().into();
        if let Some(Ok(level)) = &self.ordinary_user {
            to["level_of_an_ordinary_user"] = level.as_str().into();
        }
    }
}

/// Has this very program ask as a user without rights.
#[expect(clippy::disallowed_methods, reason = "this program itself, which looks at the machine")]
fn ordinary_user() -> Result<String, String> {
    let output = Command::new("/proc/self/exe")
        .args(["doctor", "--json", "--root", "/usr/lib"])
        .uid(NOBODY)
        .gid(NOBODY)
        .current_dir("/")
        .env_clear()
        .env(ASKED, "1")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("this program cannot be run as nobody: {error}"))?;
    let report: Value = serde_json::from_slice(&output.stdout)
        .map_err(|_| "doctor gave no answer as nobody".to_owned())?;
    match report["level"].as_str() {
        Some(level) => Ok(level.to_owned()),
        None => Err(report["faults"].to_string()),
    }
}
