//! What bash says of itself.
#![expect(missing_docs, reason = "the description of a field is its documentation")]

use std::time::Duration;

use sandbox::Mode;

use super::BashSettings;
use crate::field::{Declared, Field, Flag, NOTICE, Text, Whole, flag, text, whole};
use tool_provider::schema::Schema;
use tool_provider::{Concurrency, RiskClass, ToolKind, ToolSpec};

/// A host's deadline beyond our longest timeout: SIGTERM's grace, killing, reaping, reporting.
const AFTER_TIMEOUT: Duration = Duration::from_secs(15);

pub const COMMAND: Field<Text> =
    text("command", "What the shell runs; several lines and here-documents are fine.").required();
pub const TIMEOUT_MS: Field<Whole> = whole("timeout_ms", 1, "");
pub const CWD: Field<Text> = text(
    "cwd",
    "The directory to run in, inside the configured directories; relative to the working directory, and \
     as any path it may be quoted as results quote it. Default: the working directory.",
);
pub const STDIN: Field<Text> =
    text("stdin", "Text that the command reads from its standard input; nothing by default.");
pub const DESCRIPTION: Field<Text> =
    text("description", "What the command does, in a few words, for the person who approves it.");

pub const EXIT_CODE: Field<Whole> =
    whole("exit_code", 0, "The command's exit code; 128 + n when signal n ended it.").required();
pub const SIGNAL: Field<Text> =
    text("signal", "The signal that ended the command, such as SIGKILL.");
pub const OUTPUT: Field<Text> = text("output", "").required();
pub const STDOUT_BYTES: Field<Whole> =
    whole("stdout_bytes", 0, "How much went to standard output.").required();
pub const STDERR_BYTES: Field<Whole> =
    whole("stderr_bytes", 0, "How much went to standard error.").required();
pub const TRUNCATED: Field<Flag> =
    flag("truncated", "Whether output leaves something out.").required();
pub const FULL_OUTPUT_PATH: Field<Text> = text(
    "full_output_path",
    "A file with all the output (up to 64 MiB), when output leaves something out; read_file can \
     read it.",
);
pub const DURATION_MS: Field<Whole> =
    whole("duration_ms", 0, "How long everything took.").required();
pub const PROCESSES_KILLED: Field<Whole> = whole(
    "processes_killed",
    0,
    "How many processes were still running when the call ended, and were killed.",
)
.required();

pub(super) fn spec(settings: &BashSettings) -> ToolSpec {
    ToolSpec {
        name: super::NAME,
        kind: ToolKind::Resource,
        risk: RiskClass::High,
        description: description(settings),
        input: input(settings),
        output: output(settings),
        streaming: true,
        concurrency: Concurrency::Exclusive,
        default_timeout: settings.max_timeout + AFTER_TIMEOUT,
        idempotent: false,
    }
}

fn description(settings: &BashSettings) -> String {
    format!(
        "Runs a command in a shell (bash) and returns its exit code and its output. Use it for \
         builds, tests, git and programs; to read or change a file use read_file, edit_file and \
         write_file, to find and search files glob and grep, which are faster and safer. Each call is a new shell: variables and cd do \
         not carry over, so chain with && or give cwd. There is no terminal and nobody to answer \
         questions; stdin is empty unless given. Everything that a command starts is ended when \
         its shell ends, so nothing can be left running in the background. {} The \
         network may be closed; a notice says when the jail was in the way. A non-zero exit code is a result, not an error. Time: {} ms by default, at most {} \
         ms. Of long output the head and the tail are returned (together {} bytes), and \
         full_output_path names a file with all of it, for read_file. \
         Example: {{\"command\": \"cargo test --workspace 2>&1 | tail -40\", \"timeout_ms\": \
         300000, \"description\": \"Run all tests\"}}",
        writes(settings),
        settings.timeout.as_millis(),
        settings.max_timeout.as_millis(),
        settings.output_bytes,
    )
}

/// Where a command's writes go.
fn writes(settings: &BashSettings) -> &'static str {
    match settings.policy.mode {
        Mode::Off => "There is no jail: a command may write what the provider's user may.",
        Mode::Enforce | Mode::BestEffort => {
            "On the machine only the configured directories can be written. Where namespaces are \
             granted, HOME, /tmp and /var/tmp are private scratch, else $TMPDIR is: a write there \
             succeeds and lasts from call to call, but nobody outside sees it, not even the file \
             tools, and it is discarded when the provider ends."
        }
    }
}

fn input(settings: &BashSettings) -> Schema {
    let timeout = format!(
        "When to end the command, in milliseconds: {} by default, at most {}. A command that is \
         ended this way is a timeout error with its output so far.",
        settings.timeout.as_millis(),
        settings.max_timeout.as_millis(),
    );
    Schema::object(vec![
        COMMAND.property(),
        TIMEOUT_MS.property().described(timeout),
        CWD.property(),
        STDIN.property(),
        DESCRIPTION.property(),
    ])
}

fn output(settings: &BashSettings) -> Schema {
    let output = format!(
        "Standard output and standard error in the order of arrival, invalid bytes shown as \
         U+FFFD; of more than {} bytes the head and the tail around a marker that counts what is \
         left out.",
        settings.output_bytes,
    );
    let properties = vec![
        COMMAND.property().described("The command, shortened if it is very long."),
        EXIT_CODE.property(),
        SIGNAL.property(),
        OUTPUT.property().described(output),
        STDOUT_BYTES.property(),
        STDERR_BYTES.property(),
        TRUNCATED.property(),
        FULL_OUTPUT_PATH.property(),
        DURATION_MS.property(),
        CWD.required().described("The directory that the command ran in.").property(),
        PROCESSES_KILLED.property(),
        NOTICE.described("What else there is to know.").property(),
    ];
    Schema::result(&[super::NAME], properties)
}
