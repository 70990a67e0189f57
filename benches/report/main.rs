//! Runs every bench, stores what each measured, and writes README's tables from that.
//!
//! `cargo bench --bench report [-- BENCH…]`: without names all of them, else these, and the others'
//! stored figures stay. `-- --table` writes README's tables from the stored figures, `-- --check`
//! fails where they are not what is there.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a bench starts the others, and stores and prints what they say"
)]

mod table;

use std::error::Error;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use table::{Bench, Figure, Report, with_tables};

/// The benches, in the order of README.
const BENCHES: [&str; 5] = ["launch", "spawn", "edit", "grep", "stream"];

const STORED: &str = "docs/figures.tsv";
const README: &str = "README.md";

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Outcome<()> {
    // `cargo bench` itself says `--bench`.
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let (options, names): (Vec<&str>, Vec<&str>) =
        arguments.iter().map(String::as_str).partition(|word| word.starts_with('-'));
    let mut report = match std::fs::read_to_string(of_the_repository(STORED)) {
        Ok(text) => Report::parse(&text)?,
        Err(_) => Report::default(),
    };
    match options[..] {
        ["--check"] => return check(&report),
        ["--table"] => return write_tables(&report),
        [] => {}
        _ => return Err("only --check and --table are options".into()),
    }
    if let Some(unknown) = names.iter().find(|name| !BENCHES.contains(name)) {
        return Err(format!("{unknown} is no bench; there are {}", BENCHES.join(", ")).into());
    }
    for name in BENCHES.into_iter().filter(|name| names.is_empty() || names.contains(name)) {
        let measured = measure(name)?;
        report.benches.retain(|bench| bench.name != name);
        report.benches.push(measured);
        report.benches.sort_by_key(|bench| BENCHES.iter().position(|name| *name == bench.name));
        // At once: a later bench that fails takes nothing with it.
        std::fs::write(of_the_repository(STORED), report.to_string())?;
    }
    write_tables(&report)
}

fn of_the_repository(path: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), path].iter().collect()
}

fn check(report: &Report) -> Outcome<()> {
    let readme = std::fs::read_to_string(of_the_repository(README))?;
    if with_tables(&readme, report)? == readme {
        return Ok(());
    }
    Err(format!("{README} does not show {STORED}: run `cargo bench --bench report -- --table`")
        .into())
}

fn write_tables(report: &Report) -> Outcome<()> {
    let readme = std::fs::read_to_string(of_the_repository(README))?;
    Ok(std::fs::write(of_the_repository(README), with_tables(&readme, report)?)?)
}

/// Runs one bench, lets its reader see what it prints, and keeps its figures.
fn measure(name: &str) -> Outcome<Bench> {
    let machine = Machine::of_this_process()?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["bench", "--quiet", "--bench", name])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdout(Stdio::piped());
    // What cargo tells a bench of its package would have it build anew what was built without.
    for (variable, _) in std::env::vars_os() {
        let named = ["CARGO_PKG_", "CARGO_MANIFEST_"];
        if named.iter().any(|prefix| variable.as_encoded_bytes().starts_with(prefix.as_bytes())) {
            command.env_remove(variable);
        }
    }
    let mut child = command.spawn()?;
    let mut figures = Vec::new();
    for line in BufReader::new(child.stdout.take().ok_or("no standard output")?).lines() {
        let line = line?;
        match Figure::parse(&line)? {
            Some(figure) => figures.push(figure),
            None => println!("{line}"),
        }
    }
    let status = child.wait()?;
    if !status.success() {
        return Err(format!("{name} ended with {status}").into());
    }
    if figures.is_empty() {
        return Err(format!("{name} printed no number").into());
    }
    Ok(Bench {
        name: name.to_owned(),
        date: time::OffsetDateTime::now_utc().date().to_string(),
        machine: machine.description,
        command: format!("{}cargo bench --bench {name}", machine.prefix),
        figures,
    })
}

/// Where it was measured: what a reader has to know, and nothing that names the machine.
struct Machine {
    description: String,
    /// What has to stand before a command so that it runs as this does.
    prefix: &'static str,
}

impl Machine {
    fn of_this_process() -> Outcome<Self> {
        let cores = std::thread::available_parallelism()?;
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease")?;
        let kernel: Vec<&str> = release.trim().split(['.', '-']).take(2).collect();
        let kernel = kernel.join(".");
        let (priority, prefix) = match scheduling_policy()? {
            0 => ("ordinary priority", ""),
            2 => ("real-time priority", "chrt -r 10 "),
            _ => ("another priority", ""),
        };
        let architecture = std::env::consts::ARCH;
        let description = format!("{cores} cores, Linux {kernel}, {architecture}, {priority}");
        Ok(Self { description, prefix })
    }
}

/// By which this process and its children are scheduled: field 41 of its `stat`.
fn scheduling_policy() -> Outcome<u32> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // The second field is the program's name in parentheses, which may hold anything.
    let rest = stat.rsplit_once(')').ok_or("no name in /proc/self/stat")?.1;
    let policy = rest.split_whitespace().nth(41 - 3).ok_or("no policy in /proc/self/stat")?;
    Ok(policy.parse()?)
}
