//! What a search does not look into, and how it says so.

use super::*;

#[test]
fn g03_what_was_left_out_is_reported_and_found_when_it_is_named() {
    let needle = b"NEEDLE\n".as_slice();
    let files = [
        (".github/w.yml", needle),
        ("dist/o.js", needle),
        ("src.js", needle),
        (".gitignore", b"dist/\n"),
    ];
    let fixture = Fixture::new(&files);
    for repository in [false, true] {
        if repository {
            fs::create_dir(fixture.root.join(".git")).unwrap();
            fs::write(fixture.root.join(".git/config"), "NEEDLE").unwrap();
        }
        let result = fixture.grep(json!({"pattern": "NEEDLE", "mode": "files"}));
        assert_eq!(result["files"], json!([".github/w.yml", "src.js"]));
        assert!(notice(&result).starts_with("Ignore rules left out 1 file or directory;"));
        for arguments in [json!({"path": "dist"}), json!({"glob": "dist/*.js"})] {
            let mut arguments = arguments;
            arguments["pattern"] = json!("NEEDLE");
            assert_eq!(fixture.hits(arguments), ["dist/o.js:1:1:NEEDLE"]);
        }
        let all =
            fixture.grep(json!({"pattern": "NEEDLE", "mode": "files", "include_ignored": true}));
        assert_eq!(all["files"], json!([".github/w.yml", "dist/o.js", "src.js"]));
        let none = fixture.grep(json!({"pattern": "NOTHING"}));
        assert!(
            notice(&none).starts_with("No match in 3 files. Ignore rules left out"),
            "{none:?}"
        );
    }
    let none = fixture.grep(json!({"pattern": "NEEDLE", "glob": "*.py"}));
    assert!(notice(&none).contains("no file was searched"), "{none:?}");
}

#[test]
fn g04_binary_files_are_searched_to_their_first_nul_and_named() {
    let mut log = b"NEEDLE1\n".to_vec();
    log.extend(b"pad\n".repeat(50_000));
    log.extend(b"\0\nNEEDLE2\n");
    let mut large = b"pad\n".repeat(200_000);
    large.extend(b"NEEDLE3\nNEEDLE4 \0 NEEDLE5\nNEEDLE6\n");
    let fixture = Fixture::new(&[
        ("large", &large),
        ("lib.o", b"NEEDLE\0\xff\xfe\n"),
        ("log", &log),
        ("ok", b"NEEDLE\n"),
        ("z.o", b"\0NEEDLE\n"),
    ]);
    let arguments = json!({"pattern": "NEEDLE"});
    let result = fixture.grep(arguments.clone());
    assert_eq!(
        fixture.hits(arguments),
        [
            "large:200001:1:NEEDLE3",
            "large:200002:1:NEEDLE4 ",
            "lib.o:1:1:NEEDLE",
            "log:1:1:NEEDLE1",
            "ok:1:1:NEEDLE",
        ]
    );
    assert_eq!(result["skipped"]["binary"], 4);
    assert_eq!(notice(&result), "", "of many hits none is missed");
    assert_eq!(
        notice(&fixture.grep(json!({"pattern": "NEEDLES"})))
            .trim_start_matches("No match in 5 files. "),
        "large, lib.o, log and z.o were searched up to the first NUL byte only (binary)."
    );
}

#[test]
fn g08_nothing_outside_is_read_and_no_pipe_is_opened() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "TOP").unwrap();
    let fixture = Fixture::new(&[("in/x", b"TOP")]);
    symlink(outside.path(), fixture.root.join("dlink")).unwrap();
    symlink(outside.path().join("secret"), fixture.root.join("flink")).unwrap();
    symlink(".", fixture.root.join("self")).unwrap();
    symlink("in", fixture.root.join("inlink")).unwrap();
    let pipe = fixture.root.join("p");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
    assert_eq!(fixture.hits(json!({"pattern": "TOP"})), ["in/x:1:1:TOP"]);
    assert_eq!(fixture.hits(json!({"pattern": "TOP", "path": "inlink"})), ["inlink/x:1:1:TOP"]);
    for (path, category) in [
        ("dlink", Category::PermissionDenied),
        ("flink", Category::PermissionDenied),
        ("dlink/secret", Category::PermissionDenied),
        ("..", Category::PermissionDenied),
        ("none", Category::NotFound),
        ("p", Category::ExecutionFailed),
    ] {
        let error = fixture.call(json!({"pattern": "TOP", "path": path})).expect_err(path);
        assert_eq!(error.category(), category, "{error}");
    }
}

#[test]
fn what_cannot_be_read_is_counted_and_named() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = Fixture::new(&[("a", b"x"), ("closed/b", b"x"), ("c", b"x")]);
    for name in ["a", "closed"] {
        fs::set_permissions(fixture.root.join(name), fs::Permissions::from_mode(0o0)).unwrap();
    }
    fs::set_permissions(&fixture.root, fs::Permissions::from_mode(0o755)).unwrap();
    let result = std::thread::scope(|scope| {
        let searched = scope.spawn(|| {
            as_nobody()?;
            Ok::<_, rustix::io::Errno>(fixture.grep(json!({"pattern": "x"})))
        });
        searched.join().unwrap()
    });
    fs::set_permissions(fixture.root.join("closed"), fs::Permissions::from_mode(0o700)).unwrap();
    let result = match result {
        Ok(result) => result,
        Err(error) if std::env::var_os("CI").is_none() => {
            #[expect(clippy::print_stderr, reason = "a skipped test says so")]
            {
                eprintln!("skipped: root cannot become nobody here: {error}");
            }
            return;
        }
        Err(error) => panic!("root cannot become nobody: {error}"),
    };
    assert_eq!(result["skipped"]["unreadable"], 2);
    assert_eq!(notice(&result), "a and closed were not searched because they cannot be read.");
}

#[test]
fn ignore_rules_that_are_too_many_are_reported() {
    let rules = (0..5000).map(|number| format!("name-{number}\n")).collect::<String>();
    let fixture = Fixture::new(&[("a/.gitignore", rules.as_bytes()), ("a/name-4999", b"needle\n")]);
    let arguments = json!({"pattern": "needle"});
    for path in [".", "a"] {
        let result = fixture.grep(json!({"pattern": "needle", "path": path}));
        assert_eq!(result["matches"].as_array().unwrap().len(), 1);
        assert!(
            notice(&result)
                .starts_with("Of 1 ignore file only the first rules count: at most 4096"),
            "{result:?}"
        );
    }
    fs::write(fixture.root.join("a/.gitignore"), rules.replace("name-0\n", "*9\n")).unwrap();
    let all = fixture.grep(json!({"pattern": "needle", "include_ignored": true}));
    assert_eq!(all.get("notice"), None);
    fs::write(fixture.root.join("a/.gitignore"), "name-4999\n").unwrap();
    let result = fixture.grep(arguments);
    assert!(notice(&result).contains("No match") && !notice(&result).contains("first rules"));
}

/// Makes this thread, and those that it starts, an ordinary user: nothing is closed to root.
fn as_nobody() -> rustix::io::Result<()> {
    let nobody = rustix::process::Uid::from_raw(65534);
    if rustix::process::geteuid().is_root() {
        rustix::thread::set_thread_res_uid(nobody, nobody, nobody)?;
    }
    Ok(())
}
