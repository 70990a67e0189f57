//! The socket of a program of the machine, such as Docker's daemon or a database: its clients say that the
//! program does not run.

use sandbox::Access;
use workspace_fs::lexically_clean;
use workspace_fs::text::name;

use super::{Facts, Outside, refused};

/// What comes before the path of a socket, and what ends it.
const BEFORE: [(&str, &[char]); 3] = [
    ("unix://", &[' ', ';', ',', '\'', '"']),
    ("dial unix ", &[':']),
    // MySQL's own reason after it is a number.
    ("through socket '", &['\'']),
];

/// Why the jail refuses a socket that the line names.
pub(super) fn notice(facts: &Facts<'_>, line: &str, left: &mut usize) -> Option<String> {
    let named = BEFORE.iter().find_map(|(before, ends)| {
        let (_, rest) = line.split_once(before)?;
        rest.split(*ends).next()
    })?;
    let path = lexically_clean(&facts.cwd.join(named.trim_end_matches(['.', ':'])));
    *left = left.checked_sub(1)?;
    facts.reasons.explain(Access::Read, &path)?;
    match facts.reasons.outside(&path) {
        Outside::Missing => None,
        Outside::Grantable => refused(facts, Access::Read, &[Access::Read], &path),
        Outside::Guarded => Some(format!(
            "{} is there, but commands do not reach it, nor the program that listens on it: have the \
             operator run what needs that",
            name::of(&path)
        )),
    }
}
