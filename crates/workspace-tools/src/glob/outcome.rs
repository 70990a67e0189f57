//! What a search gave, as the fields of a result.

use serde_json::Value;

use super::{Arguments, spec};
use crate::field::NOTICE;
use crate::ignore_files;
use tool_provider::Payload;
use workspace_fs::tree::{Counts, Skip};

/// What a search gave.
pub(super) struct Outcome {
    pub(super) paths: Vec<Value>,
    /// Whether there is more, and where it begins.
    pub(super) more: More,
    /// How many there are, where all were looked at.
    pub(super) total: Option<usize>,
    pub(super) counts: Counts,
    /// The first few directories that could not be read.
    pub(super) unreadable: Vec<String>,
}

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
        spec::TRUNCATED.put(payload, self.more != More::Nothing);
        if let More::From(offset) | More::Unknown(Some(offset)) = self.more {
            spec::NEXT_OFFSET.put(payload, offset);
        }
        spec::PATHS.put(payload, self.paths);
        NOTICE.put_some(payload, notice);
    }

    /// What the caller should know beyond the fields.
    fn notice(&self, arguments: &Arguments<'_>) -> Option<String> {
        let mut notices = Vec::new();
        let ignored = self.counts.ignored;
        match self.total {
            Some(0) => {
                notices.push("Nothing matches.".to_owned());
                if arguments.text.contains('/') && !arguments.text.contains("**") {
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
            More::Nothing => {}
            More::From(offset) => {
                notices.push(format!("There are more; go on with offset {offset}."));
            }
            More::Unknown(Some(offset)) => notices.push(format!(
                "Time was up before everything was looked at; go on with offset {offset}, or start \
                 deeper."
            )),
            More::Unknown(None) => notices.push(
                "Time was up before everything was looked at, so the newest may be missing: start \
                 deeper."
                    .to_owned(),
            ),
        }
        if ignored > 0 && self.total.is_some() {
            notices.push(format!(
                "Ignore rules left out {}; include_ignored: true, or a pattern or path that spells \
                 one out, finds them.",
                counted(ignored, "file or directory", "files or directories")
            ));
        }
        notices.extend(ignore_files::cut(self.counts));
        let unreadable = self.counts.skipped(Skip::Unreadable);
        if unreadable > 0 {
            let etc = if unreadable > self.unreadable.len() as u64 { ", …" } else { "" };
            notices.push(format!(
                "{} could not be read: {}{etc}.",
                counted(unreadable, "directory", "directories"),
                self.unreadable.join(", ")
            ));
        }
        (!notices.is_empty()).then(|| notices.join(" "))
    }
}

fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
