//! Any bytes, any strings: an edit never panics, can be undone, and its hunks are true.

use workspace_fs::text::diff::{Side, of_patch, parse_unified, unified};
use workspace_fs::text::edit::{Bounds, Edit, Edited, Refusal, Scope, apply};
use workspace_fs::text::encoding::{Detected, Encoding, detect};
use workspace_fs::text::lines::Unit;

use super::pieces::Pieces;

const LIMIT: usize = 1 << 20;
const BOUNDS: Bounds<'static> = Bounds { size: LIMIT, should_stop: &|| false };

pub(super) fn body(data: &[u8]) {
    let mut pieces = Pieces(data);
    let options = pieces.byte();
    let scope = if options & 1 == 0 { Scope::Only } else { Scope::All };
    let strings: Vec<String> = (0..2 + (options >> 1 & 1) * 2).map(|_| pieces.text()).collect();
    let content = pieces.0;
    let encoding = match detect(content) {
        Detected::Text(encoding) => encoding,
        Detected::Binary { .. } => Encoding::Utf8,
    };
    let body = &content[encoding.bom().len()..];
    let edits: Vec<_> =
        strings.chunks(2).map(|pair| Edit { old: &pair[0], new: &pair[1], scope }).collect();
    match apply(body, encoding, &edits, BOUNDS) {
        Ok(edited) => tells_the_truth(body, encoding, &edited, edits.len()),
        Err(error) => {
            let message = error.to_string();
            assert!(message.len() < 8192, "{message}");
            // What UTF-8 has can be edited.
            if let (Encoding::Utf8, Refusal::NotFound(_), 0) =
                (encoding, &error.reason, error.index)
            {
                let old = edits[0].old.as_bytes();
                assert!(!body.windows(old.len()).any(|window| window == old));
            }
        }
    }
}

fn tells_the_truth(body: &[u8], encoding: Encoding, edited: &Edited, edits: usize) {
    let after = edited.patch.apply(body);
    assert!(after.len() <= LIMIT);
    assert_eq!(edited.patch.inverse(body).apply(&after), body);
    let diff = of_patch(body, &edited.patch, Unit::of(encoding), 2000);
    // A second edit may take back what the first one did.
    assert!(after != body || edits > 1);
    assert!(after == body || !diff.hunks.is_empty());
    let shown = diff.shown(Side { old: encoding, new: encoding });
    let _ = parse_unified(&unified(&diff, &shown));
}
