//! The place of a call in its caller's trace, as W3C Trace Context writes it.

/// What a `traceparent` header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TraceParent {
    pub(super) trace_id: [u8; 16],
    pub(super) span_id: [u8; 8],
    pub(super) flags: u8,
}

/// Set where the caller records its own span.
const SAMPLED: u8 = 1;

impl TraceParent {
    /// Reads a header. One that breaks the rules counts as none, as the standard has it: the trace
    /// starts anew.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut fields = text.trim().split('-');
        let version = hex::<1>(fields.next()?)?;
        let parent = Self {
            trace_id: hex(fields.next()?)?,
            span_id: hex(fields.next()?)?,
            flags: hex::<1>(fields.next()?)?[0],
        };
        let is_valid = match version {
            [0xff] => false,
            // Later versions may say more.
            [0] => fields.next().is_none(),
            _ => true,
        };
        let is_named = parent.trace_id != [0; 16] && parent.span_id != [0; 8];
        (is_valid && is_named).then_some(parent)
    }

    pub(super) fn is_sampled(self) -> bool {
        self.flags & SAMPLED != 0
    }
}

/// Lower-case digits only, as the standard wants them.
fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

fn digit(character: u8) -> Option<u8> {
    match character {
        b'0'..=b'9' => Some(character - b'0'),
        b'a'..=b'f' => Some(character - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceparent_is_read_by_its_rules() {
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        let parent = TraceParent::parse(&format!("00-{trace}-00f067aa0ba902b7-01")).unwrap();
        assert_eq!(parent.trace_id[..2], [0x4b, 0xf9]);
        assert_eq!(parent.span_id[6..], [0x02, 0xb7]);
        assert!(parent.is_sampled());
        let later = format!("cc-{trace}-00f067aa0ba902b7-00-more");
        assert!(!TraceParent::parse(&later).unwrap().is_sampled());
    }

    #[test]
    fn what_breaks_the_rules_is_no_parent() {
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        for text in [
            "",
            "00",
            "é-é-é-é",
            &format!("ff-{trace}-00f067aa0ba902b7-01"),
            &format!("00-{trace}-00f067aa0ba902b7-01-more"),
            &format!("00-{}-00f067aa0ba902b7-01", trace.to_uppercase()),
            &format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)),
            &format!("00-{trace}-0000000000000000-01"),
            &format!("00-{trace}-00f067aa0ba902b-01"),
        ] {
            assert_eq!(TraceParent::parse(text), None, "{text}");
        }
    }
}
