//! Sessions on a terminal of their own: interpreters, editors, pagers.

use serde_json::{Value, json};
use tool_provider::Payload;

use super::text;
use crate::harness::Fixture;
use crate::trials::{Need, Trial};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_python_repl_is_driven_by_keys needs [Need::Program("python3")],
        a_node_repl_is_driven_by_keys needs [Need::Program("node")],
        a_file_is_written_in_vim needs [Need::Program("vim")],
        a_pager_is_paged needs [Need::Program("less")],
        top_shows_itself_until_it_is_told_to_quit needs [Need::Program("top")],
        an_interactive_rebase_is_done_in_an_editor needs [Need::Program("git"), Need::Program("vim")],
        the_terminal_has_the_size_that_was_asked_for,
        a_shell_on_a_terminal_has_jobs_and_ends_with_its_session,
        no_other_call_opens_a_sessions_terminal,
    ]
}

async fn start(fixture: &mut Fixture, command: &str) -> Payload {
    let start = json!({"command": command, "name": "t", "tty": true, "wait_ms": 20000});
    fixture.session("session_start", start).await
}

async fn press(fixture: &mut Fixture, typed: &str, keys: &str) -> Payload {
    let mut arguments = json!({"session": "t", "wait_ms": 20000});
    for (name, value) in [("text", typed), ("keys", keys)] {
        if !value.is_empty() {
            arguments[name] = json!(value);
        }
    }
    fixture.session("session_write", arguments).await
}

async fn a_python_repl_is_driven_by_keys() {
    let mut fixture = Fixture::configured().await;
    let started = start(&mut fixture, "python3 -q").await;
    assert_eq!((text(&started, "state"), text(&started, "output")), ("waiting_for_input", ">>> "));
    let answer = press(&mut fixture, "6 * 7", "Enter").await;
    assert_eq!(text(&answer, "output"), "6 * 7\n42\n>>> ", "{answer:?}");
    let again = press(&mut fixture, "", "Up Enter").await;
    assert!(text(&again, "output").ends_with("\n42\n>>> "), "{again:?}");
    let asked = press(&mut fixture, "input('name? ')", "Enter").await;
    assert!(text(&asked, "output").ends_with("name? "), "{asked:?}");
    assert_eq!(text(&asked, "state"), "waiting_for_input");
    let interrupted = press(&mut fixture, "", "C-c").await;
    assert!(text(&interrupted, "output").contains("KeyboardInterrupt"), "{interrupted:?}");
    press(&mut fixture, "", "C-d").await;
    fixture.session_in("t", &["exited"]).await;
    fixture.end().await;
}

async fn a_node_repl_is_driven_by_keys() {
    let mut fixture = Fixture::configured().await;
    let started = start(&mut fixture, "node").await;
    assert!(text(&started, "output").ends_with("> "), "{started:?}");
    assert_eq!(text(&started, "state"), "waiting_for_input");
    let answer = press(&mut fixture, "[1, 2, 3].map(n => n * n)", "Enter").await;
    assert!(text(&answer, "output").contains("[ 1, 4, 9 ]"), "{answer:?}");
    press(&mut fixture, "process.hrt", "").await;
    press(&mut fixture, "", "Tab").await;
    // A completion is made behind the back of the loop that reads keys.
    let screen = json!({"session": "t", "screen": true, "from": 0, "until": "process.hrtime"});
    let screen = fixture.session("session_read", screen).await;
    assert!(text(&screen, "output").contains("process.hrtime"), "{screen:?}");
    press(&mut fixture, "", "C-c").await;
    press(&mut fixture, ".exit", "Enter").await;
    fixture.session_in("t", &["exited"]).await;
    fixture.end().await;
}

