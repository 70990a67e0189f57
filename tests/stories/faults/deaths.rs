//! Processes that are killed: the host, the jail's spawner, a call's supervisor.

use std::process::{Command, Stdio};

use futures_util::StreamExt as _;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tool_provider::grpc::{Failure, InvokeItem, InvokeStream};

use crate::harness::{Fixture, PROGRAM, TEST_TIMEOUT, call, wait_for_end};
use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_killed_host_leaves_no_process,
        a_killed_supervisor_costs_its_call_alone,
        a_killed_spawner_is_replaced_by_configuring_again,
        a_killed_provider_takes_its_commands_along,
    ]
}

/// A command that runs until it is killed, under a name by which it is found, with a process that
/// hides from its shell.
fn endless(mark: &str) -> String {
    format!("setsid bash -c 'exec -a {mark} sleep 1000' & exec -a {mark} sleep 1000")
}

fn mark(fixture: &str) -> String {
    format!("mark-{fixture}-{}.", std::process::id())
}

/// The processes that were started under this name.
fn marked(mark: &str) -> Vec<u32> {
    let begins = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.starts_with(mark.as_bytes())
    };
    processes().into_iter().filter(begins).collect()
}

fn processes() -> Vec<u32> {
    crate::harness::names("/proc".as_ref()).iter().filter_map(|name| name.parse().ok()).collect()
}

fn parent(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

fn children(pid: u32) -> Vec<u32> {
    processes().into_iter().filter(|child| parent(*child) == Some(pid)).collect()
}

fn kill(pid: u32) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::KILL).unwrap();
}

/// Waits until two processes run under this name.
async fn wait_for(mark: &str) -> Vec<u32> {
    let found = async {
        loop {
            match marked(mark) {
                found if found.len() >= 2 => return found,
                _ => tokio::task::yield_now().await,
            }
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, found).await.expect("the command does not run")
}

fn all_end(pids: &[u32]) {
    pids.iter().for_each(|pid| wait_for_end(*pid));
}

/// A host that is killed has no chance to say anything. Everything ends with it all the same.
async fn a_killed_host_leaves_no_process() {
    let directory = tempfile::tempdir().unwrap();
    let [tmp, work] = ["tmp", "work"].map(|name| directory.path().join(name));
    for made in [&tmp, &work] {
        std::fs::create_dir(made).unwrap();
    }
    let mark = mark("host");
    let mut host = Command::new(PROGRAM)
        .args(["call", "bash", &json!({"command": endless(&mark)}).to_string()])
        .env("TMPDIR", &tmp)
        .current_dir(&work)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut left = wait_for(&mark).await;
    let providers = children(host.id());
    assert_eq!(providers.len(), 1);
    left.extend(children(providers[0]));
    left.extend(providers);
    host.kill().unwrap();
    host.wait().unwrap();
    all_end(&left);
    assert_eq!(marked(&mark), [0; 0]);
}

/// Starts a call that runs for ever, and returns its stream and its processes.
async fn begin(fixture: &mut Fixture, mark: &str) -> (InvokeStream, Vec<u32>) {
    let stream = fixture.client.invoke(call("bash", json!({"command": endless(mark)}))).await;
    (stream.unwrap(), wait_for(mark).await)
}

/// The failure that a stream ends with.
async fn end(mut stream: InvokeStream) -> Failure {
    let last = async {
        let mut last = None;
        while let Some(item) = stream.next().await {
            last = Some(item.unwrap());
        }
        last
    };
    match tokio::time::timeout(TEST_TIMEOUT, last).await.expect("the call goes on for ever") {
        Some(InvokeItem::Failure(failure)) => failure,
        other => panic!("no failure: {other:?}"),
    }
}

/// The processes of the jail above a command: its supervisor, the spawner, and, where the spawner is
/// in namespaces, the process that waits for it outside. The nearest first.
fn above(pid: u32, provider: u32) -> Vec<u32> {
    let mut above = Vec::new();
    let mut next = parent(pid);
    while let Some(pid) = next.filter(|pid| *pid != provider) {
        assert!(pid > 1 && above.len() < 5, "no descendant of the provider: {above:?}");
        above.push(pid);
        next = parent(pid);
    }
    above
}

/// The shell among a call's processes: the other one hides in a session of its own.
fn shell_of(pids: &[u32]) -> u32 {
    let born_first = pids.iter().min_by_key(|pid| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        let started: u64 = fields[19].parse().unwrap();
        (started, **pid)
    });
    *born_first.unwrap()
}

