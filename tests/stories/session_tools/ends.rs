//! How sessions end, and that nothing of them is left.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use prost::Message as _;
use serde_json::json;
use tool_provider::grpc::pb::hook::v1 as hook;
use tool_provider::grpc::pb::hook::v1::hook_subscriber_service_client::HookSubscriberServiceClient;

use super::{of_another, text};
use crate::bash::{gone, mark, next_output, running};
use crate::harness::{Fixture, TEST_TIMEOUT, call, wait_for_end};
use crate::trials::{Need, Trial};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_stop_ends_everything_that_a_session_started,
        what_does_not_end_by_itself_is_killed,
        a_stop_answers_when_a_swarm_is_gone needs [Need::Program("perl")],
        nobody_uses_it_for_long_and_it_ends,
        there_are_only_so_many_and_an_ended_one_makes_room,
        a_cancelled_start_ends_what_it_started_and_a_cancelled_read_does_not,
        a_configure_ends_them_and_says_so,
        nothing_is_left_when_the_provider_ends_or_is_killed_with_sixteen,
        nothing_is_left_when_the_host_is_killed_with_sixteen,
        a_killed_supervisor_is_told_and_takes_its_session_with_it,
        the_hosts_session_ends_and_its_sessions_with_it_and_no_others,
        bash_names_session_start_where_it_ended_what_went_on,
        a_session_whose_command_leaves_something_running_says_so,
    ]
}

/// Starts a session with a sleep of its own below it, and returns its name.
async fn sleeper(fixture: &mut Fixture, sleep: &str) -> String {
    let command = format!("setsid sleep {sleep} & (sleep {sleep} &) ; echo up; sleep {sleep}");
    let start = json!({"command": command, "ready": "up", "wait_ms": 20000});
    text(&fixture.session("session_start", start).await, "session").to_owned()
}

async fn a_stop_ends_everything_that_a_session_started() {
    let mut fixture = Fixture::configured().await;
    let sleep = mark(621);
    let name = sleeper(&mut fixture, &sleep).await;
    assert!(running(&sleep) >= 3);
    let stopped = fixture.session("session_stop", json!({"session": name})).await;
    assert_eq!(running(&sleep), 0);
    assert_eq!((text(&stopped, "state"), text(&stopped, "output")), ("stopped", "up\n"));
    assert_eq!((stopped.get("exit_code"), stopped.get("signal")), (None, None), "{stopped:?}");
    let again = fixture.session("session_stop", json!({"session": name})).await;
    assert_eq!(text(&again, "state"), "stopped", "as often as one likes");
    assert!(text(&again, "notice").contains("had ended before"), "{again:?}");
    assert_eq!(again.get("processes_ended"), None, "{again:?}");
    fixture.end().await;
}

async fn what_does_not_end_by_itself_is_killed() {
    let mut fixture = Fixture::configured().await;
    let sleep = mark(622);
    let command = format!("trap '' TERM; echo up; while :; do sleep {sleep}; done");
    let start = json!({"command": command, "name": "s", "ready": "up", "wait_ms": 20000});
    fixture.session("session_start", start).await;
    let stopped = fixture.session("session_stop", json!({"session": "s"})).await;
    assert_eq!(stopped["signals_sent"], json!(["SIGTERM", "SIGKILL"]));
    assert_eq!(running(&sleep), 0);
    fixture.end().await;
}

/// Each of twenty forks and ends again and again, in a group of its own.
const SWARM: &str = "setpgrp; for ($n = 0;; $n++) { exit if fork; print qq(up\n) if $n == 200 }";

async fn a_stop_answers_when_a_swarm_is_gone() {
    let mut fixture = Fixture::configured().await;
    let sleep = mark(635);
    let command = format!(
        "trap '' TERM; for i in $(seq 20); do perl -e '$| = 1; $0 = shift; {SWARM}' {sleep} & done; exec sleep {sleep}"
    );
    let start = json!({"command": command, "name": "s", "ready": "(up\\s+){20}", "wait_ms": 60000});
    assert_eq!(fixture.session("session_start", start).await["ready"], true);
    let stopped = fixture.session("session_stop", json!({"session": "s"})).await;
    assert_eq!(running(&sleep), 0, "{stopped:?}");
    assert_eq!(stopped.get("notice"), None, "{stopped:?}");
    fixture.end().await;
}

async fn nobody_uses_it_for_long_and_it_ends() {
    let mut fixture = Fixture::launched().await;
    fixture.configure(json!({"session_idle_ms": 1000})).await.unwrap();
    let sleep = mark(623);
    let name = sleeper(&mut fixture, &sleep).await;
    gone(&sleep).await;
    let read = fixture.session_in(&name, &["killed"]).await;
    assert!(text(&read, "notice").contains("session_idle_ms"), "{read:?}");
    fixture.end().await;
}

