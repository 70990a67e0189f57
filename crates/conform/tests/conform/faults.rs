//! Each check, failing for a provider that breaks its rule.

use std::collections::BTreeSet;

use libtest_mimic::Trial;

use crate::checker::Checked;
use crate::trial;

/// How long a step may take where the fault is that something does not end. Whatever does end may
/// take as long as it likes.
const HANGS: &str = "4";
const PATIENT: &str = "60";

/// A fault, and what must come of it.
pub(crate) struct Row {
    fault: &'static str,
    limit: &'static str,
    outcome: Outcome,
    /// The checks that must find it.
    finding: &'static [&'static str],
    /// Those that have to be run for it besides.
    besides: &'static [&'static str],
    /// What else the checker's settings hold, as JSON.
    settings: &'static str,
}

#[derive(Clone, Copy, PartialEq)]
enum Outcome {
    /// A rule is broken.
    Fail,
    /// None is, but there is something to remark.
    Remark,
}

impl Row {
    const fn with(self, settings: &'static str) -> Self {
        Row { settings, ..self }
    }
}

const fn row(
    fault: &'static str,
    limit: &'static str,
    finding: &'static [&'static str],
    besides: &'static [&'static str],
) -> Row {
    Row { fault, limit, outcome: Outcome::Fail, finding, besides, settings: "{}" }
}

const fn remark(fault: &'static str, limit: &'static str, finding: &'static [&'static str]) -> Row {
    Row { outcome: Outcome::Remark, ..row(fault, limit, finding, &[]) }
}

