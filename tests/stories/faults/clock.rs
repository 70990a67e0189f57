//! A clock that jumps. Nothing that is timed may look at it: deadlines, timeouts, locks.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use goplugin::host::{Launch, Security};
use serde_json::json;
use tool_provider::Call;

use crate::harness::{Fixture, TEST_TIMEOUT, call};
use crate::trials::{Need, Trial};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_clock_that_jumps_neither_ends_a_call_nor_keeps_it needs [Need::Program("cc")],
    ]
}

/// A library to preload whose wall clock jumps a year ahead and two back at every look; the
/// monotonic one is the machine's.
const JUMPING: &str = r"
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int looks;

static long jump(void) {
    static const long year = 31536000;
    return (__atomic_fetch_add(&looks, 1, __ATOMIC_RELAXED) & 1) ? -year : year;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += jump();
    return failed;
}

int gettimeofday(struct timeval *now, void *zone) {
    struct timespec exact;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (out) *out = exact.tv_sec;
    return exact.tv_sec;
}
";

fn library(directory: &Path) -> std::path::PathBuf {
    let (source, library) = (directory.join("jumping.c"), directory.join("jumping.so"));
    std::fs::write(&source, JUMPING).unwrap();
    let made =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
    assert!(made.unwrap().success());
    library
}

/// The jumps are real: what asks for the date by this library gets a different one each time.
fn assert_jumps(library: &Path) {
    let date = || {
        let mut date = Command::new("date");
        date.args(["+%s"]).env("LD_PRELOAD", library);
        let printed = String::from_utf8(date.output().unwrap().stdout).unwrap();
        printed.trim().parse::<u64>().unwrap()
    };
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    assert!(date().abs_diff(now) > 300 * 24 * 3600);
}

async fn a_clock_that_jumps_neither_ends_a_call_nor_keeps_it() {
    let directory = tempfile::tempdir().unwrap();
    let library = library(directory.path());
    assert_jumps(&library);
    for security in [Security::Plain, Security::AutoMtls] {
        let change = |launch: Launch| launch.security(security).env("LD_PRELOAD", &library);
        let mut fixture = Fixture::launched_with(change).await;
        fixture.configure(json!({})).await.unwrap();
        fixture.write("a.txt", "one\n");

        // Not ended early.
        let quick = call("bash", json!({"command": "read line", "timeout_ms": 60_000}));
        let quick = Call { deadline: Some(Instant::now() + Duration::from_secs(60)), ..quick };
        fixture.client.invoke_to_end(quick).await.unwrap().1.unwrap();
        let edit = json!({"path": "a.txt", "old_string": "one", "new_string": "two"});
        fixture.result("edit_file", edit).await;
        fixture.result("read_file", json!({"path": "a.txt"})).await;

        // And not kept for a year: its own timeout, and the caller's.
        let endless = json!({"command": "sleep 1000", "timeout_ms": 200});
        let own = fixture.client.invoke_to_end(call("bash", endless));
        let (_, outcome) = tokio::time::timeout(TEST_TIMEOUT, own).await.expect("no end").unwrap();
        assert_eq!(outcome.unwrap_err().category, "timeout");
        let endless = call("bash", json!({"command": "sleep 1000"}));
        let deadline = Some(Instant::now() + Duration::from_secs(2));
        let callers = fixture.client.invoke_to_end(Call { deadline, ..endless });
        let (_, outcome) =
            tokio::time::timeout(TEST_TIMEOUT, callers).await.expect("no end").unwrap();
        assert_eq!(outcome.unwrap_err().category, "timeout");
        fixture.end().await;
    }
}
