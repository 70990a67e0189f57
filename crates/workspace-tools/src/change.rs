//! What `edit_file` and `write_file` have in common: the file as it is, its lock and its replacement;
//! and, in `show`, how the change is shown.

pub(super) mod endings;
mod name_check;
mod show;
pub(super) mod syntax;

use crate::classify::Classify as _;
use crate::classify::classify;
use crate::lock_wait::unless_ended;
use crate::lock_wait::waiting;
use std::path::Path;

use serde_json::Value;

use workspace_fs::text::name;
use workspace_fs::{
    AccessTime, Action, Eof, Guard, Knowledge, Mode, OpenFile, PathArgument, Replacement,
    ResolvedPath, Stamp, Target, Version, VersionHasher, Written,
};

use crate::Context;
pub use show::EXPECTED_VERSION;
pub(super) use show::{
    DIFF, Made, PREVIEW_LINES, failure, notice, render, rendered, result, view, view_hunks,
};
use tool_provider::{Category, Payload, ToolError};

/// Files beyond this are not changed here: they are held in memory while they are.
pub(super) const MAX_FILE: usize = 256 * 1024 * 1024;

/// A file as it was found.
#[derive(Debug)]
pub(super) struct Base {
    pub content: Vec<u8>,
    pub version: Version,
    pub stamp: Stamp,
}

impl Base {
    /// Reads a file to its end.
    ///
    /// # Errors
    /// When it is too large, or the system fails to read.
    pub(super) fn read(file: &OpenFile, action: &str, path: &str) -> Result<Self, ToolError> {
        let too_large = |size: u64| {
            ToolError::execution_failed(format!(
                "cannot {action} {}: it has {size} bytes, and files over {MAX_FILE} bytes \
                 ({} MiB) are not changed",
                name::shown(path),
                MAX_FILE >> 20
            ))
            .with_detail("path", path)
            .with_detail("size_bytes", size)
            .with_hint("change it with bash, for example with sed")
        };
        let size = file.stat().size;
        let expected = usize::try_from(size).unwrap_or(usize::MAX);
        if expected > MAX_FILE {
            return Err(too_large(size));
        }
        let (mut content, mut capacity) = (Vec::new(), expected + 1);
        loop {
            let more = capacity - content.len();
            reserve(&mut content, more, action, path)?;
            if file.append(&mut content).classified()? == Eof::Reached {
                break;
            }
            // It grew, or is one of those whose size is not known before they are read.
            if content.len() > MAX_FILE {
                return Err(too_large(content.len() as u64));
            }
            capacity = (content.len() * 2).clamp(64 * 1024, MAX_FILE + 1);
        }
        if content.len() > MAX_FILE {
            return Err(too_large(content.len() as u64));
        }
        let version = Version::of(&content);
        Ok(Self { content, version, stamp: file.stat().stamp() })
    }

    /// Whether this content is not the one that a session knows.
    pub(super) fn is_news_to(&self, known: &Knowledge) -> bool {
        is_stale(known, Some(self.version), self.stamp)
    }
}

/// Asks for memory for so many more bytes of a file, in a way that can fail: a request chooses how
/// many they are.
///
/// # Errors
/// When there is not so much.
fn reserve(content: &mut Vec<u8>, more: usize, action: &str, path: &str) -> Result<(), ToolError> {
    content.try_reserve_exact(more).map_err(|_| no_memory(action, path))
}

/// The error of a file that does not fit into this process's memory at present.
pub(super) fn no_memory(action: &str, path: &str) -> ToolError {
    let action = format!("{action} {}", name::shown(path));
    ToolError::from_io(&action, path, rustix::io::Errno::NOMEM.into())
        .with_hint("try again later, or change it with bash, for example with sed")
}

