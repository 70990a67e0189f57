//! The error taxonomy: one type for every way in which a call can fail.
//!
//! A [`ToolError`] carries one of the protocol's categories and a [`ToolErrorKind`]. The host may try
//! again where the kind says so, and the call cannot have changed anything.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::io;

use serde_json::{Map, Value};

use crate::controls;
use crate::shorten::shorten;

pub use kind::{Category, ToolErrorKind};

mod kind;

/// A failed call: what went wrong, where, and what to do about it.
#[derive(Debug)]
pub struct ToolError {
    category: Category,
    kind: ToolErrorKind,
    message: String,
    details: Map<String, Value>,
    source: Option<Box<dyn Error + Send + Sync>>,
    reason: Reason,
    log: Log,
    effect: Effect,
}

/// Whether a call can have changed something before it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    None,
    Possible,
}

/// What a tool itself has to distinguish from other failures of the same category and kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// Another program changed the file while the call was changing it.
    Race,
    /// The call was ended, and the details hold what its result would have held by then.
    EndedEarly,
    /// Anything else.
    Other,
}

/// Whether the log has a failure already, so that an undelivered one is not logged twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Log {
    Owed,
    Written,
}

/// Longest message, in bytes: it is for a model to read, and may repeat what a caller wrote.
const LONGEST_MESSAGE: usize = 16 * 1024;

/// Longest path in an error, in bytes; no system call takes a longer one.
pub const LONGEST_PATH: usize = 4096;

impl ToolError {
    fn new(category: Category, kind: ToolErrorKind, message: impl Into<String>) -> Self {
        let message = sanitized(&message.into());
        let (details, reason) = (Map::new(), Reason::Other);
        let effect = Effect::None;
        Self { category, kind, message, details, source: None, reason, log: Log::Owed, effect }
    }

    /// The arguments are wrong.
    pub fn invalid_arguments(message: impl Into<String>) -> Self {
        Self::new(Category::InvalidArguments, ToolErrorKind::Validation, message)
    }

