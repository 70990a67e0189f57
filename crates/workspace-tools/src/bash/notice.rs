//! What a person or a model should know beside a command's output: what the jail had to do with a
//! failure, which limit was hit, what was left out.

mod advice;
pub(super) mod command;
mod database;
mod devices;
mod foreground;
mod java;
pub(super) mod network;
mod operators;
mod program;
mod repository;
mod sockets;
mod system_packages;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use sandbox::{
    Access, ExitStatus, Explanation, Jail, Level, LimitHit, Limits, Policy, ProgramName, Report,
    Subject, Waiting, WaitsOn,
};

use super::BashSettings;
use crate::process::{self, FullOutput, SPOOL_FILE_BYTES, outside};
pub(super) use advice::Outside;
use tool_provider::Secrets;
use workspace_fs::lexically_clean;
use workspace_fs::text::name;

/// Where a jail's reasons come from: the jail itself, or a test.
pub(super) trait Reasons {
    /// Why a command may not do this, where that is the jail's doing.
    fn explain(&self, access: Access, path: &Path) -> Option<Explanation>;
    /// What the machine has at a path.
    fn outside(&self, path: &Path) -> Outside;
    /// The target of what is at a path, if that is a link.
    fn link(&self, path: &Path) -> Option<PathBuf>;
    /// Whether the machine has a program at a path.
    fn is_program(&self, path: &Path) -> bool;
    /// Whether a git directory lies at a path that could be granted.
    fn is_git_directory(&self, path: &Path) -> bool;
    /// The device that a path lies on, outside the jail.
    fn device(&self, path: &Path) -> Option<u64>;
    /// Why a command has no network, where that is the jail's doing.
    fn explain_network(&self) -> Option<Explanation>;
    /// Whether commands may make unix sockets.
    fn has_unix_sockets(&self) -> bool;
}

impl Reasons for sandbox::Jail {
    fn explain(&self, access: Access, path: &Path) -> Option<Explanation> {
        self.explain(Subject::Command, access, path)
    }

    fn outside(&self, path: &Path) -> Outside {
        advice::at(path)
    }

    fn link(&self, path: &Path) -> Option<PathBuf> {
        outside::link(path)
    }

    fn is_program(&self, path: &Path) -> bool {
        outside::check_program(path).is_ok()
    }

    fn is_git_directory(&self, path: &Path) -> bool {
        advice::is_git_directory(path)
    }

    fn device(&self, path: &Path) -> Option<u64> {
        outside::device(path)
    }

    fn explain_network(&self) -> Option<Explanation> {
        self.explain_network()
    }

    fn has_unix_sockets(&self) -> bool {
        self.enforcement().level != Level::Kernel
    }
}

/// What a notice is made from.
pub(super) struct Facts<'a> {
    pub(super) status: ExitStatus,
    pub(super) limit: Option<LimitHit>,
    /// The most memory that one of the command's processes used.
    pub(super) max_rss_bytes: u64,
    pub(super) command: &'a str,
    pub(super) output: &'a str,
    pub(super) cwd: &'a Path,
    /// PATH of the command.
    pub(super) search_path: Option<&'a OsStr>,
    pub(super) reasons: &'a dyn Reasons,
    pub(super) limits: Limits,
    /// What commands may read because the operator said so, and may not write.
    pub(super) read_only_roots: &'a [PathBuf],
    /// What is a file system of its own for commands, as they name it.
    pub(super) mounts: &'a [PathBuf],
    /// The operator's home, where commands have another one.
    pub(super) home: Option<&'a Path>,
    /// A git directory outside the roots that a `.git` file points to.
    pub(super) git_directory: Option<&'a Path>,
    /// Whether anything in the command's network looked for an address beyond it, where that is known.
    pub(super) sought_network: Option<bool>,
}

/// The texts with which programs and the C library say that something is not allowed, and what
/// they say about it. Go and Node begin with a small letter.
const REFUSALS: [(&str, &[Access]); 8] = [
    ("Permission denied", ANY),
    ("permission denied", ANY),
    ("Read-only file system", &[Access::Write]),
    ("read-only file system", &[Access::Write]),
    ("Operation not permitted", &[Access::Write]),
    // With namespaces, what is not granted is not there.
    ("No such file or directory", &[Access::Read]),
    ("no such file or directory", &[Access::Read]),
    // Of git and pip.
    ("does not exist", &[Access::Read]),
];
const ANY: &[Access] = &[Access::Read, Access::Execute, Access::Write];

/// At most this many refused paths are explained: the first ones explain the rest.
const MOST_PATHS: usize = 2;

