//! A client of the Model Context Protocol that says exactly what a story wants.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use crate::harness::{PROGRAM, TEST_TIMEOUT, names};

/// A server that was launched for a story. It runs in `root`, in a directory that goes with the story.
pub(super) struct Client {
    directory: tempfile::TempDir,
    pub(super) child: Child,
    pub(super) input: Option<ChildStdin>,
    messages: Receiver<Value>,
    next: i64,
    /// Notifications that came while something else was waited for.
    pub(super) seen: Vec<Value>,
    /// What the client answers to `roots/list`; None where it does not know that request.
    pub(super) roots: Option<Vec<String>>,
}

/// The directory of a story, with what a server needs in it.
pub(super) fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for name in ["root", "tmp", "home"] {
        std::fs::create_dir(directory.path().join(name)).unwrap();
    }
    directory
}

/// The server's command, in `current` of the story's directory.
pub(super) fn server(directory: &Path, current: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command
        .arg("mcp")
        .args(arguments)
        .current_dir(directory.join(current))
        .env("TMPDIR", directory.join("tmp"))
        .env("HOME", directory.join("home"))
        .env("XDG_STATE_HOME", directory.join("state"));
    command
}

impl Client {
    /// A server of the story's root, initialized.
    pub(super) fn of_root() -> Self {
        Self::with(&["--root", "."])
    }

    /// A server with these arguments, initialized.
    pub(super) fn with(arguments: &[&str]) -> Self {
        let mut client = Self::launched("root", arguments);
        client.initialize();
        client
    }

    /// A server in `current` with these arguments, and nothing said to it.
    pub(super) fn launched(current: &str, arguments: &[&str]) -> Self {
        let directory = directory();
        let command = server(directory.path(), current, arguments);
        Self::of_command(directory, command)
    }

    pub(super) fn of_command(directory: tempfile::TempDir, mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        let messages = reader(child.stdout.take().unwrap());
        let (next, seen, roots) = (1, Vec::new(), None);
        Self { directory, child, input, messages, next, seen, roots }
    }

    pub(super) fn initialize(&mut self) -> Value {
        let capabilities = match self.roots {
            Some(_) => json!({"roots": {"listChanged": true}}),
            None => json!({}),
        };
        let answer = self.ask(
            "initialize",
            json!({
                "protocolVersion": "2025-11-25", "capabilities": capabilities,
                "clientInfo": {"name": "story", "version": "1"},
            }),
        );
        self.notify("notifications/initialized", json!({}));
        answer["result"].clone()
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(super) fn write(&self, name: &str, content: &str) {
        std::fs::write(self.path(name), content).unwrap();
    }

    /// Sends bytes as they are.
    pub(super) fn send_raw(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    pub(super) fn send(&mut self, message: &Value) {
        self.send_raw(format!("{message}\n").as_bytes());
    }

    pub(super) fn notify(&mut self, method: &str, params: Value) {
        let mut message = json!({"jsonrpc": "2.0", "method": method});
        message["params"] = params;
        self.send(&message);
    }

    /// Sends a request and returns its id.
    pub(super) fn request(&mut self, method: &str, params: Value) -> i64 {
        let id = self.next;
        self.next += 1;
        let mut message = json!({"jsonrpc": "2.0", "id": id, "method": method});
        message["params"] = params;
        self.send(&message);
        id
    }

    /// The next message of the server.
    pub(super) fn receive(&mut self) -> Value {
        self.messages.recv_timeout(TEST_TIMEOUT).expect("a message of the server")
    }

    /// The answer to a request. What comes before is kept in `seen`; a question for roots is answered.
    pub(super) fn answer(&mut self, id: i64) -> Value {
        self.until(|message| message["id"] == id && message.get("method").is_none())
    }

    /// The first message that is wanted. What comes before is kept in `seen`.
    pub(super) fn until(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.receive();
            if message["method"] == "roots/list" {
                let roots = self.roots.clone().expect("the client has no roots");
                let roots: Vec<Value> = roots.iter().map(|uri| json!({"uri": uri})).collect();
                let id = &message["id"];
                self.send(&json!({"jsonrpc": "2.0", "id": id, "result": {"roots": roots}}));
            }
            if is_wanted(&message) {
                return message;
            }
            self.seen.push(message);
        }
    }

    pub(super) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.answer(id)
    }

    /// The text of a call's result.
    pub(super) fn text(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.result(tool, arguments);
        assert_eq!(result["isError"], false, "{result}");
        text_of(&result)
    }

    /// The message of a call that fails.
    pub(super) fn failure(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.result(tool, arguments);
        assert_eq!(result["isError"], true, "{result}");
        text_of(&result)
    }

    pub(super) fn result(&mut self, tool: &str, arguments: Value) -> Value {
        let mut params = json!({"name": tool});
        params["arguments"] = arguments;
        let answer = self.ask("tools/call", params);
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    }

    /// Begins a command that reports its progress. Returns the request's id, and the command's process
    /// once it is ready.
    pub(super) fn begin(&mut self, command: &str) -> (i64, u32) {
        let id = self.request(
            "tools/call",
            json!({
                "name": "bash", "arguments": {"command": command}, "_meta": {"progressToken": "t"},
            }),
        );
        let started = self.until(|message| message["method"] == "notifications/progress");
        let text = started["params"]["message"].as_str().unwrap();
        let pid: String = text.chars().filter(char::is_ascii_digit).collect();
        self.until(|message| message["params"]["message"] == "ready\n");
        (id, pid.parse().unwrap_or_else(|_| panic!("no pid in {text}")))
    }

    /// A number that the kernel knows of the server's process, such as `VmHWM` in KiB.
    pub(super) fn status(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim_start_matches(':').split_whitespace().next().unwrap().parse().unwrap()
    }

    /// Closes standard input, waits for the end, and checks that nothing is left.
    pub(super) fn end(mut self) {
        self.input = None;
        self.ended();
    }

    /// Waits for the end, and checks that it is a good one and nothing is left.
    pub(super) fn ended(mut self) {
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
        let left = names(&self.path("tmp"));
        assert!(left.is_empty(), "left behind: {left:?}");
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // A story that failed leaves it running.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The messages that come, read beside the story: none other may stand on standard output.
fn reader(output: std::process::ChildStdout) -> Receiver<Value> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines() {
            let Ok(line) = line else { return };
            let message: Value = serde_json::from_str(&line)
                .unwrap_or_else(|error| panic!("no message: {error}: {line}"));
            if sender.send(message).is_err() {
                return;
            }
        }
    });
    receiver
}

pub(super) fn text_of(result: &Value) -> String {
    let content = result["content"].as_array().unwrap();
    assert_eq!(content.len(), 1, "{result}");
    content[0]["text"].as_str().unwrap().to_owned()
}

/// A server that ends by itself, with what it wrote to standard error.
pub(super) fn refused(arguments: &[&str], prepare: impl FnOnce(&Path)) -> (ExitStatus, String) {
    let directory = directory();
    prepare(&directory.path().join("root"));
    let mut command = server(directory.path(), "root", arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (mut said, mut answered) = (String::new(), String::new());
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    child.stdout.take().unwrap().read_to_string(&mut answered).unwrap();
    assert_eq!(answered, "", "standard output carries the protocol alone");
    (child.wait().unwrap(), said)
}
