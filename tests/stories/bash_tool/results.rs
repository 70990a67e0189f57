//! What a command's result says.

use std::path::Path;

use serde_json::json;
use tool_provider::{Category, Tool, ToolErrorKind};
use workspace_tools::{Grep, ReadFile};

use super::fixture::{Fixture, read};
use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        every_way_to_end_is_a_result_with_its_own_status,
        a_result_has_every_field_that_its_schema_requires,
        nothing_waits_for_a_person,
        input_reaches_the_command_whole_and_both_ways_at_once,
        a_command_too_long_for_an_argument_runs_all_the_same,
        nonsense_is_refused_before_anything_runs,
        a_missing_shell_is_replaced_and_that_is_said,
        a_command_sees_the_listed_variables_and_nothing_of_ours,
        temporary_files_and_caches_go_to_private_directories,
        long_output_keeps_head_and_tail_and_a_file_with_all_of_it,
        invalid_bytes_are_shown_as_such,
        output_is_what_a_terminal_would_show_in_the_end_and_the_file_has_what_was_printed,
    ]
}

fn every_way_to_end_is_a_result_with_its_own_status() {
    let fixture = Fixture::new();
    std::fs::write(fixture.root.join("noexec"), "echo hi").unwrap();
    for (command, code, signal, output) in [
        ("echo out", 0, None, "out\n"),
        ("echo out; exit 3", 3, None, "out\n"),
        ("false", 1, None, ""),
        ("echo out; kill -9 $$", 137, Some("SIGKILL"), "out\n"),
        ("kill -TERM $$", 143, Some("SIGTERM"), ""),
        ("sh -c 'kill -SEGV $$'; exit $?", 139, None, ""),
        ("no_such_command_x 2>/dev/null", 127, None, ""),
        ("./noexec 2>/dev/null", 126, None, ""),
    ] {
        let answer = fixture.run(json!({ "command": command }));
        let result = answer.result();
        assert_eq!(result["exit_code"], code, "{command}: {result:?}");
        assert_eq!(result.get("signal").and_then(|s| s.as_str()), signal, "{command}");
        // bash itself may add a line about a child that died.
        assert!(result["output"].as_str().unwrap().starts_with(output), "{command}: {result:?}");
        assert_eq!(answer.exit(), (code, signal.map(str::to_owned)), "{command}");
    }
}

fn a_result_has_every_field_that_its_schema_requires() {
    use tool_provider::schema::{Kind, Presence};
    let fixture = Fixture::new();
    let result = fixture.result("echo out; echo err >&2");
    let Kind::Object(properties) = &fixture.bash().spec().output.kind else { panic!() };
    // The provider adds which tool it was.
    for property in properties.iter().filter(|property| property.name != "tool") {
        let there = result.contains_key(property.name);
        assert_eq!(there, property.presence == Presence::Required, "{}", property.name);
    }
    for name in result.keys() {
        assert!(properties.iter().any(|property| property.name == name), "{name}");
    }
}

fn nothing_waits_for_a_person() {
    let fixture = Fixture::new();
    let answer = fixture.run(json!({"command":
        "cat; echo A=$?; cat <<< a >/dev/null; read y; echo B=$?; readlink /proc/self/fd/0; \
         (exec 3</dev/tty) 2>/dev/null; echo C=$?"}));
    let output = answer.result()["output"].as_str().unwrap();
    assert!(output.contains("A=0\nB=1\n") && output.contains("C=1\n"), "{output}");
    assert!(output.contains("/null\n"), "{output}");
}

fn input_reaches_the_command_whole_and_both_ways_at_once() {
    let fixture = Fixture::new();
    let text = "0123456789abcdef".repeat(100_000);
    let answer = fixture.run(json!({"command": "tee copy | tail -c 16", "stdin": text}));
    assert_eq!(answer.result()["output"], "0123456789abcdef");
    assert_eq!(read(fixture.root.join("copy")), text);
    // More than both pipes hold, while the command writes as much as it reads.
    let answer = fixture.run(json!({"command": "cat", "stdin": text}));
    assert_eq!(answer.streamed()[0].1, text);
    // A command need not read any of it.
    let answer = fixture.run(json!({"command": "head -c 3; exec <&-; echo", "stdin": text}));
    assert_eq!(answer.result()["output"], "012\n");
}

fn a_command_too_long_for_an_argument_runs_all_the_same() {
    let fixture = Fixture::new();
    let long = format!("x={}\necho ${{#x}}; cat; readlink /proc/self/fd/0", "y".repeat(200_000));
    let answer = fixture.run(json!({"command": long}));
    let output = answer.result()["output"].as_str().unwrap();
    assert!(output.starts_with("200000\n") && output.ends_with("/null\n"), "{output}");
    let answer = fixture
        .run(json!({"command": long.replace("; readlink /proc/self/fd/0", ""), "stdin": "input"}));
    assert_eq!(answer.result()["output"], "200000\ninput");
}

fn nonsense_is_refused_before_anything_runs() {
    let fixture = Fixture::new();
    for command in ["", "  \n", "echo a\0b"] {
        let answer = fixture.run(json!({ "command": command }));
        assert_eq!(answer.error().category(), Category::InvalidArguments);
        assert_eq!(answer.error().kind(), ToolErrorKind::Validation);
        assert!(answer.events.is_empty());
    }
    let answer = fixture.run(json!({"command": "-echo 2>/dev/null"}));
    assert_eq!(answer.result()["exit_code"], 127, "a command, not an option of the shell");
}

