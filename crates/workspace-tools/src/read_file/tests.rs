use sandbox::Level;
use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use tool_provider::Secrets;
use tool_provider::view::Style;
use tool_provider::{CancelToken, Category, EmitError, Event, EventSink, Phase};
use workspace_fs::text::encoding::SAMPLE_BYTES;
use workspace_fs::{RootsSpec, Version, Workspace};

/// A root with files in it, and calls of the tool on them.
struct Fixture {
    files: Files,
    cancel: CancelToken,
    root: PathBuf,
    _keep: tempfile::TempDir,
}

struct NoEvents;

impl EventSink for NoEvents {
    fn emit_until(&self, event: Event, _: Option<Instant>) -> Result<(), EmitError> {
        panic!("read_file does not stream, yet it sent {event:?}");
    }
}

impl Fixture {
    fn new() -> Self {
        let keep = tempfile::tempdir().unwrap();
        let root = keep.path().canonicalize().unwrap();
        let roots = vec![root.display().to_string()];
        let workspace = Workspace::open(&RootsSpec { roots, ..RootsSpec::default() }).unwrap();
        let files = Files::new(Arc::new(workspace), Level::Off);
        let cancel = CancelToken::new();
        Self { files, cancel, root, _keep: keep }
    }

    fn with(name: &str, content: impl AsRef<[u8]>) -> Self {
        let fixture = Self::new();
        fs::write(fixture.root.join(name), content).unwrap();
        fixture
    }

