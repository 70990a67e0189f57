//! Servers and watchers: they are there for later calls.

use std::time::Instant;

use serde_json::{Value, json};

use super::{exits, of_another, text};
use crate::bash::{gone, mark, running};
use crate::harness::{Fixture, TEST_TIMEOUT};
use crate::trials::{Need, Trial};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_web_server_is_started_asked_by_bash_and_stopped needs [Need::Program("python3"), Need::FullJail],
        a_port_of_another_session_is_not_taken_for_ones_own needs [Need::Program("python3"), Need::FullJail],
        the_port_on_which_it_listens_instead_is_named needs [Need::Program("python3"), Need::FullJail],
        where_commands_have_no_sockets_that_is_said_at_the_start,
        a_server_that_dies_at_once_is_an_answer_with_its_output,
        a_watcher_reports_what_an_edit_changed,
        an_interpreter_on_pipes_answers_what_is_typed needs [Need::Program("python3")],
        a_session_belongs_to_the_hosts_session_that_started_it,
    ]
}

const SERVER: &str = "exec python3 -u -m http.server 8123 --bind 127.0.0.1";

async fn a_web_server_is_started_asked_by_bash_and_stopped() {
    let mut fixture = Fixture::configured().await;
    fixture.write("page.txt", "served\n");
    let start = json!({"command": SERVER, "name": "web", "ready": "8123", "wait_ms": 20000});
    let (events, started) = fixture.call("session_start", start).await;
    let started = started.unwrap();
    assert_eq!(started.get("ready"), Some(&json!(true)), "{started:?}");
    assert_eq!((text(&started, "session"), text(&started, "state")), ("web", "running"));
    assert_eq!(exits(&events), 0);

    let ask = "python3 -c \"import urllib.request as u; print(u.urlopen('http://127.0.0.1:8123/page.txt').read())\"";
    let (_, asked) = fixture.call("bash", json!({"command": ask})).await;
    assert_eq!(asked.unwrap()["output"], "b'served\\n'\n");
    let read = json!({"session": "web", "until": "GET /page.txt", "from": 0});
    let read = fixture.session("session_read", read).await;
    assert_eq!(read.get("matched"), Some(&json!(true)), "{read:?}");

    let stopped = fixture.session("session_stop", json!({"session": "web"})).await;
    assert_eq!(text(&stopped, "state"), "stopped");
    assert_eq!(stopped["signals_sent"], json!(["SIGTERM"]));
    let (_, asked) = fixture.call("bash", json!({"command": ask})).await;
    assert_ne!(asked.unwrap()["exit_code"], 0, "nothing listens any more");
    let failure = fixture.failure("session_write", json!({"session": "web", "text": "x"})).await;
    assert_eq!(failure.category, "execution_failed");
    assert!(failure.message.contains("has ended"), "{failure}");
    fixture.end().await;
}

async fn the_port_on_which_it_listens_instead_is_named() {
    let mut fixture = Fixture::configured().await;
    let command =
        "python3 -u -m http.server 8124 --bind ::1 & python3 -u -m http.server 8125 & wait";
    let start = json!({"command": command, "name": "two", "ready": "3000", "wait_ms": 0});
    fixture.session("session_start", start).await;
    let until = Instant::now() + TEST_TIMEOUT;
    let both = "two: running, ports 8124 and 8125: ";
    loop {
        let listed = fixture.session("session_read", json!({})).await;
        let line = listed["sessions"][0].as_str().unwrap_or_default().to_owned();
        if line.starts_with(both) {
            break;
        }
        assert!(Instant::now() < until, "{line}");
    }
    let command = "python3 -m http.server 8126 2>/dev/null & \
                   until (: 3<>/dev/tcp/127.0.0.1/8126) 2>/dev/null; do sleep 0.05; done; read x";
    let start = json!({"command": command, "ready": "never", "wait_ms": 20000});
    let other = fixture.session("session_start", start).await;
    let notice = text(&other, "notice");
    assert!(notice.ends_with("does not match never; it listens on port 8126"), "{other:?}");
    fixture.end().await;
}

