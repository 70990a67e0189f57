//! Attempts on processes that are none of the call's: the provider, the spawner, the supervisor,
//! a process outside, and a call that runs beside.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use sandbox::{ExitStatus, Level};

use crate::attack::{Allowed, Attempts, Denied, Fates, Named, assert_all, assert_same, unjailed};
use crate::case::{Case, stories};
use crate::escapes::means::{Kind, MEANS, Thread};
use crate::fixture::{Fixture, SECRET};
use crate::raw;

pub(crate) fn stories() -> Vec<Case> {
    stories!["escapes::processes":
        nobody_else_can_be_touched,
        own_children_can_be_touched,
        signals_to_everyone_stay_within_the_call,
        a_supervisor_made_a_tracer_still_ends_the_call,
        a_command_inherits_nothing,
    ]
}

pub(crate) const ATTACKS: &[Named] = &[
    ("processes", attack_processes),
    ("victim", be_a_victim),
    ("trace me", have_the_parent_trace),
];

fn nobody_else_can_be_touched(level: Level) {
    let outside = Outside::start();
    let provider = format!("provider={}={}", std::process::id(), SECRET.as_ptr() as u64);
    let stranger = format!("outside={}=0", outside.0.id());
    let fixture = Fixture::new(level);
    let mut beside = fixture.start_attack("victim");
    let at = format!("beside={}", beside.line());

    let mut fates = fixture.attack("processes", &["ancestors", &provider, &stranger, &at]);
    let mut expected = Fates::new();
    for target in ["supervisor", "spawner", "provider", "outside", "beside"] {
        let hidden = level == Level::Full && ["provider", "outside"].contains(&target);
        for (means, kind, _) in MEANS {
            let errno = match (kind, hidden) {
                (Kind::Filtered | Kind::Resources, _) => libc::EPERM,
                (Kind::Process | Kind::Processors, true) => libc::ESRCH,
                (Kind::Process | Kind::Processors, false) => libc::EPERM,
                (Kind::Directory | Kind::DirectoryForWriting, true) => libc::ENOENT,
                (Kind::Directory | Kind::DirectoryForWriting, false) => libc::EACCES,
            };
            expected.insert(format!("{target} {means}"), Denied(errno));
        }
    }
    // Where a process is not visible there is nothing to take a descriptor from.
    if level == Level::Full {
        for target in ["provider", "outside"] {
            expected.insert(format!("{target} pidfd_getfd"), Denied(libc::ESRCH));
        }
    }
    // Where it is, this file alone may answer in the words of ptrace.
    for (name, fate) in &mut fates {
        if name.ends_with(" syscall") && *fate == Denied(libc::EPERM) {
            *fate = Denied(libc::EACCES);
        }
        // Their modes may refuse before their mount does.
        if *fate == Denied(libc::EROFS) && level == Level::Full {
            *fate = Denied(libc::EACCES);
        }
    }
    // Commands have given up rights that these still have.
    let above = rustix::process::geteuid().is_root();
    for target in ["supervisor", "spawner", "beside", "provider", "outside"] {
        if target == "spawner" && level == Level::Full {
            continue;
        }
        let theirs = ["provider", "outside"].contains(&target);
        if !theirs || (level == Level::Kernel && !above) {
            expected.insert(format!("{target} sched_setaffinity"), Allowed);
        }
    }
    let said = &fixture.jail.enforcement().left_open;
    assert_same(&fates, &expected);
    assert!(said.iter().any(|sentence| sentence.contains("processors")), "{said:?}");

    // All are as they were.
    assert_eq!(fixture.succeeds("echo served"), "served\n");
    let report = beside.killed().report;
    assert_eq!((report.status, report.processes_killed), (ExitStatus::Signaled(9), 1));
}

/// The answer to who opens a file of /proc for writing: at the full level its mount is read-only.
fn not_written(level: Level) -> i32 {
    if level == Level::Full { libc::EROFS } else { libc::EACCES }
}

fn own_children_can_be_touched(level: Level) {
    let fates = Fixture::new(level).attack("processes", &["own"]);
    let expected = MEANS.iter().map(|(means, kind, _)| {
        let fate = match kind {
            Kind::Process | Kind::Directory | Kind::Processors => Allowed,
            Kind::Filtered | Kind::Resources => Denied(libc::EPERM),
            Kind::DirectoryForWriting => Denied(not_written(level)),
        };
        (format!("own {means}"), fate)
    });
    assert_same(&fates, &expected.collect());

    // Without a jail every attempt succeeds, so that none is refused for being ill made. What
    // counts events is closed to ordinary users on many machines.
    let mut fates = unjailed("processes", &["own"]);
    fates.remove("own perf events");
    assert_all(&fates, Allowed);
}

fn signals_to_everyone_stay_within_the_call(level: Level) {
    let fixture = Fixture::new(level);
    let mut beside = fixture.start_bash(
        "trap 'echo hit' URG; echo ready; until [ -e end ]; do sleep 0.01; done; echo unharmed",
    );
    assert_eq!(beside.line(), "ready");
    let script = r#"
        bash -c 'trap "echo own >&3; exit" URG; echo ready; while :; do sleep 0.01; done' 3>&1 > ready &
        until [ -s ready ]; do sleep 0.01; done
        trap '' URG; kill -URG -1; wait $!"#;
    assert_eq!(fixture.succeeds(script), "own\n");
    fixture.succeeds("touch end");
    assert_eq!(beside.outcome().stdout, "unharmed\n");
}

