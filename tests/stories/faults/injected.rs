//! System calls that fail for no reason that the provider can see. strace makes them fail, in the
//! threads that work on files and nowhere else.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tool_provider::Payload;
use tool_provider::grpc::Failure;

use crate::harness::{Fixture, call, names};
use crate::trials::{Need, Trial};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        system_calls_that_fail_are_reported_and_leave_files_whole
            needs [Need::Program("strace"), Need::TracingOfAnyone, Need::Time],
    ]
}

/// What fails, in which way.
const FAULTS: [(&str, &str); 17] = [
    ("openat2", "EIO"),
    ("openat2", "EINTR"),
    ("openat2", "EMFILE"),
    ("openat", "EIO"),
    ("openat", "ENOMEM"),
    ("read", "EIO"),
    ("read", "EINTR"),
    ("write", "EIO"),
    ("write", "EINTR"),
    ("write", "EDQUOT"),
    ("fsync", "EIO"),
    ("fsync", "EINTR"),
    ("linkat", "EIO"),
    ("/^renameat", "EIO"),
    ("/^(statx|newfstatat|fstat)$", "EIO"),
    ("fchmod", "EIO"),
    ("getdents64", "EIO"),
];

/// The first that is made, every second one, every third one from the second on.
const WHEN: [&str; 3] = ["1", "2+2", "2+3"];

/// A worker also writes to wake the thread that serves the host, which is none of the disk's
/// business. What it writes first in a call that changes a file goes into that file.
const FIRST_ONLY: &str = "write";

/// Whatever fails: a result, or a failure of a known category; the file has its old content or its
/// new one; nothing is left beside it; and once nothing fails any more, everything works.
async fn system_calls_that_fail_are_reported_and_leave_files_whole() {
    let mut fixture = Fixture::configured().await;
    let tools = fixture.client.schema().await.unwrap().tools;
    let mut injected = BTreeMap::<_, usize>::new();
    let known = |call: &Call| tools.iter().any(|tool| tool.name == call.0);
    for (fault, when, calls) in rounds() {
        let calls: Vec<_> = calls.into_iter().filter(known).collect();
        // Something for the workers to have been started for.
        fixture.write("f", OLD);
        fixture.result("read_file", json!({"path": "f"})).await;
        let trace = tempfile::NamedTempFile::new().unwrap();
        let effect = format!("error={}", fault.1);
        let mut strace = Strace::attach(fixture.pid(), (fault.0, &effect), when, trace.path());
        for (tool, arguments, new) in calls {
            fixture.write("f", OLD);
            // What is there already would not be written again.
            let _ = std::fs::remove_dir_all(fixture.path("directory"));
            let outcome = strangers_call(&mut fixture, tool, arguments).await;
            let what = format!("{tool}, {fault:?}, {when}: {outcome:?}");
            let content = std::fs::read_to_string(fixture.path("f")).unwrap();
            match outcome {
                Ok(_) => assert_eq!(content, new.unwrap_or(OLD), "{what}"),
                Err(failure) => {
                    assert!(
                        content == OLD || applied(&failure) && Some(&*content) == new,
                        "{what}"
                    );
                    assert_known(&failure, &what);
                }
            }
            assert_eq!(leftovers(&fixture), [""; 0], "{what}");
        }
        strace.detach();
        let trace = std::fs::read_to_string(trace.path()).unwrap();
        *injected.entry(fault).or_default() += trace.matches("(INJECTED)").count();
    }
    eprintln!("injected: {injected:?}");
    // Not every tool makes each of these calls, and not on every kernel.
    let never: Vec<_> = FAULTS.iter().filter(|fault| injected[fault] == 0).collect();
    assert!(never.len() <= 4, "these never failed: {never:?}");
    for (tool, arguments, new) in calls().into_iter().filter(known) {
        fixture.write("f", OLD);
        strangers_call(&mut fixture, tool, arguments).await.unwrap();
        let content = std::fs::read_to_string(fixture.path("f")).unwrap();
        assert_eq!(content, new.unwrap_or(OLD));
    }
    fixture.end().await;
}

const OLD: &str = "old\n";

