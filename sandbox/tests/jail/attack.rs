//! The attacker: this very program, started again inside a jail to try things one by one.
//!
//! An attack is a function that makes attempts, each with a name; what became of each travels
//! back as a line of text. The same attack on something that the attacker may touch is the twin
//! that proves that the attempt is well made.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::process::{ExitCode, Stdio};

use crate::fixture::{Call, Fixture, Outcome, this_program};

pub(crate) const ARGUMENT: &str = "__attack";

/// An attack by its name. It gets its arguments and reports its attempts.
pub(crate) type Named = (&'static str, fn(&mut Attempts, &[String]));

/// Collects what becomes of attempts.
pub(crate) struct Attempts(());

/// What became of one attempt.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It worked.
    Allowed,
    /// The system answered with this errno.
    Denied(i32),
}

/// What became of each attempt, by name.
pub(crate) type Fates = BTreeMap<String, Fate>;

pub(crate) use Fate::{Allowed, Denied};

/// Runs an attack when this process was started for one.
pub(crate) fn run_if_asked(attacks: &[Named]) -> Option<ExitCode> {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() != Some(ARGUMENT) {
        return None;
    }
    let name = arguments.next().unwrap_or_default();
    let rest: Vec<_> = arguments.collect();
    let (_, attack) = attacks.iter().find(|(known, _)| *known == name)?;
    attack(&mut Attempts(()), &rest);
    Some(ExitCode::SUCCESS)
}

impl Attempts {
    /// Makes an attempt and says at once what became of it, so that an attack that kills its
    /// process is known up to there.
    pub(crate) fn make<T>(&mut self, name: &str, attempt: impl FnOnce() -> io::Result<T>) {
        let fate = match attempt() {
            Ok(_) => "allowed".to_owned(),
            Err(error) => match error.raw_os_error() {
                Some(errno) => errno.to_string(),
                None => format!("broken: {error}"),
            },
        };
        self.say(&format!("{name}\t{fate}"));
    }

    /// Says something to the story.
    pub(crate) fn say(&mut self, line: &str) {
        let mut out = io::stdout().lock();
        out.write_all(format!("{line}\n").as_bytes()).unwrap();
        out.flush().unwrap();
    }
}

impl Fixture {
    /// Runs an attack inside the jail.
    pub(crate) fn attack<S: AsRef<str>>(&self, name: &str, arguments: &[S]) -> Fates {
        let line = self.command(&self.dirs.root, &words(name, arguments));
        fates(&self.run(&line))
    }

    /// Runs an attack inside the jail whose standard input is a descriptor of the story's.
    pub(crate) fn attack_on<S: AsRef<str>>(
        &self,
        stdin: OwnedFd,
        name: &str,
        arguments: &[S],
    ) -> Fates {
        let line = self.command(&self.dirs.root, &words(name, arguments));
        fates(&self.run_on(&line, stdin))
    }

    /// Starts an attack inside the jail, to run beside the story.
    pub(crate) fn start_attack(&self, name: &str) -> Call {
        self.start_attack_with(name, &[])
    }

    pub(crate) fn start_attack_with(&self, name: &str, arguments: &[&str]) -> Call {
        self.start(&self.command(&self.dirs.root, &words(name, arguments)))
    }
}

/// Runs an attack without any jail.
pub(crate) fn unjailed<S: AsRef<str>>(name: &str, arguments: &[S]) -> Fates {
    unjailed_on(Stdio::null(), name, arguments)
}

/// The same with a standard input.
pub(crate) fn unjailed_on<S: AsRef<str>>(
    stdin: impl Into<Stdio>,
    name: &str,
    arguments: &[S],
) -> Fates {
    let words = words(name, arguments);
    let mut command = std::process::Command::new(&words[0]);
    let output = command.args(&words[1..]).stdin(stdin).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    parsed(&String::from_utf8(output.stdout).unwrap())
}

fn words<S: AsRef<str>>(name: &str, arguments: &[S]) -> Vec<String> {
    let program = this_program().into_os_string().into_string().unwrap();
    let mut words = vec![program, ARGUMENT.to_owned(), name.to_owned()];
    words.extend(arguments.iter().map(|argument| argument.as_ref().to_owned()));
    words
}

/// What the attack that printed `outcome` reported; it must have come to its end.
#[track_caller]
pub(crate) fn fates(outcome: &Outcome) -> Fates {
    assert_eq!(outcome.report.status, sandbox::ExitStatus::Exited(0), "{outcome:#?}");
    parsed(&outcome.stdout)
}

fn parsed(text: &str) -> Fates {
    let fate = |text: &str| match text {
        "allowed" => Allowed,
        other => Denied(other.parse().unwrap_or_else(|_| panic!("attempt is {other}"))),
    };
    let lines = text.lines().filter_map(|line| line.split_once('\t'));
    lines.map(|(name, text)| (name.to_owned(), fate(text))).collect()
}

/// Asserts what became of each attempt, leaving none out.
#[track_caller]
pub(crate) fn assert_fates(fates: &Fates, expected: &[(&str, Fate)]) {
    assert_same(fates, &expected.iter().map(|(name, fate)| ((*name).to_owned(), *fate)).collect());
}

/// The same for a list that was worked out.
#[track_caller]
pub(crate) fn assert_same(fates: &Fates, expected: &Fates) {
    let mut names: Vec<_> = fates.keys().chain(expected.keys()).collect();
    names.sort();
    names.dedup();
    let wrong: Vec<_> = names
        .into_iter()
        .map(|name| (name, fates.get(name), expected.get(name)))
        .filter(|(_, is, should)| is != should)
        .map(|(name, is, should)| format!("{name}: is {is:?}, should be {should:?}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Asserts that every attempt met the same fate.
#[track_caller]
pub(crate) fn assert_all(fates: &Fates, expected: Fate) {
    assert!(!fates.is_empty(), "no attempt was made");
    let others: Vec<_> = fates.iter().filter(|(_, fate)| **fate != expected).collect();
    assert!(others.is_empty(), "should all be {expected:?}: {others:#?}");
}

/// Asserts that no attempt succeeded, for where the errno is up to the order of the kernel's checks.
#[track_caller]
pub(crate) fn assert_denied(fates: &Fates, errnos: &[i32]) {
    assert!(!fates.is_empty(), "no attempt was made");
    let as_expected = |fate| matches!(fate, Denied(errno) if errnos.contains(&errno));
    let others: Vec<_> = fates.iter().filter(|(_, fate)| !as_expected(**fate)).collect();
    assert!(others.is_empty(), "should all be denied: {others:#?}");
}

impl fmt::Debug for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Allowed => f.write_str("allowed"),
            Denied(errno) => write!(f, "denied ({})", io::Error::from_raw_os_error(*errno)),
        }
    }
}
