//! ConfigSchema and Configure.

use serde_json::Value;

use super::super::checks::Check;
use super::super::derive::{
    self, ATTR_LIST_NUMBER, ATTR_LIST_STRING, ATTR_MAP_STRING, ATTR_OBJECT, ATTR_STRING,
};
use super::super::session::Session;
use super::super::trial::Trial;
use crate::service::observe::{Observer, Refusal, SeenAttribute};
use crate::tools::Payload;

/// A key that no provider has.
const NO_KEY: &str = "conform_no_such_key";
/// What is sent where a secret is asked for.
const SECRET: &str = "conform-secret-5b1f3a";

/// The rules of what is declared.
pub(super) fn declared(trial: &mut Trial, attributes: &[SeenAttribute]) {
    let mut problems = Vec::new();
    let mut defaults = Vec::new();
    look_at("", attributes, &mut problems, &mut defaults);
    let wanted = "a name of its own and a known type; inner keys in objects alone; secrets as text";
    trial.report.judge(Check::ConfigSchema, problems, wanted);
    let wanted = "a JSON text of the type, and none where the key is required";
    trial.report.judge(Check::ConfigDefaults, defaults, wanted);
}

fn look_at(
    place: &str,
    attributes: &[SeenAttribute],
    problems: &mut Vec<String>,
    defaults: &mut Vec<String>,
) {
    for (index, attribute) in attributes.iter().enumerate() {
        let name = format!("{place}{}", attribute.name);
        if attribute.name.is_empty() {
            problems.push(format!("a key without a name in {place:?}"));
        }
        if attributes[..index].iter().any(|other| other.name == attribute.name) {
            problems.push(format!("{name} twice"));
        }
        if !(ATTR_STRING..=ATTR_OBJECT).contains(&attribute.kind) {
            problems.push(format!("{name} of type {}", attribute.kind));
        }
        if attribute.kind != ATTR_OBJECT && !attribute.attributes.is_empty() {
            problems.push(format!("{name} has inner keys and is no object"));
        }
        let is_many =
            matches!(attribute.kind, ATTR_LIST_STRING | ATTR_LIST_NUMBER | ATTR_MAP_STRING);
        if attribute.sensitive && is_many {
            problems.push(format!("{name} is a secret and a list or map"));
        }
        match attribute.default_json.as_deref().map(serde_json::from_str::<Value>) {
            None => {}
            Some(_) if attribute.required => {
                defaults.push(format!("{name} is required and has a default"));
            }
            Some(Err(error)) => defaults.push(format!("{name}: no JSON: {error}")),
            Some(Ok(value)) if !derive::is_of_type(&value, attribute) => {
                defaults.push(format!("{name}: {value} is not of its type"));
            }
            Some(Ok(_)) => {}
        }
        look_at(&format!("{name}."), &attribute.attributes, problems, defaults);
    }
}

/// Configure: what it must refuse, and then what it must accept. Nothing where that is refused.
pub(super) async fn configure(
    trial: &mut Trial,
    session: &Session,
    attributes: &[SeenAttribute],
) -> Option<Payload> {
    let derived = derive::configuration(attributes, &trial.folder(), SECRET);
    let config = trial.settings.config.clone().unwrap_or(derived);
    trial.secrets = secrets(&config, attributes);
    let mut observer = session.observer.clone();
    refuse_what_is_wrong(trial, &mut observer, &config, attributes).await;
    if trial.report.wants(&[Check::NullIsLeftOut]) {
        let mut with_null = config.clone();
        for attribute in attributes.iter().filter(|attribute| !attribute.required) {
            with_null.entry(attribute.name.clone()).or_insert(Value::Null);
        }
        let seen = match ask(trial, &mut observer, "null", with_null).await {
            Some(Ok(())) => None,
            Some(Err(refusal)) => Some(refusal.to_string()),
            None => Some(trial.no_answer()),
        };
        trial.report.judge(Check::NullIsLeftOut, seen, "null taken for left out");
    }
    let seen = match ask(trial, &mut observer, "a configuration", config.clone()).await {
        Some(Ok(())) => None,
        Some(Err(refusal)) => Some(refusal.to_string()),
        None => Some(trial.no_answer()),
    };
    let is_accepted = seen.is_none();
    let seen = seen.map(|seen| format!("{}: {seen}", Value::Object(config.clone())));
    let wanted = "that it is accepted (give config in --config where the checker guessed wrong)";
    trial.report.judge(Check::Accepted, seen, wanted);
    match trial.secrets.is_empty() {
        true => trial.report.pass_with(Check::Secrets, "no key of the configuration is a secret"),
        false => trial.report.pass(Check::Secrets),
    }
    is_accepted.then_some(config)
}

async fn refuse_what_is_wrong(
    trial: &mut Trial,
    observer: &mut Observer,
    config: &Payload,
    attributes: &[SeenAttribute],
) {
    if trial.report.wants(&[Check::UnknownKey, Check::StatusDetails]) {
        let mut wrong = config.clone();
        wrong.insert(NO_KEY.to_owned(), "x".into());
        must_refuse(trial, observer, Check::UnknownKey, "an unknown key", wrong).await;
    }
    if trial.report.wants(&[Check::WrongType]) {
        for attribute in attributes {
            let mut wrong = config.clone();
            wrong.insert(attribute.name.clone(), derive::wrong_setting(attribute));
            let what = format!("{} of another type", attribute.name);
            must_refuse(trial, observer, Check::WrongType, &what, wrong).await;
        }
        if attributes.is_empty() {
            trial.report.pass_with(Check::WrongType, "there are no keys");
        }
    }
    if trial.report.wants(&[Check::MissingRequired]) {
        let mut required = attributes.iter().filter(|attribute| attribute.required).peekable();
        if required.peek().is_none() {
            trial.report.pass_with(Check::MissingRequired, "no key is required");
        }
        for attribute in required {
            let mut wrong = config.clone();
            wrong.remove(&attribute.name);
            let what = format!("no {}", attribute.name);
            must_refuse(trial, observer, Check::MissingRequired, &what, wrong.clone()).await;
            wrong.insert(attribute.name.clone(), Value::Null);
            let what = format!("null for {}", attribute.name);
            must_refuse(trial, observer, Check::MissingRequired, &what, wrong).await;
        }
    }
}

async fn must_refuse(
    trial: &mut Trial,
    observer: &mut Observer,
    check: Check,
    what: &str,
    config: Payload,
) {
    let seen = match ask(trial, observer, what, config).await {
        Some(Err(_)) => None,
        Some(Ok(())) => Some(format!("{what}: it was accepted")),
        None => Some(format!("{what}: {}", trial.no_answer())),
    };
    trial.report.judge(check, seen, "a refusal");
}

async fn ask(
    trial: &mut Trial,
    observer: &mut Observer,
    what: &str,
    config: Payload,
) -> Option<Result<(), Refusal>> {
    let answer = trial.within(observer.configure(config)).await;
    if let Some(Err(refusal)) = &answer {
        trial.refused(&format!("Configure with {what}"), refusal);
    }
    answer
}

/// The secrets in a configuration.
fn secrets(config: &Payload, attributes: &[SeenAttribute]) -> Vec<String> {
    let mut found = Vec::new();
    for attribute in attributes {
        match config.get(&attribute.name) {
            Some(Value::String(text)) if attribute.sensitive && !text.is_empty() => {
                found.push(text.clone());
            }
            Some(Value::Object(inner)) => found.extend(secrets(inner, &attribute.attributes)),
            _ => {}
        }
    }
    found
}