async fn a_file_is_written_in_vim() {
    let mut fixture = Fixture::configured().await;
    fixture.write("file", "second\n");
    let started = start(&mut fixture, "vim -u NONE -N file").await;
    assert_eq!((&started["screen"], text(&started, "state")), (&json!(true), "waiting_for_input"));
    assert!(text(&started, "output").starts_with("second\n~"), "{started:?}");
    let typed = press(&mut fixture, "Ofirst", "Esc").await;
    assert!(text(&typed, "output").starts_with("first\nsecond\n"), "{typed:?}");
    assert!(text(&typed, "cursor").starts_with("1,"), "{typed:?}");
    let ended = press(&mut fixture, "", "Esc :wq Enter").await;
    assert_eq!((text(&ended, "state"), ended.get("screen")), ("exited", None), "{ended:?}");
    assert_eq!(ended["exit_code"], 0, "{ended:?}");
    assert_eq!(std::fs::read_to_string(fixture.path("file")).unwrap(), "first\nsecond\n");
    fixture.end().await;
}

async fn a_pager_is_paged() {
    let mut fixture = Fixture::configured().await;
    let lines: String = (1..=200).map(|number| format!("line {number}\n")).collect();
    fixture.write("long", lines);
    let started = start(&mut fixture, "less long").await;
    assert!(text(&started, "output").starts_with("line 1\nline 2\n"), "{started:?}");
    let next = press(&mut fixture, "", "PageDown").await;
    assert!(text(&next, "output").starts_with("line 24\n"), "{next:?}");
    let end = press(&mut fixture, "G", "").await;
    assert!(text(&end, "output").contains("line 200\n"), "{end:?}");
    press(&mut fixture, "q", "").await;
    fixture.session_in("t", &["exited"]).await;
    fixture.end().await;
}

async fn top_shows_itself_until_it_is_told_to_quit() {
    let mut fixture = Fixture::configured().await;
    start(&mut fixture, "top -d 1").await;
    let look = json!({"session": "t", "screen": true, "until": "PID", "from": 0});
    let screen = fixture.session("session_read", look).await;
    assert_eq!((&screen["screen"], &screen["matched"]), (&json!(true), &json!(true)));
    assert!(text(&screen, "output").contains("top"), "{screen:?}");
    // It draws once a second, and then only what is new.
    let again = json!({"session": "t", "from": screen["next"], "until": ".", "wait_ms": 20000});
    fixture.session("session_read", again).await;
    let frames = fixture.session("session_read", json!({"session": "t", "from": 0})).await;
    assert_eq!(frames.get("screen"), Some(&json!(true)), "the last frame: {frames:?}");
    press(&mut fixture, "q", "").await;
    let ended = fixture.session_in("t", &["exited"]).await;
    assert_eq!(ended["exit_code"], 0, "{ended:?}");
    fixture.end().await;
}

async fn an_interactive_rebase_is_done_in_an_editor() {
    let mut fixture = Fixture::configured().await;
    let commits = "git init -q . && git config user.name a && git config user.email a@b.c; \
                   for n in one two three; do echo $n > $n && git add $n && git commit -qm $n; done; \
                   git log --oneline | wc -l";
    let git = |command: &str| {
        let output = std::process::Command::new("bash")
            .args(["-c", command])
            .current_dir(fixture.path(""))
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(git(commits).trim(), "3");
    let log = || git("git log --format=%s");
    assert_eq!(log(), "three\ntwo\none\n");
    let rebase = "GIT_EDITOR='vim -u NONE -N' git rebase -i --root";
    let started = start(&mut fixture, rebase).await;
    assert!(text(&started, "output").contains("pick"), "{started:?}");
    assert!(text(&started, "output").starts_with("pick"), "{started:?}");
    // The first two lines change places.
    press(&mut fixture, "ddp:wq", "Enter").await;
    let ended = fixture.session_in("t", &["exited"]).await;
    assert_eq!(ended["exit_code"], 0, "{ended:?}");
    let log = std::process::Command::new("git")
        .args(["log", "--format=%s"])
        .current_dir(fixture.path(""))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(log.stdout).unwrap(), "three\none\ntwo\n");
    fixture.end().await;
}

