//! Makes real edits into calls: each hunk of each commit of a repository is one exact replacement,
//! with the least context that makes it the only one in its file. Counts what applies, what is
//! refused and why, and whether the bytes are the commit's.
//!
//! `cargo bench --bench replay` does it with this repository's own history; `REPLAY_REPOSITORY` names
//! another one, `REPLAY_COMMITS` how many of the newest commits.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a bench prepares its own files and prints its table"
)]

mod measurement;
#[expect(dead_code, reason = "this bench takes no times")]
mod running;

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use goplugin::host::Security;
use serde_json::json;
use tool_provider::grpc::ToolClient;

use measurement::{Goal, Measurement};
use running::{Outcome, call, launch};

/// How many commits are replayed where nothing says so.
const COMMITS: &str = "500";

fn main() -> Outcome<()> {
    let named = std::env::var_os("REPLAY_REPOSITORY").map(PathBuf::from);
    let repository = named.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let most = std::env::var("REPLAY_COMMITS").unwrap_or_else(|_| COMMITS.to_owned());
    let directory = tempfile::tempdir()?;
    let root = directory.path().join("root");
    fs::create_dir(&root)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let counts = runtime.block_on(async {
        let (plugin, mut client) = launch(directory.path(), &root, Security::Plain).await?;
        let mut counts = Counts::default();
        for change in changes(&repository, &most)? {
            replay(&mut client, &root, &repository, &change, &mut counts).await?;
        }
        plugin.kill().await;
        Outcome::Ok(counts)
    })?;
    counts.print();
    Ok(())
}

/// A file that a commit changed: its content before and after, as git names them.
struct Change {
    old: String,
    new: String,
}

#[derive(Default)]
struct Counts {
    files: usize,
    /// Files that no exact edit of text can change: binary ones, and those in no UTF-8.
    not_text: usize,
    files_equal: usize,
    hunks: usize,
    applied: usize,
    /// How often each reason was given for a refusal.
    refused: BTreeMap<String, usize>,
}

impl Counts {
    fn print(&self) {
        println!(
            "{} files changed ({} more are not text), {} hunks, {} applied",
            self.files, self.not_text, self.hunks, self.applied
        );
        for (reason, count) in &self.refused {
            println!("refused {count}: {reason}");
        }
        let all = |name, value: usize, peer, of: usize, unit| {
            let (value, of) = (value as f64, of as f64);
            let goal = Goal::RatioAtLeast(1.0);
            Measurement { name, value, unit, peer: Some((peer, of)), goal }.print();
        };
        all("hunks that apply", self.applied, "all", self.hunks, "hunks");
        all("files that have the commit's bytes", self.files_equal, "all", self.files, "files");
    }
}

/// The files that were changed, and neither made nor removed, by the newest commits.
fn changes(repository: &Path, most: &str) -> Outcome<Vec<Change>> {
    let arguments =
        ["log", "--no-merges", "--no-renames", "--diff-filter=M", "--raw", "--no-abbrev"];
    let count = format!("--max-count={most}");
    let log = git(repository, &[&arguments[..], &["--format=", &count]].concat())?;
    let log = String::from_utf8_lossy(&log).into_owned();
    // `:100644 100644 OLD NEW M\tPATH`
    let lines = log.lines().filter_map(|line| line.strip_prefix(':'));
    Ok(lines
        .filter_map(|line| match line.split([' ', '\t']).collect::<Vec<_>>()[..] {
            ["100644" | "100755", "100644" | "100755", old, new, ..] => {
                Some(Change { old: old.to_owned(), new: new.to_owned() })
            }
            _ => None,
        })
        .collect())
}

