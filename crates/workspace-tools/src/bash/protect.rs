//! Protected places around a command: what it changed there, in words.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sandbox::{ExitStatus, Jail};
use workspace_fs::text::hidden::one_line;
use workspace_fs::text::name;
use workspace_fs::{Finding, Mounts, Outcome, Protection, Watched};

use super::notice::command::{Speakers, changes_settings_of_git};
use crate::Context;

/// How many paths of one kind a notice names.
const MOST_NAMED: usize = 8;

/// A command under way, with what was there before it. Dropping it sets back what the command changed.
pub(crate) struct Guarded {
    jail: Arc<Jail>,
    watched: Option<(Arc<Protection>, Watched)>,
}

/// What became of the protected places.
#[derive(Default)]
pub(crate) struct Protected {
    is_on: bool,
    findings: Vec<Finding>,
}

struct JailMounts<'a>(&'a Jail);

impl Mounts for JailMounts<'_> {
    fn stands(&self, path: &Path) -> bool {
        self.0.protects(path)
    }

    fn renew(&self, paths: &dyn Fn() -> Vec<PathBuf>) -> bool {
        self.0.mounts() && self.0.protect(&paths())
    }
}

impl Guarded {
    /// Remembers what is there, where the operator protects anything.
    pub(crate) fn begin(context: &Context<'_>, jail: &Arc<Jail>, cwd: &Path) -> Self {
        let watched = context.state.workspace.protection().map(|protection| {
            let watched = protection.begin(cwd, &JailMounts(jail));
            (protection.clone(), watched)
        });
        Self { jail: jail.clone(), watched }
    }

    /// Compares, sets back and logs, once no process of the command is left.
    pub(crate) fn end(mut self) -> Protected {
        self.finish()
    }

