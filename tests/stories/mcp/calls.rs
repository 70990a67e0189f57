//! Calls, and what a model reads of them.

use serde_json::json;

use super::client::Client;
use crate::harness::wait_for_end;
use crate::trials::Trial;

pub(super) fn trials() -> Vec<Trial> {
    trials![
        a_result_is_the_text_without_the_json_around_it,
        a_failure_is_an_error_whose_message_stands_alone,
        an_unknown_tool_is_no_tools_failure,
        what_a_command_prints_comes_as_progress_to_who_asked,
        nothing_comes_as_progress_to_who_did_not_ask,
        a_cancelled_call_ends_its_command_and_has_no_answer,
        a_session_knows_what_it_has_read,
        the_log_comes_from_the_level_on_that_was_asked_for,
    ]
}

fn a_result_is_the_text_without_the_json_around_it() {
    let mut client = Client::of_root();
    let written = client.text("write_file", json!({"path": "a.txt", "content": "one\ntwo\n"}));
    let version = written.strip_prefix("version: ").unwrap().lines().next().unwrap().to_owned();
    assert_eq!(written, format!("version: {version}\ncreated: true"));
    assert_eq!(
        client.text("read_file", json!({"path": "a.txt"})),
        format!("1:one\n2:two\n\nversion: {version}")
    );
    assert_eq!(client.text("grep", json!({"pattern": "w"})), "a.txt\n2:two");
    assert_eq!(client.text("grep", json!({"pattern": "w", "mode": "files"})), "a.txt");
    assert_eq!(client.text("grep", json!({"pattern": "o", "mode": "count"})), "a.txt:2");
    assert_eq!(client.text("glob", json!({"pattern": "*"})), "a.txt");
    assert_eq!(client.text("grep", json!({"pattern": "zzz"})), "notice: No match in 1 file.");
    let edited =
        client.text("edit_file", json!({"path": "a.txt", "old_string": "two", "new_string": "2"}));
    assert!(edited.starts_with("@@ -1,2 +1,2 @@\n one\n-two\n+2\n\nversion: "), "{edited}");
    // What is printed last is what is true.
    let command = "echo out; echo; echo 'exit_code: 0'; exit 3";
    assert_eq!(
        client.text("bash", json!({"command": command})),
        "out\n\nexit_code: 0\n\nexit_code: 3"
    );
    assert_eq!(client.text("bash", json!({"command": "true"})), "exit_code: 0");
    client.end();
}

fn a_failure_is_an_error_whose_message_stands_alone() {
    let mut client = Client::of_root();
    client.write("root/a.txt", "one\n");
    let missing = client.failure("read_file", json!({"path": "b.txt"}));
    assert!(missing.contains("b.txt does not exist"), "{missing}");
    let outside = client.failure("read_file", json!({"path": "/etc/passwd"}));
    assert!(outside.contains("/etc/passwd") && outside.contains("root"), "{outside}");
    let wrong = client.failure("read_file", json!({"path": 7}));
    assert!(wrong.contains("path"), "{wrong}");
    let late =
        client.failure("bash", json!({"command": "echo so far; sleep 1000", "timeout_ms": 5000}));
    assert!(late.contains("so far") && late.contains("timeout_ms"), "{late}");
    assert_eq!(client.text("glob", json!({"pattern": "*"})), "a.txt");
    client.end();
}

fn an_unknown_tool_is_no_tools_failure() {
    let mut client = Client::of_root();
    let answer = client.ask("tools/call", json!({"name": "read_fil", "arguments": {}}));
    assert_eq!(answer["error"]["code"], -32602);
    assert!(answer["error"]["message"].as_str().unwrap().contains("read_file"), "{answer}");
    client.end();
}

fn what_a_command_prints_comes_as_progress_to_who_asked() {
    let mut client = Client::of_root();
    let (id, _) = client.begin(
        "echo ready; until [ -e go ]; do sleep 0.02; done; printf '\\033[1mdone\\033[0m\\n'",
    );
    // The command still runs: it is told to end only now.
    client.write("root/go", "");
    let answer = client.answer(id);
    assert_eq!(answer["result"]["content"][0]["text"], "ready\ndone\n\nexit_code: 0");
    let progress: Vec<_> = client
        .seen
        .iter()
        .filter(|message| message["method"] == "notifications/progress")
        .map(|message| &message["params"])
        .collect();
    assert_eq!(progress.last().unwrap()["message"], "done\n");
    assert_eq!(progress.last().unwrap()["progressToken"], "t");
    assert_eq!(progress.last().unwrap()["progress"], 3.0);
    client.end();
}

fn nothing_comes_as_progress_to_who_did_not_ask() {
    let mut client = Client::of_root();
    client.text("bash", json!({"command": "echo out"}));
    assert!(client.seen.iter().all(|message| message["method"] != "notifications/progress"));
    client.end();
}

fn a_cancelled_call_ends_its_command_and_has_no_answer() {
    let mut client = Client::of_root();
    let (id, pid) = client.begin("echo ready; sleep 1000");
    client.notify("notifications/cancelled", json!({"requestId": id, "reason": "a story"}));
    wait_for_end(pid);
    assert_eq!(client.text("bash", json!({"command": "echo next"})), "next\n\nexit_code: 0");
    assert!(client.seen.iter().all(|message| message["id"] != id), "{:?}", client.seen);
    client.end();
}

fn a_session_knows_what_it_has_read() {
    let mut client = Client::with(&["--root", ".", "--read-before-write"]);
    client.write("root/a.txt", "one\n");
    let change = json!({"path": "a.txt", "content": "two\n"});
    let unread = client.failure("write_file", change.clone());
    assert!(unread.contains("read"), "{unread}");
    client.text("read_file", json!({"path": "a.txt"}));
    client.text("write_file", change);
    client.end();
}

fn the_log_comes_from_the_level_on_that_was_asked_for() {
    let mut client = Client::launched("root", &["--root", "."]);
    client.initialize();
    let configured = client.until(|message| message["method"] == "notifications/message");
    assert_eq!(configured["params"]["level"], "info");
    assert_eq!(configured["params"]["data"]["message"], "configured");
    assert_eq!(client.ask("logging/setLevel", json!({"level": "error"}))["result"], json!({}));
    let unknown = client.ask("logging/setLevel", json!({"level": "loud"}));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    client.end();
}
