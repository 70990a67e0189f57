//! Disks that are full or become read-only while a provider works on them.

use serde_json::json;

use crate::environment::mount;
use crate::harness::{Story, names, refusal};
use crate::trials::{Need, Trial};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        commands_run_without_room_for_their_output needs [Need::MountNamespace],
        a_file_system_that_becomes_read_only_is_told_as_that needs [Need::MountNamespace],
    ]
}

/// Where the results of commands are kept, and where a jail's private folders lie, there is no room.
async fn commands_run_without_room_for_their_output() {
    let mut story = Story::launched().await;
    let tmp = story.path("").parent().unwrap().join("tmp");
    // Its socket is hidden by this, and its client is connected already.
    mount(&["-t", "tmpfs", "-o", "size=256k,nr_inodes=200", "tmpfs"], &tmp);
    story.configure(json!({})).await.unwrap();
    let (_, outcome) = story.call("bash", json!({"command": "seq 200000"})).await;
    let result = outcome.unwrap();
    assert_eq!((&result["exit_code"], &result["truncated"]), (&json!(0), &json!(true)));
    assert!(result["output"].as_str().unwrap().ends_with("200000\n"));
    // What of it could be kept says that it is not all.
    if let Some(path) = result.get("full_output_path") {
        story.result("read_file", json!({"path": path, "limit": 5})).await;
    }
    let notice = result["notice"].as_str().unwrap_or_default();
    assert!(notice.contains("space"), "nothing tells of the full disk: {result:?}");
    story.write("a.txt", "one\n");
    let edit = json!({"path": "a.txt", "old_string": "one", "new_string": "two"});
    story.result("edit_file", edit).await;
    // Once there is no room for another jail's folders, the old jail stays in force.
    let fill = tmp.join("fill");
    std::fs::create_dir(&fill).unwrap();
    let files = (0..).map(|number| std::fs::write(fill.join(number.to_string()), ""));
    assert!(files.take(200).any(|made| made.is_err()), "there is room for ever");
    let (code, failure) = refusal(story.configure(json!({})).await.unwrap_err());
    assert_eq!(code, tonic::Code::FailedPrecondition, "{failure:?}");
    story.call("bash", json!({"command": "true"})).await.1.unwrap();
    std::fs::remove_dir_all(fill).unwrap();
    story.configure(json!({})).await.unwrap();
    story.call("bash", json!({"command": "true"})).await.1.unwrap();
}

/// What could be written when the provider was configured cannot be any more, and then can again.
async fn a_file_system_that_becomes_read_only_is_told_as_that() {
    let mut story = Story::launched().await;
    let root = story.path("");
    mount(&["-t", "tmpfs", "-o", "size=1m", "tmpfs"], &root);
    story.write("a.txt", "one\n");
    story.configure(json!({})).await.unwrap();
    let changes = [
        ("edit_file", json!({"path": "a.txt", "old_string": "one", "new_string": "two"})),
        ("write_file", json!({"path": "a.txt", "content": "three\n"})),
        ("write_file", json!({"path": "new/folder/b.txt", "content": "four\n"})),
    ];
    mount(&["-o", "remount,bind,ro"], &root);
    for (tool, arguments) in changes.clone() {
        let failure = story.failure(tool, arguments).await;
        assert_eq!((&*failure.category, failure.retryable), ("permission_denied", false));
        assert!(failure.message.ends_with("read-only file system"), "{}", failure.message);
        assert_eq!(failure.details["kind"], "auth");
    }
    let read = story.result("read_file", json!({"path": "a.txt"})).await;
    assert_eq!(read["total_lines"], 1);
    let (_, outcome) = story.call("bash", json!({"command": "cat a.txt"})).await;
    assert_eq!(outcome.unwrap()["output"], "one\n");
    mount(&["-o", "remount,bind,rw"], &root);
    assert_eq!(names(&root), ["a.txt"]);
    for (tool, arguments) in changes {
        story.result(tool, arguments).await;
    }
    story.end().await;
}
