//! A jail is as strong as it says, and is not built where it cannot be as strong as it must.

use std::ffi::OsStr;
use std::process::{Command, Output};

use sandbox::{
    Commands, GrantError, Jail, JailError, Level, Mode, Namespaces, Policy, SpawnerError,
    StartError,
};

use crate::case::{self, Need, granted, stories, tests};
use crate::fixture::this_program;
use crate::provider::{Provider, provider_under};
use crate::support::{ShellFixture, is_root, processes, until};

pub(crate) fn stories() -> Vec<case::Case> {
    let at_each_level = stories!["enforcement": the_enforcement_names_level_rights_and_channels];
    let once = tests![
        "enforcement":
        a_missing_root_is_an_error_that_names_it,
        a_jail_over_everything_is_built_without_namespaces_and_says_why,
        a_root_that_holds_the_home_directory_keeps_it_as_it_is,
        a_program_that_is_no_spawner_is_an_error_and_not_a_wait,
        off_is_off_and_says_so_and_still_leaves_no_process,
        a_machine_that_refuses_namespaces_gets_a_jail_without_them_that_says_why needs [Need::Tracing],
        a_kernel_without_landlock_is_refused_by_enforce needs [Need::Tracing],
        a_kernel_without_landlock_is_taken_by_best_effort_which_says_what_is_missing needs [Need::Tracing],
        a_kernel_without_filters_is_refused_by_enforce_and_said_by_best_effort needs [Need::Tracing],
        a_provider_is_closed_to_other_processes_of_its_user needs [Need::Program("setpriv")],
        a_jail_without_commands_keeps_its_private_directories,
        a_spawner_that_dies_shows_in_the_next_start,
    ];
    [at_each_level, once].concat()
}

/// A policy for a root in `base` and private directories beside it.
fn policy(base: &std::path::Path) -> Policy {
    for directory in ["root", "private"] {
        std::fs::create_dir_all(base.join(directory)).unwrap();
    }
    Policy {
        roots: vec![base.join("root")],
        private_in: Some(base.join("private")),
        ..Policy::default()
    }
}

fn the_enforcement_names_level_rights_and_channels(level: Level) {
    let fixture = &ShellFixture::at(level);
    let enforcement = fixture.jail.enforcement();
    assert!(enforcement.landlock_abi.is_some_and(|abi| abi >= 1));
    assert!(enforcement.rights.contains(&"write_file"));
    assert_eq!(enforcement.channels.states.len(), 9);
    let says = |word: &str| enforcement.left_open.iter().any(|said| said.contains(word));
    assert_eq!(says("Namespaces are not in use"), fixture.level == Level::Kernel);
    assert!(says("processors"), "{enforcement:#?}");
    if fixture.level == Level::Full {
        // What nothing closes there, and no more.
        let known = [
            "processors",
            "share its loopback",
            "Unix sockets",
            "processes as are allowed",
            "/etc",
        ];
        for said in &enforcement.left_open {
            assert!(known.iter().any(|word| said.contains(word)), "{said}");
        }
    }
    let never = ShellFixture::at(Level::Kernel);
    assert!(never.jail.enforcement().left_open[0].contains("the policy says never"));
}

fn a_missing_root_is_an_error_that_names_it() {
    let base = tempfile::tempdir().unwrap();
    let mut missing = policy(base.path());
    missing.roots.push(base.path().join("missing"));
    let error = Jail::build(&missing).unwrap_err();
    assert!(matches!(error, JailError::Grant(GrantError::Unusable { setting: "roots", .. })));
    assert!(error.to_string().ends_with("/missing"), "{error}");
    Jail::build(&policy(base.path())).unwrap();
}

fn a_jail_over_everything_is_built_without_namespaces_and_says_why() {
    let fixture = ShellFixture::begin(Namespaces::Auto, |policy, _| policy.roots.push("/".into()));
    assert_eq!(fixture.level, Level::Kernel);
    assert!(fixture.jail.enforcement().left_open[0].contains("grants the root directory"));
    assert_eq!(fixture.succeeds("cat $OUTSIDE/secret"), "SECRET");
}

