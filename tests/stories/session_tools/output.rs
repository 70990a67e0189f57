//! What a session prints: bounded, masked, and read by as many as want to.

use std::time::Instant;

use serde_json::{Value, json};
use tool_provider::Event;

use super::text;
use crate::harness::{Fixture, TEST_TIMEOUT};
use crate::trials::{Need, Trial};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        two_readers_have_cursors_of_their_own_and_a_read_may_be_repeated,
        output_is_shown_as_a_terminal_would,
        secrets_are_masked_across_chunks_in_every_read_and_event,
        the_end_of_a_prompt_shows_although_a_secret_begins_so,
        a_secret_that_is_whole_only_on_the_screen_is_masked,
        long_output_is_kept_in_memory_and_in_a_file_up_to_their_limits,
        two_gibibytes_without_a_reader_take_little_memory needs [Need::Time],
        what_is_printed_during_a_call_is_streamed,
    ]
}

async fn two_readers_have_cursors_of_their_own_and_a_read_may_be_repeated() {
    let mut fixture = Fixture::configured().await;
    let start = json!({"command": "echo one; read x; echo \"two $x\"; read x; echo three; sleep 60",
                       "name": "s", "ready": "one", "wait_ms": 20000});
    let started = fixture.session("session_start", start).await;
    let first = started["next"].clone();
    let type_in = json!({"session": "s", "text": "x\n", "wait_ms": 20000});
    let typed = fixture.session("session_write", type_in).await;
    assert_eq!(text(&typed, "output"), "two x\n");
    let type_again = json!({"session": "s", "text": "x\n", "until": "three", "wait_ms": 20000});
    fixture.session("session_write", type_again).await;
    for (from, expected) in [
        (json!(0), "one\ntwo x\nthree\n"),
        (first, "two x\nthree\n"),
        (typed["next"].clone(), "three\n"),
    ] {
        for _ in 0..2 {
            let read = json!({"session": "s", "from": from, "until": "three"});
            let read = fixture.session("session_read", read).await;
            assert_eq!(text(&read, "output"), expected, "from {from}");
        }
    }
    let last = fixture.session("session_read", json!({"session": "s"})).await;
    assert_eq!(text(&last, "output"), "one\ntwo x\nthree\n");
    let nothing = json!({"session": "s", "from": last["next"]});
    assert_eq!(text(&fixture.session("session_read", nothing).await, "output"), "");
    let beyond = fixture.failure("session_read", json!({"session": "s", "from": 1000})).await;
    assert_eq!(beyond.category, "invalid_arguments");
    let bad = fixture.failure("session_read", json!({"session": "s", "until": "("})).await;
    assert!(bad.message.contains("regular expression"), "{bad}");
    fixture.end().await;
}

async fn output_is_shown_as_a_terminal_would() {
    let mut fixture = Fixture::configured().await;
    let command = r"printf '\033[1;31mred\033[0m\n10%%\r20%%\r100%%\n'; printf '\377\303\n'; printf 'gr\303'; \
                    sleep 0.2; printf '\266\303\237e\033[3'; sleep 0.2; printf '2mx\n'";
    let start = json!({"command": command, "ready": "never", "wait_ms": 20000});
    let started = fixture.session("session_start", start).await;
    assert_eq!(text(&started, "output"), "red\n100%\n\u{fffd}\u{fffd}\ngrößex\n");
    fixture.end().await;
}

