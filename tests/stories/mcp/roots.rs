//! Which directories the tools reach: those of the configuration, of the client, or the working one.

use std::path::Path;

use serde_json::json;

use super::client::{Client, refused};
use crate::trials::Trial;

pub(super) fn trials() -> Vec<Trial> {
    trials![
        a_clients_roots_are_taken_and_changed,
        roots_on_the_command_line_come_first,
        roots_that_cannot_be_used_refuse_calls_until_others_come,
        sessions_under_roots_that_are_no_longer_meant_end,
        without_roots_the_working_directory_is_taken,
        the_home_directory_is_not_taken_by_default,
        the_configuration_can_be_in_a_file,
        what_is_wrong_with_the_configuration_is_said_before_a_client_is_served,
    ]
}

fn uri(path: &Path) -> String {
    format!("file://{}", path.display())
}

/// Two projects beside one another, and a client that names the first.
fn with_projects() -> Client {
    let mut client = Client::launched("home", &[]);
    for name in ["one", "two"] {
        std::fs::create_dir(client.path(name)).unwrap();
        client.write(&format!("{name}/a.txt"), name);
    }
    client.roots = Some(vec![uri(&client.path("one"))]);
    client
}

fn a_clients_roots_are_taken_and_changed() {
    let mut client = with_projects();
    client.initialize();
    client.until(|message| message["params"]["data"]["message"] == "configured");
    let [one, two] = ["one/a.txt", "two/a.txt"].map(|name| client.path(name));
    assert!(client.text("read_file", json!({"path": "a.txt"})).starts_with("1:one"));
    let denied = client.failure("read_file", json!({"path": two}));
    assert!(denied.contains("outside"), "{denied}");

    client.roots = Some(vec![uri(&client.path("two"))]);
    client.notify("notifications/roots/list_changed", json!({}));
    client.until(|message| message["params"]["data"]["message"] == "configured");
    assert!(client.text("read_file", json!({"path": two})).starts_with("1:two"));
    let denied = client.failure("read_file", json!({"path": one}));
    assert!(denied.contains("outside"), "{denied}");
    client.end();
}

fn roots_on_the_command_line_come_first() {
    let mut client = Client::launched("root", &["--root", "."]);
    client.write("root/a.txt", "root");
    client.roots = Some(vec!["file:///nowhere".to_owned()]);
    client.initialize();
    assert!(client.text("read_file", json!({"path": "a.txt"})).starts_with("1:root"));
    assert!(client.seen.iter().all(|message| message["method"] != "roots/list"));
    client.end();
}

fn roots_that_cannot_be_used_refuse_calls_until_others_come() {
    let mut client = with_projects();
    let good = client.roots.replace(vec!["https://example.org/".to_owned()]);
    client.initialize();
    let refused = client.failure("read_file", json!({"path": "a.txt"}));
    assert!(refused.contains("https://example.org/") && refused.contains("--root"), "{refused}");

    client.roots = Some(vec![uri(&client.path("missing"))]);
    client.notify("notifications/roots/list_changed", json!({}));
    client.until(|message| {
        let said = message["params"]["data"]["message"].as_str();
        said.is_some_and(|said| said.contains("missing"))
    });
    let refused = client.failure("read_file", json!({"path": "a.txt"}));
    assert!(refused.contains("missing") && refused.contains("does not exist"), "{refused}");

    client.roots = good;
    client.notify("notifications/roots/list_changed", json!({}));
    client.until(|message| message["params"]["data"]["message"] == "configured");
    assert!(client.text("read_file", json!({"path": "a.txt"})).starts_with("1:one"));
    client.end();
}

fn sessions_under_roots_that_are_no_longer_meant_end() {
    let mut client = with_projects();
    client.initialize();
    let command = "mkfifo end; echo begun; cat end";
    let begun = client.text("session_start", json!({"command": command, "ready": "begun"}));
    assert!(begun.contains("begun"), "{begun}");
    // The other end of the pipe is gone when the session is.
    let pipe = std::fs::File::options().write(true).open(client.path("one/end")).unwrap();

    client.roots = Some(vec![uri(&client.path("missing"))]);
    client.notify("notifications/roots/list_changed", json!({}));
    let refused = client.failure("session_read", json!({}));
    assert!(refused.contains("missing"), "{refused}");
    let written = std::io::Write::write(&mut &pipe, b"x");
    assert_eq!(written.unwrap_err().kind(), std::io::ErrorKind::BrokenPipe);
    client.end();
}

fn without_roots_the_working_directory_is_taken() {
    let mut client = Client::with(&[]);
    client.write("root/a.txt", "here");
    assert!(client.text("read_file", json!({"path": "a.txt"})).starts_with("1:here"));
    let above = client.path("home");
    client.failure("glob", json!({"pattern": "*", "path": above}));
    client.end();
}

fn the_home_directory_is_not_taken_by_default() {
    for current in ["home", ".", "/"] {
        let mut client = Client::launched(current, &[]);
        client.initialize();
        let message = client.failure("glob", json!({"pattern": "*"}));
        assert!(message.contains("--root DIR"), "{message}");
        client.end();
    }
    let mut client = Client::launched("home", &["--root", "."]);
    client.initialize();
    client.text("glob", json!({"pattern": "*"}));
    client.end();
}

fn the_configuration_can_be_in_a_file() {
    let directory = super::client::directory();
    std::fs::write(
        directory.path().join("keys.hcl"),
        "roots = [\"root\"]\nbash_timeout_ms = 150\n",
    )
    .unwrap();
    let command = super::client::server(directory.path(), ".", &["--config", "keys.hcl"]);
    let mut client = Client::of_command(directory, command);
    client.initialize();
    let late = client.failure("bash", json!({"command": "sleep 1000"}));
    assert!(late.contains("150"), "{late}");
    client.end();
}

fn what_is_wrong_with_the_configuration_is_said_before_a_client_is_served() {
    let file =
        |text: &'static str| move |root: &Path| std::fs::write(root.join("c"), text).unwrap();
    for (arguments, content, expected) in [
        (&["--root", "missing"][..], "", "does not exist"),
        (&["--config", "c"], "root = [\".\"]", "did you mean \"roots\"?"),
        (&["--config", "c"], "bash_timeout_ms = \"5\"", "bash_timeout_ms"),
        (&["--config", "c", "--network", "deny"], "network = \"deny\"", "given twice"),
        (&["--config", "nothing"], "", "cannot read nothing"),
        (&["--network", "some"], "", "allow"),
    ] {
        let (status, said) = refused(arguments, file(content));
        assert_eq!(status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}
