//! What a caller should know of a search beyond the fields of its result.

use super::arguments::{Arguments, Mode};
use super::report::Listed;
use super::search::{MOST_LINE, MOST_MULTILINE};
use super::{Counts, Named, SearchOutcome, Skip};
use crate::{ignore_files, wildcards};
use workspace_fs::FileKind;
use workspace_fs::text::hidden::one_line;

/// Everything that the notice of a search reports.
pub(super) struct SearchReport<'a> {
    pub(super) listed: &'a Listed,
    pub(super) arguments: &'a Arguments<'a>,
    pub(super) outcome: &'a SearchOutcome,
    pub(super) counts: Counts,
    pub(super) named: &'a Named,
    pub(super) start: FileKind,
}

/// Up to how many entries an answer is one where what was left out matters.
const FEW: usize = 3;
/// How many files of those that were left out are named.
const NAMED: usize = 4;

impl SearchReport<'_> {
    /// The sentences, if there is anything to say.
    pub(super) fn notice(&self) -> Option<String> {
        let mut notices = Vec::new();
        notices.extend(self.arguments.named.as_deref().map(wildcards::taken_literally));
        notices.extend(self.end());
        let is_all = matches!(self.outcome, SearchOutcome::All);
        if is_all {
            notices.extend(self.nothing());
        }
        notices.extend(ignore_files::cut(self.counts));
        let is_past = self.listed.count == 0 && self.listed.seen > 0;
        let is_file = self.start != FileKind::Directory;
        // Of many hits none is missed.
        if is_past || (self.listed.count > FEW && !is_file) {
            return joined(&notices);
        }
        if is_all {
            notices.extend(self.ignored());
        }
        // Nearly every tree has some.
        if self.listed.count == 0 || is_file {
            notices.extend(
                self.skipped(Skip::Binary, "searched up to the first NUL byte only (binary)"),
            );
        }
        let too_large = match self.arguments.wanted.multiline {
            true => format!(
                "not searched because multiline takes files up to {} MiB",
                MOST_MULTILINE >> 20
            ),
            false => format!("searched up to a line over {} MiB only", MOST_LINE >> 20),
        };
        notices.extend(self.skipped(Skip::TooLarge, &too_large));
        notices.extend(self.skipped(Skip::Unreadable, "not searched because it cannot be read"));
        joined(&notices)
    }

    fn end(&self) -> Option<String> {
        match self.outcome {
            SearchOutcome::All | SearchOutcome::Full(_) => None,
            SearchOutcome::Stopped(open) => {
                let searched = match open {
                    Some(path) if !path.is_empty() => {
                        let path = self.listed.prefix.join(path);
                        format!(
                            "all files before {} were searched, and some behind",
                            one_line(&path)
                        )
                    }
                    _ => "some files were searched".to_owned(),
                };
                Some(format!(
                    "Partial: time was up after {} files; {searched}. Search a narrower path, glob or \
                     type for the rest.",
                    self.counts.searched
                ))
            }
        }
    }

    /// Why the list is empty.
    fn nothing(&self) -> Option<String> {
        if self.listed.count > 0 {
            return None;
        }
        if self.listed.seen > 0 {
            let seen = self.listed.seen;
            let is_capped =
                self.arguments.mode == Mode::Content && self.start == FileKind::Directory;
            let cap = if is_capped { ", counted up to max_per_file of each file" } else { "" };
            return Some(format!(
                "Nothing to show: offset {} is past the last of {seen} {}{cap}.",
                self.arguments.page.offset,
                match self.arguments.mode {
                    Mode::Content if seen == 1 => "match",
                    Mode::Content => "matches",
                    Mode::Files | Mode::Count if seen == 1 => "file",
                    Mode::Files | Mode::Count => "files",
                }
            ));
        }
        let nothing = match (self.counts.searched, self.arguments.is_filtered) {
            (0, true) => {
                let why = "No match, and no file was searched: none fits glob and type.";
                let remedy = |glob| wildcards::remedy(glob).or_else(|| of_a_name(glob));
                match self.arguments.glob.and_then(remedy) {
                    Some(remedy) => format!("{why} {remedy}"),
                    None => why.to_owned(),
                }
            }
            (0, false) => "No match: there was no file to search.".to_owned(),
            (1, _) => "No match in 1 file.".to_owned(),
            (searched, _) => format!("No match in {searched} files."),
        };
        Some(match self.foreign_syntax() {
            Some(remedy) => format!("{nothing} {remedy}"),
            None => nothing,
        })
    }

    /// What to say of a pattern that found nothing and is written as JSON or `grep` without `-E` takes it.
    fn foreign_syntax(&self) -> Option<&'static str> {
        let wanted = &self.arguments.wanted;
        if wanted.pattern.contains('\u{8}') {
            return Some(
                "The pattern holds a backspace: in JSON a word boundary is written \\\\b.",
            );
        }
        (!wanted.fixed_strings && wanted.pattern.contains("\\|")).then_some(
            "In pattern \\| is the character |; alternatives are parted by | without a backslash.",
        )
    }

    fn ignored(&self) -> Option<String> {
        let what = match self.counts.ignored {
            0 => return None,
            1 => "1 file or directory".to_owned(),
            count => format!("{count} files or directories"),
        };
        Some(format!("Ignore rules left out {what}; include_ignored: true searches them."))
    }

    fn skipped(&self, skip: Skip, why: &str) -> Option<String> {
        let count = self.counts.skipped(skip);
        if count == 0 {
            return None;
        }
        let shown = usize::try_from(count).unwrap_or(usize::MAX);
        let mut names: Vec<String> = (self.named.first(skip).iter().take(shown.min(NAMED)))
            .map(|path| one_line(&self.listed.prefix.join(path)).into_owned())
            .collect();
        if shown > names.len() {
            names.push(format!("{} more", shown - names.len()));
        }
        let why = if count == 1 { why.to_owned() } else { why.replace("it cannot", "they cannot") };
        Some(format!("{} {why}.", list(&names)).replacen("  ", " ", 1))
    }
}

/// What to say of a glob without wildcards that fits no file.
fn of_a_name(glob: &str) -> Option<&'static str> {
    let is_name = !glob.contains(['*', '?', '[', '{', '!']);
    is_name.then_some("Without a wildcard, glob names a file; a directory is given as path.")
}

fn joined(notices: &[String]) -> Option<String> {
    (!notices.is_empty()).then(|| notices.join(" "))
}

fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => format!("{one} was"),
        [most @ .., last] => format!("{} and {last} were", most.join(", ")),
    }
}
