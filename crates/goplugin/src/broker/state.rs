//! What one side's broker remembers.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::DIAL_LIMIT;
use crate::listener::SocketFile;
use crate::pb::ConnInfo;
use crate::pb::conn_info::Knock;

/// Messages that wait for the broker's stream, addresses and knocks that wait to be used. The
/// oldest go first.
pub(super) const BACKLOG: usize = 64;

#[derive(Default)]
pub(super) struct State {
    pub(super) outgoing: Option<mpsc::Sender<ConnInfo>>,
    /// Cancelled when the broker's stream has ended.
    pub(super) peer_gone: CancellationToken,
    /// What was said before there was a stream to say it on.
    pub(super) unsent: VecDeque<ConnInfo>,
    /// Where the other side serves, newest last. go-plugin drops an address that nobody dialled
    /// within five seconds; here it stays, because a host announces its callback service once and
    /// the first call may come much later.
    pub(super) addresses: VecDeque<ConnInfo>,
    /// Knocks for ids that nobody accepted yet.
    pub(super) knocks: VecDeque<(u32, Instant)>,
    /// The socket of each running service. Here, and not with its task: tasks may not live to
    /// see the end of the process.
    pub(super) files: HashMap<u64, SocketFile>,
    /// The dial that waits for its knock to be answered.
    pub(super) knocking: Option<(u32, oneshot::Sender<Knock>)>,
}

impl State {
    pub(super) fn keep_unsent(&mut self, message: ConnInfo) {
        push_bounded(&mut self.unsent, message);
    }

    pub(super) fn keep_address(&mut self, info: ConnInfo) {
        self.addresses.retain(|known| known.service_id != info.service_id);
        push_bounded(&mut self.addresses, info);
    }

    pub(super) fn address(&self, id: u32) -> Option<ConnInfo> {
        self.addresses.iter().find(|known| known.service_id == id).cloned()
    }

    pub(super) fn forget_address(&mut self, info: &ConnInfo) {
        self.addresses.retain(|known| known != info);
    }

    pub(super) fn keep_knock(&mut self, id: u32) {
        self.knocks.retain(|(known, since)| *known != id && since.elapsed() < DIAL_LIMIT);
        push_bounded(&mut self.knocks, (id, Instant::now()));
    }

    /// Whether somebody knocked for `id` and still waits.
    pub(super) fn take_knock(&mut self, id: u32) -> bool {
        let before = self.knocks.len();
        self.knocks.retain(|(_, since)| since.elapsed() < DIAL_LIMIT);
        let expired = before - self.knocks.len();
        self.knocks.retain(|(known, _)| *known != id);
        before - expired > self.knocks.len()
    }
}

fn push_bounded<T>(queue: &mut VecDeque<T>, item: T) {
    if queue.len() >= BACKLOG {
        queue.pop_front();
    }
    queue.push_back(item);
}
