//! What is tried, in the order in which it is tried. Each part looks at one stage of a provider's
//! life.

mod calls;
mod cancel;
mod config;
mod declared;
mod ends;
mod faults;
mod hooks;
mod launch;
mod previews;
mod renders;

use super::checks::Check;
use super::processes;
use super::session::Session;
use super::trial::{Operation, Trial};
use crate::observe::ObservedAttribute;
use tool_provider::Payload;

pub(crate) use launch::Untestable;

/// Checks that need no session but their own launches.
const LAUNCHES: &[Check] = &[
    Check::Cookie,
    Check::Version,
    Check::AutoMtls,
    Check::Multiplexing,
    Check::CallbacksOptional,
    Check::Terminate,
    Check::HostDeath,
    Check::UnknownKey,
    Check::WrongType,
    Check::MissingRequired,
    Check::StatusDetails,
];

/// Tries everything that is to be tried.
///
/// # Errors
/// [`Untestable`] when the binary is no plugin.
pub(crate) async fn all(trial: &mut Trial) -> Result<(), Untestable> {
    let Some(session) = launch::first(trial).await? else { return Ok(()) };
    let life = main_session(trial, &session).await;
    ends::shut_down(trial, session, ends::Leftovers::Judged).await;
    let needs_launches = trial.report.wants(LAUNCHES);
    if needs_launches {
        launch::others(trial, life.as_ref()).await;
    }
    ends::others(trial, life.as_ref()).await;
    let note = "a provider need not log to the host";
    trial.report.pass_with_unless_tried(Check::CallbackLog, note);
    let note = "no refusal had details, which are optional";
    trial.report.pass_with_unless_tried(Check::StatusDetails, note);
    Ok(())
}

/// What the first session found out, for those after it.
pub(crate) struct Life {
    pub(crate) operations: Vec<Operation>,
    /// The keys of its configuration, and one that it accepted.
    pub(crate) attributes: Vec<ObservedAttribute>,
    pub(crate) config: Payload,
}

/// The life of a provider up to its end; nothing where it did not get as far as being configured.
async fn main_session(trial: &mut Trial, session: &Session) -> Option<Life> {
    launch::connected(trial, session).await;
    declared::identity(trial, session).await;
    let schema = declared::schema(trial, session).await?;
    config::declared(trial, &schema.config);
    let mut operations: Vec<Operation> = schema
        .tools
        .iter()
        .map(|tool| Operation {
            tool: tool.clone(),
            samples: trial.settings.calls.get(&tool.name).cloned().unwrap_or_default(),
            shell: None,
            probed_without_preview: false,
            good: None,
            failing: None,
        })
        .collect();
    if operations.is_empty() {
        for check in [Check::ExitStatus, Check::OutputSchema, Check::PreviewProbe] {
            trial.report.pass_with(check, "there is no operation");
        }
    }
    previews::probe(trial, session, &mut operations).await;
    calls::unconfigured(trial, session, &operations).await;
    let config = config::configure(trial, session, &schema.config).await?;
    hooks::all(trial, session, &schema.hook_points).await;
    still_there(trial, session, "while it was configured")?;
    if let Err(error) = trial.fixture.adopt() {
        trial.report.stop(format!("the directory cannot be read: {error}"));
        return None;
    }
    calls::learn(trial, session, &mut operations).await;
    still_there(trial, session, "in ordinary calls")?;
    calls::confinement(trial, session, &operations).await;
    calls::side_by_side(trial, session, &operations).await;
    faults::refusals(trial, session, &operations).await;
    still_there(trial, session, "in calls that it should refuse")?;
    previews::all(trial, session, &operations).await;
    still_there(trial, session, "in previews")?;
    renders::all(trial, session, &operations).await;
    still_there(trial, session, "in Render")?;
    cancel::all(trial, session, &operations).await;
    ends::interrupt(trial, session).await;
    still_there(trial, session, "in cancelled calls or at SIGINT")?;
    trial.report.pass(Check::Unavailable);
    trial.report.pass(Check::Survives);
    Some(Life { operations, attributes: schema.config, config })
}

/// Whether the provider still runs; reports what it did where it does not.
fn still_there(trial: &mut Trial, session: &Session, when: &str) -> Option<()> {
    if let Some(pid) = session.plugin.pid()
        && processes::runs(pid)
    {
        return Some(());
    }
    trial.report.fail(Check::Survives, format!("the process ended {when}"), "that it goes on");
    trial.report.stop(format!("the process ended {when} (see life.survives)"));
    None
}