/// The call ends with a classified failure and all of its processes; other calls do not notice, and
/// the next one runs.
async fn a_killed_supervisor_costs_its_call_alone() {
    let mut fixture = Fixture::configured().await;
    let (marks, other) = (mark("supervisor"), mark("beside"));
    let (stream, pids) = begin(&mut fixture, &marks).await;
    let (beside, beside_pids) = begin(&mut fixture, &other).await;
    kill(above(shell_of(&pids), fixture.pid())[0]);
    let failure = end(stream).await;
    assert_ne!(failure.category, "invalid_arguments", "{failure:?}");
    all_end(&pids);
    assert_eq!(marked(&other).len(), 2, "a call beside it ended too");
    let (_, outcome) = fixture.call("bash", json!({"command": "echo next"})).await;
    assert_eq!(outcome.unwrap()["output"], "next\n");
    drop(beside);
    all_end(&beside_pids);
    fixture.end().await;
}

/// Calls that run end with a classified failure, the next ones say what to do, files are read and
/// written all the same, and what is said to do helps.
async fn a_killed_spawner_is_replaced_by_configuring_again() {
    let mut fixture = Fixture::configured().await;
    fixture.write("a.txt", "here\n");
    // Where there are namespaces the spawner is two processes, and each may be the one that dies.
    let mut nth = 0;
    loop {
        let mark = mark(&format!("spawner-{nth}"));
        let (stream, pids) = begin(&mut fixture, &mark).await;
        let above = above(shell_of(&pids), fixture.pid());
        let spawners = &above[1..];
        let Some(spawner) = spawners.get(nth) else {
            drop(stream);
            all_end(&pids);
            break;
        };
        kill(*spawner);
        if nth == 0 && spawners.len() > 1 {
            // With the first process of their namespace all others of it end.
            let failure = end(stream).await;
            assert_ne!(failure.category, "invalid_arguments", "{failure:?}");
        } else {
            // The supervisor has lost its parent and sees to its call's end by itself.
            drop(stream);
        }
        all_end(&pids);
        wait_for_end(*spawner);
        let failure = failing(&mut fixture).await;
        assert_eq!(failure.category, "execution_failed", "{failure:?}");
        assert!(failure.message.contains("spawner process is gone"), "{failure:?}");
        assert!(failure.hint().unwrap().contains("configuring the provider again"), "{failure:?}");
        fixture.result("read_file", json!({"path": "a.txt"})).await;
        fixture.result("write_file", json!({"path": "b.txt", "content": "new\n"})).await;
        fixture.configure(json!({})).await.unwrap();
        let (_, outcome) = fixture.call("bash", json!({"command": "cat b.txt"})).await;
        assert_eq!(outcome.unwrap()["output"], "new\n");
        nth += 1;
    }
    assert!(nth >= 1);
    fixture.end().await;
}

/// The first failure of a call that did not start. The spawner may be on its way out still: then a call
/// runs, or one that has begun ends with the spawner's other processes.
async fn failing(fixture: &mut Fixture) -> Failure {
    let failed = async {
        loop {
            match fixture.call("bash", json!({"command": "true"})).await.1 {
                Err(failure) if failure.category != "unknown" => return failure,
                _ => {}
            }
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, failed).await.expect("commands start without a spawner")
}

/// The provider itself, in the middle of a command: nothing of it stays behind.
async fn a_killed_provider_takes_its_commands_along() {
    let mut fixture = Fixture::configured().await;
    let mark = mark("provider");
    let (mut stream, mut pids) = begin(&mut fixture, &mark).await;
    pids.extend(above(shell_of(&pids), fixture.pid()));
    kill(fixture.pid());
    all_end(&pids);
    fixture.plugin.wait().await.unwrap();
    while let Some(Ok(_)) = stream.next().await {}
    fixture.relaunch().await;
    fixture.configure(json!({})).await.unwrap();
    let (_, outcome) = fixture.call("bash", json!({"command": "echo again"})).await;
    assert_eq!(outcome.unwrap()["output"], "again\n");
}