/// A tracee stops at each signal, and its tracer gets to see that where it waits for its end.
fn a_supervisor_made_a_tracer_still_ends_the_call(level: Level) {
    let fixture = Fixture::new(level);
    let mut traced = fixture.start_attack("trace me");
    assert_eq!(traced.line(), "traced\tallowed");
    let outcome = traced.killed();
    assert_eq!(outcome.report.status, ExitStatus::Signaled(9), "{outcome:?}");
    assert_eq!(fixture.succeeds("echo served"), "served\n");
}

fn have_the_parent_trace(attempts: &mut Attempts, _: &[String]) {
    attempts.make("traced", raw::trace_me);
    let own = rustix::process::getpid();
    let _ = rustix::process::kill_process(own, rustix::process::Signal::STOP);
    attempts.say("nobody stopped me");
}

fn a_command_inherits_nothing(level: Level) {
    let fixture = Fixture::new(level);
    // The listing opens one more.
    assert_eq!(fixture.succeeds("exec ls /proc/self/fd"), "0\n1\n2\n3\n");

    let status = fixture.succeeds("exec cat /proc/self/status");
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(":\t"));
        line.unwrap_or_else(|| panic!("{name} in {status}")).trim().to_owned()
    };
    let number = |name: &str| u64::from_str_radix(&field(name), 16).unwrap();
    assert_eq!((field("NoNewPrivs"), field("Seccomp")), ("1".to_owned(), "2".to_owned()));
    // Those two belong to the C library, whose posix_spawn ignores them for the spawner.
    const INTERNAL: u64 = 0b11 << 31;
    assert_eq!((number("SigBlk"), number("SigIgn") & !INTERNAL), (0, 0), "{status}");
    assert_eq!((number("CapInh"), number("CapAmb")), (0, 0));
    // chown, dac_override, fowner, fsetid, kill: what lets root work on the files it is granted.
    const KEPT: u64 = 0b11_1011;
    assert_eq!((number("CapEff") & !KEPT, number("CapPrm") & !KEPT), (0, 0), "{status}");
    if rustix::process::geteuid().is_root() {
        assert_eq!(number("CapBnd") & !KEPT, 0, "{status}");
    }
    let names = fixture.succeeds("exec env");
    let mut names: Vec<_> =
        names.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    names.retain(|name| !["_", "SHLVL", "PWD", "OLDPWD"].contains(name));
    names.sort_unstable();
    let given = ["GIT_TERMINAL_PROMPT", "HOME", "LANG", "PATH", "TERM", "TMPDIR", "XDG_CACHE_HOME"];
    assert_eq!(names, given);
    // A session of its own, without a terminal.
    let script = "ps -o sid= -p $$ | tr -d ' '; echo $$; exec 3<>/dev/tty";
    let outcome = fixture.bash(script);
    let ids: Vec<_> = outcome.stdout.lines().collect();
    assert_eq!(ids[0], ids[1]);
    assert!(outcome.stderr.contains("No such device or address"), "{outcome:?}");
}

/// A process of the same user that no jail knows of.
struct Outside(Child);

impl Outside {
    /// Waits for an answer: a program that was only just started is not mapped yet.
    fn start() -> Self {
        let piped = Stdio::piped;
        let mut cat = Command::new("cat").stdin(piped()).stdout(piped()).spawn().unwrap();
        cat.stdin.as_mut().unwrap().write_all(b"?").unwrap();
        cat.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        Self(cat)
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Says where its secret lies, and waits for its end.
fn be_a_victim(attempts: &mut Attempts, _: &[String]) {
    let secret = *b"own-call";
    attempts.say(&format!("{}={}", std::process::id(), secret.as_ptr() as u64));
    loop {
        std::thread::park();
    }
}

/// Attempts on each target: `own` (a child), `ancestors` (supervisor and spawner) and
/// `NAME=PID=ADDRESS`.
fn attack_processes(attempts: &mut Attempts, targets: &[String]) {
    let mut own = None;
    for target in targets {
        match target.as_str() {
            "own" => {
                let child = own.insert(Outside::start());
                attack(attempts, "own", child.0.id().cast_signed(), 0);
            }
            "ancestors" => {
                let supervisor = parent(std::process::id().cast_signed()).unwrap();
                attack(attempts, "supervisor", supervisor, 0);
                attack(attempts, "spawner", parent(supervisor).unwrap(), 0);
            }
            other => {
                let mut parts = other.split('=');
                let mut next = || parts.next().unwrap();
                let (name, pid, address) = (next(), next(), next());
                attack(attempts, name, pid.parse().unwrap(), address.parse().unwrap());
            }
        }
    }
}

fn parent(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(") ").next()?.split(' ').nth(1)?.parse().ok()
}

/// Every attempt on every thread of a process. One success is enough.
fn attack(attempts: &mut Attempts, name: &str, pid: i32, address: u64) {
    let threads: Vec<i32> = fs::read_dir(format!("/proc/{pid}/task"))
        .map(|tasks| tasks.flatten().filter_map(|t| t.file_name().to_str()?.parse().ok()).collect())
        .unwrap_or_else(|_| vec![pid]);
    for (attempt, _, make) in MEANS {
        attempts.make(&format!("{name} {attempt}"), || {
            let mut last = Ok(());
            for &thread in &threads {
                let fate = make(&Thread { pid, thread, address });
                // Other stories' threads in the same provider end as they like.
                let ended =
                    thread != pid && !Path::new(&format!("/proc/{pid}/task/{thread}")).exists();
                if ended && fate.is_err() {
                    continue;
                }
                last = fate;
                if last.is_ok() {
                    break;
                }
            }
            last
        });
    }
}
