//! Where commands run.

use serde_json::json;
use tool_provider::Category;

use super::fixture::Fixture;
use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    trials![a_command_runs_where_it_is_asked_to_and_only_inside_the_roots,]
}

fn a_command_runs_where_it_is_asked_to_and_only_inside_the_roots() {
    let fixture = Fixture::new();
    std::fs::create_dir_all(fixture.root.join("a/b")).unwrap();
    std::fs::write(fixture.root.join("file"), "").unwrap();
    std::os::unix::fs::symlink("a/b", fixture.root.join("inside")).unwrap();
    std::os::unix::fs::symlink(&fixture.outside, fixture.root.join("away")).unwrap();
    let root = fixture.root.to_str().unwrap().to_owned();
    for (cwd, expected) in [
        (".".to_owned(), root.clone()),
        ("a".to_owned(), format!("{root}/a")),
        (format!("{root}/a/../a/b"), format!("{root}/a/b")),
        ("inside".to_owned(), format!("{root}/a/b")),
    ] {
        let answer = fixture.run(json!({"command": "pwd", "cwd": cwd}));
        assert_eq!(answer.result()["output"], format!("{expected}\n"));
    }
    let outside = fixture.outside.to_str().unwrap();
    for (cwd, category) in [
        (outside, Category::PermissionDenied),
        ("/etc", Category::PermissionDenied),
        ("..", Category::PermissionDenied),
        ("away", Category::PermissionDenied),
        ("/nonexistent", Category::PermissionDenied),
        ("nonexistent", Category::NotFound),
        ("file", Category::ExecutionFailed),
    ] {
        let answer = fixture.run(json!({"command": "touch made", "cwd": cwd}));
        assert_eq!(answer.error().category(), category, "{cwd}: {}", answer.error());
        assert!(answer.error().message().contains(cwd), "{}", answer.error());
        assert!(answer.events.is_empty());
    }
}