async fn there_are_only_so_many_and_an_ended_one_makes_room() {
    let mut fixture = Fixture::launched().await;
    fixture.configure(json!({"max_sessions": 2})).await.unwrap();
    let start = json!({"command": "sleep 624", "wait_ms": 0});
    for _ in 0..2 {
        fixture.session("session_start", start.clone()).await;
    }
    let refused = fixture.failure("session_start", start.clone()).await;
    assert!(refused.message.contains("2 sessions run already"), "{refused}");
    fixture.session("session_stop", json!({"session": "s1"})).await;
    let third = fixture.session("session_start", start).await;
    assert_eq!(text(&third, "session"), "s3");
    fixture.end().await;
}

async fn a_cancelled_start_ends_what_it_started_and_a_cancelled_read_does_not() {
    let mut fixture = Fixture::configured().await;
    let sleep = mark(625);
    let command = format!("echo up; sleep {sleep}");
    let start = json!({"command": command, "ready": "never", "wait_ms": 60000});
    let mut stream = fixture.client.invoke(call("session_start", start)).await.unwrap();
    next_output(&mut stream, "up").await;
    drop(stream);
    gone(&sleep).await;

    let command = format!("while echo tick; do sleep 0.05; done & sleep {sleep}");
    let start = json!({"command": command, "ready": "tick", "wait_ms": 20000});
    let name = text(&fixture.session("session_start", start).await, "session").to_owned();
    let read = json!({"session": name, "until": "never", "wait_ms": 60000});
    let mut stream = fixture.client.invoke(call("session_read", read)).await.unwrap();
    next_output(&mut stream, "tick").await;
    drop(stream);
    let state = fixture.session("session_read", json!({"session": name})).await;
    assert_eq!(text(&state, "state"), "running");
    assert!(running(&sleep) >= 2, "the shell and its sleep");
    fixture.end().await;
    gone(&sleep).await;
}

async fn a_configure_ends_them_and_says_so() {
    let mut fixture = Fixture::configured().await;
    let sleep = mark(626);
    let name = sleeper(&mut fixture, &sleep).await;
    let read = json!({"session": name, "until": "never", "wait_ms": 60000});
    let mut client = fixture.client.clone();
    let waiting =
        tokio::spawn(async move { client.invoke_to_end(call("session_read", read)).await });
    fixture.configure(json!({"network": "allow"})).await.unwrap();
    assert_eq!(running(&sleep), 0, "they have ended with the old jail");
    waiting.await.unwrap().unwrap().1.unwrap();
    let read = fixture.session("session_read", json!({"session": name})).await;
    assert_eq!(text(&read, "state"), "killed");
    assert!(text(&read, "notice").contains("configured anew"), "{read:?}");
    let again = sleeper(&mut fixture, &sleep).await;
    assert_eq!(fixture.session_in(&again, &["running"]).await["state"], "running");
    fixture.end().await;
    gone(&sleep).await;
}

async fn nothing_is_left_when_the_provider_ends_or_is_killed_with_sixteen() {
    let sleep = mark(627);
    for killed in [false, true] {
        let mut fixture = Fixture::configured().await;
        for _ in 0..16 {
            sleeper(&mut fixture, &sleep).await;
        }
        assert!(running(&sleep) >= 48);
        if killed {
            let pid = rustix::process::Pid::from_raw(fixture.pid().cast_signed()).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
            gone(&sleep).await;
            fixture.clear_tmp();
            fixture.relaunch().await;
            fixture.configure(json!({})).await.unwrap();
            let listed = fixture.session("session_read", json!({})).await;
            assert_eq!(listed["sessions"], json!([]));
            fixture.end().await;
        } else {
            let started = Instant::now();
            fixture.end().await;
            assert!(started.elapsed() < TEST_TIMEOUT);
            gone(&sleep).await;
        }
    }
}

/// Set for this program where it is to be a host that a story kills: the mark of its sessions.
const HOST: &str = "STORY_HOST_OF_SESSIONS";

/// Starts sixteen sessions where a story asks for that, tells the provider's process, and waits to be killed.
pub(crate) fn be_a_host_if_asked() -> Option<ExitCode> {
    let sleep = std::env::var(HOST).ok()?;
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let mut fixture = Fixture::configured().await;
        for _ in 0..16 {
            sleeper(&mut fixture, &sleep).await;
        }
        let told = format!("{}\n", fixture.pid());
        std::io::stdout().write_all(told.as_bytes()).unwrap();
        std::future::pending::<()>().await;
    });
    None
}

