//! A preview shows the very bytes that the call writes, and changes nothing.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde_json::{Value, json};
use tool_provider::view::{DiffOp, Hunk, View};

use crate::harness::{Fixture, call, names};
use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        the_hunks_of_an_edit_are_what_it_writes,
        the_hunks_of_a_write_are_what_it_writes,
        a_preview_makes_nothing,
    ]
}

/// How a text becomes a file's bytes; written out here, so that the provider's own code is not what
/// it is held against.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    Utf8,
    Utf8Mark,
    Utf16Little,
    Utf16Big,
    Latin1,
}

const FORMS: [Form; 5] =
    [Form::Utf8, Form::Utf8Mark, Form::Utf16Little, Form::Utf16Big, Form::Latin1];

impl Form {
    fn bytes(self, text: &str) -> Vec<u8> {
        match self {
            Form::Utf8 => text.into(),
            Form::Utf8Mark => [b"\xEF\xBB\xBF", text.as_bytes()].concat(),
            Form::Utf16Little => {
                let units = text.encode_utf16().flat_map(u16::to_le_bytes);
                [0xFF, 0xFE].into_iter().chain(units).collect()
            }
            Form::Utf16Big => {
                let units = text.encode_utf16().flat_map(u16::to_be_bytes);
                [0xFE, 0xFF].into_iter().chain(units).collect()
            }
            Form::Latin1 => {
                text.chars().map(|char| u8::try_from(u32::from(char)).unwrap()).collect()
            }
        }
    }
}

const LINES: [&str; 10] = [
    "erste Zeile",
    "zwei: die Größe über alles",
    "drei, naïve et café déjà vu",
    "",
    "\tvier für fünf",
    "sechs",
    "sieben mit Leerzeichen  ",
    "acht",
    "neun und zehn",
    "letzte",
];

/// Texts with each kind of line ending, with and without a last one.
fn texts() -> Vec<String> {
    let mixed = |(index, line): (usize, &&str)| {
        format!("{line}{}", ["\n", "\r\n", "\n", "\rdata\n"][index % 4])
    };
    let ended = [
        LINES.map(|line| format!("{line}\n")).concat(),
        LINES.map(|line| format!("{line}\r\n")).concat(),
        LINES.iter().enumerate().map(mixed).collect(),
    ];
    let open = ended.clone().map(|text| text.trim_end_matches(['\r', '\n']).to_owned());
    ended.into_iter().chain(open).collect()
}

fn edits() -> Vec<Value> {
    vec![
        json!({"old_string": "erste", "new_string": "1."}),
        json!({"old_string": "letzte", "new_string": "vorletzte\nletzte"}),
        json!({"old_string": "letzte", "new_string": "letzte\n"}),
        json!({"old_string": "sechs\n", "new_string": ""}),
        json!({"old_string": "für fünf\nsechs\n", "new_string": "und\nfünf\nund\nsechs\n"}),
        json!({"old_string": "e", "new_string": "E", "replace_all": true}),
        json!({"edits": [
            {"old_string": "drei", "new_string": "3"},
            {"old_string": "3, ", "new_string": "3:\n"},
            {"old_string": "acht", "new_string": "8"},
        ]}),
    ]
}

fn hunks(view: &View) -> Vec<&Hunk> {
    match view {
        View::Diff(hunks) => hunks.iter().collect(),
        View::Group(views) => views.iter().flat_map(hunks).collect(),
        _ => Vec::new(),
    }
}

/// Applies hunks to a text whose lines are separated by LF, and by nothing else.
fn applied(old: &str, hunks: &[&Hunk]) -> String {
    let old: Vec<&str> = if old.is_empty() { Vec::new() } else { old.split('\n').collect() };
    let (mut new, mut at) = (Vec::new(), 0);
    for hunk in hunks {
        let start = usize::try_from(hunk.old_start).unwrap() - usize::from(hunk.old_lines > 0);
        new.extend_from_slice(&old[at..start]);
        at = start;
        for line in &hunk.lines {
            if line.op != DiffOp::Add {
                assert_eq!(old[at], line.text);
                at += 1;
            }
            if line.op != DiffOp::Remove {
                new.push(line.text.as_str());
            }
        }
    }
    new.extend_from_slice(&old[at..]);
    new.join("\n")
}

/// All that a look at a file could change.
fn facts(path: &Path) -> [i64; 8] {
    let facts = fs::metadata(path).unwrap();
    [
        facts.ino().cast_signed(),
        facts.size().cast_signed(),
        facts.mtime(),
        facts.mtime_nsec(),
        facts.ctime(),
        facts.ctime_nsec(),
        facts.atime(),
        facts.atime_nsec(),
    ]
}

