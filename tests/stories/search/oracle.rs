//! What is found is what ripgrep finds.

use std::path::PathBuf;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use workspace_fs::text::name;

use super::{Searched, tree};
use crate::harness::Fixture;
use crate::trials::{Need, Trial};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        grep_finds_what_ripgrep_finds needs [Need::Program("rg")],
        glob_finds_what_ripgrep_lists needs [Need::Program("rg")],
    ]
}

/// What both are asked, and ripgrep's arguments beside the pattern.
type Case = (Value, &'static [&'static str]);

/// Arguments of grep, whose mode is content where it says none.
///
/// Left out is where we mean to differ: a directory that is ignored and yet named is searched by
/// its own rules alone, `**` overrides no ignore rule, a type and a glob must both fit, and a rule
/// with a slash holds in a directory beneath it also when the search starts there (ripgrep 13 loses
/// it).
fn cases() -> Vec<Case> {
    vec![
        (json!({"pattern": "needle"}), &[]),
        (json!({"pattern": "needle", "ignore_case": true}), &["-i"]),
        (json!({"pattern": "needle", "word": true}), &["-w"]),
        (json!({"pattern": "foo", "word": true, "ignore_case": true}), &["-w", "-i"]),
        (json!({"pattern": "a.b"}), &[]),
        (json!({"pattern": "a.b", "fixed_strings": true}), &["-F"]),
        (json!({"pattern": "(a)", "fixed_strings": true}), &["-F"]),
        (json!({"pattern": "$end", "fixed_strings": true, "word": true}), &["-F", "-w"]),
        (json!({"pattern": "^needle"}), &[]),
        (json!({"pattern": "needle$"}), &[]),
        (json!({"pattern": "[0-9]+x?[a-f]*"}), &[]),
        (json!({"pattern": "\\bfn\\b.*\\blet\\b"}), &[]),
        (json!({"pattern": "größe"}), &[]),
        (json!({"pattern": "GRÖSSE|GRÖßE", "ignore_case": true}), &["-i"]),
        (json!({"pattern": "\\p{Han}+"}), &[]),
        (json!({"pattern": "^$"}), &[]),
        (json!({"pattern": "\\t"}), &[]),
        (json!({"pattern": "--release"}), &[]),
        (json!({"pattern": "-> "}), &[]),
        (json!({"pattern": "no such thing"}), &[]),
        (json!({"pattern": "needle", "glob": "*.rs"}), &["-g", "*.rs"]),
        (json!({"pattern": "needle", "glob": "src/**/*.rs"}), &["-g", "src/**/*.rs"]),
        (json!({"pattern": "needle", "glob": "*.{md,toml}"}), &["-g", "*.{md,toml}"]),
        (json!({"pattern": "needle", "glob": "!*.rs"}), &["-g", "!*.rs"]),
        (json!({"pattern": "needle", "glob": "!src"}), &["-g", "!src"]),
        (json!({"pattern": "needle", "glob": "f[0-2].*"}), &["-g", "f[0-2].*"]),
        (json!({"pattern": "needle", "glob": "*.log"}), &["-g", "*.log"]),
        (json!({"pattern": "needle", "type": "rust"}), &["-t", "rust"]),
        (json!({"pattern": "needle", "type": "py"}), &["-t", "py"]),
        (json!({"pattern": "needle", "type": "make"}), &["-t", "make"]),
        (json!({"pattern": "needle", "include_ignored": true}), &["--no-ignore"]),
        (
            json!({"pattern": "foo", "include_ignored": true, "glob": "*.js"}),
            &["--no-ignore", "-g", "*.js"],
        ),
        (json!({"pattern": "needle", "path": "src"}), &[]),
        (json!({"pattern": "needle", "path": "tests"}), &[]),
        (json!({"pattern": "needle", "path": "docs"}), &[]),
        (json!({"pattern": "needle", "path": "nested/inner"}), &[]),
        (json!({"pattern": "needle", "path": "keep.log"}), &[]),
        (json!({"pattern": "needle", "path": ".hidden"}), &[]),
        (json!({"pattern": "needle\\s+\\w+", "multiline": true}), &["-U"]),
        (json!({"pattern": "alpha[^a]*?beta\\n", "multiline": true}), &["-U"]),
        (json!({"pattern": "(?s)let.{0,40}?fn", "multiline": true, "path": "src"}), &["-U"]),
        (json!({"pattern": "needle$", "multiline": true}), &["-U"]),
        (json!({"pattern": "foo$\\s+^", "multiline": true}), &["-U"]),
        (json!({"pattern": "^$", "multiline": true}), &["-U"]),
        (json!({"pattern": "bar\\r\\n\\w+", "multiline": true}), &["-U"]),
        (json!({"pattern": "needle", "context": 2}), &["-C", "2"]),
        (json!({"pattern": "struct", "before": 3}), &["-B", "3"]),
        (json!({"pattern": "Needle", "after": 1, "before": 2}), &["-A", "1", "-B", "2"]),
        (json!({"pattern": "needle", "mode": "files"}), &["-l"]),
        (json!({"pattern": "foo", "mode": "files", "type": "js"}), &["-l", "-t", "js"]),
        (json!({"pattern": "needle", "mode": "count"}), &["-c"]),
        (json!({"pattern": "needle", "mode": "count", "ignore_case": true}), &["-c", "-i"]),
    ]
}

