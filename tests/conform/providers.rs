//! Providers that keep every rule.

use crate::checker::{Checked, conform, ours as provider, settings, this_program};
use crate::story::{Story, named};

pub(crate) fn stories() -> Vec<(String, Story)> {
    named(
        "providers",
        &[
            ("ours_keeps_every_rule_and_nothing_is_left_untried", ours),
            ("ours_keeps_them_as_the_example_configures_it", ours_as_in_the_example),
            ("a_small_provider_keeps_them_too", small),
            ("a_configuration_that_cannot_be_guessed_is_no_failure", not_guessed),
            ("a_person_reads_what_was_checked", for_a_person),
        ],
    )
}

fn ours() {
    let checked = Checked::of(&provider(), &["--limit", "60"]);
    assert!(checked.not_passed().is_empty(), "{:#?}", checked.not_passed());
    assert_eq!(checked.code, Some(0));
}

fn ours_as_in_the_example() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/conform.json");
    let only = ["--only", "config.accepted", "--only", "invoke.cancel", "--limit", "60"];
    let checked = Checked::of(&provider(), &[&["--config", example][..], &only[..]].concat());
    assert!(checked.not_passed().is_empty(), "{:#?}", checked.not_passed());
    assert_eq!(checked.ids(), ["config.accepted", "invoke.cancel"]);
}

fn small() {
    let checked = Checked::bad("", "{}", &["--limit", "60"]);
    assert!(checked.not_passed().is_empty(), "{:#?}", checked.not_passed());
    assert_eq!(checked.code, Some(0));
}

fn not_guessed() {
    let checked = Checked::bad("accepts-no-configuration", "{}", &["--limit", "60"]);
    assert_eq!(checked.code, Some(0), "{:#}", checked.report);
    let why = |id| checked.check(id)["why"].to_string();
    assert!(why("config.accepted").contains("--config"), "{:#}", checked.report);
    // Whoever reads of another check learns where to look.
    assert!(why("invoke.output_schema").contains("config.accepted"), "{:#}", checked.report);
}

fn for_a_person() {
    let (_folder, file) = settings("", "{}");
    let arguments =
        ["--config", file.to_str().unwrap(), "--only", "describe", "--only", "schema.kind"];
    let output = conform(&this_program(), &arguments);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("pass  describe.identity          says who it is\n"), "{text}");
    assert!(text.ends_with("\n4 checks: 4 passed, 0 failed, 0 not reached\n"), "{text}");
    assert_eq!(output.status.code(), Some(0));
}
