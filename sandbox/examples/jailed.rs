//! Runs a program in a jail: `cargo run -p sandbox --example jailed -- ROOT PROGRAM [ARGUMENT]…`
//!
//! ROOT is the only directory that the program can write. Prints what the jail enforces, then what
//! the program prints. JAILED_NAMESPACES=never does without namespaces; JAILED_MODE is enforce,
//! best_effort or off.

use std::error::Error;
use std::io::Write as _;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;

use sandbox::{Command, Jail, Mode, Namespaces, Policy, harden_provider};

fn main() -> ExitCode {
    // This comes first: the jail starts this program a second time as its spawner.
    if sandbox::is_spawner_invocation() {
        return sandbox::spawner_main();
    }
    match harden_provider().map_err(Into::into).and_then(|()| run()) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "jailed: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<u8, Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let root = PathBuf::from(arguments.next().ok_or("usage: jailed ROOT PROGRAM [ARGUMENT]…")?);
    let argv: Vec<_> = arguments.collect();
    let program = PathBuf::from(argv.first().ok_or("which program?")?);

    let namespaces = match std::env::var("JAILED_NAMESPACES").as_deref() {
        Ok("never") => Namespaces::Never,
        _ => Namespaces::Auto,
    };
    let mode = match std::env::var("JAILED_MODE").as_deref() {
        Ok("best_effort") => Mode::BestEffort,
        Ok("off") => Mode::Off,
        _ => Mode::Enforce,
    };
    let roots = vec![root.clone()];
    let jail = Jail::build(&Policy { roots, namespaces, mode, ..Policy::default() })?;
    let enforcement = jail.enforcement();
    let mut errors = std::io::stderr();
    writeln!(errors, "level {}", enforcement.level)?;
    for sentence in &enforcement.left_open {
        writeln!(errors, "open: {sentence}")?;
    }

    let private = jail.private();
    let mut env = vec![
        ("PATH".into(), std::env::var_os("PATH").unwrap_or_default()),
        ("TMPDIR".into(), private.tmp.clone().into()),
        ("XDG_CACHE_HOME".into(), private.cache.clone().into()),
    ];
    let own = private.home.as_ref().map(|home| home.path.clone().into_os_string());
    if let Some(home) = own.or_else(|| std::env::var_os("HOME")) {
        env.push(("HOME".into(), home));
    }
    let running = jail.start(Command {
        program,
        argv,
        env,
        cwd: root,
        stdin: std::io::stdin().as_fd().try_clone_to_owned()?,
        input: sandbox::Input::Fixed,
        stdout: std::io::stdout().as_fd().try_clone_to_owned()?,
        stderr: std::io::stderr().as_fd().try_clone_to_owned()?,
        limits: None,
    })?;
    let report = running.wait()?;
    Ok(u8::try_from(report.status.shell_code()).unwrap_or(1))
}
