//! One order, cut into pages; what is streamed; counts.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Searched, read, tree};
use crate::harness::Fixture;
use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        pages_make_the_whole,
        totals_are_exact_or_absent,
        lines_around_a_hit_and_long_lines,
        a_model_reads_text_and_a_host_shows_objects,
        results_are_shown_to_people,
    ]
}

/// Pages of any size make the whole list, which is the same every time.
async fn pages_make_the_whole() {
    let mut fixture = Fixture::launched().await;
    tree::grow(&fixture.path(""));
    fixture.configure(json!({})).await.unwrap();
    for (tool, arguments, list) in [
        ("grep", json!({"pattern": "needle"}), "matches"),
        ("grep", json!({"pattern": "let", "context": 1}), "matches"),
        ("grep", json!({"pattern": "foo", "mode": "files"}), "files"),
        ("grep", json!({"pattern": "foo", "mode": "count"}), "counts"),
        ("glob", json!({"pattern": "**"}), "paths"),
        ("glob", json!({"pattern": "*.rs", "sort": "modified"}), "paths"),
    ] {
        let with = |limit: usize, offset: usize| {
            let mut arguments = arguments.clone();
            arguments["limit"] = limit.into();
            arguments["offset"] = offset.into();
            arguments
        };
        let mut whole = Vec::new();
        for limit in [5000, 97, 31] {
            let mut all: Vec<Value> = Vec::new();
            loop {
                let page = Searched::of(&mut fixture, tool, with(limit, all.len())).await;
                assert_eq!(page.streamed(list), page.result[list], "{tool} {arguments}");
                let items = page.result[list].as_array().unwrap();
                assert!(items.len() <= limit);
                all.extend(items.iter().cloned());
                let next = page.result.get("next_offset");
                match next {
                    Some(next) => assert_eq!(*next, json!(all.len()), "{tool} {arguments}"),
                    None => break,
                }
            }
            if whole.is_empty() {
                whole = all;
                assert!(whole.len() > 10, "{tool} {arguments}: {}", whole.len());
            } else {
                // A line between two hits is shown with one of them only, whichever page that is.
                let bare = |items: &[Value]| -> Vec<Value> {
                    let mut items = items.to_vec();
                    for item in items.iter_mut().filter_map(Value::as_object_mut) {
                        item.retain(|name, _| !matches!(&**name, "before" | "after"));
                    }
                    items
                };
                assert_eq!(bare(&all), bare(&whole), "{tool} {arguments} by {limit}");
            }
        }
    }
    fixture.end().await;
}

/// Totals are exact when they are given, and a page that is full gives none.
async fn totals_are_exact_or_absent() {
    let mut fixture = Fixture::configured().await;
    for name in ["a", "b", "c"] {
        fixture.write(name, "hit\nhit\nmiss\n");
    }
    fixture.write("d", "miss\n");
    let all = Searched::of(&mut fixture, "grep", json!({"pattern": "hit"})).await;
    assert_eq!(all.result["total_matches"], 6);
    assert_eq!(all.result["files_searched"], 4);
    assert_eq!(all.result["skipped"], json!({"binary": 0, "too_large": 0, "unreadable": 0}));
    let rest = Searched::of(&mut fixture, "grep", json!({"pattern": "hit", "offset": 4})).await;
    assert_eq!((rest.paths("matches").len(), &rest.result["total_matches"]), (2, &json!(6)));
    let part = Searched::of(&mut fixture, "grep", json!({"pattern": "hit", "limit": 3})).await;
    assert_eq!(part.result.get("total_matches"), None);
    assert_eq!(part.result["next_offset"], 3);
    let counts =
        Searched::of(&mut fixture, "grep", json!({"pattern": "hit", "mode": "count"})).await;
    assert_eq!(
        counts.result["counts"],
        json!([{"path": "a", "count": 2}, {"path": "b", "count": 2}, {"path": "c", "count": 2}])
    );
    fixture.end().await;
}

