//! Edits and writes as directories, so that adding one needs no Rust.
//!
//! `tests/scenarios/NAME/` holds
//! - `call.json`: `{"tool": …, "arguments": {…}}`, paths relative to the working directory;
//! - `before/`: what that directory holds (left out where it is empty);
//! - `after/`: what it holds afterwards (left out where the call must change nothing);
//! - `preview.txt`: what Preview shows, its lines as `@@`, ` `, `+`, `-`, with CR as ␍;
//! - `outcome.txt`: the result without its diff and version, or the error's category and message.
//!
//! In the last two the working directory is called `$W`, and the root `$R`.
//!
//! For each, Preview comes first and must change nothing at all, its hunks applied to the old bytes
//! must give the new ones, and Render must show the result. With `SCENARIOS=write` in the environment
//! `after`, `preview.txt` and `outcome.txt` are made from what happens, to be read before they are
//! committed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use serde_json::Value;
use tool_provider::Call;
use tool_provider::Payload;
use tool_provider::error::without_hint;
use tool_provider::grpc::Failure;
use tool_provider::view::{DiffOp, Hunk, View};
use workspace_fs::text::encoding::{Detected, Encoding, detect};

use crate::harness::{Fixture, call};
use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    trials![every_scenario_ends_as_its_directory_says,]
}

