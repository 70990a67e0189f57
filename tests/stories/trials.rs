//! How a function becomes a trial, and what it may need that not every machine has.
//!
//! A trial whose need is not met is reported as ignored, with the reason; where `CI` is set it fails
//! instead, unless another pass of CI meets that need.

use std::fs::File;
use std::future::Future;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use libtest_mimic::{Completion, Failed};
use rustix::process::geteuid;

pub(crate) use libtest_mimic::Trial;

use crate::harness::PROGRAM;

/// Lists the trials of a module: `trials![first, second needs [Need::Root]]`.
macro_rules! trials {
    ($($name:ident $(needs [$($need:expr),+])?),+ $(,)?) => {
        vec![$($crate::trials::trial(
            concat!(module_path!(), "::", stringify!($name)),
            &[$($($need),+)?],
            $name,
        )),+]
    };
}

/// What a story cannot do without.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Need {
    /// A program of the search path.
    Program(&'static str),
    /// A program of the search path that CI need not have either.
    Rare(&'static str),
    /// What a program of the search path gets from its registry, as a command line shows.
    Registry(&'static str),
    /// A program that cargo puts beside the provider, or below it. Cargo builds it with all tests, but
    /// not with one test program alone.
    Built(&'static str),
    /// A user who is root.
    Root,
    /// A user who is not root.
    OrdinaryUser,
    /// That processes of one user may look at one another.
    Tracing,
    /// Root's capability to trace any process.
    TracingOfAnyone,
    /// Extended attributes and access lists in the temporary directory.
    Attributes,
    /// A mount namespace, in which the story runs as root in a process of its own.
    MountNamespace,
    /// A jail of the level full.
    FullJail,
    /// A provider that is built with the feature of that name.
    Telemetry,
    /// Time: such a story runs with `--ignored` or `--include-ignored` only.
    Time,
}

/// Why a story cannot be run here.
enum Lack {
    /// The machine has to have it where `CI` is set.
    Machine(String),
    /// Another pass of CI has it.
    Pass(String),
}

/// A function that can be run: one that panics when it fails, or an async one. `R` distinguishes them.
pub(crate) trait Body<R>: Copy + Send + 'static {
    fn run(self);
}

/// Marks a plain function.
pub(crate) struct Plain;

impl<F: FnOnce() + Copy + Send + 'static> Body<Plain> for F {
    fn run(self) {
        self();
    }
}

impl<F, R> Body<(R,)> for F
where
    F: FnOnce() -> R + Copy + Send + 'static,
    R: Future<Output = ()>,
{
    fn run(self) {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        runtime.unwrap().block_on(self());
    }
}

/// A trial named after its path in this program, without the program.
pub(crate) fn trial<R>(path: &str, needs: &'static [Need], body: impl Body<R>) -> Trial {
    let name = path.split_once("::").map_or(path, |(_, name)| name).to_owned();
    let own = name.clone();
    let run = move || {
        if let Some(lack) = needs.iter().find_map(|need| need.lack()) {
            return match lack {
                Lack::Machine(lack) if in_ci() => Err(format!("CI must have it: {lack}").into()),
                Lack::Machine(lack) | Lack::Pass(lack) => Ok(Completion::ignored_with(lack)),
            };
        }
        if needs.contains(&Need::MountNamespace) && !is_apart() {
            in_namespace(&own)?;
        } else {
            attempt(&own, body);
        }
        Ok(Completion::Completed)
    };
    Trial::ignorable_test(name, run).with_ignored_flag(needs.contains(&Need::Time))
}

/// Runs a story, and where `FLAKY_TESTS` names a file once more if it fails. One that passes then is
/// written there: a race that one run in hundreds meets is to be seen, and to keep no other work waiting.
fn attempt<R>(name: &str, body: impl Body<R>) {
    let Some(flaky) = std::env::var_os("FLAKY_TESTS") else { return body.run() };
    if catch_unwind(AssertUnwindSafe(|| body.run())).is_ok() {
        return;
    }
    body.run();
    let mut flaky = File::options().append(true).open(flaky).unwrap();
    writeln!(flaky, "{name}").unwrap();
}

/// Set in a process that runs a single story in a mount namespace.
const APART: &str = "STORY_APART";

fn is_apart() -> bool {
    std::env::var_os(APART).is_some()
}

/// Runs a story in a process of its own, as root of a mount namespace.
fn in_namespace(fixture: &str) -> Result<(), Failed> {
    let mut command = Command::new("unshare");
    command.arg("-rm").arg(std::env::current_exe().unwrap());
    command.args(["--exact", fixture, "--include-ignored", "--test-threads=1"]).env(APART, "1");
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    match output.status.success() && text.contains("1 passed") {
        true => Ok(()),
        false => Err(text.into()),
    }
}

pub(crate) fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| !value.is_empty())
}

