//! The report for a person.

use clap::builder::styling::{AnsiColor, Effects, Style};
use serde_json::Value;

use super::checks::Check;
use super::report::{Finding, Report, Verdict};

/// How wide the column of ids is.
const ID_WIDTH: usize = 26;

const RED: Style = AnsiColor::Red.on_default();
const GREEN: Style = AnsiColor::Green.on_default();
const YELLOW: Style = AnsiColor::Yellow.on_default();
const DIM: Style = Style::new().effects(Effects::DIMMED);

/// Decides for this process whether colours reach its standard output and standard error.
pub(crate) fn choose_colours(choice: clap::ColorChoice) {
    match choice {
        clap::ColorChoice::Auto => anstream::ColorChoice::Auto,
        clap::ColorChoice::Always => anstream::ColorChoice::Always,
        clap::ColorChoice::Never => anstream::ColorChoice::Never,
    }
    .write_global();
}

/// Why there is no report.
pub(crate) fn untestable(why: &str) -> String {
    format!("{} {}\n", styled(RED, "could not be tested:"), escape(why))
}

/// The whole report.
pub(crate) fn text(report: &Report) -> String {
    let mut text = String::new();
    for (check, verdict) in report.verdicts() {
        text.push_str(&one(check, &verdict, report.remarks(check)));
    }
    let counts = report.counts();
    let kept = counts.passed + counts.remarked;
    let total = kept + counts.failed + counts.not_reached;
    let style = match (counts.failed, counts.not_reached) {
        (1.., _) => RED,
        (0, 1..) => YELLOW,
        (0, 0) => GREEN,
    };
    let remarked = match counts.remarked {
        0 => String::new(),
        remarked => format!(" ({remarked} with a remark)"),
    };
    let summary = format!(
        "{total} checks: {kept} passed{remarked}, {} failed, {} not reached",
        counts.failed, counts.not_reached
    );
    text.push_str(&format!("\n{}\n", styled(style, &summary)));
    text
}

fn one(check: Check, verdict: &Verdict, remarks: &[Finding]) -> String {
    let (mark, style) = match verdict {
        Verdict::Pass(_) | Verdict::Remark(_) => ("pass", GREEN),
        Verdict::Fail(_) => ("FAIL", RED),
        Verdict::NotReached(_) => ("----", YELLOW),
    };
    let mark = styled(style, mark);
    let mut text = format!("{mark}  {:ID_WIDTH$} {}\n", check.id(), check.title());
    let mut line = |label: &str, said: &str| {
        // What a provider said may be more than a line.
        let said = escape(said).replace('\n', "\n                ");
        text.push_str(&format!("      {} {said}\n", styled(DIM, &format!("{label:9}"))));
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

fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// What a provider said, safe on a terminal: what steers one, and what cannot be seen, is spelled out.
fn escape(said: &str) -> String {
    let mut shown = String::with_capacity(said.len());
    for c in said.replace("\r\n", "\n").chars() {
        match c {
            '\n' | '\t' | '"' | '\'' | '\\' => shown.push(c),
            _ => shown.extend(c.escape_debug()),
        }
    }
    shown
}

/// JSON in which what cannot be seen is escaped, so that it is safe on a terminal too.
pub(crate) fn json(value: &Value) -> String {
    let mut shown = String::new();
    for c in format!("{value:#}").chars() {
        if c.is_ascii() && c != '\u{7f}' || c.escape_debug().len() == 1 {
            shown.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                shown.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::super::report::Selection;
    use super::*;

    #[test]
    fn json_shows_what_hides_and_means_the_same() {
        let value = serde_json::json!({"é": "a\u{202e}\u{e0041}\u{1b}"});
        let shown = json(&value);
        assert_eq!(shown, "{\n  \"é\": \"a\\u202e\\udb40\\udc41\\u001b\"\n}");
        assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), value);
    }

    #[test]
    fn a_report_says_what_was_seen_and_what_was_expected() {
        let only = vec!["launch.line".to_owned(), "launch.std".to_owned()];
        let mut report = Report::new(Selection { only, skip: Vec::new() });
        report.pass(Check::Line);
        report.fail(Check::Stdout, "\u{1b}[2J\nmore '\u{202e}é'", "nothing");
        report.remark(Check::Line, "allowed", "best");
        let text = anstream::adapter::strip_str(&text(&report)).to_string();
        let expected = "\
pass  launch.line                prints a handshake line that a host can use
      rule      go-plugin: the first line is 1|VERSION|unix or tcp|ADDRESS|grpc|, with a certificate or a seventh field only when asked for
      remark    allowed
      better    best
FAIL  launch.stdout              prints nothing else on stdout, ever
      rule      go-plugin: standard output belongs to the handshake; a host throws away what follows, and stops reading at a line of 64 KiB
      seen      \\u{1b}[2J
                more '\\u{202e}é'
      expected  nothing
----  launch.stderr              writes nothing on stderr that crashes a host
      rule      hclog: in a JSON line the keys @level, @message and @timestamp are strings; another type panics a Go host
      unreached the run did not get this far

3 checks: 1 passed (1 with a remark), 1 failed, 1 not reached
";
        assert_eq!(text, expected);
    }
}
