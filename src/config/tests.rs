use serde_json::{Value, json};

use super::*;
use tool_provider::Payload;
use tool_provider::config::{ConfigureError, Fault, FaultKind};
use tool_provider::schema::{Kind, Presence, Property};

fn host_env() -> HostEnv {
    let variables = [("HOME", "/home/dev"), ("TOKEN", "s3cr3t-value"), ("PIN", "123")];
    HostEnv {
        variables: variables.map(|(name, value)| (name.into(), value.into())).into(),
        current_directory: Some("/w/app".into()),
        handshake_variable: "COOKIE",
    }
}

fn decode(value: Value) -> Result<Config, ConfigureError> {
    let Value::Object(map) = value else { panic!("a block is an object") };
    Config::decode(&map, &host_env())
}

fn faults(value: Value) -> Vec<String> {
    decode(value).expect_err("faults").faults().iter().map(ToString::to_string).collect()
}

#[test]
fn only_roots_are_needed_and_null_means_left_out() {
    let config = decode(json!({"roots": ["."]})).unwrap();
    assert_eq!(config.roots, ["."]);
    assert_eq!(config.sandbox, sandbox::Mode::Enforce);
    assert_eq!(config.network, sandbox::Network::Deny);
    assert_eq!(config.shell, Shell::Usual("/bin/bash".into()));
    assert_eq!(config.bash_timeout, Duration::from_secs(120));
    assert_eq!(config.bash_max_timeout, Duration::from_secs(600));
    assert_eq!((config.bash_output_bytes, config.max_concurrent_calls), (16_000, 64));
    assert_eq!(config.layer_bytes, sandbox::LAYER_BYTES);
    assert_eq!(config.limits.open_files, Some(4096));
    assert_eq!(config.limits.memory_bytes, None);
    assert_eq!(config.overwrite, Overwrite::Always);
    assert_eq!(config.home, HomeFate::Keep);

    let nulls: Payload =
        properties().iter().map(|property| (property.name.to_owned(), Value::Null)).collect();
    let mut with_roots = nulls.clone();
    with_roots.insert("roots".to_owned(), json!(["."]));
    assert_eq!(Config::decode(&with_roots, &host_env()).unwrap(), config);
    let error = Config::decode(&nulls, &host_env()).expect_err("roots are missing");
    assert_eq!(error.faults().len(), 1);
}

#[test]
fn every_key_is_taken_as_it_is_written() {
    let config = decode(json!({
        "roots": ["/a", "~/b"], "read_only_roots": ["/ro"], "sandbox": "best_effort",
        "network": "allow", "bash_read": ["~/.cargo", "~", "c", "/d"], "bash_write": ["/cache"],
        "protect": "none", "shell": "/bin/dash", "env": {"A": "1"}, "env_passthrough": ["GOPATH"],
        "secret_env": ["TOKEN"], "bash_timeout_ms": 5.0, "bash_max_timeout_ms": 10,
        "bash_output_bytes": 2000, "limits": {"processes": 7, "open_files": null},
        "max_concurrent_calls": 2, "read_before_write": true, "home": "discard",
    }))
    .unwrap();
    assert_eq!(config.roots, ["/a", "~/b"]);
    let expected = ["/home/dev/.cargo", "/home/dev/", "/w/app/c", "/d"].map(PathBuf::from);
    assert_eq!(config.bash_read, expected);
    assert_eq!(config.bash_timeout, Duration::from_millis(5));
    assert_eq!((config.limits.processes, config.limits.open_files), (Some(7), Some(4096)));
    assert_eq!(config.secrets[0].expose(), "s3cr3t-value");
    assert_eq!((config.overwrite, config.home), (Overwrite::AfterRead, HomeFate::Discard));
    assert_eq!(config.protect, Protect::None);
    assert!(!format!("{config:?}").contains("s3cr3t-value"));
}

