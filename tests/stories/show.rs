//! Preview and Render.

use serde_json::json;
use tonic::Code;
use tool_provider::Call;
use tool_provider::grpc::{persisted_call, persisted_result};
use tool_provider::view::View;

use crate::harness::{Fixture, call, refusal};
use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_probe_gets_a_clear_no_whenever_it_comes,
        a_preview_of_a_call_that_would_fail_shows_the_failure,
        what_a_host_stored_is_shown_again_also_without_a_configuration,
        a_preview_names_what_in_it_could_be_overlooked,
    ]
}

/// A host probes each tool with no arguments and no context, maybe before Configure.
async fn a_probe_gets_a_clear_no_whenever_it_comes() {
    let mut fixture = Fixture::launched().await;
    let tools = fixture.client.schema().await.unwrap().tools;
    let probe = Call { tool: "session_read".to_owned(), ..Call::default() };
    for _ in 0..2 {
        fixture.client.preview(probe.clone()).await.unwrap();
        // Without arguments that one lists sessions.
        for tool in tools.iter().filter(|tool| tool.name != "session_read") {
            let probe = Call { tool: tool.name.clone(), ..Call::default() };
            let (code, failure) = refusal(fixture.client.preview(probe).await.expect_err("no"));
            assert_eq!(
                (code, failure.category.as_str()),
                (Code::InvalidArgument, "invalid_arguments")
            );
        }
        let unknown = Call { tool: "no_such_tool".to_owned(), ..Call::default() };
        let (code, _) = refusal(fixture.client.preview(unknown).await.expect_err("no"));
        assert_eq!(code, Code::NotFound);
        fixture.configure(json!({})).await.unwrap();
    }
    fixture.end().await;
}

async fn a_preview_of_a_call_that_would_fail_shows_the_failure() {
    let mut fixture = Fixture::configured().await;
    fixture.write("a.txt", "a\n");
    fixture.client.preview(call("read_file", json!({"path": "a.txt"}))).await.unwrap();
    let outside = fixture.client.preview(call("read_file", json!({"path": "/etc/passwd"}))).await;
    let text = format!("{:?}", outside.unwrap());
    assert!(text.contains("Error") && text.contains("/etc/passwd"), "{text}");
    fixture.end().await;
}

/// Text that does something else than it seems to: whoever approves it has to be told.
async fn a_preview_names_what_in_it_could_be_overlooked() {
    let mut fixture = Fixture::configured().await;
    fixture.write("a.txt", "one\ntwo\n");
    let disguised = "if is_\u{430}dmin \u{202e}\n";
    for (tool, arguments) in [
        ("write_file", json!({"path": "b.txt", "content": disguised})),
        ("edit_file", json!({"path": "a.txt", "old_string": "one\n", "new_string": disguised})),
        ("bash", json!({"command": disguised})),
    ] {
        let preview = fixture.client.preview(call(tool, arguments)).await.unwrap();
        let text = format!("{preview:?}");
        assert!(text.contains("look like others: U+0430 (line 1)"), "{tool}: {text}");
        assert!(text.contains("cannot be seen"), "{tool}: {text}");
    }
    let plain = json!({"path": "b.txt", "content": "if is_admin grüße\n"});
    let preview = fixture.client.preview(call("write_file", plain)).await.unwrap();
    assert!(!format!("{preview:?}").contains("U+"), "{preview:?}");
    fixture.end().await;
}

async fn what_a_host_stored_is_shown_again_also_without_a_configuration() {
    let mut fixture = Fixture::configured().await;
    fixture.write("a.rs", "fn a() {}\n");
    let read = call("read_file", json!({"path": "a.rs"}));
    let (_, outcome) = fixture.client.invoke_to_end(read.clone()).await.unwrap();
    let failure = fixture.failure("read_file", json!({"path": "b.rs"})).await;
    let result = outcome.unwrap();
    let stored = [
        (persisted_call(&read), "a.rs"),
        (persisted_result("call-1", &Ok(result.clone())), "fn a() {}"),
        (persisted_result("call-1", &Err(failure)), "not_found"),
    ];
    fixture.end().await;

    let mut later = Fixture::launched().await;
    for (bytes, part) in stored {
        for version in ["1", "v1"] {
            let view = later.client.render(version, bytes.clone()).await.unwrap();
            assert!(format!("{view:?}").contains(part), "{part} is missing in {view:?}");
        }
    }
    let mut old = result;
    old.insert("from_the_future".to_owned(), json!([1, {"a": null}]));
    old.remove("version");
    for version in ["", "json"] {
        let bare = serde_json::to_vec(&old).unwrap();
        let view = later.client.render(version, bare).await.unwrap();
        assert!(format!("{view:?}").contains("fn a() {}"), "{view:?}");
    }
    let sparse = later.client.render("json", br#"{"tool": "read_file"}"#.to_vec()).await;
    assert!(!matches!(sparse.unwrap(), View::Table { .. }));
    let (code, failure) = refusal(later.client.render("2", Vec::new()).await.expect_err("unknown"));
    assert_eq!(code, Code::InvalidArgument);
    assert!(failure.message.contains("\"v1\"") && failure.message.contains("\"json\""));
    later.end().await;
}
