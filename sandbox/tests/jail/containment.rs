//! Nothing outlives its call, however it hides, and nothing outlives the provider.

use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, kill_process};
use sandbox::{ExitStatus, Level, Namespaces};

use crate::case::{self, Need, stories, tests};
use crate::provider::{Provider, provider};
use crate::support::{ShellFixture, await_file, processes, until, zombies};

pub(crate) fn stories() -> Vec<case::Case> {
    let at_each_level = stories![
        "containment":
        a_quiet_command_kills_nothing,
        a_process_in_a_session_of_its_own_ends_with_its_call,
        a_daemon_that_forks_twice_ends_with_its_call,
        neither_nohup_nor_traps_help,
        what_a_command_leaves_running_can_clean_up_first,
        two_hundred_jobs_end_with_their_call,
        stopped_processes_end_with_their_call,
        processes_that_fork_faster_than_they_are_listed_end_with_their_call needs [Need::Program("perl")],
        a_deep_tree_is_killed_on_request needs [Need::Program("setsid")],
        a_signal_reaches_the_whole_group_and_a_trap_can_answer_it,
        the_descriptor_shows_the_end,
        dropping_the_handle_kills_the_call,
        killing_one_call_leaves_its_neighbour_alone,
        zombies_do_not_pile_up,
        a_dropped_jail_lets_its_calls_end_and_a_second_one_works_beside_it,
        a_supervisor_that_dies_takes_its_call_with_it,
    ];
    let once = tests![
        "containment":
        nothing_is_left_when_the_provider_is_killed needs [Need::Program("setsid")],
        what_a_killed_provider_leaves_on_the_disk_is_removed_by_the_next,
    ];
    [at_each_level, once].concat()
}

/// A name that no other process has, be it of this suite running twice.
fn unique(name: &str, which: impl std::fmt::Display) -> String {
    format!("mark-{name}-{which}-{}.", std::process::id())
}

/// Runs `script`, whose sleepers are called `$MARK`, and sees to it that none is left.
fn leaves_nothing(level: Level, mark: &str, script: &str, killed: impl Fn(u64) -> bool) {
    let fixture = ShellFixture::at(level);
    let mark = unique(mark, level);
    let script = format!(
        "export MARK={mark}
         sleeper() {{ : > $ROOT/up.$BASHPID; exec -a $MARK sleep 1000; }}; export -f sleeper
         up() {{ until [ $(ls $ROOT | grep -c ^up) -ge $1 ]; do sleep 0.01; done; }}
         {script}"
    );
    let outcome = fixture.run(&script);
    assert_eq!(outcome.code(), 0, "{outcome:?}");
    assert_eq!(processes(&mark), [], "{outcome:?}");
    assert!(killed(outcome.report.processes_killed), "{outcome:?}");
}

fn a_quiet_command_kills_nothing(level: Level) {
    leaves_nothing(level, "none", "true & wait; true", |killed| killed == 0);
}

fn a_process_in_a_session_of_its_own_ends_with_its_call(level: Level) {
    let script = "setsid bash -c sleeper & disown; up 1";
    leaves_nothing(level, "session", script, |killed| killed == 1);
}

fn a_daemon_that_forks_twice_ends_with_its_call(level: Level) {
    // Descriptors closed, parent gone twice: what daemon(3) does.
    let script = "(setsid bash -c '(exec 0<&- 1>&- 2>&-; sleeper) & exit' & exit); up 1";
    leaves_nothing(level, "daemon", script, |killed| killed == 1);
}

fn neither_nohup_nor_traps_help(level: Level) {
    let script = "nohup bash -c sleeper >/dev/null 2>&1 & \
                  (trap '' TERM HUP INT QUIT; sleeper) & up 2";
    leaves_nothing(level, "nohup", script, |killed| killed == 2);
}

/// A collector of garbage removes its lock, also from a session of its own and after a stop.
fn what_a_command_leaves_running_can_clean_up_first(level: Level) {
    let fixture = ShellFixture::at(level);
    let script =
        "cleaner() { trap 'sleep 0.1; rm $1; exit' TERM; : > $1; while :; do sleep 0.05; done; }
        export -f cleaner
        cleaner $ROOT/one & setsid bash -c 'cleaner $0' $ROOT/two >/dev/null 2>&1 &
        until [ -e $ROOT/one ] && [ -e $ROOT/two ]; do sleep 0.01; done; kill -STOP %1";
    let outcome = fixture.run(script);
    assert_eq!(outcome.code(), 0, "{outcome:?}");
    for lock in ["one", "two"] {
        assert!(!fixture.root.join(lock).exists(), "{lock}: {outcome:?}");
    }
    assert!(outcome.report.processes_killed >= 2, "{outcome:?}");
    let mut left = outcome.report.left_running().map(|program| program.to_string());
    assert!(left.any(|program| program == "bash"), "{outcome:?}");
}

