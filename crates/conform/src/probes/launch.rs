//! The handshake, in every way in which a host does it.

use serde_json::{Map, Value};

use super::super::checks::Check;
use super::super::fixture;
use super::super::processes;
use super::super::session::Session;
use super::super::trial::{COOKIE, Callbacks, Trial};
use super::{Life, config, ends};
use crate::observe::{Observer, Refusal};
use goplugin::host::{LaunchError, Multiplex, Plugin, Security};
use goplugin::{Address, Cookie, LineError, MultiplexField};
use tool_provider::error::chain;
use tool_provider::grpc::handshake::PROTOCOL_VERSION;

/// A version that no tool provider speaks.
const NO_VERSION: u32 = 1_000_000;

/// Longest line on standard output that a host reads on after, in bytes.
const LONGEST_LINE: usize = 64 << 10;

/// Why a binary could not be tested at all: it is no plugin.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct Untestable(#[from] LaunchError);

/// The launch of the session that most checks use; nothing where it failed as a plugin.
pub(super) async fn first(trial: &mut Trial) -> Result<Option<Session>, Untestable> {
    let launched = trial.start(trial.launch(), Callbacks::Served).await;
    let session = match launched {
        Ok(session) => session,
        Err(
            error @ (LaunchError::Spawn { .. }
            | LaunchError::NoHandshake { .. }
            | LaunchError::Timeout { .. }
            | LaunchError::Line { source: LineError::Fields { .. }, .. }),
        ) => return Err(error.into()),
        Err(error) => {
            let check = match error {
                LaunchError::Version { .. } => Check::Version,
                _ => Check::Line,
            };
            trial.report.fail(check, chain(&error), "a line that a host can use");
            return Ok(None);
        }
    };
    let line = session.plugin.handshake();
    let mut problems = Vec::new();
    match &line.address {
        Address::Unix(path) if !path.is_absolute() => {
            problems.push(format!("the relative path {}", path.display()));
        }
        Address::Unix(path) if !fixture::is_socket(path) => {
            problems.push(format!("{} is no socket", path.display()));
        }
        Address::Unix(_) => {}
        Address::Tcp(address) if address.ip().is_loopback() => {}
        Address::Tcp(address) => problems.push(format!("{address}, which others reach too")),
    }
    if line.certificate.is_some() {
        problems.push("a certificate that was not asked for".to_owned());
    }
    if line.multiplex != MultiplexField::Absent {
        problems.push("a seventh field that was not asked for".to_owned());
    }
    trial.report.judge(Check::Line, problems, "1|1|unix|/an/absolute/path|grpc|");
    Ok(Some(session))
}

/// What go-plugin itself serves, over a connection that stands.
pub(super) async fn connected(trial: &mut Trial, session: &Session) {
    if trial.report.wants(&[Check::Health]) {
        let answer = trial.within(session.plugin.ping()).await;
        let seen = match answer {
            Some(Err(status)) => Some(Refusal::from(status).to_string()),
            other => trial.fault_of(other),
        };
        let wanted = "SERVING from grpc.health.v1.Health/Check for the service \"plugin\"";
        trial.report.judge(Check::Health, seen, wanted);
    }
    if trial.report.wants(&[Check::Foreign]) {
        let mut observer = session.observer.clone();
        let seen = match trial.within(observer.describe_as_a_model()).await {
            Some(Err(refusal)) if refusal.code == "UNIMPLEMENTED" => None,
            Some(Err(refusal)) => Some(refusal.to_string()),
            Some(Ok(())) => Some("an answer for ModelService".to_owned()),
            None => Some(trial.no_answer()),
        };
        trial.report.judge(Check::Foreign, seen, "status UNIMPLEMENTED");
    }
}

/// The other launches that a host makes.
pub(super) async fn others(trial: &mut Trial, life: Option<&Life>) {
    if trial.report.wants(&[Check::Cookie]) {
        without_cookie(trial).await;
    }
    if let Some(life) = life {
        config::refusals(trial, life).await;
    }
    if trial.report.wants(&[Check::Version, Check::CallbacksOptional, Check::Terminate]) {
        among_versions(trial, life).await;
    }
    if trial.report.wants(&[Check::AutoMtls]) {
        encrypted(trial).await;
    }
    if trial.report.wants(&[Check::Multiplexing]) {
        multiplexed(trial).await;
    }
}

