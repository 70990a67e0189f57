//! The known faults of other tools' searches, each as a story.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::{Searched, glob, grep};
use crate::environment::{hand_over, unprivileged};
use crate::harness::Fixture;
use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_leading_dash_is_plain,
        what_is_ignored_is_never_silently_absent,
        a_binary_file_is_searched_up_to_its_first_nul_and_named,
        a_bad_pattern_is_reported_with_its_reason,
        a_search_stays_inside_and_ends,
        unreadable_files_and_directories_are_named,
        an_empty_root_has_nothing_and_says_so,
    ]
}

/// G01: a dash at the beginning is no option.
async fn a_leading_dash_is_plain() {
    let mut fixture = Fixture::configured().await;
    fixture.write("f", "--release\n-> x\n-1\n");
    fixture.write("-v", "hit\n");
    for pattern in ["--release", "-> x", "-1"] {
        assert_eq!(grep(&mut fixture, json!({ "pattern": pattern })).await, ["f"], "{pattern}");
    }
    assert_eq!(grep(&mut fixture, json!({"pattern": "hit", "path": "-v"})).await, ["-v"]);
    assert_eq!(grep(&mut fixture, json!({"pattern": "hit", "glob": "-*"})).await, ["-v"]);
    assert_eq!(glob(&mut fixture, json!({"pattern": "-*"})).await, ["-v"]);
    assert_eq!(grep(&mut fixture, json!({"pattern": "-2"})).await, [""; 0]);
    fixture.end().await;
}

/// G03: ignored files are left out by one rule, named when they matter, and found when asked for.
async fn what_is_ignored_is_never_silently_absent() {
    let mut fixture = Fixture::configured().await;
    for directory in [".github", "dist"] {
        std::fs::create_dir(fixture.path(directory)).unwrap();
    }
    for file in [".github/w.yml", "dist/o.js", "src.js"] {
        fixture.write(file, "NEEDLE\n");
    }
    fixture.write(".gitignore", "dist/\n");
    for has_repository in [false, true] {
        if has_repository {
            let made = Command::new("git").arg("init").arg("-q").arg(fixture.path("")).status();
            match made {
                Ok(status) => assert!(status.success()),
                Err(_) => std::fs::create_dir(fixture.path(".git")).unwrap(),
            }
        }
        let found = Searched::of(&mut fixture, "grep", json!({"pattern": "NEEDLE"})).await;
        assert_eq!(found.paths("matches"), [".github/w.yml", "src.js"]);
        assert!(
            found.notice().contains("gnore"),
            "what was left out is reported: {}",
            found.notice()
        );
        let inside = grep(&mut fixture, json!({"pattern": "NEEDLE", "path": "dist"})).await;
        assert_eq!(inside, ["dist/o.js"]);
        let named = grep(&mut fixture, json!({"pattern": "NEEDLE", "glob": "dist/*.js"})).await;
        assert_eq!(named, ["dist/o.js"]);
        let all = grep(&mut fixture, json!({"pattern": "NEEDLE", "include_ignored": true})).await;
        assert_eq!(all, [".github/w.yml", "dist/o.js", "src.js"]);

        assert_eq!(
            glob(&mut fixture, json!({"pattern": ".github/*.yml"})).await,
            [".github/w.yml"]
        );
        assert_eq!(glob(&mut fixture, json!({"pattern": "dist/*.js"})).await, ["dist/o.js"]);
        assert_eq!(glob(&mut fixture, json!({"pattern": "*.js"})).await, ["src.js"]);
        let all = glob(&mut fixture, json!({"pattern": "*.js", "include_ignored": true})).await;
        assert_eq!(all, ["dist/o.js", "src.js"]);

        // "Nothing found" differs from "not looked at".
        for (tool, arguments) in
            [("grep", json!({"pattern": "ABSENT"})), ("glob", json!({"pattern": "o.j?"}))]
        {
            let nothing = Searched::of(&mut fixture, tool, arguments).await;
            let notice = nothing.notice();
            assert!(notice.contains("include_ignored") && notice.contains('1'), "{tool}: {notice}");
        }
    }
    // A repository's own store is found only where the path names it.
    fixture.write(".git/own", "NEEDLE\n");
    assert_eq!(
        grep(&mut fixture, json!({"pattern": "NEEDLE", "include_ignored": true})).await.len(),
        3
    );
    assert_eq!(
        glob(&mut fixture, json!({"pattern": "own", "include_ignored": true})).await,
        [""; 0]
    );
    assert_eq!(
        grep(&mut fixture, json!({"pattern": "NEEDLE", "path": ".git"})).await,
        [".git/own"]
    );
    assert_eq!(glob(&mut fixture, json!({"pattern": ".git/ow*"})).await, [".git/own"]);
    fixture.end().await;
}

