//! What to send to an unknown provider: a configuration from its ConfigSchema, arguments
//! from an operation's schema. Names are a hint, and what does not come out right is given in the
//! file.

use serde_json::{Value, json};

use super::fixture::{KNOWN, TICKS};
use super::shapes::{ARRAY, BOOLEAN, NUMBER, OBJECT, STRING};
use crate::observe::{ObservedAttribute, Shape};
use tool_provider::Payload;

pub(crate) const ATTR_STRING: i32 = 1;
pub(crate) const ATTR_NUMBER: i32 = 2;
pub(crate) const ATTR_BOOL: i32 = 3;
pub(crate) const ATTR_LIST_STRING: i32 = 4;
pub(crate) const ATTR_LIST_NUMBER: i32 = 5;
pub(crate) const ATTR_MAP_STRING: i32 = 6;
pub(crate) const ATTR_OBJECT: i32 = 7;

/// How many lines [`counting`] prints.
pub(crate) const COUNTED: usize = 300;

/// What a text is for, judging by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Command,
    Program,
    Words,
    OldText,
    NewText,
    Content,
    Directory,
    File,
    Pattern,
    Address,
    Other,
}

/// The parts of names that say so, looked for in this order.
const HINTS: &[(Role, &[&str])] = &[
    (Role::Command, &["command", "cmd", "script"]),
    (Role::Program, &["program", "executable", "binary", "exe"]),
    (Role::Words, &["arg", "argv", "argument"]),
    (Role::OldText, &["old", "find"]),
    (Role::NewText, &["new", "replace"]),
    (Role::Directory, &["dir", "directory", "directorie", "folder", "cwd", "root", "workspace"]),
    (Role::File, &["path", "file", "filename", "filepath"]),
    (Role::Content, &["content", "body", "data", "text"]),
    (Role::Pattern, &["pattern", "query", "search", "regex"]),
    (Role::Address, &["url", "uri"]),
];

fn role(name: &str) -> Role {
    let words = words(name);
    let matches_hint = |hint: &&str| words.iter().any(|word| word == hint);
    let found = HINTS.iter().find(|(_, hints)| hints.iter().any(matches_hint));
    found.map_or(Role::Other, |(role, _)| *role)
}

/// The words of a name, `like_this` or `likeThis`, in small letters and without the s of many.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for character in name.chars() {
        if !character.is_alphanumeric() || character.is_uppercase() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.extend(character.to_lowercase().filter(|of| of.is_alphanumeric()));
        }
    }
    words.iter().map(|word| word.trim_end_matches('s').to_owned()).collect()
}

/// A configuration with all that is required, and every secret.
pub(crate) fn configuration(
    attributes: &[ObservedAttribute],
    directory: &str,
    secret: &str,
) -> Payload {
    let wanted = attributes.iter().filter(|attribute| attribute.required || attribute.sensitive);
    wanted
        .map(|attribute| (attribute.name.clone(), setting(attribute, directory, secret)))
        .collect()
}

fn setting(attribute: &ObservedAttribute, directory: &str, secret: &str) -> Value {
    let is_path = matches!(role(&attribute.name), Role::Directory | Role::File);
    let text = match (attribute.sensitive, is_path) {
        (true, _) => secret,
        (false, true) => directory,
        (false, false) => "conform",
    };
    match attribute.kind {
        ATTR_NUMBER => json!(1),
        ATTR_BOOL => json!(false),
        ATTR_LIST_STRING => json!([text]),
        ATTR_LIST_NUMBER => json!([1]),
        ATTR_MAP_STRING => json!({}),
        ATTR_OBJECT => Value::Object(configuration(&attribute.attributes, directory, secret)),
        _ => json!(text),
    }
}

/// Whether a JSON value is of an attribute's type.
pub(crate) fn is_of_type(value: &Value, attribute: &ObservedAttribute) -> bool {
    match (attribute.kind, value) {
        (ATTR_STRING, Value::String(_))
        | (ATTR_NUMBER, Value::Number(_))
        | (ATTR_BOOL, Value::Bool(_)) => true,
        (ATTR_LIST_STRING, Value::Array(items)) => items.iter().all(Value::is_string),
        (ATTR_LIST_NUMBER, Value::Array(items)) => items.iter().all(Value::is_number),
        (ATTR_MAP_STRING, Value::Object(map)) => map.values().all(Value::is_string),
        (ATTR_OBJECT, Value::Object(map)) => map.iter().all(|(name, value)| {
            let inner = attribute.attributes.iter().find(|inner| inner.name == *name);
            inner.is_some_and(|inner| is_of_type(value, inner))
        }),
        _ => false,
    }
}

/// A value that is not of an attribute's type.
pub(crate) fn wrong_setting(attribute: &ObservedAttribute) -> Value {
    match attribute.kind {
        ATTR_STRING | ATTR_LIST_STRING | ATTR_LIST_NUMBER | ATTR_MAP_STRING | ATTR_OBJECT => {
            json!(7)
        }
        _ => json!("conform: no such value"),
    }
}

