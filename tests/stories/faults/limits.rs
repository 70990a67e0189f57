//! Limits that are reached: descriptors, memory.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::StreamExt as _;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tool_provider::grpc::{Failure, InvokeItem};

use super::requests::socket;
use tool_provider::Event;

use crate::harness::{Fixture, PROGRAM, TEST_TIMEOUT, call};
use crate::trials::{Need, Trial};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_provider_without_descriptors_says_try_again,
        descriptors_in_flight_keep_no_other_provider_from_work needs [Need::Program("python3")],
        commands_that_miss_room_in_flight_say_try_again needs [Need::OrdinaryUser],
        a_provider_without_memory_refuses_what_does_not_fit,
    ]
}

/// One of these stories at a time: what one has in flight is counted against the others.
static ALONE: Mutex<()> = Mutex::const_new(());

/// The kernel counts what all processes of a user have in flight, and compares it with the sender's soft
/// limit (but for root). Commands have the limit of the configuration.
async fn descriptors_in_flight_keep_no_other_provider_from_work() {
    const SCRIPT: &str = "import array, socket, sys
pairs = []
for _ in range(12):
    pairs.append(socket.socketpair())
    held = array.array('i', [0] * 120)
    pairs[-1][0].sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, held)])
print('in flight', flush=True)
sys.stdin.readline()";
    let _alone = ALONE.lock().await;
    let arguments = ["-c", "ulimit -Sn 1024; exec \"$0\"", PROGRAM];
    let mut attacker = Fixture::launched().await;
    attacker.configure(json!({})).await.unwrap();
    let mut fixture = Fixture::launched_by("/bin/sh", &arguments, |_| {}).await;
    fixture.configure(json!({"limits": {"open_files": 512}})).await.unwrap();
    attacker.write("attack.py", SCRIPT);
    let attack = json!({"command": "mkfifo end; python3 attack.py <>end"});
    let mut running = attacker.client.invoke(call("bash", attack)).await.unwrap();
    loop {
        match running.next().await.transpose().unwrap() {
            Some(InvokeItem::Event(Event::Output { data, .. }))
                if data.starts_with(b"in flight") =>
            {
                break;
            }
            Some(_) => {}
            None => panic!("the attack ended"),
        }
    }
    let (_, limits) = fixture.call("bash", json!({"command": "ulimit -Sn; ulimit -Hn"})).await;
    assert_eq!(limits.unwrap()["output"], "512\n512\n");
    drop(running);
    attacker.end().await;
    fixture.end().await;
}

/// A command that cannot be handed over, because others of the user have more in flight than the
/// provider's hard limit, has not begun. Also where that changes in the middle of a start.
async fn commands_that_miss_room_in_flight_say_try_again() {
    let _alone = ALONE.lock().await;
    let arguments = ["-c", "ulimit -n 64; exec \"$0\"", PROGRAM];
    let mut fixture = Fixture::launched_by("/bin/sh", &arguments, |_| {}).await;
    fixture.configure(json!({})).await.unwrap();
    let bash = json!({"command": "echo began >> log"});
    let others = InFlight::new();
    others.fill();
    let (_, refused) = fixture.call("bash", bash.clone()).await;
    let refused = refused.expect_err("nothing can be handed over");
    transient(&refused);
    assert!(refused.message.contains("ulimit -Hn"), "{refused:?}");
    let read = json!({"command": "echo here"});
    let has_read = tools(&mut fixture).await.iter().any(|name| name == "shell_read");
    if has_read {
        transient(&fixture.call("shell_read", read.clone()).await.1.expect_err("nor here"));
    }
    others.empty();
    until_it_succeeds(&mut fixture, "bash", &bash).await;

    let is_over = Arc::new(AtomicBool::new(false));
    let flicker = {
        let is_over = is_over.clone();
        std::thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                others.fill();
                others.empty();
            }
        })
    };
    let mut began = 1;
    for _ in 0..200 {
        match fixture.call("bash", bash.clone()).await.1 {
            Ok(_) => began += 1,
            Err(failure) => transient(&failure),
        }
        if has_read && let Err(failure) = fixture.call("shell_read", read.clone()).await.1 {
            transient(&failure);
        }
    }
    is_over.store(true, Ordering::Relaxed);
    flicker.join().unwrap();
    assert_eq!(std::fs::read(fixture.path("log")).unwrap(), b"began\n".repeat(began));
    fixture.end().await;
}

/// Descriptors between sockets of this process.
struct InFlight {
    pairs: Vec<(UnixStream, UnixStream)>,
}

impl InFlight {
    fn new() -> Self {
        Self { pairs: (0..2).map(|_| UnixStream::pair().unwrap()).collect() }
    }

    /// Sends more than a hundred. Does nothing where too many are in flight already.
    fn fill(&self) {
        for (to, _) in &self.pairs {
            let fds = [to.as_fd(); 60];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(60))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
            let _ = sendmsg(to, &[IoSlice::new(b"x")], &mut control, SendFlags::empty());
        }
    }

    /// Takes them out.
    fn empty(&self) {
        for (_, from) in &self.pairs {
            let _ = rustix::net::recv(from, &mut [0; 8], RecvFlags::DONTWAIT);
        }
    }
}

