//! A tool and its arguments on the command line: flags made from the tool's own schema, or JSON.

use std::fmt::Write as _;

use clap::builder::{PossibleValuesParser, TypedValueParser as _, ValueParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches, Subcommand};
use serde_json::Value;

use super::CliError;
use super::args::TargetOptions;
use super::files::Source;
use super::words;
use crate::backend::provider;
use tool_provider::schema::{Kind, Presence, Property};
use tool_provider::{Payload, ToolKind, ToolSpec};
use workspace_tools::field::PATH;

/// A tool, and what was written behind it.
#[derive(Clone, Debug)]
pub(crate) struct ToolCall {
    pub(crate) tool: String,
    /// What stands behind the tool without a flag.
    bare: Option<String>,
    /// The argument that it means where it is no JSON.
    main: Option<&'static str>,
    /// What stands behind that: where to look.
    path: Option<String>,
    flags: Payload,
}

/// Any tool.
#[derive(Clone, Debug)]
pub(crate) struct AnyTool(pub(crate) ToolCall);

/// A tool that changes something.
#[derive(Clone, Debug)]
pub(crate) struct ChangingTool(pub(crate) ToolCall);

impl ToolCall {
    /// Whether the arguments come from standard input.
    pub(crate) fn reads_stdin(&self) -> bool {
        self.bare.as_deref() == Some("-")
    }

    /// The call's arguments.
    ///
    /// # Errors
    /// When the JSON is invalid, its source cannot be read, or one argument is given twice.
    pub(crate) fn arguments(&self, source: &mut Source) -> Result<Payload, CliError> {
        let mut arguments = match (&self.bare, self.main) {
            (None, _) => Payload::new(),
            (Some(bare), Some(main)) if !is_json(bare) => {
                if self.flags.contains_key(main) {
                    return Err(CliError::Twice { name: main });
                }
                [(main.to_owned(), Value::String(bare.clone()))].into_iter().collect()
            }
            (Some(bare), _) => source.object("arguments", bare)?,
        };
        arguments.extend(self.flags.clone());
        if let Some(path) = &self.path {
            if self.flags.contains_key(PATH_NAME) {
                return Err(CliError::Twice { name: PATH_NAME });
            }
            arguments.insert(PATH_NAME.to_owned(), Value::String(path.clone()));
        }
        Ok(arguments)
    }
}

/// Whether a bare argument is JSON, or says where JSON is.
pub(super) fn is_json(bare: &str) -> bool {
    bare == "-" || bare.starts_with('@') || bare.trim_start().starts_with('{')
}

/// The tools, as they are before any configuration.
pub(super) fn specs() -> Vec<ToolSpec> {
    provider().schema()
}

impl Subcommand for AnyTool {
    fn augment_subcommands(command: Command) -> Command {
        command.subcommands(specs().iter().map(tool_command))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        specs().iter().any(|spec| spec.name == name)
    }
}

impl FromArgMatches for AnyTool {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        read(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0 = read(matches)?;
        Ok(())
    }
}

impl Subcommand for ChangingTool {
    fn augment_subcommands(command: Command) -> Command {
        let specs = specs();
        let changing = specs.iter().filter(|spec| spec.kind == ToolKind::Resource);
        command.subcommands(changing.map(tool_command))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        specs().iter().any(|spec| spec.name == name && spec.kind == ToolKind::Resource)
    }
}

impl FromArgMatches for ChangingTool {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        read(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0 = read(matches)?;
        Ok(())
    }
}

const BARE: &str = "tool";
const BARE_PATH: &str = "tool path";

/// The argument of a searching tool that says where, which a second bare word is, as with `grep`.
const PATH_NAME: &str = PATH.name;

