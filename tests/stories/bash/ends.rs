//! Every way in which a call of bash ends: what the host hears, by the stream and by its log, and
//! that nothing is left.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use provider_workspace::plugin::HOST_CALLBACKS;
use rustix::net::{Shutdown, shutdown};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tool_provider::Call;
use tool_provider::grpc::{
    Failure, HostLogEntry, InvokeItem, InvokeStream, ToolClient, host_callbacks,
};
use tool_provider::{Event, OutputStream};

use super::{gone, mark, next_output};
use crate::harness::{Fixture, TEST_TIMEOUT, call, wait_for_end};
use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_call_ends_with_its_shell_and_takes_the_background_along,
        a_cancel_is_reported_to_the_hosts_log,
        a_provider_that_is_asked_to_end_reports_what_it_cancelled,
        a_lost_connection_ends_its_own_calls_only,
        short_deadlines_are_met_from_inside,
        a_timeout_says_the_exit_and_then_itself,
        kept_outputs_go_with_their_provider_or_when_the_next_one_starts,
    ]
}

/// Waits for what a command said on both of its streams.
async fn both(stream: &mut InvokeStream) {
    super::next_outputs(stream, &["err\n", "start\n"]).await;
}

/// The rest of a stream: its events, by their kinds, and how it ended.
async fn rest(stream: &mut InvokeStream) -> (Vec<Event>, Failure) {
    let mut events = Vec::new();
    loop {
        match tokio::time::timeout(TEST_TIMEOUT, stream.next()).await.unwrap().unwrap().unwrap() {
            InvokeItem::Event(event) => events.push(event),
            InvokeItem::Failure(failure) => return (events, failure),
            InvokeItem::Result(result) => panic!("a result: {result:?}"),
        }
    }
}

async fn heard(log: &mut mpsc::UnboundedReceiver<HostLogEntry>, part: &str) -> HostLogEntry {
    tokio::time::timeout(TEST_TIMEOUT, async {
        loop {
            let entry = log.recv().await.unwrap();
            if entry.message.contains(part) {
                return entry;
            }
        }
    })
    .await
    .unwrap_or_else(|_| panic!("nothing was heard of {part:?}"))
}

async fn listening() -> (Fixture, mpsc::UnboundedReceiver<HostLogEntry>) {
    let mut fixture = Fixture::launched().await;
    let (sender, log) = mpsc::unbounded_channel();
    // The provider may log more when the receiver is gone.
    let routes = host_callbacks(move |entry| drop(sender.send(entry)));
    fixture
        .plugin
        .serve_callbacks(HOST_CALLBACKS, goplugin::Services::new().with(routes))
        .await
        .unwrap();
    fixture.configure(json!({})).await.unwrap();
    (fixture, log)
}

/// The report that a cancel owes, as the log has it.
fn assert_reported(entry: &HostLogEntry, command: &str) {
    assert_eq!(entry.session_id.as_deref(), Some("session-1"), "{entry:?}");
    for (field, value) in [
        ("call_id", json!("call-1")),
        ("tool", json!("bash")),
        ("command", json!(command)),
        ("streamed_stdout_bytes", json!(6.0)),
        ("streamed_stderr_bytes", json!(4.0)),
    ] {
        let said = &entry.fields[field];
        let same = said == &value || said.as_f64().is_some_and(|said| value.as_f64() == Some(said));
        assert!(same, "{field}: {said} instead of {value}");
    }
    // A busy machine may need the second signal, and then kills.
    let signals = entry.text("signals_sent").unwrap();
    assert!(["SIGTERM", "SIGTERM SIGKILL"].contains(&signals), "{signals}");
    for field in ["processes_killed", "exit_code"] {
        assert!(entry.fields[field].is_number(), "{entry:?}");
    }
}

/// A process in the background may hold the output open, or not: the call waits for neither.
async fn a_call_ends_with_its_shell_and_takes_the_background_along() {
    let mut fixture = Fixture::configured().await;
    let mark = mark(800);
    for redirect in ["", ">/dev/null", ">/dev/null 2>&1"] {
        let command = format!("sleep {mark} {redirect} & setsid sleep {mark} {redirect} & echo hi");
        let (events, outcome) = fixture.call("bash", json!({ "command": command })).await;
        let result = outcome.unwrap();
        assert_eq!((&result["exit_code"], &result["output"]), (&json!(0), &json!("hi\n")));
        assert!(result["notice"].as_str().unwrap().contains("left running"), "{result:?}");
        assert_eq!(events.last(), Some(&Event::Exit { code: 0, signal: None }));
        assert_eq!(super::running(&mark), 0, "{redirect}");
    }
    let quiet = fixture.call("bash", json!({"command": "true"})).await.1.unwrap();
    assert!(!quiet.contains_key("notice"), "{quiet:?}");
    fixture.end().await;
}

