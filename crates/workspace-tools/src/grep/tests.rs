use sandbox::Level;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::matcher::tests::noise;
use super::*;
use tool_provider::Secrets;
use tool_provider::{CancelToken, Category, EmitError, Event, EventSink, Phase};
use workspace_fs::{RootsSpec, Workspace};

mod left_out;
mod stops;

/// A root with files in it, and searches there.
struct Fixture {
    files: Files,
    cancel: CancelToken,
    root: PathBuf,
    secrets: Secrets,
    events: Events,
    _keep: tempfile::TempDir,
}

#[derive(Default)]
struct Events(Mutex<Vec<Payload>>);

impl EventSink for Events {
    fn emit_until(&self, event: Event, _: Option<Instant>) -> Result<(), EmitError> {
        match event {
            Event::Partial(payload) => self.0.lock().unwrap().push(payload),
            Event::Progress { .. } => {}
            other => panic!("{other:?}"),
        }
        Ok(())
    }
}

impl Fixture {
    fn new(files: &[(&str, &[u8])]) -> Self {
        let keep = tempfile::tempdir().unwrap();
        let root = keep.path().canonicalize().unwrap();
        for (path, content) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let roots = vec![root.display().to_string()];
        let workspace = Workspace::open(&RootsSpec { roots, ..RootsSpec::default() }).unwrap();
        let files = Files::new(Arc::new(workspace), Level::Off);
        let cancel = CancelToken::new();
        let secrets = Secrets::default();
        Self { files, cancel, root, secrets, events: Events::default(), _keep: keep }
    }

    fn call_until(
        &self,
        arguments: Value,
        deadline: Option<Instant>,
    ) -> Result<Payload, ToolError> {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let phase = Phase::default();
        let context = Context {
            state: &self.files,
            session_id: "",
            working_directory: None,
            sink: &self.events,
            cancel: &self.cancel,
            deadline,
            phase: &phase,
            secrets: &self.secrets,
        };
        Grep::default().run(&arguments, &context)
    }

    fn call(&self, arguments: Value) -> Result<Payload, ToolError> {
        self.call_until(arguments, None)
    }

    /// A search that succeeds, in the form for programs, whose parts are its whole.
    fn grep(&self, arguments: Value) -> Payload {
        let mut arguments = arguments;
        arguments["details"] = true.into();
        if arguments.get("max_per_file").is_none() {
            arguments["max_per_file"] = 100_000.into();
        }
        self.events.0.lock().unwrap().clear();
        let result = self.call(arguments).unwrap();
        let partials = self.events.0.lock().unwrap();
        for name in ["matches", "files", "counts"] {
            let parts = partials.iter().filter_map(|part| part.get(name)?.as_array()).flatten();
            let whole = result.get(name).and_then(Value::as_array).into_iter().flatten();
            assert!(parts.eq(whole), "{partials:?}");
        }
        result
    }

    /// What a model reads of a search.
    fn text(&self, arguments: Value) -> Value {
        Value::Object(self.call(arguments).unwrap())
    }

    /// The hits of a search as `path:line:column:text`.
    fn hits(&self, arguments: Value) -> Vec<String> {
        let result = self.grep(arguments);
        let hits = result["matches"].as_array().unwrap().iter();
        hits.map(|hit| {
            let text = |name: &str| hit[name].as_str().unwrap();
            format!("{}:{}:{}:{}", text("path"), hit["line"], hit["column"], text("text"))
        })
        .collect()
    }
}

fn notice(result: &Payload) -> &str {
    result.get("notice").and_then(Value::as_str).unwrap_or_default()
}

