//! Calls as an unfriendly model, or a host in a hurry, makes them.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::json;
use tool_provider::Call;
use tool_provider::grpc::persisted_call;

use crate::harness::{Fixture, TEST_TIMEOUT, call, object, refusal};
use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        hundreds_of_calls_cancelled_as_they_are_sent_end_no_other,
        edits_that_would_take_for_ever_end_in_time,
        a_long_string_that_stands_everywhere_is_reported_at_once,
        a_path_of_megabytes_is_not_repeated,
        arguments_of_a_thousand_levels_are_refused_by_name,
        a_secret_is_masked_also_where_it_is_spelt_out,
        a_secret_comes_back_by_no_way_round,
        no_cut_leaves_a_part_of_a_secret,
    ]
}

/// A turn that is given up cancels all of its calls at once, some of them before they were looked
/// at. The others on the connection go on.
async fn hundreds_of_calls_cancelled_as_they_are_sent_end_no_other() {
    let mut fixture = Fixture::launched().await;
    fixture.configure(json!({"max_concurrent_calls": 1024})).await.unwrap();
    fixture.write("a.txt", "still here\n");
    let read = || call("read_file", json!({"path": "a.txt"}));
    let stays = json!({"command": "read line; echo $line", "stdin": "through\n"});
    for _ in 0..3 {
        let storm = (0..500_u64).map(|number| {
            let mut client = fixture.client.clone();
            async move {
                let sent = Duration::from_micros(number % 50 * 20);
                let _ = tokio::time::timeout(sent, client.invoke(read())).await;
            }
        });
        let mut client = fixture.client.clone();
        let beside = client.invoke_to_end(call("bash", stays.clone()));
        let (_, beside) = tokio::join!(join_all(storm), beside);
        let (_, outcome) = beside.expect("the connection ended");
        assert!(outcome.is_ok_and(|result| result["output"] == "through\n"));
    }
    let (_, outcome) = tokio::time::timeout(TEST_TIMEOUT, fixture.client.invoke_to_end(read()))
        .await
        .expect("it must not hang")
        .unwrap();
    outcome.unwrap();
    fixture.end().await;
}

/// Small arguments that ask for a lot of work: the deadline holds all the same, and the file stays.
async fn edits_that_would_take_for_ever_end_in_time() {
    const LIMIT: Duration = Duration::from_millis(1500);
    let mut fixture = Fixture::configured().await;
    let doubled = vec![json!({"old_string": "a", "new_string": "aa", "replace_all": true}); 40];
    fixture.write("grows", "a\n");
    let call = call("edit_file", json!({"path": "grows", "edits": doubled}));
    let call = Call { deadline: Some(Instant::now() + LIMIT), ..call };
    let (_, outcome) = fixture.client.invoke_to_end(call).await.unwrap();
    let failure = outcome.expect_err("no file may grow so large");
    assert!(
        ["timeout", "invalid_arguments"].contains(&&*failure.category),
        "{}: {}",
        failure.category,
        failure.message
    );
    // The tool gave up by itself: the file's lock is free again.
    assert_eq!(std::fs::read(fixture.path("grows")).unwrap(), b"a\n");
    let edit = json!({"path": "grows", "old_string": "a", "new_string": "b"});
    fixture.result("edit_file", edit).await;
    fixture.end().await;
}

/// A needle of a megabyte that stands at every byte of a file is not compared ten thousand times.
async fn a_long_string_that_stands_everywhere_is_reported_at_once() {
    let mut fixture = Fixture::configured().await;
    fixture.write("one-letter", "a".repeat(8 << 20));
    let edit = json!({"path": "one-letter", "old_string": "a".repeat(1 << 20), "new_string": "b"});
    let failure =
        tokio::time::timeout(TEST_TIMEOUT, fixture.failure("edit_file", edit)).await.unwrap();
    assert_eq!(failure.category, "invalid_arguments");
    assert!(failure.message.contains("stands at least"), "{}", failure.message);
    fixture.end().await;
}

/// What is not a path comes back short, with the reason.
async fn a_path_of_megabytes_is_not_repeated() {
    let mut fixture = Fixture::configured().await;
    let path = "x/".repeat(5 << 20);
    for (tool, mut arguments) in [
        ("read_file", json!({})),
        ("write_file", json!({"content": ""})),
        ("edit_file", json!({"old_string": "a", "new_string": "b"})),
    ] {
        arguments["path"] = json!(path);
        let failure = fixture.failure(tool, arguments).await;
        let details = serde_json::to_string(&failure.details).unwrap();
        assert!(failure.message.len() + details.len() < 20_000, "{tool}");
        assert!(failure.message.ends_with("file name too long"), "{tool}: {}", failure.message);
    }
    fixture.end().await;
}

