//! Disks that are full or become read-only while a provider works on them.

use serde_json::json;

use crate::environment::mount;
use crate::harness::{Fixture, names, refusal};
use crate::trials::{Need, Trial};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        commands_run_without_room_for_their_output needs [Need::MountNamespace],
        what_fills_the_temporary_directory_is_ended needs [Need::MountNamespace],
        a_file_system_that_becomes_read_only_is_reported_as_that needs [Need::MountNamespace],
    ]
}

/// Where the results of commands are kept, and where a jail's private directories lie, there is no
/// room.
async fn commands_run_without_room_for_their_output() {
    let mut fixture = Fixture::launched().await;
    let tmp = fixture.path("").parent().unwrap().join("tmp");
    // Its socket is hidden by this, and its client is connected already.
    mount(&["-t", "tmpfs", "-o", "size=256k,nr_inodes=200", "tmpfs"], &tmp);
    fixture.configure(json!({})).await.unwrap();
    let (_, outcome) = fixture.call("bash", json!({"command": "seq 200000"})).await;
    let result = outcome.unwrap();
    assert_eq!(result["exit_code"], 0);
    let output = result["output"].as_str().unwrap();
    assert!(output.contains("bytes left out") && output.ends_with("200000\n"), "{output}");
    // What of it could be kept says that it is not all.
    if let Some(path) = result.get("full_output_path") {
        fixture.result("read_file", json!({"path": path, "limit": 5})).await;
    }
    let notice = result["notice"].as_str().unwrap_or_default();
    assert!(notice.contains("space"), "nothing mentions the full disk: {result:?}");
    fixture.write("a.txt", "one\n");
    let edit = json!({"path": "a.txt", "old_string": "one", "new_string": "two"});
    fixture.result("edit_file", edit).await;
    // Once there is no space for another jail's directories, the old jail stays in force.
    let fill = tmp.join("fill");
    std::fs::create_dir(&fill).unwrap();
    let files = (0..).map(|number| std::fs::write(fill.join(number.to_string()), ""));
    assert!(files.take(200).any(|made| made.is_err()), "the disk never fills up");
    let (code, failure) = refusal(fixture.configure(json!({})).await.unwrap_err());
    assert_eq!(code, tonic::Code::FailedPrecondition, "{failure:?}");
    fixture.call("bash", json!({"command": "true"})).await.1.unwrap();
    std::fs::remove_dir_all(fill).unwrap();
    fixture.configure(json!({})).await.unwrap();
    fixture.call("bash", json!({"command": "true"})).await.1.unwrap();
}

/// Each of these would wait for ever, and is ended for what it put there, as is a session.
async fn what_fills_the_temporary_directory_is_ended() {
    let mut fixture = Fixture::launched().await;
    let tmp = fixture.path("").parent().unwrap().join("tmp");
    mount(&["-t", "tmpfs", "-o", "size=16m,nr_inodes=2000", "tmpfs"], &tmp);
    fixture.configure(json!({})).await.unwrap();
    let ended = "three quarters of what had been free";
    // Only what is made here: what is granted below /tmp is there too.
    let names = r#"mkdir "$TMPDIR/n"; cd "$TMPDIR/n"; seq -f n%g 1700 | xargs touch"#;
    for fill in [r#"head -c 14M /dev/zero >"$TMPDIR/large""#, names] {
        let command = format!("({fill}); exec sleep 1000");
        let (_, outcome) = fixture.call("bash", json!({ "command": command })).await;
        let result = outcome.unwrap();
        assert_eq!(result["signal"], "SIGKILL", "{result:?}");
        let notice = result["notice"].as_str().unwrap();
        assert!(notice.contains(ended) && !notice.contains("did not come"), "{notice}");
        // Who cleans up is left alone, and there is room again.
        let clean = json!({"command": r#"rm -rf "$TMPDIR/large" "$TMPDIR/n""#});
        let cleaned = fixture.call("bash", clean).await.1.unwrap();
        assert_eq!(cleaned["exit_code"], 0, "{cleaned:?}");
    }
    let start = json!({"command": r#"head -c 14M /dev/zero >"$TMPDIR/large"; exec sleep 1000"#});
    let session = fixture.call("session_start", start).await.1.unwrap()["session"].clone();
    let read = json!({"session": session, "until": "never", "wait_ms": 60_000});
    let result = fixture.call("session_read", read).await.1.unwrap();
    assert!(result["notice"].as_str().unwrap_or_default().contains(ended), "{result:?}");
    // Others that fill the disk are no reason.
    let clean = json!({"command": r#"rm "$TMPDIR/large""#});
    let cleaned = fixture.call("bash", clean).await.1.unwrap();
    assert_eq!(cleaned["exit_code"], 0, "{cleaned:?}");
    std::fs::write(tmp.join("of-others"), vec![1; 14 << 20]).unwrap();
    let command = r#"echo little >"$TMPDIR/little"; sleep 3; cat "$TMPDIR/little""#;
    let result = fixture.call("bash", json!({ "command": command })).await.1.unwrap();
    assert_eq!(result["output"], "little\n", "{result:?}");
}

/// What could be written when the provider was configured cannot be any more, and then can again.
async fn a_file_system_that_becomes_read_only_is_reported_as_that() {
    let mut fixture = Fixture::launched().await;
    let root = fixture.path("");
    mount(&["-t", "tmpfs", "-o", "size=1m", "tmpfs"], &root);
    fixture.write("a.txt", "one\n");
    fixture.configure(json!({})).await.unwrap();
    let changes = [
        ("edit_file", json!({"path": "a.txt", "old_string": "one", "new_string": "two"})),
        ("write_file", json!({"path": "a.txt", "content": "three\n"})),
        ("write_file", json!({"path": "new/directory/b.txt", "content": "four\n"})),
    ];
    mount(&["-o", "remount,bind,ro"], &root);
    for (tool, arguments) in changes.clone() {
        let failure = fixture.failure(tool, arguments).await;
        assert_eq!((&*failure.category, failure.retryable), ("permission_denied", false));
        assert!(failure.message.contains("read-only file system"), "{}", failure.message);
        assert_eq!(failure.details["kind"], "auth");
    }
    let read = fixture.result("read_file", json!({"path": "a.txt"})).await;
    assert_eq!(read["text"], "1:one\n");
    let (_, outcome) = fixture.call("bash", json!({"command": "cat a.txt"})).await;
    assert_eq!(outcome.unwrap()["output"], "one\n");
    mount(&["-o", "remount,bind,rw"], &root);
    assert_eq!(names(&root), ["a.txt"]);
    for (tool, arguments) in changes {
        fixture.result(tool, arguments).await;
    }
    fixture.end().await;
}