async fn the_terminal_has_the_size_that_was_asked_for() {
    let mut fixture = Fixture::configured().await;
    let size =
        "stty size; tput cols; test -t 0 && test -t 1 && test -t 2 && exec 3<>/dev/tty && echo all";
    for (more, expected) in [
        (json!({}), "24 80\n80\nall\n"),
        (json!({"rows": 40, "columns": 132}), "40 132\n132\nall\n"),
    ] {
        let mut arguments =
            json!({"command": size, "tty": true, "ready": "never", "wait_ms": 20000});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let ended = fixture.session("session_start", arguments).await;
        assert_eq!(text(&ended, "output"), expected, "{ended:?}");
    }
    let wrong =
        fixture.failure("session_start", json!({"command": "x", "tty": true, "rows": 1000})).await;
    assert_eq!(wrong.category, "invalid_arguments");
    fixture.end().await;
}

async fn a_shell_on_a_terminal_has_jobs_and_ends_with_its_session() {
    let mut fixture = Fixture::configured().await;
    let started = start(&mut fixture, "PS1='$ ' bash --norc -i").await;
    assert!(text(&started, "output").ends_with("$ "), "{started:?}");
    let busy = json!({"session": "t", "text": "sleep 641", "keys": "Enter", "wait_ms": 2000});
    let busy = fixture.session("session_write", busy).await;
    assert_eq!(text(&busy, "state"), "running", "the shell is not in the foreground: {busy:?}");
    let stopped = press(&mut fixture, "", "C-z").await;
    assert!(text(&stopped, "output").contains("Stopped"), "{stopped:?}");
    assert_eq!(text(&stopped, "state"), "waiting_for_input");
    let ended = fixture.session("session_stop", json!({"session": "t"})).await;
    assert_eq!(ended["signals_sent"], json!(["SIGTERM"]), "by its hang-up: {ended:?}");
    fixture.end().await;
}

/// The session's own command reaches its terminal; a call of bash finds it by no path, not by the
/// descriptors of the session's process, and has no terminal itself.
async fn no_other_call_opens_a_sessions_terminal() {
    let mut fixture = Fixture::configured().await;
    let started = start(&mut fixture, "echo own > /dev/tty; echo pid $$; cat").await;
    let output = text(&started, "output").to_owned();
    assert!(output.starts_with("own\n"), "{started:?}");
    let pid: u32 =
        output.lines().find_map(|line| line.strip_prefix("pid ")).unwrap().parse().unwrap();
    let attack = format!(
        "for terminal in /proc/{pid}/fd/0 /proc/{pid}/fd/1 /dev/tty /dev/pts/[0-9]*; do \
         (echo attack > $terminal) 2>/dev/null && echo \"wrote to $terminal\"; done; \
         ls /dev/pts 2>/dev/null | grep -v ptmx; true"
    );
    let (_, attacked) = fixture.call("bash", json!({"command": attack})).await;
    assert_eq!(attacked.unwrap()["output"], "", "nothing could be written to");
    let second = json!({"command": attack, "tty": true, "name": "other", "ready": "never", "wait_ms": 20000});
    let second = fixture.session("session_start", second).await;
    let own = "wrote to /dev/tty\n";
    assert!(text(&second, "output").ends_with(own), "its own terminal only: {second:?}");
    assert!(!text(&second, "output").contains("/proc"), "{second:?}");
    let seen = fixture.session("session_read", json!({"session": "t", "from": 0})).await;
    assert!(!text(&seen, "output").contains("attack"), "{seen:?}");
    let typed = press(&mut fixture, "still mine", "Enter").await;
    assert!(text(&typed, "output").contains("still mine\nstill mine"), "{typed:?}");
    assert!(matches!(typed.get("next"), Some(Value::Number(_))));
    fixture.end().await;
}
