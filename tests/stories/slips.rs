//! Small mistakes at the command line.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::cli::{Shell, text};
use crate::harness::PROGRAM;
use crate::trials::{Need, Trial};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        each_slip_is_reported_with_its_remedy,
        a_name_that_is_no_text_is_given_as_results_show_it,
        a_command_that_prints_nothing_prints_nothing,
        render_takes_what_json_printed,
        a_time_that_is_over_at_once_is_a_timeout_too,
        in_a_directory_that_was_deleted_absolute_roots_still_work,
        a_reader_that_has_enough_hears_no_complaint,
        bash_completes_tools_and_their_flags,
        a_directory_that_may_not_be_entered_is_said_to_be_one needs [Need::OrdinaryUser],
    ]
}

/// The exit code, and what went to standard output and to standard error.
fn outputs(shell: &Shell, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = shell.run(arguments);
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn each_slip_is_reported_with_its_remedy() {
    let shell = Shell::new();
    let cases: [(&[&str], &str, &str); 7] = [
        (&["call", "grep", "@Override"], "cannot read Override", "such as --pattern"),
        (&["call", "bash", "ls", "--config", "x"], "--config: not a JSON object", "\"network\""),
        (&["call", "bash", "ls", "--config", "@a.txt"], "not a JSON object", "hold one JSON"),
        (&["call", "bash", "-"], "arguments: not a JSON object", "hold one JSON object"),
        (&["call", "bash", "{ ls; }"], "arguments: not a JSON object", "such as --command"),
        (&["render", "stored.json"], "payload: not a JSON object", "@FILE reads it"),
        (
            &["call", "bash", "ls", "--root", ".", "--config", r#"{"roots":["/"]}"#],
            "roots is given twice: by --root and in --config",
            "leave out --root",
        ),
    ];
    for (line, error, hint) in cases {
        let (code, stdout, stderr) = outputs(&shell, line);
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{line:?}: {stderr}");
        let (first, rest) = stderr.split_once('\n').unwrap();
        assert!(first.starts_with("error: ") && first.contains(error), "{line:?}: {stderr}");
        assert!(rest.contains("hint: ") && rest.contains(hint), "{line:?}: {stderr}");
    }
}

fn a_name_that_is_no_text_is_given_as_results_show_it() {
    use std::os::unix::ffi::OsStrExt as _;
    let shell = Shell::new();
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9.txt");
    std::fs::write(shell.path().join(name), "found\n").unwrap();
    let output = shell.command(&["call", "read_file"]).arg(name).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains(r#"'"caf\351.txt"'"#), "{}", text(&output.stderr));
    let (code, stdout, _) = outputs(&shell, &["call", "read_file", r#""caf\351.txt""#]);
    assert!(code == Some(0) && stdout.contains("found"), "{stdout}");
}

/// What a shell's `$(…)` takes from a command is what the command printed.
fn a_command_that_prints_nothing_prints_nothing() {
    let shell = Shell::new();
    assert_eq!(outputs(&shell, &["call", "bash", "true"]), (Some(0), String::new(), String::new()));
    let (code, stdout, stderr) = outputs(&shell, &["call", "bash", "exit 3"]);
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (Some(3), "", "exit code: 3\n"));
    let (code, stdout, stderr) = outputs(&shell, &["call", "bash", "kill -9 $$"]);
    assert_eq!((code, stdout.as_str()), (Some(137), ""));
    assert!(stderr.starts_with("exit code: 137 (SIGKILL)\n"), "{stderr}");
}

fn render_takes_what_json_printed() {
    let shell = Shell::new();
    let rendered = |call: &[&str]| {
        let printed = shell.run(&[&["call"], call, &["--json"]].concat()).stdout;
        let mut child = shell
            .command(&["render"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&printed).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", text(&printed));
        text(&output.stdout)
    };
    let bash = rendered(&["bash", "echo one; echo two; exit 3"]);
    assert!(bash.contains("one\n  two") && bash.contains("exit 3"), "{bash}");
    let read = rendered(&["read_file", "a.txt"]);
    assert!(read.starts_with("lines 1–2 of 2\n"), "{read}");
    let failed = rendered(&["read_file", "b.txt"]);
    assert!(failed.contains("not_found") && failed.contains("a.txt"), "{failed}");
}

fn a_time_that_is_over_at_once_is_a_timeout_too() {
    let shell = Shell::new();
    let line = ["call", "bash", "sleep 60", "--timeout", "0.000001"];
    let (code, _, stderr) = outputs(&shell, &line);
    assert_eq!(code, Some(124), "{stderr}");
    assert!(stderr.contains("hint: "), "{stderr}");
    let output = shell.run(&[&line[..], &["--json"]].concat());
    let event: Value = serde_json::from_slice(output.stdout.trim_ascii_end()).unwrap();
    assert_eq!((output.status.code(), &event["error"]["category"]), (Some(124), &"timeout".into()));
}

fn in_a_directory_that_was_deleted_absolute_roots_still_work() {
    let shell = Shell::new();
    let gone = tempfile::tempdir().unwrap();
    let run = |root: &str| {
        let line =
            "cd \"$1\" && rmdir \"$1\" && exec \"$0\" call read_file \"$2/a.txt\" --root \"$3\"";
        std::fs::create_dir_all(gone.path()).unwrap();
        let mut command = Command::new("/bin/sh");
        command.args(["-c", line, PROGRAM]).arg(gone.path()).arg(shell.path()).arg(root);
        command.output().unwrap()
    };
    let output = run(shell.path().to_str().unwrap());
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("hello"));
    let output = run(".");
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("name an absolute path"), "{}", text(&output.stderr));
}

/// As with `… | head -1`: that the command was cut short is what the reader wanted.
fn a_reader_that_has_enough_hears_no_complaint() {
    let shell = Shell::new();
    let mut child = shell
        .command(&["call", "bash", "yes"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::with_capacity(16, child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((line.as_str(), output.status.code()), ("y\n", Some(141)));
    assert_eq!(text(&output.stderr), "");
}

fn bash_completes_tools_and_their_flags() {
    let shell = Shell::new();
    let script = shell.path().join("completions.bash");
    std::fs::write(&script, shell.run(&["completions", "bash"]).stdout).unwrap();
    // What bash does at a tab, to the function that the script registered.
    let harness = r#"
        source "$1" || exit 9; shift
        function=$(complete -p provider-workspace | sed 's/.*-F \([^ ]*\).*/\1/')
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        "$function" "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        echo "${COMPREPLY[*]}"
    "#;
    let completed = |words: &[&str]| {
        let mut command = Command::new("bash");
        command.args(["--norc", "-c", harness, "bash"]).arg(&script).arg("provider-workspace");
        let output = command.args(words).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout).trim_end().to_owned()
    };
    assert_eq!(completed(&["pre"]), "preview");
    assert_eq!(completed(&["call", "gr"]), "grep");
    assert_eq!(completed(&["call", "grep", "--ignore-c"]), "--ignore-case");
    assert_eq!(completed(&["call", "grep", "--mode", "f"]), "files");
    assert_eq!(completed(&["apply", "edit_file", "--old"]), "--old-string");
    assert_eq!(completed(&["apply", "r"]), "");
}

fn a_directory_that_may_not_be_entered_is_said_to_be_one() {
    use std::os::unix::fs::PermissionsExt;
    let shell = Shell::new();
    let closed = shell.path().join("closed");
    std::fs::create_dir(&closed).unwrap();
    let set = |mode| std::fs::set_permissions(&closed, PermissionsExt::from_mode(mode)).unwrap();
    set(0o000);
    let (code, _, stderr) = outputs(&shell, &["call", "bash", "ls", "--root", "closed"]);
    set(0o700);
    assert_eq!(code, Some(4), "{stderr}");
    assert!(stderr.contains("hint: the provider's user may not enter this directory"), "{stderr}");
}
