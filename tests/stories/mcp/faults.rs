//! Clients that are broken, overwhelming or gone.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::AsFd as _;
use std::process::Stdio;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::client::{Client, directory, server};
use crate::harness::wait_for_end;
use crate::trials::Trial;

pub(super) fn trials() -> Vec<Trial> {
    trials![
        what_is_no_message_is_refused_and_the_next_one_is_taken,
        a_call_before_initialize_is_refused_and_initialize_still_works,
        a_line_without_end_is_not_held,
        many_small_values_are_not_held,
        a_message_of_the_largest_size_is_taken,
        sixty_four_calls_at_once_have_their_own_answers,
        an_id_that_is_in_use_is_refused_and_free_again_later,
        a_client_that_reads_nothing_is_not_read_from,
        a_client_that_goes_away_ends_its_commands_and_the_server,
        a_killed_launcher_ends_the_server_whoever_holds_its_input,
        a_signal_ends_the_server_and_the_call_is_answered,
        a_client_that_closes_its_end_of_the_output_ends_the_server,
        a_killed_server_leaves_no_command,
    ]
}

fn what_is_no_message_is_refused_and_the_next_one_is_taken() {
    let mut client = Client::of_root();
    for (line, code) in [
        ("nonsense", -32700),
        ("{\"jsonrpc\": \"2.0\", ", -32700),
        ("\u{0}", -32700),
        ("7", -32700),
        ("[]", -32600),
        ("[{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}]", -32600),
        ("{\"id\":9,\"method\":\"ping\"}", -32600),
    ] {
        client.send_raw(format!("{line}\n").as_bytes());
        let answer = client.until(|message| message.get("error").is_some());
        assert_eq!(answer["error"]["code"], code, "{line}: {answer}");
    }
    client.send_raw(b"\xff\xfe\n\n\r\n");
    let deep = format!("{}{}\n", "[".repeat(100_000), "]".repeat(100_000));
    client.send_raw(deep.as_bytes());
    let calls = [
        ("tools/call", json!({"nam": "bash"}), -32602),
        ("tools/call", json!({"name": "bash", "arguments": 7}), -32602),
        ("no/such", json!({}), -32601),
    ];
    for (method, params, code) in calls {
        assert_eq!(client.ask(method, params)["error"]["code"], code, "{method}");
    }
    client.notify("notifications/no_such", json!({}));
    client.notify("notifications/cancelled", json!({"requestId": 12345}));
    assert_eq!(client.text("bash", json!({"command": "echo on"})), "on\n\nexit_code: 0");
    client.end();
}

