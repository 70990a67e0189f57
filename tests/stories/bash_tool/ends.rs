//! What is left to a command that ends: the output on its way, and time to tidy up. That nothing
//! outlives a call is tested over the wire, and by the jail's own stories.

use std::sync::Arc;

use serde_json::json;
use tool_provider::{CancelToken, Category};

use super::fixture::{Collector, Fixture, notice};
use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        output_that_is_still_on_its_way_when_the_shell_ends_is_not_lost,
        a_command_that_heeds_sigterm_can_tidy_up,
        what_the_shell_started_can_tidy_up_too,
        what_the_shell_left_running_can_tidy_up_and_is_named,
        a_cancel_before_the_start_runs_nothing,
    ]
}

fn output_that_is_still_on_its_way_when_the_shell_ends_is_not_lost() {
    let fixture = Fixture::new();
    for _ in 0..10 {
        let result = fixture.result("echo one > >(sleep .03; cat; echo two)");
        assert_eq!(result["output"], "one\ntwo\n");
        assert_eq!(notice(&result), "");
    }
    let answer =
        fixture.run(json!({"command": "(sleep .05; head -c 200000 /dev/zero) & echo first"}));
    let [(_, text)] = &answer.streamed()[..] else { panic!("{:?}", answer.streamed()) };
    assert_eq!(text.len(), 200_006);
}

fn a_command_that_heeds_sigterm_can_tidy_up() {
    let fixture = Fixture::new();
    let answer = fixture.run(json!({
        "command": "trap 'echo bye; exit 5' TERM; echo hi; while :; do sleep .05; done",
        "timeout_ms": 5000,
    }));
    let details = answer.error().details();
    // Between the two bash says that its child was terminated.
    let output = details["output"].as_str().unwrap();
    assert!(output.starts_with("hi\n") && output.contains("bye\n"), "{output}");
    assert_eq!((&details["exit_code"], &details["signals_sent"]), (&json!(5), &json!(["SIGTERM"])));
    assert_eq!(answer.exit(), (5, None));
}

fn what_the_shell_started_can_tidy_up_too() {
    let fixture = Fixture::new();
    // The shell dies of SIGTERM at once; the process below it needs a little longer.
    let answer = fixture.run(json!({
        "command": "bash -c 'trap \"sleep .6; echo bye; exit\" TERM; echo hi; sleep 300 & wait'; true",
        "timeout_ms": 5000,
    }));
    let details = answer.error().details();
    assert_eq!(
        (&details["signal"], &details["signals_sent"]),
        (&json!("SIGTERM"), &json!(["SIGTERM"]))
    );
    assert!(details["output"].as_str().unwrap().ends_with("bye\n"), "{details:?}");
    assert_eq!(details["processes_killed"], 0);
}

fn what_the_shell_left_running_can_tidy_up_and_is_named() {
    let fixture = Fixture::new();
    let left = "(trap 'echo bye; rm lock; exit' TERM; touch lock; while :; do sleep .05; done) & \
                until test -e lock; do sleep .01; done; echo hi";
    let result = fixture.result(left);
    assert_eq!(result["exit_code"], 0);
    // Between the two bash may say that its child was terminated.
    let output = result["output"].as_str().unwrap();
    assert!(output.starts_with("hi\n") && output.contains("bye\n"), "{output}");
    assert!(!fixture.root.join("lock").exists());
    let said = notice(&result);
    assert!(said.contains("bash") && said.contains("nothing outlives its call"), "{said}");
    // One that heeds nothing is ended all the same.
    let result =
        fixture.result("(trap '' TERM; exec sleep 300) >/dev/null 2>&1 & sleep .2; echo hi");
    assert_eq!(result["output"], "hi\n");
    assert!(notice(&result).starts_with("sleep, which the command left running"), "{result:?}");
}

fn a_cancel_before_the_start_runs_nothing() {
    let fixture = Fixture::new();
    let cancel = CancelToken::new();
    cancel.cancel();
    let collector = Arc::new(Collector::default());
    let arguments = json!({"command": "touch made"});
    let error = fixture.run_into(arguments, collector.clone(), &cancel, None).unwrap_err();
    assert_eq!(error.category(), Category::Cancelled);
    assert!(collector.taken().is_empty() && !fixture.root.join("made").exists());
}