/// G04: a NUL byte loses no match before it, shifts no number and ends no call.
async fn a_binary_file_is_searched_up_to_its_first_nul_and_named() {
    let mut fixture = Fixture::configured().await;
    let pad = "pad\n".repeat(50_000);
    fixture.write("log", format!("NEEDLE1\n{pad}\0\nNEEDLE2\n"));
    fixture.write("lib.o", b"NEEDLE\0\xff\xfe\n");
    fixture.write("ok", "NEEDLE\n");
    fixture.write("latin", b"NEEDLE \xff\n");
    let found = Searched::of(&mut fixture, "grep", json!({"pattern": "NEEDLE"})).await;
    assert_eq!(found.notice(), "", "of many hits none is missed");
    let few = Searched::of(&mut fixture, "grep", json!({"pattern": "NEEDLE2"})).await;
    let hits: Vec<(&Value, &Value)> = found.result["matches"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hit| (&hit["path"], &hit["line"]))
        .filter(|(path, _)| *path != "lib.o")
        .collect();
    let expected =
        [("latin", 1), ("log", 1), ("ok", 1)].map(|(path, line)| (json!(path), json!(line)));
    assert_eq!(hits, expected.iter().map(|(path, line)| (path, line)).collect::<Vec<_>>());
    assert_eq!(found.result["skipped"]["binary"], 2);
    for name in ["log", "lib.o"] {
        assert!(few.notice().contains(name), "{name} is named: {}", few.notice());
    }
    fixture.end().await;
}

/// G05: a pattern that cannot be meant is an error, never a clean zero.
async fn a_bad_pattern_is_reported_with_its_reason() {
    let mut fixture = Fixture::configured().await;
    fixture.write("f", "foo\nbar\n");
    for (pattern, reason) in [
        ("foo(", "unclosed"),
        ("a{", ""),
        ("(?<=x)y", "look"),
        ("foo\\nbar", "multiline"),
        ("foo\nbar", "multiline"),
        ("", "empty"),
        ("(a)\\1", "backreference"),
    ] {
        let failure = fixture.failure("grep", json!({ "pattern": pattern })).await;
        assert_eq!(failure.category, "invalid_arguments", "{pattern:?}: {}", failure.message);
        let complaint = format!("{} {:?}", failure.message, failure.hint()).to_lowercase();
        assert!(complaint.contains(reason), "{pattern:?}: {complaint}");
    }
    let fixed = json!({"pattern": "foo(", "fixed_strings": true});
    assert_eq!(grep(&mut fixture, fixed).await, [""; 0], "plain text is no bad pattern");
    let across = json!({"pattern": "foo\\nbar", "multiline": true});
    assert_eq!(grep(&mut fixture, across).await, ["f"]);
    assert_eq!(grep(&mut fixture, json!({"pattern": "(o|o)*$"})).await, ["f", "f"]);
    for pattern in ["", "[a", "{a"] {
        let failure = fixture.failure("glob", json!({ "pattern": pattern })).await;
        assert_eq!(failure.category, "invalid_arguments", "{pattern:?}: {}", failure.message);
    }
    fixture.end().await;
}

