//! The command line on a terminal: one that script(1) makes.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use crate::harness::{PROGRAM, TEST_TIMEOUT};
use crate::trials::{Need, Trial};

/// What makes terminals.
const SCRIPT: Need = Need::Program("script");

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        ctrl_c_ends_the_call_and_everything_that_it_started needs [SCRIPT],
        ctrl_c_loses_no_output_and_prints_one_line needs [SCRIPT],
        ctrl_c_twice_ends_at_once_and_leaves_nothing needs [SCRIPT],
        ctrl_c_ends_a_check_of_a_provider needs [SCRIPT, Need::Built("provider-workspace-conform")],
        apply_shows_asks_and_does_what_the_answer_says needs [SCRIPT],
        nobody_is_asked_about_a_call_that_would_fail needs [SCRIPT],
        what_was_shown_is_what_is_written_or_nothing needs [SCRIPT],
        a_command_cannot_take_the_terminal_over_and_a_long_one_has_a_line_of_progress needs [SCRIPT],
        a_shell_in_the_jail_follows_the_size_of_the_terminal_and_gives_its_exit_code needs [SCRIPT],
        schema_breaks_no_name_in_a_narrow_terminal needs [SCRIPT],
        what_is_found_is_a_list_without_a_trace_of_progress needs [SCRIPT],
        hits_stand_below_their_file_with_what_was_found_marked needs [SCRIPT],
    ]
}

/// A program on a terminal, in a directory of its own.
struct Terminal {
    directory: tempfile::TempDir,
    script: Child,
    /// What stood on the terminal so far.
    seen: String,
}

impl Terminal {
    fn start(arguments: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a.txt"), "hello\n").unwrap();
        let script = Command::new("script")
            .args(["-qefc", &format!("stty cols 60 rows 20; exec {PROGRAM} {arguments}")])
            .arg("/dev/null")
            .current_dir(directory.path())
            .envs([("TERM", "xterm"), ("SHELL", "/bin/sh")])
            .env_remove("NO_COLOR")
            .env_remove("CLICOLOR")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self { directory, script, seen: String::new() }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Reads until the text stands on the terminal.
    fn wait_for(&mut self, text: &str) {
        let mut byte = [0; 1];
        let mut bytes = Vec::new();
        while !String::from_utf8_lossy(&bytes).contains(text) {
            let read = self.script.stdout.as_mut().unwrap().read(&mut byte).unwrap();
            let printed = String::from_utf8_lossy(&bytes);
            assert_ne!(read, 0, "ended without {text:?}: {printed}");
            bytes.extend_from_slice(&byte);
        }
        self.seen.push_str(&String::from_utf8_lossy(&bytes));
    }

    fn type_in(&mut self, keys: &str) {
        let mut keyboard = self.script.stdin.as_ref().unwrap();
        // The program may have ended before the last key.
        let _ = keyboard.write_all(keys.as_bytes());
    }

    /// Gives the terminal another size, as a window does.
    fn resize(&self, rows: u16, columns: u16) {
        let script = self.script.id();
        let children = std::fs::read_to_string(format!("/proc/{script}/task/{script}/children"));
        let program = children.unwrap().trim().to_owned();
        // proc_pid_stat(5): after the name in brackets, `tty_nr` is the fifth. A provider's descriptors show
        // to nobody.
        let stat = std::fs::read_to_string(format!("/proc/{program}/stat")).unwrap();
        let device: u32 =
            stat.rsplit_once(')').unwrap().1.split_whitespace().nth(4).unwrap().parse().unwrap();
        let terminal = format!("/dev/pts/{}", device & 0xff | device >> 12 & 0xf_ff00);
        let changed = Command::new("stty")
            .args(["-F", &terminal])
            .args(["rows", &rows.to_string(), "columns", &columns.to_string()])
            .status();
        assert!(changed.unwrap().success());
    }

    /// Everything that stood on the terminal, and the exit code.
    fn end(mut self) -> (String, Option<i32>, tempfile::TempDir) {
        let mut rest = Vec::new();
        self.script.stdout.take().unwrap().read_to_end(&mut rest).unwrap();
        self.seen.push_str(&String::from_utf8_lossy(&rest));
        let code = self.script.wait().unwrap().code();
        (self.seen, code, self.directory)
    }
}

const CTRL_C: &str = "\u{3}";

/// A number of seconds that no other process on this machine sleeps for.
fn long_sleep(fixture: u32) -> String {
    (1_000_000_000 + std::process::id() * 10 + fixture).to_string()
}

/// Waits until no process has this in its command line.
fn wait_until_gone(marker: &str) {
    let start = Instant::now();
    while is_running(marker) {
        assert!(start.elapsed() < TEST_TIMEOUT, "a process is left over");
        std::thread::yield_now();
    }
}

fn is_running(marker: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    processes.map(|process| process.path().join("cmdline")).any(|path| {
        let line = std::fs::read(path).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == marker.as_bytes())
    })
}