/// Out of descriptors, every call is answered: with what it was asked for, or with a failure that
/// may be tried again. Once some are free again, everything works as before.
async fn a_provider_without_descriptors_says_try_again() {
    let _alone = ALONE.lock().await;
    let arguments = ["-c", "ulimit -n 64; exec \"$0\"", PROGRAM];
    let mut fixture = Fixture::launched_by("/bin/sh", &arguments, |_| {}).await;
    fixture.configure(json!({})).await.unwrap();
    fixture.write("a.txt", "here\n");
    let calls = [
        ("read_file", json!({"path": "a.txt"})),
        ("edit_file", json!({"path": "a.txt", "old_string": "here", "new_string": "here too"})),
        ("write_file", json!({"path": "new/b.txt", "content": "b"})),
        ("grep", json!({"pattern": "here"})),
        ("glob", json!({"pattern": "**/*"})),
        ("bash", json!({"command": "cat a.txt"})),
        ("shell_read", json!({"command": "cat a.txt"})),
    ];
    let has = tools(&mut fixture).await;
    let calls = calls.iter().filter(|(tool, _)| has.iter().any(|name| name == tool));
    let (mut open, mut refused) = (Vec::new(), 0);
    // More and more of them are taken away, so that calls run out of them at each of their steps.
    for taken in 0..80 {
        open.push(UnixStream::connect(socket(&fixture)).unwrap());
        if taken < 30 {
            continue;
        }
        for (tool, arguments) in calls.clone() {
            let before = std::fs::read(fixture.path("a.txt")).unwrap();
            let call = fixture.call(tool, arguments.clone());
            let (_, outcome) = tokio::time::timeout(TEST_TIMEOUT, call).await.expect("no answer");
            if let Err(failure) = outcome {
                transient(&failure);
                refused += 1;
                assert_eq!(std::fs::read(fixture.path("a.txt")).unwrap(), before, "{tool}");
            }
            fixture.write("a.txt", "here\n");
        }
    }
    assert!(refused > 20, "only {refused} calls missed a descriptor");
    // A Configure that cannot be met leaves the old one in force.
    let refused = fixture.configure(json!({})).await.expect_err("no jail without descriptors");
    crate::harness::refusal(refused);
    drop(open);
    // The provider sees the end of one connection after the other.
    let configured = async {
        while let Err(error) = fixture.configure(json!({})).await {
            crate::harness::refusal(error);
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, configured).await.expect("descriptors stay lost");
    for (tool, arguments) in calls {
        fixture.write("a.txt", "here\n");
        until_it_succeeds(&mut fixture, tool, arguments).await;
    }
    assert_eq!(leftovers(&fixture), [""; 0]);
    fixture.end().await;
}

/// Until then it may be tried again.
async fn until_it_succeeds(fixture: &mut Fixture, tool: &str, arguments: &Value) {
    let tries = async {
        while let Err(failure) = fixture.call(tool, arguments.clone()).await.1 {
            transient(&failure);
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, tries).await.expect("what was missing stays so");
}

async fn tools(fixture: &mut Fixture) -> Vec<String> {
    fixture.client.schema().await.unwrap().tools.into_iter().map(|tool| tool.name).collect()
}

fn transient(failure: &Failure) {
    assert_eq!((&*failure.category, failure.retryable), ("execution_failed", true), "{failure:?}");
}

/// Temporary files of writes that came to nothing.
fn leftovers(fixture: &Fixture) -> Vec<String> {
    let mut names = crate::harness::names(&fixture.path(""));
    names.retain(|name| name.ends_with(".tmp"));
    names
}

/// A file that does not fit into memory is refused, and the provider lives on.
async fn a_provider_without_memory_refuses_what_does_not_fit() {
    let mut fixture = Fixture::configured().await;
    // Read whole, but not copied; and not even read.
    let line = [vec![b'x'; 99], vec![b'\n']].concat();
    fixture.write("copied", [b"begin\n", &*line.repeat(1_200_000), b"end\n"].concat());
    let read = std::fs::File::create(fixture.path("read")).unwrap();
    read.set_len(250_000_000).unwrap();
    fixture.write("small", "one\n");
    let two = json!([
        {"old_string": "begin", "new_string": "began"},
        {"old_string": "end", "new_string": "ended"},
    ]);
    let calls = [
        ("edit_file", json!({"path": "read", "old_string": "y", "new_string": "z"})),
        ("edit_file", json!({"path": "copied", "edits": two})),
        ("write_file", json!({"path": "read", "content": "short\n"})),
        ("read_file", json!({"path": "copied", "offset": -10})),
        ("edit_file", json!({"path": "small", "old_string": "one", "new_string": "1"})),
        ("bash", json!({"command": "head -c 10000000 copied"})),
    ];
    // Every thread that a call needs is there.
    fixture.result("read_file", json!({"path": "small"})).await;
    fixture.call("bash", json!({"command": "true"})).await.1.unwrap();
    let left = (fixture.status("VmSize") << 10) + 200_000_000;
    let limit = Rlimit { current: Some(left), maximum: None };
    let pid = Pid::from_raw(i32::try_from(fixture.pid()).unwrap());
    prlimit(pid, Resource::As, limit).unwrap();
    let mut refused = Vec::new();
    for (number, (tool, arguments)) in calls.iter().enumerate() {
        if let Err(failure) = fixture.call(tool, arguments.clone()).await.1 {
            assert!(failure.message.contains("memory"), "{tool}: {failure:?}");
            transient(&failure);
            refused.push(number);
        }
        fixture.result("read_file", json!({"path": "small"})).await;
    }
    assert_eq!(refused, [0, 1, 2]);
    prlimit(pid, Resource::As, Rlimit { current: None, maximum: None }).unwrap();
    fixture.call("edit_file", calls[1].1.clone()).await.1.unwrap();
    fixture.call("write_file", calls[2].1.clone()).await.1.unwrap();
    fixture.end().await;
}