async fn every_scenario_ends_as_its_directory_says() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut scenarios: Vec<PathBuf> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    scenarios.sort();
    assert!(scenarios.len() >= 25, "only {} scenarios", scenarios.len());
    let mut fixture = Fixture::configured().await;
    let mut wrong = Vec::new();
    for scenario in &scenarios {
        let name = scenario.file_name().unwrap().to_string_lossy().into_owned();
        if let Err(difference) = run(&mut fixture, scenario, &name).await {
            wrong.push(format!("{name}: {difference}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), scenarios.len(), wrong.join("\n"));
    fixture.end().await;
}

async fn run(fixture: &mut Fixture, scenario: &Path, name: &str) -> Result<(), String> {
    let asked: Value =
        serde_json::from_str(&fs::read_to_string(scenario.join("call.json")).unwrap()).unwrap();
    let root = fixture.path(name);
    let asked = Call {
        session_id: name.to_owned(),
        working_directory: Some(root.display().to_string()),
        ..call(asked["tool"].as_str().unwrap(), asked["arguments"].clone())
    };
    Tree::of(&scenario.join("before")).write(&root);
    let before = Tree::of(&root);

    let preview = fixture.client.preview(asked.clone()).await;
    let untouched = Tree::of(&root);
    let seen = preview.as_ref().map_or_else(|error| format!("{error}\n"), text_of);
    let (_, outcome) = fixture.client.invoke_to_end(asked.clone()).await.unwrap();
    let after = Tree::of(&root);
    let said = said(fixture, &outcome).await?;
    let redacted = |text: &str| {
        let text = text.replace(&root.display().to_string(), "$W");
        text.replace(fixture.path("").display().to_string().trim_end_matches('/'), "$R")
    };
    let (seen, said) = (redacted(&seen), redacted(&said));
    if untouched != before {
        return Err(format!("Preview changed {}", before.difference(&untouched)));
    }
    if std::env::var("SCENARIOS").is_ok_and(|mode| mode == "write") {
        let directory = scenario.join("after");
        let _ = fs::remove_dir_all(&directory);
        if after.contents() != before.contents() {
            after.write(&directory);
        }
        fs::write(scenario.join("preview.txt"), &seen).unwrap();
        fs::write(scenario.join("outcome.txt"), &said).unwrap();
    }
    same("preview.txt", &fs::read_to_string(scenario.join("preview.txt")).unwrap(), &seen)?;
    same("outcome.txt", &fs::read_to_string(scenario.join("outcome.txt")).unwrap(), &said)?;
    changed_as_reported(&scenario.join("after"), &before, &after)?;
    let path = asked.arguments["path"].as_str().unwrap();
    match (&preview, &outcome) {
        (Ok(view), Ok(_)) => {
            let (old, new) = (before.content(path), after.content(path));
            previewed(view, &old, &new)
        }
        (Ok(view), Err(failure)) => {
            let seen = text_of(view);
            let reason = without_hint(&failure.message, failure.hint());
            let is_mentioned = seen.contains(reason);
            is_mentioned
                .then_some(())
                .ok_or(format!("Preview does not mention the failure: {seen}"))
        }
        (Err(_), Ok(_)) => Err("Preview refused what was done".to_owned()),
        _ => Ok(()),
    }
}

/// The outcome as `outcome.txt` has it. A result must also be rendered.
async fn said(fixture: &mut Fixture, outcome: &Result<Payload, Failure>) -> Result<String, String> {
    let payload = match outcome {
        Ok(payload) => payload,
        Err(failure) => return Ok(format!("{}: {}\n", failure.category, failure.message)),
    };
    let bare = serde_json::to_vec(payload).unwrap();
    let rendered = text_of(&fixture.client.render("json", bare).await.unwrap());
    if !["Edited", "Created", "Wrote"].iter().any(|verb| rendered.starts_with(verb)) {
        return Err(format!("rendered as {rendered}"));
    }
    let mut text = String::new();
    for (name, value) in payload {
        if !["diff", "version"].contains(&name.as_str()) {
            writeln!(text, "{name}: {value}").unwrap();
        }
    }
    Ok(text)
}

/// Whether the directory is now as `expected` has it; without that nothing may have changed.
fn changed_as_reported(expected: &Path, before: &Tree, after: &Tree) -> Result<(), String> {
    if expected.exists() {
        let expected = Tree::of(expected);
        if expected.contents() != after.contents() {
            return Err(format!("after differs in {}", expected.difference(after)));
        }
    } else if after != before {
        // Not even the times.
        return Err(format!("it changed {}", before.difference(after)));
    }
    Ok(())
}

fn same(what: &str, expected: &str, found: &str) -> Result<(), String> {
    if expected == found {
        return Ok(());
    }
    Err(format!("{what} should be\n{expected}\nbut is\n{found}"))
}

/// Applies the hunks of a preview to the old bytes, by nothing but the rule that lines are
/// separated by LF.
fn previewed(view: &View, old: &[u8], new: &[u8]) -> Result<(), String> {
    let text = |bytes: &[u8]| match (detect(bytes), detect(new)) {
        // Nobody is shown the lines of a binary file.
        (Detected::Binary { .. }, _) => String::new(),
        // A mark that goes is shown as the character that it is.
        (Detected::Text(Encoding::Utf8Bom), Detected::Text(Encoding::Utf8)) => {
            Encoding::Utf8.decode(bytes).into_owned()
        }
        (Detected::Text(encoding), _) => {
            encoding.decode(&bytes[encoding.bom().len()..]).into_owned()
        }
    };
    let (old, new) = (text(old), text(new));
    let mut hunks = Vec::new();
    collect_hunks(view, &mut hunks);
    let old_lines: Vec<&str> = if old.is_empty() { Vec::new() } else { old.split('\n').collect() };
    let (mut lines, mut at) = (Vec::new(), 0);
    for hunk in hunks {
        let start = hunk.old_start as usize - usize::from(hunk.old_lines > 0);
        lines.extend_from_slice(&old_lines[at..start]);
        at = start;
        for line in &hunk.lines {
            if line.op != DiffOp::Add {
                if old_lines[at] != line.text {
                    return Err(format!("a hunk has {:?} for {:?}", line.text, old_lines[at]));
                }
                at += 1;
            }
            if line.op != DiffOp::Remove {
                lines.push(&line.text);
            }
        }
    }
    lines.extend_from_slice(&old_lines[at.min(old_lines.len())..]);
    let mut made = lines.join("\n");
    if old.is_empty() && !text_of(view).contains("no newline at the end") && !made.is_empty() {
        made.push('\n');
    }
    same("the old text with the previewed hunks", &new, &made)
}

fn collect_hunks<'v>(view: &'v View, hunks: &mut Vec<&'v Hunk>) {
    match view {
        View::Diff(found) => hunks.extend(found),
        View::Group(views) | View::Collapsible { children: views, .. } => {
            views.iter().for_each(|view| collect_hunks(view, hunks));
        }
        _ => {}
    }
}

/// A view as plain text.
fn text_of(view: &View) -> String {
    match view {
        View::Text { content, .. } | View::Code { content, .. } => format!("{content}\n"),
        View::Diff(hunks) => hunks.iter().fold(String::new(), |mut text, hunk| {
            let Hunk { old_start, old_lines, new_start, new_lines, lines } = hunk;
            writeln!(text, "@@ -{old_start},{old_lines} +{new_start},{new_lines} @@").unwrap();
            for line in lines {
                let marker = match line.op {
                    DiffOp::Context => ' ',
                    DiffOp::Add => '+',
                    DiffOp::Remove => '-',
                };
                writeln!(text, "{marker}{}", line.text.replace('\r', "␍")).unwrap();
            }
            text
        }),
        View::Group(views) | View::Collapsible { children: views, .. } => {
            views.iter().map(text_of).collect()
        }
        other => format!("{other:?}\n"),
    }
}

/// All that is in a directory: contents and link targets, and beside them the facts that only a change
/// changes.
#[derive(Debug, PartialEq, Eq)]
struct Tree {
    entries: BTreeMap<PathBuf, (Entry, [i64; 7])>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    Directory,
    Link(PathBuf),
    File { content: Vec<u8>, executable: bool },
}

impl Tree {
    fn of(root: &Path) -> Self {
        let mut entries = BTreeMap::new();
        let mut directories = vec![root.to_owned()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(&directory).into_iter().flatten() {
                let path = entry.unwrap().path();
                let facts = fs::symlink_metadata(&path).unwrap();
                let entry = if facts.is_dir() {
                    directories.push(path.clone());
                    Entry::Directory
                } else if facts.is_symlink() {
                    Entry::Link(fs::read_link(&path).unwrap())
                } else {
                    let executable = facts.permissions().mode() & 0o111 != 0;
                    Entry::File { content: read_quietly(&path), executable }
                };
                let facts = [
                    facts.ino().cast_signed(),
                    i64::from(facts.mode()),
                    facts.mtime(),
                    facts.mtime_nsec(),
                    facts.ctime(),
                    facts.ctime_nsec(),
                    // Reading a directory's entries or a link, here or there, may touch their times.
                    if facts.is_file() { facts.atime_nsec() } else { 0 },
                ];
                entries.insert(path.strip_prefix(root).unwrap().to_owned(), (entry, facts));
            }
        }
        Self { entries }
    }

    /// Makes the same below another directory.
    fn write(&self, root: &Path) {
        fs::create_dir_all(root).unwrap();
        for (path, (entry, _)) in &self.entries {
            let path = root.join(path);
            match entry {
                Entry::Directory => fs::create_dir(path).unwrap(),
                Entry::Link(target) => std::os::unix::fs::symlink(target, path).unwrap(),
                Entry::File { content, executable } => {
                    fs::write(&path, content).unwrap();
                    let mode = if *executable { 0o755 } else { 0o644 };
                    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
                }
            }
        }
    }

    fn contents(&self) -> BTreeMap<&PathBuf, &Entry> {
        self.entries.iter().map(|(path, (entry, _))| (path, entry)).collect()
    }

    /// The content behind a path, links followed; nothing where there is no file.
    fn content(&self, path: &str) -> Vec<u8> {
        let mut path = PathBuf::from(path);
        for _ in 0..10 {
            match self.entries.get(&path).map(|(entry, _)| entry) {
                Some(Entry::File { content, .. }) => return content.clone(),
                Some(Entry::Link(target)) => {
                    path = path.parent().unwrap_or(Path::new("")).join(target);
                }
                _ => break,
            }
        }
        Vec::new()
    }

    fn difference(&self, other: &Self) -> String {
        let paths: BTreeSet<&PathBuf> = self.entries.keys().chain(other.entries.keys()).collect();
        paths
            .into_iter()
            .filter(|path| self.entries.get(*path) != other.entries.get(*path))
            .map(|path| {
                let (here, there) = (self.entries.get(path), other.entries.get(path));
                format!("{}: {here:?} and {there:?}", path.display())
            })
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// Reads a file and leaves its access time as it is, which only its owner may.
fn read_quietly(path: &Path) -> Vec<u8> {
    let open = |flags| rustix::fs::open(path, OFlags::RDONLY | flags, Mode::empty());
    let file = match open(OFlags::NOATIME) {
        Err(rustix::io::Errno::PERM) => open(OFlags::empty()),
        opened => opened,
    };
    let file = file.unwrap();
    let mut content = Vec::new();
    fs::File::from(file).read_to_end(&mut content).unwrap();
    content
}