#[test]
fn matches_come_with_path_line_and_column_in_order() {
    let fixture = Fixture::new(&[
        ("b.rs", b"let x = 1;\nfn main() {}\n"),
        ("a/z.rs", b"\n\n  fn z() { fn y() {} }"),
        ("a.txt", b"fn in a text\r\n"),
    ]);
    assert_eq!(
        fixture.hits(json!({"pattern": "fn \\w+"})),
        ["a/z.rs:3:3:  fn z() { fn y() {} }", "a.txt:1:1:fn in a text", "b.rs:2:1:fn main() {}",]
    );
    assert_eq!(
        fixture.hits(json!({"pattern": "fn", "path": "a"})),
        ["a/z.rs:3:3:  fn z() { fn y() {} }"]
    );
    assert_eq!(
        fixture.hits(json!({"pattern": "FN", "ignore_case": true, "glob": "*.rs"})).len(),
        2
    );
    assert_eq!(
        fixture.hits(json!({"pattern": "text$", "type": "txt"})),
        ["a.txt:1:1:fn in a text".replace(":1:1:", ":1:9:")]
    );
    let result = fixture.grep(json!({"pattern": "fn"}));
    assert_eq!((&result["total_matches"], &result["files_searched"]), (&json!(3), &json!(3)));
    assert_eq!(result.get("next_offset"), None);
    assert_eq!(result["matches"][0]["highlight"], json!([2, 4]));
    assert_eq!(result.get("notice"), None);
}

#[test]
fn modes_list_files_or_counts() {
    let fixture = Fixture::new(&[("a", b"x\nx\ny\n"), ("b", b"y"), ("c", b"x x")]);
    let files = fixture.grep(json!({"pattern": "x", "mode": "files"}));
    assert_eq!((&files["files"], &files["total_matches"]), (&json!(["a", "c"]), &json!(2)));
    let counts = fixture.grep(json!({"pattern": "x", "mode": "count"}));
    let expected = json!([{"path": "a", "count": 2}, {"path": "c", "count": 1}]);
    assert_eq!((&counts["counts"], &counts["total_matches"]), (&expected, &json!(3)));
}

#[test]
fn pages_follow_one_another_without_gap_or_overlap() {
    let many: String = (1..=200).map(|line| format!("needle {line}\n")).collect();
    let names: Vec<String> = (0..7).map(|index| format!("d{}/f{index}", index % 3)).collect();
    let files: Vec<(&str, &[u8])> =
        names.iter().map(|name| (name.as_str(), many.as_bytes())).collect();
    let fixture = Fixture::new(&files);
    let all = fixture.hits(json!({"pattern": "needle", "limit": 10_000}));
    assert_eq!(all.len(), 7 * 200);
    let (mut offset, mut paged, mut pages) = (0, Vec::new(), 0);
    loop {
        let arguments = json!({"pattern": "needle", "limit": 333, "offset": offset});
        let result = fixture.grep(arguments.clone());
        paged.extend(fixture.hits(arguments));
        pages += 1;
        if result.get("next_offset").is_none() {
            assert_eq!(result["total_matches"], 7 * 200);
            break;
        }
        assert_eq!(result.get("total_matches"), None);
        offset = usize::try_from(result["next_offset"].as_u64().unwrap()).unwrap();
    }
    assert_eq!((paged, pages), (all, 5));
    let first = fixture.grep(json!({"pattern": "needle", "limit": 1}));
    assert_eq!((&first["next_offset"], &first["files_searched"]), (&json!(1), &json!(1)));
    let past = fixture.grep(json!({"pattern": "needle", "offset": 5000}));
    assert!(notice(&past).contains("offset 5000 is past the last of 1400 matches"), "{past:?}");
}

#[test]
fn a_page_has_only_so_much_room_and_the_next_one_goes_on_in_the_middle_of_a_file() {
    let line = format!("needle {}\n", "x".repeat(450));
    let fixture = Fixture::new(&[("a", line.repeat(2000).as_bytes()), ("b", b"needle\n")]);
    let (mut lines, mut offset) = (Vec::new(), 0);
    loop {
        let arguments = json!({"pattern": "needle", "limit": 10_000, "offset": offset});
        let result = fixture.grep(arguments);
        let hits = result["matches"].as_array().unwrap();
        assert!(hits.len() <= 300, "{}", hits.len());
        lines.extend(hits.iter().map(|hit| (hit["path"].clone(), hit["line"].as_u64().unwrap())));
        match result.get("next_offset") {
            None => break,
            Some(next) => offset = next.as_u64().unwrap(),
        }
    }
    let expected = (1..=2000).map(|line| (json!("a"), line)).chain([(json!("b"), 1)]);
    assert!(lines.into_iter().eq(expected));
}

