//! How calls end: by themselves, by time, by a cancel; and that nothing outlives them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tool_provider::{CancelToken, Category, Event};

use crate::ground::{Collector, Ground, processes_with, unique};

#[test]
fn a_call_ends_with_its_shell_and_takes_the_background_along() {
    let ground = Ground::new();
    for redirect in ["", ">/dev/null", ">/dev/null 2>&1"] {
        let sleep = unique(600);
        let told = ground.run(json!({"command": format!("sleep {sleep} {redirect} & echo hi")}));
        let result = told.result();
        assert_eq!((&result["exit_code"], &result["output"]), (&json!(0), &json!("hi\n")));
        assert_eq!(result["processes_killed"], 1, "{redirect}");
        assert!(result["notice"].as_str().unwrap().contains("left running"), "{result:?}");
        assert!(told.took < Duration::from_secs(30));
        assert!(processes_with(&sleep).is_empty());
    }
    let told = ground.run(json!({"command": "while :; do echo tick; sleep 0.05; done & echo hi"}));
    assert!(told.result()["output"].as_str().unwrap().contains("hi\n"));
}

#[test]
fn output_that_is_still_on_its_way_when_the_shell_ends_is_not_lost() {
    let ground = Ground::new();
    for _ in 0..10 {
        let result = ground.result("echo one > >(sleep .03; cat; echo two)");
        assert_eq!(result["output"], "one\ntwo\n");
        assert_eq!(result["processes_killed"], 0);
    }
    let result = ground.result("(sleep .05; head -c 200000 /dev/zero) & echo first");
    assert_eq!(result["stdout_bytes"], 200_006);
}

#[test]
fn escapees_are_found_and_counted() {
    let ground = Ground::new();
    let sleep = unique(778);
    for command in [
        format!("setsid sleep {sleep} & echo hi; sleep .1"),
        format!("setsid bash -c 'sleep {sleep} & disown; exit'; echo hi"),
        format!("(trap '' TERM HUP INT; nohup sleep {sleep} >/dev/null 2>&1 &) ; echo hi"),
    ] {
        let told = ground.run(json!({ "command": command }));
        assert_eq!(told.result()["output"], "hi\n", "{command}");
        assert!(told.result()["processes_killed"].as_u64().unwrap() >= 1, "{command}");
        assert!(processes_with(&sleep).is_empty(), "{command}");
    }
}

#[test]
fn a_timeout_says_so_with_the_output_so_far_and_leaves_nothing() {
    let ground = Ground::new();
    let sleep = unique(777);
    let told = ground.run(json!({
        "command": format!(
            "trap '' TERM; (trap '' TERM; sleep {sleep}) & echo part; sleep {sleep}; sleep {sleep}"
        ),
        "timeout_ms": 500,
    }));
    let error = told.error();
    assert_eq!(error.category(), Category::Timeout);
    assert!(error.is_retryable());
    let details = error.details();
    assert_eq!(
        (&details["output"], &details["signals_sent"]),
        (&json!("part\n"), &json!(["SIGTERM", "SIGKILL"]))
    );
    assert_eq!((&details["exit_code"], &details["signal"]), (&json!(137), &json!("SIGKILL")));
    assert!(details["processes_killed"].as_u64().unwrap() >= 2, "{details:?}");
    assert_eq!(told.exit(), (137, Some("SIGKILL".to_owned())));
    assert!(told.took >= Duration::from_millis(2500), "{:?}", told.took);
    assert!(processes_with(&sleep).is_empty());
}

#[test]
fn a_command_that_heeds_sigterm_can_tidy_up() {
    let ground = Ground::new();
    let told = ground.run(json!({
        "command": "trap 'echo bye; exit 5' TERM; echo hi; while :; do sleep .05; done",
        "timeout_ms": 500,
    }));
    let details = told.error().details();
    // Between the two bash says that its child was terminated.
    let output = details["output"].as_str().unwrap();
    assert!(output.starts_with("hi\n") && output.contains("bye\n"), "{output}");
    assert_eq!((&details["exit_code"], &details["signals_sent"]), (&json!(5), &json!(["SIGTERM"])));
    assert_eq!(told.exit(), (5, None));
}

#[test]
fn what_the_shell_started_can_tidy_up_too() {
    let ground = Ground::new();
    // The shell dies of SIGTERM at once; the process below it needs a little longer.
    let told = ground.run(json!({
        "command": "bash -c 'trap \"sleep .6; echo bye; exit\" TERM; echo hi; sleep 300 & wait'; true",
        "timeout_ms": 500,
    }));
    let details = told.error().details();
    assert_eq!(
        (&details["signal"], &details["signals_sent"]),
        (&json!("SIGTERM"), &json!(["SIGTERM"]))
    );
    assert!(details["output"].as_str().unwrap().ends_with("bye\n"), "{details:?}");
    assert_eq!(details["processes_killed"], 0);
}

#[test]
fn the_kernels_deadline_counts_before_our_own() {
    let ground = Ground::new();
    let collector = Arc::new(Collector::default());
    let deadline = Instant::now() + Duration::from_secs(2);
    let arguments = json!({"command": "trap '' TERM; echo hi; while :; do sleep .05; done"});
    let error =
        ground.run_into(arguments, collector, &CancelToken::new(), Some(deadline)).unwrap_err();
    assert_eq!(error.category(), Category::Timeout);
    assert!(error.message().contains("kernel's deadline"), "{error}");
    assert_eq!(error.details()["output"], "hi\n");
}

