//! One line of a plugin's standard error: hclog's JSON, or anything else.

use serde_json::{Map, Value};

/// One line that a plugin logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// The level; what is no JSON line of hclog counts as debug text.
    pub level: tracing::Level,
    /// The message, or the whole line when it is no JSON line of hclog.
    pub message: String,
    /// The logger's name.
    pub module: Option<String>,
    /// All other fields, `@timestamp` among them.
    pub fields: Map<String, Value>,
}

impl LogLine {
    /// Reads one line.
    #[must_use]
    pub fn parse(line: &str) -> Self {
        Self::parse_json(line).unwrap_or_else(|| LogLine {
            level: tracing::Level::DEBUG,
            message: line.to_owned(),
            module: None,
            fields: Map::new(),
        })
    }

    fn parse_json(line: &str) -> Option<Self> {
        let mut fields: Map<String, Value> = serde_json::from_str(line).ok()?;
        let level = fields.get("@level")?.as_str()?.parse().ok()?;
        let message = fields.get("@message")?.as_str()?.to_owned();
        let module = fields.remove("@module").and_then(|name| Some(name.as_str()?.to_owned()));
        fields.remove("@level");
        fields.remove("@message");
        Some(LogLine { level, message, module, fields })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_hclog_is_taken_apart() {
        let line = LogLine::parse(
            r#"{"@level":"warn","@message":"slow","@module":"x","@timestamp":"t","n":1}"#,
        );
        assert_eq!(line.level, tracing::Level::WARN);
        assert_eq!(line.message, "slow");
        assert_eq!(line.module.as_deref(), Some("x"));
        assert_eq!(line.fields.len(), 2);
        assert_eq!(line.fields["n"], 1);
    }

    #[test]
    fn anything_else_is_debug_text() {
        for text in ["plain", "{\"@message\":5}", "{\"@level\":\"fatal\",\"@message\":\"x\"}", "[]"]
        {
            let line = LogLine::parse(text);
            assert_eq!((line.level, line.message.as_str()), (tracing::Level::DEBUG, text));
        }
    }
}
