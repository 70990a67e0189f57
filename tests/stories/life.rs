//! How the process starts and ends.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, Stdio};

use goplugin::host::{Launch, Multiplex, Security};
use provider_workspace::plugin::COOKIE;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::harness::{Fixture, PROGRAM, names, wait_for_end};
use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        by_hand_there_is_a_page_of_help_and_nothing_on_stdout,
        one_line_on_stdout_ever_and_sigterm_ends_it_well,
        sigint_reaches_the_whole_terminal_and_must_not_end_the_plugin,
        sighup_and_sigquit_end_it_well_and_a_write_beyond_a_file_size_limit_does_not_end_it,
        no_other_process_of_the_user_looks_into_the_plugin,
        the_plugin_ends_with_its_host_and_takes_its_socket_along,
        every_kind_of_connection_works_and_ends_in_order,
        a_killed_plugin_does_not_keep_the_next_one_from_starting,
    ]
}

fn as_plugin(program: &str) -> Command {
    let mut command = Command::new(program);
    command
        .env(COOKIE.key, COOKIE.value)
        .env("PLUGIN_PROTOCOL_VERSIONS", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal).unwrap();
}

fn by_hand_there_is_a_page_of_help_and_nothing_on_stdout() {
    for value in [None, Some("another application's cookie")] {
        let mut command = Command::new(PROGRAM);
        command.env_remove(COOKIE.key);
        if let Some(value) = value {
            command.env(COOKIE.key, value);
        }
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(output.stdout.is_empty());
        let page = String::from_utf8(output.stderr).unwrap();
        assert!(page.contains("call read_file") && page.contains("doctor"), "{page}");
    }
}

fn one_line_on_stdout_ever_and_sigterm_ends_it_well() {
    let tmp = tempfile::tempdir().unwrap();
    let mut child = as_plugin(PROGRAM).env("TMPDIR", tmp.path()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert!(line.starts_with("1|1|unix|/") && line.trim_end().ends_with("|grpc|"), "{line}");
    assert_eq!(names(tmp.path()).len(), 1);

    signal(child.id(), Signal::TERM);
    assert!(child.wait().unwrap().success());
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
    assert!(names(tmp.path()).is_empty(), "the socket is gone");
}

fn sigint_reaches_the_whole_terminal_and_must_not_end_the_plugin() {
    let mut child = as_plugin(PROGRAM).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    signal(child.id(), Signal::INT);
    signal(child.id(), Signal::TERM);
    assert!(child.wait().unwrap().success(), "SIGINT would have killed it by a signal");
}

fn sighup_and_sigquit_end_it_well_and_a_write_beyond_a_file_size_limit_does_not_end_it() {
    for last in [Signal::HUP, Signal::QUIT] {
        let mut child = as_plugin(PROGRAM).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        signal(child.id(), Signal::XFSZ);
        signal(child.id(), last);
        assert!(child.wait().unwrap().success(), "{last:?}");
    }
}

/// Its environment may hold an operator's tokens, and /proc would show them to every process of the
/// user.
fn no_other_process_of_the_user_looks_into_the_plugin() {
    let tmp = tempfile::tempdir().unwrap();
    // Root may look at anybody by one of three capabilities, which neither of the two has here.
    const LIMITS: [&str; 2] = [
        "--bounding-set=-sys_ptrace,-sys_admin,-perfmon",
        "--inh-caps=-sys_ptrace,-sys_admin,-perfmon",
    ];
    let limited = |program: &str, argument: &str| -> Vec<String> {
        let root = rustix::process::geteuid().is_root();
        let limits = root.then_some(["setpriv", LIMITS[0], LIMITS[1]]).into_iter().flatten();
        limits.chain([program, argument]).map(str::to_owned).collect()
    };
    let words = limited(PROGRAM, "");
    let mut plugin = as_plugin(&words[0]);
    plugin.args(&words[1..]).env("TMPDIR", tmp.path()).env("TOKEN", "of-the-story");
    let mut plugin = plugin.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(plugin.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let look_at = |pid: u32| {
        let words = limited("cat", &format!("/proc/{pid}/environ"));
        let seen = Command::new(&words[0]).args(&words[1..]).output().unwrap();
        String::from_utf8_lossy(&seen.stdout).contains("of-the-story")
    };
    let words = limited("cat", "-");
    let mut open = Command::new(&words[0]);
    open.args(&words[1..])
        .env("TOKEN", "of-the-story")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut open = open.spawn().unwrap();
    // What it was started through may be closed to others still: it is up once it answers.
    open.stdin.as_mut().unwrap().write_all(b"up\n").unwrap();
    BufReader::new(open.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let seen = [look_at(plugin.id()), look_at(open.id())];
    open.kill().unwrap();
    open.wait().unwrap();
    signal(plugin.id(), Signal::TERM);
    assert!(plugin.wait().unwrap().success());
    assert_eq!(seen, [false, true]);
}

/// T05: a host that is killed leaves nothing behind.
fn the_plugin_ends_with_its_host_and_takes_its_socket_along() {
    let tmp = tempfile::tempdir().unwrap();
    let mut host = as_plugin("/bin/sh")
        .args(["-c", "\"$0\" & echo $! >&2; wait", PROGRAM])
        .env("TMPDIR", tmp.path())
        .spawn()
        .unwrap();
    let mut first_line = String::new();
    BufReader::new(host.stdout.take().unwrap()).read_line(&mut first_line).unwrap();
    let mut pid = String::new();
    BufReader::new(host.stderr.take().unwrap()).read_line(&mut pid).unwrap();
    assert_eq!(names(tmp.path()).len(), 1);
    host.kill().unwrap();
    host.wait().unwrap();
    wait_for_end(pid.trim().parse().unwrap());
    assert!(names(tmp.path()).is_empty(), "the socket is gone");
}

/// T05: the host's own way to end a plugin, in every way to be connected.
async fn every_kind_of_connection_works_and_ends_in_order() {
    for security in [Security::Plain, Security::AutoMtls] {
        for multiplex in [Multiplex::Off, Multiplex::On] {
            let change = |launch: Launch| launch.security(security).multiplex(multiplex);
            let mut fixture = Fixture::launched_with(change).await;
            fixture.plugin.ping().await.unwrap();
            fixture.configure(json!({})).await.unwrap();
            fixture.write("a.txt", "hello\n");
            let result = fixture.result("read_file", json!({"path": "a.txt"})).await;
            assert!(result["text"].as_str().unwrap().contains("hello"));
            fixture.end().await;
        }
    }
}

/// T05: killed, it starts again, whatever the dead one left.
async fn a_killed_plugin_does_not_keep_the_next_one_from_starting() {
    let mut fixture = Fixture::launched().await;
    assert!(!fixture.sockets().is_empty());
    signal(fixture.pid(), Signal::KILL);
    fixture.plugin.wait().await.unwrap();
    let mut next = Fixture::launched().await;
    next.configure(json!({})).await.unwrap();
    next.end().await;
}
