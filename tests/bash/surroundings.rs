//! What a command finds itself in.

use serde_json::json;

use crate::ground::{Ground, processes_with, unique};

#[test]
fn a_command_starts_clean() {
    let ground = Ground::new();
    let result = ground.result(
        "ls /proc/$$/fd >list; tr '\\n' ' ' <list; echo; \
         ps -o pid=,pgid=,sid= -p $$ | { read pid group session; \
         test $pid = $$ -a $group = $$ -a $session = $$ && echo leader; }; \
         grep -E '^(SigBlk|SigIgn|Umask)' /proc/self/status; \
         yes | head -n 1; echo ${PIPESTATUS[*]}",
    );
    let own = std::fs::read_to_string("/proc/self/status").unwrap();
    let umask = own.lines().find_map(|line| line.strip_prefix("Umask:\t")).unwrap();
    let output = result["output"].as_str().unwrap();
    let expected = ["0 1 2 ", "leader", &format!("Umask:\t{umask}"), "y", "141 0"];
    for line in expected {
        assert!(output.lines().any(|shown| shown == line), "{line}: {output}");
    }
    // SIGPIPE ended `yes`.
    for name in ["SigBlk", "SigIgn"] {
        assert!(output.contains(&format!("{name}:\t0000000000000000\n")), "{name}: {output}");
    }
}

#[test]
fn a_fork_bomb_is_bounded_while_it_runs_and_leaves_nothing() {
    let limit = 64 + tasks_of_this_user();
    let ground = Ground::with(|settings| settings.policy.limits.processes = Some(limit));
    let said = ground.left_open().iter().any(|open| open.contains("number of processes"));
    let is_root = rustix::process::geteuid().is_root();
    if is_root && (said || ground.level() != sandbox::Level::Full) {
        // No such limit binds root here.
        return;
    }
    let mark = unique(64);
    let bomb = format!("b() {{ b & b & wait; }}; b 2>/dev/null # {mark}");
    let (sink, cancel) = (std::sync::Arc::default(), Default::default());
    let collector: std::sync::Arc<crate::ground::Collector> = sink;
    let arguments = json!({"command": bomb, "timeout_ms": 1500});
    let answer = ground.start(arguments, collector, &cancel, None);
    let mut most = 0;
    let error = loop {
        most = most.max(processes_with(&mark).len());
        if let Ok(outcome) = answer.try_recv() {
            break outcome.unwrap_err();
        }
    };
    assert_eq!(error.category().name(), "timeout");
    assert!((10..=limit).contains(&(most as u64)), "{most} at once, where {limit} are allowed");
    assert_eq!(processes_with(&mark), [""; 0]);
    assert_eq!(ground.result("echo after")["output"], "after\n");
}

/// At the kernel level these count too.
fn tasks_of_this_user() -> u64 {
    let own = rustix::process::geteuid();
    if own.is_root() {
        return 0;
    }
    let processes = std::fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        let owner = entry.metadata().map(|found| std::os::unix::fs::MetadataExt::uid(&found));
        owner.is_ok_and(|owner| owner == own.as_raw())
    });
    let tasks = processes
        .map(|entry| std::fs::read_dir(entry.path().join("task")).map_or(0, Iterator::count));
    tasks.sum::<usize>() as u64
}
