//! The command line.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::harness::PROGRAM;
use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_person_reads_a_file_in_the_current_directory,
        arguments_may_come_from_standard_input_and_events_as_json,
        failures_end_with_the_code_of_their_category_and_say_what_to_do,
        roots_bound_what_a_call_reaches,
        preview_render_and_schema_have_something_to_show,
        a_reader_that_leaves_ends_the_command_as_sigpipe_would,
        an_output_that_takes_nothing_is_a_failure,
        a_relative_cwd_starts_from_the_current_directory,
        a_call_whose_time_is_up_ends_with_124,
        a_commands_own_colours_are_neither_obeyed_nor_spelled_out,
        whoever_reads_json_gets_failures_as_json_too,
        json_has_nothing_in_it_that_a_terminal_obeys,
        bash_finds_what_was_written_through_a_link_under_both_names,
        flags_stand_for_the_schema_and_a_bare_word_for_its_first_argument,
        a_command_may_be_written_as_words,
        what_is_applied_is_what_was_shown,
        colours_into_a_pipe_come_only_when_forced_and_then_alone,
        a_diff_is_grouped_and_in_colour_has_line_numbers_and_marks,
        pages_name_every_tool_and_its_flags,
        a_pipe_gets_bytes_and_no_colours,
        what_is_found_is_greppable_in_a_pipe,
    ]
}

pub(crate) struct Shell {
    directory: tempfile::TempDir,
    /// For what the provider keeps.
    state: tempfile::TempDir,
}

