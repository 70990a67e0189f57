//! What a call waits for, and where in the output it is found.

use serde_json::{Value, json};

use super::text;
use crate::harness::Fixture;
use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_pattern_matches_what_is_printed_and_not_the_echo_of_what_was_typed,
        a_write_that_says_how_long_waits_through_silence,
        a_pattern_without_a_place_waits_for_news_only,
        a_word_that_is_meant_as_a_key_is_not_typed,
        a_match_is_in_what_is_shown,
        output_that_is_cut_says_how_much_is_left_out_and_where_it_is,
        a_pattern_that_cannot_see_all_says_where_to_look,
        a_prompt_that_does_not_show_is_explained,
        those_that_run_are_listed_first_and_a_wait_has_a_longest,
    ]
}

async fn a_pattern_matches_what_is_printed_and_not_the_echo_of_what_was_typed() {
    let mut fixture = Fixture::configured().await;
    let command = "while read -r line; do sleep 0.2; echo \"heard ${line#say }\"; done";
    let start = json!({"command": command, "tty": true, "name": "s", "wait_ms": 20000});
    fixture.session("session_start", start).await;
    let say = json!({"session": "s", "text": "say hello", "keys": "Enter", "until": "hello",
                     "wait_ms": 20000});
    let heard = fixture.session("session_write", say).await;
    assert_eq!(heard["matched"], true, "{heard:?}");
    assert!(text(&heard, "output").contains("heard hello"), "not the echo: {heard:?}");
    let never = json!({"session": "s", "text": "say x\n", "until": "never", "wait_ms": 120000});
    let never = fixture.session("session_write", never).await;
    assert_eq!((&never["matched"], text(&never, "state")), (&json!(false), "waiting_for_input"));
    fixture.end().await;
}

async fn a_write_that_says_how_long_waits_through_silence() {
    let mut fixture = Fixture::configured().await;
    let command = "while read -r line; do echo begins; sleep 1.5; echo \"done $line\"; done";
    let start = json!({"command": command, "name": "s", "wait_ms": 20000});
    fixture.session("session_start", start).await;
    let write = json!({"session": "s", "text": "one\n", "wait_ms": 20000});
    let written = fixture.session("session_write", write).await;
    assert_eq!(text(&written, "output"), "begins\ndone one\n", "{written:?}");
    assert_eq!(text(&written, "state"), "waiting_for_input");
    let short = json!({"session": "s", "text": "two\n"});
    let short = fixture.session("session_write", short).await;
    assert_eq!((text(&short, "output"), text(&short, "state")), ("begins\n", "running"));
    fixture.end().await;
}

async fn a_pattern_without_a_place_waits_for_news_only() {
    let mut fixture = Fixture::configured().await;
    let command = "echo tick; read x; until [ -e go ]; do sleep 0.05; done; echo tick $x; sleep 60";
    let start = json!({"command": command, "name": "s", "ready": "tick", "wait_ms": 20000});
    fixture.session("session_start", start).await;
    let old = json!({"session": "s", "until": "tick", "wait_ms": 300});
    let old = fixture.session("session_read", old).await;
    assert_eq!(old["matched"], false, "that line was there before: {old:?}");
    let all = json!({"session": "s", "until": "tick", "from": 0});
    assert_eq!(fixture.session("session_read", all).await["matched"], true);
    let go = json!({"session": "s", "text": "on\n", "wait_ms": 0});
    fixture.session("session_write", go).await;
    fixture.write("go", "");
    let seen = json!({"session": "s", "from": 0, "until": "tick on", "wait_ms": 20000});
    assert_eq!(fixture.session("session_read", seen).await["matched"], true);
    for _ in 0..2 {
        let news = json!({"session": "s", "until": "tick on", "wait_ms": 20000});
        let news = fixture.session("session_read", news).await;
        assert_eq!(news["matched"], true, "no write was answered with it: {news:?}");
    }
    fixture.end().await;
}

async fn a_word_that_is_meant_as_a_key_is_not_typed() {
    let mut fixture = Fixture::configured().await;
    let start = json!({"command": "cat -v", "tty": true, "name": "s"});
    fixture.session("session_start", start).await;
    for keys in ["F13 Enter", "Entr", "Ctrl+Enter"] {
        let failure = fixture.failure("session_write", json!({"session": "s", "keys": keys})).await;
        assert_eq!(failure.category, "invalid_arguments");
        assert!(failure.message.contains("there is no key"), "{failure}");
    }
    let press = json!({"session": "s", "text": "Entr ", "keys": "C-Left Enter", "until": "5D\\n",
                       "wait_ms": 20000});
    let pressed = fixture.session("session_write", press).await;
    assert!(text(&pressed, "output").contains("Entr ^[[1;5D"), "{pressed:?}");
    fixture.end().await;
}

