//! Whether a command failed for want of a network, told by what programs print then. A notice that is
//! wrong sends a model the wrong way, so text that only mentions such an error is left alone.

use sandbox::ExitStatus;

use super::Facts;

/// What the C library, Go and Node say of a name or an address, as the end of a longer message. What
/// stands before and behind it shows whether it is one.
const REASONS: [&str; 11] = [
    "Temporary failure in name resolution",
    "Name or service not known",
    "Network is unreachable",
    "network is unreachable",
    "Could not resolve host: ",
    "Couldn't resolve host name",
    "Temporary failure resolving '",
    "failed to lookup address information",
    "getaddrinfo EAI_AGAIN ",
    "getaddrinfo ENOTFOUND ",
    "connect ENETUNREACH ",
];

/// How lines begin with which programs report the same, and what else is in them.
const LINES: [(&str, &str); 34] = [
    ("curl: (6)", ""),
    ("curl: (7)", ""),
    ("curl: (28) Resolving timed out", ""),
    ("wget: unable to resolve host address", ""),
    ("wget: bad address", ""),
    ("Resolving ", "... failed: "),
    ("ssh: Could not resolve hostname", ""),
    ("fatal: unable to access '", "Could not resolve host"),
    ("fatal: unable to access '", "Failed to connect to"),
    ("fatal: unable to access '", "Couldn't connect to server"),
    ("fatal: unable to look up ", ""),
    ("ERROR: No matching distribution found for ", ""),
    ("ERROR: Could not find a version that satisfies ", "(from versions: none)"),
    ("WARNING: Retrying (Retry(", "NewConnectionError"),
    ("WARNING: Retrying (Retry(", "NameResolutionError"),
    ("CondaHTTPError: HTTP 000 CONNECTION FAILED", ""),
    ("npm error code ENOTFOUND", ""),
    ("npm error code EAI_AGAIN", ""),
    ("npm error code ENETUNREACH", ""),
    ("npm ERR! code ENOTFOUND", ""),
    ("npm ERR! code EAI_AGAIN", ""),
    ("npm ERR! code ENETUNREACH", ""),
    ("info There appears to be trouble with your network connection", ""),
    ("ERR_PNPM_META_FETCH_FAIL", ""),
    ("W: Failed to fetch http", "Could not resolve"),
    ("E: Failed to fetch http", "Could not resolve"),
    ("E: Failed to fetch http", "Could not connect"),
    ("WARNING: fetching http", "temporary error (try again later)"),
    ("Could not resolve '", "'"),
    ("Could not reach host ", "Check your network connection"),
    ("Caused by: java.net.UnknownHostException: ", ""),
    ("Exception in thread ", "java.net.UnknownHostException: "),
    ("Caused by: [6] ", "resolve host"),
    ("> Could not determine a usable local IP for this machine", ""),
];

/// What is in a line wherever it stands, because a program of its own would hardly say it.
const PARTS: [(&str, &str); 8] = [
    // Go names the source line that needs a module first.
    ("\": dial tcp: lookup ", ": "),
    ("\": dial tcp ", "connect: network is unreachable"),
    ("[ERROR]", ": Unknown host "),
    ("[ERROR]", "java.net.UnknownHostException: "),
    ("[ERROR] No plugin found for prefix '", " available from the repositories [local ("),
    // Of Poetry.
    ("| All attempts to connect to ", " failed."),
    ("spurious network error (", "tries remaining)"),
    ("error NU1301: Unable to load the service index for source http", ""),
];

/// Hosts that need no network.
const LOCAL: [&str; 5] = ["localhost", "127.0.0.1", "[::1]", " ::1", "to 0.0.0.0"];

/// The most lines to look at, from the end: what failed is said last.
const MOST_LINES: usize = 2000;

/// How a command ended.
#[derive(Clone, Copy)]
pub(in super::super) enum Ended {
    With(ExitStatus),
    TimeUp,
}

/// What curl exits with where it could not resolve a name, silent or not.
const NO_NAME: ExitStatus = ExitStatus::Exited(6);

/// Programs that are often told to say nothing of a failure.
const SILENT: [&str; 2] = ["curl", "wget"];

/// Whether a command needed the network. `sought` is whether anything looked for an address beyond it, where
/// the kernel shows that: then no text is trusted alone.
pub(in super::super) fn was_needed(
    ended: Ended,
    sought: Option<bool>,
    command: &str,
    output: &str,
) -> bool {
    let is_blank = || output.trim().is_empty();
    match (ended, sought) {
        (_, Some(false)) => false,
        (Ended::With(ExitStatus::Exited(0)), Some(true)) => {
            is_missed(command, output)
                || is_blank() && SILENT.iter().any(|program| command.contains(program))
        }
        (Ended::With(ExitStatus::Exited(0)), None) => {
            super::command::hides_failures(command) && is_missed(command, output)
        }
        (Ended::With(status), Some(true)) => {
            is_blank() || status == NO_NAME || is_missed(command, output)
        }
        (Ended::TimeUp, Some(true)) | (_, None) => is_missed(command, output),
    }
}