#[test]
fn context_lines_are_given_once_each() {
    let text: String =
        (1..=12).map(|n| format!("line {n}{}\n", if n % 5 == 0 { " x" } else { "" })).collect();
    let fixture = Fixture::new(&[("f", text.as_bytes())]);
    let result = fixture.grep(json!({"pattern": "x", "before": 3, "after": 2}));
    let matches = &result["matches"];
    assert_eq!(matches[0]["before"], json!(["line 2", "line 3", "line 4"]));
    assert_eq!(matches[0]["after"], json!(["line 6", "line 7"]));
    assert_eq!(matches[1]["before"], json!(["line 8", "line 9"]));
    assert_eq!(matches[1]["after"], json!(["line 11", "line 12"]));
    let page = fixture.grep(json!({"pattern": "x", "context": 1, "offset": 1}));
    assert_eq!(page["matches"][0]["before"], json!(["line 9"]));
    assert_eq!(page["matches"][0]["after"], json!(["line 11"]));
}

#[test]
fn a_model_reads_hits_by_file_as_text() {
    let fixture = Fixture::new(&[
        ("b/c.rs", b"one\nfn x\ntwo\nfn y\nthree\nfour\nfive\nfn z"),
        ("a.rs", b"\tfn a\r\n"),
    ]);
    let text = |arguments| fixture.text(arguments);
    assert_eq!(
        text(json!({"pattern": "fn", "context": 1})),
        json!({"hits": "a.rs\n1:\tfn a\n\nb/c.rs\n1-one\n2:fn x\n3-two\n4:fn y\n5-three\n--\n7-five\n8:fn z"})
    );
    assert_eq!(
        text(json!({"pattern": "fn", "limit": 2, "offset": 1})),
        json!({"hits": "b/c.rs\n2:fn x\n4:fn y", "next_offset": 3})
    );
    assert_eq!(
        text(json!({"pattern": "fn", "mode": "files"})),
        json!({"files": ["a.rs", "b/c.rs"]})
    );
    assert_eq!(
        text(json!({"pattern": "fn", "mode": "count"})),
        json!({"file_counts": "a.rs:1\nb/c.rs:3"})
    );
    assert_eq!(text(json!({"pattern": "fm"})), json!({"notice": "No match in 2 files."}));
    assert_eq!(
        text(json!({"pattern": "x\ntwo", "multiline": true})),
        json!({"hits": "b/c.rs\n2:fn x\n3:two"})
    );
}

#[test]
fn so_many_hits_of_one_file_are_listed_and_the_rest_is_counted() {
    let fixture = Fixture::new(&[
        ("a", "x\n".repeat(94).as_bytes()),
        ("b", b"x\n"),
        ("c", "x\n".repeat(3000).as_bytes()),
    ]);
    let text = |arguments: Value| fixture.text(arguments);
    let hits = |n: usize| (1..=n).map(|line| format!("{line}:x\n")).collect::<String>();
    assert_eq!(
        text(json!({"pattern": "x"}))["hits"],
        format!(
            "a\n{}… 74 more in this file\n\nb\n1:x\n\nc\n{}… at least 1000 more in this file",
            hits(20),
            hits(20)
        )
    );
    assert_eq!(
        text(json!({"pattern": "x", "max_per_file": 2, "limit": 3})),
        json!({"hits": "a\n1:x\n2:x\n… 92 more in this file\n\nb\n1:x", "next_offset": 3})
    );
    assert_eq!(
        text(json!({"pattern": "x", "max_per_file": 2, "offset": 1, "limit": 1})),
        json!({"hits": "a\n2:x\n… 92 more in this file", "next_offset": 2})
    );
    let one = text(json!({"pattern": "x", "path": "a"}));
    assert_eq!(one["hits"].as_str().unwrap().lines().count(), 95);
    let objects = fixture.grep(json!({"pattern": "x", "max_per_file": 2}));
    let more: Vec<_> =
        objects["matches"].as_array().unwrap().iter().map(|hit| hit.get("more_in_file")).collect();
    assert_eq!(more, [None, Some(&json!(92)), None, None, Some(&json!(1000))]);
    assert_eq!(objects.get("total_matches"), None);
}

