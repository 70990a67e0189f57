//! The metrics of all calls: how many, how they ended, how long they took, and their bytes.

use std::collections::BTreeMap;

use super::layer::Finished;

/// Upper ends of the buckets of durations, in seconds: those that OpenTelemetry's conventions
/// advise, and more for commands that run for minutes.
pub(super) const BOUNDS: [f64; 16] = [
    0.001, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 10.0, 60.0, 600.0,
];

/// Series at most. Only a caller that makes up names of tools gets there.
const MOST_SERIES: usize = 128;
/// The name under which all further ones are added up.
const OTHERS: &str = "(others)";

/// What distinguishes one series of metrics from another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Series {
    pub(super) operation: String,
    pub(super) tool: String,
    pub(super) outcome: String,
    /// Empty for a result.
    pub(super) error_kind: String,
}

/// The totals of one series, since the start.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sums {
    pub(super) calls: u64,
    pub(super) seconds: f64,
    /// One more than there are bounds.
    pub(super) buckets: [u64; BOUNDS.len() + 1],
    pub(super) request_bytes: u64,
    pub(super) response_bytes: u64,
}

/// The totals of all calls since the start.
#[derive(Clone, Debug, Default)]
pub(super) struct Metrics {
    series: BTreeMap<Series, Sums>,
}

impl Metrics {
    pub(super) fn add(&mut self, call: &Finished) {
        let said = &call.said;
        let mut series = Series {
            operation: said.operation.clone(),
            tool: said.tool.clone(),
            outcome: said.outcome.clone(),
            error_kind: said.error_kind.clone(),
        };
        if self.series.len() >= MOST_SERIES && !self.series.contains_key(&series) {
            series.tool = OTHERS.to_owned();
        }
        let sums = self.series.entry(series).or_default();
        sums.calls += 1;
        sums.seconds += call.seconds;
        sums.buckets[BOUNDS.partition_point(|bound| *bound < call.seconds)] += 1;
        sums.request_bytes += said.request_bytes;
        sums.response_bytes += said.response_bytes;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Series, &Sums)> {
        self.series.iter()
    }
}
