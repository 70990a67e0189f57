//! Faults that other shells of this kind had, met by the whole provider.

use std::process::Command;
use std::time::Duration;

use futures_util::StreamExt as _;
use provider_workspace::plugin::COOKIE;
use serde_json::json;
use tool_provider::Call;
use tool_provider::Event;
use tool_provider::grpc::InvokeItem;

use super::{gone, mark, next_output};
use crate::harness::{Fixture, PROGRAM, TEST_TIMEOUT, call};
use crate::trials::{Need, Trial};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_terminal_that_the_provider_has_is_not_the_commands needs [Need::Program("script")],
        memory_stays_small_whatever_is_printed_and_however_slowly_it_is_read,
        no_moves_of_a_cursor_take_memory_or_hold_up_the_timeout,
        what_the_provider_was_given_is_not_the_commands_to_see,
        a_directory_that_is_gone_is_distinguished_from_one_that_is_foreign_and_from_a_missing_shell,
        a_secret_is_masked_wherever_it_is_cut,
    ]
}

/// B04: nothing reads the terminal that the provider itself was started on.
async fn a_terminal_that_the_provider_has_is_not_the_commands() {
    let fixture = Fixture::launched().await;
    let command = "cat; echo A=$?; cat <<< a >/dev/null; read y; echo B=$?; \
                   (exec 3</dev/tty) 2>/dev/null; echo C=$?; tty; ps -o tty= -p $$";
    let call = format!(
        "test -t 0 && echo terminal && {PROGRAM} call bash '{}' --root {}",
        json!({ "command": command }),
        fixture.path("").display(),
    );
    let mut script = Command::new("script");
    script.args(["-qec", &call, "/dev/null"]).env("TMPDIR", fixture.path("../tmp"));
    let output = script.output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout).replace('\r', "");
    assert!(shown.starts_with("terminal\n"), "{shown}");
    for line in ["A=0", "B=1", "C=1", "not a tty", "?"] {
        // What the call says of itself comes before the first.
        assert!(shown.lines().any(|shown| shown.ends_with(line)), "{line}: {shown}");
    }
    fixture.end().await;
}