    /// The target does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Category::NotFound, ToolErrorKind::Permanent, message)
    }

    /// The operating system, the roots or the jail refused.
    pub fn permission_denied(message: impl Into<String>) -> Self {
        Self::new(Category::PermissionDenied, ToolErrorKind::Auth, message)
    }

    /// The operation failed, and will fail again.
    pub fn execution_failed(message: impl Into<String>) -> Self {
        Self::new(Category::ExecutionFailed, ToolErrorKind::Permanent, message)
    }

    /// Too many calls run at once.
    pub fn too_many_calls(message: impl Into<String>) -> Self {
        Self::new(Category::ConcurrencyConflict, ToolErrorKind::RateLimit, message)
    }

    /// A deadline passed.
    pub fn timeout(message: impl Into<String>) -> Self {
        Self::new(Category::Timeout, ToolErrorKind::Transient, message)
    }

    /// A lock was not free in time; trying again may help.
    pub fn lock_busy(message: impl Into<String>) -> Self {
        Self::new(Category::ConcurrencyConflict, ToolErrorKind::Transient, message)
    }

    /// The content is not the one that the caller knew; the same call would fail again.
    pub fn version_mismatch(message: impl Into<String>) -> Self {
        Self::new(Category::ConcurrencyConflict, ToolErrorKind::Validation, message)
    }

    /// Another program changed the file between a call's look at it and its replacement. What is
    /// made of the file as it is now may succeed.
    pub fn race(message: impl Into<String>) -> Self {
        Self { reason: Reason::Race, ..Self::version_mismatch(message) }
    }

    /// The host closed the stream.
    pub fn cancelled(message: impl Into<String>) -> Self {
        Self::new(Category::Cancelled, ToolErrorKind::Internal, message)
    }

    /// A bug of ours. `raw` is the underlying error, which the protocol wants in the details.
    pub fn unknown(message: impl Into<String>, raw: impl Into<String>) -> Self {
        Self::new(Category::Unknown, ToolErrorKind::Internal, message)
            .with_detail("raw", Value::String(raw.into()))
    }

    /// The error for a system call on `path` that failed: the errno decides category and kind.
    ///
    /// `action` completes "cannot …", as in `read src/a.rs`.
    #[must_use]
    pub fn from_io(action: &str, path: &str, error: io::Error) -> Self {
        let (category, kind) = classify_io(&error);
        let reason = plain_reason(&error);
        let mut new =
            Self::new(category, kind, format!("cannot {action}: {reason}")).with_path("path", path);
        if let Some(errno) = error.raw_os_error() {
            new = new.with_detail("errno", Value::from(errno));
        }
        new.source = Some(Box::new(error));
        new
    }

    /// Replaces the message and keeps the rest.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = sanitized(&message.into());
        self
    }

    /// Adds a path as a detail, cut where it is longer than a path can be.
    #[must_use]
    pub fn with_path(self, name: &str, path: &str) -> Self {
        self.with_detail(name, shorten(path, LONGEST_PATH).into_owned())
    }

    /// Adds one detail. A detail of the same name is replaced.
    #[must_use]
    pub fn with_detail(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// Adds what the result of a call that was ended would have held by then, as details. The
    /// provider says in them which tool it was, as in a result. The text of the field `output` is part
    /// of the [whole message](Self::whole_message).
    #[must_use]
    pub fn with_so_far(mut self, result: Map<String, Value>) -> Self {
        self.details.extend(result);
        self.reason = Reason::EndedEarly;
        self
    }

    /// Says that the call may have changed something before it failed: it is not to be tried again as
    /// it is, whatever the kind.
    #[must_use]
    pub fn after_effects(mut self) -> Self {
        self.effect = Effect::Possible;
        self
    }

    /// Adds what the caller or the operator can do about it.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        let hint = controls::one_line(&hint.into()).into_owned();
        self.with_detail("hint", Value::String(hint))
    }

    /// Keeps the error that caused this one.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Says that the tool itself has logged this, in more detail.
    #[must_use]
    pub fn logged(mut self) -> Self {
        self.log = Log::Written;
        self
    }

    /// Whether the log knows of this.
    #[must_use]
    pub fn is_logged(&self) -> bool {
        self.log == Log::Written
    }

    /// Whether another program changed the file meanwhile.
    pub fn is_race(&self) -> bool {
        self.reason == Reason::Race
    }

    /// Whether the details hold what the result would have held.
    pub(crate) fn has_so_far(&self) -> bool {
        self.reason == Reason::EndedEarly
    }

    /// The protocol's category.
    #[must_use]
    pub fn category(&self) -> Category {
        self.category
    }

    /// The cross-tool kind.
    #[must_use]
    pub fn kind(&self) -> ToolErrorKind {
        self.kind
    }

    /// Whether the same call may be tried again: where the kind says so, and nothing can have been
    /// changed.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.kind.is_retryable() && self.effect == Effect::None
    }

    /// What went wrong, for a person or a model.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What the caller or the operator can do, where that is known.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.details.get("hint").and_then(Value::as_str)
    }

    /// The message with the hint behind it, and the output of a call that was ended behind both. Many a
    /// host shows its model the message of an error and nothing else, so that is what goes over the
    /// wire.
    #[must_use]
    pub fn whole_message(&self) -> Cow<'_, str> {
        let said = self.message_and_hint();
        let output = self.details.get("output").and_then(Value::as_str);
        match output.filter(|output| self.has_so_far() && !output.is_empty()) {
            Some(output) => Cow::Owned([&said, OUTPUT_SO_FAR, &controls::lines(output)].concat()),
            None => said,
        }
    }

    fn message_and_hint(&self) -> Cow<'_, str> {
        match self.hint() {
            Some(hint) if !self.message.contains(hint) => {
                let between = joint(&self.message);
                Cow::Owned(format!("{}{between}{hint}", self.message))
            }
            _ => Cow::Borrowed(&self.message),
        }
    }

    /// The structured details, with the kind's name among them.
    #[must_use]
    pub fn details(&self) -> Map<String, Value> {
        let mut details = self.details.clone();
        details.insert("kind".to_owned(), Value::from(self.kind.name()));
        details
    }
}

/// Stands in a message between what happened and the output until then.
const OUTPUT_SO_FAR: &str = "\nOutput so far:\n";

/// What may stand between a message and the hint behind it.
const JOINTS: [&str; 3] = ["\n", "; ", " "];

fn joint(message: &str) -> &'static str {
    let [lines, parts, sentences] = JOINTS;
    match message.contains('\n') {
        true => lines,
        false if message.ends_with(['.', '?', '!']) => sentences,
        false => parts,
    }
}

/// A [whole message](ToolError::whole_message) without the hint and the output at its end, for whoever
/// shows those by themselves.
#[must_use]
pub fn without_hint<'m>(message: &'m str, hint: Option<&str>) -> &'m str {
    let message = message.split_once(OUTPUT_SO_FAR).map_or(message, |(before, _)| before);
    let reason = || {
        let before = message.strip_suffix(hint?)?;
        JOINTS.iter().find_map(|joint| before.strip_suffix(joint))
    };
    reason().unwrap_or(message)
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for ToolError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// A message as it goes out: names of files and outputs get into messages, and messages to
/// terminals.
fn sanitized(message: &str) -> String {
    shorten(&controls::lines(message), LONGEST_MESSAGE).into_owned()
}