async fn a_match_is_in_what_is_shown() {
    let mut fixture = Fixture::configured().await;
    let command = "seq -f 'line %06.0f' 1 10000; sleep 60";
    let start = json!({"command": command, "name": "s", "ready": "line 005000", "wait_ms": 20000});
    let started = fixture.session("session_start", start).await;
    assert!(text(&started, "output").contains("line 005000\n"), "{started:?}");
    let read = json!({"session": "s", "from": 0, "until": "line 010000"});
    fixture.session("session_read", read).await;
    let read = json!({"session": "s", "from": 0, "until": "line 00700."});
    let read = fixture.session("session_read", read).await;
    assert!(text(&read, "output").starts_with("line 007000\n"), "{read:?}");
    assert_eq!(read["match_at"], json!(6999 * 12));
    let there = json!({"session": "s", "from": read["match_at"]});
    let there = fixture.session("session_read", there).await;
    assert!(text(&there, "output").starts_with("line 007000\n"), "{there:?}");
    let first = json!({"session": "s", "from": 0, "until": "line 000002"});
    let first = fixture.session("session_read", first).await;
    assert!(text(&first, "output").starts_with("line 000001\n"), "it is in view: {first:?}");
    assert_eq!(first.get("match_at"), None);
    fixture.end().await;
}

async fn output_that_is_cut_says_how_much_is_left_out_and_where_it_is() {
    let mut fixture = Fixture::configured().await;
    let command = "seq -f 'line %06.0f' 1 5000; echo end; sleep 60";
    let start = json!({"command": command, "name": "s", "ready": "^end$", "wait_ms": 20000});
    let started = fixture.session("session_start", start).await;
    let read = fixture.session("session_read", json!({"session": "s"})).await;
    let stopped = fixture.session("session_stop", json!({"session": "s"})).await;
    for answer in [&started, &read, &stopped] {
        let output = text(answer, "output");
        assert!(output.ends_with("line 005000\nend\n"), "{answer:?}");
        assert_eq!(answer["left_out_bytes"], json!(5000 * 12 + 4 - output.len()), "{answer:?}");
        let path = text(answer, "full_output_path");
        let whole = json!({"path": path, "limit": 1});
        let whole = fixture.result("read_file", whole).await;
        assert!(Value::Object(whole.clone()).to_string().contains("line 000001"), "{whole:?}");
    }
    let short = json!({"command": "echo short", "ready": "never", "wait_ms": 20000});
    let short = fixture.session("session_start", short).await;
    assert_eq!((short.get("left_out_bytes"), short.get("full_output_path")), (None, None));
    fixture.end().await;
}

async fn a_pattern_that_cannot_see_all_says_where_to_look() {
    let mut fixture = Fixture::configured().await;
    let start = json!({"command": "echo first; seq -f %07.0f 200000; echo end; sleep 60", "name": "s",
                       "ready": "^end$", "wait_ms": 60000});
    fixture.session("session_start", start).await;
    let read = json!({"session": "s", "from": 0, "until": "^first$", "wait_ms": 0});
    let read = fixture.session("session_read", read).await;
    assert_eq!(read["matched"], false);
    assert!(text(&read, "notice").contains("full_output_path"), "{read:?}");
    let search = json!({"pattern": "^first$", "path": read["full_output_path"], "mode": "count"});
    let found = fixture.call("grep", search).await.1.unwrap();
    assert!(Value::Object(found.clone()).to_string().contains(".txt:1\""), "{found:?}");
    fixture.end().await;
}

async fn a_prompt_that_does_not_show_is_explained() {
    let mut fixture = Fixture::configured().await;
    let start = json!({"command": "read -r x; echo got $x", "name": "s", "wait_ms": 20000});
    let silent = fixture.session("session_start", start).await;
    assert!(text(&silent, "notice").contains("tty: true"), "{silent:?}");
    let start = json!({"command": "echo name?; read -r x", "wait_ms": 20000});
    let asks = fixture.session("session_start", start).await;
    assert_eq!(text(&asks, "state"), "waiting_for_input");
    // Without namespaces there is another notice, about servers.
    let notice = asks.get("notice").and_then(Value::as_str).unwrap_or_default();
    assert!(!notice.contains("tty: true"), "{asks:?}");
    fixture.end().await;
}

async fn those_that_run_are_listed_first_and_a_wait_has_a_longest() {
    let mut fixture = Fixture::configured().await;
    let ended = json!({"command": "exit 3", "name": "a", "wait_ms": 999_999_999});
    assert_eq!(fixture.session("session_start", ended).await["exit_code"], 3);
    let runs =
        json!({"command": format!("sleep 60 # {}", "x".repeat(200)), "name": "b", "wait_ms": 0});
    fixture.session("session_start", runs).await;
    let listed = fixture.session("session_read", json!({})).await;
    let lines: Vec<&str> =
        listed["sessions"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(lines[0].starts_with("b: running: sleep 60 # xxx"), "{lines:?}");
    assert!(lines[0].len() < 120, "{lines:?}");
    assert_eq!(lines[1], "a: exited (3): exit 3");
    fixture.end().await;
}
