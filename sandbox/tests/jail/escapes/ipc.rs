//! Memory, semaphores and queues that processes share by a key, a number or a name.

use std::io;

use sandbox::Level;

use crate::attack::{Allowed, Attempts, Denied, Fates, Named, assert_all, assert_fates, unjailed};
use crate::case::{Case, stories};
use crate::fixture::{Fixture, this_program};
use crate::raw::{Word, call};

pub(crate) fn stories() -> Vec<Case> {
    stories!["escapes::ipc":
        message_queues_and_shared_memory_of_others_are_out_of_reach,
        what_a_call_shares_by_key_ends_with_it,
        what_a_call_shares_by_key_is_no_other_calls,
        files_in_shared_memory_are_the_jails,
    ]
}

pub(crate) const ATTACKS: &[Named] =
    &[("ipc", use_ipc), ("leave ipc", leave_ipc), ("find ipc", find_ipc)];

fn message_queues_and_shared_memory_of_others_are_out_of_reach(level: Level) {
    let words = |ipc: &Ipc| [ipc.segment.to_string(), ipc.queue.clone()];
    assert_all(&unjailed("ipc", &words(&Ipc::make().unwrap())), Allowed);
    let outside = Ipc::make().unwrap();
    let fates = Fixture::new(level).attack("ipc", &words(&outside));
    let expected = match level {
        // There are own ones, and these are not among them.
        Level::Full => [
            ("attach memory", Denied(libc::EINVAL)),
            ("open queue", Denied(libc::ENOENT)),
            ("remove queue", Denied(libc::ENOENT)),
            ("own memory", Allowed),
            ("own semaphores", Allowed),
            ("own messages", Allowed),
        ],
        _ => [
            "attach memory",
            "open queue",
            "remove queue",
            "own memory",
            "own semaphores",
            "own messages",
        ]
        .map(|name| (name, Denied(libc::EPERM))),
    };
    assert_fates(&fates, &expected);
    open_queue(&outside.queue, 0).unwrap();
}

/// Nothing of it stays, and no memory that a limit of a process does not count any more.
fn what_a_call_shares_by_key_ends_with_it(level: Level) {
    let fixture = Fixture::new(level);
    let made = fixture.attack("leave ipc", &[""]);
    let (queue, rest): (Fates, Fates) =
        made.into_iter().partition(|(attempt, _)| attempt.ends_with("a queue"));
    match level {
        // The call itself, and a program that it starts, find what it made; only queues that are files
        // are for nobody.
        Level::Full => {
            assert_all(&rest, Allowed);
            assert_all(&queue, Denied(libc::EACCES));
        }
        _ => assert_all(&rest.into_iter().chain(queue).collect(), Denied(libc::EPERM)),
    }
    assert_not_found(level, &fixture.attack("find ipc", &["", "0"]));
    let left = remove_queue(QUEUE).unwrap_err();
    assert_eq!(left.raw_os_error(), Some(libc::ENOENT), "nor does the machine");
}

fn what_a_call_shares_by_key_is_no_other_calls(level: Level) {
    let fixture = Fixture::new(level);
    let mut call = fixture.start_attack_with("leave ipc", &["stay"]);
    let mut line = call.line();
    let mut number = "0".to_owned();
    while line != "made" {
        assert!(!line.is_empty(), "the call ended");
        if let Some(found) = line.strip_prefix("memory is ") {
            number = found.to_owned();
        }
        line = call.line();
    }
    let fates = fixture.attack("find ipc", &["", &number]);
    call.killed();
    assert_not_found(level, &fates);
}

/// What stays open: files in /dev/shm are as those in /tmp. At the full level the calls of one jail
/// share them, with each other and with later ones.
fn files_in_shared_memory_are_the_jails(level: Level) {
    let name = format!("/dev/shm/story-{}-{level}", std::process::id());
    let fixture = Fixture::new(level);
    fixture.succeeds(&format!("echo kept > {name}"));
    assert_eq!(fixture.succeeds(&format!("cat {name}")), "kept\n");
    let outside = std::path::Path::new(&name).exists();
    let elsewhere = Fixture::new(level).bash(&format!("cat {name}"));
    assert_eq!(outside, level != Level::Full);
    assert_eq!(elsewhere.stdout.is_empty(), level == Level::Full, "{elsewhere:?}");
    fixture.succeeds(&format!("rm {name}"));
}

#[track_caller]
fn assert_not_found(level: Level, fates: &Fates) {
    let by_key = if level == Level::Full { libc::ENOENT } else { libc::EPERM };
    let by_number = if level == Level::Full { libc::EINVAL } else { libc::EPERM };
    let expected = [
        ("find memory", Denied(by_key)),
        ("find semaphores", Denied(by_key)),
        ("find messages", Denied(by_key)),
        ("find memory by number", Denied(by_number)),
        ("find memory by index", Denied(by_number)),
        ("find a queue", Denied(by_key)),
    ];
    assert_fates(fates, &expected);
}

