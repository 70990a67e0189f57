//! The line in which a bench reports a measurement to `cargo run -p xtask -- report`.
//!
//! `figure`, name, value, unit, peer, the peer's value, ratio and goal, parted by tabs; `-` where
//! there is none. The rest of what a bench prints is for people.
#![expect(clippy::print_stdout, reason = "the line goes to the report that started the bench")]

/// One measurement, with what it is compared with.
pub(crate) struct Measurement<'a> {
    /// What was measured. Unique over all benches, without tabs and bars.
    pub(crate) name: &'a str,
    /// What was measured of ours: usually a median.
    pub(crate) value: f64,
    /// `ms`, `µs`, `MiB`, …; of the peer's value, too.
    pub(crate) unit: &'a str,
    /// What it is compared with in the same run, and its value. None where the machine lacks it.
    pub(crate) peer: Option<(&'a str, f64)>,
    /// What was promised.
    pub(crate) goal: Goal,
}

/// The goal of a measurement.
#[expect(dead_code, reason = "not every bench promises in every way")]
pub(crate) enum Goal {
    /// Nothing was promised.
    None,
    /// Ours ÷ the peer's is at most this.
    RatioAtMost(f64),
    /// Ours ÷ the peer's is at least this: for measurements that are better when higher.
    RatioAtLeast(f64),
    /// Ours is at most this, in the unit of the measurement.
    ValueAtMost(f64),
}

impl Measurement<'_> {
    /// Writes the line to standard output.
    pub(crate) fn print(&self) {
        let (peer, peer_value, ratio) = match self.peer {
            Some((peer, value)) => (peer, short(value), short(self.value / value)),
            None => ("-", "-".to_owned(), "-".to_owned()),
        };
        let goal = match self.goal {
            Goal::None => "-".to_owned(),
            Goal::RatioAtMost(most) => format!("ratio <= {most}"),
            Goal::RatioAtLeast(least) => format!("ratio >= {least}"),
            Goal::ValueAtMost(most) => format!("value <= {most}"),
        };
        let Self { name, unit, .. } = self;
        let value = short(self.value);
        println!("figure\t{name}\t{value}\t{unit}\t{peer}\t{peer_value}\t{ratio}\t{goal}");
    }
}

/// Three digits that count, and no more than two behind the point for what is above 0.1.
fn short(value: f64) -> String {
    match value.abs() {
        at_least if at_least >= 100.0 => format!("{value:.0}"),
        at_least if at_least >= 10.0 => format!("{value:.1}"),
        at_least if at_least >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}
