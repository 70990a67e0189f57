//! What the four session tools share: the sessions of a configuration, and how a call meets one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sandbox::Jail;

use crate::process::session::{EndCause, Session};
use crate::process::{Spool, Unreported};
use crate::{BashSettings, Context};
use tool_provider::{Payload, ToolError};
use workspace_fs::text::hidden::one_line;

pub mod fields;

mod echo;
mod interactive;

pub(crate) mod answer;

pub(crate) mod keys;
pub(crate) mod ports;
pub(crate) mod regex;
pub(crate) mod show;
pub(crate) mod starter;
mod table;
pub(crate) mod watch;

use starter::Starter;
pub use table::SessionTable;
pub(crate) use table::{Entry, Generation, NoPlace};

/// What an operator configured for sessions.
#[derive(Clone, Copy, Debug)]
pub struct SessionSettings {
    /// How many may run at once.
    pub most: usize,
    /// After how long without a call that names it one is ended.
    pub idle_limit: Duration,
}

impl Default for SessionSettings {
    fn default() -> Self {
        Self { most: 16, idle_limit: Duration::from_secs(30 * 60) }
    }
}

/// The longest that a call waits; one that asks for more is answered then.
pub(crate) const MOST_WAIT_MS: u64 = 120_000;

/// A host's deadline for a call that waits: the longest wait, a start, and an answer.
pub(crate) const DEADLINE: Duration = Duration::from_secs(135);

/// What the tools work on. Without a jail they describe themselves and show what was.
pub struct ShellSessions {
    pub(crate) settings: SessionSettings,
    pub(crate) bash: BashSettings,
    ready: Option<Ready>,
}

/// What a configuration adds.
pub(crate) struct Ready {
    pub(crate) jail: Arc<Jail>,
    pub(crate) spool: Arc<Spool>,
    pub(crate) starter: Starter,
    pub(crate) sessions: Generation,
}

impl ShellSessions {
    /// The sessions of a configuration, which are ended when this is dropped. Those of an earlier one
    /// are ended now: their jail is no longer that of later calls. Starts a thread, so not to be called
    /// on one of the jail's own.
    ///
    /// # Errors
    /// Where there is no thread.
    pub fn new(
        settings: SessionSettings,
        bash: BashSettings,
        jail: Arc<Jail>,
        spool: Arc<Spool>,
        table: &Arc<SessionTable>,
    ) -> std::io::Result<Self> {
        let starter = Starter::new()?;
        let sessions = table.begin_generation();
        Ok(Self { settings, bash, ready: Some(Ready { jail, spool, starter, sessions }) })
    }

    /// The tools before any configuration.
    #[must_use]
    pub fn unconfigured() -> Self {
        let (settings, bash) = (SessionSettings::default(), BashSettings::default());
        Self { settings, bash, ready: None }
    }

    /// What a configuration added.
    ///
    /// # Errors
    /// `permission_denied` before the first.
    pub(crate) fn ready(&self) -> Result<&Ready, ToolError> {
        let missing = || ToolError::permission_denied("not configured: no roots");
        self.ready.as_ref().ok_or_else(missing)
    }

    pub(crate) fn jail(&self) -> Option<&Jail> {
        self.ready.as_ref().map(|ready| &*ready.jail)
    }

    /// The session of this name that the host's session started.
    ///
    /// # Errors
    /// `not_found`, with the names that there are.
    pub(crate) fn find(&self, context: &Context<'_>, name: &str) -> Result<Entry, ToolError> {
        let sessions = &self.ready()?.sessions;
        sessions.find(context.session_id, name).ok_or_else(|| {
            let names: Vec<String> =
                sessions.list(context.session_id).into_iter().map(|entry| entry.name).collect();
            let known = match names.is_empty() {
                true => "there is none; session_start starts one".to_owned(),
                false => format!("there is {}", names.join(", ")),
            };
            let shown: String = name.chars().take(64).collect();
            ToolError::not_found(format!("no session is called {:?}: {known}", one_line(&shown)))
        })
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        self.sessions.end(EndCause::Provider);
    }
}

/// Has a cancel wake the call that waits for this session.
pub(crate) fn wake_on_cancel(session: &Arc<Session>, context: &Context<'_>) {
    let woken = session.clone();
    context.cancel.on_cancel(move || woken.nudge());
}

/// How long a call waits at most: what it says, or `usual`, and never more than [`MOST_WAIT_MS`].
pub(crate) fn wait(arguments: &Payload, usual: u64) -> Duration {
    let asked = fields::WAIT_MS.unsigned(arguments).unwrap_or(usual);
    Duration::from_millis(asked.min(MOST_WAIT_MS))
}

/// When a call that waits so long has to answer: in time for the host's deadline.
pub(crate) fn deadline(wait: Duration, context: &Context<'_>) -> Instant {
    let own = Instant::now() + wait;
    // The last look at the session, and the answer.
    let host = context.deadline.and_then(|deadline| deadline.checked_sub(ANSWER));
    host.map_or(own, |host| own.min(host))
}

/// How long an answer takes at most.
const ANSWER: Duration = Duration::from_millis(400);

/// Why a session was ended, for a sentence that begins "the session was ended: ".
pub(crate) fn cause(cause: EndCause, settings: SessionSettings) -> String {
    match cause {
        EndCause::Stopped => "session_stop asked for it".to_owned(),
        EndCause::Cancelled => "the call that started it was cancelled".to_owned(),
        EndCause::Idle => format!(
            "no call named it for {} s (session_idle_ms)",
            settings.idle_limit.as_secs_f64()
        ),
        EndCause::HostSession => "the host's session ended".to_owned(),
        EndCause::Configured => {
            "the provider was configured anew, which makes a new jail: start it again".to_owned()
        }
        EndCause::Provider => "the provider ended".to_owned(),
    }
}

/// What is said of a session that had to end, where nobody asked for it by a call, or of which it is not known
/// how it ended.
pub(crate) fn end_notice(session: &Session, settings: SessionSettings) -> Option<String> {
    let ended = session.standing().ended?;
    let cause = match ended.stopped {
        None | Some((EndCause::Stopped, _)) => None,
        Some((because, _)) => Some(format!("the session was ended: {}", cause(because, settings))),
    };
    let unknown = match &ended.end {
        Ok(_) => None,
        Err(Unreported::Lost(_)) => Some(LOST.to_owned()),
        Err(Unreported::Stuck(_)) => Some(STUCK.to_owned()),
    };
    let notices: Vec<String> = cause.into_iter().chain(unknown).collect();
    (!notices.is_empty()).then(|| notices.join("\n"))
}

/// The supervisor of the session died: only somebody outside the jail or the kernel ends it.
const LOST: &str = "the session's supervisor was killed from outside, perhaps for want of memory, and all of \
                    the session with it: its exit code is not known";

/// The session did not go away after SIGKILL.
const STUCK: &str = "the session was sent SIGKILL, and the system has not taken all of it away yet";
