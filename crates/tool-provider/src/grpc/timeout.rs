//! The deadline that a caller sends along: gRPC's `grpc-timeout` header.

use std::time::{Duration, Instant};

use tonic::metadata::MetadataMap;

/// When the caller stops listening, where it says so. A header that makes no sense says nothing.
pub(crate) fn deadline(metadata: &MetadataMap) -> Option<Instant> {
    let text = metadata.get("grpc-timeout")?.to_str().ok()?;
    Instant::now().checked_add(parse(text)?)
}

/// Up to eight digits and a unit, as gRPC's protocol over HTTP/2 defines it.
fn parse(text: &str) -> Option<Duration> {
    let unit_at = text.len().checked_sub(1)?;
    let (digits, unit) = text.split_at_checked(unit_at)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(number * 3600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_known_and_nonsense_is_ignored() {
        let known = [
            ("1H", 3_600_000_000),
            ("2M", 120_000_000),
            ("3S", 3_000_000),
            ("4m", 4000),
            ("5u", 5),
            ("99999999m", 99_999_999_000),
        ];
        for (text, micros) in known {
            assert_eq!(parse(text), Some(Duration::from_micros(micros)), "{text}");
        }
        assert_eq!(parse("6n"), Some(Duration::from_nanos(6)));
        for text in ["", "S", "1", "1s", "-1S", "123456789S", "1.5S", "1é", "é"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
