//! The configuration's keys. The schema that a host sees, the decoder and the documentation are all
//! made from them, so they cannot disagree.

use tool_provider::schema::{EXACT, Kind, Property, Schema};

/// The longest timeout of a command: what bash tells a host before it is configured is one deadline for
/// every call.
const HOUR_MS: i64 = 60 * 60 * 1000;

/// Every key of the provider's block, in the order in which it is documented.
///
/// A string is never empty here, and neither is an item of a list, of which each is there once.
#[must_use]
pub fn properties() -> Vec<Property> {
    vec![
        Property::required(
            "roots",
            texts(),
            "Directories that the tools may read and write. Each must exist. A relative one is taken \
             from the host's working directory, ~/ from HOME.",
        ),
        Property::with_default(
            "read_only_roots",
            texts(),
            "[]",
            "Directories that the tools may read and never write. None may lie inside a directory of \
             roots.",
        ),
        Property::with_default(
            "sandbox",
            Kind::String(&["full", "enforce", "best_effort", "off"]),
            r#""enforce""#,
            "full: fail where the machine does not grant namespaces. enforce: fail where the Linux \
             kernel cannot enforce file rights. best_effort: enforce what the machine can, and \
             report what is missing. off: no jail.",
        ),
        Property::with_default(
            "network",
            Kind::String(&["deny", "allow"]),
            r#""deny""#,
            "deny: a command reaches nothing beyond its own call. allow: as without a jail, but no unix \
             sockets at the level kernel.",
        ),
        Property::with_default(
            "home",
            Kind::String(&["keep", "discard"]),
            r#""keep""#,
            "keep: the HOME of commands, a private directory, is there again for later sessions with the \
             same directories, network, variables and kind of jail; so caches in it stay warm. discard: it \
             is removed when the provider ends.",
        ),
        Property::with_default(
            "bash_read",
            texts(),
            "[]",
            "More directories or files that bash, but not the file tools, may read: a toolchain, a \
             git directory outside the roots.",
        ),
        Property::with_default(
            "bash_write",
            texts(),
            "[]",
            "More directories or files that bash, but not the file tools, may write: a cache.",
        ),
        Property::with_default(
            "protect",
            Kind::String(&["git", "none"]),
            r#""git""#,
            "git: in the roots' own repositories neither commands nor the file tools change the config \
             and hooks that git outside obeys. none: they may.",
        ),
        Property::with_default(
            "shell",
            Kind::String(&[]),
            r#""/bin/bash""#,
            "The shell that runs commands, as an absolute path. Where the default is missing, \
             /bin/sh is used, with a notice; any other shell must exist.",
        ),
        Property::with_default(
            "env",
            Kind::StringMap,
            "{}",
            "Plain values that are set for bash. Not for secrets.",
        ),
        Property::with_default(
            "env_passthrough",
            texts(),
            "[]",
            "Names of variables that bash takes over from the provider's own environment.",
        ),
        Property::with_default(
            "secret_env",
            texts(),
            "[]",
            "Like env_passthrough, but the values never appear in an event, a log or an error: [NAME] \
             stands in their place, and in that of each line of 12 bytes or more of a value with \
             several lines. Each must be set.",
        ),
        Property::with_default(
            "bash_timeout_ms",
            Kind::Range { min: 1, max: HOUR_MS },
            "120000",
            "How long a command may run when its call names no timeout, in milliseconds.",
        ),
        Property::with_default(
            "bash_max_timeout_ms",
            Kind::Range { min: 1, max: HOUR_MS },
            "600000",
            "The longest timeout that a call may name, in milliseconds; at most one hour.",
        ),
        Property::with_default(
            "bash_output_bytes",
            Kind::Range { min: 1000, max: 16 << 20 },
            "16000",
            "How much of a command's output its result keeps, head and tail, in bytes.",
        ),
        Property::with_default(
            "shell_read_layer_bytes",
            Kind::Range { min: 1 << 20, max: 1 << 40 },
            "2147483648",
            "How much all shell_read calls together may write before it is discarded, in bytes. It is held in \
             memory, and never more than half of that.",
        ),
        Property::with_default(
            "limits",
            Kind::Object(limits()),
            "{}",
            "Resource limits of bash calls.",
        ),
        Property::with_default(
            "max_concurrent_calls",
            Kind::Range { min: 1, max: 1024 },
            "64",
            "How many calls run at once. More calls wait, in order; one that still waits at its \
             deadline fails with concurrency_conflict.",
        ),
        Property::with_default(
            "max_sessions",
            Kind::Range { min: 0, max: 256 },
            "16",
            "How many sessions (session_start) run at once; 0 allows none.",
        ),
        Property::with_default(
            "session_idle_ms",
            Kind::Range { min: 1000, max: 24 * HOUR_MS },
            "1800000",
            "After how long without a call that names it a session is ended, in milliseconds.",
        ),
        Property::with_default(
            "read_before_write",
            Kind::Boolean,
            "false",
            "Whether overwriting a file that the session has not read is refused.",
        ),
    ]
}

fn limits() -> Vec<Property> {
    vec![
        Property::optional(
            "memory_bytes",
            Kind::Range { min: 1 << 20, max: EXACT },
            "Address space of each process, in bytes.",
        ),
        Property::optional(
            "processes",
            Kind::Range { min: 1, max: EXACT },
            "Number of processes and threads. All bash calls share it, unless a control group is \
             delegated to the provider; at the level kernel with everything else that the user runs, \
             and there it does not bind root. Unset means 8192 at the level full.",
        ),
        Property::optional(
            "file_size_bytes",
            Kind::Range { min: 1, max: EXACT },
            "Largest file that a command may write, in bytes.",
        ),
        Property::with_default(
            "open_files",
            Kind::Range { min: 16, max: EXACT },
            "4096",
            "Number of open files of each process.",
        ),
    ]
}

fn texts() -> Kind {
    Kind::Array(Box::new(Schema::new(Kind::String(&[]), "")))
}
