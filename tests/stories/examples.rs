//! The examples do what they say.

use std::path::Path;
use std::process::{Command, Stdio};

use provider_workspace::plugin::HOST_CALLBACKS;
use serde_json::json;
use tokio::sync::mpsc;
use tool_provider::grpc::host_callbacks;

use crate::environment::copy_program;
use crate::harness::{Fixture, PROGRAM, TEST_TIMEOUT};
use crate::trials::{Need, Trial, built};

const HOST_PROGRAM: &str = "examples/host";
const MINIMAL_PROGRAM: &str = "examples/minimal_provider";
const HOST: Need = Need::Built(HOST_PROGRAM);
const MINIMAL: Need = Need::Built(MINIMAL_PROGRAM);

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        the_host_plans_previews_asks_invokes_renders_and_ends needs [HOST],
        the_minimal_provider_is_one needs [HOST, MINIMAL],
        what_the_minimal_provider_logs_reaches_its_host needs [MINIMAL],
        the_minimal_provider_breaks_no_rule needs [MINIMAL],
        the_host_says_what_it_misses needs [HOST],
    ]
}

fn run(host: &Path, arguments: &[&str]) -> String {
    let output = Command::new(host).args(arguments).stdin(Stdio::null()).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{printed}\n{}", String::from_utf8_lossy(&output.stderr));
    printed
}

fn assert_in_order(printed: &str, pieces: &[&str]) {
    let mut rest = printed;
    for piece in pieces {
        let (_, after) =
            rest.split_once(piece).unwrap_or_else(|| panic!("no {piece:?} in {printed}"));
        rest = after;
    }
}

fn the_host_plans_previews_asks_invokes_renders_and_ends() {
    let host = built(HOST_PROGRAM);
    let printed = run(&host, &["--yes"]);
    assert_in_order(
        &printed,
        &[
            "workspace ",
            "call-0 write_file",
            "+ Roses are red,",
            "call-1 edit_file",
            "- violets are blue.",
            "+ the violet's are blue.",
            "call-3 bash",
            "  > ",
            "exit code 3",
            "call-4 read_file",
            "poem.txt",
            "ended: exit status: 0",
        ],
    );
    // Nobody answers: what would change something is not done, what reads is.
    let printed = run(&host, &[]);
    assert_in_order(&printed, &["call-0 write_file", "apply? [y/N]", "call-2 read_file", "ended"]);
    assert!(!printed.contains("exit code"), "{printed}");
}

async fn the_minimal_provider_is_one() {
    let program = built(MINIMAL_PROGRAM);
    let mut by_hand = Command::new(&program);
    let by_hand = by_hand.env_remove("PLUGGABLEHARNESS_AGENT_PLUGIN").output().unwrap();
    assert_eq!((by_hand.status.code(), by_hand.stdout.len()), (Some(1), 0));
    assert!(String::from_utf8(by_hand.stderr).unwrap().contains("host"));

    let mut fixture = Fixture::launched_by(program.to_str().unwrap(), &[], |_| {}).await;
    let producer = fixture.client.describe().await.unwrap();
    assert_eq!((producer.name.as_str(), producer.category), ("minimal", 2));
    fixture.configure(json!({})).await.unwrap();
    fixture.write("poem.txt", "Roses are red,\n  violets\tare blue.\n");
    let counts = fixture.result("count_words", json!({"path": fixture.path("poem.txt")})).await;
    assert_eq!((&counts["lines"], &counts["words"]), (&json!(2), &json!(6)));
    let failure = fixture.failure("count_words", json!({"path": fixture.path("peom.txt")})).await;
    assert_eq!(failure.category, "not_found");
    let failure = fixture.failure("count_words", json!({})).await;
    assert_eq!(failure.category, "invalid_arguments");
    fixture.end().await;

    let printed = run(&built(HOST_PROGRAM), &[program.to_str().unwrap()]);
    assert_in_order(&printed, &["minimal ", "call-0 count_words", "no-such-file", "ended"]);
}

/// A provider that is made of this library logs like this library's own.
async fn what_the_minimal_provider_logs_reaches_its_host() {
    let program = built(MINIMAL_PROGRAM);
    let mut fixture = Fixture::launched_as(&program, |launch| launch).await;
    let (entry, mut entries) = mpsc::unbounded_channel();
    let callbacks = host_callbacks(move |logged| drop(entry.send(logged)));
    fixture
        .plugin
        .serve_callbacks(HOST_CALLBACKS, goplugin::Services::new().with(callbacks))
        .await
        .unwrap();
    fixture.configure(json!({})).await.unwrap();
    fixture.write("poem.txt", "Roses are red,\n");
    fixture.result("count_words", json!({"path": fixture.path("poem.txt")})).await;

    let entry = first(&mut entries, |entry| entry.message == "counted").await;
    assert_eq!((entry.level.as_str(), entry.logger.as_str()), ("info", "minimal_provider"));
    assert_eq!(entry.fields["words"].as_f64(), Some(3.0));
    fixture.end().await;
}

/// The first of what comes that is wanted.
async fn first<T>(coming: &mut mpsc::UnboundedReceiver<T>, is_wanted: impl Fn(&T) -> bool) -> T {
    let wanted = async {
        loop {
            let one = coming.recv().await.unwrap();
            if is_wanted(&one) {
                return one;
            }
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, wanted).await.unwrap()
}

fn the_minimal_provider_breaks_no_rule() {
    let program = built(MINIMAL_PROGRAM);
    let conform = ["conform", program.to_str().unwrap(), "--limit", "60"];
    let output = Command::new(PROGRAM).args(conform).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{printed}");
}

fn the_host_says_what_it_misses() {
    let host = built(HOST_PROGRAM);
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("examples")).unwrap();
    let alone = directory.path().join("examples/host");
    copy_program(&host, &alone);
    let output = Command::new(alone).output().unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(printed.contains("`cargo build` makes"), "{printed}");
}