/// Stream and process may both be gone a moment later, so what happened goes to the host's log.
async fn a_cancel_is_reported_to_the_hosts_log() {
    let (mut fixture, mut log) = listening().await;
    let mark = mark(801);
    let command = format!("setsid sleep {mark} & echo err >&2; echo start; exec sleep {mark}");
    let mut stream =
        fixture.client.invoke(call("bash", json!({ "command": command }))).await.unwrap();
    both(&mut stream).await;
    drop(stream);
    let entry = heard(&mut log, "the command was ended because").await;
    assert_reported(&entry, &command);
    gone(&mark).await;
    // A call that ends by itself has nothing of the kind to report.
    let (_, outcome) = fixture.call("bash", json!({"command": "echo fine"})).await;
    assert_eq!(outcome.unwrap()["output"], "fine\n");
    fixture.end().await;
    while let Ok(entry) = log.try_recv() {
        let again = entry.message.contains("the command was ended because");
        assert!(!again, "reported twice: {entry:?}");
    }
    while let Ok(entry) = log.try_recv() {
        assert!(entry.text("command").is_none(), "{entry:?}");
    }
}

/// A provider that is told to end cancels what runs, and still says all of it on the stream.
async fn a_provider_that_is_asked_to_end_reports_what_it_cancelled() {
    let (mut fixture, mut log) = listening().await;
    let mark = mark(802);
    // It ignores what it is asked, and so does what hides in a session of its own.
    let command = format!(
        "trap '' TERM; setsid bash -c \"trap '' TERM; echo err >&2; sleep {mark}; sleep {mark}\" & \
         echo start; sleep {mark}; sleep {mark}"
    );
    let mut stream =
        fixture.client.invoke(call("bash", json!({ "command": command }))).await.unwrap();
    both(&mut stream).await;
    let pid = fixture.pid();
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::TERM).unwrap();
    let (events, failure) = rest(&mut stream).await;
    let [Event::Exit { code: 137, signal: Some(_) }, Event::Partial(partial)] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!((failure.category.as_str(), failure.retryable), ("cancelled", false));
    assert_eq!((&partial["tool"], &partial["streamed_stdout_bytes"]), (&json!("bash"), &json!(6)));
    let output = failure.details["output"].as_str().unwrap();
    let told = "the command was ended because the call was cancelled\nOutput so far:\n";
    assert_eq!(failure.message, format!("{told}{output}"));
    assert!(output.contains("start\n") && output.contains("err\n"), "{output:?}");
    for report in [partial, &failure.details] {
        assert_eq!((&report["cancelled"], &report["command"]), (&json!(true), &json!(command)));
        assert_eq!(report["signals_sent"], json!(["SIGTERM", "SIGKILL"]));
    }
    assert_reported(&heard(&mut log, "the command was ended because").await, &command);
    assert!(tokio::time::timeout(TEST_TIMEOUT, stream.next()).await.unwrap().is_none());
    fixture.plugin.wait().await.unwrap();
    gone(&mark).await;
}

/// A client on a connection of its own, and what cuts that connection as a dying host does: without
/// a word.
async fn cuttable(fixture: &Fixture) -> (ToolClient, OwnedFd) {
    let socket = fixture.sockets().into_iter().find(|path| !path.is_dir()).unwrap();
    let cut = Arc::new(Mutex::new(None));
    let slot = cut.clone();
    let connector = tower::service_fn(move |_| {
        let (socket, slot) = (socket.clone(), slot.clone());
        async move {
            let stream = tokio::net::UnixStream::connect(socket).await?;
            *slot.lock().unwrap() = Some(stream.as_fd().try_clone_to_owned()?);
            Ok::<_, std::io::Error>(hyper_util::rt::TokioIo::new(stream))
        }
    });
    let endpoint = tonic::transport::Endpoint::from_static("http://localhost");
    let client = ToolClient::new(endpoint.connect_with_connector(connector).await.unwrap());
    let cut = cut.lock().unwrap().take().unwrap();
    (client, cut)
}

/// T07: a connection that is lost ends its calls, and no others.
async fn a_lost_connection_ends_its_own_calls_only() {
    let (mut fixture, mut log) = listening().await;
    let (lost, kept) = (mark(804), mark(805));
    let (mut client, cut) = cuttable(&fixture).await;
    let command = format!("echo err >&2; echo start; exec sleep {lost}");
    let mut stream = client.invoke(call("bash", json!({ "command": command }))).await.unwrap();
    both(&mut stream).await;
    let other = format!("echo start; exec sleep {kept}");
    let mut beside =
        fixture.client.invoke(call("bash", json!({ "command": other }))).await.unwrap();
    next_output(&mut beside, "start").await;
    shutdown(&cut, Shutdown::Both).unwrap();
    assert_reported(&heard(&mut log, "the command was ended because").await, &command);
    gone(&lost).await;
    assert_eq!(super::running(&kept), 1);
    drop(beside);
    gone(&kept).await;
    fixture.end().await;
}

