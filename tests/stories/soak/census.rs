//! What a provider holds: counted once it has come to rest.

use std::fmt;
use std::time::{Duration, Instant};

use crate::harness::{Fixture, names};

/// Workers wait this long for another call before they end, with time to spare.
const REST: Duration = Duration::from_secs(60);

/// Threads that may be about to start or to end, whatever a provider does.
const THREADS: u64 = 2;

pub(crate) struct Census {
    descriptors: Option<usize>,
    threads: u64,
    processes: usize,
    jails: usize,
}

impl Census {
    fn of(fixture: &Fixture) -> Self {
        let pid = fixture.pid();
        Self {
            descriptors: fixture.descriptors(),
            threads: fixture.status("Threads"),
            processes: descendants(pid),
            jails: fixture.jails(),
        }
    }

    /// The count once it is no larger than `before`, and without that once it stays as it is.
    ///
    /// # Panics
    /// Where it stays larger.
    pub(crate) async fn settled(fixture: &Fixture, before: Option<&Self>) -> Self {
        let limit = Instant::now() + REST;
        let mut last = Self::of(fixture);
        loop {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let now = Self::of(fixture);
            let settled = match before {
                Some(before) => now.is_within(before),
                None => now.is_within(&last) && last.is_within(&now),
            };
            if settled {
                return now;
            }
            if let (Some(before), true) = (before, Instant::now() > limit) {
                panic!("something stays: {before} before, {now} after");
            }
            last = now;
        }
    }

    fn is_within(&self, before: &Self) -> bool {
        self.descriptors <= before.descriptors
            && self.threads <= before.threads + THREADS
            && self.processes <= before.processes
            && self.jails <= before.jails
    }
}

impl fmt::Display for Census {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.descriptors {
            Some(descriptors) => write!(f, "{descriptors} descriptors, ")?,
            None => write!(f, "descriptors not shown to this user, ")?,
        }
        let Self { threads, processes, jails, .. } = self;
        write!(f, "{threads} threads, {processes} processes, {jails} jails' directories")
    }
}

/// How many processes stand below this one.
fn descendants(pid: u32) -> usize {
    let parents: Vec<(u32, u32)> = names("/proc".as_ref())
        .iter()
        .filter_map(|name| name.parse().ok())
        .filter_map(|pid| Some((pid, parent(pid)?)))
        .collect();
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(above) = found.get(next).copied() {
        found.extend(parents.iter().filter(|(_, parent)| *parent == above).map(|(pid, _)| pid));
        next += 1;
    }
    found.len() - 1
}

fn parent(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}
