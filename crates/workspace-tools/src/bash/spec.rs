//! What bash says of itself.
#![expect(missing_docs, reason = "the description of a field is its documentation")]

use std::time::Duration;

use crate::field::{self, Field, Flag, NOTICE, Text, Whole, flag, text, whole};
use tool_provider::{Asks, Concurrency, RiskClass, Slips, ToolKind, ToolSpec};

/// A host's deadline beyond our longest timeout: SIGTERM's grace, killing, reaping, reporting.
pub(super) const AFTER_TIMEOUT: Duration = Duration::from_secs(15);

pub const COMMAND: Field<Text> =
    text("command", "What the shell runs; several lines and here-documents are fine.").required();
pub const TIMEOUT_MS: Field<Whole> = whole(
    "timeout_ms",
    1,
    "When to end it, in milliseconds: 120000 by default, at most 600000, unless the operator set others.",
);
pub const CWD: Field<Text> =
    text("cwd", "The directory to run in, inside the roots; the working directory by default.");
pub const STDIN: Field<Text> =
    text("stdin", "What it reads from standard input; nothing by default.");
pub const DESCRIPTION: Field<Text> =
    text("description", "What it does, in a few words, for the person who approves it.");

pub const EXIT_CODE: Field<Whole> =
    whole("exit_code", 0, "The command's exit code; 128 + n when signal n ended it.").required();
pub const SIGNAL: Field<Text> =
    text("signal", "The signal that ended the command, such as SIGKILL.");
pub const OUTPUT: Field<Text> = text(
    "output",
    "Standard output and standard error in the order of arrival, as a terminal would show them in the \
     end: without escape sequences, progress lines in their last state, invalid bytes as U+FFFD. Of long \
     output the head and the tail, around a line that counts what is left out.",
)
.required();
pub const FULL_OUTPUT_PATH: Field<Text> = text(
    "full_output_path",
    "Where output leaves something out: a file with all that the command printed (up to 64 MiB), as it \
     was printed. read_file and grep take it.",
);

// Of a command that was ended, in the details of the error and in the last partial result; and in the
// results of older versions.
pub const STDOUT_BYTES: Field<Whole> =
    whole("stdout_bytes", 0, "How many bytes went to standard output.");
pub const STDERR_BYTES: Field<Whole> =
    whole("stderr_bytes", 0, "How many bytes went to standard error.");
pub const TRUNCATED: Field<Flag> = flag("truncated", "Whether output leaves something out.");
pub const DURATION_MS: Field<Whole> =
    whole("duration_ms", 0, "How long the call took, in milliseconds.");
pub const PROCESSES_KILLED: Field<Whole> = whole(
    "processes_killed",
    0,
    "How many processes were still running when the call ended, and were killed.",
);

/// The longest timeout that an operator can allow.
pub const LONGEST_TIMEOUT: Duration = Duration::from_secs(60 * 60);

const SECONDS: &str = "give timeout_ms, in milliseconds: 60000 is a minute";

const BACKGROUND: Asks = Asks::Given(
    false,
    "nothing that a command starts outlives its call; session_start, where you have it, starts what runs on",
);

pub(super) const SLIPS: Slips = Slips {
    names: &[
        ("command", &["cmd", "script", "code", "commandline"]),
        ("cwd", &["dir", "directory", "folder", "workdir", "workingdirectory"]),
        ("stdin", &["input"]),
        ("description", &["explanation"]),
    ],
    flags: &[
        ("runinbackground", BACKGROUND),
        ("background", BACKGROUND),
        ("isbackground", BACKGROUND),
    ],
    remedies: &[
        ("timeout", SECONDS),
        ("timeoutseconds", SECONDS),
        ("timeoutsecs", SECONDS),
        ("env", "set variables in the command: NAME=value program"),
        ("environment", "set variables in the command: NAME=value program"),
    ],
    ..Slips::NONE
};

pub(crate) fn spec() -> ToolSpec {
    ToolSpec {
        name: super::NAME,
        kind: ToolKind::Resource,
        risk: RiskClass::High,
        description: DESCRIPTION_OF_BASH.to_owned(),
        input: field::schema(&[&COMMAND, &TIMEOUT_MS, &CWD, &STDIN, &DESCRIPTION]),
        output: field::result(
            &[super::NAME],
            &[&EXIT_CODE, &SIGNAL, &OUTPUT, &FULL_OUTPUT_PATH, &NOTICE],
        ),
        slips: SLIPS,
        streaming: true,
        concurrency: Concurrency::Exclusive,
        default_timeout: LONGEST_TIMEOUT + AFTER_TIMEOUT,
        idempotent: false,
    }
}

/// A host reads it once, before it configures: it holds under every configuration.
const DESCRIPTION_OF_BASH: &str = "Runs a shell command (bash where there is one) and returns exit_code and \
output: stdout and stderr, as a terminal would show them. A non-zero exit code is a result, not an error. \
To read, edit or search files, the other tools are faster and safer.

Each call is a new shell: chain with && or give cwd. Long output is cut in the middle for you, and all of \
it is in full_output_path for read_file and grep, so do not pipe into tail or head, which hide the exit \
code. There is no terminal, no editor and nobody to answer prompts: use options such as -y and -m. \
Whatever is still running when the shell ends is ended: nothing goes on in the background. On the machine \
only configured directories can be written; what goes to HOME or /tmp may be private: the file tools do \
not see it, and what is in /tmp goes with the provider. The network may be closed. notice says where \
that got in the way.

Example: {\"command\": \"cargo test --workspace\", \"timeout_ms\": 300000}";