async fn a_port_of_another_session_is_not_taken_for_ones_own() {
    let mut fixture = Fixture::configured().await;
    let start = json!({"command": SERVER, "ready": "8123", "wait_ms": 20000});
    assert_eq!(fixture.session("session_start", start).await["ready"], true);
    let second = json!({"command": "echo up; sleep 60", "port": 8123, "wait_ms": 500});
    let second = fixture.session("session_start", second).await;
    assert_eq!(second["ready"], false, "{second:?}");
    assert!(text(&second, "notice").ends_with("listens on port 8123"), "{second:?}");
    let asks = json!({"command": "echo up; read x", "ready": "8123", "wait_ms": 120000});
    let asks = fixture.session("session_start", asks).await;
    assert_eq!((text(&asks, "state"), &asks["ready"]), ("waiting_for_input", &json!(false)));
    fixture.end().await;
}

/// Without namespaces, and with the network denied.
async fn where_commands_have_no_sockets_that_is_said_at_the_start() {
    let mut fixture = Fixture::configured().await;
    let start = json!({"command": "sleep 60", "ready": "8124", "wait_ms": 100});
    let (_, by_port) = fixture.call("session_start", start).await;
    let by_text = json!({"command": "echo up; sleep 60", "ready": "up", "wait_ms": 20000});
    let by_text = fixture.session("session_start", by_text).await;
    assert_eq!(by_text["ready"], true);
    match by_port {
        Ok(by_port) => {
            assert_eq!((&by_port["ready"], by_text.get("notice")), (&json!(false), None));
        }
        Err(refused) => {
            assert_eq!(refused.category, "permission_denied");
            assert!(refused.message.contains("no sockets"), "{refused}");
            assert!(text(&by_text, "notice").contains("no sockets"), "{by_text:?}");
        }
    }
    fixture.end().await;
}

async fn a_server_that_dies_at_once_is_an_answer_with_its_output() {
    let mut fixture = Fixture::configured().await;
    let start = json!({"command": "echo cannot bind >&2; exit 3", "ready": "listening"});
    let (events, started) = fixture.call("session_start", start).await;
    let started = started.unwrap();
    assert_eq!((text(&started, "state"), text(&started, "output")), ("exited", "cannot bind\n"));
    assert_eq!((&started["exit_code"], &started["ready"]), (&json!(3), &json!(false)));
    assert_eq!(exits(&events), 1, "the call that sees the end tells it");
    let name = text(&started, "session").to_owned();
    let (events, read) = fixture.call("session_read", json!({"session": name})).await;
    assert_eq!(read.unwrap()["exit_code"], 3);
    assert_eq!(exits(&events), 0, "and no other");
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().canonicalize().unwrap().join("data");
    std::fs::write(&path, "data").unwrap();
    let start = json!({"command": format!("cat {}", path.display())});
    let started = fixture.session("session_start", start).await;
    assert_eq!(started["exit_code"], 1, "{started:?}");
    let expected = format!("{}: ", path.display());
    assert!(text(&started, "notice").starts_with(&expected), "{started:?}");
    let start = json!({"command": "cat nosuch"});
    let started = fixture.session("session_start", start).await;
    assert_eq!((&started["exit_code"], started.get("notice")), (&json!(1), None), "{started:?}");
    fixture.end().await;
}

/// A loop that stands for any watcher: it looks at a file, and reports what is new.
const WATCHER: &str = "last=; while sleep 0.05; do now=$(cat watched); \
                       [ \"$now\" = \"$last\" ] || { last=$now; echo \"saw $now\"; }; done";

async fn a_watcher_reports_what_an_edit_changed() {
    let mut fixture = Fixture::configured().await;
    fixture.write("watched", "one\n");
    let start = json!({"command": WATCHER, "name": "watch", "ready": "saw one", "wait_ms": 20000});
    let started = fixture.session("session_start", start).await;
    assert_eq!((text(&started, "output"), &started["ready"]), ("saw one\n", &json!(true)));
    let edit = json!({"path": "watched", "old_string": "one", "new_string": "two"});
    fixture.result("edit_file", edit).await;
    let read = json!({"session": "watch", "from": started["next"], "until": "saw two"});
    let read = fixture.session("session_read", read).await;
    assert_eq!((text(&read, "output"), &read["matched"]), ("saw two\n", &json!(true)));
    fixture.end().await;
}

