//! The categories of the protocol, and the kinds that hold for all tools.

use super::ToolError;

/// The protocol's failure categories that a provider may send. `process_crashed` is missing on
/// purpose: only a host can know that a provider died.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Category {
    /// The arguments do not fit the schema, or ask for something impossible.
    InvalidArguments,
    /// The target does not exist.
    NotFound,
    /// The operating system or the jail refused.
    PermissionDenied,
    /// The operation ran and failed on its own terms.
    ExecutionFailed,
    /// A deadline passed.
    Timeout,
    /// Another call or another program got in the way.
    ConcurrencyConflict,
    /// The host closed the stream.
    Cancelled,
    /// A bug in this provider.
    Unknown,
}

impl Category {
    /// Every category that a provider may send.
    pub const ALL: [Self; 8] = [
        Category::InvalidArguments,
        Category::NotFound,
        Category::PermissionDenied,
        Category::ExecutionFailed,
        Category::Timeout,
        Category::ConcurrencyConflict,
        Category::Cancelled,
        Category::Unknown,
    ];

    /// The category's name as the protocol writes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Category::InvalidArguments => "invalid_arguments",
            Category::NotFound => "not_found",
            Category::PermissionDenied => "permission_denied",
            Category::ExecutionFailed => "execution_failed",
            Category::Timeout => "timeout",
            Category::ConcurrencyConflict => "concurrency_conflict",
            Category::Cancelled => "cancelled",
            Category::Unknown => "unknown",
        }
    }
}

/// The cross-tool failure kind: what an operator or a retry layer should make of a failure.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ToolErrorKind {
    /// May well succeed when tried again.
    Transient,
    /// Too much at once; may succeed later.
    RateLimit,
    /// Out of space, quota or size; someone has to free some.
    Quota,
    /// Not allowed; someone has to grant it.
    Auth,
    /// The same call will fail again.
    Permanent,
    /// The caller's input is at fault.
    Validation,
    /// A fault of ours, or a control signal that is no failure of the tool.
    Internal,
}

impl ToolErrorKind {
    /// The kind of an error.
    #[must_use]
    pub fn classify(error: &ToolError) -> Self {
        error.kind()
    }

    /// Whether the same call may be tried again.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        matches!(self, ToolErrorKind::Transient | ToolErrorKind::RateLimit)
    }

    /// The kind's name, as it stands in details, logs and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ToolErrorKind::Transient => "transient",
            ToolErrorKind::RateLimit => "rate_limit",
            ToolErrorKind::Quota => "quota",
            ToolErrorKind::Auth => "auth",
            ToolErrorKind::Permanent => "permanent",
            ToolErrorKind::Validation => "validation",
            ToolErrorKind::Internal => "internal",
        }
    }
}
