//! Every way in which a call can fail, as a table: documents are made from it.

use super::{Category, ToolErrorKind};

/// One way in which a call can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failing {
    /// The protocol's category.
    pub category: Category,
    /// The cross-tool kind; whether to try again follows from it.
    pub kind: ToolErrorKind,
    /// When it happens.
    pub when: &'static str,
}

impl Failing {
    /// Whether the same call may be tried again.
    #[must_use]
    pub fn again(&self) -> &'static str {
        match (self.kind.is_retryable(), self.category) {
            (true, Category::Timeout) => "yes, where nothing was begun",
            (true, _) => "yes",
            (false, _) => "no",
        }
    }
}

/// Every way in which a call can fail.
pub const TAXONOMY: &[Failing] = &[
    Failing {
        category: Category::InvalidArguments,
        kind: ToolErrorKind::Validation,
        when: "The arguments do not fit the tool's schema, or ask for what makes no sense: a value \
               out of range, a pattern that cannot be parsed, a text that is in the file more than once.",
    },
    Failing {
        category: Category::NotFound,
        kind: ToolErrorKind::Permanent,
        when: "The file, the directory, the text to replace or the tool is not there.",
    },
    Failing {
        category: Category::PermissionDenied,
        kind: ToolErrorKind::Auth,
        when: "The path is outside the roots, or the system or the jail refused (EACCES, EPERM, \
               EROFS). The details name the missing right and the setting that would grant it.",
    },
    Failing {
        category: Category::ExecutionFailed,
        kind: ToolErrorKind::Permanent,
        when: "The target is of the wrong kind (a directory, a binary file, a pipe, a device), or the \
               system failed and would fail again (such as EIO).",
    },
    Failing {
        category: Category::ExecutionFailed,
        kind: ToolErrorKind::Quota,
        when: "There is no space: ENOSPC, EDQUOT, EFBIG.",
    },
    Failing {
        category: Category::ExecutionFailed,
        kind: ToolErrorKind::Transient,
        when: "The system is short of something for now: EMFILE, ENFILE, EAGAIN, EINTR, ENOMEM, \
               ENOBUFS, ETOOMANYREFS.",
    },
    Failing {
        category: Category::Timeout,
        kind: ToolErrorKind::Transient,
        when: "The call's own timeout or the host's deadline passed. A command that was running then \
               may have had effects: it is never marked for another try, and the message ends with \
               its output so far.",
    },
    Failing {
        category: Category::ConcurrencyConflict,
        kind: ToolErrorKind::RateLimit,
        when: "The call waited for its turn until its deadline, because max_concurrent_calls others ran.",
    },
    Failing {
        category: Category::ConcurrencyConflict,
        kind: ToolErrorKind::Transient,
        when: "Another call held the file's lock for too long.",
    },
    Failing {
        category: Category::ConcurrencyConflict,
        kind: ToolErrorKind::Validation,
        when: "The file does not have the expected version, or was changed since the session read it. \
               The details have the current version.",
    },
    Failing {
        category: Category::Cancelled,
        kind: ToolErrorKind::Internal,
        when: "The host closed the stream. The details of a write say whether it was applied.",
    },
    Failing {
        category: Category::Unknown,
        kind: ToolErrorKind::Internal,
        when: "A fault of this provider. The raw error is in the details; please report it.",
    },
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::io;

    use super::*;
    use crate::ToolError;

    #[test]
    fn the_table_has_what_can_happen_and_nothing_else() {
        let made = [
            ToolError::invalid_arguments(""),
            ToolError::not_found(""),
            ToolError::permission_denied(""),
            ToolError::execution_failed(""),
            ToolError::too_many_calls(""),
            ToolError::timeout(""),
            ToolError::lock_busy(""),
            ToolError::version_mismatch(""),
            ToolError::cancelled(""),
            ToolError::unknown("", ""),
        ];
        let met = (1..134)
            .map(|errno| ToolError::from_io("read", "a", io::Error::from_raw_os_error(errno)));
        let pair = |error: ToolError| (error.category(), error.kind());
        let happen: HashSet<_> = made.into_iter().chain(met).map(pair).collect();
        let listed: HashSet<_> = TAXONOMY.iter().map(|row| (row.category, row.kind)).collect();
        assert_eq!(happen, listed);
        assert_eq!(listed.len(), TAXONOMY.len(), "no row appears twice");
    }
}
