//! What came over the wire, and what is sent, in plain types.

use std::collections::BTreeMap;

use crate::Payload;

/// A call of the service that failed.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The status code's name, such as `INVALID_ARGUMENT`.
    pub code: &'static str,
    /// Its text.
    pub message: String,
    /// Who made it.
    pub origin: Origin,
    /// What `grpc-status-details-bin` holds.
    pub details: Details,
}

/// Who made a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It came over the wire.
    Provider,
    /// Our side made it: the connection broke, or could not be made.
    Connection,
}

/// What a status carries.
#[derive(Clone, Debug)]
pub enum Details {
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
        error: Option<SeenError>,
    },
}

/// What a provider says of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenProducer {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Where it comes from.
    pub source: String,
    /// Its category.
    pub category: i32,
    /// The protocol's version that it speaks.
    pub protocol_version: u32,
}

/// What a provider advertises.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenSchema {
    /// Its operations.
    pub tools: Vec<SeenTool>,
    /// The keys of its configuration.
    pub config: Vec<SeenAttribute>,
    /// Name and template of each slash command.
    pub slash_commands: Vec<(String, String)>,
    /// The hook points that it can subscribe to.
    pub hook_points: Vec<i32>,
}

/// What a provider says of one operation.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenTool {
    /// Its name.
    pub name: String,
    /// A ToolKind.
    pub kind: i32,
    /// A RiskClass.
    pub risk: i32,
    /// For the model.
    pub description: String,
    /// The shape of its arguments.
    pub input: Option<Shape>,
    /// The shape of its result.
    pub output: Option<Shape>,
    /// Whether events come before the last.
    pub streaming: bool,
    /// Whether it is safe to run beside others, and the arguments that serialize it.
    pub concurrency: Option<(bool, Vec<String>)>,
    /// Seconds and nanoseconds of its deadline.
    pub default_timeout: Option<(i64, i32)>,
    /// Whether running it twice is like running it once.
    pub idempotent: bool,
    /// Whether it ends the model's turn.
    pub terminates_turn: bool,
}

/// The shape of a value, in the wire's subset of JSON Schema.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shape {
    /// A SchemaType.
    pub kind: i32,
    /// What it is for.
    pub description: String,
    /// The properties of an object.
    pub properties: BTreeMap<String, Shape>,
    /// Those that must be there.
    pub required: Vec<String>,
    /// The items of an array.
    pub items: Option<Box<Shape>>,
    /// The words that a string may be.
    pub words: Vec<String>,
}

/// One key of a configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenAttribute {
    /// Its name.
    pub name: String,
    /// An AttrType.
    pub kind: i32,
    /// Whether it must be written.
    pub required: bool,
    /// Whether it is a secret.
    pub sensitive: bool,
    /// The keys of an object.
    pub attributes: Vec<SeenAttribute>,
    /// What holds where it is left out, as JSON text.
    pub default_json: Option<String>,
}

/// A call as it is sent.
#[derive(Clone, Debug, Default)]
pub struct Sent {
    /// The call's id.
    pub id: String,
    /// The operation.
    pub tool: String,
    /// Its arguments; `None` leaves the field out.
    pub arguments: Option<Payload>,
    /// Where it belongs; `None` leaves the field out.
    pub context: Option<SentContext>,
}

/// Where a call belongs.
#[derive(Clone, Debug, Default)]
pub struct SentContext {
    /// The session.
    pub session_id: String,
    /// The turn.
    pub turn_id: String,
    /// What relative paths start from.
    pub working_directory: String,
}

/// One event of a call.
#[derive(Clone, Debug)]
pub enum SeenEvent {
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
    Error(SeenError),
}

/// An error as it came.
#[derive(Clone, Debug)]
pub struct SeenError {
    /// A ToolErrorCategory.
    pub category: i32,
    /// What went wrong.
    pub message: String,
    /// Whether the same call may be tried again.
    pub retryable: bool,
    /// The structured details.
    pub details: Option<Payload>,
}

impl Refusal {
    /// Whether the provider says that it does not have the call at all.
    #[must_use]
    pub fn is_unimplemented(&self) -> bool {
        self.origin == Origin::Provider && self.code == "UNIMPLEMENTED"
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "status {}: {}", self.code, self.message)
    }
}