async fn nothing_is_left_when_the_host_is_killed_with_sixteen() {
    let sleep = mark(628);
    let directory = tempfile::tempdir().unwrap();
    let mut host = Command::new(std::env::current_exe().unwrap())
        .env(HOST, &sleep)
        .env("TMPDIR", directory.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = String::new();
    BufReader::new(host.stdout.take().unwrap()).read_line(&mut told).unwrap();
    let provider = told.trim().parse().unwrap();
    assert!(running(&sleep) >= 48);
    host.kill().unwrap();
    host.wait().unwrap();
    wait_for_end(provider);
    gone(&sleep).await;
}

async fn a_killed_supervisor_is_told_and_takes_its_session_with_it() {
    let mut fixture = Fixture::configured().await;
    let (sleep, other) = (mark(633), mark(634));
    let name = sleeper(&mut fixture, &sleep).await;
    let other_name = sleeper(&mut fixture, &other).await;
    let supervisor = above(a_process_with(&sleep), "call-supervisor");
    rustix::process::kill_process(supervisor, rustix::process::Signal::KILL).unwrap();
    let read = fixture.session_in(&name, &["killed"]).await;
    assert!(text(&read, "notice").contains("supervisor was killed"), "{read:?}");
    assert_eq!((text(&read, "output"), read.get("exit_code")), ("up\n", None), "{read:?}");
    gone(&sleep).await;
    let goes_on = fixture.session("session_read", json!({"session": other_name})).await;
    assert_eq!(text(&goes_on, "state"), "running");
    fixture.end().await;
    gone(&other).await;
}

/// A process whose command line holds this.
fn a_process_with(text: &str) -> u32 {
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    let mut pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let holds = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(text)
    };
    pids.find(holds).unwrap()
}

/// The nearest process above this one that has this name.
fn above(mut pid: u32, name: &str) -> rustix::process::Pid {
    loop {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let field = |field: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(field));
            line.unwrap().trim().to_owned()
        };
        if field("Name:") == name {
            return rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
        }
        pid = field("PPid:").parse().unwrap();
    }
}

async fn the_hosts_session_ends_and_its_sessions_with_it_and_no_others() {
    let mut fixture = Fixture::configured().await;
    let (sleep, other) = (mark(630), mark(631));
    let name = sleeper(&mut fixture, &sleep).await;
    let start = json!({"command": format!("sleep {other}"), "wait_ms": 0});
    let theirs = fixture.client.invoke_to_end(of_another("session_start", start)).await.unwrap();
    let theirs = text(&theirs.1.unwrap(), "session").to_owned();
    let mut hooks = HookSubscriberServiceClient::new(fixture.plugin.channel());
    let end = hook::SessionEndPayload { session_id: "session-1".to_owned(), status: 1 };
    let point = hook::hook_payload::Point::SessionEnd(end.encode_to_vec());
    let payload = Some(hook::HookPayload { point: Some(point) });
    let request = hook::DispatchHookRequest { payload, mode: 1, subscription_id: None };
    let answer = hooks.dispatch_hook(request).await.unwrap().into_inner();
    let ack = hook::dispatch_hook_response::Result::Observe(hook::ObserveAck {});
    assert_eq!(answer.result, Some(ack));
    gone(&sleep).await;
    let read = fixture.session_in(&name, &["killed"]).await;
    assert!(text(&read, "notice").contains("host's session ended"), "{read:?}");
    let read = of_another("session_read", json!({"session": theirs}));
    let read = fixture.client.invoke_to_end(read).await.unwrap().1.unwrap();
    assert_eq!(text(&read, "state"), "running");
    assert_eq!(running(&other), 1);
    fixture.end().await;
    gone(&other).await;
}

async fn bash_names_session_start_where_it_ended_what_went_on() {
    let mut fixture = Fixture::configured().await;
    let (_, ran) = fixture.call("bash", json!({"command": "sleep 629 &"})).await;
    let ran = ran.unwrap();
    let notice = text(&ran, "notice");
    assert!(notice.contains("session_start") && notice.contains("\"sleep 629\""), "{notice}");
    fixture.end().await;
}

async fn a_session_whose_command_leaves_something_running_says_so() {
    let mut fixture = Fixture::configured().await;
    let start = json!({"command": "sleep 632 & echo up", "name": "s", "wait_ms": 20000});
    fixture.session("session_start", start).await;
    let started = fixture.session_in("s", &["exited"]).await;
    let notice = text(&started, "notice");
    assert!(notice.contains("sleep") && notice.contains("without &"), "{notice}");
    let alone = json!({"command": "echo up", "name": "alone", "wait_ms": 20000});
    fixture.session("session_start", alone).await;
    assert_eq!(fixture.session_in("alone", &["exited"]).await.get("notice"), None);
    fixture.end().await;
}