fn two_hundred_jobs_end_with_their_call(level: Level) {
    let script = "for i in {1..100}; do sleeper & setsid bash -c sleeper & done; up 200";
    leaves_nothing(level, "many", script, |killed| killed == 200);
}

fn stopped_processes_end_with_their_call(level: Level) {
    let script = "sleeper & setsid bash -c sleeper & up 2; kill -STOP %1";
    leaves_nothing(level, "stopped", script, |killed| killed == 2);
}

fn processes_that_fork_faster_than_they_are_listed_end_with_their_call(level: Level) {
    // Each parent ends right after its fork, so that every list is old when it is read.
    let script = r#"for i in 1 2 3 4; do
        perl -e '$0 = $ENV{MARK}; for ($n = 0;; $n++) {
            exit if fork; open F, ">", "up.'$i'" if $n == 20 }' &
    done; up 4"#;
    // How many there were nobody can tell: each may have ended by itself before its group was killed.
    leaves_nothing(level, "chaser", script, |_| true);
}

fn a_deep_tree_is_killed_on_request(level: Level) {
    let fixture = &ShellFixture::at(level);
    let mark = unique("deep", fixture.level);
    let script = format!(
        "deep() {{ if [ $1 -gt 0 ]; then deep $(($1 - 1)) & wait; else : > $ROOT/deep; \
         exec -a {mark} sleep 1000; fi; }}
         setsid bash -c ': > $ROOT/own; (exec -a {mark} sleep 1000); :' & deep 12"
    );
    let talking = fixture.start(&script);
    await_file(&fixture.root.join("deep"));
    await_file(&fixture.root.join("own"));
    talking.running.kill().unwrap();
    let outcome = talking.end();
    assert_eq!(outcome.report.status, ExitStatus::Signaled(libc::SIGKILL));
    // No shell lives to say that another one was killed.
    assert_eq!(outcome.err, "");
    // Thirteen shells and sleepers, and two of a session of their own, if both were up.
    assert!((13..=15).contains(&outcome.report.processes_killed), "{outcome:?}");
    assert_eq!(processes(&mark), []);
}

fn a_signal_reaches_the_whole_group_and_a_trap_can_answer_it(level: Level) {
    let fixture = &ShellFixture::at(level);
    let script = "trap 'echo bye; exit 7' TERM; : > $ROOT/ready; sleep 1000 & wait";
    let talking = fixture.start(script);
    await_file(&fixture.root.join("ready"));
    talking.running.signal(libc::SIGTERM).unwrap();
    let outcome = talking.end();
    assert_eq!((outcome.code(), outcome.out.as_str()), (7, "bye\n"));
    // The group got the signal too, but sleep may still have been on its way out.
    assert!(outcome.report.processes_killed <= 1);
}

fn the_descriptor_shows_the_end(level: Level) {
    let fixture = &ShellFixture::at(level);
    let mut talking = fixture.start("sleep 1000");
    assert!(talking.running.try_wait().unwrap().is_none());
    talking.running.kill().unwrap();
    let mut ready = [PollFd::from_borrowed_fd(talking.running.as_fd(), PollFlags::IN)];
    poll(&mut ready, None).unwrap();
    assert!(talking.running.try_wait().unwrap().is_some());
}

fn dropping_the_handle_kills_the_call(level: Level) {
    let fixture = &ShellFixture::at(level);
    let mark = unique("drop", fixture.level);
    let talking = fixture.start(&format!("touch $ROOT/up; exec -a {mark} sleep 1000"));
    await_file(&fixture.root.join("up"));
    until("the sleeper has its name", || !processes(&mark).is_empty());
    drop(talking);
    until("the call is gone", || processes(&mark).is_empty());
}

fn killing_one_call_leaves_its_neighbour_alone(level: Level) {
    let fixture = &ShellFixture::at(level);
    let one = fixture.start("sleep 1000 & setsid sleep 1000 & wait");
    let two = fixture.start("until [ -e $ROOT/go ]; do sleep 0.01; done; echo done");
    one.running.kill().unwrap();
    one.end();
    std::fs::write(fixture.root.join("go"), "").unwrap();
    assert_eq!(two.end().out, "done\n");
}

fn zombies_do_not_pile_up(level: Level) {
    let before = zombies();
    let fixture = &ShellFixture::at(level);
    for _ in 0..100 {
        fixture.succeeds("true");
    }
    for _ in 0..20 {
        let talking = fixture.start("sleep 60");
        talking.running.kill().unwrap();
        talking.end();
        fixture.succeeds("(sleep 1 &); exit 0");
    }
    until("the spawners have ended and were waited for", || zombies() <= before);
}

