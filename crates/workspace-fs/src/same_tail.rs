//! Paths elsewhere in a tree that end as one does that is not there.

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::FileKind;
use super::tree::{
    Entry, Found, IgnoreRules, Options, Report, Selection, Start, Stop, StopCondition, Visit,
    VisitResult, walk,
};

/// How many paths are offered.
const OFFERED: usize = 3;

/// How much is looked at: a huge tree must not make an error slow.
const MOST_TIME: Duration = Duration::from_millis(100);
/// How many entries of the name are compared.
const MOST_COMPARED: usize = 1000;

/// The paths beneath `start` with the last name of `wanted`, as paths from there: those that end in the
/// most of its names, at most three. Where `wanted` has several names, the last alone is not enough.
/// Empty where so many end alike that none is likely to be meant.
pub(super) fn with_same_tail(start: &Start, wanted: &[u8]) -> Vec<PathBuf> {
    let names: Vec<&[u8]> = wanted.split(|byte| *byte == b'/').filter(|n| !n.is_empty()).collect();
    let Some(last) = names.last() else { return Vec::new() };
    let named = Named { last };
    let until = StopCondition { cancelled: &|| false, deadline: Some(Instant::now() + MOST_TIME) };
    let options = Options { want: MOST_COMPARED, threads: None };
    let mut best = Best { names: &names, most: names.len().min(2), paths: Vec::new() };
    let selection = Selection::new(IgnoreRules::Honour);
    if walk(start, &selection, &named, options, until, &mut best).is_err()
        || best.paths.len() > OFFERED
    {
        return Vec::new();
    }
    best.paths.into_iter().map(|path| PathBuf::from(OsString::from_vec(path))).collect()
}

/// Finds entries of one name.
struct Named<'a> {
    last: &'a [u8],
}

impl Visit for Named<'_> {
    type Local = ();
    type Found = ();

    fn local(&self) {}

    fn wants(&self, _: FileKind) -> bool {
        true
    }

    fn visit(&self, (): &mut (), entry: &Entry<'_>, _: &Stop) -> VisitResult<()> {
        match entry.name() == self.last {
            true => VisitResult { found: Some(()), hits: 1, weight: 0, skip: None },
            false => VisitResult::nothing(),
        }
    }
}

/// Keeps the paths that end in the most of the wanted names.
struct Best<'a> {
    names: &'a [&'a [u8]],
    /// How many names the kept ones have in common with it; the fewest that count where there are none.
    most: usize,
    paths: Vec<Vec<u8>>,
}

impl Report<()> for Best<'_> {
    fn found(&mut self, batch: Vec<Found<()>>) -> ControlFlow<()> {
        for Found { path, .. } in batch {
            let ours = path.rsplit(|byte| *byte == b'/');
            let alike = ours.zip(self.names.iter().rev()).take_while(|(a, b)| a == *b).count();
            if alike > self.most {
                self.most = alike;
                self.paths.clear();
            }
            if alike == self.most && self.paths.len() <= OFFERED {
                self.paths.push(path);
            }
        }
        ControlFlow::Continue(())
    }

    fn progress(&mut self, _: u64) {}
}
