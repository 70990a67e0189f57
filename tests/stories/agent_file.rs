//! `doctor` and a host's agent.hcl: what of it will not load, and why. That its grammar is the
//! host's is tested by `tests/interop`.

use std::fs::{create_dir, read_dir, write};
use std::path::Path;

use serde_json::{Value, json};

use crate::cli::{Shell, text};
use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_file_that_init_wrote_loads_and_a_damaged_one_does_not,
        every_example_loads,
        the_file_s_configuration_is_the_one_that_is_reported,
        roots_are_looked_for_where_the_host_runs,
        a_file_that_is_named_has_to_be_there,
    ]
}

/// What `doctor` says of the file that it finds, or of the one that is named.
fn diagnosis(shell: &Shell, more: &[&str]) -> Value {
    let output = shell.run(&[&["doctor", "--json"], more].concat());
    serde_json::from_slice(&output.stdout).unwrap()
}

fn problems(diagnosis: &Value) -> Vec<(u64, &str)> {
    let problems = diagnosis["agent_file"]["problems"].as_array().unwrap().iter();
    problems
        .map(|problem| (problem["line"].as_u64().unwrap(), problem["problem"].as_str().unwrap()))
        .collect()
}

fn a_file_that_init_wrote_loads_and_a_damaged_one_does_not() {
    let shell = Shell::new();
    assert_eq!(diagnosis(&shell, &[])["agent_file"], Value::Null);

    assert!(shell.run(&["init", "--write"]).status.success());
    let found = diagnosis(&shell, &[]);
    assert_eq!(found["agent_file"]["name"], "workspace");
    assert_eq!(problems(&found), []);
    let printed = text(&shell.run(&["doctor"]).stdout);
    assert!(printed.contains("✓ agent.hcl: loads as \"workspace\""), "{printed}");

    let whole = text(&shell.run(&["init"]).stdout);
    let damaged = whole.replace("workspace.*", "workspaces.*").replace("roots =", "root =");
    write(shell.path().join("agent.hcl"), damaged).unwrap();
    let output = shell.run(&["doctor"]);
    let printed = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1));
    for part in [
        "✗ agent.hcl does not load as it should",
        "agent.hcl:13: root: unknown key; did you mean \"roots\"?",
        "agent.hcl:11: roots: required",
        "agent.hcl:16: no agent_profile names a tool of \"workspace\"",
    ] {
        assert!(printed.contains(part), "{part} is not in {printed}");
    }

    write(shell.path().join("agent.hcl"), "settings { a = 1, b = 2 }\n").unwrap();
    let found = diagnosis(&shell, &[]);
    assert_eq!(found["agent_file"]["parsed"], false);
    let [(1, problem)] = problems(&found)[..] else { panic!("{found}") };
    assert!(problem.contains("write each argument on a line of its own"), "{problem}");
}

fn every_example_loads() {
    let home = tempfile::tempdir().unwrap();
    for inside in ["src", "src/library", "src/handbook", ".cache", ".cache/build"] {
        create_dir(home.path().join(inside)).unwrap();
    }
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let files = read_dir(examples).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|end| end == "hcl")).collect();
    assert!(files.len() >= 4, "{files:?}");
    for file in files {
        let shell = Shell::new();
        let mut command = shell.command(&["doctor", "--json", "--agent-file"]);
        let output = command.arg(&file).env("HOME", home.path()).output().unwrap();
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(problems(&found), [], "{}", file.display());
    }
}

fn the_file_s_configuration_is_the_one_that_is_reported() {
    let shell = Shell::new();
    create_dir(shell.path().join("inner")).unwrap();
    assert!(shell.run(&["init", "--write", "--root", "inner"]).status.success());
    let inner = json!([shell.path().canonicalize().unwrap().join("inner")]);
    assert_eq!(diagnosis(&shell, &[])["roots"], inner);
    // Unless another is given.
    assert_ne!(diagnosis(&shell, &["--root", "."])["roots"], inner);
}

fn roots_are_looked_for_where_the_host_runs() {
    let shell = Shell::new();
    create_dir(shell.path().join("project")).unwrap();
    let init = ["init", "--out", "project/agent.hcl", "--root", ".", "--root", "absent"];
    assert!(shell.run(&init).status.success());
    let found = diagnosis(&shell, &["--agent-file", "project/agent.hcl"]);
    let [(13, problem)] = problems(&found)[..] else { panic!("{found}") };
    assert!(problem.contains("project/absent") && problem.contains("does not exist"), "{problem}");
    create_dir(shell.path().join("project/absent")).unwrap();
    assert_eq!(problems(&diagnosis(&shell, &["--agent-file", "project/agent.hcl"])), []);
}

fn a_file_that_is_named_has_to_be_there() {
    let shell = Shell::new();
    let output = shell.run(&["doctor", "--agent-file", "absent.hcl"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("cannot read absent.hcl"));
}
