//! Faults that ordinary work met once: each stays away at every level.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::cli::text;
use crate::harness::names;
use crate::levels::{Machine, machines};
use crate::trials::{Need, Trial};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_path_that_is_no_path_makes_nothing,
        a_name_that_reads_the_same_can_be_given_back,
        brackets_braces_and_commas_find_what_is_there,
        what_runs_in_the_background_is_told_and_named needs [Need::Program("git")],
        java_is_told_where_its_files_can_be needs [Need::Rare("javac")],
        what_is_not_there_is_not_withheld,
        a_pipe_hides_no_missing_network needs [Need::Program("python3")],
        nothing_waits_for_an_editor needs [Need::Program("git"), Need::Program("npm")],
    ]
}

/// A root, and a machine to call the provider on.
struct Desk {
    machine: Machine,
    directory: tempfile::TempDir,
}

/// What came of a call.
#[derive(Debug)]
struct Answer {
    is_success: bool,
    payload: Value,
    /// All that was printed.
    said: String,
}

impl Answer {
    fn notice(&self) -> &str {
        self.payload["notice"].as_str().unwrap_or_default()
    }
}

impl Desk {
    fn each() -> impl Iterator<Item = Self> {
        machines().iter().map(|&machine| {
            let directory = tempfile::tempdir().unwrap();
            for name in ["root", "home", "state"] {
                fs::create_dir(directory.path().join(name)).unwrap();
            }
            Self { machine, directory }
        })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str) {
        let path = self.at("root").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "content\n").unwrap();
    }

    fn call(&self, tool: &str, arguments: &Value) -> Answer {
        let [program, words @ ..] = self.machine.words() else { unreachable!() };
        let root = self.at("root");
        let mut command = std::process::Command::new(program);
        command.args(words).args(["call", tool, &arguments.to_string(), "--json"]);
        command.arg("--root").arg(&root).current_dir(&root).stdin(Stdio::null());
        command.env("HOME", self.at("home")).env("XDG_STATE_HOME", self.at("state"));
        let output = command.output().unwrap();
        let said = text(&output.stdout) + &text(&output.stderr);
        let last = text(&output.stdout).lines().last().unwrap_or_default().to_owned();
        let last: Value = serde_json::from_str(&last).unwrap_or_default();
        Answer { is_success: output.status.success(), payload: last["payload"].clone(), said }
    }

    fn bash(&self, command: &str) -> Answer {
        self.call("bash", &json!({ "command": command }))
    }
}

fn a_path_that_is_no_path_makes_nothing() {
    for desk in Desk::each() {
        for path in [
            "~/notes.md",
            "~root/x",
            "file:///w/a.txt",
            "vscode://file/a",
            "$HOME/x",
            "${HOME}/x",
            "%USERPROFILE%/x",
            "`a.txt`",
            "a.txt\n",
            " a.txt",
            "a.txt ",
            "C:\\notes.md",
        ] {
            let refused = desk.call("write_file", &json!({"path": path, "content": "x"}));
            assert!(!refused.is_success, "{path:?}: {refused:?}");
            assert!(refused.said.contains("invalid_arguments"), "{path:?}: {refused:?}");
            assert_eq!(names(&desk.at("root")), [""; 0], "{path:?}");
        }
        let found = desk.call("glob", &json!({"pattern": "~/*"}));
        assert!(found.said.contains("~ is not expanded"), "{found:?}");
        // What is there is a name, and so is what only looks a little odd.
        desk.write("~/notes.md");
        for path in ["~/notes.md", "@src/q.md", "a b.txt"] {
            let written = desk.call("write_file", &json!({"path": path, "content": "x"}));
            assert!(written.is_success && desk.at("root").join(path).exists(), "{written:?}");
        }
    }
}

