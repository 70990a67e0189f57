//! Launching what is no plugin, or a plugin that cannot be used. The shell plays the plugin.

use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use super::*;
use crate::{Cookie, LineError};

const COOKIE: Cookie = Cookie { key: "TEST_PLUGIN", value: "yes" };

fn shell(script: &str) -> Launch {
    Launch::new("/bin/sh", COOKIE, [1]).arg("-c").arg(script)
}

/// A script that prints its process id on standard error and then runs `rest`.
fn announcing(rest: &str) -> (Launch, std::sync::mpsc::Receiver<Pid>) {
    let (sender, receiver) = std::sync::mpsc::channel();
    let launch = shell(&format!("echo $$ >&2; {rest}")).on_log(move |line| {
        let _ = sender.send(Pid::from_raw(line.message.parse().unwrap()).unwrap());
    });
    (launch, receiver)
}

fn is_gone(pid: Pid) -> bool {
    test_kill_process(pid) == Err(Errno::SRCH)
}

#[tokio::test]
async fn a_program_that_ends_is_quoted() {
    let error = shell("echo no config >&2; exit 3").start().await.unwrap_err();
    let LaunchError::NoHandshake { status, stderr, .. } = &error else { panic!("{error:?}") };
    assert_eq!(status.unwrap().code(), Some(3));
    assert_eq!(stderr, "no config");
    assert!(error.to_string().contains("no config"), "{error}");
}

#[tokio::test]
async fn a_program_that_prints_something_else_is_no_plugin() {
    let (launch, pid) = announcing("echo hello; exec sleep 600");
    let error = launch.start().await.unwrap_err();
    assert!(matches!(error, LaunchError::Line { source: LineError::Fields { .. }, .. }));
    assert!(is_gone(pid.recv().unwrap()));
}

#[tokio::test]
async fn a_program_that_prints_nothing_runs_out_of_time() {
    let launch = shell("exec sleep 600").start_timeout(Duration::from_millis(50));
    let error = launch.start().await.unwrap_err();
    assert!(matches!(error, LaunchError::Timeout { .. }), "{error:?}");
}

#[tokio::test]
async fn a_plugin_that_cannot_be_used_is_gone_when_the_launch_fails() {
    for (line, security, multiplex, expected) in [
        ("1|7|unix|/s|grpc|", Security::Plain, Multiplex::Off, "version 7"),
        ("1|1|unix|/s|grpc|", Security::Plain, Multiplex::On, "cannot multiplex"),
        ("1|1|unix|/s|grpc|", Security::AutoMtls, Multiplex::Off, "no certificate"),
        ("1|1|unix|/no/such/socket|grpc|", Security::Plain, Multiplex::Off, "cannot connect"),
    ] {
        let (launch, pid) = announcing(&format!("echo '{line}'; exec sleep 600"));
        let launched = launch.security(security).multiplex(multiplex).start().await;
        let error = launched.unwrap_err().to_string();
        assert!(error.contains(expected), "{line}: {error}");
        assert!(is_gone(pid.recv().unwrap()), "{line}");
    }
}

#[tokio::test]
async fn a_plugin_that_ignores_sigterm_is_killed() {
    let (launch, pid) =
        announcing("trap '' TERM; echo '1|7|unix|/s|grpc|'; while :; do sleep 1; done");
    let started = Instant::now();
    launch.start().await.unwrap_err();
    assert!(started.elapsed() < Duration::from_secs(30));
    assert!(is_gone(pid.recv().unwrap()));
}

#[tokio::test]
async fn the_environment_is_the_hosts_but_for_its_own_handshake() {
    let print = "env | sort >&2; exit 1";
    let few = "env | grep -E '^(EXTRA|TEST_PLUGIN|PLUGIN_)' >&2; exit 1";
    let inherited = shell(few).env("EXTRA", "1").start().await.unwrap_err().to_string();
    assert!(inherited.contains("EXTRA=1") && inherited.contains("TEST_PLUGIN=yes"), "{inherited}");
    assert!(!inherited.contains("PLUGIN_CLIENT_CERT"), "{inherited}");
    let cleared = shell(print).environment(Environment::Clear).start().await.unwrap_err();
    let LaunchError::NoHandshake { stderr, .. } = cleared else { panic!("{cleared:?}") };
    let mut names: Vec<_> =
        stderr.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    // What a shell sets by itself.
    names.retain(|name| !["PWD", "SHLVL", "_", "OLDPWD"].contains(name));
    assert_eq!(names, ["PLUGIN_PROTOCOL_VERSIONS", "TEST_PLUGIN"]);
}
