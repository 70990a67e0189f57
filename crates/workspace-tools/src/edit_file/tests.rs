use sandbox::Level;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use serde_json::json;

use super::*;
use tool_provider::Secrets;
use tool_provider::view::DiffOp;
use tool_provider::{CancelToken, Category, EmitError, Event, EventSink, Phase};
use workspace_fs::lookups::of as lookups_of;
use workspace_fs::{RootsSpec, Workspace};

/// A root with a file in it, and calls of the tool on it.
struct Fixture {
    files: Files,
    cancel: CancelToken,
    deadline: Option<Instant>,
    root: PathBuf,
    _keep: tempfile::TempDir,
}

struct NoEvents;

impl EventSink for NoEvents {
    fn emit_until(&self, event: Event, _: Option<Instant>) -> Result<(), EmitError> {
        panic!("edit_file does not stream, yet it sent {event:?}");
    }
}

impl Fixture {
    fn with(name: &str, content: impl AsRef<[u8]>) -> Self {
        let keep = tempfile::tempdir().unwrap();
        let root = keep.path().canonicalize().unwrap();
        fs::write(root.join(name), content).unwrap();
        let roots = vec![root.display().to_string()];
        let workspace = Workspace::open(&RootsSpec { roots, ..RootsSpec::default() }).unwrap();
        let files = Files::new(Arc::new(workspace), Level::Off);
        let cancel = CancelToken::new();
        Self { files, cancel, deadline: None, root, _keep: keep }
    }

