//! How the name of a process is shown.

use sandbox::ProgramName;
use tool_provider::Secrets;
use workspace_fs::text::name;

/// The name of a program that a command ran. Where the kernel may have cut it, an end that may be the
/// beginning of a secret is left out: nobody would recognise it later.
pub(crate) fn shown(program: ProgramName, secrets: &Secrets) -> String {
    let whole = program.to_string();
    if !program.may_be_cut() {
        return name::shown(&whole).into_owned();
    }
    // The cut may lie within a character.
    let kept = secrets.before_cut(whole.trim_end_matches(char::REPLACEMENT_CHARACTER));
    let mark = if kept.len() < whole.len() { "…" } else { "" };
    name::shown(&format!("{kept}{mark}")).into_owned()
}
