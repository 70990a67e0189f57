//! Edits and writes that need more than a directory to test: several calls at once, other programs,
//! files that are no files.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::process::Command;

use serde_json::{Value, json};
use tool_provider::Call;
use tool_provider::grpc::ToolClient;

use crate::harness::{Fixture, call, names};
use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        edits_at_the_same_time_lose_nothing,
        an_edit_and_a_write_take_turns,
        a_change_by_another_program_is_not_overwritten,
        an_operator_can_ask_for_reading_before_overwriting,
        what_is_no_file_is_neither_edited_nor_written,
        a_hard_link_is_parted,
        a_read_only_root_is_not_written,
        versions_agree_between_reading_and_writing,
    ]
}

fn edit(path: &str, old: &str, new: &str) -> Call {
    call("edit_file", json!({"path": path, "old_string": old, "new_string": new}))
}

fn write(path: &str, content: &str) -> Call {
    call("write_file", json!({"path": path, "content": content}))
}

/// Runs a call and says whether it succeeded.
async fn succeeds(client: &ToolClient, call: Call) -> bool {
    client.clone().invoke_to_end(call).await.unwrap().1.is_ok()
}

/// E11: as many replies of success as changes in the file, through whatever name it is reached.
async fn edits_at_the_same_time_lose_nothing() {
    let fixture = Fixture::configured().await;
    std::os::unix::fs::symlink("n.txt", fixture.path("link")).unwrap();
    let spellings =
        ["n.txt".to_owned(), "./link".to_owned(), fixture.path("n.txt").display().to_string()];
    for round in 0..50 {
        fixture.write("n.txt", (1..=200).map(|n| format!("{n}\n")).collect::<String>());
        let calls = (1..=19).map(|n| {
            let line = format!("\n{}\n", n * 10);
            let session_id = format!("session-{}", n % 3);
            let path = &spellings[(n + round) % spellings.len()];
            let call = edit(path, &line, &line.replace("0\n", "0x\n"));
            let client = fixture.client.clone();
            tokio::spawn(async move { succeeds(&client, Call { session_id, ..call }).await })
        });
        let mut successes = 0;
        for call in calls.collect::<Vec<_>>() {
            successes += usize::from(call.await.unwrap());
        }
        let content = fs::read_to_string(fixture.path("n.txt")).unwrap();
        assert_eq!((successes, content.matches('x').count()), (19, 19), "round {round}");
        assert_eq!(content.lines().count(), 200);
    }
    assert!(fs::symlink_metadata(fixture.path("link")).unwrap().is_symlink());
    assert_eq!(names(&fixture.path("")).len(), 2, "something was left behind");
    fixture.end().await;
}

/// An edit and a write of one file never mix: the edit's line is there, or the write came last.
async fn an_edit_and_a_write_take_turns() {
    let fixture = Fixture::configured().await;
    for round in 0..30 {
        fixture.write("a.txt", "old\n");
        let whole = format!("{}old\n", "written\n".repeat(2000));
        let (edited, written) = tokio::join!(
            succeeds(&fixture.client, edit("a.txt", "old", "new")),
            succeeds(
                &fixture.client,
                Call { session_id: format!("writer-{round}"), ..write("./a.txt", &whole) }
            ),
        );
        assert!(edited && written, "round {round}");
        let content = fs::read_to_string(fixture.path("a.txt")).unwrap();
        assert!(content == whole || content == whole.replace("old", "new"), "{}", content.len());
    }
    fixture.end().await;
}

/// E12: the same size and the same times, but another content.
async fn a_change_by_another_program_is_not_overwritten() {
    let mut fixture = Fixture::configured().await;
    fixture.write("s.txt", "a\nb\n");
    let read = fixture.result("read_file", json!({"path": "s.txt"})).await;
    let version = read["version"].as_str().unwrap().to_owned();
    let before = fs::metadata(fixture.path("s.txt")).unwrap();
    fixture.write("s.txt", "a\nU\n");
    let file = fs::OpenOptions::new().write(true).open(fixture.path("s.txt")).unwrap();
    file.set_modified(before.modified().unwrap()).unwrap();

    let failure =
        fixture.failure("write_file", json!({"path": "s.txt", "content": "a\nB\n"})).await;
    assert_eq!((failure.category.as_str(), failure.retryable), ("concurrency_conflict", false));
    let current = failure.details["current_version"].clone();
    for tool in ["write_file", "edit_file"] {
        let mut arguments = json!({"path": "s.txt", "expected_version": version});
        let more = match tool {
            "write_file" => json!({"content": "x"}),
            _ => json!({"old_string": "a", "new_string": "x"}),
        };
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let failure = fixture.failure(tool, arguments).await;
        assert_eq!(failure.details["current_version"], current, "{tool}");
    }
    fixture
        .result("edit_file", json!({"path": "s.txt", "old_string": "a", "new_string": "A"}))
        .await;
    assert_eq!(fs::read_to_string(fixture.path("s.txt")).unwrap(), "A\nU\n");
    // The session has still not seen the U: its edit does not make the file its own.
    fixture.failure("write_file", json!({"path": "s.txt", "content": "lost"})).await;

    // Its own writes never count as foreign.
    fixture.result("read_file", json!({"path": "s.txt"})).await;
    for content in ["1\n", "2\n"] {
        fixture.result("write_file", json!({"path": "s.txt", "content": content})).await;
        let edit = json!({"path": "s.txt", "old_string": content, "new_string": "3\n"});
        fixture.result("edit_file", edit).await;
    }
    let other = Call { session_id: "other".to_owned(), ..write("s.txt", "theirs\n") };
    assert!(succeeds(&fixture.client, other).await);
    fixture.failure("write_file", json!({"path": "s.txt", "content": "mine\n"})).await;
    fixture.end().await;
}

