//! What `render` is given: a result's payload, or the events that `--json` printed.

use serde_json::Value;

use super::CliError;
use super::error::JsonOrigin;
use tool_provider::Payload;
use tool_provider::grpc::{Failure, persisted_result};

/// The payload, and the schema version that it is rendered under. Of printed events it is the last
/// one, as a host would have stored it.
///
/// # Errors
/// [`CliError::Json`] for what is neither one JSON object nor events, one a line.
pub(super) fn of_json(
    bytes: Vec<u8>,
    origin: JsonOrigin,
) -> Result<(&'static str, Vec<u8>), CliError> {
    if let Some(outcome) = last_event(&bytes) {
        return Ok(("1", persisted_result("cli-1", &outcome)));
    }
    match serde_json::from_slice::<Payload>(&bytes) {
        Ok(_) => Ok(("json", bytes)),
        Err(source) => Err(CliError::Json { what: "payload", origin, source }),
    }
}

/// The outcome in the last line. None where any line is no event.
fn last_event(bytes: &[u8]) -> Option<Result<Payload, Failure>> {
    let mut outcome = None;
    let lines = bytes.split(|&byte| byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    for line in lines {
        let mut event: Payload = serde_json::from_slice(line).ok()?;
        // Every payload names its tool; no event does.
        if event.contains_key("tool") {
            return None;
        }
        match event.get("event").and_then(Value::as_str)? {
            "result" => outcome = Some(Ok(object(event.remove("payload")?)?)),
            "error" => outcome = Some(Err(failure(&mut object(event.remove("error")?)?)?)),
            _ => {}
        }
    }
    outcome
}

fn object(value: Value) -> Option<Payload> {
    match value {
        Value::Object(object) => Some(object),
        _ => None,
    }
}

fn failure(error: &mut Payload) -> Option<Failure> {
    Some(Failure {
        category: error.get("category")?.as_str()?.to_owned(),
        message: error.get("message")?.as_str()?.to_owned(),
        retryable: error.get("retryable")?.as_bool()?,
        details: object(error.remove("details")?)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_taken_as_it_is_and_of_events_the_last() {
        let version = |text: &str| {
            of_json(text.as_bytes().to_vec(), JsonOrigin::Line).map(|(version, _)| version).ok()
        };
        assert_eq!(version(r#"{"tool": "bash"}"#), Some("json"));
        assert_eq!(version(r#"{"tool": "bash", "event": "result", "payload": {}}"#), Some("json"));
        assert_eq!(version("{}"), Some("json"));
        assert_eq!(version(r#"{"event": "result", "payload": {"tool": "bash"}}"#), Some("1"));
        let events = "{\"event\":\"progress\",\"message\":\"x\"}\n\
                      {\"event\":\"error\",\"error\":{\"category\":\"timeout\",\"message\":\"m\",\
                      \"retryable\":true,\"details\":{}}}\n";
        assert_eq!(version(events), Some("1"));
        for none in ["", "x", "[]", "{}\n{}", "{\"event\":\"progress\"}\n{\"event\":\"progress\"}"]
        {
            assert_eq!(version(none), None, "{none}");
        }
    }
}