/// Whether this is the pass of CI in which namespaces are refused.
pub(crate) fn namespaces_are_refused() -> bool {
    std::env::var_os("SANDBOX_LEVEL").is_some_and(|level| level == "kernel")
}

impl Need {
    fn lack(self) -> Option<Lack> {
        let root = geteuid().is_root();
        let machine = |has: bool, lack: &str| (!has).then(|| Lack::Machine(lack.to_owned()));
        let pass = |has: bool, lack: &str| (!has).then(|| Lack::Pass(lack.to_owned()));
        match self {
            Self::Program(name) => machine(is_installed(name), &format!("needs {name}")),
            Self::Rare(name) => pass(is_installed(name), &format!("needs {name}")),
            Self::Registry(probe) => {
                machine(succeeds(probe), &format!("needs what `{probe}` gets"))
            }
            Self::Built(path) => machine(
                built(path).exists(),
                &format!("needs {path}: cargo build --workspace --all-targets"),
            ),
            Self::Root => pass(root, "needs root"),
            Self::OrdinaryUser => pass(!root, "needs a user who is not root"),
            Self::Tracing => machine(tracing_is_granted(), "needs tracing, which Yama forbids"),
            Self::TracingOfAnyone if !root => pass(false, "needs root"),
            Self::TracingOfAnyone => machine(traces_anyone(), "needs CAP_SYS_PTRACE"),
            Self::Attributes => {
                machine(has_attributes(), "needs extended attributes and access lists")
            }
            Self::MountNamespace if is_apart() => None,
            Self::MountNamespace if namespaces_are_refused() => {
                pass(false, "needs a mount namespace")
            }
            Self::MountNamespace => machine(mounts_are_granted(), "needs a mount namespace"),
            Self::FullJail if namespaces_are_refused() => pass(false, "needs namespaces"),
            Self::FullJail => machine(mounts_are_granted(), "needs namespaces"),
            Self::Telemetry => pass(cfg!(feature = "telemetry"), "needs the feature telemetry"),
            Self::Time => None,
        }
    }
}

/// A program that cargo puts beside the provider.
pub(crate) fn built(path: &str) -> PathBuf {
    Path::new(PROGRAM).with_file_name(path)
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// Whether a command line does, in an empty directory.
fn succeeds(line: &str) -> bool {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(directory.path()).stdin(Stdio::null());
    command.output().is_ok_and(|output| output.status.success())
}

fn tracing_is_granted() -> bool {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    scope.trim().parse().map_or(true, |scope: u32| scope <= 1)
}

fn traces_anyone() -> bool {
    const SYS_PTRACE: u64 = 1 << 19;
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
    u64::from_str_radix(effective.trim(), 16).unwrap() & SYS_PTRACE != 0
}

fn has_attributes() -> bool {
    let file = tempfile::NamedTempFile::new().unwrap();
    crate::writing::ATTRIBUTES.iter().all(|(name, value)| {
        rustix::fs::setxattr(file.path(), *name, value, rustix::fs::XattrFlags::empty()).is_ok()
    })
}

fn mounts_are_granted() -> bool {
    static GRANTED: OnceLock<bool> = OnceLock::new();
    *GRANTED.get_or_init(|| {
        let mut probe = Command::new("unshare");
        probe.args(["-rm", "mount", "-t", "tmpfs", "tmpfs", "/tmp"]);
        probe.output().is_ok_and(|output| output.status.success())
    })
}

pub(crate) fn trials() -> Vec<Trial> {
    trials![no_story_is_left_out]
}

/// This program has a `main` of its own, so that the compiler drops whatever bears `#[test]`.
fn no_story_is_left_out() {
    let mut directories = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stories")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let is_marked =
                |line: &str| line.starts_with("#[test]") || line.starts_with("#[tokio::test");
            assert!(
                !text.lines().any(is_marked),
                "{}: list it in trials![] instead of #[test]",
                path.display()
            );
        }
    }
}