fn a_call_before_initialize_is_refused_and_initialize_still_works() {
    let mut client = Client::launched("root", &["--root", "."]);
    client.notify("notifications/initialized", json!({}));
    client.notify("notifications/cancelled", json!({"requestId": 1}));
    client.send(&json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    let early = client.ask("tools/call", json!({"name": "glob", "arguments": {"pattern": "*"}}));
    assert_eq!(early["error"]["code"], -32602, "{early}");
    assert_eq!(client.ask("ping", json!({}))["result"], json!({}));
    client.initialize();
    client.text("glob", json!({"pattern": "*"}));
    client.end();
}

/// The longest line that is taken.
const MOST_LINE: usize = 16 << 20;

fn a_line_without_end_is_not_held() {
    let mut client = Client::of_root();
    client.text("glob", json!({"pattern": "*"}));
    let before = client.status("VmHWM");
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..200 {
        client.send_raw(&piece);
    }
    client.send_raw(b"\n");
    let refused = client.until(|message| message.get("error").is_some());
    assert!(refused["error"]["message"].as_str().unwrap().contains("16 MiB"), "{refused}");
    let most = (2 * MOST_LINE as u64 + (8 << 20)) >> 10;
    let grown = client.status("VmHWM") - before;
    assert!(grown < most, "{grown} KiB more for a line that is not taken");
    client.text("glob", json!({"pattern": "*"}));
    client.end();
}

fn many_small_values_are_not_held() {
    let mut client = Client::of_root();
    client.text("glob", json!({"pattern": "*"}));
    let before = client.status("VmHWM");
    let head = r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"bash","arguments":{"a":"#;
    client.send_raw(format!("{head}[0{}]}}}}}}\n", ",0".repeat(7_000_000)).as_bytes());
    let refused = client.until(|message| message.get("error").is_some());
    assert!(refused["error"]["message"].as_str().unwrap().contains("values"), "{refused}");
    let grown = client.status("VmHWM") - before;
    assert!(grown < 48 << 10, "{grown} KiB more for a message that is not taken");
    let many = vec!["a"; 100];
    let failure = client.failure("read_file", json!({"path": "a", "more": many}));
    assert!(failure.contains("more"), "{failure}");
    client.end();
}

fn a_message_of_the_largest_size_is_taken() {
    let mut client = Client::of_root();
    let content = "x".repeat(MOST_LINE - 1024);
    client.text("write_file", json!({"path": "large", "content": content}));
    assert_eq!(std::fs::metadata(client.path("root/large")).unwrap().len(), content.len() as u64);
    client.end();
}

fn sixty_four_calls_at_once_have_their_own_answers() {
    let mut client = Client::of_root();
    let ids: Vec<i64> = (0..64)
        .map(|number| {
            client.write(&format!("root/{number}"), &format!("file {number}"));
            let arguments = json!({"path": number.to_string()});
            client.request("tools/call", json!({"name": "read_file", "arguments": arguments}))
        })
        .collect();
    let mut answers: Vec<Value> = Vec::new();
    while answers.len() < ids.len() {
        answers.push(client.until(|message| message.get("result").is_some()));
    }
    for (number, id) in ids.iter().enumerate() {
        let answer = answers.iter().find(|answer| answer["id"] == *id).unwrap();
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with(&format!("1:file {number}\n")), "{answer}");
    }
    client.end();
}

fn an_id_that_is_in_use_is_refused_and_free_again_later() {
    let mut client = Client::of_root();
    let (id, pid) = client.begin("echo ready; sleep 1000");
    let second = json!({"name": "bash", "arguments": {"command": "touch ran"}});
    let second = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": second});
    client.send(&second);
    let refused = client.answer(id);
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    assert!(!client.path("root/ran").exists());
    // The first one goes on, and can be cancelled.
    client.notify("notifications/cancelled", json!({"requestId": id}));
    wait_for_end(pid);
    client.send(&second);
    assert_eq!(client.answer(id)["result"]["isError"], false);
    assert!(client.path("root/ran").exists());
    client.end();
}

fn a_client_that_reads_nothing_is_not_read_from() {
    const MOST_ASKED: i64 = 100_000;
    let directory = directory();
    let mut command = server(directory.path(), "root", &["--root", "."]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let hello = json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "story", "version": "1"},
        },
    });
    writeln!(input, "{hello}").unwrap();
    let mut asked = 0;
    // Each answer is thousands of bytes. A pipe that stays full for this long has nobody who reads it.
    let full_for = Timespec { tv_sec: 2, tv_nsec: 0 };
    while asked < MOST_ASKED {
        let mut polled = [PollFd::new(&input, PollFlags::OUT)];
        if poll(&mut polled, Some(&full_for)).unwrap() == 0 {
            break;
        }
        asked += 1;
        writeln!(input, "{}", json!({"jsonrpc": "2.0", "id": asked, "method": "tools/list"}))
            .unwrap();
    }
    assert!(asked < MOST_ASKED, "the server reads on although nobody reads its answers");
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let resident: u64 = resident.split_whitespace().next().unwrap().parse().unwrap();
    assert!(resident < 160 << 10, "{resident} KiB are held for a client that reads nothing");

    // Once it reads, everything that it asked is answered.
    let writer = std::thread::spawn(move || {
        writeln!(input, "{}", json!({"jsonrpc": "2.0", "id": asked + 1, "method": "ping"}))
            .unwrap();
        input
    });
    let mut open: std::collections::HashSet<i64> = (0..=asked + 1).collect();
    let mut lines = BufReader::new(output).lines();
    while !open.is_empty() {
        let message: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        open.remove(&message["id"].as_i64().unwrap());
    }
    drop(writer.join().unwrap());
    assert!(child.wait().unwrap().success());
}

fn a_client_that_goes_away_ends_its_commands_and_the_server() {
    let mut client = Client::of_root();
    let (_, pid) = client.begin("echo ready; sleep 1000 & sleep 1000");
    client.input = None;
    wait_for_end(pid);
    client.ended();
}

fn a_killed_launcher_ends_the_server_whoever_holds_its_input() {
    let directory = directory();
    let inner = server(directory.path(), "root", &["--root", "."]);
    let mut launcher = std::process::Command::new("sh");
    launcher
        .args(["-c", "exec 3<&0; \"$0\" mcp --root . <&3 3<&- & echo $! >&2; wait"])
        .arg(inner.get_program())
        .current_dir(directory.path().join("root"))
        .envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = launcher.spawn().unwrap();
    // Held by this process to the end.
    let mut input = child.stdin.take().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    let pid: u32 = said.next().unwrap().unwrap().trim().parse().unwrap();
    writeln!(input, "{}", json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    answers.next().unwrap().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for_end(pid);
    drop(input);
}

fn a_signal_ends_the_server_and_the_call_is_answered() {
    let mut client = Client::of_root();
    let (id, pid) = client.begin("echo ready; sleep 1000");
    let server = Pid::from_raw(i32::try_from(client.child.id()).unwrap()).unwrap();
    kill_process(server, Signal::TERM).unwrap();
    let answer = client.answer(id);
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    wait_for_end(pid);
    client.ended();
}

fn a_client_that_closes_its_end_of_the_output_ends_the_server() {
    let directory = directory();
    let mut server = server(directory.path(), "root", &["--root", "."]);
    server.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = server.spawn().unwrap();
    // Held to the end.
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{}", json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    answers.next().unwrap().unwrap();
    drop(answers);
    assert!(child.wait().unwrap().success());
    drop(input);
}

fn a_killed_server_leaves_no_command() {
    let mut client = Client::of_root();
    let (_, pid) = client.begin("echo ready; sleep 1000");
    client.child.kill().unwrap();
    wait_for_end(pid);
    assert!(client.input.as_ref().unwrap().as_fd().try_clone_to_owned().is_ok());
}
