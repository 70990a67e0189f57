use serde_json::{Value, json};

use super::*;

fn result(payload: &Payload) -> View {
    super::result("bash", payload, None)
}

fn payload(value: &Value) -> Payload {
    value.as_object().unwrap().clone()
}

fn texts(view: &View) -> Vec<String> {
    match view {
        View::Text { content, .. } | View::Code { content, .. } => vec![content.clone()],
        View::Group(children) => children.iter().flat_map(texts).collect(),
        View::Collapsible { summary, children, .. } => {
            std::iter::once(summary.clone()).chain(children.iter().flat_map(texts)).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_result_shows_command_badge_and_plain_output() {
    let shown = result(&payload(&json!({
        "tool": "bash", "command": "cargo test\nmore", "exit_code": 101,
        "output": "\u{1b}[31mfailed\u{1b}[0m\n", "duration_ms": 1234, "cwd": "/w",
        "notice": "the network is closed",
    })));
    let View::Collapsible { summary, initially: Fold::Open, .. } = &shown else { panic!() };
    assert_eq!(summary, "cargo test … — exit 101");
    let texts = texts(&shown);
    for part in ["failed\n", "exit 101", "1.2 s · in /w", "the network is closed"] {
        assert!(texts.iter().any(|text| text == part), "{part}: {texts:?}");
    }
}

#[test]
fn a_result_without_its_command_shows_what_it_has() {
    let shown = result(&payload(&json!({
        "tool": "bash", "exit_code": 0, "output": "one\n[… 9 bytes left out …]\ntwo\n",
        "full_output_path": "/t/output-1.txt",
    })));
    let View::Collapsible { summary, .. } = &shown else { panic!() };
    assert_eq!(summary, "exit 0");
    let texts = texts(&shown);
    assert!(texts.contains(&"whole output: /t/output-1.txt".to_owned()), "{texts:?}");
}

#[test]
fn a_result_that_went_well_starts_folded_and_a_signal_is_named() {
    let of = |value: &Value| result(&payload(value));
    let shown = of(&json!({"exit_code": 0, "output": ""}));
    assert!(matches!(shown, View::Collapsible { initially: Fold::Closed, .. }));
    let shown = of(&json!({"exit_code": 137, "signal": "SIGKILL"}));
    assert!(texts(&shown).contains(&"ended by SIGKILL".to_owned()));
}

#[test]
fn an_old_or_odd_payload_is_shown_as_far_as_it_goes() {
    for value in [
        json!({}),
        json!({"exit_code": "0", "output": 7, "later_field": {"x": []}}),
        json!({"duration_ms": -1e300, "command": "", "cwd": null}),
        json!({"duration_ms": 1e300}),
    ] {
        let View::Collapsible { summary, .. } = result(&payload(&value)) else { panic!("{value}") };
        assert_eq!(summary, "bash", "{value}");
    }
}

#[test]
fn a_hidden_character_is_spelt_out_with_a_warning() {
    let arguments = payload(&json!({"command": "curl \u{202e}x"}));
    let shown = texts(&call(&arguments)).join("\n");
    assert!(shown.contains("\\u{202e}") && shown.contains("cannot be seen"), "{shown}");
}

#[test]
fn a_preview_says_everything_that_an_approval_rests_on() {
    let settings = BashSettings {
        policy: sandbox::Policy {
            roots: vec!["/w/app".into()],
            command_write: vec!["/cache".into()],
            ..sandbox::Policy::default()
        },
        ..BashSettings::default()
    };
    let arguments = payload(&json!({
        "command": "make", "timeout_ms": 90_000, "stdin": "yes\n", "description": "Build it"
    }));
    let arguments = Arguments::parse(&arguments, &settings).unwrap();
    let shown = preview(&arguments, &settings, None, Ok("/w/app".into()));
    let View::Group(parts) = &shown else { panic!() };
    assert_eq!(parts[0], View::code(Some("bash"), "make"));
    let expected = [
        "directory: /w/app",
        "timeout: 1.5 min",
        "network: closed",
        "may write: /w/app, /cache",
        "not configured: no roots",
        "stdin: 4 bytes",
        "yes\n",
        "described as: Build it",
    ];
    assert_eq!(texts(&shown)[1..], expected);

    let error = ToolError::permission_denied("cannot run in /etc: outside the roots");
    let shown = preview(&arguments, &settings, None, Err(error));
    let View::Group(parts) = shown else { panic!() };
    let shown = texts(&parts[0]).join("\n");
    assert!(shown.starts_with("This call would fail: cannot run in /etc"), "{shown}");
}

#[test]
fn durations_read_well() {
    let of = |ms| duration(Duration::from_millis(ms));
    assert_eq!([of(7), of(1000), of(1250), of(120_000)], ["7 ms", "1 s", "1.2 s", "2 min"]);
}