    fn finish(&mut self) -> Protected {
        let Some((protection, watched)) = self.watched.take() else { return Protected::default() };
        let findings = protection.end(watched, &JailMounts(&self.jail));
        for Finding { path, outcome } in &findings {
            tracing::warn!(path = %path.display(), "a command changed what programs outside obey: {outcome}");
        }
        Protected { is_on: true, findings }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Protected {
    /// What a person or a model should know.
    pub(crate) fn notices(
        &self,
        status: Option<ExitStatus>,
        command: &str,
        output: &str,
    ) -> Vec<String> {
        let mut notices = Vec::new();
        let mut set_back = Vec::new();
        let mut told = Vec::new();
        for Finding { path, outcome } in &self.findings {
            let shown = name::of(path);
            match outcome {
                Outcome::SetBack { .. } => set_back.push(match outcome {
                    Outcome::SetBack { kept: Some(kept) } => {
                        format!("{shown} (now in {})", name::of(kept))
                    }
                    _ => shown.into_owned(),
                }),
                Outcome::NotSetBack { .. } => notices.push(format!(
                    "{shown} was changed by the command and could NOT be set back ({}): git outside \
                     runs what it says, so a person has to look at it first",
                    one_line(&outcome.to_string())
                )),
                Outcome::ReplacedOutside => notices.push(format!(
                    "{shown} was replaced from outside while a command ran, and is left as it is; commands \
                     could write to it since, so a person should look at it before git is used outside"
                )),
                Outcome::Gone => notices.push(format!(
                    "{shown} is gone from its place: it was removed or moved away"
                )),
                Outcome::Told => told.push(shown.into_owned()),
            }
        }
        if !set_back.is_empty() {
            notices.push(format!(
                "set back, because git outside runs what it says and the operator protects it \
                 (protect = \"git\"; only the operator can change that): {}",
                listed(&set_back)
            ));
        }
        if !told.is_empty() {
            notices.push(format!(
                "programs outside obey what this command made or changed; a person should look at it \
                 before using them there: {}",
                listed(&told)
            ));
        }
        let speakers = Speakers::of(command);
        let lines = || output.lines().filter(|line| speakers.say(line));
        let is_refused = match status {
            // A branch that could not be told what it follows needs no word: all else went well.
            Some(ExitStatus::Exited(0)) => {
                changes_settings_of_git(command) && lines().any(is_refusal_of_git)
            }
            Some(_) => lines().any(is_refusal),
            None => false,
        };
        if self.is_on && set_back.is_empty() && is_refused {
            notices.push(
                "git's config and hooks cannot be changed by commands here, because git outside runs \
                 what they say: the operator protects them (protect = \"git\") and can make the change \
                 outside; `git -c NAME=VALUE` sets something for one command"
                    .to_owned(),
            );
        }
        notices
    }
}

/// Whether git itself says so, which a command that goes on and ends well may hide.
fn is_refusal_of_git(line: &str) -> bool {
    let line = line.trim();
    line.starts_with("error: could not write config file ")
        && line.contains(".git/")
        && line.ends_with(": Device or resource busy")
}

/// Whether a program says that a mount kept it from changing a protected place.
fn is_refusal(line: &str) -> bool {
    const REFUSALS: [&str; 3] =
        ["Device or resource busy", "Read-only file system", "Invalid cross-device link"];
    const PLACES: [&str; 7] = [
        ".git/config",
        ".git/hooks",
        ".git/modules/",
        ".git/info/attributes",
        "/config: ",
        "'.git'",
        ".git: ",
    ];
    REFUSALS.iter().any(|refusal| line.contains(refusal))
        && PLACES.iter().any(|place| line.contains(place))
}

fn listed(paths: &[String]) -> String {
    let more = paths.len().saturating_sub(MOST_NAMED);
    let named = paths[..paths.len() - more].join(", ");
    if more == 0 { named } else { format!("{named} and {more} more") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn protected(outcomes: Vec<(&str, Outcome)>) -> Protected {
        let finding = |(path, outcome): (&str, Outcome)| Finding { path: path.into(), outcome };
        Protected { is_on: true, findings: outcomes.into_iter().map(finding).collect() }
    }

    #[test]
    fn a_refusal_is_explained_with_the_key_and_other_failures_are_not() {
        let explains = |code, command: &str, output: &str| {
            let status = Some(ExitStatus::Exited(code));
            let notices = protected(Vec::new()).notices(status, command, output);
            notices.iter().any(|notice| notice.contains("protect = \"git\""))
        };
        let busy = "error: could not write config file .git/config: Device or resource busy";
        let set = "git config user.name x";
        assert!(explains(4, set, busy));
        assert!(explains(0, "git config user.name x || true", busy), "what comes after hides it");
        assert!(explains(0, "npm install", busy), "a script of its may run git");
        assert!(!explains(0, "git checkout -b x origin/x", busy), "it went well");
        assert!(!explains(0, "cat log; true", busy) && !explains(1, "cat log; false", busy));
        assert!(!explains(0, set, "  x: .git/config: Device or resource busy"));
        assert!(explains(1, "mv .git g", "mv: cannot move '.git' to 'g': Device or resource busy"));
        let hook = "bash: line 1: .git/hooks/x: Read-only file system";
        assert!(explains(1, "echo x >.git/hooks/x", hook));
        assert!(!explains(1, "umount /mnt", "umount: /mnt: Device or resource busy"));
        let off = Protected::default().notices(Some(ExitStatus::Exited(4)), set, busy);
        assert!(off.is_empty());
    }

    #[test]
    fn what_was_found_is_named_with_its_path() {
        let kept = Some("/state/config.1.found".into());
        let found = protected(vec![
            ("/r/.git/config", Outcome::SetBack { kept }),
            ("/r/.envrc", Outcome::Told),
            ("/r/.git", Outcome::Gone),
        ]);
        let notices = found.notices(Some(ExitStatus::Exited(0)), "", "").join("\n");
        for text in ["/r/.git/config", "/state/config.1.found", "/r/.envrc", "/r/.git is gone"] {
            assert!(notices.contains(text), "{text}: {notices}");
        }
        let many: Vec<String> = (0..20).map(|number| number.to_string()).collect();
        assert!(listed(&many).ends_with("7 and 12 more"));
    }
}