fn tool_command(spec: &ToolSpec) -> Command {
    let about = spec.description.split(". ").next().unwrap_or_default();
    let about = about.lines().next().unwrap_or_default().trim_end_matches('.').to_owned();
    let mut command = Command::new(spec.name).about(about).long_about(spec.description.clone());
    let (value, help) = match main_of(spec) {
        Some(main) => (
            format!("{}|JSON", main.name.to_uppercase()),
            format!(
                "What --{} is, or all arguments as a JSON object; @FILE reads that from a file, \
                 - from standard input",
                flag_of(main.name)
            ),
        ),
        None => (
            "JSON".to_owned(),
            "All arguments as a JSON object; @FILE reads it from a file, - from standard input"
                .to_owned(),
        ),
    };
    let help =
        if words::TOOLS.contains(&spec.name) { format!("{help}. {}", words::RULE) } else { help };
    command = command.arg(Arg::new(BARE).value_name(value).help(help));
    if has_path(spec) {
        command = command.arg(Arg::new(BARE_PATH).value_name("PATH").help("What --path is"));
    }
    for property in properties(spec) {
        command = command.args(flags(spec.name, property));
    }
    command
}

/// The argument that a bare word is: the first that must be there, where it is a text.
fn main_of(spec: &ToolSpec) -> Option<&Property> {
    properties(spec)
        .iter()
        .find(|property| property.presence == Presence::Required)
        .filter(|property| matches!(property.schema.kind, Kind::String(_)))
}

fn has_path(spec: &ToolSpec) -> bool {
    properties(spec)
        .iter()
        .any(|property| property.name == PATH_NAME && property.presence == Presence::Optional)
}

fn properties(spec: &ToolSpec) -> &[Property] {
    match &spec.input.kind {
        Kind::Object(properties) => properties,
        _ => &[],
    }
}

fn flag_of(name: &str) -> String {
    name.replace('_', "-")
}

/// The flag of an argument, and for one that is true or false the flag that denies it.
fn flags(tool: &str, property: &Property) -> Vec<Arg> {
    let name = property.name;
    let mut long = flag_of(name);
    let mut arg = Arg::new(id_of(name));
    if is_taken(&long) {
        long = format!("{}-{long}", flag_of(tool));
    } else if long != name {
        arg = arg.alias(name);
    }
    let arg = arg.long(long.clone()).help(help(property, &long));
    match &property.schema.kind {
        Kind::Boolean => {
            let no = format!("no-{long}");
            let denial = denial_of(name);
            let arg = arg.action(ArgAction::SetTrue).overrides_with(denial.clone());
            let denied = Arg::new(denial).long(no).hide(true).action(ArgAction::SetTrue);
            vec![arg, denied.overrides_with(id_of(name))]
        }
        kind => {
            let arg = arg.value_name(value_name(kind)).value_parser(parser(kind));
            vec![match kind {
                Kind::Array(items) if matches!(items.kind, Kind::String(_)) => {
                    arg.action(ArgAction::Append).allow_hyphen_values(true)
                }
                // Texts to search for or to write begin with anything.
                Kind::String([]) => arg.allow_hyphen_values(true),
                Kind::Number | Kind::Whole { .. } | Kind::Range { .. } => {
                    arg.allow_negative_numbers(true)
                }
                _ => arg,
            }]
        }
    }
}

/// No option of every call has such a name.
fn id_of(name: &str) -> String {
    format!("tool.{name}")
}

fn denial_of(name: &str) -> String {
    format!("tool.no.{name}")
}

/// Whether an option of every call has this name.
fn is_taken(long: &str) -> bool {
    let shared = <TargetOptions as clap::Args>::augment_args(Command::new(""));
    let others = ["json", "yes", "color", "help", "version"];
    others.contains(&long) || shared.get_arguments().any(|arg| arg.get_long() == Some(long))
}

fn help(property: &Property, long: &str) -> String {
    let mut help = property.schema.description.trim_end_matches('.').to_owned();
    match &property.schema.kind {
        Kind::Boolean => {
            let _ = write!(help, " (--no-{long}: not)");
        }
        Kind::Array(items) if matches!(items.kind, Kind::String(_)) => {
            help.push_str(" (may be repeated, or one JSON list)");
        }
        Kind::Array(_) => help.push_str(" (a JSON list)"),
        Kind::Object(_) | Kind::StringMap => help.push_str(" (a JSON object)"),
        _ => {}
    }
    if property.presence == Presence::Required {
        help.push_str(" [required]");
    }
    help
}