/// By hand, or by a host of other plugins.
async fn without_cookie(trial: &mut Trial) {
    let wanted = "a word on stderr, nothing on stdout, and an exit code that is not 0";
    let cookies = [
        Cookie { key: "CONFORM_NO_COOKIE", value: "none" },
        Cookie { key: COOKIE.key, value: "another application's" },
    ];
    for cookie in cookies {
        let before = processes::descendants();
        let launched = trial.launch_of(trial.binary.clone(), cookie).start().await;
        let seen = match launched {
            Err(LaunchError::NoHandshake { status: Some(status), stderr, .. }) => {
                if status.success() {
                    Some(format!("{status}"))
                } else {
                    stderr.trim().is_empty().then(|| "nothing on stderr".to_owned())
                }
            }
            Err(LaunchError::NoHandshake { status: None, .. }) => {
                Some("a process that stays".to_owned())
            }
            Err(error) => Some(chain(&error)),
            Ok(plugin) => {
                drop(plugin);
                Some("a handshake".to_owned())
            }
        };
        let what = if cookie.key == COOKIE.key { "wrong cookie" } else { "no cookie" };
        let seen = seen.map(|seen| format!("{what}: {seen}"));
        trial.report.judge(Check::Cookie, seen, wanted);
        ends::no_orphans(trial, &before).await;
    }
}

/// A newer host, and one that serves no callbacks.
async fn among_versions(trial: &mut Trial, life: Option<&Life>) {
    let offered = [NO_VERSION, PROTOCOL_VERSION];
    let launch = trial.launch().offering(offered);
    let session = match trial.start(launch, Callbacks::Absent).await {
        Ok(session) => session,
        Err(error) => {
            trial.report.fail(Check::Version, chain(&error), "version 1 of those offered");
            for check in [Check::CallbacksOptional, Check::Terminate] {
                trial.report.not_reached(check, "it could not be launched once more");
            }
            return;
        }
    };
    let chosen = session.plugin.protocol_version();
    let seen = (chosen != PROTOCOL_VERSION).then(|| format!("version {chosen} of {offered:?}"));
    trial.report.judge(Check::Version, seen, "version 1, the highest common one");
    if trial.report.wants(&[Check::CallbacksOptional]) {
        let mut observer = session.observer.clone();
        let config = life.map(|life| life.config.clone());
        let asked = async {
            observer.describe().await?;
            observer.schema().await
        };
        let seen = trial.fault_of(trial.within(asked).await);
        let wanted = "answers to Describe and GetSchema, although the host does not serve the \
                      broker's stream 1 yet";
        trial.report.judge(Check::CallbacksOptional, seen, wanted);
        if let Some(config) = config {
            let seen = trial.fault_of(trial.within(observer.configure(config)).await);
            let seen = seen.map(|seen| format!("Configure: {seen}"));
            let better = "that a host without callbacks can configure it too";
            trial.report.weigh(Check::CallbacksOptional, seen, better);
        }
    }
    ends::terminate(trial, session).await;
}

/// A host with AutoMTLS, and somebody else.
async fn encrypted(trial: &mut Trial) {
    let launch = trial.launch().security(Security::AutoMtls);
    let session = match trial.start(launch, Callbacks::Served).await {
        Ok(session) => session,
        Err(error) => {
            let wanted = "a sixth field with a certificate (its DER in unpadded base64), as \
                          PLUGIN_CLIENT_CERT is set, and TLS";
            trial.report.fail(Check::AutoMtls, chain(&error), wanted);
            return;
        }
    };
    let mut observer = session.observer.clone();
    let seen = trial.fault_of(trial.within(observer.schema()).await);
    trial.report.judge(Check::AutoMtls, seen, "an answer over TLS");
    let line = session.plugin.handshake();
    let intruder = async {
        let plugin = Plugin::reattach(&line.address, line.version).await.ok()?;
        Observer::new(plugin.channel()).schema().await.ok()
    };
    // Who gets no answer for as long as the limit is not served either.
    let seen = trial.within(intruder).await.flatten();
    let seen = seen.map(|_| "an answer to a client without a certificate".to_owned());
    trial.report.judge(Check::AutoMtls, seen, "that nobody but the host is served");
    ends::shut_down(trial, session, ends::Leftovers::Judged).await;
}

