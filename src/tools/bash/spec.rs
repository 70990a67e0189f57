//! What bash says of itself.

use std::time::Duration;

use sandbox::Mode;

use super::BashSettings;
use crate::tools::schema::{Kind, Property, Schema};
use crate::tools::{Concurrency, RiskClass, ToolKind, ToolSpec};

/// A kernel's deadline beyond our longest timeout: SIGTERM's grace, killing, reaping, reporting.
const AFTER_TIMEOUT: Duration = Duration::from_secs(15);

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
            "On the machine only the configured folders can be written. Where namespaces are \
             granted, HOME, /tmp and /var/tmp are private scratch, else $TMPDIR is: a write there \
             succeeds and lasts from call to call, but nobody outside sees it, not even the file \
             tools, and it is discarded when the provider ends."
        }
    }
}

fn input(settings: &BashSettings) -> Schema {
    Schema::object(vec![
        Property::required(
            "command",
            Kind::String(&[]),
            "What the shell runs; several lines and here-documents are fine.",
        ),
        Property::optional(
            "timeout_ms",
            Kind::Whole { min: 1 },
            format!(
                "When to end the command, in milliseconds: {} by default, at most {}. A command \
                 that is ended this way is a timeout error with its output so far.",
                settings.timeout.as_millis(),
                settings.max_timeout.as_millis(),
            ),
        ),
        Property::optional(
            "cwd",
            Kind::String(&[]),
            "The folder to run in, inside the configured folders; relative to the working \
             directory, and as any path it may be quoted as results quote it. Default: the working \
             directory.",
        ),
        Property::optional(
            "stdin",
            Kind::String(&[]),
            "Text that the command reads from its standard input; nothing by default.",
        ),
        Property::optional(
            "description",
            Kind::String(&[]),
            "What the command does, in a few words, for the person who approves it.",
        ),
    ])
}

fn output(settings: &BashSettings) -> Schema {
    let whole = Kind::Whole { min: 0 };
    let properties = vec![
        Property::required(
            "command",
            Kind::String(&[]),
            "The command, shortened if it is very long.",
        ),
        Property::required(
            "exit_code",
            whole.clone(),
            "The command's exit code; 128 + n when signal n ended it.",
        ),
        Property::optional(
            "signal",
            Kind::String(&[]),
            "The signal that ended the command, such as SIGKILL.",
        ),
        Property::required(
            "output",
            Kind::String(&[]),
            format!(
                "Standard output and standard error in the order of arrival, invalid bytes shown \
                 as U+FFFD; of more than {} bytes the head and the tail around a marker that \
                 counts what is left out.",
                settings.output_bytes,
            ),
        ),
        Property::required("stdout_bytes", whole.clone(), "How much went to standard output."),
        Property::required("stderr_bytes", whole.clone(), "How much went to standard error."),
        Property::required("truncated", Kind::Boolean, "Whether output leaves something out."),
        Property::optional(
            "full_output_path",
            Kind::String(&[]),
            "A file with all the output (up to 64 MiB), when output leaves something out; \
             read_file can read it.",
        ),
        Property::required("duration_ms", whole.clone(), "How long everything took."),
        Property::required("cwd", Kind::String(&[]), "The folder that the command ran in."),
        Property::required(
            "processes_killed",
            whole,
            "How many processes were still running when the call ended, and were killed.",
        ),
        Property::optional("notice", Kind::String(&[]), "What else there is to know."),
    ];
    Schema::result(&[super::NAME], properties)
}