/// Lines around a hit are shown once, and long lines around their match.
async fn lines_around_a_hit_and_long_lines() {
    let mut fixture = Fixture::configured().await;
    fixture.write("f", "1\n2\nhit 3\n4\nhit 5\n6\n7\n");
    let long = format!("{} hit {}\n", "é".repeat(3000), "漢".repeat(3000));
    fixture.write("long", &long);
    let found = Searched::of(&mut fixture, "grep", json!({"pattern": "hit", "context": 1})).await;
    let hits = found.result["matches"].as_array().unwrap();
    let mut lines = BTreeSet::new();
    for hit in hits.iter().filter(|hit| hit["path"] == "f") {
        for name in ["before", "after"] {
            for line in hit.get(name).and_then(Value::as_array).into_iter().flatten() {
                assert!(lines.insert(line.to_string()), "{line} is shown twice");
            }
        }
        assert!(lines.insert(hit["text"].to_string()));
    }
    assert_eq!(
        lines,
        BTreeSet::from(["2", "hit 3", "4", "hit 5", "6"].map(|line| json!(line).to_string()))
    );
    let hit = &hits[2];
    let text = hit["text"].as_str().unwrap();
    assert!(text.chars().count() <= 502 && text.contains(" hit "), "{text}");
    assert_eq!((&hit["line"], &hit["column"]), (&json!(1), &json!(6002)));
    let [start, end] =
        [0, 1].map(|at| usize::try_from(hit["highlight"][at].as_u64().unwrap()).unwrap());
    let marked: String = text.chars().skip(start).take(end - start).collect();
    assert_eq!(marked, "hit");
    fixture.end().await;
}

/// A result is the text that a model reads, the partial results before it the objects that a host shows,
/// and both hold the same.
async fn a_model_reads_text_and_a_host_shows_objects() {
    let mut fixture = Fixture::configured().await;
    std::fs::create_dir(fixture.path("src")).unwrap();
    fixture.write("src/a.rs", "one\nlet x = 1;\nthree\n".repeat(30));
    fixture.write("b", "let");
    let with_more = format!(
        "b\n1:let\n\nsrc/a.rs\n{}… 10 more in this file",
        (0..20).map(|n| format!("{}:let x = 1;\n", 2 + 3 * n)).collect::<String>()
    );
    for (tool, arguments, expected, shown) in [
        (
            "grep",
            json!({"pattern": "let"}),
            json!({"tool": "grep", "hits": with_more}),
            &["src/a.rs", "let x = 1;", "59", "10 more in this file"][..],
        ),
        (
            "grep",
            json!({"pattern": "let", "context": 1, "limit": 2}),
            json!({"tool": "grep", "hits": "b\n1:let\n\nsrc/a.rs\n1-one\n2:let x = 1;\n3-three", "next_offset": 2}),
            &["src/a.rs", "three", "2 matches in 2 files and more"],
        ),
        (
            "grep",
            json!({"pattern": "let", "mode": "count"}),
            json!({"tool": "grep", "file_counts": "b:1\nsrc/a.rs:30"}),
            &["src/a.rs: 30"],
        ),
        (
            "glob",
            json!({"pattern": "*", "kind": "directory"}),
            json!({"tool": "glob", "found": ["src/"]}),
            &["src/"],
        ),
    ] {
        let result = read(&mut fixture, tool, arguments.clone()).await;
        assert_eq!(json!(result), expected, "{tool} {arguments}");
        let stored = serde_json::to_vec(&result).unwrap();
        let view = format!("{:?}", fixture.client.render("json", stored).await.unwrap());
        assert!(shown.iter().all(|part| view.contains(part)), "{view}");
    }
    fixture.end().await;
}

/// What was found is shown by file with the match marked, from the stored result alone.
async fn results_are_shown_to_people() {
    let mut fixture = Fixture::configured().await;
    std::fs::create_dir(fixture.path("src")).unwrap();
    fixture.write("src/a.rs", "one\nlet needle = 1;\n");
    for (tool, arguments, parts) in [
        (
            "grep",
            json!({"pattern": "needle", "before": 1}),
            &["src/a.rs", "»needle«", "one", "2"][..],
        ),
        ("grep", json!({"pattern": "needle", "mode": "files"}), &["src/a.rs"]),
        ("grep", json!({"pattern": "needle", "mode": "count"}), &["src/a.rs: 1"]),
        ("glob", json!({"pattern": "**"}), &["src/\"", "src/a.rs"]),
    ] {
        let found = Searched::of(&mut fixture, tool, arguments.clone()).await;
        let stored = serde_json::to_vec(&found.result).unwrap();
        let shown = format!("{:?}", fixture.client.render("json", stored).await.unwrap());
        for part in parts {
            assert!(shown.contains(part), "{part} is missing: {shown}");
        }
        let call = crate::harness::call(tool, arguments);
        let preview = fixture.client.preview(call).await.unwrap();
        let tool_provider::view::View::Text { content, .. } = preview else {
            panic!("one line is shown: {preview:?}")
        };
        assert!(!content.contains('\n'), "{content}");
    }
    fixture.end().await;
}
