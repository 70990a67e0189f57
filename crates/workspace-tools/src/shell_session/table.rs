//! Which sessions there are, by whom they were started.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::process::session::{EndCause, Session};

/// How many sessions that have ended are kept, for what they printed last.
const MOST_ENDED: usize = 16;

/// The sessions of a provider. It outlives a configuration, so that one can be asked how it ended.
#[derive(Debug, Default)]
pub struct SessionTable {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    entries: Vec<Entry>,
    /// How many were named.
    named: u64,
    /// How many are being started.
    starting: usize,
    /// Which configuration may start some.
    generation: u64,
}

/// A session, and what it is known by.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The host's session that started it.
    owner: Arc<str>,
    pub(crate) name: String,
    /// Its command, masked and shortened.
    pub(crate) command: String,
    pub(crate) session: Arc<Session>,
    generation: u64,
}

/// Those of one configuration.
#[derive(Debug)]
pub(crate) struct Generation {
    table: Arc<SessionTable>,
    number: u64,
}

/// Why no session may be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoPlace {
    #[error("{0} sessions run already")]
    Full(usize),
    #[error("a session of this name runs already")]
    Taken,
    #[error("the provider was configured anew")]
    Outdated,
}

/// A place for a session that is being started.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    generation: &'a Generation,
    owner: &'a str,
    name: String,
}

impl SessionTable {
    /// Begins a configuration: ends the sessions of earlier ones, and waits for that.
    pub(crate) fn begin_generation(self: &Arc<Self>) -> Generation {
        let number = {
            let mut inner = self.lock();
            inner.generation += 1;
            inner.generation
        };
        self.end_where(EndCause::Configured, |entry| entry.generation < number);
        Generation { table: self.clone(), number }
    }

    /// Ends what a session of the host started. Returns at once.
    pub fn end_of_host_session(&self, owner: &str) {
        for entry in self.lock().entries.iter().filter(|entry| &*entry.owner == owner) {
            entry.session.stop(EndCause::HostSession);
        }
    }

    fn end_where(&self, cause: EndCause, is_meant: impl Fn(&Entry) -> bool) {
        let meant: Vec<Arc<Session>> = {
            let inner = self.lock();
            let meant = inner.entries.iter().filter(|entry| is_meant(entry));
            meant.map(|entry| entry.session.clone()).collect()
        };
        meant.iter().for_each(|session| session.stop(cause));
        meant.iter().for_each(|session| session.join());
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Generation {
    /// Reserves a place for a session of this name, or of the next number.
    pub(crate) fn reserve<'a>(
        &'a self,
        owner: &'a str,
        name: Option<&str>,
        most: usize,
    ) -> Result<Place<'a>, NoPlace> {
        let mut inner = self.table.lock();
        if inner.generation != self.number {
            return Err(NoPlace::Outdated);
        }
        let running = inner.entries.iter().filter(|entry| is_running(entry)).count();
        if running + inner.starting >= most {
            return Err(NoPlace::Full(running + inner.starting));
        }
        let is_taken = |inner: &Inner, name: &str| {
            let same = |entry: &&Entry| &*entry.owner == owner && entry.name == name;
            inner.entries.iter().find(same).is_some_and(is_running)
        };
        let name = match name {
            Some(name) if is_taken(&inner, name) => return Err(NoPlace::Taken),
            Some(name) => name.to_owned(),
            None => loop {
                inner.named += 1;
                let name = format!("s{}", inner.named);
                if !is_taken(&inner, &name) {
                    break name;
                }
            },
        };
        inner.starting += 1;
        Ok(Place { generation: self, owner, name })
    }

    /// The session of this name that `owner` started, also where it has ended.
    pub(crate) fn find(&self, owner: &str, name: &str) -> Option<Entry> {
        let inner = self.table.lock();
        inner.entries.iter().find(|entry| &*entry.owner == owner && entry.name == name).cloned()
    }

    /// What `owner` started, the oldest first.
    pub(crate) fn list(&self, owner: &str) -> Vec<Entry> {
        let inner = self.table.lock();
        inner.entries.iter().filter(|entry| &*entry.owner == owner).cloned().collect()
    }

    /// Ends all of them, and waits for that.
    pub(crate) fn end(&self, cause: EndCause) {
        self.table.end_where(cause, |entry| entry.generation == self.number);
    }
}

impl Place<'_> {
    /// Gives the place to a session. A configuration that came meanwhile ends it.
    pub(crate) fn fill(self, command: String, session: Session) -> Entry {
        let entry = Entry {
            owner: self.owner.into(),
            name: self.name.clone(),
            command,
            session: Arc::new(session),
            generation: self.generation.number,
        };
        let mut inner = self.generation.table.lock();
        // One of the same name has ended.
        inner.entries.retain(|other| other.owner != entry.owner || other.name != entry.name);
        inner.entries.push(entry.clone());
        if inner.generation != entry.generation {
            entry.session.stop(EndCause::Configured);
        }
        let ended = inner.entries.iter().filter(|entry| !is_running(entry)).count();
        for _ in MOST_ENDED..ended {
            if let Some(oldest) = inner.entries.iter().position(|entry| !is_running(entry)) {
                inner.entries.remove(oldest);
            }
        }
        entry
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.generation.table.lock().starting -= 1;
    }
}

fn is_running(entry: &Entry) -> bool {
    entry.session.standing().ended.is_none()
}