pub(super) fn value_name(kind: &Kind) -> &'static str {
    match kind {
        Kind::String([]) => "TEXT",
        Kind::String(_) => "WORD",
        Kind::Number | Kind::Whole { .. } | Kind::Range { .. } => "N",
        Kind::Array(items) if matches!(items.kind, Kind::String(_)) => "TEXT",
        Kind::Array(_) | Kind::Object(_) | Kind::StringMap => "JSON",
        Kind::Boolean => "BOOL",
    }
}

/// What turns a flag's text into the value that it means.
pub(super) fn parser(kind: &Kind) -> ValueParser {
    match kind {
        Kind::String(words) if !words.is_empty() => {
            PossibleValuesParser::new(*words).map(Value::String).into()
        }
        Kind::Whole { .. } | Kind::Range { .. } => ValueParser::from(|text: &str| {
            text.parse::<i64>().map(Value::from).map_err(|_| "not a whole number")
        }),
        Kind::Number => ValueParser::from(|text: &str| {
            let number = text.parse::<f64>().ok().and_then(serde_json::Number::from_f64);
            number.map(Value::Number).ok_or("not a number")
        }),
        Kind::Object(_) | Kind::StringMap => ValueParser::from(json_object),
        Kind::Array(items) if !matches!(items.kind, Kind::String(_)) => {
            ValueParser::from(json_list)
        }
        Kind::String(_) | Kind::Boolean | Kind::Array(_) => {
            ValueParser::from(|text: &str| Ok::<_, &str>(Value::from(text)))
        }
    }
}

fn json_list(text: &str) -> Result<Value, String> {
    match serde_json::from_str(text) {
        Ok(list @ Value::Array(_)) => Ok(list),
        Ok(_) => Err("not a JSON list".to_owned()),
        Err(error) => Err(format!("not a JSON list: {error}")),
    }
}

fn json_object(text: &str) -> Result<Value, String> {
    match serde_json::from_str(text) {
        Ok(object @ Value::Object(_)) => Ok(object),
        Ok(_) => Err("not a JSON object".to_owned()),
        Err(error) => Err(format!("not a JSON object: {error}")),
    }
}

fn read(matches: &ArgMatches) -> Result<ToolCall, clap::Error> {
    let missing = || clap::Error::new(ErrorKind::MissingSubcommand);
    let (tool, given) = matches.subcommand().ok_or_else(missing)?;
    let specs = specs();
    let spec = specs.iter().find(|spec| spec.name == tool).ok_or_else(missing)?;
    let mut flags = Payload::new();
    for property in properties(spec) {
        if let Some(value) = value_of(property, given) {
            flags.insert(property.name.to_owned(), value);
        }
    }
    Ok(ToolCall {
        tool: tool.to_owned(),
        bare: given.get_one::<String>(BARE).cloned(),
        main: main_of(spec).map(|main| main.name),
        path: has_path(spec).then(|| given.get_one::<String>(BARE_PATH).cloned()).flatten(),
        flags,
    })
}

