//! ConfigSchema and Configure.

use serde_json::Value;

use super::super::checks::Check;
use super::super::derive::{
    self, ATTR_LIST_NUMBER, ATTR_LIST_STRING, ATTR_MAP_STRING, ATTR_OBJECT, ATTR_STRING,
};
use super::super::session::Session;
use super::super::trial::{Callbacks, Trial, is_broken};
use super::{Life, ends};
use crate::observe::{ObservedAttribute, Observer, Refusal};
use tool_provider::Payload;
use tool_provider::error::chain;

/// A key that no provider has.
const NO_KEY: &str = "conform_no_such_key";
/// What is sent where a secret is asked for.
const SECRET: &str = "conform-secret-5b1f3a";

/// Shortest text that counts as a secret, in bytes: a shorter one is in other texts by chance.
const SHORTEST: usize = 6;

/// The rules of what is declared.
pub(super) fn declared(trial: &mut Trial, attributes: &[ObservedAttribute]) {
    let mut problems = Vec::new();
    let mut defaults = Vec::new();
    look_at("", attributes, &mut problems, &mut defaults);
    let wanted = "a name of its own and a known type; inner keys in objects alone; secrets as text";
    trial.report.judge(Check::ConfigSchema, problems, wanted);
    let wanted = "a JSON text of the attribute's type";
    trial.report.judge(Check::ConfigDefaults, defaults, wanted);
}

fn look_at(
    path: &str,
    attributes: &[ObservedAttribute],
    problems: &mut Vec<String>,
    defaults: &mut Vec<String>,
) {
    for (index, attribute) in attributes.iter().enumerate() {
        let name = format!("{path}{}", attribute.name);
        if attribute.name.is_empty() {
            problems.push(format!("a key without a name in {path:?}"));
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
            Some(Ok(Value::Null)) => {}
            Some(Err(error)) => defaults.push(format!("{name}: no JSON: {error}")),
            Some(Ok(value)) if !derive::is_of_type(&value, attribute) => {
                defaults.push(format!("{name}: {value} is not of its type"));
            }
            Some(Ok(_)) => {}
        }
        look_at(&format!("{name}."), &attribute.attributes, problems, defaults);
    }
}

/// What is asked of Configure.
struct Asked<'a> {
    attributes: &'a [ObservedAttribute],
    config: Payload,
}

/// Configures as a host does: with every key, null for those that are left out. Nothing where that
/// is refused.
pub(super) async fn configure(
    trial: &mut Trial,
    session: &Session,
    attributes: &[ObservedAttribute],
) -> Option<Payload> {
    let derived = derive::configuration(attributes, &trial.directory(), SECRET);
    let is_given = trial.settings.config.is_some();
    let config = trial.settings.config.clone().unwrap_or(derived);
    trial.secrets = secrets(&config, attributes);
    let mut whole = config.clone();
    for attribute in attributes {
        whole.entry(attribute.name.clone()).or_insert(Value::Null);
    }
    let has_nulls = whole != config;
    let mut observer = session.observer.clone();
    let shown = Value::Object(config.clone());
    let answer = ask(trial, &mut observer, "null for what is left out", whole).await;
    let mut refused = trial.fault_of(answer);
    if has_nulls && let Some(with_null) = refused {
        let answer = ask(trial, &mut observer, "a configuration", config.clone()).await;
        refused = trial.fault_of(answer);
        if refused.is_none() {
            let seen =
                format!("{shown} was accepted, and with null for every other key: {with_null}");
            trial.report.fail(Check::NullIsLeftOut, seen, "null taken for left out");
        }
    }
    match trial.secrets.is_empty() {
        true => trial.report.pass_with(Check::Secrets, "no key of the configuration is a secret"),
        false => trial.report.pass(Check::Secrets),
    }
    let Some(refused) = refused else {
        trial.report.pass(Check::Accepted);
        trial.report.pass_unless_tried(Check::NullIsLeftOut);
        return Some(config);
    };
    if is_given {
        let seen = format!("Configure with {shown}: {refused}");
        let wanted = "that the configuration of --config is accepted";
        trial.report.fail(Check::Accepted, seen, wanted);
    } else {
        let why = format!(
            "Configure refused what the checker made up, {shown}: {refused}; give the provider's \
             block as config in --config"
        );
        trial.report.not_reached(Check::Accepted, why);
    }
    trial.report.stop("the provider could not be configured (see config.accepted)");
    None
}

