//! What every search reports of ignore files.

use workspace_fs::tree::{Counts, MOST_RULE_BYTES, MOST_RULES};

/// That rules do not count because there are too many of them.
pub(super) fn cut(counts: Counts) -> Option<String> {
    let files = match counts.cut_rules {
        0 => return None,
        1 => "1 ignore file".to_owned(),
        count => format!("{count} ignore files"),
    };
    Some(format!(
        "Of {files} only the first rules count: at most {MOST_RULES} and {} KiB are taken of one, and \
         {} KiB of all that hold in a directory. What the others leave out is searched.",
        MOST_RULE_BYTES.of_one >> 10,
        MOST_RULE_BYTES.in_all >> 10,
    ))
}