async fn secrets_are_masked_across_chunks_in_every_read_and_event() {
    let mut fixture =
        Fixture::launched_with(|launch| launch.env("TOKEN", "hunter2-and-more")).await;
    fixture.configure(json!({"secret_env": ["TOKEN"]})).await.unwrap();
    let command = "printf 'a hunter2'; read x; printf -- '-and-more b\\n'; read x; \
                   printf 'hunter2\\033[1m-and-more c\\n'; sleep 60";
    let start = json!({"command": command, "name": "s", "ready": "a ", "wait_ms": 20000});
    let (events, started) = fixture.call("session_start", start).await;
    let mut streamed = output_of(&events);
    assert_eq!(text(&started.unwrap(), "output"), "a ", "the beginning of a secret is held back");
    for cue in [" b", " c"] {
        let typed = json!({"session": "s", "text": "x\n", "until": cue, "wait_ms": 20000});
        let (events, typed) = fixture.call("session_write", typed).await;
        streamed.push_str(&output_of(&events));
        assert!(text(&typed.unwrap(), "output").contains(cue));
    }
    let read = fixture.session("session_read", json!({"session": "s", "from": 0})).await;
    assert_eq!(text(&read, "output"), "a [TOKEN] b\n[TOKEN] c\n");
    assert!(streamed.contains("a [TOKEN] b"), "{streamed:?}");
    fixture.end().await;
}

/// One and two characters. Three are held back, as the story above has it.
async fn the_end_of_a_prompt_shows_although_a_secret_begins_so() {
    let mut fixture =
        Fixture::launched_with(|launch| launch.env("TOKEN", "hunter2-and-more")).await;
    fixture.configure(json!({"secret_env": ["TOKEN"]})).await.unwrap();
    for (tty, wait) in [(false, "read x"), (true, "read -s x"), (false, "sleep 600")] {
        let command = format!("printf 'say hu'; {wait}; echo 'nter2-and-more b'; sleep 600");
        let start = json!({"command": command, "tty": tty, "wait_ms": 20000});
        let (events, started) = fixture.call("session_start", start).await;
        let started = started.unwrap();
        assert_eq!(text(&started, "output"), "say hu", "{wait}: {started:?}");
        assert_eq!(output_of(&events), "say hu");
        if wait != "sleep 600" {
            let name = text(&started, "session");
            let typed = json!({"session": name, "text": "\n", "until": " b", "wait_ms": 20000});
            fixture.session("session_write", typed).await;
            let read = json!({"session": name, "from": 0});
            let read = fixture.session("session_read", read).await;
            assert_eq!(text(&read, "output"), "say hu[TOKEN] b\n", "{wait}");
        }
    }
    fixture.end().await;
}

async fn a_secret_that_is_whole_only_on_the_screen_is_masked() {
    let mut fixture =
        Fixture::launched_with(|launch| launch.env("TOKEN", "hunter2-and-more")).await;
    fixture.configure(json!({"secret_env": ["TOKEN"]})).await.unwrap();
    let split =
        "printf 'hun\\033[1mter2-\\033[0mand\\033[4m-more\\033[0m\\nhunter-\\b2-and-more\\n'";
    let draw = "printf '\\033[5;5Her2\\033[5;1Hhunt\\033[5;8H-and-more\\033[7;75Hhun\\033[1mter2-and-more'";
    let command = format!("{split}; read -s x; {draw}; echo up; sleep 600");
    let start = json!({"command": command, "tty": true, "name": "s", "wait_ms": 20000});
    let started = fixture.session("session_start", start).await;
    assert_eq!(text(&started, "output"), "[TOKEN]\n[TOKEN]\n");
    let end = started["next"].as_u64().unwrap();
    for from in 0..end {
        let read = json!({"session": "s", "from": from});
        let read = fixture.session("session_read", read).await;
        let shown = text(&read, "output").replace("[TOKEN]", "");
        assert!(!shown.contains("more") && !shown.contains("hun"), "from {from}: {read:?}");
    }
    let typed = json!({"session": "s", "text": "\n", "until": "up", "wait_ms": 20000});
    fixture.session("session_write", typed).await;
    let screen = json!({"session": "s", "screen": true});
    let screen = fixture.session("session_read", screen).await;
    assert!(!text(&screen, "output").contains("more"), "{screen:?}");
    assert_eq!(text(&screen, "output").matches("[TOKEN]").count(), 4, "{screen:?}");
    fixture.end().await;
}

