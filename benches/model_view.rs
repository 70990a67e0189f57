//! What a model reads of each tool, in tokens: the payload as a host shows it, beside the plain form
//! of the same, on a tree that is made the same every time.
//!
//! A host shows the payload as JSON with sorted keys, and of an error the message alone. The plain
//! form is what a person's program prints (`rg -n --heading`, `ls -1`, `cat -n` without padding, the
//! command's own output), as the JSON string that it would have to be. Tokens are those of o200k.
//! The bench `tokens` prints this; the story of the same name holds the provider to it.
#![expect(clippy::disallowed_methods, reason = "it makes the tree that it measures on")]

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tiktoken_rs::CoreBPE;
use tool_provider::grpc::ToolClient;
use tool_provider::{Call, Payload};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// What the six descriptions and schemas of arguments may take together.
pub(crate) const MOST_OF_SPECS: usize = 2400;

/// What those of the four session tools may take together.
pub(crate) const MOST_OF_SESSION_SPECS: usize = 1000;

/// What those of shell_read may take.
pub(crate) const MOST_OF_SHELL_READ: usize = 420;

/// How many tokens something takes.
pub(crate) struct Reading {
    /// What it is.
    pub(crate) name: String,
    /// As the host shows it.
    pub(crate) tokens: usize,
    /// The plain form of the same, where there is one.
    pub(crate) plain: Option<(&'static str, usize)>,
    /// What it may take, where there is no plain form.
    limit: Option<usize>,
}

impl Reading {
    /// What it may take: its limit, or the plain form, a twentieth more, and 15 for the JSON around it.
    pub(crate) fn most(&self) -> Option<f64> {
        let limit = self.limit.map(|limit| limit as f64);
        self.plain.map(|(_, plain)| plain as f64 * 1.05 + 15.0).or(limit)
    }
}

/// Measures everything, in an empty directory that is the configured root.
pub(crate) async fn readings(client: &mut ToolClient, root: &Path) -> Outcome<Vec<Reading>> {
    let mut measure = Measure { bpe: tiktoken_rs::o200k_base()?, client, readings: Vec::new() };
    let files = make_tree(root)?;
    measure.specs().await?;
    measure.searches(&files).await?;
    measure.files(&files).await?;
    measure.commands(root).await?;
    measure.failures().await?;
    Ok(measure.readings)
}

/// A file of the tree: its path, and its lines.
type Files = Vec<(String, Vec<String>)>;

/// Twenty-five directories with four files each, in the order of their paths.
fn make_tree(root: &Path) -> Outcome<Files> {
    const LINES: [&str; 8] = [
        "    let mut reader = BufReader::new(File::open(&path)?);",
        "    for line in reader.lines() {",
        "        let line = line.map_err(|error| handle_error(&path, error))?;",
        "        if line.trim().is_empty() || line.starts_with('#') {",
        "            continue;",
        "        }",
        "        entries.push(Entry { name: line.to_owned(), count: 0 });",
        "    }",
    ];
    let mut files = Files::new();
    for index in 0..100 {
        let directory = format!("crates/part{:02}/src", index / 4);
        fs::create_dir_all(root.join(&directory))?;
        let path = format!("{directory}/module{:02}.rs", index % 4);
        let count = if index == 7 { 400 } else { 8 + index % 5 };
        let lines: Vec<String> = (0..count)
            .map(|at| match at % 9 {
                0 => format!("fn step_{index}_{at}(path: &Path) -> io::Result<Vec<Entry>> {{"),
                other => LINES[other - 1].to_owned(),
            })
            .collect();
        fs::write(root.join(&path), text_of(&lines))?;
        files.push((path, lines));
    }
    Ok(files)
}

fn text_of(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

struct Measure<'a> {
    bpe: CoreBPE,
    client: &'a mut ToolClient,
    readings: Vec<Reading>,
}

impl Measure<'_> {
    async fn specs(&mut self) -> Outcome<()> {
        let schema = self.client.schema().await?;
        let (mut all, mut of_sessions) = (0, 0);
        for tool in &schema.tools {
            let shown = json!({
                "name": tool.name, "description": tool.description, "input_schema": tool.input_schema,
            });
            let tokens = self.count(&shown.to_string());
            let name = format!("description and schema of `{}`", tool.name);
            match tool.name.as_str() {
                "shell_read" => {
                    self.limited(&name, tokens, MOST_OF_SHELL_READ);
                    continue;
                }
                name if name.starts_with("session_") => of_sessions += tokens,
                _ => all += tokens,
            }
            self.add(name, tokens, None);
        }
        self.limited("all descriptions and schemas", all, MOST_OF_SPECS);
        self.limited("all of the session tools", of_sessions, MOST_OF_SESSION_SPECS);
        Ok(())
    }

