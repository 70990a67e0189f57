//! What session_start says of itself.
#![expect(missing_docs, reason = "the description of a field is its documentation")]

use crate::bash;
use crate::field::{self, Field, Flag, Text, Whole, flag, text, whole};
use crate::shell_session::{DEADLINE, fields};
use tool_provider::{Concurrency, RiskClass, Slips, ToolKind, ToolSpec};

pub const COMMAND: Field<Text> = bash::spec::COMMAND.described("What the shell runs.");
pub const CWD: Field<Text> = bash::spec::CWD.described("The directory to run in.");
pub const TTY: Field<Flag> = flag("tty", "Gives it a terminal of its own: for REPLs and editors.");
pub const ROWS: Field<Whole> = whole("rows", 5, "Of the terminal; 24.");
pub const COLUMNS: Field<Whole> = whole("columns", 20, "Of the terminal; 80.");
pub const NAME_OF_SESSION: Field<Text> = text("name", "What to call it; else s1, s2 and so on.");
pub const READY: Field<Text> = text(
    "ready",
    "What to wait for: a regex in its output, or a port on which it listens, such as 3000.",
);
pub const DESCRIPTION: Field<Text> = bash::spec::DESCRIPTION.described("What it is for.");
pub const IS_READY: Field<Flag> = flag("ready", "Whether ready came in time.");

const SLIPS: Slips = Slips {
    names: &[
        ("command", &["cmd", "script", "commandline"]),
        ("cwd", &["dir", "directory", "folder", "workdir", "workingdirectory"]),
        ("tty", &["pty", "terminal"]),
        ("columns", &["cols", "width"]),
        ("rows", &["height"]),
        ("name", &["session", "sessionid", "id"]),
        ("ready", &["readywhen", "waitfor", "port", "until", "pattern"]),
        ("description", &["explanation"]),
    ],
    texts: &["ready", "name"],
    remedies: &[
        ("timeout", "give wait_ms: how long this call waits"),
        ("timeoutms", "give wait_ms"),
    ],
    ..Slips::NONE
};

pub(crate) fn spec() -> ToolSpec {
    let wait_ms = fields::WAIT_MS
        .described("Longest wait for ready, the end or silence; 2000, at most 120000.");
    ToolSpec {
        name: super::NAME,
        kind: ToolKind::Resource,
        risk: RiskClass::High,
        description: TEXT.to_owned(),
        input: field::schema(&[
            &COMMAND,
            &CWD,
            &TTY,
            &ROWS,
            &COLUMNS,
            &NAME_OF_SESSION,
            &READY,
            &wait_ms,
            &DESCRIPTION,
        ]),
        output: fields::result(&[super::NAME], &[&IS_READY]),
        slips: SLIPS,
        streaming: true,
        concurrency: Concurrency::Exclusive,
        default_timeout: DEADLINE,
        idempotent: false,
    }
}

const TEXT: &str = "Starts a shell command that runs on after this call: a server, a watcher, a REPL. \
Same jail as bash. Returns what it printed so far. session_read shows more, session_write types into it, \
session_stop ends it; it also ends when unused for 30 minutes, and with your session.

Example: {\"command\": \"npm run dev\", \"name\": \"web\", \"ready\": \"3000\", \"wait_ms\": 20000}";
