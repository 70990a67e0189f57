//! The documents: every command that one shows is run as it is written. (That the pages which are made
//! from the code are current is a test of xtask.)
//!
//! - A block marked `sh` is a script: each of its commands has to succeed.
//! - A block marked `console` is a session: what stands behind `$ ` is run, and the lines below are
//!   what it prints. `…` stands for any rest of a line, alone on a line for any lines.
//! - Commands run in a small project and a home of their own, in the order of the document, with the
//!   built program as `provider-workspace`. `cargo run [flags] -- ARGUMENTS` is that program too, and
//!   `cargo install` and `uninstall` put it into that home and take it out; what else cargo is asked
//!   for is run by `.ci/run`. A release lies in the project; its archive holds links to the programs.
//! - After a block that uninstalls, nothing of the provider may be left in the home.
//! - The exit code of `doctor` is about the machine, not the document, so 1 passes.

use std::fs::{create_dir, create_dir_all, read_to_string, write};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::harness::{PROGRAM, names};
use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        every_command_that_a_document_shows_works_as_written,
        readme_names_the_oldest_rust_that_will_do,
        the_checks_of_sessions_see_what_they_should,
    ]
}

fn checkout() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn every_command_that_a_document_shows_works_as_written() {
    let mut documents = vec![checkout().join("README.md")];
    let docs = checkout().join("docs");
    documents.extend(
        names(&docs).iter().filter(|name| name.ends_with(".md")).map(|name| docs.join(name)),
    );
    let mut commands = 0;
    for document in documents {
        let text = read_to_string(&document).unwrap();
        let scratch = Scratch::new();
        for block in blocks(&text) {
            let location = format!("{}, line {}", document.display(), block.line);
            let uninstalls = block.text.contains("uninstall");
            if uninstalls {
                scratch.use_the_provider();
            }
            match block.language {
                "sh" => scratch.run_script(block.text, &location),
                "console" => scratch.run_session(block.text, &location),
                // They would not be run.
                "bash" | "shell" | "zsh" => panic!("{location}: mark it sh or console"),
                _ => continue,
            }
            if uninstalls {
                assert_eq!(scratch.left_in_home(), [] as [PathBuf; 0], "{location}");
            }
            commands += 1;
        }
    }
    assert!(commands > 0, "no command was found");
}

fn readme_names_the_oldest_rust_that_will_do() {
    let readme = read_to_string(checkout().join("README.md")).unwrap();
    assert!(readme.contains(concat!("Rust ", env!("CARGO_PKG_RUST_VERSION"), " or later")));
}

struct Block<'a> {
    language: &'a str,
    text: &'a str,
    /// The line of the document that it starts in.
    line: usize,
}

/// The fenced blocks of a document.
fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut open: Option<(&str, usize, usize)> = None;
    let mut at = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let end = at + line.len();
        if let Some(language) = line.trim_start().strip_prefix("```") {
            open = match open {
                None => Some((language.trim(), end, index + 1)),
                Some((language, start, line)) => {
                    blocks.push(Block { language, text: &text[start..at], line });
                    None
                }
            };
        }
        at = end;
    }
    blocks
}

/// A small project, and the programs that a reader of the documents has.
struct Scratch {
    directory: tempfile::TempDir,
}

/// What cargo does for a reader who built the program.
const CARGO: &str = r#"#!/bin/sh
set -eu
case $1 in
install)
  mkdir -p "$HOME/.cargo/bin"
  case $* in
  *crates/conform) ln -sf "$PROGRAM-conform" "$HOME/.cargo/bin/provider-workspace-conform" ;;
  *" --path ."*) ln -sf "$PROGRAM" "$HOME/.cargo/bin/provider-workspace" ;;
  esac ;;
uninstall)
  shift
  for package; do rm "$HOME/.cargo/bin/$package"; done ;;
run)
  for word; do
    shift
    [ "$word" = -- ] && exec provider-workspace "$@"
  done ;;
esac
"#;

/// Makes a release of the programs, as `.ci/package` names its files.
const RELEASE: &str = r#"
name=provider-workspace_$VERSION
directory=$(mktemp -d)
ln -s "$PROGRAM" "$directory/provider-workspace"
ln -s "$PROGRAM-conform" "$directory/provider-workspace-conform"
touch "$directory/LICENSE"
tar -czf "${name}_linux_amd64.tar.gz" -C "$directory" LICENSE provider-workspace provider-workspace-conform
rm -r "$directory"
{ sha256sum "${name}_linux_amd64.tar.gz"; echo "$(sha256sum </dev/null | cut -c 1-64)  ${name}_linux_arm64.tar.gz"; } >"${name}_SHA256SUMS"
"#;

/// Before each script: what `doctor` finds is the machine's affair.
const PRELUDE: &str = r#"
provider-workspace() {
  local code=0
  command provider-workspace "$@" || code=$?
  [ "$1:$code" = doctor:1 ] || return "$code"
}
"#;

