//! `conform` starts a program of its own, which lies beside this one.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::cli::text;
use crate::environment::copy_program;
use crate::harness::PROGRAM;
use crate::trials::{Need, Trial};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        the_checker_gets_the_arguments_as_they_are_and_answers_with_its_own_exit_code,
        who_has_no_checker_learns_where_to_get_it,
        the_checkers_help_is_that_of_conform needs [Need::Built(CHECKER)],
    ]
}

/// The program that checks.
const CHECKER: &str = "provider-workspace-conform";

/// A copy of the program, in a directory of its own.
struct Copied {
    directory: tempfile::TempDir,
}

impl Copied {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        copy_program(Path::new(PROGRAM), &directory.path().join("program"));
        Self { directory }
    }

    fn checker(&self) -> PathBuf {
        self.directory.path().join(CHECKER)
    }

    fn write_checker(&self, script: &str, mode: u32) {
        let written = self.directory.path().join("script");
        fs::write(&written, script).unwrap();
        copy_program(&written, &self.checker());
        fs::set_permissions(self.checker(), Permissions::from_mode(mode)).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> Output {
        // By a link: what counts is where the program itself is.
        let elsewhere = tempfile::tempdir().unwrap();
        let link = elsewhere.path().join("link");
        std::os::unix::fs::symlink(self.directory.path().join("program"), &link).unwrap();
        Command::new(&link).args(arguments).output().unwrap()
    }
}

fn the_checker_gets_the_arguments_as_they_are_and_answers_with_its_own_exit_code() {
    let copied = Copied::new();
    copied.write_checker("#!/bin/sh\nfor argument; do echo \"<$argument>\"; done\nexit 7\n", 0o700);
    for (given, passed_on) in [
        (&["conform", "a b", "--limit", "60", "--json"][..], "<a b>\n<--limit>\n<60>\n<--json>\n"),
        (&["conform", "--help"], "<--help>\n"),
        (&["conform", "--unknown", "x", "--color", "no"], "<--unknown>\n<x>\n<--color>\n<no>\n"),
        (&["--color=always", "conform", "x"], "<--color=always>\n<x>\n"),
        (&["conform"], ""),
    ] {
        let output = copied.run(given);
        assert_eq!(text(&output.stdout), passed_on, "{given:?}: {}", text(&output.stderr));
        assert_eq!(output.status.code(), Some(7), "{given:?}");
    }
}

fn who_has_no_checker_learns_where_to_get_it() {
    let copied = Copied::new();
    let said = |output: &Output, bytes: &[u8], why: &str| {
        let said = text(bytes);
        assert_eq!(output.status.code(), Some(2), "{said}");
        for part in [copied.checker().to_str().unwrap(), why, "cargo install --path crates/conform"]
        {
            assert!(said.contains(part), "{part} is not in: {said}");
        }
    };
    let output = copied.run(&["conform", "x"]);
    said(&output, &output.stderr, "No such file");
    let output = copied.run(&["conform", "x", "--json"]);
    said(&output, &output.stdout, "No such file");
    copied.write_checker("#!/bin/sh\n", 0o600);
    let output = copied.run(&["conform", "x"]);
    said(&output, &output.stderr, "Permission denied");
}

/// The real one: its help names the command that was typed.
fn the_checkers_help_is_that_of_conform() {
    let output = Command::new(PROGRAM).args(["conform", "--help"]).output().unwrap();
    let help = text(&output.stdout);
    assert!(help.contains("Usage: provider-workspace conform [OPTIONS] <BINARY>"), "{help}");
    assert!(output.status.success(), "{help}");
}