/// E01–E04: for every form of file and kind of edit, the old text with the previewed hunks is, byte
/// for byte, what the call then writes.
async fn the_hunks_of_an_edit_are_what_it_writes() {
    let mut fixture = Fixture::configured().await;
    let mut compared = 0;
    for form in FORMS {
        for text in texts() {
            for edit in edits() {
                fixture.write("f", form.bytes(&text));
                let mut asked = call("edit_file", edit.clone());
                asked.arguments.insert("path".to_owned(), "f".into());
                let before = facts(&fixture.path("f"));
                let view = fixture.client.preview(asked.clone()).await.unwrap();
                assert_eq!(facts(&fixture.path("f")), before, "the preview left a trace");
                let outcome = fixture.client.invoke_to_end(asked).await.unwrap().1;
                let Err(failure) = outcome else {
                    let written = fs::read(fixture.path("f")).unwrap();
                    let expected = form.bytes(&applied(&text, &hunks(&view)));
                    assert!(written == expected, "{form:?} {edit} {text:?}\n{view:?}");
                    assert_ne!(written, form.bytes(&text));
                    compared += 1;
                    continue;
                };
                // Only what is not there: a line ending where a lone CR stands before it.
                assert_eq!(failure.category, "not_found", "{form:?} {edit} {text:?}: {failure}");
                assert!(format!("{view:?}").contains("This call would fail"), "{view:?}");
                assert_eq!(fs::read(fixture.path("f")).unwrap(), form.bytes(&text));
            }
        }
    }
    assert!(
        compared >= FORMS.len() * texts().len() * edits().len() * 9 / 10,
        "only {compared} edits"
    );
    fixture.end().await;
}

/// The same for whole files: new ones, empty ones, other forms.
async fn the_hunks_of_a_write_are_what_it_writes() {
    let mut fixture = Fixture::configured().await;
    let mut olds: Vec<(Option<Vec<u8>>, String)> =
        vec![(None, String::new()), (Some(Vec::new()), String::new())];
    for form in FORMS {
        for text in texts() {
            // The mark of UTF-8 goes: it is shown as the character that it is.
            let shown =
                if form == Form::Utf8Mark { format!("\u{FEFF}{text}") } else { text.clone() };
            olds.push((Some(form.bytes(&text)), shown));
        }
    }
    let news = [
        String::new(),
        "\n".to_owned(),
        "one line".to_owned(),
        "one line\n".to_owned(),
        format!("{}\nletzte\n", LINES[..4].join("\n")),
        LINES.map(|line| format!("{line}\r\n")).concat(),
    ];
    for (old, shown) in &olds {
        for new in &news {
            let _ = fs::remove_file(fixture.path("f"));
            if let Some(old) = old {
                fixture.write("f", old);
            }
            let before = old.is_some().then(|| facts(&fixture.path("f")));
            let asked = call("write_file", json!({"path": "f", "content": new}));
            let view = fixture.client.preview(asked.clone()).await.unwrap();
            assert_eq!(old.is_some().then(|| facts(&fixture.path("f"))), before);
            let mut made = applied(shown, &hunks(&view));
            // Where there was nothing, nothing shows a last line ending but this note.
            let open = format!("{view:?}").contains("There is no newline at the end");
            if shown.is_empty() && !hunks(&view).is_empty() && !open {
                made.push('\n');
            }
            // Each in a session of its own: a test that rewrites the file is another program.
            let session_id = format!("{new:?}{old:?}");
            let asked = tool_provider::Call { session_id, ..asked };
            fixture.client.invoke_to_end(asked).await.unwrap().1.unwrap();
            assert_eq!(fs::read_to_string(fixture.path("f")).unwrap(), *new);
            assert_eq!(made, *new, "{old:?}\n{view:?}");
        }
    }
    fixture.end().await;
}

/// A preview of a new file makes neither it nor its directories, and one that cannot work says why.
async fn a_preview_makes_nothing() {
    let mut fixture = Fixture::configured().await;
    fixture.write("f", "old\n");
    let root = fixture.path("");
    let before = [facts(&root), facts(&fixture.path("f"))];
    for (arguments, said) in [
        (json!({"path": "a/b/new", "content": "x\n"}), "Create a/b/new"),
        (json!({"path": "f", "content": "new\n"}), "Overwrite f"),
        (json!({"path": "f/x", "content": "new\n"}), "is not a directory"),
        (
            json!({"path": "f", "content": "", "expected_version": "0".repeat(32)}),
            "it has been changed and is not at version",
        ),
        (json!({"path": "/etc/hosts", "content": ""}), "outside the roots"),
    ] {
        let view = fixture.client.preview(call("write_file", arguments)).await.unwrap();
        assert!(format!("{view:?}").contains(said), "{said}: {view:?}");
    }
    assert_eq!([facts(&root), facts(&fixture.path("f"))], before);
    assert_eq!(names(&root), ["f"]);
    fixture.end().await;
}