/// At most this many texts are looked at as paths, and this much of a command for where it redirects
/// output to. Both come from the command's author, and nothing interrupts this check.
const MOST_CANDIDATES: usize = 200;
const MOST_COMMAND: usize = 16 * 1024;

/// At most this many sentences: the first ones explain the rest.
const MOST_NOTICES: usize = 2;

/// What the jail or a limit had to do with how a command went: one sentence each, and no more than
/// [`MOST_NOTICES`].
pub(super) fn of_end(facts: &Facts<'_>) -> Vec<String> {
    // A pipe, or what came after, hides that a command missed the network or would have changed what is the
    // operator's. All else shows in how the shell ended.
    let sockets = network::without_sockets(facts);
    let operators = operators::notice(facts);
    let known = sockets.is_some() || operators.is_some();
    let mut notices: Vec<String> = sockets.or_else(|| network(facts)).into_iter().collect();
    if facts.status != ExitStatus::Exited(0) {
        let refusals = if known { Refusals::Known } else { Refusals::Unknown };
        notices.extend(of_failure(facts, refusals));
    }
    notices.extend(operators);
    notices.truncate(MOST_NOTICES);
    notices
}

/// The same of a session whose command ended by itself.
pub(crate) fn of_session(
    settings: &BashSettings,
    jail: &Jail,
    command: &str,
    cwd: &Path,
    report: &Report,
    output: &str,
) -> Vec<String> {
    of_end(&Facts {
        status: report.status,
        limit: report.limit,
        max_rss_bytes: report.max_rss_bytes,
        command,
        output,
        cwd,
        search_path: settings.environment.search_path(),
        reasons: jail,
        limits: settings.policy.limits,
        read_only_roots: &settings.policy.read_only_roots,
        mounts: &mounts(jail, &settings.policy),
        home: outside::home().as_deref(),
        git_directory: None,
        sought_network: report.sought_network,
    })
}

/// What is a file system of its own for commands, at the level where any is.
pub(super) fn mounts(jail: &Jail, policy: &Policy) -> Vec<PathBuf> {
    if jail.enforcement().level != Level::Full {
        return Vec::new();
    }
    let private = jail.private();
    let home = private.home.as_ref().map(|home| &home.path);
    let named = policy.roots.iter().chain(&policy.command_write);
    named.chain(home).chain([&private.tmp]).cloned().collect()
}

/// Whether it is known already what was refused.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Refusals {
    Known,
    Unknown,
}

fn of_failure(facts: &Facts<'_>, refusals: Refusals) -> Vec<String> {
    let mut notices = Vec::new();
    notices.extend(limits(facts));
    let is_killed = facts.status.shell_code() == 128 + rustix::process::Signal::KILL.as_raw();
    if is_killed && facts.limit != Some(LimitHit::Tmp) {
        notices.push(
            "SIGKILL did not come from this provider: the command sent it, or the system did, as it \
             does when it runs out of memory"
                .to_owned(),
        );
    }
    notices.extend(devices::notice(facts));
    notices.extend(java::notice(facts));
    notices.extend(program::unreachable(facts));
    match system_packages::notice(facts) {
        Some(notice) => notices.push(notice),
        None if refusals == Refusals::Unknown => notices.extend(paths(facts)),
        None => {}
    }
    notices.extend(repository::notice(facts));
    notices
}

fn network(facts: &Facts<'_>) -> Option<String> {
    let Facts { command, output, .. } = *facts;
    of_network(
        facts.reasons,
        network::Ended::With(facts.status),
        facts.sought_network,
        command,
        output,
    )
}

/// That a command missed the network, where the policy has closed it.
pub(super) fn of_network(
    reasons: &dyn Reasons,
    ended: network::Ended,
    sought: Option<bool>,
    command: &str,
    output: &str,
) -> Option<String> {
    reasons.explain_network()?;
    network::was_needed(ended, sought, command, output).then(|| {
        "the command seems to have needed the network, which the operator has closed: no other command \
         opens it; ask for `network = \"allow\"` if this is needed"
            .to_owned()
    })
}

/// What happened to output that did not fit.
pub(super) fn of_full_output(full: Option<&FullOutput>) -> Option<String> {
    match full? {
        FullOutput::Complete(_) => None,
        FullOutput::Beginning { bytes, .. } => Some(format!(
            "full_output_path holds only the first {bytes} bytes: the most that is kept of one \
             call is {} MiB",
            SPOOL_FILE_BYTES >> 20
        )),
        FullOutput::Failed(error) => {
            Some(format!("the whole output could not be kept in a file: {error}"))
        }
    }
}

