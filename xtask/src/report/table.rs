//! The stored measurements, and README's tables of them.

use std::fmt;

/// Between these README's tables stand.
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

    fn tables(&self) -> String {
        self.benches.iter().map(Bench::table).collect::<Vec<_>>().join("\n")
    }
}

/// As it is stored.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# Written by `cargo run -p xtask -- report`; README shows it.")?;
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
        let Self { name, value, unit, peer, .. } = self;
        let compared = peer.as_ref().map_or_else(
            || "–".to_owned(),
            |Peer { name, value, .. }| format!("{name}, {value} {unit}"),
        );
        let ratio = peer.as_ref().map_or("–", |peer| peer.ratio.as_str());
        format!("| {name} | {value} {unit} | {compared} | {ratio} | {} |\n", self.verdict())
    }

    fn verdict(&self) -> String {
        let Some(goal) = &self.goal else { return "–".to_owned() };
        let (measured, unit) = match goal.of {
            Of::Ratio => (self.peer.as_ref().map(|peer| peer.ratio.as_str()), "×"),
            Of::Value => (Some(self.value.as_str()), self.unit.as_str()),
        };
        let sign = match goal.relation {
            Relation::AtMost => "≤",
            Relation::AtLeast => "≥",
        };
        let verdict = match measured.and_then(|measured| goal.is_met(measured)) {
            Some(true) => "",
            Some(false) => ", **not met**",
            None => ", not compared",
        };
        format!("{sign} {} {unit}{verdict}", goal.bound)
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

/// README with the tables of `report` between its two marks.
pub(crate) fn with_tables(readme: &str, report: &Report) -> Result<String, String> {
    let no_mark = |mark: &str| format!("README has no line {mark:?}");
    let (before, rest) = readme.split_once(BEGIN).ok_or_else(|| no_mark(BEGIN))?;
    let (_, after) = rest.split_once(END).ok_or_else(|| no_mark(END))?;
    Ok(format!("{before}{BEGIN}\n{}{END}{after}", report.tables()))
}
