//! Runs every bench, stores what each measured, and writes the tables of docs/performance.md and the
//! short one of README from that.

mod table;

use std::error::Error;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use crate::root;
use table::{Bench, Measurement, Report, between_marks};

/// The benches, in the order of their tables.
const BENCHES: [&str; 9] =
    ["launch", "spawn", "session", "edit", "grep", "stream", "tokens", "replay", "mcp"];

/// What README shows of each.
const CHOSEN: [(&str, &str); 5] = [
    ("launch", "exec to handshake line, AutoMTLS"),
    ("spawn", "jailed `bash -c true` at level full, a small parent"),
    ("edit", "`edit_file` of a line of 1 MiB"),
    ("grep", "grep, rare word, beside rg"),
    ("stream", "2 GiB of `head -c 2G` to the host, plain"),
];

const STORED: &str = "docs/performance.tsv";

type Show = fn(&Report) -> Result<String, String>;

/// The documents that show measurements, and how.
const DOCUMENTS: [(&str, Show); 2] = [
    ("docs/performance.md", |report| Ok(report.tables())),
    ("README.md", |report| report.summary(&CHOSEN)),
];

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Runs the named benches, or all where none is named; the others' stored measurements stay.
pub(crate) fn measure(names: &[&str]) -> Outcome<()> {
    let mut report = stored()?;
    if let Some(unknown) = names.iter().find(|name| !BENCHES.contains(name)) {
        return Err(format!("{unknown} is no bench; there are {}", BENCHES.join(", ")).into());
    }
    for name in BENCHES.into_iter().filter(|name| names.is_empty() || names.contains(name)) {
        let measured = measured(name)?;
        report.benches.retain(|bench| bench.name != name);
        report.benches.push(measured);
        report.benches.sort_by_key(|bench| BENCHES.iter().position(|name| *name == bench.name));
        // At once: a later bench that fails takes nothing with it.
        fs::write(root().join(STORED), report.to_string())?;
    }
    write_tables()
}

/// Writes the documents' tables from the stored measurements.
pub(crate) fn write_tables() -> Outcome<()> {
    let report = stored()?;
    for (name, show) in DOCUMENTS {
        let document = root().join(name);
        let text = between_marks(&fs::read_to_string(&document)?, &show(&report)?)
            .map_err(|error| format!("{name} {error}"))?;
        fs::write(document, text)?;
    }
    Ok(())
}

fn stored() -> Outcome<Report> {
    Ok(Report::parse(&fs::read_to_string(root().join(STORED))?)?)
}

/// Runs one bench, lets its reader see what it prints, and keeps its measurements.
fn measured(name: &str) -> Outcome<Bench> {
    let machine = Machine::of_this_process()?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["bench", "--quiet", "--bench", name]).current_dir(root()).stdout(Stdio::piped());
    // With the variables that cargo sets for a bench it would build anew what was built without them.
    for (variable, _) in std::env::vars_os() {
        let named = ["CARGO_PKG_", "CARGO_MANIFEST_"];
        if named.iter().any(|prefix| variable.as_encoded_bytes().starts_with(prefix.as_bytes())) {
            command.env_remove(variable);
        }
    }
    let mut child = command.spawn()?;
    let mut measurements = Vec::new();
    for line in BufReader::new(child.stdout.take().ok_or("no standard output")?).lines() {
        let line = line?;
        match Measurement::parse(&line)? {
            Some(measurement) => measurements.push(measurement),
            None => writeln!(std::io::stdout(), "{line}")?,
        }
    }
    let status = child.wait()?;
    if !status.success() {
        return Err(format!("{name} ended with {status}").into());
    }
    if measurements.is_empty() {
        return Err(format!("{name} printed no number").into());
    }
    Ok(Bench {
        name: name.to_owned(),
        date: time::OffsetDateTime::now_utc().date().to_string(),
        machine: machine.description,
        command: format!("{}cargo bench --bench {name}", machine.prefix),
        measurements,
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
        let release = fs::read_to_string("/proc/sys/kernel/osrelease")?;
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
    let stat = fs::read_to_string("/proc/self/stat")?;
    // The second field is the program's name in parentheses, which may hold anything.
    let rest = stat.rsplit_once(')').ok_or("no name in /proc/self/stat")?.1;
    let policy = rest.split_whitespace().nth(41 - 3).ok_or("no policy in /proc/self/stat")?;
    Ok(policy.parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documents_show_the_stored_measurements() {
        let text = fs::read_to_string(root().join(STORED)).unwrap();
        let report = stored().unwrap();
        assert!(!report.benches.is_empty());
        assert_eq!(report.to_string(), text, "{STORED} was written by hand");
        for (name, show) in DOCUMENTS {
            let document = fs::read_to_string(root().join(name)).unwrap();
            let shown = between_marks(&document, &show(&report).unwrap()).unwrap();
            assert!(shown == document, "{name} is old: cargo run -p xtask -- report --table");
        }
    }

    #[test]
    fn a_measurement_that_changes_changes_the_table_and_a_goal_is_judged() {
        let shown = |ratio: &str| report_of(ratio).tables();
        let met = shown("0.50");
        assert!(met.contains("| start | 2.5 ms | a peer, 5.0 ms | 0.50 | ≤ 0.5 × |"), "{met}");
        let missed = shown("0.51");
        assert!(missed.contains("≤ 0.5 ×, **not met** |"), "{missed}");
    }

    #[test]
    fn a_summary_has_the_chosen_rows_and_counts_what_is_missed() {
        let met = report_of("0.50").summary(&[("x", "start")]).unwrap();
        assert!(met.contains("| `x` | start | 2.5 ms | a peer, 5.0 ms | 0.50 |\n"), "{met}");
        assert!(met.ends_with("1 of 1 goals are met.\n"), "{met}");
        let missed = report_of("0.51").summary(&[("x", "start")]).unwrap();
        assert!(missed.ends_with("0 of 1 goals are met.\n"), "{missed}");
        for absent in [("y", "start"), ("x", "end")] {
            assert!(report_of("0.5").summary(&[absent]).is_err(), "{absent:?}");
        }
    }

    fn report_of(ratio: &str) -> Report {
        let measurement = format!("figure\tstart\t2.5\tms\ta peer\t5.0\t{ratio}\tratio <= 0.5");
        Report::parse(&format!("bench\tx\t2026-01-01\tone\tcargo bench\n{measurement}\n")).unwrap()
    }

    #[test]
    fn only_what_is_between_the_marks_is_replaced() {
        let document = "a\n<!-- figures: written by `cargo run -p xtask -- report` -->\nold\n\
                        <!-- figures: end -->\nb\n";
        let renewed = between_marks(document, "new\n").unwrap();
        assert_eq!(renewed, document.replace("old", "new"));
        assert_eq!(between_marks(&renewed, "new\n").unwrap(), renewed);
        assert!(between_marks("no marks", "new\n").is_err());
    }

    #[test]
    fn what_is_no_measurement_is_distinguished_from_one_that_is_broken() {
        assert_eq!(Measurement::parse("  plain  2.5 ms"), Ok(None));
        for broken in [
            "figure\tname\t1\tms",
            "figure\tname\tfast\tms\t-\t-\t-\t-",
            "figure\tname\t1\tms\t-\t-\t-\tratio < 2",
            "figure\ta|b\t1\tms\t-\t-\t-\t-",
        ] {
            assert!(Measurement::parse(broken).is_err(), "{broken}");
        }
    }
}
