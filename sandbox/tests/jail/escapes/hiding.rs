//! Processes that hide from the supervisor that ends their call.

use std::fs::{self, File};
use std::process::{Command, Stdio};

use rustix::process::{getpid, set_child_subreaper};
use sandbox::{ExitStatus, Level};

use crate::attack::{ARGUMENT, Attempts, Named};
use crate::case::{Case, stories};
use crate::fixture::{Fixture, this_program};
use crate::raw;
use crate::support::processes;

pub(crate) fn stories() -> Vec<Case> {
    stories!["escapes::hiding":
        whoever_adopts_orphans_gives_them_up_again,
        a_process_without_its_first_thread_ends,
        a_child_that_is_the_supervisors_own_ends,
        a_stopped_tracee_and_its_tracer_end,
        orphans_that_make_the_supervisor_their_tracer_end,
        a_parent_that_waits_for_a_vfork_ends,
        a_spawner_keeps_nothing_of_the_provider,
    ]
}

pub(crate) const ATTACKS: &[Named] = &[
    ("adopt", adopt),
    ("drop the first thread", drop_the_first_thread),
    ("join the supervisor's children", join_the_supervisors_children),
    ("stop a tracee", stop_a_tracee),
    ("orphan under trace", orphan_under_trace),
    ("wait for a vfork", wait_for_a_vfork),
    ("vfork", vfork),
    ("stay", stay),
    ("stay under trace", stay_under_trace),
];

/// Runs an attack whose processes all carry the mark, once to its end and once until it is killed.
fn ends(level: Level, attack: &str, left: u64) {
    let fixture = Fixture::new(level);
    for then in ["end", "stay"] {
        let mark =
            format!("mark-{}-{level}-{then}-{}", attack.replace(' ', "-"), std::process::id());
        let mut call = fixture.start_attack_with(attack, &[&mark, then]);
        assert_eq!(call.line(), "hidden");
        let outcome = if then == "end" { call.outcome() } else { call.killed() };
        let (status, itself) = match then {
            "end" => (ExitStatus::Exited(0), 0),
            _ => (ExitStatus::Signaled(9), 1),
        };
        assert_eq!(outcome.report.status, status, "{outcome:?}");
        assert_eq!(outcome.report.processes_killed, left + itself, "{outcome:?}");
        assert_eq!(processes(&mark), [], "{outcome:?}");
    }
    assert_eq!(fixture.succeeds("echo served"), "served\n");
}

fn whoever_adopts_orphans_gives_them_up_again(level: Level) {
    ends(level, "adopt", 1);
}

fn a_process_without_its_first_thread_ends(level: Level) {
    // Such a process looks dead to who counts the living, and is killed all the same.
    ends(level, "drop the first thread", 1);
}

fn a_child_that_is_the_supervisors_own_ends(level: Level) {
    ends(level, "join the supervisor's children", 1);
}

fn a_stopped_tracee_and_its_tracer_end(level: Level) {
    ends(level, "stop a tracee", 1);
}

fn orphans_that_make_the_supervisor_their_tracer_end(level: Level) {
    ends(level, "orphan under trace", 1);
}

fn a_parent_that_waits_for_a_vfork_ends(level: Level) {
    ends(level, "wait for a vfork", 2);
}

/// It is in the jail, and what it held a command might get at.
fn a_spawner_keeps_nothing_of_the_provider(level: Level) {
    let leaked = File::open("/etc/hostname").unwrap();
    rustix::io::fcntl_setfd(&leaked, rustix::io::FdFlags::empty()).unwrap();
    let fixture = Fixture::new(level);
    let mut call = fixture.start_bash("echo up; sleep 1000");
    assert_eq!(call.line(), "up");
    let parent = |pid: u32| -> u32 {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:\t")).unwrap();
        parent.parse().unwrap()
    };
    let supervisor = parent(call.running.pid().number());
    for pid in [supervisor, parent(supervisor)] {
        // Where the spawner has become one that nobody may look into, there is nothing to see.
        let Ok(directory) = fs::read_dir(format!("/proc/{pid}/fd")) else { continue };
        let held: Vec<_> =
            directory.flatten().filter_map(|fd| fs::read_link(fd.path()).ok()).collect();
        assert!(!held.contains(&"/etc/hostname".into()), "{held:?}");
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap();
        assert_eq!(environment, b"", "{}", environment.escape_ascii());
    }
    call.killed();
    drop(leaked);
}