#[test]
fn endless_output_is_bounded_and_does_not_starve_the_timer() {
    let ground = Ground::new();
    let told = ground.run(json!({"command": "yes", "timeout_ms": 1000}));
    let details = told.error().details();
    assert_eq!(told.error().category(), Category::Timeout);
    assert!(details["output"].as_str().unwrap().len() < 31_000);
    assert_eq!(details["truncated"], true);
    assert!(details["stdout_bytes"].as_u64().unwrap() > 1 << 20);
    assert_eq!(details["signals_sent"], json!(["SIGTERM"]));
}

#[test]
fn a_cancel_reaches_a_silent_command() {
    let ground = Ground::new();
    let sleep = unique(782);
    let command = format!("echo start; sleep {sleep}");
    let told = ground.cancelled(json!({ "command": command }), "start");
    let error = told.error();
    assert_eq!(error.category(), Category::Cancelled);
    assert!(!error.is_retryable());
    assert_eq!(
        (&error.details()["output"], &error.details()["signals_sent"]),
        (&json!("start\n"), &json!(["SIGTERM"]))
    );
    assert!(processes_with(&sleep).is_empty());
    let Some(Event::Partial(partial)) = told.events.last() else { panic!("{:?}", told.events) };
    assert_eq!(partial["cancelled"], true);
    let streamed = (&partial["streamed_stdout_bytes"], &partial["streamed_stderr_bytes"]);
    assert_eq!(streamed, (&json!(6), &json!(0)));
    assert_eq!(told.exit(), (143, Some("SIGTERM".to_owned())));
}

#[test]
fn a_cancel_reaches_a_command_that_ignores_signals_and_hides() {
    let ground = Ground::new();
    let sleep = unique(783);
    let command = format!(
        "trap '' TERM INT HUP; setsid sleep {sleep} & setsid bash -c \"trap '' TERM; sleep {sleep}; true\" & \
         echo start; sleep {sleep}; sleep {sleep}"
    );
    let told = ground.cancelled(json!({ "command": command }), "start");
    let details = told.error().details();
    assert_eq!(details["signals_sent"], json!(["SIGTERM", "SIGKILL"]));
    assert!(details["processes_killed"].as_u64().unwrap() >= 3, "{details:?}");
    assert!(processes_with(&sleep).is_empty());
}

#[test]
fn what_a_cancel_did_is_logged() {
    let ground = Ground::new();
    let command = "echo start; sleep 300";
    let told = ground.cancelled(json!({ "command": command }), "start");
    assert_eq!(told.error().category(), Category::Cancelled);
    let logged = ground.logged();
    let record = logged.iter().find(|record| record.contains("cancelled")).unwrap();
    for field in [
        "command=echo start; sleep 300",
        "streamed_stdout_bytes=6",
        "streamed_stderr_bytes=0",
        "signals_sent=SIGTERM",
        "processes_killed=0",
        "exit_code=143",
    ] {
        assert!(record.contains(field), "{field}: {record}");
    }
}

#[test]
fn a_cancel_before_the_start_runs_nothing() {
    let ground = Ground::new();
    let cancel = CancelToken::new();
    cancel.cancel();
    let collector = Arc::new(Collector::default());
    let arguments = json!({"command": "touch made"});
    let error = ground.run_into(arguments, collector.clone(), &cancel, None).unwrap_err();
    assert_eq!(error.category(), Category::Cancelled);
    assert!(collector.taken().is_empty() && !ground.root.join("made").exists());
}

#[test]
fn cancelling_one_call_leaves_the_other_alone() {
    let ground = Ground::new();
    let (one, other) = (Arc::new(Collector::default()), Arc::new(Collector::default()));
    let cancel = CancelToken::new();
    std::fs::write(ground.root.join("go"), "").unwrap();
    let command = "echo up; sleep 300";
    let doomed = ground.start(json!({ "command": command }), one.clone(), &cancel, None);
    let command = "echo up; while test -e go; do sleep .02; done; echo done";
    let spared =
        ground.start(json!({ "command": command }), other.clone(), &CancelToken::new(), None);
    one.wait_for("up");
    other.wait_for("up");
    cancel.cancel();
    assert_eq!(doomed.recv().unwrap().unwrap_err().category(), Category::Cancelled);
    std::fs::remove_file(ground.root.join("go")).unwrap();
    assert_eq!(spared.recv().unwrap().unwrap()["output"], "up\ndone\n");
}

#[test]
fn nothing_piles_up_over_many_calls() {
    let ground = Ground::alone();
    let sleep = unique(60);
    let round = |calls: usize| {
        for number in 0..calls {
            assert_eq!(ground.result("true")["exit_code"], 0);
            if number % 10 == 0 {
                assert_eq!(ground.result("(sleep 60 &); exit 0")["processes_killed"], 1);
            }
            let command = format!("echo start; sleep {sleep}");
            let told = ground.cancelled(json!({ "command": command }), "start");
            assert_eq!(told.error().category(), Category::Cancelled);
        }
    };
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
    round(3);
    let before = (open(), threads());
    round(40);
    let after = (open(), threads());
    assert!(after.0 <= before.0 && after.1 <= before.1 + 4, "{before:?} -> {after:?}");
    assert!(processes_with(&sleep).is_empty());
}
