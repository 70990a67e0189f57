//! What a story is, and how it becomes one trial for each level.

use std::fs;
use std::path::PathBuf;

use libtest_mimic::{Completion, Trial};
use sandbox::{Jail, Level};

use crate::arena::Place;

/// A story, told at one level at a time. It fails by a panic.
#[derive(Clone, Copy)]
pub(crate) struct Story {
    pub(crate) name: &'static str,
    pub(crate) tell: Tell,
    /// The programs that it cannot do without, and `crate NAME` in the local registry.
    pub(crate) needs: &'static [&'static str],
}

/// How a story is told.
#[derive(Clone, Copy)]
pub(crate) enum Tell {
    /// At the level that it is given.
    At(fn(Level)),
    /// At the levels that it chooses.
    Once(fn()),
}

/// Lists stories: `stories!["subject": first, second needs "node" "npm"]`.
macro_rules! stories {
    ($subject:literal: $($name:ident $(needs $($program:literal)+)?),+ $(,)?) => {
        vec![$($crate::story::Story {
            name: concat!($subject, "::", stringify!($name)),
            tell: $crate::story::Tell::At($name),
            needs: &[$($($program),+)?],
        }),+]
    };
}
pub(crate) use stories;

/// Lists stories that choose their levels.
macro_rules! tests {
    ($subject:literal: $($name:ident),+ $(,)?) => {
        vec![$($crate::story::Story {
            name: concat!($subject, "::", stringify!($name)),
            tell: $crate::story::Tell::Once($name),
            needs: &[],
        }),+]
    };
}
pub(crate) use tests;

/// The trials of `stories`, at both levels where they leave that open.
pub(crate) fn trials(stories: &[Story]) -> Vec<Trial> {
    let mut trials = Vec::new();
    for &Story { name, tell, needs } in stories {
        match tell {
            Tell::At(tell) => trials.extend([Level::Full, Level::Kernel].map(|level| {
                let name = format!("{name}::{level}");
                trial(name, move || lack(needs, Some(level)), move || tell(level))
            })),
            Tell::Once(tell) => {
                trials.push(trial(name.to_owned(), move || lack(needs, None), tell));
            }
        }
    }
    trials
}

fn trial(
    name: String,
    lack: impl Fn() -> Option<Lack> + Send + 'static,
    tell: impl Fn() + Send + 'static,
) -> Trial {
    Trial::ignorable_test(name.clone(), move || {
        let what = match lack() {
            None => {
                tell();
                return Ok(Completion::Completed);
            }
            // Where one was expected, its absence was a failure already.
            Some(Lack::Level) => "the machine grants no namespaces".to_owned(),
            Some(Lack::Program(program)) => {
                assert!(!in_ci(), "{name} needs {program}");
                format!("needs {program}")
            }
        };
        skipped(&name, &what);
        Ok(Completion::ignored_with(what))
    })
}

#[expect(clippy::print_stderr, reason = "a story that is not told must not look like one that was")]
pub(crate) fn skipped(name: &str, lack: &str) {
    eprintln!("SKIPPED {name}: {lack}");
}

/// What the machine lacks for a story.
enum Lack {
    Level,
    Program(&'static str),
}

fn lack(needs: &[&'static str], level: Option<Level>) -> Option<Lack> {
    if level == Some(Level::Full) && granted() != Level::Full {
        return Some(Lack::Level);
    }
    let there = |need: &&&str| match need.strip_prefix("crate ") {
        Some(name) => version_in_registry(name).is_some(),
        None => program_file(need).is_some(),
    };
    needs.iter().find(|need| !there(need)).map(|need| Lack::Program(need))
}

/// The highest level of this machine, which with `CI` set must be the expected one.
pub(crate) fn granted() -> Level {
    static GRANTED: std::sync::OnceLock<Level> = std::sync::OnceLock::new();
    *GRANTED.get_or_init(|| {
        let place = Place::new();
        let jail = Jail::build(&place.policy(Level::Full)).unwrap();
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
    let files = registries.flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten());
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
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}
