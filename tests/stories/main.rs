//! Short stories over the real subprocess: the binary is launched as a host launches it, and works
//! on real files.
//!
//! One program holds them all, as each test program links the whole product. `main` is our own,
//! because some stories start this program once more: inside a jail, in a namespace, or as a host. Filters and flags are those of `cargo test`; `--ignored` runs
//! the stories that take long.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "stories prepare real files, start real programs, fail where that \
              fails, and print what they counted"
)]

#[macro_use]
mod trials;

mod agent_file;
mod atomic;
mod bash;
mod bash_tool;
mod cancelled_writes;
mod checker;
mod cli;
mod concurrent_edits;
mod configure;
mod dice;
mod doctor;
mod documents;
mod edits;
mod endurance;
mod environment;
mod examples;
mod faults;
mod fuzz;
mod harness;
mod host_log;
mod hostile;
mod imports;
mod init;
mod invoke;
mod kept_home;
mod levels;
mod life;
#[cfg(feature = "mcp")]
mod mcp;
mod package_managers;
mod previews;
mod reported;
mod scenarios;
mod search;
mod session_tools;
mod show;
mod slips;
mod slips_of_models;
mod soak;
mod telemetry;
mod terminal;
mod tokens;
mod writing;

use std::process::ExitCode;

use libtest_mimic::Arguments;

/// How many stories run at once: most of their time goes to waiting for processes.
const AT_ONCE: usize = 4;

fn main() -> ExitCode {
    if let Some(code) = bash::own_socket::call_if_asked() {
        return code;
    }
    if let Some(code) = session_tools::ends::be_a_host_if_asked() {
        return code;
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(AT_ONCE);
    let trials = [
        // What waits longest comes first.
        bash_tool::trials(),
        faults::trials(),
        soak::trials(),
        session_tools::trials(),
        fuzz::trials(),
        agent_file::trials(),
        atomic::trials(),
        bash::trials(),
        cancelled_writes::trials(),
        checker::trials(),
        cli::trials(),
        doctor::trials(),
        concurrent_edits::trials(),
        configure::trials(),
        documents::trials(),
        edits::trials(),
        endurance::trials(),
        examples::trials(),
        host_log::trials(),
        hostile::trials(),
        imports::trials(),
        init::trials(),
        invoke::trials(),
        kept_home::trials(),
        life::trials(),
        #[cfg(feature = "mcp")]
        mcp::trials(),
        package_managers::trials(),
        previews::trials(),
        reported::trials(),
        scenarios::trials(),
        search::trials(),
        show::trials(),
        slips::trials(),
        slips_of_models::trials(),
        telemetry::trials(),
        terminal::trials(),
        tokens::trials(),
        trials::trials(),
        writing::trials(),
    ];
    libtest_mimic::run(&arguments, trials.into_iter().flatten().collect()).exit_code()
}