async fn an_interpreter_on_pipes_answers_what_is_typed() {
    let mut fixture = Fixture::configured().await;
    let start = json!({"command": "python3 -iq", "name": "py", "wait_ms": 20000});
    let started = fixture.session("session_start", start).await;
    assert_eq!(text(&started, "state"), "waiting_for_input", "{started:?}");
    let typed = json!({"session": "py", "text": "print(6 * 7)", "keys": "Enter", "wait_ms": 20000});
    let answered = fixture.session("session_write", typed).await;
    assert!(text(&answered, "output").contains("42"), "{answered:?}");
    assert_eq!(text(&answered, "state"), "waiting_for_input");
    let sleeping = "import time; time.sleep(600)\n";
    let typed = json!({"session": "py", "text": sleeping, "wait_ms": 2000});
    let busy = fixture.session("session_write", typed).await;
    assert_eq!(text(&busy, "state"), "running", "{busy:?}");
    let interrupt = json!({"session": "py", "keys": "C-c", "wait_ms": 20000});
    let interrupted = fixture.session("session_write", interrupt).await;
    assert!(text(&interrupted, "output").contains("KeyboardInterrupt"), "{interrupted:?}");
    let refused = fixture.failure("session_write", json!({"session": "py", "keys": "Up"})).await;
    assert!(refused.message.contains("tty: true"), "{refused}");
    let words = json!({"session": "py", "keys": ["6*7", "Enter"], "wait_ms": 20000});
    let words = fixture.session("session_write", words).await;
    assert!(text(&words, "output").contains("42"), "{words:?}");
    let typed = json!({"session": "py", "text": sleeping, "wait_ms": 2000});
    assert_eq!(fixture.session("session_write", typed).await["state"], "running");
    let both = json!({"session": "py", "keys": "C-c C-d", "wait_ms": 20000});
    let both = fixture.session("session_write", both).await;
    assert_eq!(
        text(&both, "state"),
        "exited",
        "interrupted, and at the end of its input: {both:?}"
    );
    assert!(text(&both, "output").contains("KeyboardInterrupt"), "{both:?}");
    fixture.end().await;
}

async fn a_session_belongs_to_the_hosts_session_that_started_it() {
    let mut fixture = Fixture::configured().await;
    let sleep = mark(611);
    let start = json!({"command": format!("sleep {sleep}"), "name": "mine", "wait_ms": 0});
    fixture.session("session_start", start.clone()).await;
    for (tool, arguments) in [
        ("session_read", json!({"session": "mine"})),
        ("session_write", json!({"session": "mine", "text": "x"})),
        ("session_stop", json!({"session": "mine"})),
    ] {
        let (_, outcome) =
            fixture.client.invoke_to_end(of_another(tool, arguments.clone())).await.unwrap();
        let failure = outcome.expect_err("it is not theirs");
        assert_eq!(failure.category, "not_found", "{tool}");
        assert!(!failure.message.contains("mine,"), "{failure}");
        fixture.session(tool, arguments).await;
        if tool == "session_write" {
            assert_eq!(running(&sleep), 1, "it goes on");
        }
    }
    gone(&sleep).await;
    let again = fixture.session("session_start", start.clone()).await;
    assert_eq!(text(&again, "session"), "mine", "the name is free again");
    let taken = fixture.failure("session_start", start).await;
    assert!(taken.message.contains("runs already"), "{taken}");
    let listed = fixture.session("session_read", json!({})).await;
    let Some(Value::Array(listed)) = listed.get("sessions") else { panic!("{listed:?}") };
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(listed[0], json!(format!("mine: running: sleep {sleep}")));
    let theirs = fixture.client.invoke_to_end(of_another("session_read", json!({}))).await.unwrap();
    assert_eq!(theirs.1.unwrap()["sessions"], json!([]));
    fixture.end().await;
    gone(&sleep).await;
}
