//! Names that text cannot hold, from one tool to the next.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use serde_json::json;
use workspace_fs::text::name;

use super::{glob, grep};
use crate::harness::Story;
use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_name_in_a_result_is_taken_by_every_tool,
        an_odd_folder_is_a_folder,
        secrets_are_masked_in_what_is_found,
    ]
}

/// Names with something in them that would break a line, hide something, or be no text at all.
const ODD: [&[u8]; 7] = [
    b"\"quoted\"",
    b"a\\n\nb",
    b"bell\x07\x1b[31m",
    b"gr\xfc\xdfe.rs",
    b"tab\t",
    "\u{202e}sr.txt".as_bytes(),
    "zero\u{200b}width".as_bytes(),
];

/// What a search names, every other tool takes, and means the same file.
async fn a_name_in_a_result_is_taken_by_every_tool() {
    let mut story = Story::configured().await;
    std::fs::create_dir(story.path("in")).unwrap();
    for (number, odd) in ODD.iter().enumerate() {
        for folder in ["", "in"] {
            let path = story.path(folder).join(OsStr::from_bytes(odd));
            std::fs::write(path, format!("needle {number}\n")).unwrap();
        }
    }
    let found = grep(&mut story, json!({"pattern": "needle"})).await;
    assert_eq!(found.len(), 2 * ODD.len());
    assert_eq!(glob(&mut story, json!({"pattern": "**/*"})).await.len(), found.len() + 1);
    for shown in &found {
        assert!(!shown.chars().any(char::is_control), "{shown:?}");
        let inside = name::decode(shown);
        let odd = inside.strip_prefix(b"in/").unwrap_or(&inside);
        let number = ODD.iter().position(|known| *known == odd).unwrap();
        let read = story.result("read_file", json!({"path": shown, "line_numbers": false})).await;
        assert_eq!(read["content"], format!("needle {number}\n"), "{shown}");
        let again = grep(&mut story, json!({"pattern": "needle", "path": shown})).await;
        assert_eq!(again, std::slice::from_ref(shown));
        let edit = json!({"path": shown, "old_string": "needle", "new_string": "thread"});
        let edited = story.result("edit_file", edit).await;
        assert_eq!(edited["replacements"], 1, "{shown}");
        let file = story.path("").join(OsStr::from_bytes(&inside));
        assert_eq!(std::fs::read_to_string(file).unwrap(), format!("thread {number}\n"));
    }
    story.end().await;
}

/// Folders of such names can be searched, made, run in and left out of sentences' way.
async fn an_odd_folder_is_a_folder() {
    let mut story = Story::configured().await;
    for odd in ODD {
        let folder = name::encode(odd);
        let inside = name::encode(&[odd, b"/new"].concat()).into_owned();
        story.result("write_file", json!({"path": inside, "content": "needle\n"})).await;
        let made = story.path("").join(OsStr::from_bytes(odd)).join("new");
        assert_eq!(std::fs::read(made).unwrap(), b"needle\n");
        assert_eq!(
            grep(&mut story, json!({"pattern": "needle", "path": folder})).await,
            std::slice::from_ref(&inside)
        );
        assert_eq!(glob(&mut story, json!({"pattern": "*", "path": folder})).await, [inside]);
        let (_, ran) = story.call("bash", json!({"command": "cat new", "cwd": folder})).await;
        let ran = ran.unwrap();
        assert_eq!((&ran["output"], &ran["exit_code"]), (&json!("needle\n"), &json!(0)));
        assert_eq!(name::decode(ran["cwd"].as_str().unwrap()), {
            let root = std::fs::canonicalize(story.path("")).unwrap();
            root.join(OsStr::from_bytes(odd)).into_os_string().into_encoded_bytes()
        });
        let missing = story.failure("read_file", json!({"path": format!("{folder}x")})).await;
        assert!(!missing.message.chars().any(char::is_control), "{missing:?}");
    }
    story.end().await;
}

/// A secret in a file or a name is told as its own name.
async fn secrets_are_masked_in_what_is_found() {
    let launch = |launch: goplugin::host::Launch| launch.env("TOKEN", "s3cr3t-value");
    let mut story = Story::launched_with(launch).await;
    story.write("f", "the key is s3cr3t-value, here\n");
    story.write("s3cr3t-value.txt", "x\n");
    story.write("open", "the key is public\n");
    story.configure(json!({"secret_env": ["TOKEN"]})).await.unwrap();
    for (tool, arguments) in [
        ("grep", json!({"pattern": "key is"})),
        ("grep", json!({"pattern": "cr3t", "context": 1})),
        ("grep", json!({"pattern": "x", "mode": "files"})),
        ("glob", json!({"pattern": "*"})),
    ] {
        let (events, outcome) = story.call(tool, arguments.clone()).await;
        let dump = format!("{events:?} {outcome:?}");
        assert!(!dump.contains("s3cr3t-value"), "{tool} {arguments}: {dump}");
        assert!(dump.contains("[TOKEN]"), "{tool} {arguments}: {dump}");
        let stored = serde_json::to_vec(&outcome.unwrap()).unwrap();
        let shown = format!("{:?}", story.client.render("json", stored).await.unwrap());
        assert!(!shown.contains("s3cr3t-value"), "{shown}");
    }
    assert_eq!(grep(&mut story, json!({"pattern": "public"})).await, ["open"]);
    story.end().await;
}
