//! Memory that runs out in the middle of everything.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use provider_workspace::provider::Call;
use provider_workspace::service::{ClientError, Failure, ToolClient};
use provider_workspace::tools::Payload;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{leftovers, transient};
use crate::harness::{PATIENCE, PROGRAM, Story, call, object, refusal};
use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_provider_that_runs_out_of_memory_says_try_again,
        requests_that_do_not_fit_are_turned_away,
        a_provider_with_little_memory_from_the_start_works_or_says_why_not,
    ]
}

/// What a provider is left with, in KiB beyond what it has, and whether it has worked before, so that
/// it has threads and memory of their own for them. Below 0 it is left with less than it has.
const LEFT: [(i64, Before); 5] = [
    (-100 << 10, Before::Worked),
    (-1024, Before::New),
    (0, Before::New),
    (1024, Before::Worked),
    (24 << 10, Before::New),
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Before {
    New,
    Worked,
}

/// Whatever is left of memory, each call is answered: with what it was asked for, or with a failure
/// that may be tried again. Files have their old content or their new one, and once there is
/// memory again, everything works as before.
async fn a_provider_that_runs_out_of_memory_says_try_again() {
    let mut refused = 0;
    for (kib, before) in LEFT {
        let story = Story::configured().await;
        prepare(&story);
        if before == Before::Worked {
            assert_eq!(crowd(&story, CALLERS).await.refused(), 0);
        }
        let has = i64::try_from(story.status("VmSize")).unwrap();
        limit(&story, Some(u64::try_from((has + kib) << 10).unwrap()));
        // Twice: what the first callers have left is less.
        for _ in 0..2 {
            let seen = crowd(&story, CALLERS).await;
            eprintln!("{kib} KiB, {before:?}: {seen:?}");
            refused += seen.refused();
        }
        limit(&story, None);
        assert_eq!(crowd(&story, 2).await.refused(), 0, "there is memory again");
        story.end().await;
    }
    assert!(refused > 0, "no call missed any memory");
}

fn limit(story: &Story, bytes: Option<u64>) {
    let pid = Pid::from_raw(i32::try_from(story.pid()).unwrap());
    prlimit(pid, Resource::As, Rlimit { current: bytes, maximum: None }).unwrap();
}

/// How many call at the same time.
const CALLERS: usize = 16;

const SMALL: [&str; 2] = ["an old line\n", "a new line\n"];

fn large(word: &str) -> String {
    format!("begin\n{}end {word}\n", "a line of a large file\n".repeat(5000))
}

fn prepare(story: &Story) {
    for number in 0..CALLERS {
        story.write(&format!("small-{number}"), SMALL[0]);
    }
    story.write("large", large("old"));
    story.write("lines", "common word\n".repeat(2000));
    for number in 0..100 {
        story.write(&format!("one-of-many-{number}"), "common word\n");
    }
}

/// What came of calls.
#[derive(Debug, Default)]
struct Seen {
    done: AtomicUsize,
    refused: AtomicUsize,
}

impl Seen {
    fn refused(&self) -> usize {
        self.refused.load(Ordering::Relaxed)
    }
}

/// Callers that call at the same time, each in another order, and what they leave.
async fn crowd(story: &Story, callers: usize) -> Arc<Seen> {
    let seen = Arc::new(Seen::default());
    let mut calling = JoinSet::new();
    for number in 0..callers {
        let caller = Caller { client: story.client.clone(), number };
        let seen = seen.clone();
        calling.spawn(async move {
            for turn in 0..TURNS {
                match caller.clone().call((number + turn) % TURNS).await {
                    Ok(()) => seen.done.fetch_add(1, Ordering::Relaxed),
                    Err(failure) => {
                        transient(&failure);
                        seen.refused.fetch_add(1, Ordering::Relaxed)
                    }
                };
            }
        });
    }
    let all = async {
        while let Some(ended) = calling.join_next().await {
            ended.unwrap();
        }
    };
    tokio::time::timeout(4 * PATIENCE, all).await.expect("a call has no answer");
    for number in 0..CALLERS {
        let content = std::fs::read_to_string(story.path(&format!("small-{number}"))).unwrap();
        assert!(SMALL.contains(&&*content), "{content:?}");
        if let Ok(content) = std::fs::read_to_string(story.path(&format!("new-{number}"))) {
            assert!(content == much(), "a new file is torn");
        }
    }
    let content = std::fs::read_to_string(story.path("large")).unwrap();
    assert!([large("old"), large("new")].contains(&content), "the large file is torn");
    assert_eq!(leftovers(story), [""; 0]);
    seen
}

/// A message of 1.5 MB.
fn much() -> String {
    "word\n".repeat(300_000)
}

#[derive(Clone)]
struct Caller {
    client: ToolClient,
    number: usize,
}

/// How many different calls a caller makes.
const TURNS: usize = 13;

impl Caller {
    async fn call(mut self, turn: usize) -> Result<(), Failure> {
        let own = format!("small-{}", self.number);
        let [from, to] = SMALL;
        let (tool, arguments) = match turn {
            0 => ("read_file", json!({"path": "large", "offset": -2900})),
            1 => ("write_file", json!({"path": own, "content": to})),
            2 => ("grep", json!({"pattern": "word", "limit": 2000})),
            3 => ("glob", json!({"pattern": "**/*", "limit": 1000})),
            4 => ("bash", json!({"command": "echo here"})),
            5 => ("bash", json!({"command": "head -c 1500000 /dev/zero; exit 3"})),
            6 => {
                let edits = json!([
                    {"old_string": "begin\n", "new_string": "start\n"},
                    {"old_string": "start\n", "new_string": "begin\n"},
                    {"old_string": "end old", "new_string": "end new"},
                ]);
                ("edit_file", json!({"path": "large", "edits": edits}))
            }
            7 => ("edit_file", json!({"path": own, "old_string": to, "new_string": from})),
            8 => ("write_file", json!({"path": format!("new-{}", self.number), "content": much()})),
            9 => {
                let arguments = json!({"path": own, "content": to});
                return unary(self.client.preview(asked("write_file", arguments)).await);
            }
            10 => {
                let arguments = json!({"path": "large", "content": "word\n".repeat(2000)});
                return unary(self.client.preview(asked("write_file", arguments)).await);
            }
            // Each builds a jail anew.
            11 if self.number.is_multiple_of(4) => {
                let config = object(json!({"roots": ["root"]}));
                return unary(self.client.configure(config).await);
            }
            11 => {
                let stored = json!({"tool": "read_file", "path": "x", "content": "line\n"});
                let stored = stored.to_string().into_bytes();
                return unary(self.client.render("json", stored).await);
            }
            _ => {
                unary(self.client.describe().await)?;
                return unary(self.client.schema().await);
            }
        };
        let call = asked(tool, arguments);
        match ended(&mut self.client, call).await {
            // Another of its calls was refused, so that there is nothing to edit.
            Err(failure) if tool == "edit_file" && failure.category == "not_found" => Ok(()),
            outcome => outcome.map(drop),
        }
    }
}

/// A call of a session that knows of no file.
fn asked(tool: &str, arguments: Value) -> Call {
    static SESSIONS: AtomicUsize = AtomicUsize::new(0);
    let session = SESSIONS.fetch_add(1, Ordering::Relaxed);
    Call { session_id: format!("session-{session}"), ..call(tool, arguments) }
}

/// How a call ended, whether it began or not.
async fn ended(client: &mut ToolClient, call: Call) -> Result<Payload, Failure> {
    match client.invoke_to_end(call).await {
        Ok((_, outcome)) => outcome,
        Err(error) => Err(refusal(error).1),
    }
}

/// The failure of a call that was refused by a status.
fn unary<T>(answer: Result<T, ClientError>) -> Result<(), Failure> {
    match answer {
        Ok(_) => Ok(()),
        Err(error) => {
            let (code, failure) = refusal(error);
            assert_ne!(code, tonic::Code::Unavailable, "{failure:?}");
            Err(failure)
        }
    }
}

/// Large requests at the same time, of which few fit: the others are turned away before room is made
/// for them.
async fn requests_that_do_not_fit_are_turned_away() {
    let mut story = Story::configured().await;
    story.result("write_file", json!({"path": "first", "content": "x"})).await;
    limit(&story, Some((story.status("VmSize") + (100 << 10)) << 10));
    let mut callers = JoinSet::new();
    for number in 0..8 {
        let mut client = story.client.clone();
        callers.spawn(async move {
            let content = "a line\n".repeat(20_000_000 / 7);
            let path = format!("large-{number}");
            let call = asked("write_file", json!({"path": path, "content": content}));
            ended(&mut client, call).await.map(drop)
        });
    }
    let outcomes = tokio::time::timeout(4 * PATIENCE, callers.join_all()).await.unwrap();
    let refused: Vec<_> = outcomes.into_iter().filter_map(Result::err).collect();
    for failure in &refused {
        transient(failure);
        assert!(failure.message.contains("memory"), "{failure:?}");
    }
    assert!(!refused.is_empty(), "all of it fitted");
    assert_eq!(leftovers(&story), [""; 0]);
    limit(&story, None);
    story.result("write_file", json!({"path": "last", "content": much()})).await;
    story.end().await;
}

/// Started with little memory, a provider works with it or says that it cannot.
async fn a_provider_with_little_memory_from_the_start_works_or_says_why_not() {
    // What the program takes before it has done anything, without its reserve.
    let story = Story::launched().await;
    let program = story.status("VmSize") - (64 << 10);
    story.end().await;
    for mib in [4, 12, 16, 48, 256] {
        let limited = format!("ulimit -v {}; exec \"$0\"", program + (mib << 10));
        let arguments = ["-c", &limited, PROGRAM];
        let mut story = Story::launched_by("/bin/sh", &arguments, |_| {}).await;
        prepare(&story);
        let configured = story.configure(json!({})).await;
        eprintln!("{mib} MiB: {configured:?}");
        match configured {
            Ok(()) => drop(crowd(&story, CALLERS).await),
            Err(error) => {
                let (code, failure) = refusal(error);
                assert_ne!(code, tonic::Code::Unavailable);
                let words = ["memory", "resource", "thread"];
                assert!(words.iter().any(|word| failure.message.contains(word)), "{failure:?}");
                assert!(mib < 48, "{failure:?}");
            }
        }
        let last = story.call("read_file", json!({"path": "lines", "limit": 3})).await.1;
        assert!(last.is_ok() || mib < 256, "{last:?}");
        story.end().await;
    }
}
