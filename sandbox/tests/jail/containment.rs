//! Nothing outlives its call, however it hides.

use crate::support::{at_each_level, await_file, processes, until, zombies};

/// Runs `script` with MARK in its environment and sees to it that nothing with the mark is left.
fn leaves_nothing(mark: &str, script: &str, killed: impl Fn(u64) -> bool) {
    at_each_level(|story| {
        let mark = format!("{mark}{}", story.level);
        let outcome = story.run(&format!("MARK={mark}; {script}"));
        assert_eq!(outcome.code(), 0, "{outcome:?}");
        assert_eq!(processes(&mark), [], "{outcome:?}");
        assert!(killed(outcome.report.processes_killed), "{outcome:?}");
    });
}

#[test]
fn a_process_in_a_session_of_its_own_ends_with_its_call() {
    let script = "setsid bash -c 'exec -a $0 sleep 1000' $MARK & disown; echo hi";
    leaves_nothing("own-session-", script, |killed| killed >= 1);
}