/// The reason in the system's own words, to stand inside a sentence: in lower case, and without the
/// number, which stands in the details.
fn plain_reason(error: &io::Error) -> String {
    let text = error.to_string();
    let plain = text.split(" (os error").next().unwrap_or(&text);
    let mut chars = plain.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

/// An error with everything that caused it, in one line.
#[must_use]
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// The category and kind that an errno stands for.
fn classify_io(error: &io::Error) -> (Category, ToolErrorKind) {
    use rustix::io::Errno;
    let Some(errno) = Errno::from_io_error(error) else {
        return match error.kind() {
            io::ErrorKind::NotFound => (Category::NotFound, ToolErrorKind::Permanent),
            io::ErrorKind::PermissionDenied => (Category::PermissionDenied, ToolErrorKind::Auth),
            _ => (Category::ExecutionFailed, ToolErrorKind::Permanent),
        };
    };
    match errno {
        Errno::NOENT => (Category::NotFound, ToolErrorKind::Permanent),
        Errno::ACCESS | Errno::PERM | Errno::ROFS => {
            (Category::PermissionDenied, ToolErrorKind::Auth)
        }
        Errno::NOSPC | Errno::DQUOT | Errno::FBIG => {
            (Category::ExecutionFailed, ToolErrorKind::Quota)
        }
        // The last one is what other processes of the user have in flight between sockets.
        Errno::MFILE
        | Errno::NFILE
        | Errno::AGAIN
        | Errno::INTR
        | Errno::NOMEM
        | Errno::NOBUFS
        | Errno::TOOMANYREFS => (Category::ExecutionFailed, ToolErrorKind::Transient),
        _ => (Category::ExecutionFailed, ToolErrorKind::Permanent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errno_decides_category_kind_and_retry() {
        let cases = [
            (2, Category::NotFound, false),
            (13, Category::PermissionDenied, false),
            (1, Category::PermissionDenied, false),
            (30, Category::PermissionDenied, false),
            (28, Category::ExecutionFailed, false),
            (27, Category::ExecutionFailed, false),
            (24, Category::ExecutionFailed, true),
            (11, Category::ExecutionFailed, true),
            (105, Category::ExecutionFailed, true),
            (109, Category::ExecutionFailed, true),
            (5, Category::ExecutionFailed, false),
        ];
        for (errno, category, retryable) in cases {
            let error =
                ToolError::from_io("read a.txt", "a.txt", io::Error::from_raw_os_error(errno));
            assert_eq!((error.category(), error.is_retryable()), (category, retryable), "{errno}");
            assert_eq!(error.details()["errno"], errno);
        }
    }

    #[test]
    fn a_whole_message_says_the_hint_once() {
        for (message, hint, whole) in [
            ("no a", "try b", "no a; try b"),
            ("is it a?", "try b", "is it a? try b"),
            ("no a:\n1\n2", "try b", "no a:\n1\n2\ntry b"),
        ] {
            let error = ToolError::not_found(message).with_hint(hint);
            assert_eq!(error.whole_message(), whole);
            assert_eq!(without_hint(whole, Some(hint)), message);
        }
        let told = ToolError::not_found("no a; try b").with_hint("try b");
        assert_eq!(told.whole_message(), "no a; try b");
        assert_eq!(ToolError::not_found("no a").whole_message(), "no a");
        assert_eq!(without_hint("no a", Some("try b")), "no a");
        assert_eq!(without_hint("no a", None), "no a");
    }

    #[test]
    fn the_output_of_a_call_that_was_ended_stands_last() {
        let so_far = serde_json::json!({"output": "1\n2\n", "exit_code": 143});
        let so_far = so_far.as_object().unwrap().clone();
        let ended = ToolError::timeout("over").with_hint("ask").with_so_far(so_far);
        assert_eq!(ended.whole_message(), "over; ask\nOutput so far:\n1\n2\n");
        assert_eq!(without_hint(&ended.whole_message(), Some("ask")), "over");
        let other = ToolError::timeout("over").with_detail("output", "a field of another meaning");
        assert_eq!(other.whole_message(), "over");
        let long = [("output".to_owned(), Value::from("x".repeat(50_000)))].into_iter().collect();
        assert!(ToolError::cancelled("over").with_so_far(long).whole_message().len() > 50_000);
    }

    #[test]
    fn message_names_the_action_and_the_reason() {
        let error = ToolError::from_io("read a.txt", "a.txt", io::Error::from_raw_os_error(2));
        assert_eq!(error.to_string(), "cannot read a.txt: no such file or directory");
        assert!(error.source().is_some());
        assert_eq!(error.details()["kind"], "permanent");
    }
}