#[test]
fn everything_wrong_is_reported_at_once_with_the_nearest_key() {
    let found = faults(json!({
        "root": ["."], "sandbox": "enforced", "network": 3, "bash_timeout_ms": "100",
        "max_concurrent_calls": 1.5, "read_before_write": "yes", "env": {"A": 1},
        "limits": {"memory": 1, "open_files": -1}, "read_only_roots": ["/x", "/x", ""],
    }));
    let expected = [
        r#"root: unknown key; did you mean "roots"?"#,
        r#"roots: required, such as roots = ["."]"#,
        "read_only_roots[1]: \"/x\" is there twice",
        "read_only_roots[2]: must be a text that is not empty, not an empty text",
        r#"sandbox: "enforced" is not known; did you mean "enforce"?"#,
        "network: must be one of deny, allow, not 3",
        "env.A: must be a text, not 1",
        "bash_timeout_ms: must be a whole number from 1 to 3600000, not a number in quotes",
        r#"limits.memory: unknown key; did you mean "memory_bytes"?"#,
        "limits.open_files: must be a whole number from 16 to 9007199254740992, not -1",
        "max_concurrent_calls: must be a whole number from 1 to 1024, not 1.5",
        "read_before_write: must be true or false, not a text",
    ];
    assert_eq!(found, expected);
}

#[test]
fn names_that_would_break_the_jail_are_refused_and_ordinary_ones_are_not() {
    for name in ["BASH_ENV", "ENV", "LD_PRELOAD", "PLUGIN_CLIENT_CERT", "COOKIE", "A=B", "1A", "é"]
    {
        for key in ["env_passthrough", "secret_env"] {
            let found = faults(json!({"roots": ["."], key: [name]}));
            assert_eq!(found.len(), 1, "{key} {name}: {found:?}");
        }
        assert_eq!(faults(json!({"roots": ["."], "env": {name: "x"}})).len(), 1, "{name}");
    }
    decode(json!({"roots": ["."], "env_passthrough": ["ENVIRONMENT", "LDFLAGS"]})).unwrap();
}

#[test]
fn a_secret_must_be_set_and_a_short_one_is_reported() {
    let found = faults(json!({"roots": ["."], "secret_env": ["TOKEN", "ABSENT"]}));
    assert!(found[0].starts_with("secret_env: ABSENT is not set"), "{found:?}");
    assert_eq!(found.len(), 1);
    let config = decode(json!({"roots": ["."], "secret_env": ["TOKEN", "PIN"]})).unwrap();
    assert_eq!(config.notices().len(), 1);
    let found = faults(json!({"roots": ["."], "secret_env": ["TOKEN"], "env": {"TOKEN": "x"}}));
    assert_eq!(found, [r#"secret_env: "TOKEN" is under env already"#]);
}

#[test]
fn a_lower_longest_timeout_lowers_the_usual_one_unless_it_is_written() {
    let config = decode(json!({"roots": ["."], "bash_max_timeout_ms": 1000})).unwrap();
    assert_eq!(config.bash_timeout, Duration::from_secs(1));
    let both = json!({"roots": ["."], "bash_max_timeout_ms": 1000, "bash_timeout_ms": 1001});
    assert_eq!(faults(both).len(), 1);
}

#[test]
fn empty_roots_are_a_fault_and_the_code_is_that_of_what_is_written() {
    let error = decode(json!({"roots": []})).expect_err("no directory");
    assert_eq!(error.kind(), FaultKind::Written);
    decode(json!({"roots": [], "read_only_roots": ["."]})).unwrap();
    let machine = ConfigureError::single(Fault::machine("sandbox", "no Landlock"));
    assert_eq!(machine.kind(), FaultKind::Machine);
}

#[test]
fn defaults_that_are_written_out_mean_what_they_mean_when_left_out() {
    fn written_out(properties: &[Property]) -> Payload {
        let mut written = Payload::new();
        for Property { name, presence, schema } in properties {
            let value = match (&schema.kind, presence) {
                (Kind::Object(inner), _) => Value::Object(written_out(inner)),
                (_, Presence::Default(json)) => serde_json::from_str(json).unwrap(),
                _ => continue,
            };
            written.insert((*name).to_owned(), value);
        }
        written
    }
    let mut written = written_out(&properties());
    written.insert("roots".to_owned(), json!(["."]));
    let config = Config::decode(&written, &host_env()).unwrap();
    assert_eq!(config, decode(json!({"roots": ["."]})).unwrap());
}
