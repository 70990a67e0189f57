//! Runs the checker.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::bad_provider::VARIABLE;

/// The program that checks.
const CHECKER: &str = env!("CARGO_BIN_EXE_provider-workspace-conform");

/// The provider of this repository. `cargo build` puts it beside the checker.
pub(crate) fn ours() -> PathBuf {
    let ours = Path::new(CHECKER).with_file_name("provider-workspace");
    assert!(ours.exists(), "{} is missing: run cargo build", ours.display());
    ours
}

/// What the checker said of one provider.
pub(crate) struct Checked {
    pub(crate) code: Option<i32>,
    pub(crate) report: Value,
}

impl Checked {
    /// Checks the small provider with a fault, or with none where it is empty. `more` is what else
    /// the settings hold, as JSON.
    pub(crate) fn bad(fault: &str, more: &str, arguments: &[&str]) -> Self {
        let (_directory, file) = settings(fault, more);
        let file = file.to_str().unwrap();
        Self::of(&this_program(), &[&["--config", file], arguments].concat())
    }

    /// Checks a provider.
    pub(crate) fn of(provider: &Path, arguments: &[&str]) -> Self {
        let output = conform(provider, &[&["--json"], arguments].concat());
        let stdout = String::from_utf8(output.stdout).unwrap();
        let report = serde_json::from_str(&stdout).unwrap_or_else(|error| {
            panic!("{error}: {stdout}{}", String::from_utf8_lossy(&output.stderr))
        });
        Self { code: output.status.code(), report }
    }

    fn checks(&self) -> &[Value] {
        self.report["checks"].as_array().unwrap()
    }

    /// The ids of all checks.
    pub(crate) fn ids(&self) -> Vec<&str> {
        self.checks().iter().map(|check| check["id"].as_str().unwrap()).collect()
    }

    /// The check of this id.
    pub(crate) fn check(&self, id: &str) -> &Value {
        let found = self.checks().iter().find(|check| check["id"] == id);
        found.unwrap_or_else(|| panic!("there is no check {id}"))
    }

    /// Everything that is no pass.
    pub(crate) fn not_passed(&self) -> Vec<&Value> {
        self.checks().iter().filter(|check| check["outcome"] != "pass").collect()
    }
}

/// Runs the command.
pub(crate) fn conform(provider: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(CHECKER);
    command.arg(provider).args(arguments).stdin(Stdio::null());
    command.output().unwrap()
}

/// The small provider, when [`VARIABLE`] is set.
pub(crate) fn this_program() -> PathBuf {
    std::env::current_exe().unwrap()
}

/// A file that makes this program a provider with a fault, and holds `more`; it goes with the
/// directory.
pub(crate) fn settings(fault: &str, more: &str) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("conform.json");
    let mut settings: Value = serde_json::from_str(more).unwrap();
    settings["environment"] = json!({VARIABLE: fault});
    std::fs::write(&file, settings.to_string()).unwrap();
    (directory, file)
}