fn ctrl_c_ends_the_call_and_everything_that_it_started() {
    let marker = long_sleep(1);
    let call = format!("call bash 'echo up; sleep {marker}'");
    let mut terminal = Terminal::start(&call);
    terminal.wait_for("up\r\n");
    terminal.type_in(CTRL_C);
    let (seen, code, _directory) = terminal.end();
    assert_eq!(code, Some(130), "{seen}");
    assert!(seen.ends_with("\x1b[33mstopped:\x1b[0m by Ctrl-C\r\n"), "{seen}");
    wait_until_gone(&marker);
}

fn ctrl_c_loses_no_output_and_prints_one_line() {
    let marker = long_sleep(3);
    let script =
        format!(r#"trap "echo last words; exit" TERM; printf begun; sleep {marker} & wait"#);
    for (options, ends) in [
        ("--color never", "begun^C\r\nlast words\r\nstopped: by Ctrl-C\r\n"),
        ("--verbose", "plugin"),
        ("--json", r#""category":"cancelled""#),
    ] {
        let mut terminal = Terminal::start(&format!("call bash '{script}' {options}"));
        terminal.wait_for("begun");
        terminal.type_in(CTRL_C);
        let (seen, code, _directory) = terminal.end();
        assert_eq!(code, Some(130), "{seen}");
        assert!(seen.contains(ends) && seen.contains("last words"), "{options}: {seen:?}");
        assert_eq!(seen.contains("plugin"), options == "--verbose", "{options}: {seen}");
    }
    wait_until_gone(&marker);
}

fn ctrl_c_twice_ends_at_once_and_leaves_nothing() {
    let marker = long_sleep(2);
    let call = format!(r#"call bash 'trap "" TERM INT; echo up; sleep {marker}; sleep {marker}'"#);
    let mut terminal = Terminal::start(&call);
    terminal.wait_for("up\r\n");
    terminal.type_in(CTRL_C);
    terminal.type_in(CTRL_C);
    let (seen, code, _directory) = terminal.end();
    assert_eq!(code, Some(130), "{seen}");
    wait_until_gone(&marker);
}

fn ctrl_c_ends_a_check_of_a_provider() {
    let mut terminal = Terminal::start(&format!("conform {PROGRAM}"));
    terminal.wait_for("checking…");
    terminal.type_in(CTRL_C);
    let (seen, code, _directory) = terminal.end();
    assert_eq!(code, Some(130), "{seen}");
}

fn apply_shows_asks_and_does_what_the_answer_says() {
    let line = "apply edit_file a.txt --old-string hello --new-string bye";
    for (answer, code, content) in
        [("y\n", 0, "bye\n"), ("n\n", 1, "hello\n"), ("\n", 1, "hello\n"), (CTRL_C, 130, "hello\n")]
    {
        let mut terminal = Terminal::start(line);
        terminal.wait_for("Apply? [y/N]");
        assert!(terminal.seen.contains("\x1b[32m+bye"), "{}", terminal.seen);
        terminal.type_in(answer);
        let (seen, ended, directory) = terminal.end();
        assert_eq!(ended, Some(code), "{answer:?}: {seen}");
        assert_eq!(std::fs::read_to_string(directory.path().join("a.txt")).unwrap(), content);
    }
}

fn nobody_is_asked_about_a_call_that_would_fail() {
    let line = "apply edit_file a.txt --old-string helo --new-string bye";
    let terminal = Terminal::start(line);
    let (seen, code, directory) = terminal.end();
    assert_eq!(code, Some(1), "{seen}");
    assert!(seen.contains("This call would fail") && !seen.contains("Apply?"), "{seen}");
    assert_eq!(std::fs::read_to_string(directory.path().join("a.txt")).unwrap(), "hello\n");
}

fn what_was_shown_is_what_is_written_or_nothing() {
    let line = "apply write_file a.txt --content mine";
    let mut terminal = Terminal::start(line);
    terminal.wait_for("Apply? [y/N]");
    std::fs::write(terminal.path().join("a.txt"), "someone else's\n").unwrap();
    terminal.type_in("y\n");
    let (seen, code, directory) = terminal.end();
    assert_eq!(code, Some(6), "{seen}");
    assert!(seen.contains("concurrency_conflict"), "{seen}");
    assert_eq!(
        std::fs::read_to_string(directory.path().join("a.txt")).unwrap(),
        "someone else's\n"
    );

    let line = "apply write_file new.txt --content mine";
    let mut terminal = Terminal::start(line);
    terminal.wait_for("Apply? [y/N]");
    std::fs::write(terminal.path().join("new.txt"), "someone else's\n").unwrap();
    terminal.type_in("y\n");
    let (seen, code, directory) = terminal.end();
    assert_eq!(code, Some(1), "{seen}");
    assert!(seen.contains("no longer do what was shown"), "{seen}");
    let content = std::fs::read_to_string(directory.path().join("new.txt")).unwrap();
    assert_eq!(content, "someone else's\n");
}

fn a_command_cannot_take_the_terminal_over_and_a_long_one_has_a_line_of_progress() {
    let call = r"call bash 'mkfifo go; printf \\033]0\;owned\\007; echo; cat go'";
    let mut terminal = Terminal::start(call);
    terminal.wait_for("owned");
    // The line says for how long the call has been running.
    terminal.wait_for(" s)");
    std::fs::write(terminal.path().join("go"), "").unwrap();
    let (seen, code, _directory) = terminal.end();
    assert_eq!(code, Some(0), "{seen}");
    assert!(seen.contains("\\u{1b}]0;owned\\u{7}"), "{seen}");
    assert!(seen.ends_with("\r\x1b[K"), "the progress line is erased: {seen:?}");
}

fn a_shell_in_the_jail_follows_the_size_of_the_terminal_and_gives_its_exit_code() {
    let mut terminal = Terminal::start("shell");
    terminal.wait_for("(jail)");
    terminal.type_in("stty size; cat a.txt; ls ~/.ssh; echo typed > b.txt; echo $((6 * 7))\n");
    terminal.wait_for("20 60");
    terminal.wait_for("hello");
    terminal.wait_for("No such file");
    // Ctrl-C would end what is left of the line.
    terminal.wait_for("42");
    terminal
        .type_in("until [ \"$(stty size)\" = '30 100' ]; do sleep 0.05; done; echo $((8 * 9))\n");
    terminal.resize(30, 100);
    terminal.wait_for("72");
    // It runs once it has printed that: what is typed shows before.
    terminal.type_in("sh -c 'echo $((5 * 5)); exec sleep 600'\n");
    terminal.wait_for("25");
    terminal.type_in(CTRL_C);
    terminal.wait_for("(jail)");
    terminal.type_in("exit 7\n");
    let (_, code, directory) = terminal.end();
    assert_eq!(code, Some(7));
    assert_eq!(std::fs::read_to_string(directory.path().join("b.txt")).unwrap(), "typed\n");
}

fn schema_breaks_no_name_in_a_narrow_terminal() {
    let (seen, code, _directory) = Terminal::start("schema").end();
    assert_eq!(code, Some(0), "{seen}");
    for name in ["bash_max_timeout_ms", "limits.file_size_bytes", "concurrency_conflict."] {
        assert!(seen.contains(name), "{name}: {seen}");
    }
    assert!(
        seen.lines().all(|line| line.trim_end().chars().count() <= 60 || line.contains('\x1b'))
    );
}

fn what_is_found_is_a_list_without_a_trace_of_progress() {
    let terminal = Terminal::start("call glob '*.txt'");
    let (seen, code, _directory) = terminal.end();
    assert_eq!(code, Some(0), "{seen}");
    let printed = seen.replace("\r\x1b[K", "");
    assert_eq!(printed.lines().filter(|line| *line == "a.txt").count(), 1, "{seen:?}");
}

fn hits_stand_below_their_file_with_what_was_found_marked() {
    let terminal = Terminal::start("call grep l+");
    let (seen, code, _directory) = terminal.end();
    assert_eq!(code, Some(0), "{seen}");
    let printed = seen.replace("\r\x1b[K", "");
    let expected = "\x1b[35ma.txt\x1b[0m\r\n\x1b[32m1\x1b[0m:he\x1b[1;31mll\x1b[0mo\r\n";
    assert!(printed.contains(expected), "{seen:?}");
}
