//! What a configuration may hold, and what a host hears when it is wrong.

use std::sync::{Arc, Mutex};

use goplugin::host::{Launch, LogLine};
use serde_json::json;
use tonic::Code;

use crate::harness::{Fixture, PROGRAM, call, refusal};
use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_host_learns_who_we_are_and_what_we_offer,
        everything_wrong_is_reported_in_one_message_also_on_disk,
        a_refused_configuration_does_not_show_a_secret,
        null_means_left_out_as_a_host_sends_it,
        a_second_configuration_replaces_the_first,
        a_read_only_root_alone_is_enough_to_read,
        what_is_advertised_holds_under_every_configuration,
        a_temporary_directory_that_is_not_there_is_a_warning,
        full_is_had_where_namespaces_are_and_refused_with_the_reason_elsewhere,
        roots_that_give_more_away_than_a_project_are_named_once,
    ]
}

async fn a_host_learns_who_we_are_and_what_we_offer() {
    let mut fixture = Fixture::launched().await;
    let producer = fixture.client.describe().await.unwrap();
    assert_eq!((producer.name.as_str(), producer.category), ("workspace", 2));
    assert_eq!(
        (producer.version.as_str(), producer.protocol_version),
        (env!("CARGO_PKG_VERSION"), 1)
    );
    // A lock file compares it letter by letter; this build names none, which fits every one.
    assert_eq!(producer.source, option_env!("PROVIDER_SOURCE").unwrap_or_default());
    let advertised = fixture.client.schema().await.unwrap();
    let read_file = advertised.tools.iter().find(|tool| tool.name == "read_file").unwrap();
    assert_eq!((read_file.kind.as_str(), read_file.risk.as_str()), ("data_source", "read_only"));
    assert!(read_file.safe && read_file.key_fields.is_empty() && !read_file.streaming);
    assert_eq!(read_file.default_timeout_ms, Some(30_000));
    for tool in &advertised.tools {
        assert!(!tool.description.is_empty(), "{} is described", tool.name);
        assert_eq!(tool.kind == "data_source", tool.risk == "read_only", "{}", tool.name);
    }
    fixture.end().await;
}

async fn everything_wrong_is_reported_in_one_message_also_on_disk() {
    let mut fixture = Fixture::launched().await;
    fixture.write("file", "");
    let faulty = json!({
        "roots": ["root", "absent", "root/file"], "read_only_roots": ["root/../root"],
        "sandox": "off", "bash_timeout_ms": "1", "secret_env": ["NO_SUCH_VARIABLE"],
    });
    let (code, failure) = refusal(fixture.configure(faulty).await.expect_err("faults"));
    assert_eq!((code, failure.category.as_str()), (Code::InvalidArgument, "invalid_arguments"));
    for part in [
        "absent",
        "root/file",
        "root/../root",
        "did you mean \"sandbox\"?",
        "bash_timeout_ms",
        "NO_SUCH_VARIABLE",
    ] {
        assert!(failure.message.contains(part), "{part} is missing in: {}", failure.message);
    }
    assert!(!failure.retryable);
    // A shell that cannot run a command, and one variable once.
    fixture.write("plain", "echo");
    for (shell, problem) in [
        ("/nonexistent/shell".into(), "does not exist"),
        (fixture.path(""), "is not a program"),
        (fixture.path("plain"), "is not executable"),
    ] {
        let faulty = json!({ "shell": shell, "env": {"A": "a\u{0}b"}, "bash_timeout_ms": 0 });
        let (_, failure) = refusal(fixture.configure(faulty).await.expect_err("faults"));
        for part in [problem, "3 faults", "env.A: a NUL", "bash_timeout_ms"] {
            assert!(failure.message.contains(part), "{part} is missing in: {}", failure.message);
        }
    }
    // Nothing of it is in force.
    assert_eq!(
        fixture.failure("read_file", json!({"path": "file"})).await.category,
        "permission_denied"
    );
    fixture.configure(json!({})).await.unwrap();
    fixture.result("read_file", json!({"path": "file"})).await;
    fixture.end().await;
}

/// Not even where it is written in a wrong place, and not that of the configuration in force either.
async fn a_refused_configuration_does_not_show_a_secret() {
    const VALUE: &str = "correct-horse-battery";
    let mut fixture = Fixture::launched_with(|launch| launch.env("TOKEN", VALUE)).await;
    let faulty = |secrets: &[&str]| {
        json!({
            "roots": ["root", format!("/{VALUE}")], "network": VALUE, VALUE: 1,
            "env": {"A=": VALUE, VALUE: 2}, "shell": format!("/{VALUE}"), "secret_env": secrets,
        })
    };
    for secrets in [&["TOKEN"][..], &[]] {
        let error = fixture.configure(faulty(secrets)).await.expect_err("faults");
        assert!(!format!("{error:?}").contains(VALUE), "{error:?}");
        let (_, failure) = refusal(error);
        assert!(failure.message.contains("\"/[TOKEN]\" does not exist"), "{}", failure.message);
        fixture.configure(json!({"secret_env": ["TOKEN"]})).await.unwrap();
    }
    fixture.end().await;
}

async fn null_means_left_out_as_a_host_sends_it() {
    let mut fixture = Fixture::launched().await;
    let nulls = json!({
        "read_only_roots": null, "sandbox": null, "network": null, "protect": null, "shell": null, "env": null,
        "limits": null, "max_concurrent_calls": null, "read_before_write": null,
    });
    fixture.configure(nulls).await.unwrap();
    fixture.end().await;
}