/// The version of a file that is too large to be held in memory.
///
/// # Errors
/// When the call ends meanwhile, or the system fails to read.
pub(super) fn version_of(file: &OpenFile, context: &Context<'_>) -> Result<Version, ToolError> {
    let mut hasher = VersionHasher::default();
    let mut buffer = vec![0; 1024 * 1024];
    loop {
        context.check()?;
        match file.fill(&mut buffer).classified()? {
            0 => return Ok(hasher.finish()),
            filled => hasher.update(&buffer[..filled]),
        }
    }
}

/// The version that a call expects, where it names one.
///
/// # Errors
/// `invalid_arguments` for what can be no version of any content.
pub(super) fn expected_version(arguments: &Payload) -> Result<Option<&str>, ToolError> {
    match EXPECTED_VERSION.get(arguments) {
        Some(expected) if !Version::is_one(expected) => Err(ToolError::invalid_arguments(format!(
            "expected_version {:?} is no version: a version is the first 12 or more of 32 \
             hexadecimal digits",
            expected.chars().take(40).collect::<String>()
        ))
        .with_hint(
            "take it from the result of read_file, edit_file or write_file, or leave it out",
        )),
        expected => Ok(expected),
    }
}

/// Refuses when a file is not at the version that the caller expects.
///
/// # Errors
/// `concurrency_conflict`, with the version that the file has.
pub(super) fn expect(
    expected: Option<&str>,
    version: Version,
    action: &str,
    path: &str,
) -> Result<(), ToolError> {
    match expected {
        Some(expected) if !version.matches(expected) => {
            let message = format!(
                "cannot {action} {}: it has been changed and is not at version {} any more",
                name::shown(path),
                expected.trim()
            );
            Err(conflict(message, path, Some(version)))
        }
        _ => Ok(()),
    }
}

/// Whether a file has been changed since a session got to know it. `version` is its present one,
/// where that is known.
pub(super) fn is_stale(known: &Knowledge, version: Option<Version>, stamp: Stamp) -> bool {
    match (known.version, version) {
        (Some(known), Some(version)) => known != version,
        _ => known.stamp != stamp,
    }
}

/// Where a change goes: the path as it was resolved, and the file there, opened from its handle.
pub(super) struct Destination<'w> {
    context: &'w Context<'w>,
    resolved: ResolvedPath<'w>,
    current: Option<OpenFile>,
}

impl<'w> Destination<'w> {
    /// Opens what is at `resolved`. Its access time stays: what is read to be changed is not used.
    fn open(
        context: &'w Context<'w>,
        resolved: ResolvedPath<'w>,
        path: &str,
    ) -> Result<Self, ToolError> {
        resolved.check_writable(&context.state.workspace, path).classified()?;
        let current = match resolved.target {
            Target::Missing { ref directories, .. } => {
                name_check::check(path, directories)?;
                None
            }
            Target::Found { .. } => {
                Some(resolved.open(path, Action::Write, AccessTime::Keep).classified()?)
            }
        };
        Ok(Self { context, resolved, current })
    }

    /// The file as it is; absent where there is none.
    pub(super) fn current(&self) -> Option<&OpenFile> {
        self.current.as_ref()
    }

    /// Where a new file is made, if a link led there.
    pub(super) fn link_notice(&self) -> Option<String> {
        let Target::Missing { link: Some(link), .. } = &self.resolved.target else { return None };
        let (link, path) = (name::of(&link.path), name::of(&self.resolved.path));
        Some(format!("{link} is a link; the new file is {path}."))
    }

    /// The file as it is.
    ///
    /// # Errors
    /// When there is none; then similar names in the same directory are named.
    pub(super) fn existing(&self, path: &str) -> Result<&OpenFile, ToolError> {
        self.current().ok_or_else(|| {
            let argument = argument(self.context, path);
            classify(self.context.state.workspace.not_found(
                &self.resolved,
                argument,
                Action::Write,
            ))
        })
    }
}

/// A file that is about to be changed, under its lock.
pub(super) struct Writing<'w> {
    pub(super) destination: Destination<'w>,
    lock: Guard,
}

