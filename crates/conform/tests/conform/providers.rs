//! Providers that keep every rule.

use libtest_mimic::Trial;

use crate::checker::{Checked, conform, ours as provider, settings, this_program};

pub(crate) fn trials() -> Vec<Trial> {
    let quick = trials![
        ours_keeps_every_rule_and_nothing_is_left_untried,
        ours_keeps_them_as_the_example_configures_it,
        a_small_provider_keeps_them_too,
        a_person_reads_what_was_checked,
    ];
    // One of the checks waits for as long as the limit lets it.
    let long = trials![a_configuration_that_cannot_be_guessed_is_no_failure];
    quick.into_iter().chain(long.into_iter().map(|trial| trial.with_ignored_flag(true))).collect()
}

fn ours_keeps_every_rule_and_nothing_is_left_untried() {
    let checked = Checked::of(&provider(), &["--limit", "60"]);
    assert!(checked.not_passed().is_empty(), "{:#?}", checked.not_passed());
    assert_eq!(checked.code, Some(0));
}

fn ours_keeps_them_as_the_example_configures_it() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/conform.json");
    let only = ["--only", "config.accepted", "--only", "invoke.cancel", "--limit", "60"];
    let checked = Checked::of(&provider(), &[&["--config", example][..], &only[..]].concat());
    assert!(checked.not_passed().is_empty(), "{:#?}", checked.not_passed());
    assert_eq!(checked.ids(), ["config.accepted", "invoke.cancel"]);
}

fn a_small_provider_keeps_them_too() {
    let checked = Checked::bad("", "{}", &["--limit", "60"]);
    assert!(checked.not_passed().is_empty(), "{:#?}", checked.not_passed());
    assert_eq!(checked.code, Some(0));
}

fn a_configuration_that_cannot_be_guessed_is_no_failure() {
    let checked = Checked::bad("accepts-no-configuration", "{}", &["--limit", "60"]);
    assert_eq!(checked.code, Some(0), "{:#}", checked.report);
    let why = |id| checked.check(id)["why"].to_string();
    assert!(why("config.accepted").contains("--config"), "{:#}", checked.report);
    // Whoever reads of another check learns where to look.
    assert!(why("invoke.output_schema").contains("config.accepted"), "{:#}", checked.report);
}

fn a_person_reads_what_was_checked() {
    let (_directory, file) = settings("", "{}");
    let arguments =
        ["--config", file.to_str().unwrap(), "--only", "describe", "--only", "schema.kind"];
    let output = conform(&this_program(), &arguments);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("pass  describe.identity          says who it is\n"), "{text}");
    assert!(text.ends_with("\n4 checks: 4 passed, 0 failed, 0 not reached\n"), "{text}");
    assert_eq!(output.status.code(), Some(0));
}