fn a_root_that_holds_the_home_directory_keeps_it_as_it_is() {
    for namespaces in [Namespaces::Auto, Namespaces::Never] {
        let fixture = ShellFixture::begin(namespaces, |policy, _| {
            policy.home = Some(policy.roots[0].clone());
        });
        assert_eq!(fixture.jail.private().home, None);
        let home = fixture.root.display();
        fixture.succeeds(&format!("mkdir -p {home}/.cache && echo x > {home}/.cache/x"));
        assert!(fixture.root.join(".cache/x").exists());
    }
}

fn a_program_that_is_no_spawner_is_an_error_and_not_a_wait() {
    let base = tempfile::tempdir().unwrap();
    for program in ["/bin/true", "/no/such/program"] {
        let mut wrong = policy(base.path());
        wrong.spawner_program = Some(program.into());
        let error = Jail::build(&wrong).unwrap_err();
        assert!(matches!(error, JailError::Spawner(SpawnerError::Start { .. })), "{error:?}");
    }
}

fn off_is_off_and_says_so_and_still_leaves_no_process() {
    let fixture = ShellFixture::begin(Namespaces::Auto, |policy, _| policy.mode = Mode::Off);
    assert_eq!(fixture.level, Level::Off);
    assert!(fixture.jail.enforcement().left_open[0].starts_with("Everything"));
    assert_eq!(fixture.succeeds("cat $OUTSIDE/secret"), "SECRET");
    let secret = fixture.outside.join("secret");
    assert_eq!(fixture.job(move || std::fs::read_to_string(secret).unwrap()), "SECRET");
    let mark = format!("mark-off-{}.", std::process::id());
    let outcome = fixture.run(&format!("setsid bash -c 'exec -a {mark} sleep 1000' & echo"));
    assert_eq!(outcome.report.processes_killed, 1);
    assert_eq!(processes(&mark), []);
    assert!(fixture.jail.explain_network().is_none());
}

/// Runs the example where a system call fails, as far as a process can see.
fn failing(call: &str, errno: &str, mode: &str) -> Output {
    let base = tempfile::tempdir().unwrap();
    let program = this_program();
    let (trace, inject) = (format!("trace={call}"), format!("inject={call}:error={errno}"));
    let words = ["-f", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject];
    // A provider that waits for ever ends all the same.
    let words = words.into_iter().chain(["timeout", "240"]).map(OsStr::new);
    let words: Vec<_> = words.chain([program.as_os_str()]).collect();
    provider_under(OsStr::new("strace"), &words, base.path())
        .args(["/bin/sh", "-c", "echo ran"])
        .env("JAILED_MODE", mode)
        .output()
        .unwrap()
}

fn without_landlock(errno: &str, mode: &str) -> Output {
    failing("landlock_create_ruleset", errno, mode)
}

fn a_machine_that_refuses_namespaces_gets_a_jail_without_them_that_says_why() {
    // Refused at once, and half way where there is a way.
    let calls = ["unshare", "mount", "mount_setattr", "pivot_root"];
    let calls = if granted() == Level::Full { &calls[..] } else { &calls[..1] };
    for call in calls {
        let output = failing(call, "EPERM", "enforce");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("level kernel"), "{call}: {said}");
        assert!(said.contains("Operation not permitted"), "{call}: {said}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "ran\n", "{call}: {said}");
    }
}

fn a_kernel_without_landlock_is_refused_by_enforce() {
    for errno in ["ENOSYS", "EOPNOTSUPP"] {
        let output = without_landlock(errno, "enforce");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("cannot enforce file rights"), "{said}");
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(1), b"".as_slice()));
    }
}

fn a_kernel_without_landlock_is_taken_by_best_effort_which_says_what_is_missing() {
    let output = without_landlock("EOPNOTSUPP", "best_effort");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("level partial"), "{said}");
    assert!(said.contains("File rights are not enforced"), "{said}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "ran\n", "{said}");
}