/// G08: nothing outside is listed, read or mentioned; links do not loop, and a FIFO does not block.
async fn a_search_stays_inside_and_ends() {
    let mut fixture = Fixture::configured().await;
    let outside = fixture.path("../outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("secret"), "TOP\n").unwrap();
    let link = |to: &Path, name: &str| symlink(to, fixture.path(name)).unwrap();
    link(&outside, "dlink");
    link(&outside.join("secret"), "flink");
    link(&outside.join("absent"), "dangling");
    link(".".as_ref(), "self");
    assert!(Command::new("mkfifo").arg(fixture.path("p")).status().unwrap().success());
    std::fs::create_dir(fixture.path("in")).unwrap();
    fixture.write("in/x", "TOP\n");
    link("in".as_ref(), "inlink");

    let found = Searched::of(&mut fixture, "grep", json!({"pattern": "TOP"})).await;
    assert_eq!(found.paths("matches"), ["in/x"]);
    assert_eq!(grep(&mut fixture, json!({"pattern": "TOP", "path": "inlink"})).await, ["inlink/x"]);
    for path in ["dlink", "flink", "../outside", "dlink/secret"] {
        for (tool, arguments) in [
            ("grep", json!({"pattern": "TOP", "path": path})),
            ("glob", json!({"pattern": "*", "path": path})),
        ] {
            let failure = fixture.failure(tool, arguments).await;
            assert_eq!(failure.category, "permission_denied", "{tool} {path}: {}", failure.message);
        }
    }
    for pattern in ["../*", "/etc/host*", "../outside/*", "/*"] {
        let failure = fixture.failure("glob", json!({ "pattern": pattern })).await;
        assert_eq!(failure.category, "permission_denied", "{pattern}: {}", failure.message);
    }
    // Like what is not there.
    let said = |found: Searched, directory: &str| {
        json!(found.result).to_string().replace(directory, "none")
    };
    let nothing = Searched::of(&mut fixture, "glob", json!({"pattern": "none/**"})).await;
    let nothing = said(nothing, "none");
    for pattern in ["dlink/**", "dlink/sec*/**", "dangling/**", "flink/**"] {
        let found = Searched::of(&mut fixture, "glob", json!({ "pattern": pattern })).await;
        assert_eq!(said(found, pattern.split('/').next().unwrap()), nothing, "{pattern}");
    }
    assert_eq!(glob(&mut fixture, json!({"pattern": "inlink/*"})).await, ["inlink/x"]);
    let all = Searched::of(&mut fixture, "glob", json!({"pattern": "**"})).await;
    assert_eq!(
        all.paths("paths"),
        ["dangling", "dlink", "flink", "in", "in/x", "inlink", "p", "self"],
        "links are listed and not followed"
    );
    let kinds: Vec<&Value> =
        all.result["paths"].as_array().unwrap().iter().map(|item| &item["kind"]).collect();
    assert_eq!(kinds, ["link", "link", "link", "folder", "file", "link", "other", "link"]);
    fixture.end().await;
}

/// What cannot be read is counted and named, and costs nothing else.
async fn unreadable_files_and_directories_are_named() {
    let mut fixture = unprivileged().await;
    std::fs::create_dir(fixture.path("closed")).unwrap();
    fixture.write("closed/x", "hit\n");
    fixture.write("secret", "hit\n");
    fixture.write("open", "hit\n");
    hand_over(&fixture, &["closed", "closed/x", "secret", "open"]);
    let (closed, secret) = (fixture.path("closed"), fixture.path("secret"));
    let allow = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    allow(&closed, 0);
    allow(&secret, 0);
    fixture.configure(json!({})).await.unwrap();
    let found = Searched::of(&mut fixture, "grep", json!({"pattern": "hit"})).await;
    assert_eq!(found.paths("matches"), ["open"]);
    assert_eq!(found.result["skipped"]["unreadable"], 2);
    let listed = Searched::of(&mut fixture, "glob", json!({"pattern": "**"})).await;
    assert_eq!(listed.paths("paths"), ["closed", "open", "secret"]);
    for (notice, names) in
        [(found.notice(), &["closed", "secret"][..]), (listed.notice(), &["closed"])]
    {
        assert!(names.iter().all(|name| notice.contains(name)), "{notice}");
    }
    let failure = fixture.failure("glob", json!({"pattern": "*", "path": "closed"})).await;
    assert_eq!(failure.category, "permission_denied", "{}", failure.message);
    allow(&closed, 0o755);
    assert_eq!(grep(&mut fixture, json!({"pattern": "hit"})).await, ["closed/x", "open"]);
    fixture.end().await;
}

/// A root with nothing in it is searched like any other.
async fn an_empty_root_has_nothing_and_says_so() {
    let mut fixture = Fixture::configured().await;
    for (tool, list) in [("grep", "matches"), ("glob", "paths")] {
        let nothing = Searched::of(&mut fixture, tool, json!({"pattern": "x"})).await;
        assert_eq!((&nothing.result[list], nothing.result.get("next_offset")), (&json!([]), None));
        assert!(!nothing.notice().is_empty(), "{tool}");
        assert!(!nothing.notice().contains("gnore"), "nothing was ignored: {}", nothing.notice());
    }
    fixture.end().await;
}
