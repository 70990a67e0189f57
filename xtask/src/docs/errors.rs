//! `docs/errors.md`, from the taxonomy, the status codes and the exit codes.

use super::MADE;
use super::markdown::{code, prose, table};
use provider_workspace::cli::exit;
use tool_provider::grpc::grpc_code;
use tool_provider::taxonomy::{Failing, TAXONOMY};

pub(super) fn page() -> String {
    let failures: Vec<Vec<String>> = TAXONOMY.iter().map(row).collect();
    let codes: Vec<Vec<String>> = exit::table()
        .into_iter()
        .map(|(code, meaning)| vec![super::markdown::code(&code), prose(&meaning)])
        .collect();
    format!(
        "# Errors\n{MADE}\nA failed call ends with one `error` event: a category, a message that says \
         what, where and what to do, whether the same call may be tried again, and details. The \
         details always have `kind`; where they apply `path`, `resolved_path`, `errno`, `hint`, \
         `missing_right` and `setting`. A message stands alone: of a command that was ended it has \
         the output so far, as much as a result has. Whether to try again follows from the kind, and \
         from whether anything can have been changed. Preview, Render and Configure fail with a gRPC status that carries the \
         same error; Configure with FAILED_PRECONDITION where the machine is at fault.\n\n{}\n\
         UNAVAILABLE is never sent: a host reads it as a crashed plugin. `process_crashed` is the \
         host's own word.\n\n## Exit codes of the command line\n\n{}",
        table(&["category", "when", "again", "kind", "gRPC code", "exit code"], &failures),
        table(&["code", "meaning"], &codes),
    )
}

fn row(failing: &Failing) -> Vec<String> {
    let Failing { category, kind, when } = *failing;
    vec![
        code(category.name()),
        prose(when),
        failing.again().to_owned(),
        code(kind.name()),
        grpc_code(category, kind).to_owned(),
        exit::of_category(category).to_string(),
    ]
}
