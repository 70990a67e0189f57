//! What was found, check by check.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::checks::Check;

/// How many findings of one check are kept; more of the same help nobody.
const MOST_FINDINGS: usize = 5;

/// Longest text of a finding, in characters.
const MOST_TEXT: usize = 600;

/// What a check saw that breaks its rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) seen: String,
    pub(crate) expected: String,
}

/// What came of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The rule was kept, perhaps with something to say about it.
    Pass(Vec<String>),
    /// It was kept, and something was seen that the protocol allows and hosts or people would
    /// rather not have.
    Remark(Vec<Finding>),
    /// It was broken.
    Fail(Vec<Finding>),
    /// It could not be tried, or not everywhere.
    NotReached(Vec<String>),
}

/// All verdicts. A check may be tried many times: one failure makes it fail, a part that was not
/// reached makes it not reached, and what is left is a remark where there is one.
#[derive(Debug)]
pub(crate) struct Report {
    selection: Selection,
    entries: BTreeMap<Check, Entry>,
    /// Why what was not tried was not.
    stopped: Option<String>,
}

/// Which checks are run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    /// Only those whose id begins with one of these, if there are any.
    pub(crate) only: Vec<String>,
    /// Not those whose id begins with one of these.
    pub(crate) skip: Vec<String>,
}

impl Selection {
    /// The first beginning that is none of any check.
    pub(crate) fn slip(&self) -> Option<&str> {
        let is_none = |prefix: &&String| {
            !Check::ALL.iter().any(|check| check.id().starts_with(prefix.as_str()))
        };
        self.only.iter().chain(&self.skip).find(is_none).map(String::as_str)
    }

    pub(crate) fn wants(&self, check: Check) -> bool {
        let begins = |prefix: &String| check.id().starts_with(prefix.as_str());
        (self.only.is_empty() || self.only.iter().any(begins)) && !self.skip.iter().any(begins)
    }
}

#[derive(Debug, Default)]
struct Entry {
    kept: bool,
    notes: Vec<String>,
    findings: Vec<Finding>,
    remarks: Vec<Finding>,
    not_reached: Vec<String>,
}

impl Report {
    pub(crate) fn new(selection: Selection) -> Self {
        Self { selection, entries: BTreeMap::new(), stopped: None }
    }

    /// Whether any of these is to be run.
    pub(crate) fn wants(&self, checks: &[Check]) -> bool {
        checks.iter().any(|&check| self.selection.wants(check))
    }

    /// The run cannot go on as it should; what it does not get to is not reached because of this.
    pub(crate) fn stop(&mut self, why: impl Into<String>) {
        self.stopped.get_or_insert_with(|| shorten(why.into()));
    }

    /// The rule was kept.
    pub(crate) fn pass(&mut self, check: Check) {
        self.entries.entry(check).or_default().kept = true;
    }

    /// The rule was kept, and there is something to say.
    pub(crate) fn pass_with(&mut self, check: Check, note: impl Into<String>) {
        let entry = self.entries.entry(check).or_default();
        entry.kept = true;
        push_new(&mut entry.notes, note.into());
    }

    /// The rule was kept if nothing else was seen.
    pub(crate) fn pass_unless_tried(&mut self, check: Check) {
        if !self.entries.contains_key(&check) {
            self.pass(check);
        }
    }

    /// The rule was kept if nothing else was seen, and there is something to say.
    pub(crate) fn pass_with_unless_tried(&mut self, check: Check, note: &str) {
        if !self.entries.contains_key(&check) {
            self.pass_with(check, note);
        }
    }

    /// The rule was broken.
    pub(crate) fn fail(
        &mut self,
        check: Check,
        seen: impl Into<String>,
        expected: impl Into<String>,
    ) {
        let finding = Finding { seen: shorten(seen.into()), expected: shorten(expected.into()) };
        push_new(&mut self.entries.entry(check).or_default().findings, finding);
    }

    /// The rule was kept, but not as well as it could be.
    pub(crate) fn remark(
        &mut self,
        check: Check,
        seen: impl Into<String>,
        better: impl Into<String>,
    ) {
        let remark = Finding { seen: shorten(seen.into()), expected: shorten(better.into()) };
        push_new(&mut self.entries.entry(check).or_default().remarks, remark);
    }

    /// The rule was kept, the better for there being nothing among these.
    pub(crate) fn weigh(
        &mut self,
        check: Check,
        remarks: impl IntoIterator<Item = String>,
        better: &str,
    ) {
        self.pass(check);
        for seen in remarks {
            self.remark(check, seen, better);
        }
    }

    /// The rule could not be tried.
    pub(crate) fn not_reached(&mut self, check: Check, why: impl Into<String>) {
        push_new(&mut self.entries.entry(check).or_default().not_reached, shorten(why.into()));
    }

    /// The rule could not be tried if nothing was seen.
    pub(crate) fn not_reached_unless_tried(&mut self, check: Check, why: &str) {
        if !self.entries.contains_key(&check) {
            self.not_reached(check, why);
        }
    }

    /// The rule was kept if nothing is among the problems.
    pub(crate) fn judge(
        &mut self,
        check: Check,
        problems: impl IntoIterator<Item = String>,
        expected: &str,
    ) {
        let before = self.findings(check);
        for problem in problems {
            self.fail(check, problem, expected);
        }
        if self.findings(check) == before {
            self.pass(check);
        }
    }

