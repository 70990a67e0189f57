//! The provider's own socket, in a directory that its commands may write: no way out of the jail.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::json;
use tool_provider::Event;

use crate::harness::{Fixture, TEST_TIMEOUT, refusal};
use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_command_cannot_take_the_hosts_place,
        a_command_of_another_provider_cannot_take_the_hosts_place,
        a_command_cannot_move_the_socket,
    ]
}

/// What an HTTP/2 client says first: its preface and empty settings.
const GREETING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// Whoever reaches the socket could configure the provider anew, without a jail. No command of a jail
/// reaches it, wherever it lies; where there is no jail a command is turned away, also by its grandchild in
/// a session of its own. Another process of the same user is served, as a host's tools are.
async fn a_command_cannot_take_the_hosts_place() {
    for sandbox in ["enforce", "off"] {
        let mut fixture = Fixture::launched().await;
        let program = std::env::current_exe().unwrap();
        let socket = std::fs::canonicalize(&fixture.sockets()[0]).unwrap();
        let granted = program.parent().unwrap().parent().unwrap();
        let mut config = json!({"roots": ["."], "bash_read": [granted], "sandbox": sandbox});
        if let Err(error) = fixture.configure(config.clone()).await {
            // Without namespaces nothing hides it, and the roots have to be others.
            let said = refusal(error).1.message;
            assert!(said.contains("PLUGIN_UNIX_SOCKET_DIR") && said.contains("TMPDIR"), "{said}");
            assert_eq!(sandbox, "enforce");
            config["roots"] = json!(["root"]);
            fixture.configure(config).await.unwrap();
        }
        let caller = format!("{SOCKET}={} {}", socket.display(), program.display(),);
        for command in [caller.clone(), format!("setsid sh -c '{caller} & wait'")] {
            let said = output(&mut fixture, &command).await;
            assert!(["turned away", "out of reach"].contains(&said.trim()), "{said}");
        }
        assert!(is_served(&socket), "a process that the provider did not start");
        fixture.end().await;
    }
}

/// A host of several providers may give one a directory for temporary files that another's commands may
/// write. A command without a jail reaches the socket, so a jailed one could.
async fn a_command_of_another_provider_cannot_take_the_hosts_place() {
    let other = Fixture::launched().await;
    let socket = std::fs::canonicalize(&other.sockets()[0]).unwrap();
    let shared = socket.parent().unwrap().parent().unwrap();
    let program = std::env::current_exe().unwrap();
    let granted = program.parent().unwrap().parent().unwrap();
    // Without namespaces a command gets no socket at all.
    let refused = ["turned away", "out of reach"];
    for (sandbox, expected) in [("enforce", &refused[..]), ("off", &["was served"])] {
        let mut fixture = Fixture::launched().await;
        let config = json!({"roots": ["root"], "bash_read": [granted], "bash_write": [shared],
            "sandbox": sandbox});
        fixture.configure(config).await.unwrap();
        let caller = format!("{SOCKET}={} {}", socket.display(), program.display());
        for command in [caller.clone(), format!("setsid sh -c '{caller} & wait'")] {
            let said = output(&mut fixture, &command).await;
            assert!(expected.contains(&said.trim()), "{sandbox}: {said}");
        }
        fixture.end().await;
    }
    assert!(is_served(&socket), "a process that no provider started");
    other.end().await;
}

/// At the level that hides it, commands cannot move what leads to it either.
async fn a_command_cannot_move_the_socket() {
    let mut fixture = Fixture::launched().await;
    let socket = std::fs::canonicalize(&fixture.sockets()[0]).unwrap();
    if fixture.configure(json!({"roots": ["."]})).await.is_ok() {
        let own = socket.parent().unwrap();
        for (from, to) in [(own, "moved"), (own.parent().unwrap(), "moved-too")] {
            let said = output(&mut fixture, &format!("mv {} {to} 2>&1", from.display())).await;
            assert!(said.contains("resource busy"), "{said}");
        }
        assert_eq!(output(&mut fixture, &format!("ls -A {}", own.display())).await, "");
        assert_eq!(output(&mut fixture, "mv root other && ls -d other").await, "other\n");
    }
    assert!(is_served(&socket));
    fixture.end().await;
}

/// What a command prints.
async fn output(fixture: &mut Fixture, command: &str) -> String {
    let (events, outcome) = fixture.call("bash", json!({ "command": command })).await;
    outcome.unwrap();
    let printed = events.into_iter().filter_map(|event| match event {
        Event::Output { data, .. } => Some(data.to_vec()),
        _ => None,
    });
    String::from_utf8_lossy(&printed.flatten().collect::<Vec<u8>>()).into_owned()
}

/// Names the socket that this program shall call, inside the jail.
const SOCKET: &str = "STORY_SOCKET";

/// Calls the socket, where the story started this program in its jail, and prints what came of it.
pub(crate) fn call_if_asked() -> Option<ExitCode> {
    let socket = PathBuf::from(std::env::var_os(SOCKET)?);
    eprintln!("{}", answer(&socket));
    Some(ExitCode::SUCCESS)
}

fn is_served(socket: &Path) -> bool {
    answer(socket) == "was served"
}

fn answer(socket: &Path) -> &'static str {
    let Ok(mut stream) = UnixStream::connect(socket) else { return "out of reach" };
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    let mut answer = [0];
    let served = stream.write_all(GREETING).is_ok() && matches!(stream.read(&mut answer), Ok(1));
    if served { "was served" } else { "turned away" }
}
