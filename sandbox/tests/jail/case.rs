//! A test case, and how it becomes one trial for each level.

use std::fs;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::OnceLock;

use libtest_mimic::{Completion, Trial};
use sandbox::{Jail, Level};

use crate::fixture::Directories;

/// A story to run at one level at a time. It fails by a panic.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) body: Body,
    pub(crate) needs: &'static [Need],
}

/// What a story cannot do without.
#[derive(Clone, Copy)]
pub(crate) enum Need {
    /// A program of the search path.
    Program(&'static str),
    /// A crate in the local registry.
    Crate(&'static str),
    /// A user who is root.
    Root,
    /// A limit on the number of processes, which without namespaces does not bind root.
    ProcessLimit,
    /// That strace may trace what it starts.
    Tracing,
    /// Time: such a story runs with `--ignored` or `--include-ignored` only.
    Time,
}

/// What runs a story.
#[derive(Clone, Copy)]
pub(crate) enum Body {
    /// At the level that it is given.
    At(fn(Level)),
    /// At the levels that it chooses.
    Once(fn()),
}

/// Lists stories: `stories!["subject": first, second needs [Need::Root]]`.
macro_rules! stories {
    ($subject:literal: $($name:ident $(needs [$($need:expr),+])?),+ $(,)?) => {
        vec![$($crate::case::Case {
            name: concat!($subject, "::", stringify!($name)),
            body: $crate::case::Body::At($name),
            needs: &[$($($need),+)?],
        }),+]
    };
}
pub(crate) use stories;

/// Lists stories that choose their levels.
macro_rules! tests {
    ($subject:literal: $($name:ident $(needs [$($need:expr),+])?),+ $(,)?) => {
        vec![$($crate::case::Case {
            name: concat!($subject, "::", stringify!($name)),
            body: $crate::case::Body::Once($name),
            needs: &[$($($need),+)?],
        }),+]
    };
}
pub(crate) use tests;

/// The trials of `stories`, at both levels where they leave that open.
pub(crate) fn trials(stories: &[Case]) -> Vec<Trial> {
    let mut trials = Vec::new();
    for &Case { name, body, needs } in stories {
        match body {
            Body::At(body) => trials.extend([Level::Full, Level::Kernel].map(|level| {
                let name = format!("{name}::{level}");
                trial(name, needs, move || lack(needs, Some(level)), move || body(level))
            })),
            Body::Once(body) => {
                trials.push(trial(name.to_owned(), needs, move || lack(needs, None), body));
            }
        }
    }
    trials
}

fn trial(
    name: String,
    needs: &[Need],
    lack: impl Fn() -> Option<Lack> + Send + 'static,
    body: impl Fn() + Send + 'static,
) -> Trial {
    let own = name.clone();
    Trial::ignorable_test(name, move || match lack() {
        None => {
            attempt(&own, &body);
            Ok(Completion::Completed)
        }
        Some(Lack::Machine(lack)) if in_ci() => Err(format!("CI must have it: {lack}").into()),
        Some(Lack::Machine(lack) | Lack::Pass(lack)) => Ok(Completion::ignored_with(lack)),
    })
    .with_ignored_flag(needs.iter().any(|need| matches!(need, Need::Time)))
}

/// Runs a story, and where `FLAKY_TESTS` names a file once more if it fails. One that passes then is
/// written there, for the end of `.ci/run`.
fn attempt(name: &str, body: impl Fn()) {
    let Some(flaky) = std::env::var_os("FLAKY_TESTS") else { return body() };
    if catch_unwind(AssertUnwindSafe(&body)).is_ok() {
        return;
    }
    body();
    let mut flaky = fs::File::options().append(true).open(flaky).unwrap();
    writeln!(flaky, "{name}").unwrap();
}

/// Why a story cannot run here.
enum Lack {
    /// The machine has to have it where `CI` is set.
    Machine(String),
    /// Another pass of CI has it. Where this one was to have the level, [`granted`] fails.
    Pass(String),
}

fn lack(needs: &[Need], level: Option<Level>) -> Option<Lack> {
    if level == Some(Level::Full) && granted() != Level::Full {
        return Some(Lack::Pass("the machine grants no namespaces".to_owned()));
    }
    needs.iter().find_map(|need| need.lack(level))
}

impl Need {
    fn lack(self, level: Option<Level>) -> Option<Lack> {
        let root = rustix::process::geteuid().is_root();
        let machine = |has: bool, lack: &str| (!has).then(|| Lack::Machine(lack.to_owned()));
        let pass = |has: bool, lack: &str| (!has).then(|| Lack::Pass(lack.to_owned()));
        match self {
            Self::Program(name) => machine(program_file(name).is_some(), &format!("needs {name}")),
            Self::Crate(name) => {
                machine(version_in_registry(name).is_some(), &format!("needs the crate {name}"))
            }
            Self::Root => pass(root, "needs root"),
            Self::ProcessLimit => {
                pass(!root || level == Some(Level::Full), "no limit on processes binds root")
            }
            Self::Tracing => machine(strace_traces(), "needs strace that may trace"),
            Self::Time => None,
        }
    }
}

fn strace_traces() -> bool {
    static TRACES: OnceLock<bool> = OnceLock::new();
    *TRACES.get_or_init(|| {
        let mut strace = std::process::Command::new("strace");
        strace.args(["-qq", "-o", "/dev/null", "true"]);
        strace.status().is_ok_and(|status| status.success())
    })
}

/// The highest level of this machine, which with `CI` set must be the expected one.
pub(crate) fn granted() -> Level {
    static GRANTED: OnceLock<Level> = OnceLock::new();
    *GRANTED.get_or_init(|| {
        let dirs = Directories::new();
        let jail = Jail::build(&dirs.policy(Level::Full)).unwrap();
        let level = jail.enforcement().level;
        let expected = std::env::var("SANDBOX_LEVEL").unwrap_or_else(|_| "full".to_owned());
        assert!(
            !in_ci() || level.name() == expected,
            "this machine grants the level {level}, {expected} was expected: {:#?}",
            jail.enforcement()
        );
        level
    })
}

pub(crate) fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| !value.is_empty())
}

/// The newest version of a crate that an offline build can use.
pub(crate) fn version_in_registry(name: &str) -> Option<String> {
    let home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))?;
    let registries = fs::read_dir(home.join("registry/cache")).ok()?.flatten();
    let files =
        registries.flat_map(|directory| fs::read_dir(directory.path()).into_iter().flatten());
    let version = |file: fs::DirEntry| {
        let file = file.file_name().into_string().ok()?;
        let version = file.strip_prefix(name)?.strip_prefix('-')?.strip_suffix(".crate")?;
        version.starts_with(|c: char| c.is_ascii_digit()).then(|| version.to_owned())
    };
    files.flatten().filter_map(version).max()
}

/// Where a program lies, as the shell would find it.
fn program_file(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file())
}