impl Shell {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a.txt"), "hello\n\x1b[31mred\n").unwrap();
        Self { directory, state: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(arguments).current_dir(self.path()).stdin(Stdio::null());
        command.env("XDG_STATE_HOME", self.state.path());
        command
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn a_person_reads_a_file_in_the_current_directory() {
    let shell = Shell::new();
    let output = shell.run(&["call", "read_file", r#"{"path":"a.txt"}"#]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let stdout = text(&output.stdout);
    assert!(stdout.contains("hello"), "{stdout}");
    assert_eq!(text(&output.stderr), "");
}

fn arguments_may_come_from_standard_input_and_events_as_json() {
    let shell = Shell::new();
    let mut child = shell
        .command(&["call", "read_file", "-", "--json", "--mtls", "--timeout", "20"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(br#"{"path": "a.txt"}"#).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let stdout = text(&output.stdout);
    let events: Vec<Value> =
        stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events.len(), 1);
    assert_eq!(
        (&events[0]["event"], &events[0]["payload"]["text"]),
        (&json!("result"), &json!("1:hello\n2:\u{1b}[31mred\n"))
    );
}

fn failures_end_with_the_code_of_their_category_and_say_what_to_do() {
    let shell = Shell::new();
    let cases: [(&[&str], i32, &str); 8] = [
        (&["call", "read_file", r#"{"path":"b.txt"}"#], 3, "not_found"),
        (&["call", "read_file", r#"{"pth":"a.txt"}"#], 2, "did you mean"),
        (&["call", "raed_file"], 2, "read_file"),
        (&["call", "read_file", "{"], 2, "not a JSON object"),
        (&["call", "read_file", "a.txt", "--path", "b.txt"], 2, "given twice"),
        (&["call", "read_file", "--root", "absent", r#"{"path":"a.txt"}"#], 2, "absent"),
        (&["call", "read_file", "-", "--config", "-"], 2, "once only"),
        (&["call", "read_file", "@absent.json"], 2, "cannot read absent.json"),
    ];
    for (arguments, code, part) in cases {
        let output = shell.run(arguments);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
        assert!(stderr.starts_with("error: ") && stderr.contains(part), "{arguments:?}: {stderr}");
        assert!(output.stdout.is_empty());
    }
    assert_eq!(shell.run(&["cal"]).status.code(), Some(2));
}

fn roots_bound_what_a_call_reaches() {
    let shell = Shell::new();
    let inner = shell.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    let outside = format!(r#"{{"path":{:?}}}"#, shell.path().join("a.txt"));
    let denied = shell.run(&["call", "read_file", &outside, "--root", "inner"]);
    assert_eq!(denied.status.code(), Some(4));
    assert!(text(&denied.stderr).contains("permission_denied"));
    let allowed = shell.run(&[
        "call",
        "read_file",
        &outside,
        "--root",
        "inner",
        "--read-only-root",
        "a.txt/..",
    ]);
    assert_eq!(allowed.status.code(), Some(2), "a file is no directory");
    let allowed = shell.run(&["call", "read_file", &outside, "--root", "."]);
    assert!(allowed.status.success(), "{}", text(&allowed.stderr));
}

fn preview_render_and_schema_have_something_to_show() {
    let shell = Shell::new();
    let preview = shell.run(&["preview", "read_file", r#"{"path":"a.txt"}"#]);
    assert!(preview.status.success() && text(&preview.stdout).contains("a.txt"));

    let stored = r#"{"tool":"read_file","path":"a.txt","content":"stored"}"#;
    let render = shell.run(&["render", stored]);
    assert!(render.status.success() && text(&render.stdout).contains("stored"));
    assert_eq!(shell.run(&["render", "x", "--schema-version", "9"]).status.code(), Some(2));

    let schema = shell.run(&["schema", "--json"]);
    let schema: Value = serde_json::from_slice(&schema.stdout).unwrap();
    assert!(schema["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "read_file"));
    assert!(text(&shell.run(&["schema"]).stdout).contains("bash_max_timeout_ms"));
    assert!(text(&shell.run(&["completions", "bash"]).stdout).contains("provider-workspace"));
}

fn a_reader_that_leaves_ends_the_command_as_sigpipe_would() {
    let shell = Shell::new();
    let mut child = shell.command(&["schema", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(141));
}

fn an_output_that_takes_nothing_is_a_failure() {
    let shell = Shell::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let status = shell.command(&["schema"]).stdout(full).stderr(Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(1));
}

fn a_relative_cwd_starts_from_the_current_directory() {
    let shell = Shell::new();
    std::fs::create_dir_all(shell.path().join("inner/deep")).unwrap();
    std::fs::write(shell.path().join("inner/deep/b.txt"), "deep\n").unwrap();
    let mut command = shell.command(&[
        "call",
        "read_file",
        r#"{"path":"b.txt"}"#,
        "--root",
        "..",
        "--cwd",
        "deep",
    ]);
    let output = command.current_dir(shell.path().join("inner")).output().unwrap();
    assert!(text(&output.stdout).contains("deep"), "{}", text(&output.stderr));
}

fn a_call_whose_time_is_up_ends_with_124() {
    let shell = Shell::new();
    let output = shell.run(&["call", "bash", r#"{"command":"sleep 60"}"#, "--timeout", "0.5"]);
    assert_eq!(output.status.code(), Some(124), "{}", text(&output.stderr));
    // What was shown as it came is not shown once more.
    let command = r#"{"command":"echo once; exec sleep 60","timeout_ms":5000}"#;
    let output = shell.run(&["call", "bash", command]);
    let [stdout, stderr] = [text(&output.stdout), text(&output.stderr)];
    assert_eq!((output.status.code(), stdout.as_ref()), (Some(124), "once\n"));
    assert!(stderr.contains("larger timeout_ms") && !stderr.contains("once"), "{stderr}");
    assert_eq!(stderr.matches("larger timeout_ms").count(), 1, "{stderr}");
}

fn a_commands_own_colours_are_neither_obeyed_nor_spelled_out() {
    let shell = Shell::new();
    let command = r"printf 'a \033[3'; sleep .1; printf '1mred\033[0m \033]0;t\007b\a\n'";
    let shown = shell.run(&["call", "bash", command, "--color", "always"]);
    assert_eq!(text(&shown.stdout), "a red \\u{1b}]0;t\\u{7}b\\u{7}\n");
    let raw = shell.run(&["call", "bash", command]);
    assert_eq!(text(&raw.stdout), "a \u{1b}[31mred\u{1b}[0m \u{1b}]0;t\u{7}b\u{7}\n");
}

fn whoever_reads_json_gets_failures_as_json_too() {
    let shell = Shell::new();
    let cases: [(&[&str], &str, &str); 5] = [
        (&["call", "read_file", "--ofset", "1", "--json"], "invalid_arguments", "--ofset"),
        (&["apply", "bash", "ls", "--json"], "invalid_arguments", "nobody can be asked"),
        (&["call", "read_file", "{", "--json"], "invalid_arguments", "not a JSON object"),
        (&["call", "read_file", "--json", "--root", "absent"], "invalid_arguments", "absent"),
        (&["call", "read_file", r#"{"path":""}"#, "--json"], "invalid_arguments", "path is empty"),
    ];
    for (arguments, category, part) in cases {
        let output = shell.run(arguments);
        assert_eq!(output.status.code(), Some(2));
        let event: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(
            (&event["event"], &event["error"]["category"]),
            (&json!("error"), &json!(category))
        );
        let message = event["error"]["message"].as_str().unwrap();
        assert!(message.contains(part), "{message}");
    }
}

fn json_has_nothing_in_it_that_a_terminal_obeys() {
    let shell = Shell::new();
    let hidden = "a\u{9b}2J\u{9d}0;t\u{202e}z\u{1b}";
    let command = "printf 'a\\302\\2332J\\302\\2350;t\\342\\200\\256z\\033'";
    let lines: [&[&str]; 5] = [
        &["call", "bash", command, "--json"],
        &["preview", "bash", hidden, "--json"],
        &["apply", "write_file", "b.txt", "--content", hidden, "--yes", "--json"],
        &["call", "read_file", "b.txt", "--json"],
        &["call", "read_file", "--json", hidden],
    ];
    for line in lines {
        let stdout = text(&shell.run(line).stdout);
        let obeyed = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!stdout.contains(obeyed), "{line:?}: {stdout:?}");
        // A preview and a name are for people, and spell it themselves.
        let spelt = [r"\u009b2J\u009d0;t\u202ez\u001b", r"u{9b}2J", r"\302\2332J"];
        assert!(spelt.iter().any(|spelt| stdout.contains(spelt)), "{line:?}: {stdout}");
    }
}

fn bash_finds_what_was_written_through_a_link_under_both_names() {
    let shell = Shell::new();
    let base = shell.path().canonicalize().unwrap();
    for kind in ["root", "fixed", "read", "write"] {
        std::fs::create_dir_all(base.join("real").join(kind)).unwrap();
        std::fs::write(base.join("real").join(kind).join("file"), kind).unwrap();
    }
    std::os::unix::fs::symlink(base.join("real"), base.join("link")).unwrap();
    let through = |kind: &str| base.join("link").join(kind);
    let config = json!({
        "read_only_roots": [through("fixed")],
        "bash_read": [through("read")],
        "bash_write": [through("write")],
    });
    let script = format!(
        "cd {0} && cat {{link,real}}/{{root,fixed,read,write}}/file && cd link/root && pwd -P",
        base.display()
    );
    let arguments = json!({ "command": script, "cwd": through("root") });
    let output = shell
        .command(&["call", "bash", &arguments.to_string(), "--config", &config.to_string()])
        .args(["--root", through("root").to_str().unwrap()])
        .output()
        .unwrap();
    let printed = text(&output.stdout);
    let expected = format!("{0}{0}{1}", "rootfixedreadwrite", base.join("real/root").display());
    assert!(printed.contains(&expected), "{printed}{}", text(&output.stderr));
}

fn flags_stand_for_the_schema_and_a_bare_word_for_its_first_argument() {
    let shell = Shell::new();
    std::fs::write(shell.path().join("call.json"), r#"{"path":"a.txt","limit":1}"#).unwrap();
    let lines: [&[&str]; 4] = [
        &["call", "read_file", "a.txt", "--limit", "1"],
        &["call", "--root", ".", "read_file", "--path", "a.txt", "--limit=1"],
        &["call", "read_file", "@call.json"],
        &["call", "read_file", r#"{"path":"a.txt"}"#, "--limit", "1"],
    ];
    for line in lines {
        let output = shell.run(line);
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        assert!(stdout.contains("hello") && !stdout.contains("red"), "{line:?}: {stdout} {stderr}");
        assert!(stdout.starts_with("a.txt · lines 1–1 of 2\n"), "{stdout}");
        assert_eq!(stderr, "");
    }
    let failing = shell.run(&["call", "bash", "exit 7"]);
    assert_eq!(failing.status.code(), Some(7));
}

fn a_command_may_be_written_as_words() {
    let shell = Shell::new();
    std::fs::create_dir(shell.path().join("in ner")).unwrap();
    std::fs::write(shell.path().join("in ner/b.txt"), "deep\n").unwrap();
    let lines: [(&[&str], &str); 7] = [
        (&["call", "bash", "ls", "-1", "in ner"], "b.txt\n"),
        (&["call", "--root", ".", "bash", "ls", "--", "in ner"], "b.txt\n"),
        (&["call", "bash", "--", "printf", "%s,", "--json", "a|b", "$HOME"], "--json,a|b,$HOME,"),
        (&["call", "bash", "--", "cat a.txt | head -1"], "hello\n"),
        (&["call", "bash", "ls | wc -l", "--root", "in ner", "--timeout-ms", "9000"], "1\n"),
        (&["call", "bash", "ls", "--root", "in ner", "--cwd", "in ner"], "b.txt\n"),
        (&["call", "bash", "echo", "--no-such-option", "-v"], "--no-such-option -v\n"),
    ];
    for (line, printed) in lines {
        let output = shell.run(line);
        assert_eq!(text(&output.stdout), printed, "{line:?}: {}", text(&output.stderr));
        assert!(output.status.success());
    }
    // A whole command as one word is followed by options of ours, and a slip among them is named.
    for line in [["call", "bash", "ls -l", "--jsn"], ["call", "bash", "--jsn", "ls"]] {
        let output = shell.run(&line);
        assert_eq!(output.status.code(), Some(2), "{line:?}");
        assert!(text(&output.stderr).contains("'--json'"), "{}", text(&output.stderr));
    }
    assert!(text(&shell.run(&["call", "bash", "--help"]).stdout).contains("Words are run"));
}

fn what_is_applied_is_what_was_shown() {
    let shell = Shell::new();
    let apply = ["apply", "edit_file", "a.txt", "--old-string", "hello", "--new-string", "bye"];
    let unasked = shell.run(&apply);
    assert_eq!(unasked.status.code(), Some(2));
    assert!(text(&unasked.stderr).contains("--yes"), "{}", text(&unasked.stderr));
    let read = || std::fs::read_to_string(shell.path().join("a.txt")).unwrap();
    assert!(read().starts_with("hello\n"));

    let output = shell.run(&[&apply[..], &["--yes", "--json"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let stdout = text(&output.stdout);
    let events: Vec<Value> =
        stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&events[0]["event"], &events[1]["event"]), (&json!("preview"), &json!("result")));
    assert!(read().starts_with("bye\n"));

    let created = shell.run(&["apply", "write_file", "new/b.txt", "--content", "-\n", "--yes"]);
    assert!(created.status.success(), "{}", text(&created.stderr));
    assert_eq!(std::fs::read_to_string(shell.path().join("new/b.txt")).unwrap(), "-\n");
    // Reading tools need no approval, and have none.
    assert_eq!(shell.run(&["apply", "read_file", "a.txt"]).status.code(), Some(2));
}

fn colours_into_a_pipe_come_only_when_forced_and_then_alone() {
    let shell = Shell::new();
    let line = ["call", "read_file", "a.txt", "--color", "always"];
    let forced = shell.command(&line).env("NO_COLOR", "1").output().unwrap();
    let forced = text(&forced.stdout);
    assert!(forced.contains("\\u{1b}[31mred"), "the file's own sequence is spelt out: {forced}");
    let preview =
        shell.command(&["preview", "write_file", "a.txt", "--content", "x"]).output().unwrap();
    assert!(!text(&preview.stdout).contains("\x1b[32m"), "{}", text(&preview.stdout));
    let preview = shell
        .command(&["preview", "write_file", "a.txt", "--content", "x"])
        .env("CLICOLOR_FORCE", "1")
        .output()
        .unwrap();
    assert!(text(&preview.stdout).contains("\x1b[32m+x"), "{}", text(&preview.stdout));
}

fn a_diff_is_grouped_and_in_colour_has_line_numbers_and_marks() {
    let shell = Shell::new();
    std::fs::write(shell.path().join("c.rs"), "// c\nlet a = one(1);\nlet b = one(1);\n").unwrap();
    let edit = ["edit_file", "c.rs", "--old-string", "one", "--new-string", "two", "--replace-all"];
    let plain = "@@ -1,3 +1,3 @@\n // c\n-let a = one(1);\n-let b = one(1);\n\
                 +let a = two(1);\n+let b = two(1);\n";
    let shown = text(&shell.run(&[&["preview"], &edit[..]].concat()).stdout);
    assert!(shown.contains(plain), "{shown}");
    let coloured = "\x1b[2m1 1\x1b[0m  // c\n\
        \x1b[2m2  \x1b[0m \x1b[31m-let a = \x1b[0m\x1b[7;31mone\x1b[0m\x1b[31m(1);\x1b[0m\n\
        \x1b[2m3  \x1b[0m \x1b[31m-let b = \x1b[0m\x1b[7;31mone\x1b[0m\x1b[31m(1);\x1b[0m\n\
        \x1b[2m  2\x1b[0m \x1b[32m+let a = \x1b[0m\x1b[7;32mtwo\x1b[0m\x1b[32m(1);\x1b[0m\n\
        \x1b[2m  3\x1b[0m \x1b[32m+let b = \x1b[0m\x1b[7;32mtwo\x1b[0m\x1b[32m(1);\x1b[0m\n";
    for command in ["preview", "call"] {
        let line = [&[command], &edit[..], &["--color", "always"]].concat();
        let shown = text(&shell.run(&line).stdout);
        assert!(shown.contains(coloured), "{command}: {shown:?}");
    }
}

fn pages_name_every_tool_and_its_flags() {
    let shell = Shell::new();
    for name in ["bash", "zsh", "fish"] {
        let script = text(&shell.run(&["completions", name]).stdout);
        for part in ["edit_file", "old-string", "apply", "read-only-root"] {
            assert!(script.contains(part), "{name}: {part}");
        }
    }
    assert!(text(&shell.run(&["man"]).stdout).contains("provider\\-workspace"));
    let directory = shell.path().join("man");
    std::fs::create_dir(&directory).unwrap();
    assert!(shell.run(&["man", "man"]).status.success());
    let page = directory.join("provider-workspace-call-edit_file.1");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("replace\\-all"), "{page}");
    // Lines that follow one another would be filled into one paragraph.
    let grep = std::fs::read_to_string(directory.join("provider-workspace-call-grep.1")).unwrap();
    assert!(grep.contains("\n.PP\nExample: "), "{grep}");
    let main = std::fs::read_to_string(directory.join("provider-workspace.1")).unwrap();
    assert!(main.contains("\n.TP\n\\fB3\\fR\nThe call failed: not_found.\n"), "{main}");
    let help = text(&shell.run(&["--help"]).stdout);
    assert!(help.contains("Exit codes:") && help.contains("concurrency_conflict"), "{help}");
}

fn a_pipe_gets_bytes_and_no_colours() {
    let shell = Shell::new();
    let output = shell.run(&["call", "read_file", r#"{"path":"a.txt"}"#]);
    // The file's own escape sequence passes; we add none.
    assert_eq!(text(&output.stdout).matches('\x1b').count(), 1);
}

/// A project in which something can be found.
fn searchable() -> Shell {
    let shell = Shell::new();
    std::fs::create_dir(shell.path().join("src")).unwrap();
    std::fs::write(shell.path().join("src/a.rs"), "one\ntwo TODO\nthree\n").unwrap();
    std::fs::write(shell.path().join("src/b.rs"), "TODO one\n").unwrap();
    std::fs::write(shell.path().join("note.md"), "TODO elsewhere\n").unwrap();
    shell
}

fn what_is_found_is_greppable_in_a_pipe() {
    let shell = searchable();
    let found = |line: &[&str]| {
        let output = shell.run(&[&["call", "grep"], line].concat());
        assert!(output.status.success(), "{line:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    assert_eq!(
        found(&["--pattern", "TODO", "--glob", "*.rs"]),
        "src/a.rs:2:two TODO\nsrc/b.rs:1:TODO one\n"
    );
    assert_eq!(
        found(&["two", "--context", "1"]),
        "src/a.rs-1-one\nsrc/a.rs:2:two TODO\nsrc/a.rs-3-three\n"
    );
    assert_eq!(found(&["TODO", "--mode", "count", "--path", "src"]), "src/a.rs:1\nsrc/b.rs:1\n");
    assert_eq!(found(&["todo", "--ignore-case", "--mode", "files"]).lines().count(), 3);

    let nothing = shell.run(&["call", "grep", "no such thing"]);
    assert!(nothing.status.success() && nothing.stdout.is_empty());
    assert!(text(&nothing.stderr).starts_with("note: "), "{}", text(&nothing.stderr));
}