/// What is nested too deeply to be read is the caller's fault, and said in a few words.
async fn arguments_of_a_thousand_levels_are_refused_by_name() {
    let mut fixture = Fixture::configured().await;
    let deep = (0..1000).fold(json!(1), |inner, _| json!([inner]));
    let arguments = json!({"path": deep});
    let refused = [
        fixture.client.invoke_to_end(call("read_file", arguments.clone())).await.unwrap_err(),
        fixture.client.preview(call("read_file", arguments.clone())).await.unwrap_err(),
        fixture.client.configure(object(arguments)).await.unwrap_err(),
    ];
    for error in refused {
        let (code, failure) = refusal(error);
        assert_eq!(code, tonic::Code::InvalidArgument);
        assert_eq!((failure.category.as_str(), failure.retryable), ("invalid_arguments", false));
        assert!(failure.message.len() < 200, "{}", failure.message);
        assert!(failure.message.contains("recursion limit"), "{}", failure.message);
    }
    let levels = (0..20).fold(json!(1), |inner, _| json!([inner]));
    let failure = fixture.failure("read_file", json!({"path": levels})).await;
    assert!(failure.message.contains("path must be a string"), "{}", failure.message);
    fixture.end().await;
}

/// A secret with characters that are not shown as they are stays one wherever they are spelt out, and
/// what is no secret is spelt out.
async fn a_secret_is_masked_also_where_it_is_spelt_out() {
    const SECRET: &str = "pa\u{202e}55word \u{1b}x\"y\\z";
    /// What of it stays as it is in every spelling.
    const PIECE: &str = "55word";
    const OTHER: &str = "pu\u{202e}blic \u{1b}x\"y\\z";
    let mut fixture = Fixture::launched_with(|launch| launch.env("TOKEN", SECRET)).await;
    fixture.configure(json!({"secret_env": ["TOKEN"]})).await.unwrap();
    // Near enough to the secret that a failed edit shows both.
    fixture.write("a.txt", "pa\u{202e}55wxrd \u{1b}x\"y\\z\n");
    for (text, is_secret) in [(SECRET, true), (OTHER, false)] {
        let wrongs = [
            ("read_file", json!({"path": text})),
            ("read_file", json!({"path": format!("dir/{text}.txt\n")})),
            ("read_file", json!({"path": "a.txt", "limit": text})),
            ("read_file", json!({"path": "a.txt", text: 1})),
            ("grep", json!({"pattern": format!("({text}")})),
            ("grep", json!({"pattern": "x", "glob": format!("{{{text}")})),
            ("glob", json!({"pattern": format!("{{{text}")})),
            ("edit_file", json!({"path": "a.txt", "old_string": text, "new_string": ""})),
            ("write_file", json!({"path": format!("{text}/../../b"), "content": ""})),
            ("bash", json!({"command": "true", "cwd": text})),
        ];
        for (tool, arguments) in wrongs {
            let failure = fixture.failure(tool, arguments.clone()).await;
            let dump = format!("{} {:?}", failure.message, failure.details);
            assert_eq!(dump.contains("[TOKEN]"), is_secret, "{tool} {arguments}: {dump}");
            assert!(!dump.contains(PIECE), "{tool} {arguments}: {dump}");
        }
        let shown = [
            (
                "bash",
                json!({"command": format!("echo {text}"), "description": text, "stdin": text}),
            ),
            ("write_file", json!({"path": format!("{text}.txt"), "content": text})),
            ("edit_file", json!({"path": text, "old_string": "a", "new_string": "b"})),
            ("grep", json!({"pattern": "x", "path": "a.txt", "glob": text})),
        ];
        for (tool, arguments) in shown {
            let preview = fixture.client.preview(call(tool, arguments.clone())).await.unwrap();
            let named = call(tool, arguments.clone());
            let stored = fixture.client.render("1", persisted_call(&named)).await.unwrap();
            for view in [preview, stored] {
                let dump = format!("{view:?}");
                assert_eq!(dump.contains("[TOKEN]"), is_secret, "{tool} {arguments}: {dump}");
                assert!(!dump.contains(PIECE), "{tool} {arguments}: {dump}");
            }
        }
    }
    fixture.end().await;
}

