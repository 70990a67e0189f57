//! Where commands run.

use serde_json::json;
use tool_provider::Category;

use super::ground::Ground;
use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    trials![a_command_runs_where_it_is_told_to_and_only_inside_the_roots,]
}

fn a_command_runs_where_it_is_told_to_and_only_inside_the_roots() {
    let ground = Ground::new();
    std::fs::create_dir_all(ground.root.join("a/b")).unwrap();
    std::fs::write(ground.root.join("file"), "").unwrap();
    std::os::unix::fs::symlink("a/b", ground.root.join("inside")).unwrap();
    std::os::unix::fs::symlink(&ground.outside, ground.root.join("away")).unwrap();
    let root = ground.root.to_str().unwrap().to_owned();
    for (cwd, place) in [
        (".".to_owned(), root.clone()),
        ("a".to_owned(), format!("{root}/a")),
        (format!("{root}/a/../a/b"), format!("{root}/a/b")),
        ("inside".to_owned(), format!("{root}/a/b")),
    ] {
        let answer = ground.run(json!({"command": "pwd", "cwd": cwd}));
        assert_eq!(answer.result()["output"], format!("{place}\n"));
        assert_eq!(answer.result()["cwd"], place);
    }
    let outside = ground.outside.to_str().unwrap();
    for (cwd, category) in [
        (outside, Category::PermissionDenied),
        ("/etc", Category::PermissionDenied),
        ("..", Category::PermissionDenied),
        ("away", Category::PermissionDenied),
        ("/nonexistent", Category::PermissionDenied),
        ("nonexistent", Category::NotFound),
        ("file", Category::ExecutionFailed),
    ] {
        let answer = ground.run(json!({"command": "touch made", "cwd": cwd}));
        assert_eq!(answer.error().category(), category, "{cwd}: {}", answer.error());
        assert!(answer.error().message().contains(cwd), "{}", answer.error());
        assert!(answer.events.is_empty());
    }
}
