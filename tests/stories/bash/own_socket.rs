//! The provider's own socket, in a directory that its commands may write: no way out of the jail.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;
use tool_provider::Event;

use crate::harness::{Fixture, TEST_TIMEOUT};
use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    trials![a_command_cannot_take_the_hosts_place,]
}

/// What an HTTP/2 client says first: its preface and empty settings.
const GREETING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// Whoever reaches the socket could configure the provider anew, without a jail. A command that has
/// the socket's directory in its roots is turned away, also by its grandchild in a session of its own;
/// another process of the same user is served, as a host's tools are.
async fn a_command_cannot_take_the_hosts_place() {
    let mut fixture = Fixture::launched().await;
    let program = std::env::current_exe().unwrap();
    let socket = std::fs::canonicalize(&fixture.sockets()[0]).unwrap();
    let granted = program.parent().unwrap().parent().unwrap();
    fixture.configure(json!({"roots": ["."], "bash_read": [granted]})).await.unwrap();
    let caller = format!("{SOCKET}={} {}", socket.display(), program.display(),);
    for command in [caller.clone(), format!("setsid sh -c '{caller} & wait'")] {
        let (events, outcome) = fixture.call("bash", json!({ "command": command })).await;
        let said: Vec<u8> = events
            .into_iter()
            .filter_map(|event| match event {
                Event::Output { data, .. } => Some(data.to_vec()),
                _ => None,
            })
            .flatten()
            .collect();
        let said = String::from_utf8_lossy(&said).into_owned();
        outcome.unwrap();
        assert!(said.contains("turned away") && !said.contains("was served"), "{said}");
    }
    assert!(is_served(&socket), "a process that the provider did not start");
    fixture.end().await;
}

/// Names the socket that this program shall call, inside the jail.
const SOCKET: &str = "STORY_SOCKET";

/// Calls the socket, where the story started this program in its jail, and prints what came of it.
pub(crate) fn call_if_asked() -> Option<ExitCode> {
    let socket = PathBuf::from(std::env::var_os(SOCKET)?);
    eprintln!("{}", if is_served(&socket) { "was served" } else { "turned away" });
    Some(ExitCode::SUCCESS)
}

/// Without namespaces there is no socket to be had in the jail, which is as well.
fn is_served(socket: &PathBuf) -> bool {
    let Ok(mut stream) = UnixStream::connect(socket) else { return false };
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    let mut answer = [0];
    stream.write_all(GREETING).is_ok() && matches!(stream.read(&mut answer), Ok(1))
}