async fn a_second_configuration_replaces_the_first() {
    let mut fixture = Fixture::configured().await;
    fixture.write("a.txt", "a\n");
    std::fs::create_dir(fixture.path("inner")).unwrap();
    fixture.write("inner/b.txt", "b\n");
    fixture.result("read_file", json!({"path": "a.txt"})).await;

    fixture.configure(json!({"roots": ["root/inner"]})).await.unwrap();
    fixture.result("read_file", json!({"path": "b.txt"})).await;
    let outside = fixture.path("a.txt");
    let failure = fixture.failure("read_file", json!({"path": outside})).await;
    assert_eq!(failure.category, "permission_denied");

    // A faulty one changes nothing.
    fixture.configure(json!({"roots": ["absent"]})).await.expect_err("no such directory");
    fixture.result("read_file", json!({"path": "b.txt"})).await;
    fixture.end().await;
}

async fn a_read_only_root_alone_is_enough_to_read() {
    let mut fixture = Fixture::launched().await;
    fixture.write("a.txt", "a\n");
    fixture.configure(json!({"roots": [], "read_only_roots": ["root"]})).await.unwrap();
    fixture.result("read_file", json!({"path": "a.txt"})).await;
    fixture.end().await;
}

/// A host reads it once, before Configure.
async fn what_is_advertised_holds_under_every_configuration() {
    let mut fixture = Fixture::launched().await;
    let before = fixture.client.schema().await.unwrap();
    for more in [
        json!({}),
        json!({"bash_timeout_ms": 1, "bash_max_timeout_ms": 3_600_000, "bash_output_bytes": 1000}),
        json!({"sandbox": "off", "read_before_write": true, "max_concurrent_calls": 1}),
    ] {
        fixture.configure(more).await.unwrap();
        let after = fixture.client.schema().await.unwrap();
        assert_eq!(format!("{:?}", after.tools), format!("{:?}", before.tools));
    }
    let bash = before.tools.iter().find(|tool| tool.name == "bash").unwrap();
    assert_eq!(bash.default_timeout_ms, Some(3_615_000), "the longest timeout and its end");
    let longer = fixture.configure(json!({"bash_max_timeout_ms": 3_600_001})).await;
    longer.expect_err("an hour is the most");
    fixture.end().await;
}

async fn a_temporary_directory_that_is_not_there_is_a_warning() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let said = lines.clone();
    let mut fixture = Fixture::launched_with(|launch| {
        launch.env("TMPDIR", "/no/such/directory").on_log(move |line| {
            said.lock().unwrap().push(line);
        })
    })
    .await;
    fixture.configure(json!({})).await.unwrap();
    let touch = call("bash", json!({"command": "touch $TMPDIR/x"}));
    let (_, outcome) = fixture.client.invoke_to_end(touch).await.unwrap();
    assert_eq!(outcome.unwrap()["exit_code"], 0);
    fixture.end().await;
    let lines = lines.lock().unwrap();
    let warned = |line: &&LogLine| {
        line.level == tracing::Level::WARN && line.message.contains("/no/such/directory")
    };
    assert_eq!(lines.iter().filter(warned).count(), 1, "{lines:?}");
}

async fn full_is_had_where_namespaces_are_and_refused_with_the_reason_elsewhere() {
    let mut fixture = Fixture::launched().await;
    let doctor = std::process::Command::new(PROGRAM).args(["doctor", "--json"]).output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let configured = fixture.configure(json!({"sandbox": "full"})).await;
    if report["level"] == "full" {
        configured.unwrap();
    } else {
        let (code, failure) = refusal(configured.expect_err("no namespaces"));
        assert_eq!(code, Code::FailedPrecondition);
        assert!(failure.message.contains("no namespaces can be had here"), "{}", failure.message);
        assert!(failure.message.contains("enforce"), "{}", failure.message);
    }
    assert_eq!(report["full"], report["level"] == "full");
    fixture.end().await;
}

async fn roots_that_give_more_away_than_a_project_are_named_once() {
    let elsewhere = tempfile::tempdir().unwrap();
    let mut fixture = Fixture::launched_with(|launch| launch.env("HOME", elsewhere.path())).await;
    let notice = async |fixture: &mut Fixture| {
        let run = call("bash", json!({"command": "true"}));
        let (_, outcome) = fixture.client.invoke_to_end(run).await.unwrap();
        outcome.unwrap().get("notice").map(ToString::to_string).unwrap_or_default()
    };
    fixture.configure(json!({})).await.unwrap();
    assert_eq!(notice(&mut fixture).await, "", "a project's directory is nothing to speak of");
    fixture.end().await;

    let root = tempfile::tempdir().unwrap();
    let path = format!("/usr/bin:{}/bin", root.path().display());
    let home = root.path().join("me");
    std::fs::create_dir(&home).unwrap();
    let change = |launch: Launch| launch.env("HOME", &home).env("PATH", path);
    let mut fixture = Fixture::launched_with(change).await;
    fixture.configure(json!({"roots": [root.path()]})).await.unwrap();
    let first = notice(&mut fixture).await;
    assert!(first.contains("holds the home directory"), "{first}");
    assert!(first.contains("PATH names"), "{first}");
    assert_eq!(notice(&mut fixture).await, "");
    fixture.end().await;
}