/// A file that has its new content. The lock is held until this is dropped, so that the session
/// knows of the change before the next call looks at the file.
pub(super) struct Committed {
    pub(super) written: Written,
    _lock: Guard,
}

/// Locks the file at `path`, or its name where there is none, and opens it.
///
/// # Errors
/// When the path cannot be written, or the lock is not free in time.
pub(super) fn begin<'w>(context: &'w Context<'w>, path: &str) -> Result<Writing<'w>, ToolError> {
    let workspace = &context.state.workspace;
    let argument = argument(context, path);
    let (resolved, lock) = waiting(context, |wait| {
        workspace.lock_path(argument, Action::Write, Mode::Exclusive, wait)
    })?;
    Ok(Writing { destination: Destination::open(context, resolved, path)?, lock })
}

impl Writing<'_> {
    /// The path that the file has without links.
    pub(super) fn path(&self) -> &Path {
        &self.destination.resolved.path
    }

    /// Gives the file its new content. The call can be stopped while the content is put on the
    /// disk, but no longer once it takes its place.
    ///
    /// # Errors
    /// When the call was stopped, someone else changed the file since it was opened, or the system
    /// fails. Then the file is as it was.
    pub(super) fn commit(self, path: &str, content: &[&[u8]]) -> Result<Committed, ToolError> {
        let Self { destination: Destination { context, resolved, current }, lock } = self;
        let base = current.as_ref();
        let should_stop = || context.check().is_err();
        let new = Replacement { text: path, base, content, should_stop: &should_stop };
        let staged = context
            .state
            .workspace
            .stage(resolved, new)
            .map_err(|error| unless_ended(error, context))?;
        context.begin_commit()?;
        Ok(Committed { written: staged.commit().classified()?, _lock: lock })
    }
}

fn argument<'a>(context: &Context<'a>, path: &'a str) -> PathArgument<'a> {
    PathArgument { text: path, working_directory: context.working_directory }
}

/// The destination of a change for its preview: nothing is locked, and not even the access time of
/// what is there changes.
///
/// # Errors
/// As a change of the file would fail.
pub(super) fn look<'w>(context: &'w Context<'w>, path: &str) -> Result<Destination<'w>, ToolError> {
    let resolved =
        context.state.workspace.locate(argument(context, path), Action::Write).classified()?;
    let destination = Destination::open(context, resolved, path)?;
    destination.resolved.check_permitted(path).classified()?;
    Ok(destination)
}

/// A version that is not the expected one. `current` is absent where there is no file.
pub(super) fn conflict(message: String, path: &str, current: Option<Version>) -> ToolError {
    let hint = match current {
        None => "decide anew".to_owned(),
        Some(version) => format!(
            "read the file again and decide anew; its version is {} now, for expected_version",
            version.short()
        ),
    };
    let current = current.map_or(Value::Null, |version| version.to_string().into());
    ToolError::version_mismatch(message)
        .with_detail("path", path)
        .with_detail("current_version", current)
        .with_hint(hint)
}

/// Says of a call that ended early that nothing was changed.
pub(super) fn not_applied(error: ToolError) -> ToolError {
    match error.category() {
        Category::Cancelled | Category::Timeout => error.with_detail("applied", false),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_does_not_fit_into_memory_is_refused_and_one_that_does_is_not() {
        let mut content = b"old".to_vec();
        reserve(&mut content, 4096, "edit", "a.txt").unwrap();
        assert!(content.capacity() >= 4099);
        for more in [isize::MAX as usize - 3, usize::MAX - 3] {
            let error =
                reserve(&mut content, more, "edit", "a.txt").expect_err("so much is nowhere");
            assert_eq!(error.category(), Category::ExecutionFailed);
            assert!(error.is_retryable(), "{error:?}");
            assert!(error.message().contains("memory"), "{error:?}");
            assert!(error.hint().is_some_and(|hint| hint.contains("bash")), "{error:?}");
        }
        assert_eq!(content, b"old");
    }
}