/// What fails, when, and under which calls.
fn rounds() -> Vec<((&'static str, &'static str), &'static str, Vec<Call>)> {
    let (writes, others): (Vec<_>, Vec<_>) =
        FAULTS.into_iter().partition(|(call, _)| *call == FIRST_ONLY);
    let changes = || calls().into_iter().filter(|(tool, ..)| tool.ends_with("_file")).skip(1);
    let alone =
        writes.into_iter().flat_map(|fault| changes().map(move |call| (fault, "1", vec![call])));
    let all = others.into_iter().flat_map(|fault| WHEN.map(|when| (fault, when, calls().to_vec())));
    all.chain(alone).collect()
}

/// A tool, its arguments, and what they make of the file, where they change it.
type Call = (&'static str, Value, Option<&'static str>);

fn calls() -> [Call; 6] {
    [
        ("read_file", json!({"path": "f"}), None),
        (
            "edit_file",
            json!({"path": "f", "old_string": "old", "new_string": "new"}),
            Some("new\n"),
        ),
        ("write_file", json!({"path": "f", "content": "all new\n"}), Some("all new\n")),
        ("write_file", json!({"path": "directory/new", "content": "x\n"}), None),
        ("grep", json!({"pattern": "o"}), None),
        ("glob", json!({"pattern": "**/*"}), None),
    ]
}

/// A call of a session that knows nothing of the file yet: it may overwrite it.
async fn strangers_call(
    fixture: &mut Fixture,
    tool: &str,
    arguments: Value,
) -> Result<Payload, Failure> {
    static SESSIONS: AtomicUsize = AtomicUsize::new(0);
    let session_id = format!("stranger-{}", SESSIONS.fetch_add(1, Ordering::Relaxed));
    let call = tool_provider::Call { session_id, ..call(tool, arguments) };
    fixture.client.invoke_to_end(call).await.unwrap().1
}

/// Whether the failure says that its change was made all the same.
fn applied(failure: &Failure) -> bool {
    failure.details.get("applied") == Some(&json!(true))
}

fn assert_known(failure: &Failure, what: &str) {
    let known = ["execution_failed", "not_found", "permission_denied", "concurrency_conflict"];
    assert!(known.contains(&&*failure.category), "{what}");
    assert!(!failure.message.is_empty() && failure.details.contains_key("kind"), "{what}");
}

fn leftovers(fixture: &Fixture) -> Vec<String> {
    let mut names = names(&fixture.path(""));
    names.retain(|name| name.ends_with(".tmp"));
    names
}

/// A strace that makes calls fail.
pub(crate) struct Strace {
    child: Child,
    _said: BufReader<std::process::ChildStderr>,
}

impl Strace {
    /// Attaches to the provider's file workers, for a system call to have an effect, such as
    /// `error=EIO`.
    pub(crate) fn attach(
        provider: u32,
        (call, effect): (&str, &str),
        when: &str,
        trace: &std::path::Path,
    ) -> Self {
        let workers = workers(provider);
        let mut strace = Command::new("strace");
        strace.arg("-o").arg(trace).arg("-e").arg(format!("trace={call}"));
        strace.arg("-e").arg(format!("inject={call}:{effect}:when={when}"));
        for worker in &workers {
            strace.arg("-p").arg(worker);
        }
        let mut child = strace.stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        for _ in &workers {
            let mut line = String::new();
            said.read_line(&mut line).unwrap();
            // A worker that had nothing to do has ended meanwhile; any other answer is a refusal.
            assert!(line.contains("attached") || line.contains("No such process"), "{line}");
        }
        Self { child, _said: said }
    }

    pub(crate) fn detach(&mut self) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        // It may have ended already, with the last worker.
        let _ = kill_process(pid, Signal::INT);
        self.child.wait().unwrap();
    }
}

/// The provider's threads that work on files.
fn workers(provider: u32) -> Vec<String> {
    let tasks = format!("/proc/{provider}/task");
    let is_worker = |thread: &String| {
        let name = std::fs::read_to_string(format!("{tasks}/{thread}/comm"));
        name.is_ok_and(|name| name.trim() == "file-worker")
    };
    names(tasks.as_ref()).into_iter().filter(is_worker).collect()
}