/// A host that multiplexes.
async fn multiplexed(trial: &mut Trial) {
    let launch = trial.launch().multiplex(Multiplex::On);
    let session = match trial.start(launch, Callbacks::Served).await {
        Ok(session) => session,
        Err(LaunchError::NoMultiplexing) => {
            trial.report.pass_with(Check::Multiplexing, "it says that it cannot multiplex");
            return;
        }
        Err(error) => {
            trial.report.fail(Check::Multiplexing, chain(&error), "a connection");
            return;
        }
    };
    let mut observer = session.observer.clone();
    let seen = trial.fault_of(trial.within(observer.schema()).await);
    trial.report.judge(Check::Multiplexing, seen, "an answer over the one connection");
    // go-plugin's own servers leave theirs.
    ends::shut_down(trial, session, ends::Leftovers::Remarked).await;
}

/// What a provider said on standard output and standard error.
pub(super) fn said(trial: &mut Trial, session_said: &super::super::session::Said) {
    let stray = session_said.stray.take();
    let seen = (!stray.is_empty())
        .then(|| format!("{:?}", String::from_utf8_lossy(&stray[..stray.len().min(200)])));
    if stray.split(|&byte| byte == b'\n').any(|line| line.len() > LONGEST_LINE) {
        let wanted =
            "no line longer than 64 KiB: a host stops to read there, and the provider blocks";
        trial.report.judge(Check::Stdout, seen, wanted);
    } else {
        let better = "nothing after the handshake line: a host throws it away";
        trial.report.weigh(Check::Stdout, seen, better);
    }
    let printed = session_said.printed.take();
    trial.listen("printed output", &String::from_utf8_lossy(&printed));
    let mut problems = Vec::new();
    let lines = session_said.logs.take();
    if session_said.logs.is_full(&lines) {
        let note = format!("only the first {} lines were looked at", lines.len());
        if !trial.secrets.is_empty() {
            trial.report.pass_with(Check::Secrets, note.clone());
        }
        trial.report.pass_with(Check::Stderr, note);
    }
    for line in lines {
        trial.listen("a log line", &line.message);
        trial.listen("a log line", &Value::Object(line.fields.clone()).to_string());
        if let Some(key) = crashing_key(&line.message, &line.fields) {
            problems.push(format!("{key} that is no string, in a JSON line"));
        }
    }
    trial.report.judge(Check::Stderr, problems, "texts under the keys that hclog reads");
}

/// A key by which a line would crash a host that is written in Go.
fn crashing_key(message: &str, fields: &Map<String, Value>) -> Option<&'static str> {
    const KEYS: [&str; 3] = ["@level", "@message", "@timestamp"];
    // What did not parse as a line of hclog is in the message as it came.
    let whole: Option<Map<String, Value>> = serde_json::from_str(message).ok();
    KEYS.into_iter().find(|&key| {
        let is_wrong = |map: &Map<String, Value>| map.get(key).is_some_and(|of| !of.is_string());
        is_wrong(fields) || whole.as_ref().is_some_and(is_wrong)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use goplugin::host::LogLine;

    #[test]
    fn lines_that_would_crash_a_host_are_found() {
        let key = |line: &str| {
            let line = LogLine::parse(line);
            crashing_key(&line.message, &line.fields)
        };
        assert_eq!(key(r#"{"@message":5}"#), Some("@message"));
        assert_eq!(key(r#"{"@level":"info","@message":"x","@timestamp":5}"#), Some("@timestamp"));
        for fine in ["text", "[1]", r#"{"a":1}"#, r#"{"@level":"info","@message":"x","n":1}"#] {
            assert_eq!(key(fine), None, "{fine}");
        }
    }
}
