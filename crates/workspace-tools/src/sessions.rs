//! What each session knows of the files, for as many sessions as fit.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use xxhash_rust::xxh3::xxh3_128;

use workspace_fs::Session;

/// Sessions that are remembered. The least recently used one is forgotten first; a session that
/// is forgotten has read nothing, which can only make a write more careful.
const MOST: usize = 256;

/// The sessions, by the host's name for them.
#[derive(Debug, Default)]
pub struct Sessions {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// By the hash of the host's name, so that a long name costs no more than a short one.
    by_id: HashMap<u128, Entry>,
    clock: u64,
}

#[derive(Debug)]
struct Entry {
    session: Arc<Session>,
    last_used: u64,
}

impl Sessions {
    /// The session of this name, new where it is not known. Calls without a session's name share
    /// one.
    pub(crate) fn session(&self, id: &str) -> Arc<Session> {
        let id = xxh3_128(id.as_bytes());
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.clock += 1;
        let now = inner.clock;
        if let Some(entry) = inner.by_id.get_mut(&id) {
            entry.last_used = now;
            return entry.session.clone();
        }
        if inner.by_id.len() >= MOST {
            let oldest = inner.by_id.iter().min_by_key(|(_, entry)| entry.last_used);
            if let Some(oldest) = oldest.map(|(id, _)| *id) {
                inner.by_id.remove(&oldest);
            }
        }
        let session = Arc::new(Session::default());
        inner.by_id.insert(id, Entry { session: session.clone(), last_used: now });
        session
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_kept_while_it_is_used_and_the_number_is_bounded() {
        let sessions = Sessions::default();
        let first = sessions.session("first");
        for number in 0..MOST * 2 {
            sessions.session(&number.to_string());
            assert!(Arc::ptr_eq(&first, &sessions.session("first")));
        }
        let known = sessions.inner.lock().unwrap().by_id.len();
        assert_eq!(known, MOST);
        let gone = sessions.inner.lock().unwrap().by_id.contains_key(&xxh3_128(b"0"));
        assert!(!gone);
    }
}