/// Arguments that may succeed, the most sparing first.
pub(crate) fn arguments(shape: &Shape, directory: &str) -> Vec<Payload> {
    let sparing = made(shape, directory, |_, _| false);
    let likely = made(shape, directory, |name, inner| {
        let role = role(name);
        inner.kind == STRING
            && matches!(role, Role::Command | Role::OldText | Role::NewText | Role::Content)
            || is_words(name, inner)
    });
    let full = made(shape, directory, |_, _| true);
    let mut candidates = vec![sparing];
    for candidate in [likely, full] {
        if !candidates.contains(&candidate) {
            candidates.push(candidate);
        }
    }
    candidates
}

fn made(shape: &Shape, directory: &str, also: impl Fn(&str, &Shape) -> bool + Copy) -> Payload {
    let has = |role_of: Role| shape.properties.keys().any(|name| role(name) == role_of);
    // What takes a content writes a file; what replaces a text, or takes none, needs one.
    let file = match has(Role::Content) && !has(Role::OldText) {
        true => format!("{directory}/written.txt"),
        false => format!("{directory}/{KNOWN}"),
    };
    // What has its words apart takes a program alone.
    let command = match shape.properties.iter().any(|(name, inner)| is_words(name, inner)) {
        true => "echo",
        false => "echo conform",
    };
    let texts = Texts { directory, file: &file, command };
    let wanted = shape
        .properties
        .iter()
        .filter(|(name, inner)| shape.required.contains(name) || also(name, inner));
    wanted.map(|(name, inner)| (name.clone(), value(name, inner, &texts))).collect()
}

/// What stands for what in made-up arguments.
struct Texts<'a> {
    directory: &'a str,
    file: &'a str,
    command: &'a str,
}

fn value(name: &str, shape: &Shape, texts: &Texts<'_>) -> Value {
    match shape.kind {
        NUMBER => json!(1),
        BOOLEAN => json!(false),
        ARRAY if role(name) == Role::Command => json!(["echo", "conform"]),
        ARRAY => match &shape.items {
            Some(items) => json!([value(name, items, texts)]),
            None => json!([]),
        },
        OBJECT => Value::Object(made(shape, texts.directory, |_, _| false)),
        _ => match shape.words.first() {
            Some(word) => json!(word),
            None => json!(text(role(name), texts)),
        },
    }
}

fn text<'a>(role: Role, texts: &Texts<'a>) -> &'a str {
    match role {
        Role::Command => texts.command,
        Role::Program => "echo",
        Role::OldText | Role::Pattern => "beta",
        Role::NewText => "delta",
        Role::Content => "delta\n",
        Role::Directory => texts.directory,
        Role::File => texts.file,
        Role::Address => "http://127.0.0.1:9/",
        Role::Words | Role::Other => "conform",
    }
}

/// Whether an argument is a list of a program's arguments.
fn is_words(name: &str, shape: &Shape) -> bool {
    role(name) == Role::Words && is_texts(shape)
}

fn is_texts(shape: &Shape) -> bool {
    shape.kind == ARRAY && shape.items.as_ref().is_some_and(|items| items.kind == STRING)
}

/// How an operation may take a shell's command. Whether it does is seen by trying.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shell {
    /// In one text.
    Text(String),
    /// In a program and a list of arguments.
    Program { program: String, words: String },
    /// In a list, the program first.
    Words(String),
}

impl Shell {
    /// What an operation's arguments look like.
    pub(crate) fn of(shape: &Shape) -> Option<Self> {
        let named = |is_it: &dyn Fn(&str, &Shape) -> bool| {
            let found = shape.properties.iter().find(|(name, inner)| is_it(name, inner));
            found.map(|(name, _)| name.clone())
        };
        let command = named(&|name, inner| inner.kind == STRING && role(name) == Role::Command);
        let program = named(&|name, inner| inner.kind == STRING && role(name) == Role::Program);
        if let (Some(words), Some(program)) = (named(&is_words), program.or(command.clone())) {
            return Some(Shell::Program { program, words });
        }
        let list = || named(&|name, inner| is_texts(inner) && role(name) == Role::Command);
        command.map(Shell::Text).or_else(|| list().map(Shell::Words))
    }

    /// `good` with this command.
    pub(crate) fn arguments(&self, good: &Payload, command: &str) -> Payload {
        const SHELL: &str = "/bin/sh";
        let mut arguments = good.clone();
        match self {
            Shell::Text(name) => {
                arguments.insert(name.clone(), command.into());
            }
            Shell::Program { program, words } => {
                arguments.insert(program.clone(), SHELL.into());
                arguments.insert(words.clone(), json!(["-c", command]));
            }
            Shell::Words(name) => {
                arguments.insert(name.clone(), json!([SHELL, "-c", command]));
            }
        }
        arguments
    }
}

