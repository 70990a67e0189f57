//! Java, which takes the home and the directory for temporary files from the system.

use std::path::Path;

use sandbox::Access;

use super::Facts;

/// Where it keeps temporary files unless it is told.
const TEMPORARY: &str = "/tmp";

/// Names the options that help, where Java was refused a file in a place that the environment replaces.
pub(super) fn notice(facts: &Facts<'_>) -> Option<String> {
    let is_withheld = |path: &Path| facts.reasons.explain(Access::Write, path).is_some();
    let is_refused = |line: &str| {
        let names = |path: &Path| {
            path.to_str().is_some_and(|path| line.contains(&format!("{path}/")))
                && is_withheld(path)
        };
        let says = [
            "AccessDeniedException: ",
            "(Permission denied)",
            "Could not create local repository at ",
        ];
        says.iter().any(|text| line.contains(text))
            && (names(Path::new(TEMPORARY)) || facts.home.is_some_and(names))
    };
    let lines = || facts.output.lines();
    let is_of_java = |line: &str| line.contains("java.") || line.contains("[ERROR]");
    // The name of a temporary file is not in what Java says.
    let is_temporary = || {
        lines().any(|line| line.contains("java.io.UnixFileSystem.createFileExclusively"))
            && lines().any(|line| line.contains("java.io.IOException: Permission denied"))
            && is_withheld(Path::new(TEMPORARY))
    };
    let is_missed = lines().any(|line| is_of_java(line) && is_refused(line)) || is_temporary();
    // Maven itself has been told: what it forks is Java of the project's own.
    let is_forked = facts.command.contains("mvn");
    (is_missed && !super::command::only_shows_text(facts.command)).then(|| {
        let how = if is_forked {
            "have Maven run tests with -DargLine=\"-Djava.io.tmpdir=$TMPDIR -Duser.home=$HOME\""
        } else {
            "run it with -Djava.io.tmpdir=$TMPDIR -Duser.home=$HOME"
        };
        format!("Java takes its home and /tmp from the system, not from the environment: {how}")
    })
}
