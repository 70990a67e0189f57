//! How commands start and fail to, and what their reports say.

use std::os::fd::AsFd;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sandbox::{
    Access, ExitStatus, Jail, Level, LimitHit, Limits, Running, Setting, Stage, StartError, Subject,
};

use crate::case::{self, Need, stories};
use crate::support::{ShellFixture, is_root};

pub(crate) fn stories() -> Vec<case::Case> {
    stories![
        "start":
        a_start_that_fails_says_where_and_why,
        a_command_gets_its_arguments_its_environment_and_its_directory_and_nothing_else,
        new_files_get_the_modes_that_the_providers_umask_leaves,
        the_pid_is_the_one_that_the_machine_sees,
        the_report_says_status_and_use,
        limits_hold_and_can_be_overridden_for_one_call,
        a_fork_bomb_is_bounded_and_ends_with_its_call needs [Need::ProcessLimit],
        what_was_refused_can_be_explained,
        a_jail_is_shared_between_threads_and_its_calls_run_side_by_side,
    ]
}

/// The step and the errno of a start that fails.
fn failure(fixture: &ShellFixture, change: impl FnOnce(&mut sandbox::Command)) -> (Stage, i32) {
    let (mut command, _out, _err) = fixture.command("true");
    change(&mut command);
    match fixture.jail.start(command) {
        Err(StartError::Stage { stage, source }) => (stage, source.raw_os_error().unwrap()),
        other => panic!("{other:?}"),
    }
}

fn a_start_that_fails_says_where_and_why(level: Level) {
    let fixture = &ShellFixture::at(level);
    std::fs::write(fixture.root.join("plain"), "").unwrap();
    let missing = failure(fixture, |command| command.program = "/bin/no-such-shell".into());
    assert_eq!(missing, (Stage::Program, libc::ENOENT));
    let plain = failure(fixture, |command| command.program = fixture.root.join("plain"));
    assert_eq!(plain, (Stage::Program, libc::EACCES));
    let gone = failure(fixture, |command| command.cwd = fixture.root.join("gone"));
    assert_eq!(gone, (Stage::WorkingDirectory, libc::ENOENT));
    let file = failure(fixture, |command| command.cwd = fixture.root.join("plain"));
    assert_eq!(file, (Stage::WorkingDirectory, libc::ENOTDIR));
    let outside = failure(fixture, |command| command.cwd = fixture.outside.clone());
    let errno = fixture.refusal(libc::ENOENT, libc::EACCES);
    assert_eq!(outside, (Stage::WorkingDirectory, errno));
    let long = failure(fixture, |command| command.argv.push("a".repeat(300_000).into()));
    assert_eq!(long, (Stage::Program, libc::E2BIG));
    let (mut command, _out, _err) = fixture.command("true");
    command.argv.push("a\0b".into());
    let nul = fixture.jail.start(command);
    assert!(matches!(nul, Err(StartError::Nul { what: "an argument" })), "{nul:?}");
    assert_eq!(fixture.succeeds("echo works"), "works\n");
}

fn a_command_gets_its_arguments_its_environment_and_its_directory_and_nothing_else(level: Level) {
    let fixture = &ShellFixture::at(level);
    let (mut command, out, err) = fixture.command("");
    command.program = "/usr/bin/env".into();
    command.argv = vec!["env".into()];
    command.env = vec![("ONE".into(), "1 = eins".into())];
    let outcome = fixture.talk(command, out, err).unwrap().end();
    assert_eq!(outcome.out, "ONE=1 = eins\n");
    assert_eq!(fixture.succeeds("pwd"), format!("{}\n", fixture.root.display()));
    let long = "x".repeat(100_000);
    assert_eq!(fixture.succeeds(&format!("s={long}; echo ${{#s}}")), "100000\n");
}

fn new_files_get_the_modes_that_the_providers_umask_leaves(level: Level) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let umask = status.lines().find_map(|line| line.strip_prefix("Umask:\t")).unwrap();
    assert_eq!(ShellFixture::at(level).succeeds("umask"), format!("{umask}\n"));
}

fn the_pid_is_the_one_that_the_machine_sees(level: Level) {
    let fixture = &ShellFixture::at(level);
    let talking = fixture.start("exec sleep 60");
    let link = format!("/proc/{}/comm", talking.running.pid().number());
    crate::support::until("the process is sleep", || {
        std::fs::read_to_string(&link).is_ok_and(|name| name == "sleep\n")
    });
    talking.running.kill().unwrap();
    talking.end();
}

fn the_report_says_status_and_use(level: Level) {
    let fixture = &ShellFixture::at(level);
    assert_eq!(fixture.run("exit 3").report.status, ExitStatus::Exited(3));
    let signalled = fixture.run("kill -SEGV $$");
    assert_eq!(signalled.report.status, ExitStatus::Signaled(libc::SIGSEGV));
    assert_eq!(signalled.code(), 128 + libc::SIGSEGV);
    let busy = fixture.run("perl -e 'my @a = (1) x 3_000_000; 1 while $i++ < 3_000_000'").report;
    assert!(busy.user_time > Duration::from_millis(10), "{busy:?}");
    assert!(busy.max_rss_bytes > 20 << 20, "{busy:?}");
}

