//! Names that text cannot hold, from one tool to the next.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use serde_json::json;
use workspace_fs::text::name;

use super::{glob, grep};
use crate::harness::Fixture;
use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_name_in_a_result_is_taken_by_every_tool,
        an_odd_directory_is_a_directory,
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
    let mut fixture = Fixture::configured().await;
    std::fs::create_dir(fixture.path("in")).unwrap();
    for (number, odd) in ODD.iter().enumerate() {
        for directory in ["", "in"] {
            let path = fixture.path(directory).join(OsStr::from_bytes(odd));
            std::fs::write(path, format!("needle {number}\n")).unwrap();
        }
    }
    let found = grep(&mut fixture, json!({"pattern": "needle"})).await;
    assert_eq!(found.len(), 2 * ODD.len());
    assert_eq!(glob(&mut fixture, json!({"pattern": "**/*"})).await.len(), found.len() + 1);
    for shown in &found {
        assert!(!shown.chars().any(char::is_control), "{shown:?}");
        let inside = name::decode(shown);
        let odd = inside.strip_prefix(b"in/").unwrap_or(&inside);
        let number = ODD.iter().position(|known| *known == odd).unwrap();
        let read = fixture.result("read_file", json!({"path": shown, "line_numbers": false})).await;
        assert_eq!(read["text"], format!("needle {number}\n"), "{shown}");
        let again = grep(&mut fixture, json!({"pattern": "needle", "path": shown})).await;
        assert_eq!(again, std::slice::from_ref(shown));
        let edit = json!({"path": shown, "old_string": "needle", "new_string": "thread"});
        let edited = fixture.result("edit_file", edit).await;
        assert_eq!(edited["first_changed_line"], 1, "{shown}");
        let file = fixture.path("").join(OsStr::from_bytes(&inside));
        assert_eq!(std::fs::read_to_string(file).unwrap(), format!("thread {number}\n"));
    }
    fixture.end().await;
}

/// Directories of such names can be searched, made, run in and left out of sentences' way.
async fn an_odd_directory_is_a_directory() {
    let mut fixture = Fixture::configured().await;
    for odd in ODD {
        let directory = name::encode(odd);
        let inside = name::encode(&[odd, b"/new"].concat()).into_owned();
        fixture.result("write_file", json!({"path": inside, "content": "needle\n"})).await;
        let made = fixture.path("").join(OsStr::from_bytes(odd)).join("new");
        assert_eq!(std::fs::read(made).unwrap(), b"needle\n");
        assert_eq!(
            grep(&mut fixture, json!({"pattern": "needle", "path": directory})).await,
            std::slice::from_ref(&inside)
        );
        assert_eq!(glob(&mut fixture, json!({"pattern": "*", "path": directory})).await, [inside]);
        let (_, ran) = fixture
            .call("bash", json!({"command": "cat new; pwd >../cwd", "cwd": directory}))
            .await;
        let ran = ran.unwrap();
        assert_eq!((&ran["output"], &ran["exit_code"]), (&json!("needle\n"), &json!(0)));
        let root = std::fs::canonicalize(fixture.path("")).unwrap();
        let expected = root.join(OsStr::from_bytes(odd)).into_os_string().into_encoded_bytes();
        let ran_in = std::fs::read(fixture.path("cwd")).unwrap();
        assert_eq!(ran_in, [&expected[..], b"\n"].concat());
        let missing = fixture.failure("read_file", json!({"path": format!("{directory}x")})).await;
        assert!(!missing.message.chars().any(char::is_control), "{missing:?}");
    }
    fixture.end().await;
}

/// A secret in a file or a name is shown as the secret's name.
async fn secrets_are_masked_in_what_is_found() {
    let launch = |launch: goplugin::host::Launch| launch.env("TOKEN", "s3cr3t-value");
    let mut fixture = Fixture::launched_with(launch).await;
    fixture.write("f", "the key is s3cr3t-value, here\n");
    fixture.write("s3cr3t-value.txt", "x\n");
    fixture.write("open", "the key is public\n");
    fixture.configure(json!({"secret_env": ["TOKEN"]})).await.unwrap();
    for (tool, arguments) in [
        ("grep", json!({"pattern": "key is"})),
        ("grep", json!({"pattern": "cr3t", "context": 1})),
        ("grep", json!({"pattern": "x", "mode": "files"})),
        ("glob", json!({"pattern": "*"})),
    ] {
        let (events, outcome) = fixture.call(tool, arguments.clone()).await;
        let dump = format!("{events:?} {outcome:?}");
        assert!(!dump.contains("s3cr3t-value"), "{tool} {arguments}: {dump}");
        assert!(dump.contains("[TOKEN]"), "{tool} {arguments}: {dump}");
        let stored = serde_json::to_vec(&outcome.unwrap()).unwrap();
        let shown = format!("{:?}", fixture.client.render("json", stored).await.unwrap());
        assert!(!shown.contains("s3cr3t-value"), "{shown}");
    }
    assert_eq!(grep(&mut fixture, json!({"pattern": "public"})).await, ["open"]);
    fixture.end().await;
}