static FAULTS: &[Row] = &[
    // What is waited for comes first.
    row("ignores-a-cancel", HANGS, &["invoke.cancel"], &[]),
    row("ignores-a-cancel", HANGS, &["invoke.deadline"], &[]),
    row("lies-about-multiplexing", HANGS, &["launch.multiplex"], &[]),
    row("waits-for-the-host", HANGS, &["callbacks.optional"], &[]),
    row("serves-nothing-of-go-plugin", HANGS, &["launch.health", "end.shutdown", "end.busy"], &[]),
    row("leaves-a-socket", PATIENT, &["end.sockets"], &["end.shutdown"]),
    Row {
        besides: &["end.terminate"],
        ..remark("serves-nothing-of-go-plugin", HANGS, &["end.sockets"])
    },
    row("is-deaf-to-sigterm", HANGS, &["end.terminate"], &[]),
    remark("outlives-its-host", HANGS, &["end.host_death"]),
    row("leaves-a-process", HANGS, &["end.orphans"], &[]),
    row("runs-without-cookie", PATIENT, &["launch.cookie"], &[]),
    row("prints-a-seventh-field", PATIENT, &["launch.line"], &[]),
    row("floods-stdout", PATIENT, &["launch.stdout"], &[]),
    remark("prints-on-stdout", PATIENT, &["launch.stdout"]),
    row("crashes-the-host's-log", PATIENT, &["launch.stderr"], &[]),
    row("speaks-another-version", PATIENT, &["launch.version"], &[]),
    row("serves-any-service", PATIENT, &["launch.foreign_service"], &[]),
    row("has-no-tls", PATIENT, &["launch.tls"], &[]),
    row("has-no-name", PATIENT, &["describe.identity"], &[]),
    remark("names-a-url", PATIENT, &["describe.identity"]),
    row("has-no-semantic-version", PATIENT, &["describe.version"], &[]),
    row("is-a-model", PATIENT, &["describe.category"], &[]),
    row("lists-nothing-yet", PATIENT, &["schema.answers"], &[]),
    remark("has-nothing", PATIENT, &["schema.answers"]),
    remark("shuffles", PATIENT, &["schema.stable"]),
    row("is-not-stable", PATIENT, &["schema.stable"], &[]),
    row("has-two-of-a-name", PATIENT, &["schema.names"], &[]),
    row("describes-nothing", PATIENT, &["schema.descriptions"], &[]),
    row("has-no-kind", PATIENT, &["schema.kind"], &[]),
    row("risks-by-looking", PATIENT, &["schema.risk"], &[]),
    row("has-a-wrong-input-schema", PATIENT, &["schema.input"], &[]),
    row("has-no-output-schema", PATIENT, &["schema.output"], &[]),
    row("has-no-concurrency", PATIENT, &["schema.concurrency"], &[]),
    row("has-a-wrong-key-field", PATIENT, &["schema.key_fields"], &[]),
    remark("has-no-key-field", PATIENT, &["schema.key_fields"]),
    row("ends-the-turn-by-looking", PATIENT, &["schema.terminates_turn"], &[]),
    row("has-no-time", PATIENT, &["schema.default_timeout"], &[]),
    row("has-no-such-hook-point", PATIENT, &["schema.extras"], &[]),
    row("has-two-keys-of-a-name", PATIENT, &["config.schema"], &[]),
    row("has-a-wrong-default", PATIENT, &["config.defaults"], &[]),
    row("accepts-no-configuration", PATIENT, &["config.accepted"], &[])
        .with(r#"{"config": {"roots": ["{folder}"]}}"#),
    row("refuses-null", PATIENT, &["config.null"], &[]),
    row("breaks-at-any-key", PATIENT, &["config.unknown_key"], &[]),
    remark("takes-any-key", PATIENT, &["config.unknown_key"]),
    row("breaks-at-any-type", PATIENT, &["config.wrong_type"], &[]),
    remark("takes-any-type", PATIENT, &["config.wrong_type"]),
    row("refuses-by-an-unknown-status", PATIENT, &["config.missing_required"], &[]),
    row("requires-nothing", PATIENT, &["config.missing_required"], &[]),
    row("leaks-a-secret", PATIENT, &["config.secrets"], &[]),
    row("emits-a-secret", PATIENT, &["config.secrets"], &[]),
    row("is-silent-before-it-is-configured", PATIENT, &["invoke.unconfigured"], &[]),
    row("ends-twice", PATIENT, &["invoke.one_end"], &[]),
    row("sends-nothing-as-an-event", PATIENT, &["invoke.events"], &[]),
    row("leads-up", PATIENT, &["invoke.lead_events"], &[]),
    row("exits-without-a-process", PATIENT, &["invoke.exit_status"], &[])
        .with(r#"{"calls": {"look": {"process": false}}}"#),
    row("exits-with-another-code", PATIENT, &["invoke.exit_code"], &[]),
    row("gives-what-does-not-fit", PATIENT, &["invoke.output_schema"], &[]),
    row("fails-by-a-status", PATIENT, &["invoke.failures"], &[]),
    row("knows-any-operation", PATIENT, &["invoke.unknown_operation"], &[]),
    row("retries-invalid-arguments", PATIENT, &["invoke.invalid_arguments"], &[]),
    row("needs-everything", PATIENT, &["invoke.sparse"], &[]),
    row("changes-by-looking", PATIENT, &["invoke.read_only"], &[]),
    row("puts-more-each-time", PATIENT, &["invoke.idempotent"], &[]),
    row("ignores-the-working-directory", PATIENT, &["invoke.working_directory"], &[]),
    row("mixes-output-up", PATIENT, &["invoke.chunk_order"], &[]),
    row("looks-once-at-a-time", PATIENT, &["invoke.concurrent"], &[]),
    row("classifies-nothing", PATIENT, &["error.category"], &[]),
    row("says-nothing", PATIENT, &["error.message"], &[]),
    remark("hides-its-hint", PATIENT, &["error.message"]),
    row("crashes-by-its-own-word", PATIENT, &["error.process_crashed"], &[]),
    row("knows-nothing", PATIENT, &["error.unknown_details"], &[]),
    row("gives-unreadable-details", PATIENT, &["status.details"], &[]),
    row("answers-unavailable", PATIENT, &["status.unavailable"], &["preview.probe"]),
    row("breaks-at-a-probe", PATIENT, &["preview.probe"], &[]),
    row("denies-its-previews", PATIENT, &["preview.probe"], &[]),
    row("previews-nothing", PATIENT, &["preview.tree"], &[]),
    row("does-what-it-previews", PATIENT, &["preview.side_effects"], &[]),
    row("previews-no-failure", PATIENT, &["preview.failing"], &[]),
    row("renders-nothing", PATIENT, &["render.persisted"], &[]),
    row("breaks-at-a-version", PATIENT, &["render.unknown_version"], &[]),
    remark("knows-any-version", PATIENT, &["render.unknown_version"]),
    row("dies-of-garbage", PATIENT, &["render.garbage", "life.survives"], &[]),
    row("serves-no-hook", PATIENT, &["hook.answers"], &[]),
    row("logs-without-a-level", PATIENT, &["callbacks.log"], &[]),
    row("serves-nothing-of-go-plugin", PATIENT, &["life.interrupt"], &[]),
];

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for row in FAULTS {
        let path = format!("conform::faults::{}_{}", row.fault, row.finding[0]);
        // What hangs is waited for.
        let takes_long = row.limit == HANGS;
        trials.push(trial(&path, || row.must_be_found()).with_ignored_flag(takes_long));
    }
    trials.extend(trials![no_check_is_without_one]);
    trials
}

fn no_check_is_without_one() {
    // Whatever starts with nothing: all of them. One that is no plugin would prove nothing.
    let checked = Checked::bad("has-nothing", "{}", &["--limit", PATIENT]);
    let all: BTreeSet<&str> = checked.ids().into_iter().collect();
    let found = |outcome| -> BTreeSet<&str> {
        let rows = FAULTS.iter().filter(|row| row.outcome == outcome);
        rows.flat_map(|row| row.finding.iter().copied()).collect()
    };
    // That a provider ends with its host is more than the protocol asks for.
    let never_failing = BTreeSet::from(["end.host_death"]);
    assert_eq!(&found(Outcome::Fail) | &never_failing, all);
    assert!(never_failing.is_subset(&found(Outcome::Remark)));
}

impl Row {
    /// Checks a provider with the fault.
    pub(crate) fn must_be_found(&self) {
        let mut arguments = vec!["--limit", self.limit];
        for check in self.finding.iter().chain(self.besides) {
            arguments.extend(["--only", check]);
        }
        let checked = Checked::bad(self.fault, self.settings, &arguments);
        let (code, outcome, list) = match self.outcome {
            Outcome::Fail => (1, "fail", "findings"),
            Outcome::Remark => (0, "remark", "remarks"),
        };
        assert_eq!(checked.code, Some(code), "{:#}", checked.report);
        for id in self.finding {
            let check = checked.check(id);
            assert_eq!(check["outcome"], outcome, "{check:#}");
            let findings = check[list].as_array().unwrap();
            assert!(!findings.is_empty(), "{check:#}");
            for finding in findings {
                assert!(finding["seen"] != "" && finding["expected"] != "", "{check:#}");
            }
        }
    }
}