fn a_missing_shell_is_replaced_and_that_is_said() {
    let fixture = Fixture::with(|settings| {
        settings.shells = vec!["/nonexistent/bash".into(), "/bin/sh".into()];
    });
    let result = fixture.result("echo $0");
    assert_eq!(result["output"], "sh\n");
    assert!(result["notice"].as_str().unwrap().contains("/nonexistent/bash"), "{result:?}");

    let fixture = Fixture::with(|settings| settings.shells = vec!["/nonexistent/bash".into()]);
    let answer = fixture.run(json!({"command": "true"}));
    assert_eq!(answer.error().category(), Category::ExecutionFailed);
    assert!(answer.error().message().contains("/nonexistent/bash"), "{}", answer.error());
}

fn a_command_sees_the_listed_variables_and_nothing_of_ours() {
    let fixture = Fixture::new();
    let result = fixture.result("env; echo; tr '\\0' '\\n' </proc/$PPID/environ");
    let output = result["output"].as_str().unwrap();
    let (own, rest) = output.split_once("\n\n").unwrap();
    for line in ["PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0"] {
        assert!(own.lines().any(|seen| seen == line), "{line}: {own}");
    }
    for name in ["PATH", "HOME", "LANG", "TERM", "TMPDIR", "XDG_CACHE_HOME"] {
        assert!(own.lines().any(|line| line.starts_with(&format!("{name}="))), "{name}: {own}");
    }
    // cargo sets these for every test, so they are in our environment.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    assert!(!own.contains("CARGO_MANIFEST_DIR=") && !rest.contains("CARGO_MANIFEST_DIR="));
}

fn temporary_files_and_caches_go_to_private_directories() {
    let fixture = Fixture::new();
    let result = fixture.result(
        "set -e; f=$(mktemp); case $f in $TMPDIR/*) ;; *) echo $f;; esac; \
         mkdir -p $XDG_CACHE_HOME/x; echo ok >$XDG_CACHE_HOME/x/y; cat $XDG_CACHE_HOME/x/y",
    );
    assert_eq!((&result["output"], &result["exit_code"]), (&json!("ok\n"), &json!(0)));
}

fn long_output_keeps_head_and_tail_and_a_file_with_all_of_it() {
    let fixture = Fixture::with(|settings| settings.output_bytes = 2000);
    let result = fixture.result("seq 1 100000");
    let output = result["output"].as_str().unwrap();
    assert!(output.starts_with("1\n2\n") && output.ends_with("\n99999\n100000\n"), "{output}");
    assert!(output.contains(" bytes left out; read_file and grep take full_output_path …]"));
    assert!(output.len() < 2100, "{output}");
    let all = read(result["full_output_path"].as_str().unwrap());
    assert_eq!(all.lines().count(), 100_000);
    // read_file reads it, and nothing else there is to be found by it.
    let read_file = |path: &str| {
        fixture.other(Box::new(ReadFile::default()), json!({"path": path, "offset": 99_999}))
    };
    let file = result["full_output_path"].as_str().unwrap();
    let window = read_file(file).unwrap();
    assert_eq!(window["total_lines"], 100_000);
    assert!(window["text"].as_str().unwrap().contains("100000"), "{window:?}");
    let hits =
        fixture.other(Box::new(Grep::default()), json!({"path": file, "pattern": "^77777$"}));
    assert!(format!("{:?}", hits.unwrap()).contains("77777"));
    let denied = read_file(&format!("{}/../../lock", Path::new(file).parent().unwrap().display()));
    let denied = denied.unwrap_err();
    assert_eq!(denied.category(), Category::PermissionDenied);
    assert!(!denied.message().contains("spool]") && !denied.message().contains("spool,"));
    // A later command may read it, but not change it.
    let path = result["full_output_path"].as_str().unwrap();
    let result =
        fixture.result(&format!("tail -n 1 {path}; (echo x >{path}) 2>/dev/null; echo $?"));
    assert_eq!(result["output"], "100000\n1\n");
}

fn invalid_bytes_are_shown_as_such() {
    let fixture = Fixture::new();
    let result = fixture.result(r"printf 'a\xffb\xe2\x82'");
    assert_eq!(result["output"], "a\u{fffd}b\u{fffd}");
}

fn output_is_what_a_terminal_would_show_in_the_end_and_the_file_has_what_was_printed() {
    let fixture = Fixture::with(|settings| settings.output_bytes = 1000);
    let bar = r"printf '\033[32mbuilding\033[0m\r\n'; \
                for n in $(seq 1000); do printf '\r%s/1000' $n; done; printf '\nab\bc\n'";
    let answer = fixture.run(json!({ "command": bar }));
    let result = answer.result();
    assert_eq!(result["output"], "building\n1000/1000\nac\n");
    assert!(!result.contains_key("full_output_path"), "nothing is left out: {result:?}");
    // What the host streams to a person is raw.
    let (_, raw) = &answer.streamed()[0];
    assert!(raw.starts_with("\u{1b}[32mbuilding\u{1b}[0m\r\n\r1/1000\r2/1000"), "{raw}");
    let result = fixture.result(&format!("{bar}; seq 1000"));
    let kept = read(result["full_output_path"].as_str().unwrap());
    assert!(kept.starts_with("\u{1b}[32mbuilding\u{1b}[0m\r\n\r1/1000\r2/1000"));
    assert!(result["output"].as_str().unwrap().starts_with("building\n1000/1000\nac\n1\n2\n"));
}
