//! The hook service of a provider that advertises the end of a session.

use prost::Message as _;

use super::super::checks::Check;
use super::super::session::Session;
use super::super::trial::Trial;
use tool_provider::grpc::pb::hook::v1::dispatch_hook_response::Result as Answer;
use tool_provider::grpc::pb::hook::v1::hook_payload::Point;
use tool_provider::grpc::pb::hook::v1::{
    DispatchHookRequest, HookMode, HookPayload, SessionEndPayload,
};

/// The session of the payloads: none of the other checks.
const SESSION: &str = "conform-hook-session";

/// Tells it of the end of a session, in each mode.
pub(super) async fn all(trial: &mut Trial, session: &Session, points: &[i32]) {
    if !points.contains(&SESSION_END) {
        let note = "the end of a session is not advertised as a hook point, which is optional";
        trial.report.pass_with(Check::Hooks, note);
        return;
    }
    for mode in [HookMode::Observe, HookMode::Transform, HookMode::Veto] {
        let mut observer = session.observer.clone();
        let request = DispatchHookRequest {
            payload: Some(payload()),
            mode: mode.into(),
            subscription_id: None,
        };
        let wanted = match mode {
            HookMode::Transform => "transform, with a payload",
            HookMode::Veto => "veto, with a decision",
            _ => "observe",
        };
        let answer = match trial.within(observer.dispatch_hook(request)).await {
            None => {
                let seen = trial.no_answer();
                return trial.report.fail(Check::Hooks, seen, wanted);
            }
            Some(Err(refusal)) => {
                trial.refused("DispatchHook", &refusal);
                return trial.report.fail(Check::Hooks, refusal.to_string(), wanted);
            }
            Some(Ok(answer)) => answer.result,
        };
        let fits = match (mode, &answer) {
            (HookMode::Observe, Some(Answer::Observe(_))) => true,
            (HookMode::Transform, Some(Answer::Transform(changed))) => {
                let point = changed.payload.as_ref().and_then(|payload| payload.point.as_ref());
                matches!(point, Some(Point::SessionEnd(_)))
            }
            (HookMode::Veto, Some(Answer::Veto(veto))) => (1..=2).contains(&veto.decision),
            _ => false,
        };
        if !fits {
            let seen = format!("{answer:?} to the mode {mode:?}");
            return trial.report.fail(Check::Hooks, seen, wanted);
        }
    }
    trial.report.pass(Check::Hooks);
}

/// The wire number of the point whose payload this checker knows.
const SESSION_END: i32 = 8;

fn payload() -> HookPayload {
    let end = SessionEndPayload { session_id: SESSION.to_owned(), status: 1 };
    HookPayload { point: Some(Point::SessionEnd(end.encode_to_vec())) }
}