#[test]
fn globs_are_lists_and_names_where_they_are_meant_so() {
    let fixture = Fixture::new(&[
        ("app/[slug]/page.tsx", b"x"),
        ("app/s/page.ts", b"x"),
        ("x [1].txt", b"x"),
    ]);
    let files = |glob: &str| fixture.text(json!({"pattern": "x", "mode": "files", "glob": glob}));
    assert_eq!(
        files("**/*.ts,**/*.tsx"),
        json!({"files": ["app/[slug]/page.tsx", "app/s/page.ts"]})
    );
    for (glob, named, file) in [
        ("app/[slug]/*", "app/[slug]", "app/[slug]/page.tsx"),
        ("x [1].txt", "x [1].txt", "x [1].txt"),
    ] {
        let found = files(glob);
        assert_eq!(found["files"], json!([file]));
        assert!(found["notice"].as_str().unwrap().starts_with(&format!("{named} was taken lit")));
    }
    for glob in ["**/[slug]/*.tsx", "x [1].*", "[user-id]/*,**/[slug]/*.tsx"] {
        let found = files(glob);
        assert_eq!(found["files"].as_array().unwrap().len(), 1, "{found}");
        assert!(found["notice"].as_str().unwrap().starts_with("[…] was taken literally"));
    }
    assert_eq!(files("app/[r-t]/*"), json!({"files": ["app/s/page.ts"]}));
    for (glob, remedy) in [("~/*", "~ is not expanded"), ("app", "a directory is given as path")] {
        let found = files(glob);
        assert!(found["notice"].as_str().unwrap().contains(remedy), "{found}");
    }
}

#[test]
fn g01_a_leading_dash_is_nothing_special() {
    let fixture = Fixture::new(&[("f", b"--release\n-> x\n-1\n"), ("-v", b"hit\n")]);
    assert_eq!(fixture.hits(json!({"pattern": "--release"})), ["f:1:1:--release"]);
    assert_eq!(fixture.hits(json!({"pattern": "-> x"})), ["f:2:1:-> x"]);
    assert_eq!(fixture.hits(json!({"pattern": "-1"})), ["f:3:1:-1"]);
    assert_eq!(fixture.hits(json!({"pattern": "hit", "path": "-v"})), ["-v:1:1:hit"]);
}

#[test]
fn g05_a_bad_pattern_is_never_a_clean_zero() {
    let fixture = Fixture::new(&[("f", b"foo\nbar\n")]);
    for pattern in ["foo(", "a{", "(?<=x)y", "foo\\nbar", "foo\nbar", ""] {
        let error = fixture.call(json!({ "pattern": pattern })).expect_err(pattern);
        assert_eq!(error.category(), Category::InvalidArguments, "{error}");
    }
    assert_eq!(
        fixture.hits(json!({"pattern": "foo\\nbar", "multiline": true})),
        ["f:1:1:foo\nbar"]
    );
    assert_eq!(fixture.hits(json!({"pattern": "foo\nbar", "multiline": true})), ["f:1:1:foo\nbar"]);
    assert_eq!(fixture.hits(json!({"pattern": "(a|a)*$"})).len(), 2);
    for (arguments, what) in [
        (json!({"pattern": "x", "type": "rst"}), "rst"),
        (json!({"pattern": "x", "type": "pyhton"}), "file type"),
        (json!({"pattern": "x", "glob": "["}), "glob ["),
        (json!({"pattern": "x", "glob": "../*"}), "path"),
    ] {
        match fixture.call(arguments) {
            Ok(result) => assert!(result.contains_key("notice") && what == "rst"),
            Err(error) => {
                assert_eq!(error.category(), Category::InvalidArguments, "{error}");
                assert!(error.hint().is_some() && error.message().contains(what) || what == "path");
            }
        }
    }
}

