//! Why something was refused, and which setting would grant it.

use std::path::{Path, PathBuf};

/// Who a grant or a refusal is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A file job.
    FileJob,
    /// A command.
    Command,
}

/// What was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading a file, or listing a directory.
    Read,
    /// Writing, creating, renaming or removing.
    Write,
    /// Executing a file.
    Execute,
}

/// A setting of the policy, named as the operator writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// `roots`
    Roots,
    /// `read_only_roots`
    ReadOnlyRoots,
    /// `bash_read`
    BashRead,
    /// `bash_write`
    BashWrite,
    /// `network`
    Network,
}

/// Why something was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The right that is missing: "read", "write", "execute" or "network".
    pub missing: &'static str,
    /// The setting that would grant it.
    pub setting: Setting,
    /// What to put into that setting.
    pub value: PathBuf,
    /// The granted path that holds this one but lacks the right, where there is one.
    pub within: Option<PathBuf>,
}

impl Setting {
    /// The setting's key.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Setting::Roots => "roots",
            Setting::ReadOnlyRoots => "read_only_roots",
            Setting::BashRead => "bash_read",
            Setting::BashWrite => "bash_write",
            Setting::Network => "network",
        }
    }
}

impl Access {
    /// The right's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Access::Read => "read",
            Access::Write => "write",
            Access::Execute => "execute",
        }
    }
}

impl std::fmt::Display for Explanation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.setting == Setting::Network {
            return f.write_str("the jail has no network; `network = \"allow\"` would open it");
        }
        if let Some(root) = &self.within {
            write!(f, "{} is granted without the right to {}; ", root.display(), self.missing)?;
        } else {
            write!(f, "the jail does not grant the right to {}; ", self.missing)?;
        }
        write!(f, "`{}` with {:?} would", self.setting.key(), self.value.display().to_string())
    }
}

/// A grant, reduced to what an explanation needs.
#[derive(Debug)]
pub(crate) struct Granted<'a> {
    pub(crate) path: &'a Path,
    pub(crate) writable: bool,
}

/// Explains a refusal. `None` where `grants` allow the access: then the refusal has another cause,
/// such as the file's own mode.
pub(crate) fn explain(
    grants: &[Granted<'_>],
    subject: Subject,
    access: Access,
    path: &Path,
) -> Option<Explanation> {
    let holders = || grants.iter().filter(|grant| path.starts_with(grant.path));
    let enough = match access {
        Access::Read => holders().next().is_some(),
        Access::Execute => subject == Subject::Command && holders().next().is_some(),
        Access::Write => holders().any(|grant| grant.writable),
    };
    if enough {
        return None;
    }
    let setting = match (subject, access) {
        (Subject::FileJob, Access::Read) => Setting::ReadOnlyRoots,
        (Subject::FileJob, _) => Setting::Roots,
        (Subject::Command, Access::Write) => Setting::BashWrite,
        (Subject::Command, _) => Setting::BashRead,
    };
    let within =
        holders().max_by_key(|grant| grant.path.as_os_str().len()).map(|g| g.path.to_owned());
    Some(Explanation { missing: access.name(), setting, value: path.to_owned(), within })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(subject: Subject, access: Access, path: &str) -> Option<(&'static str, Setting)> {
        let grants = [
            Granted { path: Path::new("/w"), writable: true },
            Granted { path: Path::new("/usr"), writable: false },
        ];
        explain(&grants, subject, access, Path::new(path)).map(|e| (e.missing, e.setting))
    }

    #[test]
    fn names_the_setting_that_would_grant_the_access() {
        let (file, command) = (Subject::FileJob, Subject::Command);
        assert_eq!(explained(command, Access::Read, "/home/a"), Some(("read", Setting::BashRead)));
        assert_eq!(
            explained(command, Access::Write, "/usr/bin/x"),
            Some(("write", Setting::BashWrite))
        );
        assert_eq!(explained(command, Access::Execute, "/x"), Some(("execute", Setting::BashRead)));
        assert_eq!(explained(file, Access::Read, "/x"), Some(("read", Setting::ReadOnlyRoots)));
        assert_eq!(explained(file, Access::Write, "/wide/x"), Some(("write", Setting::Roots)));
    }

    #[test]
    fn stays_silent_where_the_policy_is_not_the_cause() {
        assert_eq!(explained(Subject::FileJob, Access::Write, "/w/a"), None);
        assert_eq!(explained(Subject::Command, Access::Read, "/usr/lib"), None);
        assert_eq!(explained(Subject::Command, Access::Execute, "/w/run"), None);
    }

    #[test]
    fn says_which_grant_holds_the_path() {
        let grants = [Granted { path: Path::new("/usr"), writable: false }];
        let text = explain(&grants, Subject::Command, Access::Write, Path::new("/usr/x"))
            .map(|e| e.to_string());
        let right =
            "/usr is granted without the right to write; `bash_write` with \"/usr/x\" would";
        assert_eq!(text.as_deref(), Some(right));
    }
}
