//! `doctor`: what is enforced on this machine, for this configuration.

use std::process::Command;

use serde_json::Value;

use crate::cli::{Shell, text};
use crate::levels::machines;
use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        doctor_says_what_is_enforced_and_fails_where_roots_are_missing,
        doctor_reports_the_configuration_as_it_is,
        doctor_tries_shell_read_at_each_level_whatever_the_roots_are,
    ]
}

fn doctor_says_what_is_enforced_and_fails_where_roots_are_missing() {
    let shell = Shell::new();
    let healthy = shell.run(&["doctor", "--json"]);
    let report: Value = serde_json::from_slice(&healthy.stdout).unwrap();
    assert_eq!(report["enforce"].as_bool(), Some(healthy.status.success()));
    assert!(report["level"].is_string() || !healthy.status.success());
    let sick = shell.run(&["doctor", "--root", "absent"]);
    assert_eq!(sick.status.code(), Some(1));
    assert!(text(&sick.stdout).contains("absent"));
}

fn doctor_reports_the_configuration_as_it_is() {
    let shell = Shell::new();
    let config = r#"{"sandbox":"off","bash_read":["absent"],"bash_write":["gone"]}"#;
    let output = shell
        .command(&["doctor", "--config", config, "--root", "absent"])
        .env("PROVIDER_WORKSPACE_LOG", "bogus")
        .output()
        .unwrap();
    let printed = text(&output.stdout);
    let root = shell.path().canonicalize().unwrap().join("absent");
    for part in [
        "this configuration has no jail",
        "the configuration is not accepted",
        "make the directory or name another",
        "bash_read: ",
        "bash_write: ",
        "PROVIDER_WORKSPACE_LOG=\"bogus\" is no level",
        &format!("roots: [{:?}]", root.to_str().unwrap()),
    ] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    assert_eq!(printed.matches("does not exist").count(), 3, "{printed}");
    assert!(!printed.contains("fails"), "{printed}");
}

fn doctor_tries_shell_read_at_each_level_whatever_the_roots_are() {
    let shell = Shell::new();
    for machine in machines() {
        let words = machine.words();
        let mut doctor = Command::new(words[0]);
        doctor.args(&words[1..]).args(["doctor", "--json"]).current_dir(shell.path());
        let output = doctor.output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let writes = match report["level"].as_str() {
            Some("full") => "discarded",
            Some("kernel") => "refused",
            other => panic!("the level {other:?}: {report:#}"),
        };
        assert_eq!(report["shell_read"]["writes"], writes, "{report:#}");
    }
}
