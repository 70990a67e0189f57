//! A database of SQLite that lies where commands may not write: its library does not name it.

use sandbox::Access;
use workspace_fs::lexically_clean;

use super::{Facts, MOST_COMMAND, Outside, candidates, refused};

const REFUSALS: [&str; 2] =
    ["unable to open database file", "attempt to write a readonly database"];

/// What the names of databases have, so that no other path of a command is taken for one.
const NAMES: [&str; 2] = [".db", ".sqlite"];

/// Why the jail refuses it, where the line names it, or else the command does.
pub(super) fn notice(facts: &Facts<'_>, line: &str, left: &mut usize) -> Option<String> {
    let refusal = REFUSALS.iter().find(|refusal| line.contains(**refusal))?;
    let (before, after) = line.split_once(refusal)?;
    let command = facts.command.get(..MOST_COMMAND).unwrap_or(facts.command);
    let is_end = |c: char| c.is_whitespace() || "'\"`()[];,=?".contains(c);
    let is_database = |word: &&str| {
        word.contains('/') && word.len() < 4096 && NAMES.iter().any(|name| word.contains(name))
    };
    let in_command = command.split(is_end).filter(is_database);
    candidates(before, after).chain(in_command).take(*left).find_map(|candidate| {
        *left -= 1;
        let path = lexically_clean(&facts.cwd.join(candidate));
        let may_read = facts.reasons.explain(Access::Read, &path).is_none();
        let is_new = facts.reasons.outside(&path) == Outside::Missing;
        let tried = if is_new || may_read { Access::Write } else { Access::Read };
        refused(facts, tried, &[tried], &path)
    })
}
