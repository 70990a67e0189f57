//! Small mistakes in the arguments that a model gives: what can only mean one thing is taken for it, in
//! a call and its preview alike; what leaves a doubt is refused with what to give instead.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::harness::{Fixture, call};
use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_flag_that_asks_for_what_is_given_is_dropped_and_its_opposite_refused,
        a_flag_of_grep_means_the_mode_unless_another_is_given,
        a_languages_everyday_name_is_a_type_and_several_are_several,
        a_list_of_globs_is_several,
        an_argument_that_is_required_is_missing_where_it_is_null,
        a_write_through_a_link_to_nothing_says_where_the_file_is,
        a_path_in_backticks_is_offered_without_them,
    ]
}

async fn done(fixture: &mut Fixture, tool: &str, arguments: Value) -> Value {
    fixture.client.preview(call(tool, arguments.clone())).await.unwrap();
    let (_, ended) = fixture.call(tool, arguments.clone()).await;
    Value::Object(ended.unwrap_or_else(|failure| panic!("{arguments}: {failure:?}")))
}

/// The message of a call that fails, and what to do about it.
async fn refused(fixture: &mut Fixture, tool: &str, arguments: Value) -> String {
    let failure = fixture.failure(tool, arguments).await;
    format!("{} {:?}", failure.message, failure.details)
}

async fn a_flag_that_asks_for_what_is_given_is_dropped_and_its_opposite_refused() {
    let mut fixture = Fixture::configured().await;
    fixture.write("a.txt", "one\n");
    for flag in ["run_in_background", "background", "is_background"] {
        let plain = done(&mut fixture, "bash", json!({"command": "echo x", flag: false})).await;
        assert_eq!(plain["output"], "x\n");
        let said = refused(&mut fixture, "bash", json!({"command": "echo x", flag: true})).await;
        assert!(said.contains("session_start, where you have it"), "{said}");
    }
    let plain = done(&mut fixture, "grep", json!({"pattern": "one"})).await;
    for flag in ["-n", "line_numbers", "recursive", "is_regex", "case_sensitive"] {
        let with = done(&mut fixture, "grep", json!({"pattern": "one", flag: true})).await;
        assert_eq!(with, plain, "{flag}");
    }
    let said = refused(&mut fixture, "grep", json!({"pattern": "one", "-n": false})).await;
    assert!(said.contains("unknown argument -n; each line has its number"), "{said}");
    fixture.end().await;
}

async fn a_flag_of_grep_means_the_mode_unless_another_is_given() {
    let mut fixture = Fixture::configured().await;
    fixture.write("a.txt", "one\ntwo\none\n");
    let files = done(&mut fixture, "grep", json!({"pattern": "one", "-l": true})).await;
    assert_eq!(files["files"], json!(["a.txt"]));
    for flag in ["-c", "count"] {
        let counts = done(&mut fixture, "grep", json!({"pattern": "one", flag: true})).await;
        assert_eq!(counts["file_counts"], "a.txt:2");
    }
    let context = done(&mut fixture, "grep", json!({"pattern": "two", "-C": 1})).await;
    assert_eq!(context["hits"], "a.txt\n1-one\n2:two\n3-one");
    let exact = done(&mut fixture, "grep", json!({"pattern": "two", "context": 1.0})).await;
    assert_eq!(exact, context);
    let both = json!({"pattern": "one", "-c": true, "output_mode": "content"});
    let said = refused(&mut fixture, "grep", both).await;
    assert!(said.contains("unknown argument -c; it contradicts mode"), "{said}");
    // To grep it lists the files without a match.
    let said = refused(&mut fixture, "grep", json!({"pattern": "one", "-L": true})).await;
    assert!(said.contains("unknown argument -L"), "{said}");
    fixture.end().await;
}

