//! What is no plugin.

use std::path::Path;

use libtest_mimic::Trial;

use crate::checker::{Checked, conform, this_program};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        what_is_no_plugin_cannot_be_tested,
        a_file_with_a_slip_is_no_configuration,
        a_choice_of_no_check_is_a_slip_and_no_success,
    ]
}

fn what_is_no_plugin_cannot_be_tested() {
    for program in ["/bin/true", "/bin/echo", "/no/such/program", "/"] {
        let checked = Checked::of(Path::new(program), &[]);
        assert_eq!(checked.code, Some(2), "{program}: {}", checked.report);
        assert!(checked.report["untestable"].is_string(), "{program}: {}", checked.report);
    }
    let output = conform(Path::new("/bin/true"), &[]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.starts_with("could not be tested: ") && text.contains("handshake"), "{text}");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    // What the system said is part of it.
    let checked = Checked::of(Path::new("/no/such/program"), &[]);
    let why = checked.report["untestable"].as_str().unwrap();
    assert!(why.contains("No such file"), "{why}");
}

fn a_choice_of_no_check_is_a_slip_and_no_success() {
    for arguments in [["--only", "descrbe"], ["--skip", "launhc"]] {
        let checked = Checked::of(&this_program(), &arguments);
        assert_eq!(checked.code, Some(2), "{arguments:?}: {}", checked.report);
        let why = checked.report["untestable"].as_str().unwrap();
        assert!(why.contains(arguments[1]) && why.contains("describe"), "{why}");
    }
}

fn a_file_with_a_slip_is_no_configuration() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("conform.json");
    std::fs::write(&file, r#"{"cals": {}}"#).unwrap();
    let checked = Checked::of(&this_program(), &["--config", file.to_str().unwrap()]);
    assert_eq!(checked.code, Some(2));
    let why = checked.report["untestable"].as_str().unwrap();
    assert!(why.contains("cals") && why.contains("calls"), "{why}");
}
