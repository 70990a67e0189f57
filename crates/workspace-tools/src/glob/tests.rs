use sandbox::Level;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use super::*;
use tool_provider::Secrets;
use tool_provider::{CancelToken, Category, EmitError, Event, EventSink, Phase};
use workspace_fs::{RootsSpec, Workspace};

/// A root with files in it, and calls of the tool on them.
struct Fixture {
    files: Files,
    cancel: CancelToken,
    sink: Sent,
    root: PathBuf,
    keep: tempfile::TempDir,
}

/// What was sent.
#[derive(Default)]
struct Sent(Mutex<Vec<Event>>);

impl EventSink for Sent {
    fn emit_until(&self, event: Event, _: Option<Instant>) -> Result<(), EmitError> {
        self.0.lock().unwrap().push(event);
        Ok(())
    }
}

impl Sent {
    /// The paths of all partial results.
    fn paths(&self) -> Vec<Value> {
        let paths = |event| match event {
            Event::Partial(payload) => payload["paths"].as_array().unwrap().clone(),
            _ => Vec::new(),
        };
        self.0.lock().unwrap().drain(..).flat_map(paths).collect()
    }
}

impl Fixture {
    /// A root with these files; a name that ends in a slash is a directory.
    fn new(files: &[&str]) -> Self {
        let keep = tempfile::tempdir().unwrap();
        let root = keep.path().canonicalize().unwrap().join("root");
        fs::create_dir(&root).unwrap();
        for file in files {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            if file.ends_with('/') {
                fs::create_dir_all(path).unwrap();
            } else {
                fs::write(path, "text").unwrap();
            }
        }
        let roots = vec![root.display().to_string()];
        let workspace = Workspace::open(&RootsSpec { roots, ..RootsSpec::default() }).unwrap();
        let files = Files::new(Arc::new(workspace), Level::Off);
        Self { files, cancel: CancelToken::new(), sink: Sent::default(), root, keep }
    }