fn limits_hold_and_can_be_overridden_for_one_call(level: Level) {
    let change = |policy: &mut sandbox::Policy, _: &std::path::Path| {
        policy.limits = Limits {
            memory_bytes: Some(1 << 30),
            processes: None,
            file_size_bytes: Some(1 << 20),
            open_files: Some(64),
        };
    };
    let fixture = ShellFixture::with(level, change);
    assert_eq!(fixture.succeeds("ulimit -n; ulimit -v; ulimit -f"), "64\n1048576\n1024\n");
    let large = fixture.run("head -c 2000000 /dev/zero > large");
    assert_eq!(large.report.limit, Some(LimitHit::FileSize), "{large:?}");
    assert_eq!(fixture.run("head -c 1000000 /dev/zero > small").report.limit, None);
    let memory = fixture.run("perl -e 'my $s = \"x\" x 2_000_000_000; print length $s'");
    assert_ne!(memory.code(), 0, "{memory:?}");
    assert_eq!(fixture.succeeds("perl -e 'my $s = \"x\" x 2_000_000; print length $s'"), "2000000");
    let (mut command, out, err) = fixture.command("ulimit -n");
    command.limits = Some(Limits { open_files: Some(32), ..Limits::default() });
    assert_eq!(fixture.talk(command, out, err).unwrap().end().out, "32\n");
}

fn a_fork_bomb_is_bounded_and_ends_with_its_call(level: Level) {
    // The kernel counts the bombs of all levels for an ordinary user.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let limit = 64 + tasks_of_this_user();
    let fixture = &ShellFixture::with(level, |policy, _| policy.limits.processes = Some(limit));
    let talking = fixture.start("b() { b & b & wait; }; b 2> err");
    crate::support::until("the limit is hit", || {
        let said = std::fs::read_to_string(fixture.root.join("err")).unwrap_or_default();
        said.contains("Resource temporarily unavailable")
    });
    talking.running.kill().unwrap();
    let killed = talking.end().report.processes_killed;
    // More than the limit: each one that is killed makes room for another, until all are.
    assert!((10..=4 * limit).contains(&killed), "{killed} of {limit}");
    assert_eq!(fixture.succeeds("echo after"), "after\n");
}

/// At the kernel level these count too.
fn tasks_of_this_user() -> u64 {
    let own = rustix::process::geteuid().as_raw();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let tasks = processes
        .filter(|entry| {
            let owner = entry.metadata().map(|found| std::os::unix::fs::MetadataExt::uid(&found));
            owner.is_ok_and(|owner| owner == own)
        })
        .map(|entry| std::fs::read_dir(entry.path().join("task")).map_or(0, Iterator::count));
    if is_root() { 0 } else { tasks.sum::<usize>() as u64 }
}

fn what_was_refused_can_be_explained(level: Level) {
    let fixture = &ShellFixture::with(level, |policy, outside| {
        policy.read_only_roots.push(outside.to_owned())
    });
    let explain = |subject, access, path: &str| {
        let why = fixture.jail.explain(subject, access, path.as_ref())?;
        Some((why.missing, why.setting))
    };
    let (file, command) = (Subject::FileJob, Subject::Command);
    let (root, outside) = (fixture.root.to_str().unwrap(), fixture.outside.to_str().unwrap());
    assert_eq!(explain(file, Access::Write, root), None);
    assert_eq!(explain(file, Access::Write, outside), Some(("write", Setting::Roots)));
    assert_eq!(explain(command, Access::Read, outside), None);
    assert_eq!(explain(command, Access::Write, outside), Some(("write", Setting::BashWrite)));
    assert_eq!(explain(command, Access::Read, "/srv/x"), Some(("read", Setting::BashRead)));
    assert_eq!(explain(command, Access::Execute, "/usr/bin/env"), None);
    let why = fixture.jail.explain(command, Access::Write, &fixture.outside).unwrap();
    assert_eq!(why.within.as_deref(), Some(fixture.outside.as_path()));
}

fn a_jail_is_shared_between_threads_and_its_calls_run_side_by_side(level: Level) {
    fn shared<T: Send + Sync>() {}
    shared::<Jail>();
    shared::<Running>();
    let fixture = &ShellFixture::at(level);
    let scripts: Vec<_> = (0..24).map(|n| format!("echo {n}; exit {n}")).collect();
    let talking: Vec<_> = scripts.iter().map(|script| fixture.start(script)).collect();
    for (number, talking) in talking.into_iter().enumerate() {
        let _ = talking.running.as_fd();
        let outcome = talking.end();
        assert_eq!((outcome.code(), outcome.out), (number as i32, format!("{number}\n")));
    }
}
