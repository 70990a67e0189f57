//! What a call tells of a session: its state, its output, its end.

use std::time::{Duration, Instant};

use sandbox::ExitStatus;

use super::{Entry, SessionSettings, end_notice, fields, watch};
use crate::Context;
use crate::field::NOTICE;
use crate::process::FullOutput;
use crate::process::session::{Ended, Part, Session, Standing};
use crate::process::signal_name;
use tool_provider::{Event, Payload};
use workspace_fs::text::name;

/// How long the last event may wait for space in the queue.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// What of the output is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// From there on, as much as fits.
    From(u64),
    /// The last that fits of what came from there on.
    Since(u64),
    /// The screen of its terminal as it stands.
    Screen,
}

impl Shown {
    /// What came from there on, or the screen while a program has it to itself.
    pub(crate) fn since(session: &Session, from: u64) -> Self {
        if session.standing().is_full_screen { Self::Screen } else { Self::Since(from) }
    }
}

/// The answer about one session, which is looked at first. If it has ended and nobody was told, the
/// event that tells it goes out.
pub(crate) fn answer(
    entry: &Entry,
    shown: Shown,
    most: usize,
    settings: SessionSettings,
    context: &Context<'_>,
) -> Payload {
    let session = &*entry.session;
    let standing = watch::look(session);
    let mut payload = state(entry, &standing);
    let to = &mut payload;
    match (shown, session.screen()) {
        (Shown::Screen, Some(screen)) => {
            fields::OUTPUT.put(to, context.secrets.mask_text(&screen.text).into_owned());
            fields::IS_SCREEN.put(to, true);
            fields::CURSOR.put(to, format!("{},{}", screen.cursor.0, screen.cursor.1));
            fields::NEXT.put(to, standing.end);
        }
        (Shown::Screen, None) => put_part(to, session, standing.end, last(session, most, context)),
        (Shown::From(from), _) => {
            put_part(to, session, from, session.part(from, most, context.secrets));
        }
        (Shown::Since(from), _) => {
            put_part(to, session, from, session.last_part(from, most, context.secrets));
        }
    }
    let mut notices: Vec<String> = end_notice(session, settings).into_iter().collect();
    if let Some(ended) = &standing.ended {
        notices.extend(ended.notices.iter().cloned());
        tell_exit(session, ended, context);
    }
    if !notices.is_empty() {
        NOTICE.put(to, notices.join("\n"));
    }
    payload
}

fn last(session: &Session, most: usize, context: &Context<'_>) -> Part {
    session.last_part(0, most, context.secrets)
}

fn put_part(to: &mut Payload, session: &Session, from: u64, part: Part) {
    let end = session.standing().end;
    fields::OUTPUT.put(to, part.text);
    fields::NEXT.put(to, part.next);
    let more = end.saturating_sub(part.next);
    if more > 0 {
        fields::MORE_BYTES.put(to, more);
    }
    let dropped = part.begin.saturating_sub(from);
    if dropped > 0 {
        fields::DROPPED_BYTES.put(to, dropped);
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

/// The fields that say how a session stands.
pub(crate) fn state(entry: &Entry, standing: &Standing) -> Payload {
    let mut payload = Payload::new();
    let to = &mut payload;
    fields::SESSION.put(to, entry.name.as_str());
    let state = match &standing.ended {
        None if !standing.has_unread_input
            && standing.look.is_some_and(|look| look.waiting.is_some()) =>
        {
            "waiting_for_input"
        }
        None => "running",
        Some(ended) if ended.stopped.is_some() => "killed",
        Some(_) => "exited",
    };
    fields::STATE.put(to, state);
    if let Some(Ended { end: Ok(report), .. }) = standing.ended.as_deref() {
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