/// What is said at the level that refuses unix sockets, of a command that made one, or asked this machine.
pub(super) fn without_sockets(facts: &Facts<'_>) -> Option<String> {
    let Facts { command, output, reasons, .. } = *facts;
    let may_have_failed =
        facts.status != ExitStatus::Exited(0) || super::command::hides_failures(command);
    if reasons.has_unix_sockets() || !may_have_failed || super::command::only_shows_text(command) {
        return None;
    }
    if reasons.explain_network().is_none() {
        return refuses_sockets(output).then(|| {
            "commands make no unix sockets here (jail level kernel): agents, multiplexers and databases \
             that use one do not work"
                .to_owned()
        });
    }
    (refuses_sockets(output) || asks_this_machine(output)).then(|| {
        "commands make no sockets here (jail level kernel, network closed), not even for localhost: with \
         `network = \"allow\"` they make internet ones, ask if this is needed; unix ones need the level full"
            .to_owned()
    })
}

/// Whether output reports that nothing of this machine answers.
pub(in super::super) fn asks_this_machine(output: &str) -> bool {
    let is_report = |line: &str| {
        let line = line.trim();
        says_so(line) && LOCAL.iter().any(|host| line.contains(host))
    };
    output.lines().rev().take(MOST_LINES).any(is_report)
}

/// Whether the output of `command` reports that there is no network.
fn is_missed(command: &str, output: &str) -> bool {
    // An index that is known to have versions was reached.
    let index_answered = output.contains("(from versions: ")
        && !output.contains("(from versions: none)")
        || command.contains("--no-index");
    let is_report = |line: &str| {
        let line = line.trim();
        let is_local = LOCAL.iter().any(|host| line.contains(host));
        let is_answer = index_answered && line.contains("No matching distribution");
        says_so(line) && !is_local && !is_answer
    };
    (output.lines().rev().take(MOST_LINES).any(is_report) || refuses_sockets(output))
        && !super::command::only_shows_text(command)
}

fn says_so(line: &str) -> bool {
    let both = |(start, part): &(&str, &str)| line.starts_with(start) && line.contains(part);
    let parts = |(one, other): &(&str, &str)| line.contains(one) && line.contains(other);
    LINES.iter().any(both)
        || PARTS.iter().any(parts)
        || (!is_mention(line) && REASONS.iter().any(|reason| ends_with_reason(line, reason)))
}

/// Whether the reason stands in a line as the last part of an error does: behind what failed, and in
/// front of nothing but what it is about.
fn ends_with_reason(line: &str, reason: &str) -> bool {
    let Some((before, after)) = line.split_once(reason) else { return false };
    let follows = [": ", "] ", "(", "> ", "Error: "].iter().any(|end| before.ends_with(end));
    let names_a_host = reason.ends_with([' ', '\'']);
    let ends =
        after.is_empty() || after.starts_with(['.', ')', '>', '\'', '"', '\\', ':', ';', ',', ' ']);
    // apt puts it alone on a line of its own.
    (follows || before.is_empty() && names_a_host || before.ends_with("  "))
        && (names_a_host && !after.is_empty() || ends)
}

/// Whether a line is one of a program's source, of a document or of a search's hits.
fn is_mention(line: &str) -> bool {
    const STARTS: [&str; 10] = ["//", "#", "/*", "*", "- ", "\"", "'", "`", "assert", "|"];
    const ENDS: [&str; 6] = ["\",", "\");", "\";", "',", "');", "\"]"];
    // path:12: or path-12-
    let hit = line.split_once([':', '-']).is_some_and(|(path, rest)| {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        !path.contains(' ') && digits > 0 && rest[digits..].starts_with([':', '-'])
    });
    hit || STARTS.iter().any(|start| line.starts_with(start))
        || ENDS.iter().any(|end| line.ends_with(end))
        || ["= \"", "= '", "(\"", "== \""].iter().any(|code| line.contains(code))
            && !line.contains("NameResolutionError(\"")
}

/// Without a network namespace the jail refuses the socket itself.
fn refuses_sockets(output: &str) -> bool {
    // Of a tmux: error connecting to /tmp/tmux-0/default (Operation not permitted)
    const REFUSED: [&str; 3] =
        ["Operation not permitted", "Permission denied", "(Operation not permitted)"];
    let is_refused = |line: &str| REFUSED.iter().any(|text| line.ends_with(text));
    let lines = || output.lines().rev().take(MOST_LINES).map(str::trim);
    let names_socket = |line: &str| {
        ["socket: ", "socket(): ", "socket() failed: ", "error connecting to "].iter().any(|call| {
            line.find(call).is_some_and(|at| is_refused(&line[at..]) && !is_mention(line))
        })
    };
    // A traceback of Python names its module above the error.
    let in_python = || {
        lines().any(|line| line.starts_with("File ") && line.contains("/socket.py\", line "))
            && lines().any(|line| line.starts_with("PermissionError: [Errno 1") && is_refused(line))
    };
    lines().any(names_socket) || in_python()
}

#[cfg(test)]
mod tests;