/// Shared memory and a message queue that belong to nobody's jail.
struct Ipc {
    segment: i64,
    queue: String,
}

impl Ipc {
    fn make() -> io::Result<Self> {
        let private = Word::Number(libc::IPC_PRIVATE.into());
        let segment =
            call(libc::SYS_shmget, &mut [private, Word::Number(4096), Word::Number(0o600)])?;
        let queue = format!("story-{}-{segment}", std::process::id());
        open_queue(&queue, libc::O_CREAT)?;
        Ok(Self { segment, queue })
    }
}

impl Drop for Ipc {
    fn drop(&mut self) {
        let words = [self.segment, libc::IPC_RMID.into(), 0].map(Word::Number);
        let _ = call(libc::SYS_shmctl, &mut { words });
        let _ = remove_queue(&self.queue);
    }
}

fn open_queue(name: &str, flags: i32) -> io::Result<i64> {
    let name = std::ffi::CString::new(name).unwrap();
    let words = [
        Word::Text(&name),
        Word::Number((libc::O_RDWR | flags).into()),
        Word::Number(0o600),
        Word::Number(0),
    ];
    call(libc::SYS_mq_open, &mut { words })
}

fn remove_queue(name: &str) -> io::Result<i64> {
    let name = std::ffi::CString::new(name).unwrap();
    call(libc::SYS_mq_unlink, &mut [Word::Text(&name)])
}

fn use_ipc(attempts: &mut Attempts, words: &[String]) {
    let (private, mode) = (libc::IPC_PRIVATE, 0o600);
    let remove = libc::IPC_RMID;
    let segment: i32 = words[0].parse().unwrap();
    attempts.make("attach memory", || numbers(libc::SYS_shmat, &[segment, 0, 0]));
    attempts.make("open queue", || open_queue(&words[1], 0));
    attempts.make("own memory", || {
        let id = numbers(libc::SYS_shmget, &[private, 4096, mode])? as i32;
        numbers(libc::SYS_shmctl, &[id, remove, 0])
    });
    attempts.make("own semaphores", || {
        let id = numbers(libc::SYS_semget, &[private, 1, mode])? as i32;
        numbers(libc::SYS_semctl, &[id, 0, remove])
    });
    attempts.make("own messages", || {
        let id = numbers(libc::SYS_msgget, &[private, mode])? as i32;
        numbers(libc::SYS_msgctl, &[id, remove, 0])
    });
    attempts.make("remove queue", || remove_queue(&words[1]));
}

/// A key that nobody else uses.
const KEY: i32 = 0x6a61_696c;
/// Asks for a segment by its place in the table (linux/shm.h).
const SHM_STAT: i64 = 13;
const QUEUE: &str = "left-by-a-call";

fn numbers(number: i64, words: &[i32]) -> io::Result<i64> {
    call(number, &mut words.iter().map(|n| Word::Number((*n).into())).collect::<Vec<_>>())
}

/// Makes things and leaves them, after a further program has found them. It stays on request.
fn leave_ipc(attempts: &mut Attempts, words: &[String]) {
    let make = libc::IPC_CREAT | libc::IPC_EXCL | 0o600;
    let mut memory = -1;
    attempts.make("make memory", || {
        memory = numbers(libc::SYS_shmget, &[KEY, 4096, make])?;
        Ok(())
    });
    attempts.make("make semaphores", || numbers(libc::SYS_semget, &[KEY, 1, make]));
    attempts.make("make messages", || numbers(libc::SYS_msgget, &[KEY, make]));
    attempts.make("make a queue", || open_queue(QUEUE, libc::O_CREAT));
    let mut again = std::process::Command::new(this_program());
    let number = memory.to_string();
    if memory >= 0 {
        again.args([crate::attack::ARGUMENT, "find ipc", "", &number]).status().unwrap();
    }
    if words[0] == "stay" {
        attempts.say(&format!("memory is {memory}"));
        attempts.say("made");
        loop {
            std::thread::park();
        }
    }
}

fn find_ipc(attempts: &mut Attempts, words: &[String]) {
    let memory: i32 = words[1].parse().unwrap();
    attempts.make("find memory", || numbers(libc::SYS_shmget, &[KEY, 0, 0]));
    attempts.make("find memory by number", || numbers(libc::SYS_shmat, &[memory, 0, 0]));
    attempts.make("find memory by index", || {
        let mut about = [0; 256];
        let words = [Word::Number(0), Word::Number(SHM_STAT), Word::Bytes(&mut about)];
        call(libc::SYS_shmctl, &mut { words })
    });
    attempts.make("find semaphores", || numbers(libc::SYS_semget, &[KEY, 0, 0]));
    attempts.make("find messages", || numbers(libc::SYS_msgget, &[KEY, 0]));
    attempts.make("find a queue", || open_queue(QUEUE, 0));
}
