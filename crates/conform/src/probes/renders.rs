//! Render of what a host stores, and of what nobody does.

use super::super::checks::Check;
use super::super::runs;
use super::super::session::{SESSION, Session};
use super::super::trial::{Operation, Trial, is_broken};
use crate::observe::{ObservedTree, Origin, Refusal};
use tool_provider::Call;
use tool_provider::Payload;
use tool_provider::grpc::{Failure, persisted_call, persisted_result};

/// Under which a host stores events.
const EVENTS: &str = "1";
/// A version that no provider writes.
const NO_VERSION: &str = "conform-no-such-version";

pub(super) async fn all(trial: &mut Trial, session: &Session, operations: &[Operation]) {
    if trial.report.wants(&[Check::RenderPersisted]) {
        for (what, stored) in stored(operations) {
            let Some(answer) = ask(trial, session, &what, EVENTS, stored).await else {
                let seen = format!("{what}: {}", trial.no_answer());
                trial.report.fail(Check::RenderPersisted, seen, "a tree");
                continue;
            };
            match answer {
                Ok(tree) => trial.tree(Check::RenderPersisted, &what, tree.as_ref()),
                Err(refusal) if refusal.is_unimplemented() => {
                    let note = "Render is not there, which is optional";
                    trial.report.pass_with(Check::RenderPersisted, note);
                }
                Err(refusal) if is_broken(&refusal) => {
                    let seen = format!("{what}: {refusal}");
                    trial.report.fail(Check::RenderPersisted, seen, "a tree, or UNIMPLEMENTED");
                }
                Err(refusal) => {
                    let seen = format!("{what}: {refusal}");
                    let better = "a tree: without one a host shows the bare JSON";
                    trial.report.weigh(Check::RenderPersisted, [seen], better);
                }
            }
        }
    }
    if trial.report.wants(&[Check::RenderVersion]) {
        let payload = persisted_result("conform-1", &Ok(Payload::new()));
        let what = format!("Render of schema_version {NO_VERSION:?}");
        let seen = match ask(trial, session, "an unknown version", NO_VERSION, payload).await {
            None => Some(trial.no_answer()),
            Some(Ok(_)) => {
                let better = "a refusal: how such a payload is written cannot be known";
                trial.report.remark(Check::RenderVersion, format!("{what}: a tree"), better);
                None
            }
            Some(Err(refusal)) if is_broken(&refusal) => Some(refusal.to_string()),
            Some(Err(_)) => None,
        };
        let seen = seen.map(|seen| format!("{what}: {seen}"));
        trial.report.judge(Check::RenderVersion, seen, "a refusal, as INVALID_ARGUMENT");
    }
    if trial.report.wants(&[Check::RenderGarbage]) {
        for garbage in [Vec::new(), vec![0xff; 64], b"{\"not\": ".to_vec(), vec![0x12; 4096]] {
            let what = format!("{} bytes of garbage", garbage.len());
            let seen = match ask(trial, session, &what, EVENTS, garbage).await {
                None => Some(trial.no_answer()),
                Some(Err(refusal)) if refusal.origin == Origin::Connection => {
                    Some(refusal.to_string())
                }
                Some(Ok(tree)) => {
                    trial.tree(Check::RenderGarbage, &what, tree.as_ref());
                    None
                }
                Some(Err(_)) => None,
            };
            let seen = seen.map(|seen| format!("{what}: {seen}"));
            trial.report.judge(Check::RenderGarbage, seen, "a tree or a refusal");
        }
    }
}

/// What a host has stored by now.
fn stored(operations: &[Operation]) -> Vec<(String, Vec<u8>)> {
    let mut stored = Vec::new();
    for operation in operations {
        let name = &operation.tool.name;
        if let Some((arguments, result)) = &operation.good {
            let call = Call {
                id: "conform-1".to_owned(),
                tool: name.clone(),
                arguments: arguments.clone(),
                session_id: SESSION.to_owned(),
                ..Call::default()
            };
            stored.push((format!("the stored call of {name}"), persisted_call(&call)));
            let result = persisted_result("conform-1", &Ok(result.clone()));
            stored.push((format!("the stored result of {name}"), result));
        }
        if let Some((_, error)) = &operation.failing {
            let failure = Failure {
                category: runs::category_name(error.category),
                message: error.message.clone(),
                retryable: error.retryable,
                details: error.details.clone().unwrap_or_default(),
            };
            let failure = persisted_result("conform-1", &Err(failure));
            stored.push((format!("the stored failure of {name}"), failure));
        }
    }
    let crash = Failure {
        category: "process_crashed".to_owned(),
        message: "the plugin ended".to_owned(),
        retryable: false,
        details: Payload::new(),
    };
    let crash = persisted_result("conform-1", &Err(crash));
    stored.push(("a failure that the host made".to_owned(), crash));
    stored
}

async fn ask(
    trial: &mut Trial,
    session: &Session,
    what: &str,
    version: &str,
    payload: Vec<u8>,
) -> Option<Result<Option<ObservedTree>, Refusal>> {
    let mut observer = session.observer.clone();
    let answer = trial.within(observer.render(version, payload)).await;
    if let Some(Err(refusal)) = &answer {
        trial.refused(&format!("Render of {what}"), refusal);
    }
    answer
}
