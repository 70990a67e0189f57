//! What a search gave, as the fields of a result.

use serde_json::Value;

use super::{Arguments, spec};
use crate::field::{Details, NOTICE};
use crate::{ignore_files, wildcards};
use tool_provider::Payload;
use workspace_fs::tree::{Counts, Skip};

/// What a search gave.
pub(super) struct Outcome {
    /// As the result has them.
    pub(super) paths: Vec<Value>,
    /// Whether there is more, and where it begins.
    pub(super) more: More,
    /// How many there are, where all were looked at.
    pub(super) total: Option<usize>,
    pub(super) counts: Counts,
    /// The first few directories that could not be read.
    pub(super) unreadable: Vec<String>,
    /// Why there was nowhere to start.
    pub(super) no_start: Option<String>,
}

/// Up to how many paths an answer is one where what was left out matters.
const FEW: usize = 3;

/// What comes behind a page.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum More {
    Nothing,
    /// More, from this offset on.
    From(usize),
    /// Time was up. What was found until then is in order up to this offset.
    Unknown(Option<usize>),
}

impl Outcome {
    /// Adds the fields of the result.
    pub(super) fn put(self, payload: &mut Payload, arguments: &Arguments<'_>) {
        let notice = self.notice(arguments);
        if let More::From(offset) | More::Unknown(Some(offset)) = self.more {
            spec::NEXT_OFFSET.put(payload, offset);
        }
        match arguments.details {
            Details::All => spec::PATHS.put(payload, self.paths),
            Details::Few => spec::FOUND.put(payload, self.paths),
        }
        NOTICE.put_some(payload, notice);
    }

    /// What the caller should know beyond the fields.
    fn notice(&self, arguments: &Arguments<'_>) -> Option<String> {
        let mut notices = Vec::new();
        notices.extend(arguments.pattern.named.as_deref().map(wildcards::taken_literally));
        let ignored = self.counts.ignored;
        match self.total {
            Some(0) => {
                match &self.no_start {
                    Some(why) => notices.push(format!("Nothing matches: {why}")),
                    None => notices.push("Nothing matches.".to_owned()),
                }
                if let Some(remedy) = wildcards::remedy(arguments.text) {
                    notices.push(remedy.to_owned());
                } else if self.no_start.is_none()
                    && arguments.text.contains('/')
                    && !arguments.text.contains("**")
                {
                    notices.push(
                        "A pattern with a slash is about paths from the start: **/ before it looks \
                         in any directory."
                            .to_owned(),
                    );
                }
            }
            Some(total) if self.paths.is_empty() => notices.push(format!(
                "Nothing to list: offset {} is past the last of {}.",
                arguments.page.offset,
                counted(total as u64, "match", "matches")
            )),
            _ => {}
        }
        match self.more {
            More::Nothing | More::From(_) => {}
            More::Unknown(Some(_)) => notices.push(
                "Time was up before everything was looked at; go on with next_offset, or start deeper."
                    .to_owned(),
            ),
            More::Unknown(None) => notices.push(
                "Time was up before everything was looked at, so some that belong first may be \
                 missing: start deeper."
                    .to_owned(),
            ),
        }
        notices.extend(ignore_files::cut(self.counts));
        if self.paths.len() > FEW || self.more != More::Nothing {
            return joined(&notices);
        }
        if ignored > 0 && self.total.is_some() {
            notices.push(format!(
                "Ignore rules left out {}; include_ignored: true lists them.",
                counted(ignored, "file or directory", "files or directories")
            ));
        }
        let unreadable = self.counts.skipped(Skip::Unreadable);
        if unreadable > 0 {
            let etc = if unreadable > self.unreadable.len() as u64 { ", …" } else { "" };
            notices.push(format!(
                "{} could not be read: {}{etc}.",
                counted(unreadable, "directory", "directories"),
                self.unreadable.join(", ")
            ));
        }
        joined(&notices)
    }
}

/// Whether a result lists nothing, and nothing is left to be looked at.
pub(super) fn is_empty(payload: &Payload) -> bool {
    [spec::FOUND, spec::PATHS].iter().all(|list| list.get(payload).is_none_or(<[_]>::is_empty))
        && spec::NEXT_OFFSET.get(payload).is_none()
}

fn joined(notices: &[String]) -> Option<String> {
    (!notices.is_empty()).then(|| notices.join(" "))
}

fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