    fn on<T>(&self, act: impl FnOnce(&EditFile, &Context<'_>) -> T) -> T {
        let phase = Phase::default();
        let context = Context {
            state: &self.files,
            session_id: "",
            working_directory: None,
            sink: &NoEvents,
            cancel: &self.cancel,
            deadline: self.deadline,
            phase: &phase,
            secrets: &Secrets::default(),
        };
        act(&EditFile::default(), &context)
    }

    fn call(&self, arguments: &Value) -> Result<Payload, ToolError> {
        self.on(|tool, context| tool.run(arguments.as_object().unwrap(), context))
    }

    fn preview(&self, arguments: &Value) -> Result<View, ToolError> {
        self.on(|tool, context| tool.preview(arguments.as_object().unwrap(), context))
    }

    fn content(&self, name: &str) -> String {
        fs::read_to_string(self.root.join(name)).unwrap()
    }
}

fn hunks(view: &View) -> usize {
    match view {
        View::Diff(hunks) => hunks.len(),
        View::Group(views) => views.iter().map(hunks).sum(),
        _ => 0,
    }
}

#[test]
fn arguments_that_make_no_sense_are_refused_before_any_file_is_looked_at() {
    let fixture = Fixture::with("a", "a\n");
    let two = json!([{"old_string": "a", "new_string": "b"}]);
    for (arguments, part) in [
        (json!({"path": "none", "old_string": "", "new_string": "b"}), "must not be empty"),
        (json!({"path": "none", "old_string": "a", "new_string": "a"}), "nothing to change"),
        (json!({"path": "none", "old_string": "a"}), "new_string is missing"),
        (json!({"path": "none", "edits": []}), "at least one edit"),
        (json!({"path": "none", "edits": two, "old_string": "a"}), "not both"),
        (json!({"path": "none", "edits": [{"old_string": "a"}]}), "edits[0].new_string"),
        (
            json!({"path": "none", "edits": [two[0], {"old_string": "", "new_string": ""}]}),
            "edits[1]",
        ),
        (json!({}), "path must be a string"),
    ] {
        for error in
            [fixture.call(&arguments).unwrap_err(), fixture.preview(&arguments).unwrap_err()]
        {
            assert_eq!(error.category(), Category::InvalidArguments, "{arguments}");
            assert!(error.message().contains(part), "{part} is missing in: {error}");
        }
    }
}

#[test]
fn an_empty_list_beside_old_string_asks_for_nothing() {
    let fixture = Fixture::with("a", "a\n");
    let arguments = json!({"path": "a", "old_string": "a", "new_string": "b", "edits": []});
    assert_eq!(hunks(&fixture.preview(&arguments).unwrap()), 1);
    assert_eq!(hunks(&EditFile::default().render_call(arguments.as_object().unwrap())), 1);
    fixture.call(&arguments).unwrap();
    assert_eq!(fixture.content("a"), "b\n");
}

#[test]
fn a_call_that_is_stopped_says_that_nothing_was_applied() {
    let arguments = json!({"path": "a", "old_string": "a", "new_string": "b"});
    let mut fixture = Fixture::with("a", "a\n");
    fixture.deadline = Some(Instant::now());
    let late = fixture.call(&arguments).unwrap_err();
    assert_eq!((late.category(), &late.details()["applied"]), (Category::Timeout, &json!(false)));
    fixture.deadline = None;
    fixture.cancel.cancel();
    let cancelled = fixture.call(&arguments).unwrap_err();
    assert_eq!(cancelled.category(), Category::Cancelled);
    assert_eq!(cancelled.details()["applied"], json!(false));
    assert_eq!(fixture.content("a"), "a\n");
    assert_eq!(fs::read_dir(&fixture.root).unwrap().count(), 1, "something was left behind");
}

#[test]
fn the_new_version_can_be_expected_and_an_old_one_is_refused() {
    let fixture = Fixture::with("a", "1\n");
    let edit = |old: &str, new: &str, version: Option<&str>| {
        let mut arguments = json!({"path": "a", "old_string": old, "new_string": new});
        if let Some(version) = version {
            arguments["expected_version"] = json!(version);
        }
        fixture.call(&arguments)
    };
    let first = edit("1", "2", None).unwrap()["version"].as_str().unwrap().to_owned();
    let second = edit("2", "3", Some(&first)).unwrap()["version"].as_str().unwrap().to_owned();
    let error = edit("3", "4", Some(&first)).unwrap_err();
    assert_eq!((error.category(), error.is_retryable()), (Category::ConcurrencyConflict, false));
    let current = error.details()["current_version"].as_str().unwrap().to_owned();
    assert!(current.len() == 32 && current.starts_with(&second), "{current}");
    for says in [format!("is not at version {first} any more"), format!("is {second} now")] {
        assert!(error.whole_message().contains(&says), "{error}");
    }
    assert_eq!(fixture.content("a"), "3\n");
}

#[test]
fn a_file_that_is_too_large_is_refused_with_the_limit() {
    let fixture = Fixture::with("a", "");
    let file = fs::OpenOptions::new().write(true).open(fixture.root.join("a")).unwrap();
    file.set_len(MAX_FILE as u64 + 1).unwrap();
    let arguments = json!({"path": "a", "old_string": "a", "new_string": "b"});
    let error = fixture.call(&arguments).unwrap_err();
    assert!(error.message().contains("268435456 bytes (256 MiB)"), "{error}");
    assert_eq!(hunks(&fixture.preview(&arguments).unwrap()), 0);
}

#[test]
fn a_miss_in_a_file_that_changed_says_so() {
    let fixture = Fixture::with("a", "one\n");
    let path = fixture.root.join("a");
    let known = Knowledge {
        version: Some(workspace_fs::Version::of(b"two\n")),
        stamp: fixture
            .files
            .workspace
            .open_file(
                workspace_fs::PathArgument { text: "a", working_directory: None },
                workspace_fs::AccessTime::Keep,
            )
            .unwrap()
            .stat()
            .stamp(),
        extent: Extent::Whole,
    };
    fixture.files.session("").record_read(&path, known);
    let miss = json!({"path": "a", "old_string": "two", "new_string": "2"});
    let error = fixture.call(&miss).unwrap_err();
    assert!(error.message().contains("has changed since this session read it"), "{error}");
    // A hit is made on what is there now, and the session still does not know that.
    fixture.call(&json!({"path": "a", "old_string": "one", "new_string": "1"})).unwrap();
    assert_eq!(fixture.files.session("").knows(&path), Some(known));
}

#[test]
fn a_diff_in_a_result_has_its_limits_and_can_be_shown_again() {
    let lines: String = (0..5000).map(|n| format!("line {n}\n")).collect();
    let fixture = Fixture::with("a", &lines);
    let arguments =
        json!({"path": "a", "old_string": "line", "new_string": "row", "replace_all": true});
    let shown = fixture.preview(&arguments).unwrap();
    let View::Group(views) = &shown else { panic!("{shown:?}") };
    let View::Diff(previewed) = &views[1] else { panic!("{views:?}") };
    assert_eq!(previewed[0].lines.len(), PREVIEW_LINES);
    let result = fixture.call(&arguments).unwrap();
    assert_eq!((&result["lines_added"], &result["replacements"]), (&json!(5000), &json!(5000)));
    let diff = result["diff"].as_str().unwrap();
    assert!(diff.len() < 4096 && diff.lines().count() < 50, "{}", diff.len());
    let rendered = EditFile::default().render_result(&result);
    assert_eq!(hunks(&rendered), 1);
}

#[test]
fn a_result_says_what_the_call_did_not_know() {
    let fixture = Fixture::with("a", "1\n2\n3\n4\n5\n2\n");
    let new = workspace_fs::Version::of(b"1\n2\n3\n4\nV\n2\n");
    let edit = json!({"path": "a", "old_string": "5", "new_string": "V"});
    assert_eq!(
        Value::Object(fixture.call(&edit).unwrap()),
        json!({
            "version": new.short(), "first_changed_line": 5,
            "diff": "@@ -4,3 +4,3 @@\n 4\n-5\n+V\n 2\n",
        })
    );
    let all = json!({"path": "a", "old_string": "2", "new_string": "II", "replace_all": true});
    assert_eq!(fixture.call(&all).unwrap()["replacements"], 2);
    let details = json!({"path": "a", "old_string": "V", "new_string": "5", "details": true});
    let said = fixture.call(&details).unwrap();
    let version = workspace_fs::Version::of(b"1\nII\n3\n4\n5\nII\n").to_string();
    for (name, value) in [
        ("version", json!(version)),
        ("encoding", json!("utf-8")),
        ("lines_added", json!(1)),
        ("lines_removed", json!(1)),
        ("replacements", json!(1)),
    ] {
        assert_eq!(said[name], value, "{name}");
    }
}

#[test]
fn results_of_earlier_versions_are_rendered_as_they_were() {
    let old = json!({
        "tool": "edit_file", "path": "a", "diff": "@@ -1,2 +1,2 @@\n a\n-b\n+c\n",
        "lines_added": 4, "lines_removed": 3, "replacements": 1, "encoding": "utf-8",
        "first_changed_line": 2, "version": "0", "notice": "2 more changed lines are not shown.",
    });
    let tool = EditFile::default();
    let View::Group(views) = tool.render_result(old.as_object().unwrap()) else { panic!() };
    assert_eq!(views[0], View::text("Edited a  +4 −3", Style::Bold));
    assert!(matches!(&views[1], View::Diff(hunks) if hunks[0].lines.len() == 3), "{views:?}");
    assert_eq!(views[2], View::text("2 more changed lines are not shown.", Style::Warning));
    // The counts of a whole diff are those of its lines.
    let new = json!({"tool": "edit_file", "diff": "@@ -1,2 +1,2 @@\n a\n-b\n+c\n"});
    let View::Group(views) = tool.render_result(new.as_object().unwrap()) else { panic!() };
    assert_eq!(views[0], View::text("Edited  +1 −1", Style::Bold));
}

#[test]
fn a_guess_from_a_few_bytes_is_not_written_by() {
    let edit = |content: &[u8], old: &str, new: &str| {
        let fixture = Fixture::with("a", content);
        let edited = fixture.call(&json!({"path": "a", "old_string": old, "new_string": new}));
        edited.map(|_| fs::read(fixture.root.join("a")).unwrap())
    };
    let short = b"caf\xe9 cr\xe8me\n";
    let error = edit(short, "caf", "th\u{fc}").unwrap_err();
    assert_eq!(error.category(), Category::InvalidArguments);
    assert!(error.message().contains("a guess (windows-1252)"), "{error}");
    assert!(error.hint().is_some_and(|hint| hint.contains("iconv -f windows-1252")), "{error:?}");
    // ASCII, and what the file holds, are the same bytes whatever the encoding is.
    assert_eq!(edit(short, "crème", "tea").unwrap(), b"caf\xe9 tea\n");
    assert_eq!(edit(short, "crème", "la crème").unwrap(), b"caf\xe9 la cr\xe8me\n");
    let long = b"caf\xe9 cr\xe8me br\xfbl\xe9e, d\xe9j\xe0 pr\xeat\n".repeat(3);
    assert!(edit(&long, "x", "y").is_err());
    assert!(Fixture::with("a", &long)
        .call(&json!({"path": "a", "old_string": "caf", "new_string": "th\u{fc}", "replace_all": true}))
        .is_ok());
}

#[test]
fn a_call_is_shown_from_its_arguments_and_a_result_from_what_is_there() {
    let tool = EditFile::default();
    let arguments = json!({"path": "a.rs", "old_string": "one\ntwo", "new_string": "one\n2"});
    let View::Group(views) = tool.render_call(arguments.as_object().unwrap()) else { panic!() };
    let View::Group(asked) = &views[1] else { panic!("{views:?}") };
    let View::Diff(hunks) = &asked[0] else { panic!("{asked:?}") };
    let ops: Vec<_> = hunks[0].lines.iter().map(|line| line.op).collect();
    assert_eq!(ops, [DiffOp::Context, DiffOp::Remove, DiffOp::Add]);
    for payload in [json!({}), json!({"diff": 3, "lines_added": "x"}), json!({"path": "a"})] {
        assert!(matches!(tool.render_result(payload.as_object().unwrap()), View::Group(_)));
        tool.render_call(payload.as_object().unwrap());
    }
}

#[test]
fn edits_that_undo_one_another_leave_the_file_alone_and_say_so() {
    use std::os::unix::fs::MetadataExt;
    let fixture = Fixture::with("a", "6\n");
    let identity = || {
        let stat = fs::metadata(fixture.root.join("a")).unwrap();
        (stat.ino(), stat.mtime(), stat.mtime_nsec())
    };
    let before = identity();
    let back = json!({"path": "a", "edits": [
        {"old_string": "6", "new_string": "5"}, {"old_string": "5", "new_string": "6"}]});
    let shown = format!("{:?}", fixture.preview(&back).unwrap());
    assert!(shown.contains("undo one another"), "{shown}");
    let result = fixture.call(&back).unwrap();
    assert_eq!(result["notice"], UNDONE);
    assert_eq!((result.get("diff"), result.get("replacements")), (None, None));
    assert_eq!(identity(), before);
}

#[test]
fn an_ambiguous_string_is_reported_with_all_its_lines() {
    let fixture = Fixture::with("a", "x\n".repeat(33));
    let error = fixture.call(&json!({"path": "a", "old_string": "x", "new_string": "y"}));
    let error = error.unwrap_err();
    assert_eq!(error.details()["lines"], json!((1..=33).collect::<Vec<_>>()));
    let empty = json!({"path": "a", "old_string": "", "new_string": "y"});
    assert!(fixture.call(&empty).unwrap_err().hint().unwrap().contains("write_file"));
}

#[test]
fn an_edit_that_does_not_fit_into_memory_may_be_tried_again() {
    let lack = Vec::<u8>::new().try_reserve_exact(usize::MAX).expect_err("so much is nowhere");
    let error = EditError { index: 1, of: 2, reason: Refusal::NoMemory(lack) };
    let refused = refused("a.txt", &error, Content::AsRead);
    assert_eq!(refused.category(), Category::ExecutionFailed);
    assert!(refused.is_retryable() && refused.message().contains("memory"), "{refused:?}");
}

#[test]
fn an_edit_resolves_its_path_once() {
    let fixture = Fixture::with("top", "a\n");
    fs::create_dir_all(fixture.root.join("src/deep")).unwrap();
    fs::write(fixture.root.join("src/deep/f"), "one\n").unwrap();
    let arguments = json!({"path": "src/deep/f", "old_string": "one", "new_string": "two"});
    let (shown, lookups) = lookups_of(|| fixture.preview(&arguments));
    assert_eq!((hunks(&shown.unwrap()), lookups), (1, 1));
    let (edited, lookups) = lookups_of(|| fixture.call(&arguments));
    assert_eq!((edited.is_ok(), lookups), (true, 1));
    assert_eq!(fixture.content("src/deep/f"), "two\n");
    // A file in the root itself is found from the root's own handle.
    let arguments = json!({"path": "top", "old_string": "a", "new_string": "b"});
    let (edited, lookups) = lookups_of(|| fixture.call(&arguments));
    assert_eq!((edited.is_ok(), lookups), (true, 0));
}

/// Two lines of a diff that differ in their ending only look the same.
#[test]
fn a_line_ending_that_an_edit_brings_is_told() {
    let edited = |content: &str, edits: Value| {
        let fixture = Fixture::with("a", content);
        let call = json!({"path": "a", "edits": edits});
        let shown = format!("{:?}", fixture.preview(&call).unwrap());
        let result = fixture.call(&call).unwrap();
        let notice = result.get("notice").map_or("", |notice| notice.as_str().unwrap()).to_owned();
        assert!(notice.is_empty() || shown.contains(&notice), "{shown}");
        (fixture.content("a"), notice)
    };
    let edit = |old: &str, new: &str| json!({"old_string": old, "new_string": new});
    let lf = "one\ntwo\nthree\n";
    for (content, edits, after, notice) in [
        (
            lf,
            json!([edit("two\n", "two\r\n")]),
            "one\ntwo\r\nthree\n",
            "Line endings were LF; line 2 ends in CR LF now.",
        ),
        (
            lf,
            json!([edit("two", "2\r\n2b"), edit("one", "1\r\n1b")]),
            "1\r\n1b\n2\r\n2b\nthree\n",
            "Line endings were LF; 2 lines end in CR LF now, the first of them line 1.",
        ),
        (
            lf,
            json!([edit(lf, "one\r\ntwo\r\n")]),
            "one\r\ntwo\r\n",
            "Line endings were LF; they are CR LF now.",
        ),
        (
            "a\r\nb\r\n",
            json!([edit("a\r\nb", "a\nb")]),
            "a\nb\r\n",
            "Line endings were CR LF; line 1 ends in LF now.",
        ),
        // The twins: a CR LF that goes again, and those that the file has.
        (lf, json!([edit("two\n", "2\r\n"), edit("2\r\n", "2\n")]), "one\n2\nthree\n", ""),
        (lf, json!([edit("two\n", "2\n")]), "one\n2\nthree\n", ""),
        ("a\r\nb\r\n", json!([edit("a\nb", "a\nc\nb")]), "a\r\nc\r\nb\r\n", ""),
        ("a\r\nb\r\n", json!([edit("a\r\nb", "c\r\nb")]), "c\r\nb\r\n", ""),
        ("a\r\nb\n", json!([edit("a", "A")]), "A\r\nb\n", ""),
    ] {
        let said = edited(content, edits.clone());
        assert_eq!(said, (after.to_owned(), notice.to_owned()), "{content:?} {edits}");
    }
}