#[test]
fn encodings_are_understood_as_far_as_they_say_what_they_are() {
    let utf16 = |text: &str| -> Vec<u8> {
        [0xfeff].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
    };
    let mut be = vec![0xfe, 0xff];
    be.extend("größe\n".encode_utf16().flat_map(u16::to_be_bytes));
    let large = utf16(&("zeile\n".repeat(60_000) + "größe ist\n"));
    let fixture = Fixture::new(&[
        ("bom", "\u{feff}größe\n".as_bytes()),
        ("be", &be),
        ("large", &large),
        ("latin", b"gr\xf6\xdfe und gr\xc3\xb6\xc3\x9fe\n"),
    ]);
    assert_eq!(
        fixture.hits(json!({"pattern": "^größe|und größe"})),
        [
            "be:1:1:größe",
            "bom:1:1:größe",
            "large:60001:1:größe ist",
            "latin:1:7:gr\u{fffd}\u{fffd}e und größe",
        ]
    );
}

#[test]
fn lines_of_any_length_cost_bounded_memory() {
    let fixture = Fixture::new(&[("short", b"needle\n")]);
    let long = fs::File::create(fixture.root.join("long")).unwrap();
    let mut text = b"needle\n".to_vec();
    text.resize(search::MOST_LINE * 2, b'x');
    text.extend(b"\nneedle\n");
    std::io::Write::write_all(&mut &long, &text).unwrap();
    let result = fixture.grep(json!({"pattern": "needle"}));
    assert_eq!(result["matches"].as_array().unwrap().len(), 2, "{result:?}");
    assert_eq!(result["skipped"]["too_large"], 1);
    assert!(notice(&result).contains("long was searched up to a line over 8 MiB only"));
    let multiline = fixture.grep(json!({"pattern": "needle", "multiline": true}));
    assert_eq!(multiline["skipped"]["too_large"], 1);
    assert!(notice(&multiline).contains("16 MiB"), "{multiline:?}");
    // Wide, but not too wide: shown around the match.
    let wide = "é".repeat(1_000_000) + "needle" + &"z".repeat(1000);
    fs::write(fixture.root.join("long"), wide).unwrap();
    let result = fixture.grep(json!({"pattern": "needle", "path": "long"}));
    let hit = &result["matches"][0];
    assert_eq!(hit["column"], 2_000_001);
    assert_eq!(hit["text"].as_str().unwrap().chars().count(), 500);
}

#[test]
fn matches_over_several_lines_are_hits_of_their_own() {
    let fixture = Fixture::new(&[("f", b"a\nb a\nb\nx\na\nb\n")]);
    assert_eq!(
        fixture.hits(json!({"pattern": "a\\nb", "multiline": true})),
        ["f:1:1:a\nb a", "f:5:1:a\nb",]
    );
    assert_eq!(fixture.hits(json!({"pattern": "[ab]", "multiline": true})).len(), 5);
    assert_eq!(fixture.hits(json!({"pattern": "b$", "multiline": true})), ["f:3:1:b", "f:6:1:b"]);
    let result =
        fixture.grep(json!({"pattern": "[ab]", "multiline": true, "limit": 2, "offset": 1}));
    let lines: Vec<_> =
        result["matches"].as_array().unwrap().iter().map(|hit| &hit["line"]).collect();
    assert_eq!((lines, &result["next_offset"]), (vec![&json!(2), &json!(3)], &json!(3)));
    let counts = fixture.grep(json!({"pattern": "[ab]", "multiline": true, "mode": "count"}));
    assert_eq!(counts["counts"][0]["count"], 5);
}

#[test]
fn words_and_plain_text() {
    let fixture = Fixture::new(&[("f", b"foo food\nfoo(\nFOO\n")]);
    assert_eq!(
        fixture.hits(json!({"pattern": "foo", "word": true})),
        ["f:1:1:foo food", "f:2:1:foo("]
    );
    assert_eq!(fixture.hits(json!({"pattern": "foo(", "fixed_strings": true})), ["f:2:1:foo("]);
    assert_eq!(fixture.hits(json!({"pattern": "d\\b"})), ["f:1:8:foo food"]);
}