/// A command may write a secret into a file, and a caller may name one: it is shown by no tool.
async fn a_secret_comes_back_by_no_way_round() {
    const VALUE: &str = "fake-value-123";
    let mut fixture = Fixture::launched_with(|launch| launch.env("TOKEN", VALUE)).await;
    fixture.configure(json!({"secret_env": ["TOKEN"]})).await.unwrap();
    let write = json!({"command": "echo key=$TOKEN > kept; cat kept"});
    let (_, outcome) = fixture.call("bash", write).await;
    assert_eq!(outcome.unwrap()["output"], "key=[TOKEN]\n");

    let read = fixture.result("read_file", json!({"path": "kept"})).await;
    assert!(read["text"].as_str().unwrap().contains("key=[TOKEN]"), "{read:?}");
    let edit = json!({"path": "kept", "old_string": "key", "new_string": "name"});
    let shown = fixture.client.preview(call("edit_file", edit.clone())).await.unwrap();
    let edited = fixture.result("edit_file", edit).await;
    let named = call("read_file", json!({"path": VALUE}));
    let failure = fixture.failure("read_file", json!({"path": VALUE})).await;
    let stored = fixture.client.render("1", persisted_call(&named)).await.unwrap();
    let wrong = json!({"path": "kept", "limit": VALUE});
    let slip = fixture.failure("read_file", wrong.clone()).await;
    let slip_shown = fixture.client.preview(call("read_file", wrong)).await.unwrap_err();
    let dump = format!("{shown:?} {edited:?} {failure:?} {stored:?} {slip:?} {slip_shown:?}");
    assert!(dump.contains("[TOKEN]") && !dump.contains(VALUE), "{dump}");
    // The file itself holds what it held.
    assert_eq!(std::fs::read_to_string(fixture.path("kept")).unwrap(), format!("name={VALUE}\n"));
    fixture.end().await;
}

/// Whatever shortens a text may cut a secret in two, and no half is recognised as one.
async fn no_cut_leaves_a_part_of_a_secret() {
    const VALUE: &str = "Zq7Wk9Xv3Jm5Rt8Yp2";
    const ORDINARY: &str = "ordinary-text-here";
    let mut fixture = Fixture::launched_with(|launch| launch.env("TOKEN", VALUE)).await;
    fixture.configure(json!({"secret_env": ["TOKEN"]})).await.unwrap();
    let pieces = |value: &'static str| (0..value.len() - 2).map(move |at| &value[at..at + 3]);
    for gap in [1984, 1999, 2000] {
        let line = |value: &str| format!("{}{value}{}\n", "-".repeat(gap), "+".repeat(gap));
        fixture.write("long", &(line(VALUE) + &line(ORDINARY)));
        let read = fixture.result("read_file", json!({"path": "long"})).await;
        let content = read["text"].as_str().unwrap();
        assert!(pieces(VALUE).all(|piece| !content.contains(piece)), "{gap}: {content}");
        assert_eq!(content.contains("ord"), gap < 1998, "{gap}: {content}");
        assert_eq!(content.matches("… [cut: ").count(), 2, "{gap}: {content}");
    }
    for gap in 20..60 {
        let pad = "-".repeat(gap);
        let long = "-".repeat(gap + 150);
        let line = format!("{pad}{VALUE}{pad}x{VALUE}{pad}{pad}{VALUE}{}", "-".repeat(gap));
        fixture.write("a.txt", &(line.clone() + "\n"));
        let near = line.replace('x', "y");
        let wrongs = [
            ("read_file", json!({"path": "a.txt", "limit": format!("{pad}{VALUE}")})),
            ("read_file", json!({"path": "a.txt", format!("{pad}{VALUE}"): 1})),
            ("grep", json!({"pattern": format!("({long}{VALUE}")})),
            ("grep", json!({"pattern": "x", "glob": format!("{{{long}{VALUE}")})),
            ("edit_file", json!({"path": "a.txt", "old_string": near, "new_string": ""})),
        ];
        for (tool, arguments) in wrongs {
            let failure = fixture.failure(tool, arguments.clone()).await;
            let dump = format!("{} {:?}", failure.message, failure.details);
            let shown = pieces(VALUE).find(|piece| dump.contains(piece));
            assert_eq!(shown, None, "{gap}: {tool} {arguments}: {dump}");
        }
        let search = call("grep", json!({"pattern": format!("{long}{VALUE}")}));
        let preview = format!("{:?}", fixture.client.preview(search).await.unwrap());
        assert!(pieces(VALUE).all(|piece| !preview.contains(piece)), "{gap}: {preview}");
    }
    // A diff that is too long shows the beginnings of its lines.
    let much = format!("{}{VALUE}{}\n", "-".repeat(390), "-".repeat(9_000)).repeat(40);
    fixture.write("much", "little\n");
    let written = fixture.result("write_file", json!({"path": "much", "content": much})).await;
    let diff = written["diff"].as_str().unwrap();
    assert!(diff.contains("more characters]"), "{diff}");
    assert!(pieces(VALUE).all(|piece| !diff.contains(piece)), "{diff}");
    fixture.end().await;
}