    fn on<T>(
        &self,
        from: Option<&str>,
        deadline: Option<Instant>,
        act: impl FnOnce(&Glob, &Context<'_>) -> T,
    ) -> T {
        let phase = Phase::default();
        let context = Context {
            state: &self.files,
            session_id: "",
            working_directory: from,
            sink: &self.sink,
            cancel: &self.cancel,
            deadline,
            phase: &phase,
            secrets: &Secrets::default(),
        };
        act(&Glob::default(), &context)
    }

    fn call(&self, arguments: &Value) -> Result<Payload, ToolError> {
        let arguments = arguments.as_object().unwrap();
        self.on(None, None, |tool, context| tool.run(arguments, context))
    }

    /// The result in the form for programs, of which the partial ones are the parts.
    fn find(&self, arguments: &Value) -> Payload {
        let mut arguments = arguments.clone();
        arguments["details"] = true.into();
        let payload = self.call(&arguments).unwrap();
        assert_eq!(json!(self.sink.paths()), payload["paths"], "{arguments}");
        payload
    }

    fn paths(&self, arguments: &Value) -> Vec<String> {
        paths(&self.find(arguments))
    }

    fn matches(&self, pattern: &str) -> Vec<String> {
        self.paths(&json!({ "pattern": pattern }))
    }
}

fn paths(payload: &Payload) -> Vec<String> {
    let paths = payload["paths"].as_array().unwrap().iter();
    paths.map(|item| item["path"].as_str().unwrap().to_owned()).collect()
}

fn notice(payload: &Payload) -> &str {
    payload.get("notice").and_then(Value::as_str).unwrap_or_default()
}

#[test]
fn without_a_slash_a_pattern_is_about_names_and_with_one_about_paths() {
    let fixture = Fixture::new(&[
        "Cargo.toml",
        "src/main.rs",
        "src/deep/er/lib.rs",
        "src/deep/Cargo.toml",
        "tests/a.rs",
        "-v",
        "a[1].txt",
        "empty/",
        ".github/w.yml",
    ]);
    for (pattern, expected) in [
        ("*.rs", &["src/deep/er/lib.rs", "src/main.rs", "tests/a.rs"][..]),
        ("./*.rs", &[]),
        ("src/*.rs", &["src/main.rs"]),
        ("src/**/*.rs", &["src/deep/er/lib.rs", "src/main.rs"]),
        ("**/*.rs", &["src/deep/er/lib.rs", "src/main.rs", "tests/a.rs"]),
        ("{src,tests}/*.rs", &["src/main.rs", "tests/a.rs"]),
        ("*.{toml,yml}", &[".github/w.yml", "Cargo.toml", "src/deep/Cargo.toml"]),
        ("Cargo.toml", &["Cargo.toml", "src/deep/Cargo.toml"]),
        ("./Cargo.toml", &["Cargo.toml"]),
        ("[a-c]*", &["a[1].txt", "tests/a.rs"]),
        ("a\\[1\\].txt", &["a[1].txt"]),
        ("a[[]1[]].txt", &["a[1].txt"]),
        ("????.rs", &["src/main.rs"]),
        ("-*", &["-v"]),
        ("*", &["-v", ".github", "Cargo.toml", "a[1].txt", "empty", "src", "tests"]),
        ("*/", &[".github", "empty", "src", "tests"]),
        ("**/", &[".github", "empty", "src", "src/deep", "src/deep/er", "tests"]),
        ("src/", &["src"]),
        ("deep", &["src/deep"]),
        ("src/*", &["src/deep", "src/main.rs"]),
        ("src/deep/..", &["src/deep/../deep", "src/deep/../main.rs"]),
        (".github/*.yml", &[".github/w.yml"]),
        ("src/main.rs/*", &[]),
        ("none/*", &[]),
        ("SRC/*", &[]),
    ] {
        assert_eq!(fixture.matches(pattern), expected, "{pattern}");
    }
    assert_eq!(fixture.matches("**").len(), 14);
    assert_eq!(fixture.paths(&json!({"pattern": "*.rs", "path": "./src/"})).len(), 2);
    assert_eq!(
        fixture.paths(&json!({"pattern": "*.rs", "path": "src/deep"})),
        ["src/deep/er/lib.rs"]
    );
    let root = fixture.root.display().to_string();
    let absolute = format!("{root}/src/*.rs");
    assert_eq!(fixture.matches(&absolute), [format!("{root}/src/main.rs")]);
    assert_eq!(
        fixture.paths(&json!({"pattern": absolute, "path": "none"})).len(),
        1,
        "an absolute pattern says where it starts"
    );
}

#[test]
fn a_result_says_kind_size_and_time() {
    let fixture = Fixture::new(&["a", "b/"]);
    symlink("a", fixture.root.join("c")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        fixture.root.join("d"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    let moment = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    fs::File::options()
        .write(true)
        .open(fixture.root.join("a"))
        .unwrap()
        .set_modified(moment)
        .unwrap();
    let payload = fixture.find(&json!({"pattern": "*"}));
    assert_eq!(
        payload["paths"][0],
        json!({"path": "a", "kind": "file", "size_bytes": 4, "modified": "2023-11-14T22:13:20Z"})
    );
    let kinds = ["file", "folder", "link", "other"];
    for (item, kind) in payload["paths"].as_array().unwrap().iter().zip(kinds) {
        assert_eq!(item["kind"], kind);
        assert!(item["modified"].as_str().is_some_and(|time| time.ends_with('Z')), "{item}");
        assert_eq!(item.get("size_bytes").is_some(), kind == "file");
    }
    assert!(!payload.contains_key("notice") && !payload.contains_key("next_offset"));
}

#[test]
fn a_model_reads_names() {
    let fixture = Fixture::new(&["a/b.rs", "big", "c/"]);
    symlink("big", fixture.root.join("l")).unwrap();
    fs::create_dir(fixture.root.join("d\n")).unwrap();
    fs::write(fixture.root.join("big"), "x".repeat(100)).unwrap();
    let found = |arguments: Value| Value::Object(fixture.call(&arguments).unwrap());
    assert_eq!(
        found(json!({"pattern": "*"})),
        json!({"found": ["a/", "big", "c/", "\"d\\n/\"", "l"]})
    );
    assert_eq!(
        found(json!({"pattern": "**", "kind": "file", "sort": "size"})),
        json!({"found": ["big", "a/b.rs"]})
    );
    assert_eq!(
        found(json!({"pattern": "**", "kind": "directory", "limit": 1})),
        json!({"found": ["a/"], "next_offset": 1})
    );
    assert_eq!(found(json!({"pattern": "**", "kind": "link"})), json!({"found": ["l"]}));
    let error = fixture.call(&json!({"pattern": "*/", "kind": "file"})).unwrap_err();
    assert!(error.message().contains("finds directories only"), "{error}");
}

#[test]
fn names_that_look_like_patterns_and_lists_of_patterns_find_what_is_meant() {
    let fixture = Fixture::new(&[
        "app/[slug]/page.tsx",
        "app/[...rest]/deep/a.ts",
        "app/s/page.ts",
        "{type} note.md",
        "x [1].txt",
        "internal/agent/tools/x.go",
    ]);
    let root = fixture.root.display().to_string();
    let found = |pattern: &str| {
        let found = fixture.call(&json!({ "pattern": pattern })).unwrap();
        (found["found"].clone(), notice(&found).to_owned())
    };
    for (pattern, expected) in [
        ("app/[slug]/page.tsx", "app/[slug]/page.tsx"),
        ("app/[slug]/*", "app/[slug]/page.tsx"),
        ("app/[...rest]/**/*.ts", "app/[...rest]/deep/a.ts"),
        ("{type} note.md", "{type} note.md"),
        ("x [1].txt", "x [1].txt"),
    ] {
        for (prefix, expected) in
            [("", expected.to_owned()), (&*root, format!("{root}/{expected}"))]
        {
            let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
            let (paths, notice) = found(&format!("{prefix}{pattern}"));
            assert_eq!(paths, json!([expected]), "{pattern}");
            assert!(notice.contains("was taken literally"), "{notice}");
        }
    }
    for (pattern, expected) in [
        ("**/[slug]/*.tsx", "app/[slug]/page.tsx"),
        ("**/[...rest]/deep/*", "app/[...rest]/deep/a.ts"),
        ("**/[slug]/*x", "app/[slug]/page.tsx"),
        ("x [1].*", "x [1].txt"),
    ] {
        let (paths, notice) = found(pattern);
        assert_eq!(paths, json!([expected]), "{pattern}");
        assert!(notice.contains("was taken literally"), "{notice}");
    }
    assert_eq!(found("app/[r-t]/*"), (json!(["app/s/page.ts"]), String::new()));
    assert_eq!(found("[xyz].ts"), (json!([]), "Nothing matches.".to_owned()));
    assert_eq!(found("[1-3].txt").0, json!([]));
    let (paths, said) = found("**/*.ts, **/*.tsx");
    assert_eq!(paths.as_array().unwrap().len(), 3);
    assert_eq!(said, "");
    for (pattern, remedy) in [
        ("~/*", "Nothing matches: there is no directory ~. ~ is not expanded"),
        ("agent/tools/*.go", "no directory agent/tools. Did you mean internal/agent/tools?"),
        ("a.ts,b.ts", "A comma parts patterns only where"),
    ] {
        let (_, said) = found(pattern);
        assert!(said.contains(remedy), "{said}");
    }
}

#[test]
fn pages_in_either_order_make_the_whole() {
    let names: Vec<String> = (0..25).map(|n| format!("{}/f{n:02}", n % 3)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let fixture = Fixture::new(&names);
    let start = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    for (index, name) in names.iter().enumerate() {
        // Some of the same age.
        let moment = start + Duration::from_secs(index as u64 * 7 % 10);
        let file = fs::File::options().write(true).open(fixture.root.join(name)).unwrap();
        file.set_modified(moment).unwrap();
    }
    for sort in ["path", "modified"] {
        let whole = fixture.find(&json!({"pattern": "f*", "sort": sort}));
        let all = paths(&whole);
        assert_eq!((all.len(), whole.get("next_offset")), (25, None));
        let mut sorted = all.clone();
        sorted.sort();
        let age = |path: &String| {
            std::cmp::Reverse(fs::metadata(fixture.root.join(path)).unwrap().modified().unwrap())
        };
        if sort == "modified" {
            sorted.sort_by_key(age);
        }
        assert_eq!(all, sorted);
        let mut pages = Vec::new();
        loop {
            let page = fixture
                .find(&json!({"pattern": "f*", "sort": sort, "limit": 4, "offset": pages.len()}));
            pages.extend(paths(&page));
            match page.get("next_offset") {
                Some(next) => assert_eq!(*next, json!(pages.len())),
                None => break,
            }
        }
        assert_eq!(pages, all);
    }
    let exact = fixture.find(&json!({"pattern": "f*", "limit": 25}));
    assert_eq!(exact.get("next_offset"), None);
    let past = fixture.find(&json!({"pattern": "f*", "offset": 30}));
    assert_eq!(notice(&past), "Nothing to list: offset 30 is past the last of 25 matches.");
}

#[test]
fn a_result_has_room_for_so_much_and_no_more() {
    let names: Vec<String> =
        (0..700).map(|n| format!("{}/{n:04}{}", "d".repeat(200), "f".repeat(100))).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let fixture = Fixture::new(&names);
    for sort in ["path", "modified"] {
        let mut all = Vec::new();
        let mut pages = 0;
        loop {
            let page = fixture.find(&json!({
                "pattern": "*f", "sort": sort, "limit": 10_000, "offset": all.len()
            }));
            assert!(serde_json::to_vec(&page).unwrap().len() < 160 * 1024);
            all.extend(paths(&page));
            pages += 1;
            match page.get("next_offset") {
                Some(next) => assert_eq!(*next, json!(all.len())),
                None => break,
            }
        }
        assert!(pages > 1);
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 700, "{sort}");
    }
    let far = json!({"pattern": "*", "sort": "modified", "offset": 1_000_000});
    assert_eq!(fixture.call(&far).unwrap_err().category(), Category::InvalidArguments);
}

#[test]
fn what_is_ignored_is_found_when_it_is_spelt_out_and_reported_when_nothing_is_found() {
    let fixture = Fixture::new(&["dist/o.js", "src.js", "x.log", "sub/y.tmp"]);
    fs::write(fixture.root.join(".gitignore"), "dist/\n*.log\n").unwrap();
    fs::write(fixture.root.join("sub/.ignore"), "*.tmp\n").unwrap();
    for repository in [false, true] {
        if repository {
            fs::create_dir(fixture.root.join(".git")).unwrap();
        }
        assert_eq!(fixture.matches("*.js"), ["src.js"]);
        assert_eq!(fixture.matches("dist/*.js"), ["dist/o.js"]);
        assert_eq!(fixture.matches("dist/o.js"), ["dist/o.js"]);
        assert_eq!(fixture.matches("dist"), ["dist"]);
        assert_eq!(fixture.paths(&json!({"pattern": "*", "path": "dist"})), ["dist/o.js"]);
        assert_eq!(fixture.matches("*"), [".gitignore", "src.js", "sub"]);
        let all = fixture.paths(&json!({"pattern": "**", "include_ignored": true}));
        assert_eq!(
            all,
            [
                ".gitignore",
                "dist",
                "dist/o.js",
                "src.js",
                "sub",
                "sub/.ignore",
                "sub/y.tmp",
                "x.log"
            ]
        );
        let nothing = fixture.find(&json!({"pattern": "o.j?"}));
        assert_eq!(
            notice(&nothing),
            "Nothing matches. Ignore rules left out 1 file or directory; include_ignored: true lists \
             them."
        );
    }
    let nothing = fixture.find(&json!({"pattern": "sub/*.md"}));
    assert!(notice(&nothing).contains("**/ before it looks in any directory"), "{nothing:?}");
}

#[test]
fn nothing_outside_the_roots_is_listed_or_distinguished_from_what_is_not_there() {
    let fixture = Fixture::new(&["in/x"]);
    let outside = fixture.keep.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "").unwrap();
    let link = |to: &str, name: &str| symlink(to, fixture.root.join(name)).unwrap();
    link("../outside", "dlink");
    link("../outside/secret", "flink");
    link("../nowhere", "dangling");
    link(".", "self");
    link("in", "inlink");
    for pattern in ["../*", "/etc/host*", "../outside/*", "/", "in/../../*"] {
        let error = fixture.call(&json!({ "pattern": pattern })).unwrap_err();
        assert_eq!(error.category(), Category::PermissionDenied, "{pattern}: {error}");
    }
    let error = fixture.call(&json!({"pattern": "*/../*"})).unwrap_err();
    assert_eq!(error.category(), Category::InvalidArguments);
    let nothing = fixture.find(&json!({"pattern": "none/**"}));
    for pattern in ["dlink/**", "dlink/secret/**", "dangling/**", "flink/**"] {
        let mut payload = fixture.find(&json!({ "pattern": pattern }));
        let directory = pattern.strip_suffix("/**").unwrap();
        let notice = payload["notice"].as_str().unwrap().replace(directory, "none");
        payload.insert("notice".to_owned(), notice.into());
        assert_eq!(payload, nothing, "{pattern}");
    }
    let denied = fixture.call(&json!({"pattern": "*", "path": "dlink"})).unwrap_err();
    assert_eq!(denied.category(), Category::PermissionDenied);
    assert_eq!(fixture.matches("inlink/*"), ["inlink/x"]);
    assert_eq!(fixture.matches("self/self/in/*"), ["self/self/in/x"]);
    assert_eq!(fixture.matches("x"), ["in/x"], "links are not followed on the way");
    assert_eq!(fixture.matches("*link"), ["dlink", "flink", "inlink"]);
    let beside = fixture.keep.path().canonicalize().unwrap().join("root/in");
    let from = beside.to_str().unwrap();
    let upwards = json!({"pattern": "../*link", "details": true});
    let found = fixture.on(Some(from), None, |tool, context| {
        tool.run(upwards.as_object().unwrap(), context).unwrap()
    });
    assert_eq!(paths(&found), ["../dlink", "../flink", "../inlink"]);
}

#[test]
fn odd_names_come_back_in_a_form_that_is_taken() {
    let fixture = Fixture::new(&[]);
    let names: [&[u8]; 4] = [b"\"q\"", b"a\nb", b"caf\xe9", "\u{202e}x".as_bytes()];
    for odd in names {
        fs::create_dir(fixture.root.join(std::ffi::OsStr::from_bytes(odd))).unwrap();
        fs::write(fixture.root.join(std::ffi::OsStr::from_bytes(odd)).join("in"), "").unwrap();
    }
    let shown = fixture.matches("*");
    assert_eq!(shown, names.map(|odd| name::encode(odd).into_owned()));
    for directory in shown {
        let inside = fixture.paths(&json!({"pattern": "*", "path": directory}));
        let quote = directory.strip_suffix('"').unwrap();
        assert_eq!(inside, [format!("{quote}/in\"")]);
    }
}

#[test]
fn what_cannot_be_searched_is_explained() {
    let fixture = Fixture::new(&["a"]);
    for (arguments, category, message) in [
        (json!({"pattern": ""}), Category::InvalidArguments, "pattern is empty: "),
        (json!({"pattern": "[a"}), Category::InvalidArguments, "pattern [a: "),
        (json!({"pattern": "{a"}), Category::InvalidArguments, "pattern {a: "),
        (
            json!({"pattern": "*", "path": "a"}),
            Category::InvalidArguments,
            "cannot list a: it is not",
        ),
        (json!({"pattern": "*", "path": "b"}), Category::NotFound, "cannot list b: "),
    ] {
        let error = fixture.call(&arguments).unwrap_err();
        assert_eq!(error.category(), category, "{error}");
        assert!(error.message().starts_with(message), "{error}");
        let shown = fixture
            .on(None, None, |tool, context| tool.preview(arguments.as_object().unwrap(), context));
        match shown {
            Err(refused) => assert_eq!(refused.category(), Category::InvalidArguments),
            Ok(View::Group(views)) => assert!(
                matches!(&views[0], View::Text { content, .. } if content.contains(message))
            ),
            Ok(other) => panic!("{other:?}"),
        }
    }
    let preview = |arguments: &Value| {
        fixture.on(None, None, |tool, context| {
            tool.preview(arguments.as_object().unwrap(), context).unwrap()
        })
    };
    assert_eq!(preview(&json!({"pattern": "*.rs"})), View::plain("Find *.rs"));
}

#[test]
fn a_search_that_is_stopped_says_what_it_found() {
    let fixture = Fixture::new(&["a", "b"]);
    let past = Some(Instant::now());
    let stopped = |sort: &str| {
        let arguments = json!({"pattern": "*", "sort": sort, "details": true});
        fixture.on(None, past, |tool, context| tool.run(arguments.as_object().unwrap(), context))
    };
    // All may have been found before the clock was looked at.
    for sort in ["path", "modified", "size"] {
        let payload = match stopped(sort) {
            Ok(payload) => payload,
            Err(error) => {
                assert_eq!(error.category(), Category::Timeout, "{error}");
                continue;
            }
        };
        let found = paths(&payload).len();
        assert_eq!(json!(fixture.sink.paths()), payload["paths"]);
        if payload.contains_key("notice") {
            assert!(notice(&payload).contains("Time was up"), "{payload:?}");
            let next = (sort == "path").then(|| json!(found));
            assert_eq!(payload.get("next_offset"), next.as_ref());
        }
    }
    fixture.cancel.cancel();
    let error = fixture.call(&json!({"pattern": "*"})).unwrap_err();
    assert_eq!(error.category(), Category::Cancelled);
    assert_eq!(error.details()["found"], json!(fixture.sink.paths().len()));
}
