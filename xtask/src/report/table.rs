//! The stored measurements, and the documents' tables of them.

use std::fmt::{self, Write as _};

/// Between these a document's tables stand.
const BEGIN: &str = "<!-- figures: written by `cargo run -p xtask -- report` -->";
const END: &str = "<!-- figures: end -->";

/// Everything that is stored.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Report {
    pub(crate) benches: Vec<Bench>,
}

/// What one bench measured.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bench {
    pub(crate) name: String,
    pub(crate) date: String,
    pub(crate) machine: String,
    /// What measures it again.
    pub(crate) command: String,
    pub(crate) measurements: Vec<Measurement>,
}

/// One line of a bench, as `benches/measurement.rs` writes it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Measurement {
    name: String,
    value: String,
    unit: String,
    peer: Option<Peer>,
    goal: Option<Goal>,
}

#[derive(Clone, Debug, PartialEq)]
struct Peer {
    name: String,
    value: String,
    ratio: String,
}

#[derive(Clone, Debug, PartialEq)]
struct Goal {
    of: Of,
    relation: Relation,
    bound: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Of {
    Ratio,
    Value,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Relation {
    AtMost,
    AtLeast,
}

impl Report {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut report = Self::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let fields: Vec<&str> = line.split('\t').collect();
            if let ["bench", name, date, machine, command] = fields[..] {
                let [name, date, machine, command] =
                    [name, date, machine, command].map(str::to_owned);
                report.benches.push(Bench {
                    name,
                    date,
                    machine,
                    command,
                    measurements: Vec::new(),
                });
                continue;
            }
            let measurement =
                Measurement::parse(line)?.ok_or_else(|| format!("{line:?} is no measurement"))?;
            let bench = report.benches.last_mut().ok_or("a measurement without a bench")?;
            bench.measurements.push(measurement);
        }
        Ok(report)
    }

    /// A table for each bench.
    pub(crate) fn tables(&self) -> String {
        self.benches.iter().map(Bench::table).collect::<Vec<_>>().join("\n")
    }

    /// One table of the chosen measurements, each a bench's name and its own, and how many of all
    /// the goals are met.
    pub(crate) fn summary(&self, chosen: &[(&str, &str)]) -> Result<String, String> {
        let mut summary =
            "| bench | what | ours | compared with | ratio |\n|---|---|---|---|---|\n".to_owned();
        for (bench, name) in chosen {
            let mut measurements = self.measurements().filter(|(of, _)| of == bench);
            let (_, measurement) = measurements
                .find(|(_, measurement)| measurement.name == *name)
                .ok_or_else(|| format!("{bench} has no measurement {name:?}"))?;
            let columns = measurement.columns();
            writeln!(summary, "| `{bench}` | {columns} |").map_err(|error| error.to_string())?;
        }
        let verdicts = self.measurements().filter_map(|(_, measurement)| measurement.is_goal_met());
        let (met, missed): (Vec<bool>, Vec<bool>) = verdicts.partition(|met| *met);
        let (met, all) = (met.len(), met.len() + missed.len());
        Ok(format!("{summary}\n{met} of {all} goals are met.\n"))
    }

    /// All measurements, each with its bench's name.
    fn measurements(&self) -> impl Iterator<Item = (&str, &Measurement)> {
        self.benches.iter().flat_map(|bench| {
            bench.measurements.iter().map(|measurement| (bench.name.as_str(), measurement))
        })
    }
}

/// As it is stored.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# Written by `cargo run -p xtask -- report`; docs/performance.md shows it.")?;
        for Bench { name, date, machine, command, measurements } in &self.benches {
            writeln!(f, "bench\t{name}\t{date}\t{machine}\t{command}")?;
            measurements.iter().try_for_each(|measurement| writeln!(f, "{measurement}"))?;
        }
        Ok(())
    }
}

impl Bench {
    fn table(&self) -> String {
        let Self { date, machine, command, measurements, .. } = self;
        let mut table = format!(
            "`{command}` ({date}; {machine}):\n\n\
             | what | ours | compared with | ratio | goal |\n|---|---|---|---|---|\n"
        );
        for measurement in measurements {
            table.push_str(&measurement.row());
        }
        table
    }
}

