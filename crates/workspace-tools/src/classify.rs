//! Errors of the file system in the tools' own error taxonomy.

use rustix::io::Errno;

use workspace_fs::text::name;
use workspace_fs::{Action, Fault, WorkspaceError};

use tool_provider::ToolError;
use tool_provider::error::LONGEST_PATH;
use tool_provider::shorten::shorten;
use workspace_fs::text::hidden::one_line;

/// What the file system refused, in the tools' taxonomy.
pub(crate) trait Classify {
    /// What it holds when nothing was refused.
    type Done;

    /// The same with the failure classified.
    fn classified(self) -> Result<Self::Done, ToolError>;
}

impl<T> Classify for Result<T, WorkspaceError> {
    type Done = T;

    fn classified(self) -> Result<T, ToolError> {
        self.map_err(classify)
    }
}

pub(crate) fn classify(mut error: WorkspaceError) -> ToolError {
    // The path comes from the caller, and what is said about it stands behind it.
    error.path = shorten(&error.path, LONGEST_PATH).into_owned();
    let message = one_line(&error.to_string()).into_owned();
    let hint = error.hint();
    let path = error.path.clone();
    let resolved = error.resolved.as_ref().map(|path| name::of(path).into_owned());
    let mut new = match *error.fault {
        Fault::NoPath(_) if path.is_empty() => ToolError::invalid_arguments(
            "path is empty: name a file or directory, absolute or relative to the working directory, \
             which itself is .",
        ),
        Fault::NoPath(_) => ToolError::invalid_arguments(message),
        Fault::Outside { .. } | Fault::WorkingDirectoryOutside { .. } | Fault::MagicLink(_) => {
            denied(message, Errno::ACCESS, error.action)
        }
        Fault::ReadOnly { .. } => denied(message, Errno::ROFS, error.action),
        Fault::Protected => {
            denied(message, Errno::ROFS, error.action).with_detail("setting", "protect")
        }
        Fault::NotFound { near, .. } => {
            let new = ToolError::not_found(message);
            if near.is_empty() { new } else { new.with_detail("similar", near) }
        }
        Fault::NotADirectory(_)
        | Fault::IsDirectory
        | Fault::Special(_)
        | Fault::TooManyLinks(_) => ToolError::execution_failed(message),
        Fault::Locked(_) => ToolError::lock_busy(message),
        Fault::Changed => ToolError::race(message),
        Fault::Stopped => ToolError::cancelled(message),
        Fault::Shared { .. } => ToolError::execution_failed(message),
        Fault::Torn { recovery, source } => {
            let action = format!("{} {}", error.action, name::shown(&path));
            ToolError::from_io(&action, &path, source)
                .with_message(message)
                .with_detail("recovery", name::of(&recovery))
        }
        Fault::Barred { source, .. } | Fault::System(source) => {
            let action = format!("{} {}", error.action, name::shown(&path));
            ToolError::from_io(&action, &path, source)
        }
    };
    new = new.with_path("path", &path);
    if let Some(resolved) = resolved {
        new = new.with_path("resolved_path", &resolved);
    }
    match hint {
        Some(hint) => new.with_hint(hint),
        None => new,
    }
}

/// A refusal of ours, in the terms of the system call that was not made.
fn denied(message: String, errno: Errno, action: Action) -> ToolError {
    let (right, setting) = match action {
        Action::Read | Action::List | Action::Inspect => ("read", "roots or read_only_roots"),
        Action::Write => ("write", "roots"),
    };
    ToolError::permission_denied(message)
        .with_detail("errno", errno.raw_os_error())
        .with_detail("missing_right", right)
        .with_detail("setting", setting)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tool_provider::Category;
    use workspace_fs::{PathArgument, RootsSpec, Workspace};

    #[test]
    fn an_error_keeps_its_category_and_says_what_to_do() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().display().to_string();
        let spec = RootsSpec { roots: vec![root], ..RootsSpec::default() };
        let workspace = Workspace::open(&spec).unwrap();
        let read = |text: &str| {
            let path = PathArgument { text, working_directory: None };
            let error = workspace.open_file(path, workspace_fs::AccessTime::Touch).unwrap_err();
            classify(error)
        };
        for (path, category) in [
            ("", Category::InvalidArguments),
            ("/etc/passwd", Category::PermissionDenied),
            ("none", Category::NotFound),
            (".", Category::ExecutionFailed),
        ] {
            let error = read(path);
            assert_eq!((error.category(), error.is_retryable()), (category, false), "{error}");
            assert_eq!(error.details()["path"], path);
        }
        let long = read(&"x".repeat(300));
        assert_eq!(long.details()["errno"], 36);
        assert!(read("none").hint().is_some());
        let endless = read(&"x".repeat(1 << 20));
        assert!(endless.message().ends_with("file name too long"), "{endless}");
        assert!(
            endless.message().len() < 5000 && endless.details()["path"].to_string().len() < 5000
        );
    }
}