/// B05: whatever comes and however slowly it is read, memory stays.
async fn memory_stays_small_whatever_is_printed_and_however_slowly_it_is_read() {
    const MOST_KIB: u64 = 64 * 1024;
    let mut fixture = Fixture::configured().await;
    let large = "head -c 300M /dev/zero | tr '\\0' x; head -c 1M /dev/zero >&2";
    let mut received = [0, 0];
    let mut stream =
        fixture.client.invoke(call("bash", json!({ "command": large }))).await.unwrap();
    while let Some(item) = tokio::time::timeout(TEST_TIMEOUT, stream.next()).await.unwrap() {
        if let InvokeItem::Event(Event::Output { stream, data }) = item.unwrap() {
            received[stream as usize] += data.len();
        }
    }
    assert_eq!(received, [300 << 20, 1 << 20]);
    assert!(fixture.status("VmHWM") < MOST_KIB, "{} KiB", fixture.status("VmHWM"));

    // Nobody reads: the command waits, and its time comes all the same.
    let mark = mark(811);
    let endless = format!("yes {mark}");
    let arguments = json!({"command": endless, "timeout_ms": 5000});
    let mut stream = fixture.client.invoke(call("bash", arguments)).await.unwrap();
    next_output(&mut stream, &mark).await;
    gone(&mark).await;
    let mut failure = None;
    while let Some(item) = tokio::time::timeout(TEST_TIMEOUT, stream.next()).await.unwrap() {
        if let InvokeItem::Failure(ended) = item.unwrap() {
            failure = Some(ended);
        }
    }
    let failure = failure.unwrap();
    assert_eq!(
        (failure.category.as_str(), &failure.details["truncated"]),
        ("timeout", &json!(true))
    );

    // One that reads a little now and then, and goes away after a hundred.
    let mut stream =
        fixture.client.invoke(call("bash", json!({ "command": endless }))).await.unwrap();
    for number in 0..100 {
        stream.next().await.unwrap().unwrap();
        if number % 25 == 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    drop(stream);
    gone(&mark).await;
    assert!(fixture.status("VmHWM") < MOST_KIB, "{} KiB", fixture.status("VmHWM"));
    fixture.end().await;
}

/// Output that a terminal would show at once, but that asks for a line without end, for the same long
/// line to be erased again and again, and for a long line at each backspace.
async fn no_moves_of_a_cursor_take_memory_or_hold_up_the_timeout() {
    const MOST_KIB: u64 = 64 * 1024;
    let mut fixture = Fixture::configured().await;
    let grows = "printf 'a\\nb\\033[A'; head -c 24M /dev/zero | tr '\\0' x; printf '\\033[Eend'";
    let (_, outcome) = fixture.call("bash", json!({ "command": grows })).await;
    let result = outcome.unwrap();
    let output = result["output"].as_str().unwrap();
    assert!(output.starts_with("axx") && output.ends_with("xx\nend"), "{}", output.len());
    let erases = "printf 'a\\nb\\033[A'; head -c 4M /dev/zero | tr '\\0' x; printf '\\033[A'; \
                  for i in {1..2000}; do printf '\\033[1K\\033[D\\033[1K\\033[D'; done; sleep 300";
    let returns = "head -c 8000 /dev/zero | tr '\\0' x; \
                   head -c 200000 /dev/zero | sed 's/\\x00/\\x08x/g'; sleep 300";
    for command in [erases, returns] {
        let arguments = json!({"command": command, "timeout_ms": 5000});
        let failure = fixture.failure("bash", arguments).await;
        assert_eq!(failure.category, "timeout", "{failure:?}");
    }
    assert!(fixture.status("VmHWM") < MOST_KIB, "{} KiB", fixture.status("VmHWM"));
    fixture.end().await;
}

/// B09: nothing that the provider was given reaches a command, by any way to look.
async fn what_the_provider_was_given_is_not_the_commands_to_see() {
    let mut fixture = Fixture::launched_with(|launch| {
        launch.env("FAKE_API_KEY", "zzz123").env("PASSED", "passed-on")
    })
    .await;
    fixture.configure(json!({"env_passthrough": ["PASSED"]})).await.unwrap();
    let look = "env; tr '\\0' '\\n' </proc/$PPID/environ; ps axww -o args; \
                for p in /proc/[0-9]*; do tr '\\0' '\\n' <$p/environ; done 2>/dev/null";
    let (_, outcome) = fixture.call("bash", json!({ "command": look })).await;
    let result = outcome.unwrap();
    let output = result["output"].as_str().unwrap();
    for hidden in ["zzz123", "FAKE_API_KEY", COOKIE.key, COOKIE.value, "PLUGIN_"] {
        assert!(!output.contains(hidden), "{hidden}: {output}");
    }
    for shown in ["PASSED=passed-on", "PATH=", "HOME=", "LANG=", "TERM=", "TMPDIR="] {
        assert!(output.lines().any(|line| line.starts_with(shown)), "{shown}: {output}");
    }
    for name in ["BASH_ENV", "ENV", "LD_PRELOAD"] {
        let refused = fixture.configure(json!({"env": {name: "x"}})).await.unwrap_err();
        assert!(refused.to_string().contains(name), "{refused}");
    }
    fixture.end().await;
}

/// A directory that is not there, or lies elsewhere, is reported as such, and so is a shell that is
/// not there: none of them is taken for another.
async fn a_directory_that_is_gone_is_distinguished_from_one_that_is_foreign_and_from_a_missing_shell()
 {
    let mut fixture = Fixture::configured().await;
    std::fs::create_dir(fixture.path("directory")).unwrap();
    let here = json!({"command": "pwd", "cwd": "directory"});
    let (_, outcome) = fixture.call("bash", here.clone()).await;
    assert!(outcome.unwrap()["output"].as_str().unwrap().ends_with("/directory\n"));
    std::fs::remove_dir(fixture.path("directory")).unwrap();
    let (_, gone) = fixture.call("bash", here).await;
    let gone = gone.unwrap_err();
    assert_eq!(gone.category, "not_found", "{}", gone.message);

    let working_directory = Some("/usr".to_owned());
    let foreign = Call { working_directory, ..call("bash", json!({"command": "pwd"})) };
    let foreign = fixture.client.invoke_to_end(foreign).await.unwrap().1.unwrap_err();
    assert_eq!(foreign.category, "permission_denied", "{}", foreign.message);

    // A shell that was there at Configure, and is not any more.
    let shell = fixture.path("shell");
    std::fs::copy("/bin/sh", &shell).unwrap();
    fixture.configure(json!({ "shell": shell })).await.unwrap();
    std::fs::remove_file(&shell).unwrap();
    let (_, missing) = fixture.call("bash", json!({"command": "pwd"})).await;
    let missing = missing.unwrap_err();
    assert_eq!(missing.category, "execution_failed", "{}", missing.message);
    let printed = format!("the shell {}", shell.display());
    assert!(missing.message.contains(&printed), "{}", missing.message);

    // The root itself is gone, and only its handle is left.
    fixture.configure(json!({})).await.unwrap();
    std::fs::remove_dir(fixture.path("")).unwrap();
    let (events, gone) = fixture.call("bash", json!({"command": "pwd"})).await;
    let gone = gone.unwrap_err();
    assert_eq!((events, gone.category.as_str()), (vec![], "not_found"), "{}", gone.message);
    std::fs::create_dir(fixture.path("")).unwrap();
    fixture.end().await;
}

/// A secret is masked wherever it is cut: between two writes, at the head's end, in the kept file.
async fn a_secret_is_masked_wherever_it_is_cut() {
    const VALUE: &str = "correct-horse-battery-staple";
    let mut fixture = Fixture::launched_with(|launch| launch.env("TOKEN", VALUE)).await;
    let config = json!({"secret_env": ["TOKEN"], "bash_output_bytes": 1000});
    fixture.configure(config).await.unwrap();
    // 1500 of them without a break: borders of reads, of head and tail and of pieces fall inside.
    let command = "for i in $(seq 1500); do printf %s \"$TOKEN\"; done; \
                   printf %s \"${TOKEN:0:9}\"; printf %s \"${TOKEN:9}\" >&2; echo; echo plain";
    let (events, outcome) = fixture.call("bash", json!({ "command": command })).await;
    let result = outcome.unwrap();
    let full = std::fs::read_to_string(result["full_output_path"].as_str().unwrap()).unwrap();
    let streamed: Vec<u8> = events
        .iter()
        .filter_map(|event| match event {
            Event::Output { data, .. } => Some(data.to_vec()),
            _ => None,
        })
        .flatten()
        .collect();
    let streamed = String::from_utf8(streamed).unwrap();
    for text in [&streamed, &full] {
        assert_eq!(text.matches("[TOKEN]").count(), 1500);
        // The other stream may come between the last beginning and its line's end.
        assert!(!text.contains("staplecorrect-ho") && text.contains("plain"));
    }
    let shown = format!("{result:?}");
    assert!(shown.contains("[TOKEN][TOKEN]") && !shown.contains(VALUE), "{shown}");

    // The system cuts a program's name, which a notice shows.
    let named = "printf '#!/bin/sh\\n: >up\\nread line <>pipe\\n' >\"$1\"; chmod +x \"$1\"; \
                 rm -f up; \"./$1\" & until test -e up; do sleep .01; done";
    for (name, shown) in [("\"$TOKEN\"", "…"), ("any-other-program-name", "any-other-progr")] {
        let command = format!("test -e pipe || mkfifo pipe; set -- {name}; {named}");
        let (_, outcome) = fixture.call("bash", json!({ "command": command })).await;
        let result = outcome.unwrap();
        let notice = result["notice"].as_str().unwrap();
        assert!(notice.starts_with(&format!("{shown}, which the command left")), "{notice}");
    }
    fixture.end().await;
}