fn a_dropped_jail_lets_its_calls_end_and_a_second_one_works_beside_it(level: Level) {
    let first = ShellFixture::at(level);
    let (root, base) = (first.root.clone(), first.jail.private().spool.clone());
    let talking = first.start(
        "until [ -e $ROOT/go ]; do sleep 0.01; done; echo $TMPDIR; \
                               touch $TMPDIR/x && echo late",
    );
    let second = ShellFixture::at(level);
    assert_eq!(second.succeeds("echo second"), "second\n");
    let ShellFixture { jail, _base, .. } = first;
    drop(jail);
    assert!(base.exists(), "the call still uses the private directories");
    std::fs::write(root.join("go"), "").unwrap();
    assert!(talking.end().out.ends_with("late\n"));
    until("the private directories are removed", || !base.exists());
}

fn a_supervisor_that_dies_takes_its_call_with_it(level: Level) {
    let fixture = ShellFixture::at(level);
    let mark = unique("orphan", fixture.level);
    let script = format!(
        "setsid bash -c 'exec -a {mark} sleep 1000' & \
         touch $ROOT/up; exec -a {mark} sleep 1000"
    );
    let talking = fixture.start(&script);
    await_file(&fixture.root.join("up"));
    until("both sleep", || processes(&mark).len() == 2);
    let supervisor = parent_of(talking.running.pid().number());
    kill_process(supervisor, Signal::KILL).unwrap();
    assert!(talking.running.wait().is_err(), "there is nobody to report");
    until("the call is gone", || processes(&mark).is_empty());
    assert_eq!(fixture.succeeds("echo next"), "next\n");
}

fn parent_of(pid: u32) -> Pid {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap();
    Pid::from_raw(parent.trim().parse().unwrap()).unwrap()
}

fn nothing_is_left_when_the_provider_is_killed() {
    let base = tempfile::tempdir().unwrap();
    for (number, script) in [
        "setsid bash -c 'exec -a $0 sleep 1000' MARK & echo up; exec -a MARK sleep 1000",
        "(setsid bash -c '(exec 0<&- 1>&- 2>&-; exec -a $0 sleep 1000) & exit' MARK & exit); \
         trap '' TERM HUP; echo up; exec -a MARK sleep 1000",
    ]
    .into_iter()
    .enumerate()
    {
        for namespaces in ["auto", "never"] {
            let mark = unique("provider", format_args!("{number}-{namespaces}"));
            let mut provider = Provider::start(
                provider(base.path())
                    .args(["/bin/bash", "-c", &script.replace("MARK", &mark)])
                    .env("JAILED_NAMESPACES", namespaces),
            );
            assert_eq!(provider.line(), "up");
            provider.kill();
            // Zombies of a dead provider are for the machine's first process to reap.
            let alive = || processes(&mark).into_iter().filter(|(_, state)| *state != 'Z').count();
            until("every process is gone", || alive() == 0);
            until("the spawner is gone", || {
                processes("sandbox-spawner").into_iter().all(|(pid, _)| !orphaned(pid))
            });
        }
    }
}

/// Whether a process lost its provider: other tests' spawners have theirs.
fn orphaned(pid: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let running = !status.contains("State:\tZ");
    running && status.lines().any(|line| line == "PPid:\t1")
}

fn what_a_killed_provider_leaves_on_the_disk_is_removed_by_the_next() {
    let base = tempfile::tempdir().unwrap();
    let jails = || {
        let user = rustix::process::geteuid().as_raw();
        let own = base.path().join(format!("tmp/provider-workspace-{user}"));
        let names = std::fs::read_dir(own).into_iter().flatten().flatten();
        names.filter(|entry| entry.file_name().to_string_lossy().starts_with("jail-")).count()
    };
    let script = "echo $TMPDIR > $TMPDIR/left; echo up; sleep 1000";
    let mut provider = Provider::start(provider(base.path()).args(["/bin/bash", "-c", script]));
    assert_eq!(provider.line(), "up");
    // A first try with namespaces that were refused takes its directory away a moment later.
    until("there is one jail", || jails() == 1);
    provider.kill();
    let private = base.path().join("tmp");
    let next = ShellFixture::begin(Namespaces::Never, move |policy, _| {
        policy.private_in = Some(private.clone());
    });
    assert_eq!(jails(), 1, "the dead one's directory is gone, the new one's is there");
    drop(next);
    // On a busy machine the spawner may end after the jail that it belonged to.
    until("no directory is left", || jails() == 0);
}