/// What only a shell makes [`COMPUTED`] of.
pub(crate) const COMPUTING: &str = "echo conform-$((6*7))";
/// What a shell prints for [`COMPUTING`].
pub(crate) const COMPUTED: &str = "conform-42";

/// `good` with another file in the place of the known one, where it names that.
pub(crate) fn with_file(good: &Payload, directory: &str, file: &str) -> Option<Payload> {
    let known = format!("{directory}/{KNOWN}");
    let mut arguments = good.clone();
    let value = arguments.values_mut().find(|value| value.as_str() == Some(&known))?;
    *value = file.into();
    Some(arguments)
}

/// A command that runs until it is ended, and makes a file grow.
pub(crate) fn ticking(directory: &str) -> String {
    format!("while :; do echo tick >> '{directory}/{TICKS}'; echo tick; sleep 0.1; done")
}

/// A command that prints numbers in order.
pub(crate) fn counting() -> String {
    format!("i=0; while [ $i -lt {COUNTED} ]; do echo $i; i=$((i+1)); done")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(properties: &[(&str, i32)], required: &[&str]) -> Shape {
        let shape = |kind| Shape { kind, ..Shape::default() };
        Shape {
            kind: OBJECT,
            properties: properties
                .iter()
                .map(|(name, of)| ((*name).to_owned(), shape(*of)))
                .collect(),
            required: required.iter().map(|&name| name.to_owned()).collect(),
            ..Shape::default()
        }
    }

    #[test]
    fn names_report_what_a_text_is_for() {
        let cases = [
            ("command", Role::Command),
            ("old_string", Role::OldText),
            ("new_string", Role::NewText),
            ("path", Role::File),
            ("filePath", Role::File),
            ("read_only_roots", Role::Directory),
            ("threshold", Role::Other),
            ("directories", Role::Directory),
            ("content", Role::Content),
            ("pattern", Role::Pattern),
            ("description", Role::Other),
        ];
        for (name, expected) in cases {
            assert_eq!(role(name), expected, "{name}");
        }
    }

    #[test]
    fn arguments_come_from_the_shape() {
        let edit =
            object(&[("path", 2), ("old_string", 2), ("new_string", 2), ("all", 4)], &["path"]);
        let candidates = arguments(&edit, "/f");
        assert_eq!(Value::Object(candidates[0].clone()), json!({"path": "/f/known.txt"}));
        assert_eq!(
            Value::Object(candidates[1].clone()),
            json!({"path": "/f/known.txt", "old_string": "beta", "new_string": "delta"})
        );
        let write = object(&[("path", 2), ("content", 2)], &["path", "content"]);
        assert_eq!(
            arguments(&write, "/f").into_iter().map(Value::Object).collect::<Vec<_>>(),
            [json!({"path": "/f/written.txt", "content": "delta\n"})]
        );
        assert_eq!(Shell::of(&object(&[("cmd", 2)], &[])), Some(Shell::Text("cmd".to_owned())));
        assert_eq!(Shell::of(&edit), None);
        assert!(with_file(&candidates[0], "/f", "x").is_some_and(|of| of["path"] == "x"));
    }

    #[test]
    fn a_command_is_given_as_the_shape_asks_for_it() {
        let list = Shape {
            kind: ARRAY,
            items: Some(Box::new(Shape { kind: STRING, ..Shape::default() })),
            ..Shape::default()
        };
        let with = |name: &str, mut shape: Shape| {
            shape.properties.insert(name.to_owned(), list.clone());
            shape
        };
        let given = |shape: &Shape| {
            let good = arguments(shape, "/f").pop().unwrap();
            let shell = Shell::of(shape).unwrap();
            (Value::Object(good.clone()), Value::Object(shell.arguments(&good, "x")))
        };
        for program in ["program", "command"] {
            let (good, commanded) = given(&with("args", object(&[(program, 2)], &[program])));
            assert_eq!(good, json!({program: "echo", "args": ["conform"]}));
            assert_eq!(commanded, json!({program: "/bin/sh", "args": ["-c", "x"]}));
        }
        let (good, commanded) = given(&with("command", object(&[], &["command"])));
        assert_eq!(good, json!({"command": ["echo", "conform"]}));
        assert_eq!(commanded, json!({"command": ["/bin/sh", "-c", "x"]}));
    }

    #[test]
    fn a_configuration_has_what_is_required() {
        let attribute = |name: &str, kind, required| ObservedAttribute {
            name: name.to_owned(),
            kind,
            required,
            sensitive: false,
            attributes: Vec::new(),
            default_json: None,
        };
        let attributes =
            [attribute("roots", ATTR_LIST_STRING, true), attribute("more", ATTR_NUMBER, false)];
        assert_eq!(Value::Object(configuration(&attributes, "/f", "s")), json!({"roots": ["/f"]}));
        for one in &attributes {
            assert!(!is_of_type(&wrong_setting(one), one));
            assert!(is_of_type(&setting(one, "/f", "s"), one));
        }
    }
}
