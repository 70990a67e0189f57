//! What a model should know beside the output of a command whose effects were discarded.

use std::path::{Path, PathBuf};

use sandbox::{Access, Changes, ExitStatus, Explanation, Jail, Space};

use super::super::notice::{Outside, Reasons, command, network};
use workspace_fs::text::name;

/// How many directories a notice names.
const MOST_NAMED: usize = 3;

/// The jail's reasons as far as they hold for such a command: no setting lets it write or reach a network.
pub(in super::super) struct WithoutEffects<'a>(pub(in super::super) &'a Jail);

impl Reasons for WithoutEffects<'_> {
    fn explain(&self, access: Access, path: &Path) -> Option<Explanation> {
        if access == Access::Write { None } else { Reasons::explain(self.0, access, path) }
    }

    fn outside(&self, path: &Path) -> Outside {
        self.0.outside(path)
    }

    fn link(&self, path: &Path) -> Option<PathBuf> {
        self.0.link(path)
    }

    fn is_program(&self, path: &Path) -> bool {
        self.0.is_program(path)
    }

    fn is_git_directory(&self, path: &Path) -> bool {
        self.0.is_git_directory(path)
    }

    fn device(&self, path: &Path) -> Option<u64> {
        self.0.device(path)
    }

    fn explain_network(&self) -> Option<Explanation> {
        None
    }

    fn has_unix_sockets(&self) -> bool {
        self.0.has_unix_sockets()
    }
}

/// What discarding the effects had to do with how a command went, a sentence each. `changes` is none where
/// nothing could be written; `line` is the command line.
pub(in super::super) fn of_discarding(
    changes: Option<&Changes>,
    line: &str,
    output: &str,
    status: ExitStatus,
) -> Vec<String> {
    let mut notices = Vec::new();
    let has_failed = status != ExitStatus::Exited(0);
    let speakers = command::Speakers::of(line);
    let says = |text: &str| output.lines().any(|said| said.contains(text) && speakers.say(said));
    if network::was_needed(network::Ended::With(status), None, line, output) {
        notices.push("shell_read has no network; bash may have one".to_owned());
    } else if has_failed && !command::only_shows_text(line) && network::asks_this_machine(output) {
        notices.push(
            "shell_read has a localhost of its own: bash reaches what a session serves there"
                .to_owned(),
        );
    }
    let Some(changes) = changes else {
        let refused = ["Permission denied", "Operation not permitted", "Read-only file system"];
        let may_have_failed = has_failed || command::hides_failures(line);
        if may_have_failed && refused.iter().any(|text| says(text)) {
            notices.push(
                "this is shell_read: here it can write in $TMPDIR only, and change no mode, owner or time; \
                 use bash, which asks a person, for what writes"
                    .to_owned(),
            );
        }
        return notices;
    };
    if !changes.read_only.is_empty() {
        let mut named: Vec<_> =
            changes.read_only.iter().take(MOST_NAMED).map(|path| name::of(path)).collect();
        if changes.read_only.len() > MOST_NAMED {
            named.push("others".into());
        }
        notices.push(format!(
            "read-only for shell_read, as no layer can take what is written there: {}",
            named.join(", ")
        ));
    }
    if changes.space == Space::Used || (has_failed && says("No space left on device")) {
        notices.push(
            "the space for what shell_read discards is used up (shell_read_layer_bytes, for all calls \
             together): write less, or use bash"
                .to_owned(),
        );
    }
    if has_failed && says("Value too large for defined data type") {
        notices.push(
            "files of another user or group, also of a supplementary group of the user, cannot be changed in \
             shell_read (\"Value too large\"): use bash"
                .to_owned(),
        );
    }
    if has_failed && says("Invalid cross-device link") {
        notices.push(
            "directories that were there before cannot be renamed in shell_read (\"Invalid cross-device \
             link\"): copy and remove, or use bash"
                .to_owned(),
        );
    }
    notices
}
