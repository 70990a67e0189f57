//! What came over the wire, and what is sent, in plain types.

use std::collections::BTreeMap;

use tool_provider::Payload;

/// A call of the service that failed.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    /// The status code's name, such as `INVALID_ARGUMENT`.
    pub(crate) code: &'static str,
    /// Its text.
    pub(crate) message: String,
    /// Who made it.
    pub(crate) origin: Origin,
    /// What `grpc-status-details-bin` holds.
    pub(crate) details: Details,
}

/// Who made a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// It came over the wire.
    Provider,
    /// Our side made it: the connection broke, or could not be made.
    Connection,
}

/// What a status carries.
#[derive(Clone, Debug)]
pub(crate) enum Details {
    /// Nothing.
    Absent,
    /// Bytes that are no google.rpc.Status.
    Unreadable,
    /// A google.rpc.Status.
    Read {
        /// Whether its code is that of the status that carries it.
        same_code: bool,
        /// The reason and the domain of its ErrorInfo.
        info: Option<(String, String)>,
        /// Its ToolError.
        error: Option<ObservedError>,
    },
}

/// What a provider says of itself.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ObservedProducer {
    /// Its name.
    pub(crate) name: String,
    /// Its version.
    pub(crate) version: String,
    /// Where it comes from.
    pub(crate) source: String,
    /// Its category.
    pub(crate) category: i32,
    /// The protocol's version that it speaks.
    pub(crate) protocol_version: u32,
}

/// What a provider advertises.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ObservedSchema {
    /// Its operations.
    pub(crate) tools: Vec<ObservedTool>,
    /// The keys of its configuration.
    pub(crate) config: Vec<ObservedAttribute>,
    /// Name and template of each slash command.
    pub(crate) slash_commands: Vec<(String, String)>,
    /// The hook points that it can subscribe to.
    pub(crate) hook_points: Vec<i32>,
}

/// What a provider says of one operation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ObservedTool {
    /// Its name.
    pub(crate) name: String,
    /// A ToolKind.
    pub(crate) kind: i32,
    /// A RiskClass.
    pub(crate) risk: i32,
    /// For the model.
    pub(crate) description: String,
    /// The shape of its arguments.
    pub(crate) input: Option<Shape>,
    /// The shape of its result.
    pub(crate) output: Option<Shape>,
    /// Whether events come before the last.
    pub(crate) streaming: bool,
    /// Whether it is safe to run beside others, and the arguments that serialize it.
    pub(crate) concurrency: Option<(bool, Vec<String>)>,
    /// Seconds and nanoseconds of its deadline.
    pub(crate) default_timeout: Option<(i64, i32)>,
    /// Whether running it twice is like running it once.
    pub(crate) idempotent: bool,
    /// Whether it ends the model's turn.
    pub(crate) terminates_turn: bool,
}

/// The shape of a value, in the wire's subset of JSON Schema.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Shape {
    /// A SchemaType.
    pub(crate) kind: i32,
    /// What it is for.
    pub(crate) description: String,
    /// The properties of an object.
    pub(crate) properties: BTreeMap<String, Shape>,
    /// Those that must be there.
    pub(crate) required: Vec<String>,
    /// The items of an array.
    pub(crate) items: Option<Box<Shape>>,
    /// The words that a string may be.
    pub(crate) words: Vec<String>,
}

/// One key of a configuration.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ObservedAttribute {
    /// Its name.
    pub(crate) name: String,
    /// An AttrType.
    pub(crate) kind: i32,
    /// Whether it must be written.
    pub(crate) required: bool,
    /// Whether it is a secret.
    pub(crate) sensitive: bool,
    /// The keys of an object.
    pub(crate) attributes: Vec<ObservedAttribute>,
    /// What holds where it is left out, as JSON text.
    pub(crate) default_json: Option<String>,
}

/// A call as it is sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sent {
    /// The call's id.
    pub(crate) id: String,
    /// The operation.
    pub(crate) tool: String,
    /// Its arguments; `None` leaves the field out.
    pub(crate) arguments: Option<Payload>,
    /// Where it belongs; `None` leaves the field out.
    pub(crate) context: Option<SentContext>,
}

/// Where a call belongs.
#[derive(Clone, Debug, Default)]
pub(crate) struct SentContext {
    /// The session.
    pub(crate) session_id: String,
    /// The turn.
    pub(crate) turn_id: String,
    /// What relative paths start from.
    pub(crate) working_directory: String,
}

/// One event of a call.
#[derive(Clone, Debug)]
pub(crate) enum ObservedEvent {
    /// None at all: the field, or the choice in it, is not set.
    Empty,
    /// A piece of output.
    Output {
        /// An OutputStream.
        stream: i32,
        /// The piece.
        data: Vec<u8>,
    },
    /// How far the call is.
    Progress {
        /// What goes on.
        message: String,
        /// How much of it is done.
        fraction: Option<f64>,
    },
    /// A part of the result.
    Partial,
    /// The child process ended.
    Exit {
        /// Its exit code.
        code: i32,
    },
    /// The call succeeded. `None` where the payload is not set; else the payload, or why it is no
    /// JSON.
    Result(Option<Result<Payload, String>>),
    /// The call failed.
    Error(ObservedError),
}

/// An error as it came.
#[derive(Clone, Debug)]
pub(crate) struct ObservedError {
    /// A ToolErrorCategory.
    pub(crate) category: i32,
    /// What went wrong.
    pub(crate) message: String,
    /// Whether the same call may be tried again.
    pub(crate) retryable: bool,
    /// The structured details.
    pub(crate) details: Option<Payload>,
}

impl Refusal {
    /// Whether the provider says that it does not have the call at all.
    #[must_use]
    pub(crate) fn is_unimplemented(&self) -> bool {
        self.origin == Origin::Provider && self.code == "UNIMPLEMENTED"
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "status {}: {}", self.code, self.message)
    }
}
