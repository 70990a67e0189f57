//! One call and another, and a call that grows without bound.

use sandbox::{Level, Limits};

use crate::attack::{Attempts, Named};
use crate::case::{Case, stories};
use crate::fixture::Fixture;
use crate::raw;
use crate::support::until;

pub(crate) fn stories() -> Vec<Case> {
    stories!["escapes::calls":
        processes_without_end_meet_a_limit,
        a_fork_bomb_ends_with_its_call,
        one_call_can_take_the_processes_of_another_without_a_delegated_group,
    ]
}

pub(crate) const ATTACKS: &[Named] = &[("multiply", multiply)];

const LIMIT: u64 = 100;

/// A jail with a limit, where one binds, and the limit.
fn limited(level: Level) -> Option<(Fixture, u64)> {
    let binds = level == Level::Full || !rustix::process::geteuid().is_root();
    // Below the full level the kernel counts whatever else the user runs.
    let limit = LIMIT + if level == Level::Full { 0 } else { processes_of_the_user() };
    let fixture = Fixture::with(level, |_, policy| {
        policy.limits = Limits { processes: Some(limit), ..Limits::default() };
    });
    let said = fixture.jail.enforcement().left_open.iter().any(|sentence| {
        sentence.contains("limit on processes does not bind") || sentence.contains("not limited")
    });
    assert_eq!(said, !binds, "{:#?}", fixture.jail.enforcement());
    binds.then_some((fixture, limit))
}

fn processes_of_the_user() -> u64 {
    let own = rustix::process::getuid().as_raw();
    let mut count = 0;
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let status = std::fs::read_to_string(entry.path().join("status")).unwrap_or_default();
        let number = |name: &str| -> Option<u64> {
            let rest = status.lines().find_map(|line| line.strip_prefix(name))?;
            rest.split_whitespace().next()?.parse().ok()
        };
        if number("Uid:") == Some(own.into()) {
            count += number("Threads:").unwrap_or(1);
        }
    }
    count
}

fn processes_without_end_meet_a_limit(level: Level) {
    let Some((fixture, limit)) = limited(level) else { return };
    let mut call = fixture.start_attack("multiply");
    let made: u64 = call.line().parse().unwrap();
    assert_eq!(call.line(), format!("refused\t{}", libc::EAGAIN));
    assert!((1..=limit).contains(&made), "{made} of {limit}");
    let outcome = call.killed();
    assert_eq!(outcome.report.processes_killed, made + 1, "{outcome:?}");
    assert_eq!(fixture.succeeds("echo served"), "served\n");
}

fn a_fork_bomb_ends_with_its_call(level: Level) {
    let Some((fixture, _)) = limited(level) else { return };
    let mut call = fixture.start_bash("echo lit; bomb() { bomb | bomb & }; bomb; sleep 1000");
    assert_eq!(call.line(), "lit");
    // Another jail does not feel it, and its own does no more once it has ended.
    assert_eq!(Fixture::new(level).succeeds("echo elsewhere"), "elsewhere\n");
    let outcome = call.killed();
    assert!(outcome.report.processes_killed > 0, "{outcome:?}");
    assert_eq!(fixture.succeeds("echo served"), "served\n");
}

/// Where no control group is delegated, the limit is the jail's and not each call's. At the kernel level it
/// is the user's, whose other programs come and go.
fn one_call_can_take_the_processes_of_another_without_a_delegated_group(level: Level) {
    if level != Level::Full {
        return;
    }
    let Some((fixture, _)) = limited(level) else { return };
    let mut greedy = fixture.start_attack("multiply");
    greedy.line();
    assert_eq!(greedy.line(), format!("refused\t{}", libc::EAGAIN));
    // Unlike bash, sh does not try again for seconds.
    let script = "exec sh -c 'true & wait $! && echo more'";
    let other = fixture.try_bash(script);
    let open = &fixture.jail.enforcement().left_open;
    if open.iter().any(|sentence| sentence.contains("for all calls together")) {
        assert!(other.is_none_or(|outcome| outcome.stdout.is_empty()), "the limit is shared");
    } else {
        assert_eq!(other.map(|outcome| outcome.stdout).as_deref(), Some("more\n"));
    }
    greedy.killed();
    // The spawner may still be answering that it cannot fork.
    until("others are served again", || {
        fixture.try_bash(script).is_some_and(|outcome| outcome.stdout == "more\n")
    });
}

fn multiply(attempts: &mut Attempts, _: &[String]) {
    let mut made = 0;
    let refused = loop {
        match raw::fork_and_stay() {
            Ok(_) => made += 1,
            Err(error) => break error,
        }
    };
    attempts.say(&i32::to_string(&made));
    attempts.make("refused", || Err::<(), _>(refused));
    loop {
        std::thread::park();
    }
}