/// What there is comes before the host gives up, however little time it gave; and where that is
/// too little for anything, nothing is run.
async fn short_deadlines_are_met_from_inside() {
    let mut fixture = Fixture::configured().await;
    let mark = mark(807);
    let mut ask = async |left: u64, command: &str| {
        let asked = async {
            loop {
                let deadline = Some(Instant::now() + Duration::from_millis(left));
                let call = Call { deadline, ..call("bash", json!({ "command": command })) };
                // On a busy machine our own client may give up first, as it knows the deadline too.
                if let Ok((_, outcome)) = fixture.client.invoke_to_end(call).await {
                    return outcome.unwrap_err();
                }
            }
        };
        let asked = tokio::time::timeout(TEST_TIMEOUT, asked).await;
        asked.unwrap_or_else(|_| panic!("{left} ms: this side always gave up first"))
    };
    for left in [100, 250, 600, 3000] {
        let command = format!("echo start; exec sleep {mark}");
        let failure = ask(left, &command).await;
        assert_eq!(failure.category, "timeout", "{failure:?}");
        assert!(failure.message.contains("the host's deadline"), "{failure:?}");
        assert_eq!(failure.details["signals_sent"][0], "SIGTERM", "{failure:?}");
        // How much can be said by then depends on the machine, but for the last.
        assert!(left < 3000 || failure.details["output"] == "start\n", "{failure:?}");
        gone(&mark).await;
    }
    let failure = ask(20, "touch made").await;
    assert_eq!(failure.category, "timeout", "{failure:?}");
    assert!(!failure.details.contains_key("exit_code"), "{failure:?}");
    assert!(!fixture.path("made").exists());
    fixture.end().await;
}

/// B02 and B03 over the wire: the events of a command that outlives its time, in their order.
async fn a_timeout_says_the_exit_and_then_itself() {
    let mut fixture = Fixture::configured().await;
    let mark = mark(808);
    let command = format!(
        "trap '' TERM; setsid sleep {mark} & setsid bash -c 'sleep {mark} & disown; exit'; \
         echo part; sleep {mark}; sleep {mark}"
    );
    let (events, outcome) =
        fixture.call("bash", json!({"command": command, "timeout_ms": 5000})).await;
    let failure = outcome.unwrap_err();
    assert_eq!((failure.category.as_str(), failure.retryable), ("timeout", false));
    let details = &failure.details;
    // A model reads the message alone.
    let [told, output] = ["its timeout of 5000 ms", "\nOutput so far:\npart\n"];
    assert!(failure.message.contains(told) && failure.message.ends_with(output), "{failure:?}");
    assert!(failure.message.contains("larger timeout_ms"), "{failure:?}");
    assert_eq!(
        (&details["output"], &details["signals_sent"]),
        (&json!("part\n"), &json!(["SIGTERM", "SIGKILL"]))
    );
    assert_eq!((&details["exit_code"], &details["signal"]), (&json!(137), &json!("SIGKILL")));
    assert!(details["processes_killed"].as_u64().unwrap() >= 2, "{details:?}");
    let [Event::Progress { .. }, Event::Output { stream, data }, Event::Exit { code, signal }] =
        &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!((*stream, &data[..]), (OutputStream::Stdout, &b"part\n"[..]));
    assert_eq!((*code, signal.as_deref()), (137, Some("SIGKILL")));
    gone(&mark).await;
    fixture.end().await;
}

/// What a killed provider kept of outputs is cleared away by the next one, and by nobody before.
async fn kept_outputs_go_with_their_provider_or_when_the_next_one_starts() {
    let mut fixture = Fixture::launched().await;
    fixture.configure(json!({"bash_output_bytes": 1000})).await.unwrap();
    let long = json!({"command": "seq 1 1000"});
    let kept =
        |result: &Value| std::path::PathBuf::from(result["full_output_path"].as_str().unwrap());
    let (_, outcome) = fixture.call("bash", long.clone()).await;
    let first = kept(&Value::Object(outcome.unwrap()));
    let read = fixture.result("read_file", json!({"path": first, "offset": -1})).await;
    assert_eq!((&read["text"], &read["total_lines"]), (&json!("1000:1000\n"), &json!(1000)));
    // A short output leaves no file, and no command can make one that would be taken for such.
    let forge = format!("echo forged >{}/output-9.txt", first.parent().unwrap().display());
    let (_, outcome) = fixture.call("bash", json!({"command": forge})).await;
    let outcome = outcome.unwrap();
    assert!(outcome["exit_code"] != 0 && !outcome.contains_key("full_output_path"), "{outcome:?}");
    assert!(!first.with_file_name("output-9.txt").exists());

    let pid = fixture.pid();
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::KILL).unwrap();
    wait_for_end(pid);
    assert!(first.exists(), "nobody was there to remove it");
    fixture.clear_tmp();
    fixture.relaunch().await;
    fixture.configure(json!({"bash_output_bytes": 1000})).await.unwrap();
    assert!(!first.exists());
    let (_, outcome) = fixture.call("bash", long).await;
    let second = kept(&Value::Object(outcome.unwrap()));
    assert!(second.exists());
    let _directory = fixture.end_and_keep().await;
    assert!(!second.exists());
}