/// The value that a flag was given, where it was.
fn value_of(property: &Property, given: &ArgMatches) -> Option<Value> {
    let name = &id_of(property.name);
    match &property.schema.kind {
        Kind::Boolean => {
            let is = |name: &str| given.get_flag(name);
            match (is(name), is(&denial_of(property.name))) {
                (true, _) => Some(true.into()),
                (_, true) => Some(false.into()),
                _ => None,
            }
        }
        Kind::Array(items) if matches!(items.kind, Kind::String(_)) => {
            let values: Vec<Value> = given.get_many::<Value>(name)?.cloned().collect();
            match values.as_slice() {
                [Value::String(text)] if text.starts_with('[') => {
                    Some(json_list(text).unwrap_or(Value::Array(values)))
                }
                _ => Some(Value::Array(values)),
            }
        }
        _ => given.get_one::<Value>(name).cloned(),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use serde_json::json;

    use super::super::args::{self, Options};
    use super::*;

    fn arguments(line: &[&str]) -> Result<Payload, String> {
        let line = ["provider-workspace", "call"].iter().chain(line);
        let options = Options::try_parse_from(line).map_err(|error| error.to_string())?;
        let args::Command::Call(call) = options.command else { panic!("not a call") };
        call.tool.0.arguments(&mut Source::default()).map_err(|error| error.to_string())
    }

    #[test]
    fn flags_json_and_a_bare_word_mean_the_same() {
        let expected = json!({"path": "a.txt", "offset": -3, "line_numbers": false});
        let lines: [&[&str]; 4] = [
            &["read_file", "a.txt", "--offset", "-3", "--no-line-numbers"],
            &["read_file", "--path=a.txt", "--offset=-3", "--line_numbers", "--no-line-numbers"],
            &["read_file", r#"{"path":"a.txt","offset":-3,"line_numbers":false}"#],
            &[
                "read_file",
                r#" {"path":"b.txt","offset":-3}"#,
                "--path",
                "a.txt",
                "--no-line-numbers",
            ],
        ];
        for line in lines {
            assert_eq!(arguments(line).map(Value::Object), Ok(expected.clone()), "{line:?}");
        }
    }

    #[test]
    fn texts_begin_with_anything_and_lists_are_json() {
        let line =
            ["edit_file", "a", "--old-string", "- item", "--new-string", "--x", "--replace-all"];
        assert_eq!(
            arguments(&line).map(Value::Object),
            Ok(
                json!({"path": "a", "old_string": "- item", "new_string": "--x", "replace_all": true})
            )
        );
        let edits = r#"[{"old_string":"a","new_string":"b"}]"#;
        assert_eq!(
            arguments(&["edit_file", "a", "--edits", edits]).map(Value::Object),
            Ok(json!({"path": "a", "edits": [{"old_string": "a", "new_string": "b"}]}))
        );
    }

    #[test]
    fn a_search_starts_where_it_is_asked_as_grep_does() {
        let expected = json!({"pattern": "fn main", "path": "src", "word": true});
        let lines: [&[&str]; 3] = [
            &["grep", "fn main", "src", "--word"],
            &["grep", "--word", "fn main", "--path", "src"],
            &["grep", r#"{"pattern":"fn main","path":"lib","word":true}"#, "src"],
        ];
        for line in lines {
            assert_eq!(arguments(line).map(Value::Object), Ok(expected.clone()), "{line:?}");
        }
        let found = arguments(&["glob", "*.rs", "src"]);
        assert_eq!(found.map(Value::Object), Ok(json!({"pattern": "*.rs", "path": "src"})));
    }

    #[test]
    fn an_option_of_every_call_keeps_its_name() {
        let given =
            arguments(&["bash", "ls", "--cwd", "a", "--bash-cwd", "b", "--timeout-ms", "5"]);
        assert_eq!(
            given.map(Value::Object),
            Ok(json!({"command": "ls", "cwd": "b", "timeout_ms": 5}))
        );
    }

    #[test]
    fn slips_are_named() {
        let cases: [(&[&str], &str); 8] = [
            (&["raed_file"], "read_file"),
            (&["read_file", "--ofset", "1"], "--offset"),
            (&["read_file", "a", "--offset", "x"], "not a whole number"),
            (&["read_file", "a", "--path", "b"], "path is given twice"),
            (&["grep", "a", "b", "--path", "c"], "path is given twice"),
            (&["read_file", "a", "b"], "unexpected argument 'b'"),
            (&["edit_file", "a", "--edits", "{}"], "not a JSON list"),
            (&["read_file", "{"], "not a JSON object"),
        ];
        for (line, part) in cases {
            let message = arguments(line).expect_err("a slip");
            assert!(message.contains(part), "{line:?}: {message}");
        }
    }

    #[test]
    fn every_tool_has_a_page_of_help() {
        for spec in specs() {
            let line = ["provider-workspace", "call", spec.name, "--help"];
            let page = Options::try_parse_from(line).expect_err("help").to_string();
            for property in properties(&spec) {
                let flag = flag_of(property.name);
                let is_there = page.contains(&format!("--{flag}"))
                    || page.contains(&format!("--{}-{flag}", flag_of(spec.name)));
                assert!(is_there, "{flag}: {page}");
            }
        }
    }
}
