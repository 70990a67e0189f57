//! The keys of the configuration as flags, made from the same table as its schema and its page.

use clap::builder::ValueParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use serde_json::Value;

use super::tool_args::{parser, value_name};
use crate::config::properties;
use tool_provider::Payload;
use tool_provider::schema::{Kind, Presence, Property};

/// The keys that were given by a flag.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConfigFlags(pub(crate) Payload);

impl Args for ConfigFlags {
    fn augment_args(command: Command) -> Command {
        command.next_help_heading("Configuration").args(properties().iter().map(flag))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ConfigFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |property: &Property| {
            value_of(property, matches).map(|value| (property.name.to_owned(), value))
        };
        Ok(Self(properties().iter().filter_map(given).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// A list is given item by item, so its flag has the name of one.
fn long(name: &str) -> String {
    name.strip_suffix("roots")
        .map_or_else(|| name.to_owned(), |stem| format!("{stem}root"))
        .replace('_', "-")
}

fn id(name: &str) -> String {
    format!("config.{name}")
}

fn flag(property: &Property) -> Arg {
    let arg = Arg::new(id(property.name)).long(long(property.name)).help(help(property));
    match &property.schema.kind {
        Kind::Boolean => arg.action(ArgAction::SetTrue),
        Kind::Array(_) => arg.action(ArgAction::Append).value_name("TEXT").value_parser(text()),
        Kind::StringMap => {
            arg.action(ArgAction::Append).value_name("NAME=VALUE").value_parser(pair)
        }
        kind => arg.value_name(value_name(kind)).value_parser(parser(kind)),
    }
}

fn help(property: &Property) -> String {
    let mut help = property.schema.description.trim_end_matches('.').to_owned();
    match &property.schema.kind {
        Kind::Array(_) | Kind::StringMap => help.push_str(" (may be repeated)"),
        Kind::Object(_) => help.push_str(" (a JSON object)"),
        _ => {}
    }
    match property.presence {
        Presence::Default(json) if !matches!(json, "[]" | "{}" | "false") => {
            help.push_str(&format!(" [default: {}]", json.trim_matches('"')));
        }
        _ => {}
    }
    help
}

fn text() -> ValueParser {
    ValueParser::from(|text: &str| Ok::<_, &str>(Value::from(text)))
}

fn pair(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once('=').ok_or("not NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

fn value_of(property: &Property, given: &ArgMatches) -> Option<Value> {
    let id = &id(property.name);
    match &property.schema.kind {
        Kind::Boolean => given.get_flag(id).then_some(Value::Bool(true)),
        Kind::Array(_) => Some(given.get_many::<Value>(id)?.cloned().collect::<Vec<_>>().into()),
        Kind::StringMap => {
            let pairs = given.get_many::<(String, String)>(id)?.cloned();
            Some(pairs.map(|(name, value)| (name, Value::from(value))).collect::<Payload>().into())
        }
        _ => given.get_one::<Value>(id).cloned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn given(line: &[&str]) -> Result<Value, String> {
        let command = ConfigFlags::augment_args(Command::new("x").no_binary_name(true));
        let matches = command.try_get_matches_from(line).map_err(|error| error.to_string())?;
        ConfigFlags::from_arg_matches(&matches)
            .map(|flags| Value::Object(flags.0))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn every_key_has_a_flag_and_what_is_not_given_is_left_out() {
        let line = [
            "--root",
            "a",
            "--root=b",
            "--read-only-root",
            "c",
            "--network",
            "allow",
            "--env",
            "A=b=c",
            "--bash-timeout-ms",
            "5",
            "--read-before-write",
            "--limits",
            r#"{"processes": 7}"#,
        ];
        let expected = json!({
            "roots": ["a", "b"], "read_only_roots": ["c"], "network": "allow", "env": {"A": "b=c"},
            "bash_timeout_ms": 5, "read_before_write": true, "limits": {"processes": 7},
        });
        assert_eq!(given(&line), Ok(expected));
        assert_eq!(given(&[]), Ok(json!({})));
        for property in properties() {
            let flag = format!("--{}", long(property.name));
            let help = ConfigFlags::augment_args(Command::new("x")).render_long_help().to_string();
            assert!(help.contains(&flag), "{flag}");
        }
    }

    #[test]
    fn what_no_key_takes_is_refused() {
        for line in [&["--network", "some"][..], &["--env", "A"], &["--limits", "7"]] {
            given(line).expect_err(line[0]);
        }
    }
}