/// A provider and ripgrep in one tree.
async fn beside_ripgrep() -> (Fixture, Ripgrep) {
    let mut fixture = Fixture::launched().await;
    tree::grow(&fixture.path(""));
    fixture.configure(json!({})).await.unwrap();
    let ripgrep = Ripgrep { directory: fixture.path("") };
    (fixture, ripgrep)
}

async fn grep_finds_what_ripgrep_finds() {
    let (mut fixture, ripgrep) = beside_ripgrep().await;
    let mut differences = Vec::new();
    for (arguments, flags) in cases() {
        let ours = all_pages(&mut fixture, &arguments).await;
        let (ours, theirs) = match arguments["mode"].as_str() {
            Some("files") => {
                let paths = ours.iter().map(shown).collect();
                (paths, ripgrep.files(&arguments, flags))
            }
            Some("count") => {
                // What ripgrep found before a NUL byte it does not count.
                let counted = ours.iter().filter(|file| file["path"] != "late.bin");
                let counts =
                    counted.map(|file| format!("{}: {}", shown(&file["path"]), file["count"]));
                (counts.collect(), ripgrep.counts(&arguments, flags))
            }
            _ if arguments["multiline"] == true => {
                let starts = ours.iter().map(|hit| {
                    format!("{}:{}:{}", shown(&hit["path"]), hit["line"], hit["column"])
                });
                (starts.collect(), ripgrep.starts(&arguments, flags))
            }
            _ => (lines(&ours), ripgrep.lines(&arguments, flags)),
        };
        differences.extend(difference(&arguments, &ours, &theirs));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    fixture.end().await;
}

async fn glob_finds_what_ripgrep_lists() {
    let (mut fixture, ripgrep) = beside_ripgrep().await;
    let mut differences = Vec::new();
    for pattern in [
        "*.rs",
        "*.log",
        "f[0-2].*",
        "*.{md,toml}",
        "src/*.rs",
        "src/**/*.js",
        "**/*.py",
        "*1*",
        "a/**/f?.txt",
        "nested/*/lib/*.md",
        "Makefile",
        ".*ignore",
        "*größe*",
        "-v",
        "\\#odd",
        "* blank .rs",
        "{src,tests}/f*.*",
    ] {
        for is_all in [false, true] {
            let arguments = json!({"pattern": pattern, "include_ignored": is_all, "limit": 10_000});
            let found = Searched::of(&mut fixture, "glob", arguments.clone()).await;
            let ours: Vec<String> = found.result["paths"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|item| item["kind"] == "file")
                .map(|item| shown(&item["path"]))
                .collect();
            let flags: &[&str] = if is_all { &["--no-ignore"] } else { &[] };
            let theirs = ripgrep.names(pattern, flags);
            differences.extend(difference(&arguments, &ours, &theirs));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    fixture.end().await;
}

/// Everything that grep finds, page by page.
async fn all_pages(fixture: &mut Fixture, arguments: &Value) -> Vec<Value> {
    let list = match arguments["mode"].as_str() {
        Some("files") => "files",
        Some("count") => "counts",
        _ => "matches",
    };
    let mut all: Vec<Value> = Vec::new();
    loop {
        let mut arguments = arguments.clone();
        arguments["limit"] = 1000.into();
        arguments["offset"] = all.len().into();
        let page = Searched::of(fixture, "grep", arguments.clone()).await;
        assert_eq!(page.streamed(list), page.result[list], "{arguments}");
        all.extend(page.result[list].as_array().unwrap().iter().cloned());
        match page.result.get("next_offset") {
            Some(next) => assert_eq!(*next, json!(all.len()), "{arguments}"),
            None => return all,
        }
    }
}

fn shown(path: &Value) -> String {
    path.as_str().unwrap().to_owned()
}

/// Hits and the lines around them, as lines in the order of paths and numbers.
fn lines(hits: &[Value]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for hit in hits {
        let path = shown(&hit["path"]);
        let first = hit["line"].as_u64().unwrap();
        let text = |value: &Value| comparable(value.as_str().unwrap());
        let list = |name: &str| hit[name].as_array().cloned().unwrap_or_default();
        let before = list("before");
        let after = list("after");
        let top = first - before.len() as u64;
        let last = first
            + hit["text"].as_str().unwrap().trim_end_matches('\n').matches('\n').count() as u64;
        for (number, line) in (top..).zip(&before) {
            lines.push(format!("{path}-{number}- {}", text(line)));
        }
        lines.push(format!("{path}:{first}:{}: {}", hit["column"], text(&hit["text"])));
        for (number, line) in (last + 1..).zip(&after) {
            lines.push(format!("{path}-{number}- {}", text(line)));
        }
    }
    lines
}

/// A line as far as both print it alike: without its end, and a long one not at all.
fn comparable(line: &str) -> String {
    let line = line.trim_end_matches(['\r', '\n']);
    if line.chars().count() > 450 { "(long)".to_owned() } else { format!("{line:?}") }
}

fn difference(arguments: &Value, ours: &[String], theirs: &[String]) -> Option<String> {
    if ours == theirs {
        return None;
    }
    let only = |these: &[String], others: &[String]| -> Vec<String> {
        let only = these.iter().filter(|line| !others.contains(line)).take(4);
        only.map(|line| line.chars().take(160).collect()).collect()
    };
    Some(format!(
        "{arguments}: {} of ours, {} of theirs\n  only ours: {:#?}\n  only theirs: {:#?}",
        ours.len(),
        theirs.len(),
        only(ours, theirs),
        only(theirs, ours)
    ))
}

/// The ripgrep of this machine, at work in a directory.
struct Ripgrep {
    directory: PathBuf,
}

impl Ripgrep {
    /// Runs it by our rules: hidden files too, ignore files without a repository, by path.
    fn run(&self, flags: &[&[&str]], path: &str) -> Vec<u8> {
        let mut command = Command::new("rg");
        command.current_dir(&self.directory).args([
            "--no-config",
            "--no-messages",
            "--no-ignore-global",
            "--no-require-git",
            "--hidden",
            // A line ends at LF or CRLF for us, so $ stands before either.
            "--crlf",
            "--sort",
            "path",
            "--null",
            "--color",
            "never",
        ]);
        // The last glob decides.
        command.args(flags.concat()).args(["--glob", "!.git", "--", path]);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code().is_some_and(|code| code < 2), "{command:?}: {said}");
        output.stdout
    }

    fn search(&self, kind: &[&str], arguments: &Value, flags: &[&str]) -> Vec<u8> {
        let pattern = ["-e", arguments["pattern"].as_str().unwrap()];
        self.run(&[kind, flags, &pattern], arguments["path"].as_str().unwrap_or("./"))
    }

    /// The messages about lines: what kind they are of, and what they say.
    fn messages(&self, arguments: &Value, flags: &[&str]) -> Vec<(String, Value)> {
        let output = self.search(&["--json"], arguments, flags);
        let messages = output.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        messages
            .map(|message| {
                let mut message: Value = serde_json::from_slice(message).unwrap();
                (message["type"].as_str().unwrap().to_owned(), message["data"].take())
            })
            .collect()
    }

    /// The lines that match and those around them.
    fn lines(&self, arguments: &Value, flags: &[&str]) -> Vec<String> {
        let mut lines = Vec::new();
        for (kind, data) in self.messages(arguments, flags) {
            if !matches!(&*kind, "match" | "context") {
                continue;
            }
            let (path, number) = (path(&bytes(&data["path"])), &data["line_number"]);
            let text = comparable(&String::from_utf8_lossy(&bytes(&data["lines"])));
            lines.push(match data["submatches"][0]["start"].as_u64() {
                Some(start) => format!("{path}:{number}:{}: {text}", start + 1),
                None => format!("{path}-{number}- {text}"),
            });
        }
        lines
    }

    /// Where matches begin, but for those that begin on a line that one before them ends on. Matches
    /// that touch are one message of ripgrep's.
    fn starts(&self, arguments: &Value, flags: &[&str]) -> Vec<String> {
        let mut starts: Vec<String> = Vec::new();
        for (kind, data) in self.messages(arguments, flags) {
            if kind != "match" {
                continue;
            }
            let (path, lines) = (path(&bytes(&data["path"])), bytes(&data["lines"]));
            let mut covered = 0;
            for submatch in data["submatches"].as_array().unwrap() {
                let [start, end] = ["start", "end"]
                    .map(|name| usize::try_from(submatch[name].as_u64().unwrap()).unwrap());
                if start < covered {
                    continue;
                }
                let last = start.max(end.saturating_sub(1));
                let feed = lines[last..].iter().position(|byte| *byte == b'\n');
                covered = feed.map_or(lines.len(), |feed| last + feed + 1);
                let before = &lines[..start];
                let skipped = before.iter().filter(|byte| **byte == b'\n').count() as u64;
                let line = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                let number = data["line_number"].as_u64().unwrap() + skipped;
                starts.push(format!("{path}:{number}:{}", start - line + 1));
            }
        }
        starts
    }

    fn files(&self, arguments: &Value, flags: &[&str]) -> Vec<String> {
        let output = self.search(&[], arguments, flags);
        output.split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(path).collect()
    }

    fn counts(&self, arguments: &Value, flags: &[&str]) -> Vec<String> {
        let mut output = &*self.search(&["--with-filename"], arguments, flags);
        let mut counts = Vec::new();
        while let Some(end) = output.iter().position(|byte| *byte == 0) {
            let (name, rest) = (&output[..end], &output[end + 1..]);
            let line = rest.iter().position(|byte| *byte == b'\n').unwrap();
            counts.push(format!(
                "{}: {}",
                path(name),
                String::from_utf8_lossy(rest[..line].trim_ascii_end())
            ));
            output = &rest[line + 1..];
        }
        counts
    }

    /// The files that it would search.
    fn names(&self, pattern: &str, flags: &[&str]) -> Vec<String> {
        let output = self.run(&[&["--files", "-g", pattern], flags], "./");
        output.split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(path).collect()
    }
}

/// A text of ripgrep's messages.
fn bytes(value: &Value) -> Vec<u8> {
    match value["text"].as_str() {
        Some(text) => text.as_bytes().to_vec(),
        None => STANDARD.decode(value["bytes"].as_str().unwrap()).unwrap(),
    }
}

/// A path of ripgrep's as we name it.
fn path(bytes: &[u8]) -> String {
    name::encode(bytes.strip_prefix(b"./").unwrap_or(bytes)).into_owned()
}
