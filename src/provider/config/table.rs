//! The one table of configuration keys. The schema that a kernel sees and the decoder are both made
//! from it, so they cannot disagree.

/// One configuration key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attribute {
    /// Its name in the provider's block.
    pub name: &'static str,
    /// What it holds.
    pub kind: AttributeKind,
    /// Whether it must be written, and what holds where it is not.
    pub presence: AttributePresence,
    /// What it is for, written for an operator.
    pub description: &'static str,
}

/// What a configuration key holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AttributeKind {
    /// Any text that is not empty.
    Text,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A whole number in this range, both ends included.
    Whole {
        /// The smallest value allowed.
        min: u64,
        /// The largest value allowed.
        max: u64,
    },
    /// True or false.
    Bool,
    /// A list of texts, none of them empty.
    TextList,
    /// Texts by name.
    TextMap,
    /// Further keys.
    Object(&'static [Attribute]),
}

/// Whether a key must be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttributePresence {
    /// It must be there.
    Required,
    /// This JSON text holds where it is left out.
    Default(&'static str),
    /// Where it is left out, nothing is set.
    Unset,
}

/// JSON numbers and the wire's doubles are exact up to here.
const EXACT: u64 = 1 << 53;

/// Longest time that a command may be given: a day.
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// Every key of the provider's block, in the order in which it is documented.
pub const ATTRIBUTES: &[Attribute] = &[
    Attribute {
        name: "roots",
        kind: AttributeKind::TextList,
        presence: AttributePresence::Required,
        description: "Folders that the tools may read and write. Each must exist. A relative one \
                      is taken from the kernel's working directory, ~/ from HOME.",
    },
    Attribute {
        name: "read_only_roots",
        kind: AttributeKind::TextList,
        presence: AttributePresence::Default("[]"),
        description: "Folders that the tools may read and never write. None may lie inside a \
                      folder of roots.",
    },
    Attribute {
        name: "sandbox",
        kind: AttributeKind::Choice(&["enforce", "best_effort", "off"]),
        presence: AttributePresence::Default(r#""enforce""#),
        description: "enforce: fail where the kernel cannot enforce file rights. best_effort: \
                      enforce what there is and say what is missing. off: no jail.",
    },
    Attribute {
        name: "network",
        kind: AttributeKind::Choice(&["deny", "allow"]),
        presence: AttributePresence::Default(r#""deny""#),
        description: "deny: a command reaches nothing beyond its own call. allow: as without a \
                      jail.",
    },
    Attribute {
        name: "bash_read",
        kind: AttributeKind::TextList,
        presence: AttributePresence::Default("[]"),
        description: "Further folders or files that bash, but not the file tools, may read: a \
                      toolchain, a git folder outside the roots.",
    },
    Attribute {
        name: "bash_write",
        kind: AttributeKind::TextList,
        presence: AttributePresence::Default("[]"),
        description: "Further folders or files that bash, but not the file tools, may write: a \
                      cache.",
    },
    Attribute {
        name: "shell",
        kind: AttributeKind::Text,
        presence: AttributePresence::Default(r#""/bin/bash""#),
        description: "The shell that runs commands, as an absolute path. Where the default is \
                      missing /bin/sh is used, with a notice; another one must be there.",
    },
    Attribute {
        name: "env",
        kind: AttributeKind::TextMap,
        presence: AttributePresence::Default("{}"),
        description: "Plain values that are set for bash. Not for secrets.",
    },
    Attribute {
        name: "env_passthrough",
        kind: AttributeKind::TextList,
        presence: AttributePresence::Default("[]"),
        description: "Names of variables that bash takes over from the provider's own \
                      environment.",
    },
    Attribute {
        name: "secret_env",
        kind: AttributeKind::TextList,
        presence: AttributePresence::Default("[]"),
        description: "Like env_passthrough, and their values never appear in an event, a log or \
                      an error: [NAME] stands in their place, also for each line of 12 bytes or \
                      more of a value of several lines. Each must be set.",
    },
    Attribute {
        name: "bash_timeout_ms",
        kind: AttributeKind::Whole { min: 1, max: DAY_MS },
        presence: AttributePresence::Default("120000"),
        description: "How long a command may run when its call names no timeout, in milliseconds.",
    },
    Attribute {
        name: "bash_max_timeout_ms",
        kind: AttributeKind::Whole { min: 1, max: DAY_MS },
        presence: AttributePresence::Default("600000"),
        description: "The longest timeout that a call may name, in milliseconds.",
    },
    Attribute {
        name: "bash_output_bytes",
        kind: AttributeKind::Whole { min: 1000, max: 16 << 20 },
        presence: AttributePresence::Default("30000"),
        description: "How much of a command's output its result keeps, head and tail, in bytes.",
    },
    Attribute {
        name: "limits",
        kind: AttributeKind::Object(LIMITS),
        presence: AttributePresence::Default("{}"),
        description: "Resource limits of each bash call.",
    },
    Attribute {
        name: "max_concurrent_calls",
        kind: AttributeKind::Whole { min: 1, max: 1024 },
        presence: AttributePresence::Default("64"),
        description: "How many calls may run at once; further ones are refused as retryable.",
    },
    Attribute {
        name: "read_before_write",
        kind: AttributeKind::Bool,
        presence: AttributePresence::Default("false"),
        description: "Whether overwriting a file that the session has not read is refused.",
    },
];

const LIMITS: &[Attribute] = &[
    Attribute {
        name: "memory_bytes",
        kind: AttributeKind::Whole { min: 1 << 20, max: EXACT },
        presence: AttributePresence::Unset,
        description: "Address space of each process, in bytes.",
    },
    Attribute {
        name: "processes",
        kind: AttributeKind::Whole { min: 1, max: EXACT },
        presence: AttributePresence::Unset,
        description: "Number of processes and threads.",
    },
    Attribute {
        name: "file_size_bytes",
        kind: AttributeKind::Whole { min: 1, max: EXACT },
        presence: AttributePresence::Unset,
        description: "Largest file that a command may write, in bytes.",
    },
    Attribute {
        name: "open_files",
        kind: AttributeKind::Whole { min: 16, max: EXACT },
        presence: AttributePresence::Default("4096"),
        description: "Number of open files of each process.",
    },
];