/// Configurations that do not fit, each sent to a provider that has not been configured.
pub(super) async fn refusals(trial: &mut Trial, life: &Life) {
    const CHECKS: [Check; 4] =
        [Check::UnknownKey, Check::WrongType, Check::MissingRequired, Check::StatusDetails];
    if !trial.report.wants(&CHECKS) {
        return;
    }
    let session = match trial.start(trial.launch(), Callbacks::Served).await {
        Ok(session) => session,
        Err(error) => {
            let why = format!("it could not be launched again: {}", chain(&error));
            return trial.report.stop(why);
        }
    };
    let mut observer = session.observer.clone();
    let asked = Asked { attributes: &life.attributes, config: life.config.clone() };
    without_what_is_required(trial, &mut observer, &asked).await;
    with_what_does_not_fit(trial, &mut observer, &asked).await;
    ends::shut_down(trial, session, ends::Leftovers::Judged).await;
}

async fn without_what_is_required(trial: &mut Trial, observer: &mut Observer, asked: &Asked<'_>) {
    let required = asked.attributes.iter().filter(|attribute| attribute.required);
    let mut wrong = Vec::new();
    for attribute in required {
        let mut config = asked.config.clone();
        config.remove(&attribute.name);
        wrong.push((format!("no {}", attribute.name), config.clone()));
        config.insert(attribute.name.clone(), Value::Null);
        wrong.push((format!("null for {}", attribute.name), config));
    }
    if wrong.is_empty() {
        trial.report.pass_with(Check::MissingRequired, "no key is required");
    }
    for (what, config) in wrong {
        let seen = match ask(trial, observer, &what, config).await {
            // What an error or exception becomes that nobody has made a status of.
            Some(Err(refusal)) if refusal.code == "UNKNOWN" || refusal.message.is_empty() => {
                Some(refusal.to_string())
            }
            Some(Err(_)) => None,
            Some(Ok(())) => Some("it was accepted".to_owned()),
            None => Some(trial.no_answer()),
        };
        let seen = seen.map(|seen| format!("Configure with {what}: {seen}"));
        let wanted = "a refusal with a fitting code, such as INVALID_ARGUMENT, and a message";
        trial.report.judge(Check::MissingRequired, seen, wanted);
    }
}

/// A host checks names and types itself, but for what is in an object. So these may be accepted.
async fn with_what_does_not_fit(trial: &mut Trial, observer: &mut Observer, asked: &Asked<'_>) {
    let mut unknown = asked.config.clone();
    unknown.insert(NO_KEY.to_owned(), "x".into());
    let mut wrong = vec![(Check::UnknownKey, format!("an unknown key, {NO_KEY}"), unknown)];
    for attribute in asked.attributes {
        let mut config = asked.config.clone();
        let value = derive::wrong_setting(attribute);
        let what = format!("{value} for {}", attribute.name);
        config.insert(attribute.name.clone(), value);
        wrong.push((Check::WrongType, what, config));
    }
    if asked.attributes.is_empty() {
        trial.report.pass_with(Check::WrongType, "there are no keys");
    }
    for (check, what, config) in wrong {
        let answer = ask(trial, observer, &what, config).await;
        let what = format!("Configure with {what}");
        match answer {
            Some(Ok(())) => {
                let better = "a refusal that names the slip: a host finds those that it knows, but \
                              hands an object over unchecked";
                trial.report.weigh(check, [format!("{what}: it was accepted")], better);
            }
            Some(Err(refusal)) if is_broken(&refusal) => {
                let seen = format!("{what}: {refusal}");
                trial.report.fail(check, seen, "that it is refused as a mistake, or accepted");
            }
            Some(Err(_)) => trial.report.pass(check),
            None => {
                let seen = format!("{what}: {}", trial.no_answer());
                trial.report.fail(check, seen, "a refusal, or that it is accepted");
            }
        }
    }
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
fn secrets(config: &Payload, attributes: &[ObservedAttribute]) -> Vec<String> {
    let mut found = Vec::new();
    for attribute in attributes {
        match config.get(&attribute.name) {
            Some(Value::String(text)) if attribute.sensitive && text.len() >= SHORTEST => {
                found.push(text.clone());
            }
            Some(Value::Object(inner)) => found.extend(secrets(inner, &attribute.attributes)),
            _ => {}
        }
    }
    found
}
