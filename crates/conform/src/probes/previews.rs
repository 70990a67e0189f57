//! Preview: before there is a configuration, of calls that would succeed and of calls that would
//! fail; and what it changes, which is nothing.

use super::super::checks::Check;
use super::super::fixture::State;
use super::super::session::{Session, bare};
use super::super::trial::{Operation, Trial, is_broken};
use super::calls::shown;
use crate::observe::{ObservedTree, Refusal};
use tool_provider::Payload;

/// A host's probe: every operation with nothing.
pub(super) async fn probe(trial: &mut Trial, session: &Session, operations: &mut [Operation]) {
    if !trial.report.wants(&[Check::PreviewProbe, Check::StatusDetails]) {
        return;
    }
    let wanted = "INVALID_ARGUMENT where something is required, UNIMPLEMENTED, or a tree";
    for operation in operations {
        let name = operation.tool.name.clone();
        let what = format!("the preview of {name} without arguments");
        let seen = match ask(trial, session, &what, &name, &Payload::new()).await {
            None => Some(trial.no_answer()),
            Some(Err(refusal)) if refusal.is_unimplemented() => {
                operation.probed_without_preview = true;
                None
            }
            Some(Err(refusal)) if refusal.code == "INVALID_ARGUMENT" => None,
            Some(Err(refusal)) if is_broken(&refusal) => Some(refusal.to_string()),
            Some(Err(refusal)) => {
                let seen = format!("{what}: {refusal}");
                trial.report.remark(Check::PreviewProbe, seen, wanted);
                None
            }
            Some(Ok(tree)) => {
                trial.tree(Check::PreviewTree, &what, tree.as_ref());
                None
            }
        };
        let seen = seen.map(|seen| format!("{what}: {seen}"));
        trial.report.judge(Check::PreviewProbe, seen, wanted);
    }
}

/// Previews of calls that are known to succeed, and of calls that are known to fail.
pub(super) async fn all(trial: &mut Trial, session: &Session, operations: &[Operation]) {
    const CHECKS: [Check; 4] =
        [Check::PreviewProbe, Check::PreviewTree, Check::PreviewSideEffects, Check::PreviewFailing];
    if !trial.report.wants(&CHECKS) {
        return;
    }
    let before = match trial.fixture.reset().and_then(|()| trial.fixture.state()) {
        Ok(before) => before,
        Err(error) => {
            return trial.report.not_reached(Check::PreviewSideEffects, error.to_string());
        }
    };
    let mut tried = false;
    let mut failed = false;
    for operation in operations {
        let name = &operation.tool.name;
        if let Some((good, _)) = &operation.good {
            tried = true;
            let what = format!("the preview of {name} {}", shown(good));
            match ask(trial, session, &what, name, good).await {
                None => {
                    let seen = format!("{what}: {}", trial.no_answer());
                    trial.report.fail(Check::PreviewTree, seen, "a tree");
                }
                Some(Err(refusal)) if refusal.is_unimplemented() => {
                    let note = format!("{name} has no preview, which is optional");
                    trial.report.pass_with(Check::PreviewTree, note);
                }
                Some(Err(refusal)) if is_broken(&refusal) => {
                    let seen = format!("{what}: {refusal}");
                    trial.report.fail(Check::PreviewTree, seen, "a tree, or UNIMPLEMENTED");
                }
                Some(Err(refusal)) => {
                    let seen = format!("{what}: {refusal}; the call itself gives a result");
                    let better = "a tree: a host previews without a call_context";
                    trial.report.weigh(Check::PreviewTree, [seen], better);
                }
                Some(Ok(tree)) => {
                    trial.tree(Check::PreviewTree, &what, tree.as_ref());
                    let seen = operation.probed_without_preview.then(|| {
                        format!("{name}: UNIMPLEMENTED without arguments, a tree with some")
                    });
                    let wanted = "INVALID_ARGUMENT without arguments, as UNIMPLEMENTED says to a host \
                                  that there is no preview";
                    trial.report.judge(Check::PreviewProbe, seen, wanted);
                }
            }
            unchanged(trial, &before, &what);
        }
        if let Some((failing, _)) = &operation.failing {
            failed = true;
            let what = format!("the preview of {name} {}, which fails", shown(failing));
            let seen = match ask(trial, session, &what, name, failing).await {
                None => Some(trial.no_answer()),
                Some(Err(refusal)) if is_broken(&refusal) => Some(refusal.to_string()),
                Some(Err(_)) => None,
                Some(Ok(tree)) => {
                    trial.tree(Check::PreviewFailing, &what, tree.as_ref());
                    None
                }
            };
            let seen = seen.map(|seen| format!("{what}: {seen}"));
            trial.report.judge(Check::PreviewFailing, seen, "a tree or a refusal");
            unchanged(trial, &before, &what);
        }
    }
    if !tried {
        for check in [Check::PreviewTree, Check::PreviewSideEffects] {
            trial.report.not_reached(check, "no operation gave a result that could be previewed");
        }
    }
    if !failed {
        let why =
            "no call is known to fail; where there is one, give calls.NAME.failing in --config";
        trial.report.not_reached(Check::PreviewFailing, why);
    }
}

fn unchanged(trial: &mut Trial, before: &State, what: &str) {
    match trial.fixture.state() {
        Ok(after) => {
            let changes = before.changes(&after);
            let problems = changes.into_iter().map(|change| format!("{what}: {change}"));
            trial.report.judge(Check::PreviewSideEffects, problems, "the directory as it was");
        }
        Err(error) => trial.report.not_reached(Check::PreviewSideEffects, error.to_string()),
    }
}

async fn ask(
    trial: &mut Trial,
    session: &Session,
    what: &str,
    name: &str,
    arguments: &Payload,
) -> Option<Result<Option<ObservedTree>, Refusal>> {
    let mut observer = session.observer.clone();
    let answer = trial.within(observer.preview(Some(bare(name, arguments)))).await;
    if let Some(Err(refusal)) = &answer {
        trial.refused(what, refusal);
    }
    answer
}