/// What a command whose time was up had been waiting for: nobody will ever answer it.
pub(super) fn of_waiting(waiting: Waiting, secrets: &Secrets) -> String {
    let program = process::program::shown(waiting.program(), secrets);
    let who = format!("{program} (pid {} in the jail)", waiting.pid);
    match waiting.on {
        WaitsOn::Terminal => format!(
            "{who} was waiting for somebody to type; nobody can: give the answer in stdin or use the \
             program's non-interactive options"
        ),
        WaitsOn::NamedPipe => format!("{who} was waiting for the other end of a named pipe"),
        WaitsOn::Input => format!("{who} was waiting for input"),
    }
}

/// Processes that outlived their shell, and the names of a few.
pub(super) fn of_leftovers(
    ended: u64,
    programs: impl Iterator<Item = ProgramName>,
    command: &str,
    secrets: &Secrets,
) -> Option<String> {
    Some(format!(
        "{} ended, as nothing outlives its call: start, use and stop it in one command, or keep it \
         with session_start {}",
        leftovers(ended, programs, secrets)?,
        foreground::session(command)
    ))
}

/// The same of a session whose command has ended.
pub(crate) fn of_leftovers_of_session(
    ended: u64,
    programs: impl Iterator<Item = ProgramName>,
    secrets: &Secrets,
) -> Option<String> {
    let left = leftovers(ended, programs, secrets)?;
    Some(format!(
        "{left} ended, as a session ends with its command: start it again with the server in the \
         foreground, without &"
    ))
}

/// The beginning of a sentence that ends with what happened to them.
fn leftovers(
    ended: u64,
    programs: impl Iterator<Item = ProgramName>,
    secrets: &Secrets,
) -> Option<String> {
    let names = programs.map(|program| process::program::shown(program, secrets));
    let names = names.collect::<Vec<_>>().join(", ");
    match (ended, names.is_empty()) {
        (0, _) => None,
        (1, true) => Some("1 process that the command left running was".to_owned()),
        (1, false) => Some(format!("{names}, which the command left running, was")),
        (many, true) => Some(format!("{many} processes that the command left running were")),
        (many, false) => {
            Some(format!("{many} processes that the command left running ({names}) were"))
        }
    }
}

/// That a command was ended for what lies in the jail's temporary directory.
pub(crate) const TMP_IS_FULL: &str = "the jail's $TMPDIR came to hold three quarters of what had been free on \
     its disk, so the command that started last was ended: remove there what is not needed, or write to \
     the roots";

fn limits(facts: &Facts<'_>) -> Option<String> {
    if facts.limit == Some(LimitHit::Tmp) {
        return Some(TMP_IS_FULL.to_owned());
    }
    let limits = facts.limits;
    let shows_text = command::only_shows_text(facts.command);
    let says = |texts: &[&str]| !shows_text && texts.iter().any(|text| facts.output.contains(text));
    if let Some(most) = limits.file_size_bytes
        && (facts.limit == Some(LimitHit::FileSize) || says(&["File too large"]))
    {
        return Some(format!("limits.file_size_bytes ({most}) was hit"));
    }
    if let Some(most) = limits.memory_bytes
        && (says(&["Cannot allocate memory", "out of memory", "Out of memory", "MemoryError"])
            // The limit counts addresses, of which a process never has fewer than it uses.
            || facts.max_rss_bytes > most - most / 10)
    {
        return Some(format!("limits.memory_bytes ({most} for each process) seems to be hit"));
    }
    let no_process = says(&["Cannot fork", "can't start new thread"])
        || (says(&["Resource temporarily unavailable"])
            && (limits.processes.is_some() || says(&["fork", "thread"])));
    if no_process {
        let most = limits.processes.map_or_else(String::new, |most| format!(" ({most})"));
        return Some(format!("the limit of processes, limits.processes{most}, seems to be hit"));
    }
    if let Some(most) = limits.open_files
        && says(&["Too many open files"])
    {
        return Some(format!("limits.open_files ({most} for each process) seems to be hit"));
    }
    None
}

fn paths(facts: &Facts<'_>) -> Vec<String> {
    let mut notices: Vec<String> = Vec::new();
    let mut left = MOST_CANDIDATES;
    let speakers = command::Speakers::of(facts.command);
    for line in facts.output.lines().filter(|line| speakers.say(line)) {
        for (refusal, accesses) in REFUSALS {
            let Some((before, after)) = line.split_once(refusal) else { continue };
            let notice = candidates(before, after).take(left).find_map(|candidate| {
                left -= 1;
                let path = lexically_clean(&facts.cwd.join(candidate));
                let accesses =
                    if is_write(facts, line, candidate) { &[Access::Write] } else { accesses };
                accesses.iter().find_map(|&access| refused(facts, access, accesses, &path))
            });
            notices.extend(notice.filter(|notice| !notices.contains(notice)));
            break;
        }
        if notices.len() == MOST_PATHS || left == 0 {
            break;
        }
        if notices.is_empty() {
            notices.extend(database::notice(facts, line, &mut left));
        }
        if notices.is_empty() {
            notices.extend(sockets::notice(facts, line, &mut left));
        }
    }
    notices
}

