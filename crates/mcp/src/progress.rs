//! What a call reports while it runs, for a client that asked for it.

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::{Peer, RoleServer};
use tool_provider::{Event, OutputStream};

use crate::printed::Printed;

/// The notifications of one call.
pub(crate) struct Progress {
    peer: Peer<RoleServer>,
    token: ProgressToken,
    /// How many were sent: the protocol wants a number that grows, whatever is in progress.
    sent: u32,
    stdout: Printed,
    stderr: Printed,
}

impl Progress {
    pub(crate) fn new(peer: Peer<RoleServer>, token: ProgressToken) -> Self {
        let (stdout, stderr) = (Printed::default(), Printed::default());
        Self { peer, token, sent: 0, stdout, stderr }
    }

    /// Sends what an event has for the one who waits: output as it comes, and lines about what is in
    /// progress. It waits while the client reads nothing, and the tool with it.
    pub(crate) async fn report(&mut self, event: Event) {
        let message = match event {
            Event::Output { stream, data } => {
                let printed = match stream {
                    OutputStream::Stdout => &mut self.stdout,
                    OutputStream::Stderr => &mut self.stderr,
                };
                printed.push(&String::from_utf8_lossy(&data))
            }
            Event::Progress { message, fraction: None } => message,
            Event::Progress { message, fraction: Some(done) } => {
                format!("{message} ({:.0} %)", done * 100.0)
            }
            Event::Partial(_) | Event::Exit { .. } => return,
        };
        if message.is_empty() {
            return;
        }
        self.sent += 1;
        let param = ProgressNotificationParam::new(self.token.clone(), f64::from(self.sent))
            .with_message(message);
        // A client that is gone ends the call by another way.
        let _ = self.peer.notify_progress(param).await;
    }
}