async fn a_languages_everyday_name_is_a_type_and_several_are_several() {
    let mut fixture = Fixture::configured().await;
    for name in ["a.go", "b.cpp", "c.js", "d.py", "e.ts", "f.rs"] {
        fixture.write(name, "x\n");
    }
    for (kind, found) in [
        (json!("golang"), json!(["a.go"])),
        (json!("c++"), json!(["b.cpp"])),
        (json!("JavaScript"), json!(["c.js"])),
        (json!("python,ts"), json!(["d.py", "e.ts"])),
        (json!(["golang", "rust"]), json!(["a.go", "f.rs"])),
        (json!(r#"["py"]"#), json!(["d.py"])),
    ] {
        let asked = json!({"pattern": "x", "mode": "files", "type": kind});
        assert_eq!(done(&mut fixture, "grep", asked).await["files"], found, "{kind}");
    }
    let wrong = json!({"pattern": "x", "type": "python,pyhton"});
    let said = refused(&mut fixture, "grep", wrong).await;
    assert!(said.contains("type \"pyhton\" is no file type of ripgrep's"), "{said}");
    fixture.end().await;
}

async fn a_list_of_globs_is_several() {
    let mut fixture = Fixture::configured().await;
    for name in ["a.md", "b.py", "c.rs"] {
        fixture.write(name, "x\n");
    }
    for list in [json!(["*.md", "*.py"]), json!(r#"["*.md","*.py"]"#), json!("*.md,*.py")] {
        let asked = json!({"pattern": "x", "mode": "files", "glob": list});
        assert_eq!(done(&mut fixture, "grep", asked).await["files"], json!(["a.md", "b.py"]));
        let found = done(&mut fixture, "glob", json!({"pattern": list})).await;
        assert_eq!(found["found"], json!(["a.md", "b.py"]), "{list}");
    }
    let others = json!({"pattern": "x", "mode": "files", "glob": ["!*.md", "!*.py"]});
    assert_eq!(done(&mut fixture, "grep", others).await["files"], json!(["c.rs"]));
    let said = refused(&mut fixture, "grep", json!({"pattern": "x", "glob": ["*.md", 1]})).await;
    assert!(said.contains("glob must be a string, not a list of 2"), "{said}");
    fixture.end().await;
}

async fn an_argument_that_is_required_is_missing_where_it_is_null() {
    let mut fixture = Fixture::configured().await;
    for (tool, arguments, name) in [
        ("write_file", json!({"path": "a", "content": null}), "content"),
        ("read_file", json!({"path": null}), "path"),
        ("grep", json!({"pattern": null}), "pattern"),
        ("bash", json!({"command": null}), "command"),
    ] {
        let said = refused(&mut fixture, tool, arguments).await;
        assert!(said.contains(&format!("{name} is missing: a string is required")), "{said}");
    }
    // What is not required may be null.
    let plain = json!({"command": "echo x", "cwd": null, "stdin": null});
    assert_eq!(done(&mut fixture, "bash", plain).await["output"], "x\n");
    fixture.end().await;
}

async fn a_write_through_a_link_to_nothing_says_where_the_file_is() {
    let mut fixture = Fixture::configured().await;
    symlink("nowhere", fixture.path("broken")).unwrap();
    let said = refused(&mut fixture, "read_file", json!({"path": "broken"})).await;
    assert!(said.contains("leads to nowhere") && said.contains("as pattern nowhere"), "{said}");
    let write = json!({"path": "broken", "content": "x\n"});
    let preview = fixture.client.preview(call("write_file", write.clone())).await.unwrap();
    let written = Value::Object(fixture.result("write_file", write.clone()).await);
    let notice = written["notice"].as_str().unwrap().to_owned();
    assert!(notice.contains("is a link; the new file is "), "{notice}");
    assert!(notice.ends_with("/nowhere."), "{notice}");
    assert!(format!("{preview:?}").contains(&notice), "{preview:?}");
    assert_eq!(std::fs::read_to_string(fixture.path("nowhere")).unwrap(), "x\n");
    // Now it is a link like any other.
    let again = json!({"path": "broken", "content": "y\n"});
    assert_eq!(fixture.result("write_file", again).await.get("notice"), None);
    fixture.end().await;
}

async fn a_path_in_backticks_is_offered_without_them() {
    let mut fixture = Fixture::configured().await;
    std::fs::create_dir(fixture.path("odd")).unwrap();
    fixture.write("odd/-dash.txt", "x\n");
    let said = refused(&mut fixture, "read_file", json!({"path": "`odd/-dash.txt`"})).await;
    assert!(said.contains("did you mean odd/-dash.txt?"), "{said}");
    // Where a name has them it is that file.
    fixture.write("`quoted`", "y\n");
    let read = fixture.result("read_file", json!({"path": "`quoted`"})).await;
    assert!(read["text"].as_str().unwrap().contains('y'), "{read:?}");
    fixture.end().await;
}