    fn findings(&self, check: Check) -> usize {
        self.entries.get(&check).map_or(0, |entry| entry.findings.len())
    }

    /// The verdicts of the checks that were to be run, in the table's order.
    pub(crate) fn verdicts(&self) -> Vec<(Check, Verdict)> {
        let wanted = Check::ALL.iter().filter(|&&check| self.selection.wants(check));
        wanted.map(|&check| (check, self.verdict(check))).collect()
    }

    fn verdict(&self, check: Check) -> Verdict {
        match self.entries.get(&check) {
            Some(entry) if !entry.findings.is_empty() => Verdict::Fail(entry.findings.clone()),
            Some(entry) if !entry.not_reached.is_empty() => {
                Verdict::NotReached(entry.not_reached.clone())
            }
            Some(entry) if !entry.remarks.is_empty() => Verdict::Remark(entry.remarks.clone()),
            Some(Entry { kept: true, notes, .. }) => Verdict::Pass(notes.clone()),
            _ => {
                let why = self.stopped.as_deref().unwrap_or("the run did not get this far");
                Verdict::NotReached(vec![why.to_owned()])
            }
        }
    }

    /// What there is to remark besides a verdict that weighs more.
    pub(crate) fn remarks(&self, check: Check) -> &[Finding] {
        self.entries.get(&check).map_or(&[], |entry| &entry.remarks)
    }

    /// How many ended in which way.
    pub(crate) fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for (_, verdict) in self.verdicts() {
            match verdict {
                Verdict::Pass(_) => counts.passed += 1,
                Verdict::Remark(_) => counts.remarked += 1,
                Verdict::Fail(_) => counts.failed += 1,
                Verdict::NotReached(_) => counts.not_reached += 1,
            }
        }
        counts
    }

    /// The report as a program reads it.
    pub(crate) fn as_json(&self, binary: &str) -> Value {
        let checks = self.verdicts().into_iter().map(|(check, verdict)| {
            let mut json = json!({
                "id": check.id(), "title": check.title(), "rule": check.rule(),
                "remarks": as_json(self.remarks(check)),
            });
            match verdict {
                Verdict::Pass(notes) => {
                    json["outcome"] = "pass".into();
                    json["notes"] = notes.into();
                }
                Verdict::Fail(findings) => {
                    json["outcome"] = "fail".into();
                    json["findings"] = as_json(&findings);
                }
                Verdict::Remark(_) => json["outcome"] = "remark".into(),
                Verdict::NotReached(why) => {
                    json["outcome"] = "not_reached".into();
                    json["why"] = why.into();
                }
            }
            json
        });
        let checks: Vec<Value> = checks.collect();
        let counts = self.counts();
        json!({
            "binary": binary, "checks": checks, "passed": counts.passed,
            "remarked": counts.remarked, "failed": counts.failed,
            "not_reached": counts.not_reached,
        })
    }
}

/// How many checks ended in which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: usize,
    pub(crate) remarked: usize,
    pub(crate) failed: usize,
    pub(crate) not_reached: usize,
}

fn as_json(findings: &[Finding]) -> Value {
    let one = |finding: &Finding| json!({"seen": finding.seen, "expected": finding.expected});
    findings.iter().map(one).collect()
}

fn push_new<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if list.len() < MOST_FINDINGS && !list.contains(&item) {
        list.push(item);
    }
}

fn shorten(text: String) -> String {
    match text.char_indices().nth(MOST_TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_outweighs_what_was_not_reached_and_that_outweighs_a_pass() {
        let mut report = Report::new(Selection::default());
        report.pass(Check::Line);
        assert_eq!(report.verdict(Check::Line), Verdict::Pass(Vec::new()));
        report.weigh(Check::Line, ["could be".to_owned()], "better");
        assert!(matches!(report.verdict(Check::Line), Verdict::Remark(_)));
        assert_eq!(report.counts().remarked, 1);
        report.not_reached(Check::Line, "no");
        assert_eq!(report.remarks(Check::Line).len(), 1);
        assert_eq!(report.verdict(Check::Line), Verdict::NotReached(vec!["no".to_owned()]));
        report.judge(Check::Line, ["x".to_owned()], "y");
        let finding = Finding { seen: "x".to_owned(), expected: "y".to_owned() };
        assert_eq!(report.verdict(Check::Line), Verdict::Fail(vec![finding]));
        assert!(matches!(report.verdict(Check::Stdout), Verdict::NotReached(_)));
        assert_eq!(report.counts().failed, 1);
    }

    #[test]
    fn every_check_has_an_id_of_its_own_in_a_group() {
        let mut ids: Vec<_> = Check::ALL.iter().map(|check| check.id()).collect();
        assert!(ids.iter().all(|id| id.split('.').count() == 2));
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), Check::ALL.len());
        let selection =
            Selection { only: vec!["launch".to_owned()], skip: vec!["launch.tls".to_owned()] };
        assert!(selection.wants(Check::Line) && !selection.wants(Check::AutoMtls));
        assert!(!selection.wants(Check::Names));
    }
}