    fn on<T>(&self, act: impl FnOnce(&ReadFile, &Context<'_>) -> T) -> T {
        let phase = Phase::default();
        let context = Context {
            state: &self.files,
            session_id: "",
            working_directory: None,
            sink: &NoEvents,
            cancel: &self.cancel,
            deadline: None,
            phase: &phase,
            secrets: &Secrets::default(),
        };
        act(&ReadFile::default(), &context)
    }

    fn call(&self, arguments: Value) -> Result<Payload, ToolError> {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        self.on(|tool, context| tool.run(&arguments, context))
    }

    fn read(&self, arguments: Value) -> Payload {
        self.call(arguments).unwrap()
    }

    fn refusal(&self, arguments: Value) -> ToolError {
        self.call(arguments).unwrap_err()
    }

    fn preview(&self, arguments: &Value) -> View {
        let arguments = arguments.as_object().unwrap();
        self.on(|tool, context| tool.preview(arguments, context)).unwrap()
    }
}

#[test]
fn a_small_file_is_shown_whole() {
    let fixture = Fixture::with("a.txt", "one\ntwo\n");
    let payload = fixture.read(json!({"path": "a.txt"}));
    let version = Version::of(b"one\ntwo\n");
    let text = "1:one\n2:two\n";
    assert_eq!(Value::Object(payload), json!({"text": text, "version": version.short()}));
    let details = fixture.read(json!({"path": "a.txt", "details": true}));
    assert_eq!(
        Value::Object(details),
        json!({
            "text": text, "start_line": 1, "end_line": 2, "total_lines": 2,
            "encoding": "utf-8", "line_ending": "lf", "size_bytes": 8,
            "version": version.to_string(),
        })
    );
    let known = fixture.files.session("").knows(&fixture.root.join("a.txt")).unwrap();
    assert_eq!((known.version, known.extent), (Some(Version::of(b"one\ntwo\n")), Extent::Whole));
}

#[test]
fn a_window_says_where_to_go_on() {
    let fixture = Fixture::with("a.txt", "1\n2\n3\n4\n5");
    let read = |offset: i64, limit: i64| {
        let payload = fixture.read(
            json!({"path": "a.txt", "offset": offset, "limit": limit, "line_numbers": false}),
        );
        let next = payload.get("next_offset").and_then(Value::as_i64);
        assert_eq!(payload["total_lines"], 5);
        let start = payload.get("start_line").and_then(Value::as_i64);
        assert_eq!(start.is_some(), offset < 0);
        (payload["text"].as_str().unwrap().to_owned(), start.unwrap_or(offset), next)
    };
    assert_eq!(read(2, 2), ("2\n3\n".to_owned(), 2, Some(4)));
    assert_eq!(read(4, 2), ("4\n5".to_owned(), 4, None));
    assert_eq!(read(4, 9), ("4\n5".to_owned(), 4, None));
    assert_eq!(read(-2, 9), ("4\n5".to_owned(), 4, None));
    assert_eq!(read(-2, 1), ("4\n".to_owned(), 4, Some(5)));
    assert_eq!(read(-99, 1), ("1\n".to_owned(), 1, Some(2)));
    let known = fixture.files.session("").knows(&fixture.root.join("a.txt")).unwrap();
    assert_eq!(known.extent, Extent::Part);
}

#[test]
fn nothing_to_show_has_five_different_reasons() {
    let fixture = Fixture::with("empty", "");
    fs::write(fixture.root.join("three"), "1\n2\n3\n").unwrap();
    fs::write(fixture.root.join("image"), b"\x89PNG\r\n\x1A\n\0\0\0\rIHDR").unwrap();
    fs::create_dir(fixture.root.join("directory")).unwrap();

    let empty = fixture.read(json!({"path": "empty"}));
    let version = Version::of(b"").short();
    assert_eq!(
        Value::Object(empty),
        json!({"text": "", "notice": "The file is empty.", "version": version})
    );

    let past = fixture.read(json!({"path": "three", "offset": 9}));
    assert_eq!(past["notice"], "Offset 9 is past the end of the file, which has 3 lines.");
    assert_eq!((past.get("total_lines"), &past["text"]), (None, &json!("")));

    let image = fixture.refusal(json!({"path": "image"}));
    assert_eq!(image.to_string(), "cannot read image: it is a binary file (PNG image), 16 bytes");
    assert_eq!(image.category(), Category::ExecutionFailed);
    assert_eq!(image.details()["type"], "PNG image");

    fs::write(fixture.root.join("image"), b"\0\x01").unwrap();
    let unknown = fixture.refusal(json!({"path": "image"}));
    assert_eq!(
        unknown.to_string(),
        "cannot read image: it is a binary file of unknown type, 2 bytes"
    );

    let directory = fixture.refusal(json!({"path": "directory"}));
    assert_eq!(directory.category(), Category::InvalidArguments);
    assert_eq!(directory.to_string(), "cannot read directory: it is a directory");

    let missing = fixture.refusal(json!({"path": "tree"}));
    assert_eq!(missing.category(), Category::NotFound);
    assert_eq!(missing.details()["similar"], json!(["three"]));
    assert_eq!(missing.hint(), Some("did you mean three?"));
}

#[test]
fn the_line_ending_is_the_files_and_not_the_windows() {
    let fixture = Fixture::with("mixed", "a\r\nb\nc");
    fs::write(fixture.root.join("crlf"), "a\r\nb\r\nc").unwrap();
    for arguments in [json!({"offset": 2, "limit": 1}), json!({"offset": -1}), json!({"offset": 9})]
    {
        for name in ["mixed", "crlf"] {
            let mut arguments = arguments.clone();
            arguments["path"] = json!(name);
            assert_eq!(fixture.read(arguments.clone())["line_ending"], name, "{arguments}");
        }
    }
    // The CR is the last byte of one piece that is read, and the LF the first of the next.
    let at_border = format!("{}\r\nx\r\n", "a".repeat(SAMPLE_BYTES - 1));
    fs::write(fixture.root.join("border"), at_border).unwrap();
    assert_eq!(fixture.read(json!({"path": "border", "offset": 2}))["line_ending"], "crlf");
}

#[test]
fn an_offset_of_zero_is_explained() {
    let error = Fixture::with("a", "x").refusal(json!({"path": "a", "offset": 0}));
    assert_eq!(error.category(), Category::InvalidArguments);
    assert_eq!(error.to_string(), "offset cannot be 0: 1 is the first line, -1 the last");
}

#[test]
fn every_encoding_is_shown_decoded_and_named() {
    let fixture = Fixture::new();
    let cases: [(&[u8], &str, &str, &str); 6] = [
        (b"gr\xC3\xBCn\r\n", "utf-8", "crlf", "grün\n"),
        (b"\xEF\xBB\xBFgr\xC3\xBCn\n", "utf-8-bom", "lf", "grün\n"),
        (b"\xFF\xFEg\0r\0\xFC\0n\0\r\0\n\0", "utf-16le", "crlf", "grün\n"),
        (b"\xFE\xFF\0g\0r\0\xFC\0n", "utf-16be", "none", "grün"),
        (b"Stra\xDFe gr\xFCn\na\r\n", "windows-1252", "mixed", "Straße grün\na\n"),
        (b"\xEF\xBB\xBF", "utf-8-bom", "none", ""),
    ];
    for (bytes, encoding, ending, text) in cases {
        fs::write(fixture.root.join("f"), bytes).unwrap();
        for offset in [1, -10] {
            let payload = fixture.read(json!(
                {"path": "f", "offset": offset, "line_numbers": false, "details": true}));
            assert_eq!(
                (&payload["encoding"], &payload["line_ending"], &payload["text"]),
                (&json!(encoding), &json!(ending), &json!(text))
            );
            assert_eq!(payload["version"], Version::of(bytes).to_string());
            // What is usual goes without saying.
            let few = fixture.read(json!({"path": "f", "offset": offset}));
            assert_eq!(few.contains_key("encoding"), encoding != "utf-8");
            assert_eq!(few.contains_key("line_ending"), ["crlf", "mixed"].contains(&ending));
        }
    }
    fs::write(fixture.root.join("f"), "äöü äöü \n".repeat(2).into_bytes().as_slice()).unwrap();
    assert!(!fixture.read(json!({"path": "f"})).contains_key("notice"));
    fs::write(fixture.root.join("f"), [b"\xC3\xA4".repeat(9).as_slice(), b"\xFF\n"].concat())
        .unwrap();
    let payload = fixture.read(json!({"path": "f"}));
    let notice = payload["notice"].as_str().unwrap();
    assert_eq!(
        notice,
        "Bytes that are not utf-8 are shown as \u{FFFD} and cannot be matched by edit_file."
    );
}

#[test]
fn long_content_stops_at_64_kib_with_the_exact_next_line() {
    let line = "z".repeat(992) + "\n";
    let fixture = Fixture::with("long", line.repeat(200));
    let payload = fixture.read(json!({"path": "long"}));
    assert_eq!((&payload["total_lines"], &payload["next_offset"]), (&json!(200), &json!(66)));
    assert!(payload["text"].as_str().unwrap().len() <= 64 * 1024);
    assert!(!payload.contains_key("notice"));
    let payload = fixture.read(json!({"path": "long", "offset": 66, "limit": 200}));
    assert!(payload["text"].as_str().unwrap().starts_with("66:z"));
    assert_eq!(payload["next_offset"], 131);
}

#[test]
fn files_of_the_proc_file_system_are_read_to_their_end() {
    let roots = vec!["/proc".to_owned()];
    let workspace = Workspace::open(&RootsSpec { roots, ..RootsSpec::default() }).unwrap();
    let files = Files::new(Arc::new(workspace), Level::Off);
    let fixture = Fixture { files, ..Fixture::new() };
    let payload =
        fixture.read(json!({"path": "/proc/self/status", "line_numbers": false, "details": true}));
    let content = payload["text"].as_str().unwrap();
    assert!(content.starts_with("Name:\t"), "{content}");
    assert_eq!(payload["size_bytes"], content.len());
    let last =
        fixture.read(json!({"path": "/proc/self/status", "offset": -1, "line_numbers": false}));
    assert_eq!(last["total_lines"], last["start_line"]);
}

/// Writes numbered lines of 16 bytes each, sparsely beyond what is looked at.
fn big(fixture: &Fixture, lines: u64) -> PathBuf {
    let path = fixture.root.join("big");
    let mut file = File::create(&path).unwrap();
    let mut text = String::new();
    for number in 1..=lines {
        text.push_str(&format!("{number:>15}\n"));
    }
    file.write_all(text.as_bytes()).unwrap();
    path
}

#[test]
fn a_window_deep_in_a_large_file_is_found_from_both_ends() {
    let fixture = Fixture::new();
    // 4.8 MB: more than one piece, counted as a whole.
    let path = big(&fixture, 300_000);
    let read = |arguments: Value| fixture.read(arguments);
    let first = read(json!({"path": "big", "limit": 1}));
    assert_eq!((&first["total_lines"], &first["next_offset"]), (&json!(300_000), &json!(2)));
    assert!(first.contains_key("version"));
    let deep = read(json!({"path": "big", "offset": 200_000, "limit": 2}));
    assert_eq!(deep["text"], "200000:         200000\n200001:         200001\n");
    let near_end = read(json!({"path": "big", "offset": 299_990, "limit": 2}));
    assert_eq!(
        (&near_end["total_lines"], &near_end["next_offset"]),
        (&json!(300_000), &json!(299_992))
    );
    assert!(near_end.contains_key("version"));
    let end = read(json!({"path": "big", "offset": -2}));
    assert_eq!(end["text"], "299999:         299999\n300000:         300000\n");
    let past = read(json!({"path": "big", "offset": 300_001}));
    assert!(past["notice"].as_str().unwrap().contains("which has 300000 lines"));
    // Beyond 64 MiB nobody counts.
    File::options().append(true).open(path).unwrap().set_len(65 << 20).unwrap();
    let first = read(json!({"path": "big", "limit": 1}));
    assert_eq!(first["next_offset"], 2);
    assert!(!first.contains_key("total_lines") && !first.contains_key("version"));
}

#[test]
fn a_huge_file_is_read_from_its_end_without_its_beginning() {
    let fixture = Fixture::new();
    let path = fixture.root.join("huge");
    let mut file = File::create(&path).unwrap();
    file.write_all("begin\n".repeat(50_000).as_bytes()).unwrap();
    // A hole: it reads as NUL bytes, in one line.
    file.seek(SeekFrom::Start(10 << 30)).unwrap();
    file.write_all(b"\nlast but one\r\nlast").unwrap();
    let payload = fixture.read(json!({"path": "huge", "offset": -2}));
    assert_eq!(payload["text"], "-2:last but one\n-1:last");
    assert!(payload["notice"].as_str().unwrap().contains("numbered from the end"));
    let first = fixture.read(json!({"path": "huge", "offset": -2, "limit": 1}));
    assert_eq!(first["next_offset"], -1);
    let start = fixture.read(json!({"path": "huge", "offset": 1, "limit": 1}));
    assert_eq!(start["text"], "1:begin\n");
}

#[test]
fn a_call_that_was_cancelled_ends_in_the_middle_of_a_large_file() {
    let fixture = Fixture::new();
    let file = File::create(fixture.root.join("huge")).unwrap();
    (&file).write_all("begin\n".repeat(50_000).as_bytes()).unwrap();
    file.set_len(1 << 40).unwrap();
    fixture.cancel.cancel();
    let error = fixture.refusal(json!({"path": "huge", "offset": 1_000_000}));
    assert_eq!(error.category(), Category::Cancelled);
}

#[test]
fn a_long_line_in_one_piece_is_clipped() {
    let fixture = Fixture::with("one", "x".repeat(3_000_000));
    let payload = fixture.read(json!({"path": "one", "line_numbers": false}));
    let content = payload["text"].as_str().unwrap();
    assert!(content.ends_with("x… [cut: 2000 characters of a line of 3000000 characters]"));
    assert!(!payload.contains_key("next_offset"));
    let known = fixture.files.session("").knows(&fixture.root.join("one")).unwrap();
    assert_eq!(known.extent, Extent::Part);
}

#[test]
fn a_preview_shows_what_would_be_read_or_why_not() {
    let fixture = Fixture::with("a.rs", "x");
    let plain = |text: &str| View::plain(text);
    let shown = |arguments: Value| fixture.preview(&arguments);
    assert_eq!(shown(json!({"path": "a.rs"})), plain("Read a.rs"));
    assert_eq!(shown(json!({"path": "a.rs", "limit": 5})), plain("Read a.rs, the first 5 lines"));
    assert_eq!(
        shown(json!({"path": "a.rs", "offset": 10, "limit": 5})),
        plain("Read a.rs, lines 10–14")
    );
    assert_eq!(shown(json!({"path": "a.rs", "offset": -5})), plain("Read a.rs, the last 5 lines"));
    let outside =
        format!("cannot read /etc/passwd: outside the roots [{}]", fixture.root.display());
    for (path, why) in [
        ("/etc/passwd", outside.as_str()),
        (".", "cannot read .: it is a directory"),
        ("a\nb\u{1b}[2J", "cannot read \"a\\nb\\033[2J\": "),
    ] {
        let View::Group(parts) = shown(json!({ "path": path })) else { panic!("{path}") };
        let View::Text { content, style: Style::Error } = &parts[0] else { panic!("{parts:?}") };
        assert!(content.starts_with(&format!("This call would fail: {why}")), "{content}");
    }
}

#[test]
fn a_result_is_rendered_as_code_without_its_numbers() {
    let fixture = Fixture::with("a.rs", "fn a() {}\r\n\tb\r\nc\r\n");
    let view = |arguments: Value| show::result(&fixture.read(arguments));
    let of = |heading: &str, code: &str| {
        View::Group(vec![View::text(heading, Style::Dim), View::code(None, code)])
    };
    let whole = of("lines 1–3 of 3 · crlf", "fn a() {}\n\tb\nc\n");
    assert_eq!(view(json!({"path": "a.rs"})), whole);
    let part = json!({"path": "a.rs", "offset": 2, "limit": 1});
    assert_eq!(view(part), of("lines 2–2 of 3 · crlf", "\tb\n"));
    let bare = json!({"path": "a.rs", "offset": -2, "line_numbers": false});
    assert_eq!(view(bare), of("lines 2–3 of 3 · crlf", "\tb\nc\n"));
    // A front end that knows the path puts it there.
    let known = json!({"path": "a.rs", "text": "9:x"});
    let View::Group(views) = show::result(known.as_object().unwrap()) else { panic!() };
    assert_eq!(views[0], View::text("a.rs · lines 9–9 of 9", Style::Dim));
    assert_eq!(views[1], View::code(Some("rust"), "x"));
    let odd = json!({"text": "7:a\n9:b"});
    let View::Group(views) = show::result(odd.as_object().unwrap()) else { panic!() };
    assert_eq!(views, [View::code(None, "7:a\n9:b")]);
    assert_eq!(show::result(&Payload::new()), View::Group(Vec::new()));
}

#[test]
fn results_of_earlier_versions_are_rendered_as_they_were() {
    let old = json!({
        "tool": "read_file", "path": "a.rs", "content": "     9\tfn a() {}\n    10\t\tb\n",
        "start_line": 9, "end_line": 10, "total_lines": 12, "truncated": true, "next_offset": 11,
        "encoding": "windows-1252", "line_ending": "crlf", "size_bytes": 90,
        "notice": "There are more lines; go on with offset 11.",
    });
    let heading = View::text("a.rs · lines 9–10 of 12 · windows-1252 · crlf", Style::Dim);
    let code = View::code(Some("rust"), "fn a() {}\n\tb\n");
    let notice = View::text("There are more lines; go on with offset 11.", Style::Warning);
    let shown = show::result(old.as_object().unwrap());
    assert_eq!(shown, View::Group(vec![heading, code, notice]));
    let bare = json!({"path": "x", "content": "7\tno number of mine", "start_line": 1});
    let View::Group(views) = show::result(bare.as_object().unwrap()) else { panic!() };
    assert_eq!(views[1], View::code(None, "7\tno number of mine"));
}

/// What a text's window is, in the plainest way.
fn model(text: &str, offset: i64, limit: usize) -> (String, Option<i64>) {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let count = i64::try_from(lines.len()).unwrap();
    let start = if offset > 0 { offset - 1 } else { (count + offset).max(0) };
    let from = usize::try_from(start.min(count)).unwrap();
    let to = lines.len().min(from + limit);
    let shown = lines[from..to].concat().replace("\r\n", "\n");
    let next = (to < lines.len()).then(|| i64::try_from(to).unwrap() + 1);
    (shown, next)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_window_is_what_the_text_says(
        text in "([a\u{E4}\u{0A0D}]{0,3}\r?\n?){0,12}",
        offset in prop_oneof![-15i64..0, 1i64..15],
        limit in 1usize..10,
        wide: bool,
    ) {
        let encoding = if wide { Encoding::Utf16Le } else { Encoding::Utf8 };
        let bytes = [encoding.bom(), &encoding.encode(&text).unwrap()].concat();
        let fixture = Fixture::with("f", bytes);
        let payload = fixture.read(
            json!({"path": "f", "offset": offset, "limit": limit, "line_numbers": false}));
        let (content, next) = model(&text, offset, limit);
        prop_assert_eq!(payload["text"].as_str().unwrap(), &content);
        prop_assert_eq!(payload.get("next_offset").and_then(Value::as_i64), next);
        let [lines, shown] = [&text, &content].map(|text| text.split_inclusive('\n').count());
        let total = (shown > 0 && shown < lines).then_some(lines as u64);
        prop_assert_eq!(payload.get("total_lines").and_then(Value::as_u64), total);
    }
}
