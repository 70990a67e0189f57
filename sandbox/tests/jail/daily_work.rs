//! What developers do all day works in a jail.

use sandbox::Level;

use crate::arena::Arena;
use crate::story::{Story, stories};

pub(crate) fn stories() -> Vec<Story> {
    stories!["daily_work": here_document]
}

/// 70 kB exceed what a pipe holds, so that the shell takes a temporary file.
fn here_document(level: Level) {
    let line = "x".repeat(99);
    let text = format!("{line}\n").repeat(700);
    let script = format!("cat <<'END' | wc -c\n{text}END\n");
    assert_eq!(Arena::new(level).succeeds(&script).trim(), "70000");
}