fn output_of(events: &[Event]) -> String {
    let pieces = events.iter().filter_map(|event| match event {
        Event::Output { data, .. } => Some(String::from_utf8_lossy(data).into_owned()),
        _ => None,
    });
    pieces.collect()
}

/// Bytes of `seq -f %07.0f` up to a number.
const LINE: u64 = 8;

async fn long_output_is_kept_in_memory_and_in_a_file_up_to_their_limits() {
    let mut fixture = Fixture::configured().await;
    let lines = 400_000;
    let start = json!({"command": format!("seq -f %07.0f {lines}"), "name": "s", "ready": "never",
                       "wait_ms": 60000});
    let started = fixture.session("session_start", start).await;
    assert_eq!(text(&started, "state"), "exited");
    assert!(text(&started, "output").ends_with("0399999\n0400000\n"));
    assert_eq!(started["next"], json!(lines * LINE));
    let path = text(&started, "full_output_path").to_owned();
    let count = json!({"pattern": "^0", "path": path, "mode": "count"});
    let counted = fixture.call("grep", count).await.1.unwrap();
    assert!(Value::Object(counted.clone()).to_string().contains("400000"), "{counted:?}");

    // A page at a time, from what is still in memory.
    let mut from = json!(0);
    let mut seen = String::new();
    let mut dropped = 0;
    while from != json!(lines * LINE) {
        let page = fixture.session("session_read", json!({"session": "s", "from": from})).await;
        dropped += page.get("left_out_bytes").and_then(Value::as_u64).unwrap_or(0);
        seen.push_str(text(&page, "output"));
        assert_ne!(page["next"], from, "{page:?}");
        from = page["next"].clone();
    }
    assert_eq!(dropped + seen.len() as u64, lines * LINE);
    assert!(seen.len() > 1_000_000 && seen.len() <= 1 << 20, "{}", seen.len());
    let first: u64 = seen.lines().next().unwrap().parse().unwrap();
    assert!(seen.lines().map(|line| line.parse::<u64>().unwrap()).eq(first..=lines));
    fixture.end().await;
}

async fn two_gibibytes_without_a_reader_take_little_memory() {
    let mut fixture = Fixture::configured().await;
    let before = fixture.status("RssAnon");
    let mut peak = before;
    let command = "head -c 2147483648 /dev/zero | tr '\\0' 'x' | fold -w 99; echo done";
    let start = json!({"command": command, "name": "s", "wait_ms": 0});
    fixture.session("session_start", start).await;
    let until = Instant::now() + 10 * TEST_TIMEOUT;
    let ended = loop {
        let read = json!({"session": "s", "until": "^done$", "wait_ms": 1000});
        let read = fixture.session("session_read", read).await;
        peak = peak.max(fixture.status("RssAnon") + fixture.status("RssShmem"));
        if text(&read, "state") == "exited" {
            break read;
        }
        assert!(Instant::now() < until, "{read:?}");
    };
    assert!(ended["next"].as_u64().unwrap() > 2 << 30);
    eprintln!("2 GiB without a reader: {before} KiB of its own before, {peak} KiB at most");
    // The program's file is left out: of a build for debugging that alone is more than 20 MiB.
    // `benches/session` has all of a build for release.
    assert!(peak <= 12 * 1024, "{peak} KiB, {before} before");
    fixture.end().await;
}

async fn what_is_printed_during_a_call_is_streamed() {
    let mut fixture = Fixture::configured().await;
    let start = json!({"command": "for n in 1 2 3; do echo line $n; sleep 0.1; done",
                       "ready": "never", "wait_ms": 20000});
    let (events, started) = fixture.call("session_start", start).await;
    assert_eq!(output_of(&events), "line 1\nline 2\nline 3\n");
    assert_eq!(text(&started.unwrap(), "output"), "line 1\nline 2\nline 3\n");
    fixture.end().await;
}