#[test]
fn names_that_are_no_text_are_distinguished() {
    use std::os::unix::ffi::OsStrExt;
    let fixture = Fixture::new(&[]);
    for name in [b"a\nb".as_slice(), b"\xff"] {
        fs::write(fixture.root.join(std::ffi::OsStr::from_bytes(name)), "x").unwrap();
    }
    assert_eq!(fixture.hits(json!({"pattern": "x"})), [r#""a\nb":1:1:x"#, r#""\377":1:1:x"#]);
}

#[test]
fn a_line_may_end_in_crlf_also_where_matches_go_over_lines() {
    let fixture = Fixture::new(&[("f", b"foo\r\nbar\r\n\r\nfoo\nbar\nx\ry\r\n")]);
    let lines = |pattern: &str| -> Vec<u64> {
        let result = fixture.grep(json!({"pattern": pattern, "multiline": true}));
        result["matches"]
            .as_array()
            .unwrap()
            .iter()
            .map(|hit| hit["line"].as_u64().unwrap())
            .collect()
    };
    assert_eq!(lines("foo$"), [1, 4]);
    assert_eq!(lines("^bar$"), [2, 5]);
    assert_eq!(lines("^$"), [3]);
    assert_eq!(lines("foo$\\s+^bar$"), [1, 4]);
    assert_eq!(lines("foo\\r\\nbar$"), [1]);
    assert_eq!(lines("foo\\r?\\nbar"), [1, 4]);
    // About CR itself.
    assert_eq!(lines("foo\\r$"), [1]);
    assert_eq!(lines("x\\ry"), [6]);
}

#[test]
fn a_secret_is_hidden_before_a_line_is_cut() {
    let long = |gap: usize| {
        let filler = "x".repeat(gap);
        format!("context hunter2!{}hunter2!\nneedle{filler}hunter2!{filler}\n", "y".repeat(480))
    };
    let mut fixture = Fixture::new(&[]);
    fixture.secrets = Secrets::new([("KEY", "hunter2!")]);
    for gap in 480..505 {
        fs::write(fixture.root.join("f"), long(gap)).unwrap();
        let result = fixture.grep(json!({"pattern": "needle", "before": 1})).to_owned();
        let shown = Value::Object(result).to_string();
        assert!(!shown.contains("hu") && !shown.contains("2!"), "{shown}");
    }
    fs::write(fixture.root.join("f"), "a=hunter2! needle\n").unwrap();
    let hit = &fixture.grep(json!({"pattern": "needle"}))["matches"][0];
    assert_eq!((&hit["text"], &hit["highlight"]), (&json!("a=[KEY] needle"), &json!([8, 14])));
    assert_eq!(hit["column"], 12);
}

#[test]
fn what_an_argument_may_cost_is_bounded() {
    let fixture = Fixture::new(&[("a", b"x")]);
    let long = "{".repeat(100_000);
    for (name, value) in [
        ("glob", long),
        ("glob", "[!a]".repeat(250_000)),
        ("glob", "{".repeat(4_000)),
        ("glob", "*/".repeat(8_000)),
        ("type", "rust".repeat(250_000)),
        ("pattern", "x".repeat(1_000_000)),
        ("pattern", "(".repeat(16_000)),
    ] {
        let mut arguments = json!({"pattern": "x"});
        arguments[name] = value.into();
        let error = fixture.call(arguments).unwrap_err();
        assert_eq!(error.category(), Category::InvalidArguments, "{name}");
        assert!(error.message().len() < 500, "{name}: {}", error.message().len());
    }
}

#[test]
fn habits_from_other_greps_are_answered_with_the_way_it_is_written_here() {
    let fixture = Fixture::new(&[("a.rs", b"foo\nbar\n")]);
    let refused =
        |name: &str| fixture.call_until(json!({"pattern": "foo", "type": name}), None).unwrap_err();
    for name in ["rs", ".rs"] {
        assert_eq!(refused(name).details()["similar"][0], "rust", "{name}");
    }
    let none = fixture.grep(json!({"pattern": r"foo\|bar"}));
    assert!(notice(&none).contains("without a backslash"), "{none:?}");
    let literally = fixture.grep(json!({"pattern": r"foo\|bar", "fixed_strings": true}));
    assert!(!notice(&literally).contains("without a backslash"), "{literally:?}");
}
