//! One log line, as hclog writes it.

use serde_json::Value;
use time::OffsetDateTime;

/// A host reads lines into a buffer of 64 KiB; what is longer arrives in pieces, as plain text.
pub(super) const MAX_LINE: usize = 60 * 1024;

/// Longest message or value, in bytes of JSON.
const MAX_VALUE: usize = 8 * 1024;

/// A line under construction.
pub(super) struct Line {
    text: String,
    left_out: usize,
}

impl Line {
    pub(super) fn new(
        // In UTC.
        time: OffsetDateTime,
        level: &tracing::Level,
        module: &str,
        message: &str,
    ) -> Self {
        let level = match *level {
            tracing::Level::ERROR => "error",
            tracing::Level::WARN => "warn",
            tracing::Level::INFO => "info",
            tracing::Level::DEBUG => "debug",
            tracing::Level::TRACE => "trace",
        };
        let mut text = String::with_capacity(256);
        text.push_str("{\"@level\":\"");
        text.push_str(level);
        text.push_str("\",\"@message\":");
        push_string(&mut text, message);
        text.push_str(",\"@module\":");
        push_string(&mut text, module);
        let (year, month, day) = time.date().to_calendar_date();
        let (hour, minute, second, microsecond) = time.time().as_hms_micro();
        let month = u8::from(month);
        // hclog's layout. Any other number of fraction digits makes a host take the line for text.
        text.push_str(&format!(
            ",\"@timestamp\":\"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{microsecond:06}Z\""
        ));
        Line { text, left_out: 0 }
    }

    /// Adds a field, shortened if need be. One that no longer fits is counted instead.
    pub(super) fn field(&mut self, name: &str, value: Value) {
        let before = self.text.len();
        self.text.push(',');
        // The host takes the keys with an `@` as its own, and panics where they are not strings.
        push_string(&mut self.text, name.trim_start_matches('@'));
        self.text.push(':');
        match value {
            Value::String(text) => push_string(&mut self.text, &text),
            other => {
                let json = other.to_string();
                if json.len() <= MAX_VALUE {
                    self.text.push_str(&json);
                } else {
                    push_string(&mut self.text, &json);
                }
            }
        }
        if self.text.len() > MAX_LINE {
            self.text.truncate(before);
            self.left_out += 1;
        }
    }

    /// The line with its line break.
    pub(super) fn finish(mut self) -> String {
        if self.left_out > 0 {
            self.text.push_str(",\"fields_left_out\":");
            self.text.push_str(&self.left_out.to_string());
        }
        self.text.push_str("}\n");
        self.text
    }
}

/// Appends a JSON string of at most [`MAX_VALUE`] bytes.
fn push_string(text: &mut String, value: &str) {
    let json = Value::from(shortened(value, MAX_VALUE)).to_string();
    if json.len() <= MAX_VALUE {
        text.push_str(&json);
    } else {
        // Escapes made it longer, six bytes for one at worst.
        text.push_str(&Value::from(shortened(value, MAX_VALUE / 6)).to_string());
    }
}

fn shortened(value: &str, limit: usize) -> String {
    const MARK: &str = "…";
    if value.len() + 2 <= limit {
        return value.to_owned();
    }
    let mut end = limit - MARK.len() - 2;
    while !value.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{MARK}", &value[..end])
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    fn parse(line: &str) -> serde_json::Map<String, Value> {
        assert!(line.ends_with('\n'));
        assert_eq!(line.matches('\n').count(), 1);
        serde_json::from_str(line).unwrap()
    }

    #[test]
    fn a_line_has_hclogs_keys_as_strings_and_six_digits() {
        let mut line = Line::new(OffsetDateTime::UNIX_EPOCH, &Level::WARN, "thing", "two\nlines");
        line.field("count", 3.into());
        let object = parse(&line.finish());
        assert_eq!(object["@level"], "warn");
        assert_eq!(object["@message"], "two\nlines");
        assert_eq!(object["@module"], "thing");
        assert_eq!(object["count"], 3);
        assert_eq!(object["@timestamp"], "1970-01-01T00:00:00.000000Z");
    }

    #[test]
    fn a_field_cannot_take_the_place_of_hclogs_own_keys() {
        let mut line = Line::new(OffsetDateTime::UNIX_EPOCH, &Level::INFO, "thing", "text");
        line.field("@message", 5.into());
        line.field("@@level", 5.into());
        let object = parse(&line.finish());
        assert_eq!(object["@message"], "text");
        assert_eq!(object["@level"], "info");
        assert_eq!(object["message"], 5);
    }

    #[test]
    fn whatever_is_logged_a_line_stays_below_the_hosts_buffer() {
        for text in ["x", "\u{1}", "é", "\"", "\u{10FFFF}"] {
            let huge = text.repeat(20_000);
            let mut line = Line::new(OffsetDateTime::UNIX_EPOCH, &Level::ERROR, &huge, &huge);
            for _ in 0..16 {
                line.field("text", huge.as_str().into());
                line.field("list", vec![huge.as_str()].into());
            }
            let line = line.finish();
            assert!(line.len() < 64 * 1024, "{} bytes", line.len());
            let object = parse(&line);
            assert!(object["@message"].as_str().unwrap().ends_with('…'));
            assert!(object["fields_left_out"].as_u64().unwrap() > 0);
        }
    }
}