    async fn searches(&mut self, files: &Files) -> Outcome<()> {
        let found = |wanted: &dyn Fn(&str) -> bool| {
            let mut plain = String::new();
            for (path, lines) in files {
                let hits = lines.iter().enumerate().filter(|(_, line)| wanted(line));
                let hits: String = hits.map(|(at, line)| format!("{}:{line}\n", at + 1)).collect();
                if !hits.is_empty() {
                    let _ =
                        write!(plain, "{}{path}\n{hits}", if plain.is_empty() { "" } else { "\n" });
                }
            }
            plain
        };
        let arguments = json!({"pattern": "handle_error", "path": "crates/part00"});
        let few = found(&|line| line.contains("handle_error"));
        let few = few.split("\n\ncrates/part01").next().unwrap_or_default().to_owned();
        let hits = self.payload("grep", arguments).await?;
        self.compare("grep, hits in four files", &hits, "rg -n --heading", &few);
        let arguments = json!({"pattern": "^fn step_\\d+_0", "limit": 200});
        let hits = self.payload("grep", arguments).await?;
        let plain = found(&|line| line.starts_with("fn step_") && line.contains("_0("));
        self.compare("grep, a hit in each of 100 files", &hits, "rg -n --heading", &plain);

        let names: String = files.iter().map(|(path, _)| format!("{path}\n")).collect();
        let listed = self.payload("grep", json!({"pattern": "fn", "mode": "files"})).await?;
        self.compare("grep, the names of 100 files", &listed, "rg -l", &names);
        let listed = self.payload("glob", json!({"pattern": "**/*.rs"})).await?;
        self.compare("glob, 100 paths", &listed, "ls -1", &names);
        Ok(())
    }

    async fn files(&mut self, files: &Files) -> Outcome<()> {
        let numbered = |lines: &[String], from: usize| -> String {
            let lines = lines.iter().enumerate();
            lines.map(|(at, line)| format!("{}\t{line}\n", at + from)).collect()
        };
        let (path, lines) = &files[7];
        let whole = self.payload("read_file", json!({"path": path})).await?;
        let plain = numbered(lines, 1);
        self.compare("read_file, 400 lines", &whole, "cat -n, not padded", &plain);
        let part = json!({"path": path, "offset": 101, "limit": 50});
        let part = self.payload("read_file", part).await?;
        let plain = numbered(&lines[100..150], 101);
        self.compare("read_file, 50 of 400 lines", &part, "cat -n, not padded", &plain);

        let created = json!({"path": "new.rs", "content": text_of(lines)});
        let created = self.payload("write_file", created).await?;
        let version = created.get("version").and_then(Value::as_str).unwrap_or_default().to_owned();
        self.compare("write_file, a new file", &created, "its version", &version);
        let (path, lines) = &files[10];
        let [context, old] = [&lines[0], &lines[1]];
        let edit =
            json!({"path": path, "old_string": old, "new_string": "    let reader = open();"});
        let plain = format!(
            "@@ -1,5 +1,5 @@\n {context}\n-{old}\n+    let reader = open();\n {}\n {}\n {}\n",
            lines[2], lines[3], lines[4]
        );
        let edited = self.payload("edit_file", edit).await?;
        self.compare("edit_file, one line", &edited, "a unified diff", &plain);
        Ok(())
    }

    async fn commands(&mut self, root: &Path) -> Outcome<()> {
        for (name, command, plain) in [
            ("bash, four bytes", "echo abc", "abc\n".to_owned()),
            ("bash, 2,000 lines", "seq 2000", (1..=2000).map(|n| format!("{n}\n")).collect()),
        ] {
            let cwd = root.display().to_string();
            let ran = self.payload("bash", json!({"command": command, "cwd": cwd})).await?;
            self.compare(name, &ran, "its output", &plain);
        }
        Ok(())
    }

    async fn failures(&mut self) -> Outcome<()> {
        let path = "crates/part00/src/module00.rs";
        for (name, tool, arguments) in [
            ("a path that is not there", "read_file", json!({"path": "part00/src/module00.rs"})),
            (
                "a text that is not there",
                "edit_file",
                json!({
                    "path": path, "old_string": "for line in reader.line() {", "new_string": "x"
                }),
            ),
            (
                "a version that is old",
                "write_file",
                json!({
                    "path": path, "content": "", "expected_version": "0".repeat(32)
                }),
            ),
            ("a pattern that is wrong", "grep", json!({"pattern": "(a"})),
            ("a path outside the roots", "write_file", json!({"path": "/etc/motd", "content": ""})),
            ("an unknown argument", "glob", json!({"pattern": "*", "depth": 3})),
            ("a timeout", "bash", json!({"command": "echo begun; sleep 60", "timeout_ms": 300})),
        ] {
            let (_, outcome) = self.client.invoke_to_end(call(tool, arguments)).await?;
            let Err(failure) = outcome else { return Err(format!("{name}: no failure").into()) };
            let tokens = self.count(&Value::from(failure.message).to_string());
            self.add(format!("message: {name}"), tokens, None);
        }
        Ok(())
    }

    async fn payload(&mut self, tool: &str, arguments: Value) -> Outcome<Payload> {
        let (_, outcome) = self.client.invoke_to_end(call(tool, arguments)).await?;
        outcome.map_err(|failure| failure.to_string().into())
    }

    fn compare(&mut self, name: &str, payload: &Payload, of: &'static str, plain: &str) {
        let tokens = self.count(&Value::from(payload.clone()).to_string());
        let plain = self.count(&Value::from(plain).to_string());
        self.add(name.to_owned(), tokens, Some((of, plain)));
    }

    fn add(&mut self, name: String, tokens: usize, plain: Option<(&'static str, usize)>) {
        self.readings.push(Reading { name, tokens, plain, limit: None });
    }

    fn limited(&mut self, name: &str, tokens: usize, limit: usize) {
        let limit = Some(limit);
        self.readings.push(Reading { name: name.to_owned(), tokens, plain: None, limit });
    }

    fn count(&self, text: &str) -> usize {
        self.bpe.encode_ordinary(text).len()
    }
}

fn call(tool: &str, arguments: Value) -> Call {
    let arguments = match arguments {
        Value::Object(arguments) => arguments,
        _ => Payload::new(),
    };
    Call { id: "1".to_owned(), tool: tool.to_owned(), arguments, ..Call::default() }
}