async fn an_operator_can_ask_for_reading_before_overwriting() {
    let mut fixture = Fixture::launched().await;
    fixture.configure(json!({"read_before_write": true})).await.unwrap();
    fixture.write("a.txt", "a\n");
    fixture.write("long.txt", "line\n".repeat(3000));
    let over = json!({"path": "a.txt", "content": "b\n"});
    let failure = fixture.failure("write_file", over.clone()).await;
    assert_eq!(failure.category, "invalid_arguments");
    assert!(failure.message.contains("read_before_write"), "{}", failure.message);
    fixture.result("read_file", json!({"path": "a.txt"})).await;
    fixture.result("write_file", over).await;
    // A part is not enough, and a new file needs nothing.
    fixture.result("read_file", json!({"path": "long.txt"})).await;
    fixture.failure("write_file", json!({"path": "long.txt", "content": ""})).await;
    fixture.result("write_file", json!({"path": "new.txt", "content": "n\n"})).await;
    fixture.result("write_file", json!({"path": "new.txt", "content": "m\n"})).await;
    fixture.end().await;
}

/// R01: what is no file answers at once, and Preview does not wait for it either.
async fn what_is_no_file_is_neither_edited_nor_written() {
    let mut fixture = Fixture::configured().await;
    assert!(Command::new("mkfifo").arg(fixture.path("p")).status().unwrap().success());
    let _socket = UnixListener::bind(fixture.path("s")).unwrap();
    for (path, what) in [("p", "FIFO"), ("s", "socket"), (".", "directory")] {
        for asked in [edit(path, "a", "b"), write(path, "x")] {
            let view = fixture.client.preview(asked.clone()).await.unwrap();
            assert!(format!("{view:?}").contains(what), "{view:?}");
            let failure = fixture.client.invoke_to_end(asked).await.unwrap().1.unwrap_err();
            assert_eq!(failure.category, "execution_failed");
            assert!(failure.message.contains(what), "{}", failure.message);
        }
    }
    fixture.end().await;
}

/// S09: the file that lies outside the root keeps its content, and the result says so.
async fn a_hard_link_is_parted() {
    let mut fixture = Fixture::configured().await;
    let outside = fixture.path("").parent().unwrap().join("outside");
    fs::write(&outside, "S\n").unwrap();
    fs::hard_link(&outside, fixture.path("h")).unwrap();
    let result = fixture
        .result("edit_file", json!({"path": "h", "old_string": "S", "new_string": "X"}))
        .await;
    assert!(result["notice"].as_str().unwrap().contains("1 other name (hard links)"));
    assert_eq!(fs::read_to_string(&outside).unwrap(), "S\n");
    assert_eq!(fs::read_to_string(fixture.path("h")).unwrap(), "X\n");
    assert_eq!(fs::metadata(fixture.path("h")).unwrap().nlink(), 1);
    fixture.end().await;
}

/// A read-only root is named, with the roots that may be written, before and at the call.
async fn a_read_only_root_is_not_written() {
    let mut fixture = Fixture::launched().await;
    let directory = fixture.path("").parent().unwrap().join("ro");
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("a"), "a\n").unwrap();
    fixture.configure(json!({"read_only_roots": ["ro"]})).await.unwrap();
    let path = directory.join("a").display().to_string();
    for asked in [edit(&path, "a", "b"), write(&path, "b"), write(&path.replace("/a", "/new"), "b")]
    {
        let view = fixture.client.preview(asked.clone()).await.unwrap();
        assert!(format!("{view:?}").contains("read_only_roots"), "{view:?}");
        let failure = fixture.client.invoke_to_end(asked).await.unwrap().1.unwrap_err();
        assert_eq!(failure.category, "permission_denied");
        assert!(failure.message.contains("read_only_roots"), "{}", failure.message);
        // The errno, the right, the setting that would grant it, and the jail behind it.
        let details = &failure.details;
        assert_eq!((&details["errno"], &details["missing_right"]), (&json!(30), &json!("write")));
        assert_eq!(details["setting"], "roots");
        assert!(["full", "kernel"].contains(&text(&details["jail"])));
    }
    assert_eq!(names(&directory), ["a"]);
    fixture.end().await;
}

/// What was written can be read back, and its version is that of the reader.
async fn versions_agree_between_reading_and_writing() {
    let mut fixture = Fixture::configured().await;
    for content in ["", "a", "a\r\nb\n", "\u{FEFF}mark\n", "größe\n"] {
        let written = fixture.result("write_file", json!({"path": "f", "content": content})).await;
        let read = fixture.result("read_file", json!({"path": "f"})).await;
        assert_eq!(written["version"], read["version"], "{content:?}");
        assert_eq!(fs::read(fixture.path("f")).unwrap(), content.as_bytes());
    }
    let utf16: Vec<u8> = [0xFF, 0xFE]
        .into_iter()
        .chain("one\r\ntwo\r\n".encode_utf16().flat_map(u16::to_le_bytes))
        .collect();
    fixture.write("u", utf16);
    let read: Value = fixture.result("read_file", json!({"path": "u"})).await.into();
    let expected = read["version"].clone();
    let arguments = json!({
        "path": "u", "old_string": "two", "new_string": "2", "expected_version": expected
    });
    let edited = fixture.result("edit_file", arguments).await;
    let read = fixture.result("read_file", json!({"path": "u"})).await;
    assert_eq!(edited["version"], read["version"]);
    assert_eq!(read["encoding"], "utf-16le");
    fixture.end().await;
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}