fn a_name_that_reads_the_same_can_be_given_back() {
    for desk in Desk::each() {
        for (there, asked, given_back) in [
            (
                "Shot at 3.04\u{202f}PM.txt",
                "Shot at 3.04 PM.txt",
                r#""Shot at 3.04\342\200\257PM.txt""#,
            ),
            ("a\u{a0}b.txt", "a b.txt", r#""a\302\240b.txt""#),
            ("cafe\u{301}.txt", "caf\u{e9}.txt", "cafe\u{301}.txt"),
        ] {
            desk.write(there);
            let missed = desk.call("read_file", &json!({ "path": asked }));
            assert!(!missed.is_success, "{missed:?}");
            let read = desk.call("read_file", &json!({ "path": given_back }));
            assert!(read.is_success, "{there:?}: {missed:?} {read:?}");
            fs::remove_file(desk.at("root").join(there)).unwrap();
        }
    }
}

fn brackets_braces_and_commas_find_what_is_there() {
    for desk in Desk::each() {
        let there = [
            "app/[slug]/page.tsx",
            "app/[...rest]/a/b.ts",
            "{type} note.md",
            "x [1].txt",
            "lib/c.ts",
        ];
        there.iter().for_each(|name| desk.write(name));
        let absolute = desk.at("root").join(there[0]);
        for (pattern, found) in [
            (there[0], there[0]),
            (absolute.to_str().unwrap(), there[0]),
            ("app/[slug]/*", there[0]),
            ("app/[...rest]/**", there[1]),
            (there[2], there[2]),
            (there[3], there[3]),
            ("**/*.ts,**/*.tsx", "lib/c.ts"),
        ] {
            let answer = desk.call("glob", &json!({ "pattern": pattern }));
            let explained = pattern.contains(',') && answer.said.contains("{");
            assert!(answer.said.contains(found) || explained, "{pattern}: {answer:?}");
        }
        let grep = desk.call("grep", &json!({"pattern": "content", "glob": "app/[slug]/page.tsx"}));
        assert!(grep.said.contains(there[0]), "{grep:?}");
    }
}

fn what_runs_in_the_background_is_told_and_named() {
    for desk in Desk::each() {
        let due = "git init -q . && git config user.name n && git config user.email e &&
            git config gc.auto 1 && git config gc.autoPackLimit 1 &&
            for i in 1 2 3; do echo $i > f && git add f && git commit -q -m $i; done &&
            ls .git | grep -E 'gc.(log|pid)' ; git gc --auto -q; ls .git | grep -c 'gc.pid'";
        let answer = desk.bash(due);
        assert_eq!(answer.payload["output"], "0\n", "{answer:?}");
        let leaves = "sh -c 'trap \"echo told > told; exit\" TERM; touch ready
            while :; do sleep 0.05; done' & while ! test -e ready; do sleep 0.05; done";
        let answer = desk.bash(leaves);
        assert_eq!(fs::read_to_string(desk.at("root/told")).unwrap(), "told\n");
        assert!(answer.notice().contains("sh"), "{answer:?}");
    }
}

fn java_is_told_where_its_files_can_be() {
    for desk in Desk::each() {
        fs::write(
            desk.at("root/A.java"),
            "import java.io.File;\npublic class A { public static void main(String[] a) throws Exception {\n\
             System.out.println(File.createTempFile(\"some\", \"file\").exists()); } }\n",
        )
        .unwrap();
        let plain = desk.bash("javac -J-Djava.io.tmpdir=$TMPDIR A.java && java -cp . A");
        let cure = "-Djava.io.tmpdir=$TMPDIR";
        assert!(plain.is_success || plain.notice().contains(cure), "{plain:?}");
        let cured = desk.bash(&format!("java {cure} -cp . A"));
        assert_eq!(cured.payload["output"], "true\n", "{cured:?}");
    }
}

fn what_is_not_there_is_not_withheld() {
    for desk in Desk::each() {
        for command in ["cat ~/.nosuch", "cat /nosuch/file", "ls /tmp/build-that-is-not-there"] {
            let answer = desk.bash(command);
            assert!(!answer.is_success && answer.notice().is_empty(), "{command}: {answer:?}");
        }
    }
}

fn a_pipe_hides_no_missing_network() {
    let get = "python3 -c 'import urllib.request as u; u.urlopen(\"http://name.invalid\")' 2>&1";
    for desk in Desk::each() {
        for command in [format!("{get} | tail -3"), format!("{get}; true")] {
            let answer = desk.bash(&command);
            assert!(
                answer.is_success && answer.notice().contains("network"),
                "{command}: {answer:?}"
            );
        }
        let answer = desk.bash("echo 'ping: x: Name or service not known' > log; cat log");
        assert_eq!(answer.notice(), "", "{answer:?}");
    }
}

fn nothing_waits_for_an_editor() {
    for desk in Desk::each() {
        let setup = "git init -q . && git config user.name n && git config user.email e &&
            for i in 1 2 3; do echo $i > f && git add f && git commit -q -m $i; done";
        assert!(desk.bash(setup).is_success);
        for command in [
            "git commit --amend",
            "git rebase -i HEAD~2",
            "npm init --silent && test -e package.json",
        ] {
            let answer = desk.bash(command);
            assert!(answer.is_success, "{command}: {answer:?}");
        }
        let answer = desk.bash("echo 4 > f && git add f && git commit");
        assert!(!answer.is_success && answer.said.contains("empty commit message"), "{answer:?}");
        assert!(!answer.said.contains("u001b"), "{answer:?}");
    }
}
