//! What a call tells of a session: its state, its output, its end.

use std::time::{Duration, Instant};

use sandbox::{ExitStatus, LimitHit};

use super::watch::{self, Found};
use super::{Entry, SessionSettings, end_notice, fields};
use crate::Context;
use crate::bash::notice;
use crate::field::NOTICE;
use crate::process::FullOutput;
use crate::process::session::{EndCause, Ended, Part, Session, Standing};
use crate::process::signal_name;
use tool_provider::{Event, Payload};
use workspace_fs::text::name;

/// How long the last event may wait for space in the queue.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// How much at the end may be the beginning of a character, of an escape sequence or of a secret: it is told
/// with what comes next, and is no reason for a file.
const MOST_HELD_BACK: u64 = 4 * 1024;

const WAITING: &str = "waiting_for_input";

/// What is told where a session on pipes waits and says nothing.
const MAYBE_PROMPT: &str = "prompts may show only with tty: true";

/// What of the output is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// From there on, as much as fits.
    From(u64),
    /// The last that fits of what came from there on.
    Since(u64),
    /// The same, of all that it printed: what came before counts as left out.
    End(u64),
    /// The screen of its terminal as it stands.
    Screen,
}

impl Shown {
    /// What came from there on, or the screen while a program has it to itself.
    pub(crate) fn since(session: &Session, from: u64) -> Self {
        if session.shows_screen(from) { Self::Screen } else { Self::Since(from) }
    }
}

/// The answer about one session, which is looked at first. If it has ended and nobody was told, the
/// event that tells it goes out.
pub(crate) fn answer(
    entry: &Entry,
    shown: Shown,
    found: Option<Found>,
    most: usize,
    settings: SessionSettings,
    context: &Context<'_>,
) -> Payload {
    let session = &*entry.session;
    let standing = watch::look(session);
    let mut payload = state(entry, &standing);
    let to = &mut payload;
    let last = |from| session.last_part(from, most, context.secrets);
    match (shown, session.screen()) {
        (Shown::Screen, Some(screen)) => {
            fields::OUTPUT.put(to, context.secrets.mask_text(&screen.text).into_owned());
            fields::IS_SCREEN.put(to, true);
            fields::CURSOR.put(to, format!("{},{}", screen.cursor.0, screen.cursor.1));
            fields::NEXT.put(to, standing.end);
        }
        (Shown::Screen, None) => put(to, session, 0, last(0)),
        (Shown::From(from), _) => {
            let part = session.part(from, most, context.secrets);
            put_part(to, session, from, part, found, most, context);
        }
        (Shown::Since(from), _) => {
            put_part(to, session, from, last(from), found, most, context);
        }
        (Shown::End(from), _) => put_part(to, session, 0, last(from), found, most, context),
    }
    let mut notices: Vec<String> = end_notice(session, settings).into_iter().collect();
    if let Some(ended) = &standing.ended {
        notices.extend(left_running(ended, context));
        notices.extend(ended.notices.iter().cloned());
        notices.extend(filled_tmp(ended));
        tell_exit(session, ended, context);
    }
    let is_silent = fields::OUTPUT.get(to) == Some("") && !session.is_on_terminal();
    if is_silent && fields::STATE.get(to) == Some(WAITING) {
        notices.push(MAYBE_PROMPT.to_owned());
    }
    if !notices.is_empty() {
        NOTICE.put(to, notices.join("\n"));
    }
    payload
}

/// What a session's command left running when it ended by itself.
fn left_running(ended: &Ended, context: &Context<'_>) -> Option<String> {
    let report = ended.end.as_ref().ok().filter(|_| ended.stopped.is_none())?;
    let names = report.left_running();
    notice::of_leftovers_of_session(report.processes_killed, names, context.secrets)
}

fn filled_tmp(ended: &Ended) -> Option<String> {
    let report = ended.end.as_ref().ok()?;
    (report.limit == Some(LimitHit::Tmp)).then(|| notice::TMP_IS_FULL.to_owned())
}

/// Puts a part, or the one that begins with what was found where it is not in this one.
fn put_part(
    to: &mut Payload,
    session: &Session,
    from: u64,
    part: Part,
    found: Option<Found>,
    most: usize,
    context: &Context<'_>,
) {
    match found.filter(|found| found.begin < part.begin || found.end > part.next) {
        Some(found) => {
            put(to, session, from, session.part(found.begin, most, context.secrets));
            fields::MATCH_AT.put(to, found.begin);
        }
        None => put(to, session, from, part),
    }
}

/// Puts a part of what came from `from` on, and how much of that it leaves out.
fn put(to: &mut Payload, session: &Session, from: u64, part: Part) {
    let end = session.standing().end;
    fields::OUTPUT.put(to, part.text);
    fields::NEXT.put(to, part.next);
    let more = end.saturating_sub(part.next);
    let left_out = part.begin.saturating_sub(from);
    if more > 0 {
        fields::MORE_BYTES.put(to, more);
    }
    if left_out > 0 {
        fields::LEFT_OUT_BYTES.put(to, left_out);
    }
    if left_out > 0 || more > MOST_HELD_BACK {
        fields::FULL_OUTPUT_PATH.put_some(to, full_output_path(session));
    }
}

fn full_output_path(session: &Session) -> Option<String> {
    match session.full_output()? {
        FullOutput::Complete(path) | FullOutput::Beginning { path, .. } => {
            Some(name::of(&path).into_owned())
        }
        FullOutput::Failed(_) => None,
    }
}

/// Adds to what else is told.
pub(crate) fn add_notice(payload: &mut Payload, more: &str) {
    let notice = match NOTICE.get(payload) {
        Some(notice) => format!("{notice}\n{more}"),
        None => more.to_owned(),
    };
    NOTICE.put(payload, notice);
}

/// The fields that say how a session stands.
pub(crate) fn state(entry: &Entry, standing: &Standing) -> Payload {
    let mut payload = Payload::new();
    let to = &mut payload;
    fields::SESSION.put(to, entry.name.as_str());
    let state = match standing.ended.as_deref() {
        None if !standing.has_unread_input && standing.waits() => WAITING,
        None => "running",
        Some(Ended { stopped: Some((EndCause::Stopped, _)), .. }) => "stopped",
        Some(ended) if ended.stopped.is_some() || ended.end.is_err() => "killed",
        Some(_) => "exited",
    };
    fields::STATE.put(to, state);
    if let Some(Ended { end: Ok(report), stopped, .. }) = standing.ended.as_deref()
        // By a signal of ours: that says nothing.
        && !(stopped.is_some() && matches!(report.status, ExitStatus::Signaled(_)))
    {
        fields::EXIT_CODE.put(to, report.status.shell_code());
        if let ExitStatus::Signaled(signal) = report.status {
            fields::SIGNAL.put(to, signal_name(signal));
        }
    }
    payload
}

/// Tells the host of the end, once.
fn tell_exit(session: &Session, ended: &Ended, context: &Context<'_>) {
    let Ok(report) = &ended.end else { return };
    if !session.claim_exit() {
        return;
    }
    let signal = match report.status {
        ExitStatus::Exited(_) => None,
        ExitStatus::Signaled(signal) => Some(signal_name(signal)),
    };
    let event = Event::Exit { code: report.status.shell_code(), signal };
    // The result has it too.
    let _ = context.sink.emit_until(event, Some(Instant::now() + LAST_WORDS));
}
