//! The report for a person.

use super::checks::Check;
use super::report::{Finding, Report, Verdict};
use provider_workspace::cli::{Escape, Ink, Paint};

/// How wide the column of ids is.
const ID_WIDTH: usize = 26;

/// The whole report.
pub(crate) fn text(report: &Report, paint: Paint, escape: Escape) -> String {
    let mut text = String::new();
    for (check, verdict) in report.verdicts() {
        text.push_str(&one(check, &verdict, report.remarks(check), paint, escape));
    }
    let counts = report.counts();
    let kept = counts.passed + counts.remarked;
    let total = kept + counts.failed + counts.not_reached;
    let ink = match (counts.failed, counts.not_reached) {
        (1.., _) => Ink::Red,
        (0, 1..) => Ink::Yellow,
        (0, 0) => Ink::Green,
    };
    let remarked = match counts.remarked {
        0 => String::new(),
        remarked => format!(" ({remarked} with a remark)"),
    };
    let summary = format!(
        "{total} checks: {kept} passed{remarked}, {} failed, {} not reached",
        counts.failed, counts.not_reached
    );
    text.push_str(&format!("\n{}\n", paint.ink(ink, &summary)));
    text
}

fn one(
    check: Check,
    verdict: &Verdict,
    remarks: &[Finding],
    paint: Paint,
    escape: Escape,
) -> String {
    let (mark, ink) = match verdict {
        Verdict::Pass(_) | Verdict::Remark(_) => ("pass", Ink::Green),
        Verdict::Fail(_) => ("FAIL", Ink::Red),
        Verdict::NotReached(_) => ("----", Ink::Yellow),
    };
    let mark = paint.ink(ink, mark);
    let mut text = format!("{mark}  {:ID_WIDTH$} {}\n", check.id(), check.title());
    let mut line = |label: &str, said: &str| {
        // What a provider said may be more than a line, and what a terminal would obey.
        let said = escape.apply(said).replace('\n', "\n                ");
        text.push_str(&format!("      {} {said}\n", paint.ink(Ink::Dim, &format!("{label:9}"))));
    };
    match verdict {
        Verdict::Pass(notes) => notes.iter().for_each(|note| line("note", note)),
        Verdict::Remark(_) => line("rule", check.rule()),
        Verdict::NotReached(reasons) => {
            line("rule", check.rule());
            reasons.iter().for_each(|why| line("unreached", why));
        }
        Verdict::Fail(findings) => {
            line("rule", check.rule());
            for finding in findings {
                line("seen", &finding.seen);
                line("expected", &finding.expected);
            }
        }
    }
    for remark in remarks {
        line("remark", &remark.seen);
        line("better", &remark.expected);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::report::Selection;
    use super::*;

    #[test]
    fn a_report_tells_what_was_seen_and_what_was_expected() {
        let only = vec!["launch.line".to_owned(), "launch.std".to_owned()];
        let mut report = Report::new(Selection { only, skip: Vec::new() });
        report.pass(Check::Line);
        report.fail(Check::Stdout, "\u{1b}[2J\nmore", "nothing");
        report.remark(Check::Line, "allowed", "best");
        let text = text(&report, Paint::Plain, Escape::Controls);
        let expected = "\
pass  launch.line                prints a handshake line that a host can use
      rule      go-plugin: the first line is 1|VERSION|unix or tcp|ADDRESS|grpc|, with a certificate or a seventh field only when asked for
      remark    allowed
      better    best
FAIL  launch.stdout              prints nothing else on stdout, ever
      rule      go-plugin: standard output belongs to the handshake; a host throws away what follows, and stops reading at a line of 64 KiB
      seen      \\u{1b}[2J
                more
      expected  nothing
----  launch.stderr              writes nothing on stderr that crashes a host
      rule      hclog: in a JSON line the keys @level, @message and @timestamp are strings; another type panics a Go host
      unreached the run did not get this far

3 checks: 1 passed (1 with a remark), 1 failed, 1 not reached
";
        assert_eq!(text, expected);
    }
}