/// Whether the program mentions a path that it was to write: by its words, or because the command
/// redirects output there.
fn is_write(facts: &Facts<'_>, line: &str, candidate: &str) -> bool {
    const WORDS: [&str; 14] = [
        "cannot touch",
        "cannot create",
        "cannot remove",
        "cannot move",
        "cannot overwrite",
        "cannot truncate",
        "cannot make",
        "failed to create",
        "failed to write",
        "error writing",
        "for writing",
        "changing permissions",
        "changing ownership",
        "tee: ",
    ];
    let redirects = || {
        let command = facts.command.as_bytes();
        let command = &command[..command.len().min(MOST_COMMAND)];
        command.split(|byte| *byte == b'>').skip(1).any(|after| {
            let is_before = |byte: &u8| b"|\"' \t".contains(byte);
            let target = after.iter().position(|byte| !is_before(byte));
            target.is_some_and(|at| after[at..].starts_with(candidate.as_bytes()))
        })
    };
    WORDS.iter().any(|word| line.contains(word)) || redirects()
}

/// Why the jail refuses the access, and what the operator can do about it. `None` where the refusal is
/// not the jail's, or a grant is nothing to advise.
/// `tried` is what it may have been.
fn refused(facts: &Facts<'_>, access: Access, tried: &[Access], path: &Path) -> Option<String> {
    let mut reason = facts.reasons.explain(access, path)?;
    let shown = name::of(path);
    if access != Access::Write {
        let is_grantable = facts.reasons.outside(path) == Outside::Grantable;
        return is_grantable.then(|| ask(&format!("{shown}: {reason}")));
    }
    let read_only = facts.read_only_roots.iter().find(|root| path.starts_with(root));
    if let Some(root) = read_only {
        return Some(format!(
            "{shown} cannot be written: the operator made {} read-only (read_only_roots); \
             write elsewhere, or have the operator move that directory to roots",
            name::of(root)
        ));
    }
    match advice::writable(|path| facts.reasons.outside(path), path) {
        Some(grantable) => {
            reason.value = grantable.to_owned();
            Some(ask(&format!("{shown}: {reason}")))
        }
        None if tried == [Access::Write] || would_be_made(facts, path) => {
            let temporary = ["/tmp", "/var/tmp"].iter().any(|tmp| path.starts_with(tmp));
            let or = if temporary { ", or to $TMPDIR" } else { "" };
            Some(format!("{shown} lies outside what commands may write; write inside a root{or}"))
        }
        None => None,
    }
}

/// Whether all that can have been refused is to make the path: it is not there, and its directory is.
fn would_be_made(facts: &Facts<'_>, path: &Path) -> bool {
    let is_there = |path: &Path| facts.reasons.outside(path) != Outside::Missing;
    // What a program calls a path may be one of a URL.
    let is_below = |directory: &Path| directory.parent().is_some() && is_there(directory);
    !is_there(path) && path.parent().is_some_and(is_below)
}

/// A model cannot change a setting.
fn ask(reason: &str) -> String {
    format!("{reason}; the operator sets it: ask if this is needed")
}

/// What may be the path that an error is about: `cat: PATH: text`, `open 'PATH': text`,
/// `text: 'PATH'`.
fn candidates<'a>(before: &'a str, after: &'a str) -> impl Iterator<Item = &'a str> {
    const QUOTES: &[char] = &['\'', '"', '`', '‘', '’', '“', '”'];
    let quoted = |text: &'a str| {
        let from = text.find(QUOTES)?;
        let rest = text[from..].trim_start_matches(QUOTES);
        rest.split(QUOTES).next()
    };
    let last = before.trim_end().trim_end_matches(':');
    let last = last.rsplit(": ").next().unwrap_or(last);
    let words = before
        .split(|c: char| c.is_whitespace() || QUOTES.contains(&c) || ":,;()[]<>=".contains(c))
        .filter(|word| word.starts_with('/'));
    [quoted(last), Some(last.trim()), quoted(after)]
        .into_iter()
        .flatten()
        .chain(words)
        .filter(|text| !text.is_empty() && text.len() < 4096)
}

#[cfg(test)]
mod tests;
