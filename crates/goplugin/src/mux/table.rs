//! Who gets a stream that comes in. No streams move here; they are whatever `L` takes.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// A dialler that was acknowledged and opens no stream for this long has given up, and its place
/// must not go to somebody else's stream.
const STREAM_LIMIT: Duration = Duration::from_secs(10);

/// The listeners of one session, and whose stream comes next.
pub(super) struct Table<L> {
    listeners: HashMap<u32, L>,
    /// Acknowledged knocks whose stream has not come in yet, in order.
    announced: VecDeque<(u32, Instant)>,
}

impl<L> Default for Table<L> {
    fn default() -> Self {
        Table { listeners: HashMap::new(), announced: VecDeque::new() }
    }
}

impl<L> Table<L> {
    /// Gives the streams of service `id` to `listener` from now on.
    pub(super) fn listen(&mut self, id: u32, listener: L) {
        self.listeners.insert(id, listener);
    }

    pub(super) fn listener(&self, id: u32) -> Option<&L> {
        self.listeners.get(&id)
    }

    pub(super) fn forget(&mut self, id: u32) {
        self.listeners.remove(&id);
    }

    /// The next stream belongs to `id`, behind those that were announced before.
    pub(super) fn announce(&mut self, id: u32, now: Instant) {
        self.announced.push_back((id, now));
    }

    /// Another session begins: what was announced on the last one does not come any more.
    pub(super) fn forget_announced(&mut self) {
        self.announced.clear();
    }

    /// Who gets the stream that just came in; `main` where it was not announced. `None`: nobody.
    pub(super) fn claim<'a>(&'a mut self, now: Instant, main: Option<&'a L>) -> Option<&'a L> {
        while let Some((id, since)) = self.announced.pop_front() {
            if now.saturating_duration_since(since) < STREAM_LIMIT {
                return self.listeners.get(&id);
            }
        }
        main
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_go_in_the_order_of_their_announcements_and_else_to_the_main_server() {
        let now = Instant::now();
        let mut table = Table::default();
        table.listen(1, "one");
        table.listen(2, "two");
        table.announce(2, now);
        table.announce(1, now);
        let claimed = [(); 3].map(|()| table.claim(now, Some(&"main")).copied());
        assert_eq!(claimed, [Some("two"), Some("one"), Some("main")]);
        assert_eq!(table.claim(now, None), None);
    }

    #[test]
    fn an_announcement_whose_dialler_gave_up_takes_nobody_s_stream() {
        let now = Instant::now();
        let mut table = Table::default();
        table.listen(1, "one");
        table.announce(1, now);
        table.announce(3, now + STREAM_LIMIT);
        // The first is too old by then, and the second has no listener.
        assert_eq!(table.claim(now + STREAM_LIMIT, Some(&"main")), None);
        assert_eq!(table.claim(now + STREAM_LIMIT, Some(&"main")), Some(&"main"));
    }
}