impl Measurement {
    /// Reads a line of a bench. None for a line that is meant for people.
    pub(crate) fn parse(line: &str) -> Result<Option<Self>, String> {
        let Some(rest) = line.strip_prefix("figure\t") else { return Ok(None) };
        let fields: Vec<&str> = rest.split('\t').collect();
        let [name, value, unit, peer, peer_value, ratio, goal] = fields[..] else {
            return Err(format!("{line:?} has not seven fields"));
        };
        let numbers = [value, peer_value, ratio].into_iter().filter(|number| *number != "-");
        for number in numbers {
            number.parse::<f64>().map_err(|_| format!("{number:?} in {line:?} is no number"))?;
        }
        if value == "-" || line.contains('|') {
            return Err(format!("{line:?} cannot be shown"));
        }
        let peer = (peer != "-").then(|| Peer {
            name: peer.to_owned(),
            value: peer_value.to_owned(),
            ratio: ratio.to_owned(),
        });
        let goal = match goal {
            "-" => None,
            goal => Some(Goal::parse(goal).ok_or_else(|| format!("{goal:?} is no goal"))?),
        };
        let [name, value, unit] = [name, value, unit].map(str::to_owned);
        Ok(Some(Self { name, value, unit, peer, goal }))
    }

    fn row(&self) -> String {
        format!("| {} | {} |\n", self.columns(), self.verdict())
    }

    /// What was measured, ours, what it is compared with, and the ratio.
    fn columns(&self) -> String {
        let Self { name, value, unit, peer, .. } = self;
        let compared = peer.as_ref().map_or_else(
            || "–".to_owned(),
            |Peer { name, value, .. }| format!("{name}, {value} {unit}"),
        );
        let ratio = peer.as_ref().map_or("–", |peer| peer.ratio.as_str());
        format!("{name} | {value} {unit} | {compared} | {ratio}")
    }

    fn verdict(&self) -> String {
        let Some(goal) = &self.goal else { return "–".to_owned() };
        let unit = match goal.of {
            Of::Ratio => "×",
            Of::Value => self.unit.as_str(),
        };
        let sign = match goal.relation {
            Relation::AtMost => "≤",
            Relation::AtLeast => "≥",
        };
        let verdict = match self.is_goal_met() {
            Some(true) => "",
            Some(false) => ", **not met**",
            None => ", not compared",
        };
        format!("{sign} {} {unit}{verdict}", goal.bound)
    }

    /// None where there is no goal, or nothing to judge it by.
    fn is_goal_met(&self) -> Option<bool> {
        let goal = self.goal.as_ref()?;
        goal.is_met(match goal.of {
            Of::Ratio => self.peer.as_ref()?.ratio.as_str(),
            Of::Value => self.value.as_str(),
        })
    }
}

/// As a bench writes it.
impl fmt::Display for Measurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, value, unit, peer, goal } = self;
        write!(f, "figure\t{name}\t{value}\t{unit}\t")?;
        match peer {
            Some(Peer { name, value, ratio }) => write!(f, "{name}\t{value}\t{ratio}\t")?,
            None => write!(f, "-\t-\t-\t")?,
        }
        match goal {
            Some(goal) => write!(f, "{goal}"),
            None => write!(f, "-"),
        }
    }
}

impl Goal {
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let of = match words.next()? {
            "ratio" => Of::Ratio,
            "value" => Of::Value,
            _ => return None,
        };
        let relation = match words.next()? {
            "<=" => Relation::AtMost,
            ">=" => Relation::AtLeast,
            _ => return None,
        };
        let bound = words.next()?.to_owned();
        let is_whole = bound.parse::<f64>().is_ok() && words.next().is_none();
        is_whole.then_some(Self { of, relation, bound })
    }

    fn is_met(&self, measured: &str) -> Option<bool> {
        let (measured, bound): (f64, f64) = (measured.parse().ok()?, self.bound.parse().ok()?);
        Some(match self.relation {
            Relation::AtMost => measured <= bound,
            Relation::AtLeast => measured >= bound,
        })
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = match self.of {
            Of::Ratio => "ratio",
            Of::Value => "value",
        };
        let sign = match self.relation {
            Relation::AtMost => "<=",
            Relation::AtLeast => ">=",
        };
        write!(f, "{of} {sign} {}", self.bound)
    }
}

/// A document with `shown` between its two marks.
pub(crate) fn between_marks(document: &str, shown: &str) -> Result<String, String> {
    let no_mark = |mark: &str| format!("has no line {mark:?}");
    let (before, rest) = document.split_once(BEGIN).ok_or_else(|| no_mark(BEGIN))?;
    let (_, after) = rest.split_once(END).ok_or_else(|| no_mark(END))?;
    Ok(format!("{before}{BEGIN}\n{shown}{END}{after}"))
}