fn git(repository: &Path, arguments: &[&str]) -> Outcome<Vec<u8>> {
    let output = Command::new("git").arg("-C").arg(repository).args(arguments).output()?;
    if !output.status.success() {
        return Err(format!("git: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(output.stdout)
}

/// One change of lines: those that go, counted in the old file, and the text that comes.
struct Hunk {
    lines: Range<usize>,
    text: String,
}

async fn replay(
    client: &mut ToolClient,
    root: &Path,
    repository: &Path,
    change: &Change,
    counts: &mut Counts,
) -> Outcome<()> {
    let old = git(repository, &["cat-file", "blob", &change.old])?;
    let new = git(repository, &["cat-file", "blob", &change.new])?;
    if old == new {
        return Ok(());
    }
    let (Ok(mut text), Ok(new_text)) = (String::from_utf8(old), String::from_utf8(new.clone()))
    else {
        counts.not_text += 1;
        return Ok(());
    };
    counts.files += 1;
    let path = root.join("file.txt");
    fs::write(&path, &text)?;
    let mut hunks = hunks(repository, change, &new_text)?;
    // From the end on, so that the places of those that are left hold.
    hunks.reverse();
    for hunk in hunks {
        counts.hunks += 1;
        let (old_string, new_string) = replacement(&text, &hunk);
        let arguments =
            json!({ "path": path, "old_string": lf(&old_string), "new_string": lf(&new_string) });
        let (_, outcome) = client.invoke_to_end(call("edit_file", arguments)).await?;
        match outcome {
            Ok(_) => counts.applied += 1,
            Err(failure) => {
                let reason = failure.message.lines().next().unwrap_or_default().to_owned();
                *counts.refused.entry(reason).or_default() += 1;
            }
        }
        text = fs::read_to_string(&path)?;
    }
    if fs::read(&path)? == new {
        counts.files_equal += 1;
    }
    Ok(())
}

/// Calls write line breaks as LF, whatever the file has.
fn lf(text: &str) -> String {
    text.replace("\r\n", "\n")
}

/// The hunks of a change without context, as git finds them.
fn hunks(repository: &Path, change: &Change, new: &str) -> Outcome<Vec<Hunk>> {
    let arguments =
        ["diff", "--no-color", "--no-ext-diff", "--text", "-U0", &change.old, &change.new];
    let diff = git(repository, &arguments)?;
    let new_lines: Vec<&str> = new.split_inclusive('\n').collect();
    let mut hunks = Vec::new();
    for line in String::from_utf8_lossy(&diff).lines() {
        // `@@ -12,2 +12,3 @@`; a count of none stands for the place behind that line.
        let Some((ranges, _)) = line.strip_prefix("@@ -").and_then(|rest| rest.split_once(" @@"))
        else {
            continue;
        };
        let (old, new) = ranges.split_once(" +").ok_or("no second range in a hunk")?;
        let text = new_lines[lines_of(new)?].concat();
        hunks.push(Hunk { lines: lines_of(old)?, text });
    }
    Ok(hunks)
}

fn lines_of(range: &str) -> Outcome<Range<usize>> {
    let (first, count) = range.split_once(',').unwrap_or((range, "1"));
    let (first, count): (usize, usize) = (first.parse()?, count.parse()?);
    let start = if count == 0 { first } else { first - 1 };
    Ok(start..start + count)
}

/// What to replace by what: the hunk with as many lines around it as make it the only one.
fn replacement(text: &str, hunk: &Hunk) -> (String, String) {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let (mut start, mut end) = (hunk.lines.start, hunk.lines.end.min(lines.len()));
    loop {
        let old = lines[start..end].concat();
        let is_whole = start == 0 && end == lines.len();
        if is_whole || (!old.is_empty() && occurs_once(text, &old)) {
            let before = lines[start..hunk.lines.start].concat();
            let after = lines[hunk.lines.end.min(lines.len())..end].concat();
            return (old, format!("{before}{}{after}", hunk.text));
        }
        start = start.saturating_sub(1);
        end = (end + 1).min(lines.len());
    }
}

/// Also where occurrences overlap.
fn occurs_once(text: &str, wanted: &str) -> bool {
    let Some(first) = text.find(wanted) else { return false };
    let next = first + text[first..].chars().next().map_or(1, char::len_utf8);
    !text[next..].contains(wanted)
}