fn a_kernel_without_filters_is_refused_by_enforce_and_said_by_best_effort() {
    let output = failing("seccomp", "EINVAL", "enforce");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("cannot set up seccomp"), "{said}");
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(1), b"".as_slice()));
    let output = failing("seccomp", "EINVAL", "best_effort");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("level partial"), "{said}");
    assert!(said.contains("System calls are not filtered"), "{said}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "ran\n", "{said}");
}

/// Other programs of the user are no way to a provider's secrets: a jail of another provider may
/// let its commands see /proc.
fn a_provider_is_closed_to_other_processes_of_its_user() {
    // Root may look at anybody by one of three capabilities, which neither of the two has here.
    const NONE: &str = "-sys_ptrace,-sys_admin,-perfmon";
    let root: &[&str] = &["setpriv", "--bounding-set", NONE, "--inh-caps", NONE];
    let limits: &[&str] = if is_root() { root } else { &["env"] };
    let limits: Vec<_> = limits.iter().map(OsStr::new).collect();
    let read = |set: &[(&str, &str)]| {
        let base = tempfile::tempdir().unwrap();
        let program = this_program();
        let words = [&limits[1..], &[program.as_os_str()]].concat();
        let mut provider = Provider::start(
            provider_under(limits[0], &words, base.path())
                .args(["/bin/sh", "-c", "echo up; exec sleep 1000"])
                .env("TOKEN", "of-the-story")
                .envs(set.iter().copied()),
        );
        assert_eq!(provider.line(), "up");
        let environ = format!("/proc/{}/environ", provider.child.id());
        let mut reader = Command::new(limits[0]);
        let read = reader.args(&limits[1..]).arg("cat").arg(environ).output().unwrap();
        (read.status.success(), String::from_utf8_lossy(&read.stdout).contains("of-the-story"))
    };
    assert_eq!(read(&[]), (false, false));
    assert_eq!(read(&[("JAILED_OPEN", "1")]), (true, true));
}

fn a_jail_without_commands_keeps_its_private_directories() {
    let fixture =
        ShellFixture::begin(Namespaces::Auto, |policy, _| policy.commands = Commands::Never);
    let kept = fixture.jail.private().spool.join("kept");
    let (write, outside) = (kept.clone(), fixture.outside.join("secret"));
    assert!(fixture.job(move || std::fs::write(write, "kept")).is_ok());
    assert!(fixture.job(move || std::fs::read(outside)).is_err());
    let (command, ..) = fixture.command("true");
    assert!(matches!(fixture.jail.start(command), Err(StartError::SpawnerGone(_))));
    assert!(kept.exists());
    drop(fixture.jail);
    assert!(!kept.exists());
}

fn a_spawner_that_dies_shows_in_the_next_start() {
    let fixture = ShellFixture::begin(Namespaces::Never, |_, _| {});
    let spawner = children()
        .into_iter()
        .find(|pid| grandchild_runs(&fixture, *pid))
        .expect("this jail's spawner is a child of ours");
    rustix::process::kill_process(spawner, rustix::process::Signal::KILL).unwrap();
    until("the spawner is gone", || {
        let (command, ..) = fixture.command("true");
        matches!(fixture.jail.start(command), Err(StartError::SpawnerGone(_)))
    });
}

fn children() -> Vec<rustix::process::Pid> {
    let mut all = Vec::new();
    for task in std::fs::read_dir("/proc/self/task").unwrap().flatten() {
        let list = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        let pids = list.split_whitespace().map(|pid| pid.parse().unwrap());
        all.extend(pids.filter_map(rustix::process::Pid::from_raw));
    }
    all
}

/// Whether a command of the story runs below this process.
fn grandchild_runs(fixture: &ShellFixture, spawner: rustix::process::Pid) -> bool {
    let talking = fixture.start("exec sleep 60");
    let below = |pid: u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:\t"));
        parent.and_then(|pid| pid.parse::<u32>().ok()).unwrap_or_default()
    };
    let found =
        below(below(talking.running.pid().number())) == spawner.as_raw_nonzero().get() as u32;
    talking.running.kill().unwrap();
    talking.end();
    found
}
