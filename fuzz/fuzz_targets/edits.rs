//! Any bytes, any strings: an edit never panics, can be undone, and its hunks tell the truth.
//! Run with `cargo +nightly fuzz run edits`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use provider_workspace::text::diff::{Side, of_patch, parse_unified, unified};
use provider_workspace::text::edit::{Bounds, Edit, Refusal, Scope, apply};
use provider_workspace::text::encoding::{Detected, Encoding, detect};
use provider_workspace::text::lines::Unit;

const LIMIT: usize = 1 << 20;
const BOUNDS: Bounds<'static> = Bounds { size: LIMIT, should_stop: &|| false };

fuzz_target!(|input: (Vec<u8>, String, String, bool)| {
    let (content, old, new, all) = input;
    let encoding = match detect(&content) {
        Detected::Text(encoding) => encoding,
        Detected::Binary { .. } => Encoding::Utf8,
    };
    let body = &content[encoding.bom().len()..];
    let scope = if all { Scope::All } else { Scope::Only };
    match apply(body, encoding, &[Edit { old: &old, new: &new, scope }], BOUNDS) {
        Ok(edited) => {
            let after = edited.patch.apply(body);
            assert!(after.len() <= LIMIT);
            assert_ne!(after, body);
            assert_eq!(edited.patch.inverse(body).apply(&after), body);
            let diff = of_patch(body, &edited.patch, Unit::of(encoding), 2000);
            assert!(!diff.hunks.is_empty());
            let shown = diff.shown(Side { old: encoding, new: encoding });
            let _ = parse_unified(&unified(&diff, &shown));
        }
        Err(error) => {
            let message = error.to_string();
            assert!(message.len() < 8192, "{message}");
            // What UTF-8 has once can be edited.
            if let (Encoding::Utf8, Refusal::NotFound(_)) = (encoding, &error.reason) {
                assert!(!body.windows(old.len()).any(|place| place == old.as_bytes()));
            }
        }
    }
});