impl Scratch {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let scratch = Self { directory };
        let programs = scratch.programs();
        create_dir(&programs).unwrap();
        symlink(PROGRAM, programs.join("provider-workspace")).unwrap();
        let cargo = programs.join("cargo");
        write(&cargo, CARGO).unwrap();
        std::fs::set_permissions(&cargo, std::fs::Permissions::from_mode(0o755)).unwrap();
        let project = scratch.project();
        create_dir_all(project.join("src")).unwrap();
        let readme = read_to_string(checkout().join("README.md")).unwrap();
        for (name, content) in [
            ("README.md", readme.as_str()),
            ("Cargo.toml", "[package]\nname = \"example\"\nversion = \"0.1.0\"\n"),
            ("a.txt", "x\n"),
            ("src/main.rs", "// TODO: say more\nfn main() {\n    println!(\"hello\");\n}\n"),
        ] {
            write(project.join(name), content).unwrap();
        }
        create_dir(scratch.home()).unwrap();
        scratch.run_script(RELEASE, "the release");
        scratch
    }

    /// Leaves in the home what the provider leaves there.
    fn use_the_provider(&self) {
        self.run_script("provider-workspace call write_file b.txt --content x", "a write");
        assert!(!self.left_in_home().is_empty());
    }

    /// What is in the home and has the provider's name.
    fn left_in_home(&self) -> Vec<PathBuf> {
        let mut left = Vec::new();
        let mut directories = vec![self.home()];
        while let Some(directory) = directories.pop() {
            for entry in directory.read_dir().unwrap().map(Result::unwrap) {
                if entry.file_name().to_string_lossy().contains("provider-workspace") {
                    left.push(entry.path());
                } else if entry.file_type().unwrap().is_dir() {
                    directories.push(entry.path());
                }
            }
        }
        left
    }

    fn programs(&self) -> PathBuf {
        self.directory.path().join("bin")
    }

    fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    fn project(&self) -> PathBuf {
        self.directory.path().join("project")
    }

    /// Runs a script with both its outputs in one; returns them and the exit code.
    fn run(&self, script: &str) -> (String, Option<i32>) {
        let path = std::env::var("PATH").unwrap();
        let home = self.home();
        let (programs, home) = (self.programs(), home.display());
        let output = Command::new("/bin/bash")
            .args(["-c", &format!("exec 2>&1\n{PRELUDE}\n{script}")])
            .current_dir(self.project())
            .env("HOME", self.home())
            .env(
                "PATH",
                format!("{home}/.local/bin:{home}/.cargo/bin:{}:{path}", programs.display()),
            )
            .env("PROGRAM", PROGRAM)
            .env("VERSION", env!("CARGO_PKG_VERSION"))
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_STATE_HOME")
            .env_remove("CLICOLOR_FORCE")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        (String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code())
    }

    /// [`Self::run`], up to the first command that fails.
    fn run_strictly(&self, script: &str) -> (String, Option<i32>) {
        self.run(&format!("set -eu -o pipefail\n{script}"))
    }

    fn run_script(&self, script: &str, location: &str) {
        let (printed, code) = self.run_strictly(script);
        assert_eq!(code, Some(0), "{location}:\n{script}\n{printed}");
    }

    fn run_session(&self, session: &str, location: &str) {
        const MARK: &str = "\u{1}end of a command\u{1}";
        let mut script = String::new();
        let mut expected: Vec<Vec<&str>> = Vec::new();
        for line in session.lines() {
            match line.strip_prefix("$ ") {
                Some(command) => {
                    expected.push(Vec::new());
                    script.push_str(&format!(
                        "{command}\nstatus=$?; echo '{MARK}'; (exit $status)\n"
                    ));
                }
                None => {
                    expected.last_mut().unwrap_or_else(|| panic!("{location}: no `$ `")).push(line)
                }
            }
        }
        let (printed, _) = self.run(&script);
        let mut pieces = printed.split(MARK);
        for (number, expected) in expected.iter().enumerate() {
            let piece = pieces.next().unwrap_or_default().trim_start_matches('\n');
            let found: Vec<&str> = piece.lines().collect();
            assert!(
                matches_lines(expected, &found),
                "{location}, command {}: it printed\n{piece}\ninstead of\n{}",
                number + 1,
                expected.join("\n")
            );
        }
    }
}

fn matches_lines(expected: &[&str], found: &[&str]) -> bool {
    match expected {
        [] => found.is_empty(),
        ["…", rest @ ..] => {
            (0..=found.len()).any(|skipped| matches_lines(rest, &found[skipped..]))
        }
        [line, rest @ ..] => match found {
            [first, others @ ..] => matches_line(line, first) && matches_lines(rest, others),
            [] => false,
        },
    }
}

fn matches_line(expected: &str, found: &str) -> bool {
    let (expected, found) = (expected.trim_end(), found.trim_end());
    let Some((head, tail)) = expected.split_once('…') else { return expected == found };
    let Some(rest) = found.strip_prefix(head) else { return false };
    tail.is_empty()
        || rest.char_indices().map(|(at, _)| &rest[at..]).any(|rest| matches_line(tail, rest))
}

fn the_checks_of_sessions_see_what_they_should() {
    assert!(matches_lines(&["a", "…", "z"], &["a", "b", "c", "z"]));
    assert!(matches_lines(&["took … ms", "…"], &["took 12 ms"]));
    assert!(!matches_lines(&["a"], &["a", "b"]) && !matches_lines(&["a", "b"], &["a"]));
    assert!(!matches_line("took … ms", "took 12 s"));
    let found = blocks("x\n```sh\nls\n```\n\n```console\n$ ls\na\n```\n");
    assert_eq!((found[0].language, found[0].text, found[1].line), ("sh", "ls\n", 6));
    let scratch = Scratch::new();
    scratch.run_session("$ echo a; false\na\n$ echo $?\n1\n", "here");
    assert_eq!(scratch.run_strictly("false\ntrue\n").1, Some(1));
}