/// This program, with the mark in its command line, for another attack.
fn another(attack: &str, mark: &str) -> Command {
    let mut command = Command::new(this_program());
    command.args([ARGUMENT, attack, mark]).stdin(Stdio::null()).stdout(Stdio::null());
    command
}

fn finish(attempts: &mut Attempts, words: &[String]) {
    attempts.say("hidden");
    if words[1] == "stay" {
        stay(attempts, words);
    }
}

fn stay(_: &mut Attempts, _: &[String]) {
    loop {
        std::thread::park();
    }
}

/// A command that adopts what its children leave, as its supervisor would.
fn adopt(attempts: &mut Attempts, words: &[String]) {
    set_child_subreaper(Some(getpid())).unwrap();
    let script = r#""$0" "$@" & exit"#;
    let child = another("stay", &words[0]);
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", script]).arg(child.get_program()).args(child.get_args());
    shell.stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap();
    finish(attempts, words);
}

/// A process whose own entry says that it is dead, while a thread and a child of it live.
#[expect(clippy::zombie_processes, reason = "that nobody waits for them is the attack")]
fn drop_the_first_thread(attempts: &mut Attempts, words: &[String]) {
    let (mark, then) = (words[0].as_str(), words.get(1).map(String::as_str));
    if then == Some("inner") {
        std::thread::spawn(|| {
            loop {
                std::thread::park();
            }
        });
        another("stay", mark).spawn().unwrap();
        File::create("up").unwrap();
        let _ = raw::call(libc::SYS_exit, &mut [raw::Word::Number(0)]);
    }
    let _ = fs::remove_file("up");
    let inner = another("drop the first thread", mark).arg("inner").spawn().unwrap().id();
    wait_for("up");
    let dead = |status: String| status.contains("State:\tZ");
    while !dead(fs::read_to_string(format!("/proc/{inner}/status")).unwrap()) {
        std::thread::yield_now();
    }
    finish(attempts, words);
}

fn join_the_supervisors_children(attempts: &mut Attempts, words: &[String]) {
    raw::clone_and_stay(libc::CLONE_PARENT).unwrap();
    finish(attempts, words);
}

/// The tracee waits at each of its steps for a tracer that says nothing, even on its way out.
#[expect(clippy::zombie_processes, reason = "that nobody waits for it is the attack")]
fn stop_a_tracee(attempts: &mut Attempts, words: &[String]) {
    let child = another("stay", &words[0]).spawn().unwrap();
    raw::trace_to_the_end(child.id().cast_signed()).unwrap();
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&child),
        rustix::process::Signal::STOP,
    )
    .unwrap();
    finish(attempts, words);
}

fn orphan_under_trace(attempts: &mut Attempts, words: &[String]) {
    let _ = fs::remove_file("up");
    let script = r#""$0" "$@" & exit"#;
    let child = another("stay under trace", &words[0]);
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", script]).arg(child.get_program()).args(child.get_args());
    shell.stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap();
    wait_for("up");
    finish(attempts, words);
}

fn stay_under_trace(_: &mut Attempts, _: &[String]) {
    // Its parent is the supervisor once the shell has ended.
    while parent_is_a_shell() {
        std::thread::yield_now();
    }
    raw::trace_me().unwrap();
    File::create("up").unwrap();
    let _ = rustix::process::kill_process(getpid(), rustix::process::Signal::STOP);
}

fn parent_is_a_shell() -> bool {
    let parent = std::os::unix::process::parent_id();
    let name = fs::read_to_string(format!("/proc/{parent}/comm")).unwrap_or_default();
    name.trim() == "sh"
}

/// A parent that sleeps in the kernel until its child has executed something, which it never does.
fn wait_for_a_vfork(attempts: &mut Attempts, words: &[String]) {
    let parent = another("vfork", &words[0]).spawn().unwrap().id();
    let children = format!("/proc/{parent}/task/{parent}/children");
    while fs::read_to_string(&children).unwrap().is_empty() {
        std::thread::yield_now();
    }
    finish(attempts, words);
}

fn vfork(_: &mut Attempts, _: &[String]) {
    let _ = raw::clone_and_stay(libc::CLONE_VFORK);
}

fn wait_for(file: &str) {
    while fs::metadata(file).is_err() {
        std::thread::yield_now();
    }
}
