//! Thousands of arguments that no schema foresees, for every tool that there is.

use std::os::unix::fs::symlink;

use futures_util::future::join_all;
use prost_types::value::Kind;
use prost_types::{Struct, Value};
use serde_json::json;
use tool_provider::grpc::AdvertisedTool;

use super::raw::{Raw, fields, flag, list, null, number, object, text};
use crate::dice::Dice;
use crate::harness::Fixture;
use crate::trials::{Need, Trial};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        thousands_of_hostile_arguments_for_each_tool needs [Need::Time],
    ]
}

/// How many structs each tool gets, where `FAULT_STRUCTS` names no other number. CI sends 10,000.
const STRUCTS: usize = 2000;

/// With so many, each tool has found some that it takes.
const MANY: usize = 10_000;
/// How many callers send them at once.
const CALLERS: usize = 16;
/// One in so many structs that could run a command is left as it is.
const COMMANDS: usize = 50;
/// Deeper than this a message need not be readable, so that its failure cannot name an argument.
const READABLE: usize = 40;

/// Never a crash, never a bare status: a result, or a failure whose category is known and which, if
/// the arguments are at fault, names one of them.
async fn thousands_of_hostile_arguments_for_each_tool() {
    let mut fixture = Fixture::launched().await;
    fixture.configure(json!({"bash_timeout_ms": 2000, "bash_max_timeout_ms": 2000})).await.unwrap();
    prepare(&fixture);
    let structs = super::number_from("FAULT_STRUCTS").unwrap_or(STRUCTS);
    let tools = fixture.client.schema().await.unwrap().tools;
    assert!(tools.len() >= 4);
    for tool in &tools {
        let callers = (0..CALLERS).map(|caller| {
            let (raw, tool) = (Raw::of(&fixture), tool.clone());
            tokio::spawn(attack(raw, tool, caller, structs))
        });
        let tally = join_all(callers).await;
        let tally = tally.into_iter().map(Result::unwrap).reduce(Tally::with).unwrap();
        eprintln!("{}: {tally:?}", tool.name);
        assert!(tally.refused > structs / 2, "{}: hardly anything was hostile", tool.name);
        // A short run may well hold none that a tool takes.
        assert!(tally.succeeded > 0 || structs < MANY, "{}: each was refused", tool.name);
    }
    // It is still the same process, and it works.
    fixture.plugin.ping().await.unwrap();
    fixture.write("still", "here\n");
    fixture.result("read_file", json!({"path": "still"})).await;
    fixture.end().await;
}

fn prepare(fixture: &Fixture) {
    fixture.write("a.txt", "one\ntwo\none\n");
    std::fs::create_dir(fixture.path("dir")).unwrap();
    std::fs::create_dir(fixture.path("dir/inner")).unwrap();
    fixture.write("dir/b.rs", "fn main() {}\n");
    fixture.write("binary", [0_u8, 1, 2, 0xff]);
    symlink("/etc", fixture.path("out")).unwrap();
    symlink("loop", fixture.path("loop")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(fixture.path("fifo")).status();
    assert!(made.unwrap().success());
}

/// How the structs of a tool were answered.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    succeeded: usize,
    refused: usize,
    failed: usize,
}

impl Tally {
    fn with(self, other: Self) -> Self {
        Self {
            succeeded: self.succeeded + other.succeeded,
            refused: self.refused + other.refused,
            failed: self.failed + other.failed,
        }
    }
}

async fn attack(mut raw: Raw, tool: AdvertisedTool, caller: usize, structs: usize) -> Tally {
    let names = property_names(&tool.input_schema);
    let mut dice = Dice::new(caller as u64);
    let mut tally = Tally::default();
    for round in (caller..structs).step_by(CALLERS) {
        let seed = dice.throw();
        let hostile = Hostile { dice: Dice::new(seed), deepest: 0 };
        let (arguments, deepest) = hostile.arguments(&tool);
        let given = spellings(&arguments);
        if round % 8 == 0 {
            match raw.render(&tool.name, arguments.clone()).await {
                Ok(()) => {}
                Err(failure) => assert_eq!(failure.category, "invalid_arguments", "seed {seed}"),
            }
        }
        let outcome = match round % 4 {
            0 => raw.preview(&tool.name, arguments).await,
            _ => raw.invoke(&tool.name, arguments).await,
        };
        match outcome {
            Ok(()) => tally.succeeded += 1,
            Err(failure) if failure.category == "invalid_arguments" => {
                let named = names.iter().any(|name| failure.message.contains(name.as_str()))
                    || given.iter().any(|spelling| failure.message.contains(spelling.as_str()))
                    || deepest > READABLE && failure.message.contains("recursion limit");
                assert!(named, "{}, seed {seed}: {}", tool.name, failure.message);
                tally.refused += 1;
            }
            Err(_) => tally.failed += 1,
        }
    }
    tally
}

/// What a message calls the arguments by: the names that came, and the texts, which say more where
/// a tool has only one of a kind, such as a path. Of each the start, as messages shorten them.
fn spellings(arguments: &Struct) -> Vec<String> {
    let names = arguments.fields.keys().map(String::as_str);
    let texts = arguments.fields.values().filter_map(|value| match &value.kind {
        Some(Kind::StringValue(text)) => Some(text.as_str()),
        _ => None,
    });
    let starts = names.chain(texts).map(|text| text.chars().take(10).collect::<String>());
    starts
        .flat_map(|start| {
            let escaped = start.chars().flat_map(char::escape_default).collect();
            let quoted = start.bytes().map(as_git_quotes).collect();
            [start, escaped, quoted]
        })
        .map(|spelling| if spelling.is_empty() { "\"\"".to_owned() } else { spelling })
        .collect()
}

/// A byte of a name as git and the search tools write it.
fn as_git_quotes(byte: u8) -> String {
    match byte {
        7 => "\\a".to_owned(),
        8 => "\\b".to_owned(),
        9 => "\\t".to_owned(),
        10 => "\\n".to_owned(),
        11 => "\\v".to_owned(),
        12 => "\\f".to_owned(),
        13 => "\\r".to_owned(),
        b'"' | b'\\' => format!("\\{}", char::from(byte)),
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("\\{byte:03o}"),
    }
}

/// The names of all arguments, also of those in lists.
fn property_names(schema: &serde_json::Value) -> Vec<String> {
    let mut names = Vec::new();
    if let Some(properties) = schema.get("properties").and_then(|inner| inner.as_object()) {
        for (name, inner) in properties {
            names.push(name.clone());
            names.extend(property_names(inner));
        }
    }
    if let Some(items) = schema.get("items") {
        names.extend(property_names(items));
    }
    names
}

struct Hostile {
    dice: Dice,
    deepest: usize,
}

impl Hostile {
    /// Arguments for the tool, and how deeply they are nested.
    fn arguments(mut self, tool: &AdvertisedTool) -> (Struct, usize) {
        let mut arguments = self.object_of(&tool.input_schema);
        let names: Vec<String> = arguments.fields.keys().cloned().collect();
        // As it is, with some values replaced, with strange names, with something missing.
        if !self.dice.once_in(10) {
            for _ in 0..self.dice.below(3) {
                if !names.is_empty() {
                    let (name, value) = (self.dice.pick(&names).clone(), self.value());
                    arguments.fields.insert(name, value);
                }
            }
            if self.dice.once_in(3) {
                let (name, value) = (self.string(), self.value());
                arguments.fields.insert(name, value);
            }
            if self.dice.once_in(6) && !names.is_empty() {
                arguments.fields.remove(self.dice.pick(&names));
            }
        }
        if let Some(command) = arguments.fields.get_mut("command") {
            self.make_harmless(command);
            // A shell costs more than ten thousand times as many milliseconds as a story has.
            if !self.dice.once_in(COMMANDS) {
                let value = self.value();
                arguments.fields.insert("comand".to_owned(), value);
            }
        }
        (arguments, self.deepest)
    }

    /// What a shell would run is one of a few commands that do nothing.
    fn make_harmless(&mut self, command: &mut Value) {
        if let Some(Kind::StringValue(script)) = &mut command.kind {
            let long = format!("true #{}", "x".repeat(200_000));
            let scripts = ["true", ":", "exit 3", "", "true\0", "true '", &long];
            *script = (*self.dice.pick(&scripts)).to_owned();
        }
    }

    fn object_of(&mut self, schema: &serde_json::Value) -> Struct {
        let required: Vec<&str> = schema["required"]
            .as_array()
            .map(|names| names.iter().filter_map(|name| name.as_str()).collect())
            .unwrap_or_default();
        let mut object = Struct::default();
        let Some(properties) = schema.get("properties").and_then(|inner| inner.as_object()) else {
            return object;
        };
        for (name, inner) in properties {
            if required.contains(&name.as_str()) || self.dice.once_in(4) {
                let value = self.fitting(inner);
                object.fields.insert(name.clone(), value);
            }
        }
        object
    }

    /// A value of the type that the schema wants: mostly a usual one.
    fn fitting(&mut self, schema: &serde_json::Value) -> Value {
        let words = schema.get("enum").and_then(|words| words.as_array());
        match schema["type"].as_str() {
            Some("string") => match words {
                Some(words) => text(self.dice.pick(words).as_str().unwrap()),
                None if self.dice.once_in(3) => text(self.string()),
                None => {
                    let usual = ["a.txt", "dir", "one", "two", "dir/b.rs", "*.rs", "."];
                    text(*self.dice.pick(&usual))
                }
            },
            Some("number" | "integer") => match self.dice.once_in(2) {
                true => number(self.number()),
                false => number(self.dice.below(50) as f64),
            },
            Some("boolean") => flag(self.dice.once_in(2)),
            Some("array") => {
                let items = (0..self.dice.below(4)).map(|_| self.fitting(&schema["items"]));
                list(items.collect())
            }
            Some("object") => object(self.object_of(schema)),
            other => panic!("a schema of type {other:?}"),
        }
    }

    /// Any value.
    fn value(&mut self) -> Value {
        match self.dice.below(9) {
            0 => null(),
            1 => flag(self.dice.once_in(2)),
            2 | 3 => number(self.number()),
            4 | 5 => text(self.string()),
            6 => Value { kind: None },
            7 => {
                let items = (0..self.dice.below(5)).map(|_| self.flat()).collect();
                list(items)
            }
            _ => self.deep(),
        }
    }

    fn flat(&mut self) -> Value {
        match self.dice.below(3) {
            0 => number(self.number()),
            1 => text(self.string()),
            _ => object(fields([(self.string(), null())])),
        }
    }

    fn deep(&mut self) -> Value {
        let levels = *self.dice.pick(&[2, 10, 30, 60, 63, 64, 65, 100, 200]);
        self.deepest = self.deepest.max(levels);
        let mut value = self.flat();
        for _ in 0..levels {
            value = match self.dice.once_in(2) {
                true => list(vec![value]),
                false => object(fields([("a", value)])),
            };
        }
        value
    }

    fn number(&mut self) -> f64 {
        let known = [
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::MAX,
            f64::MIN,
            f64::MIN_POSITIVE,
            -0.0,
            0.0,
            -1.0,
            0.5,
            1.0,
            1e18,
            1e300,
            9_007_199_254_740_992.0,
            9_007_199_254_740_993.0,
            -9_007_199_254_740_993.0,
            9.223_372_036_854_776e18,
            1.844_674_407_370_955_2e19,
            4_294_967_296.0,
            2_147_483_648.0,
        ];
        match self.dice.once_in(4) {
            true => f64::from_bits(self.dice.throw()),
            false => *self.dice.pick(&known),
        }
    }

    fn string(&mut self) -> String {
        const KNOWN: [&str; 40] = [
            "",
            " ",
            ".",
            "..",
            "/",
            "//",
            "~",
            "-",
            "\0",
            "a.txt\0b",
            "\u{fffd}",
            "\\ud800",
            "\u{202e}txt.a\u{202c}",
            "\u{feff}a.txt",
            "\u{1b}[31mred\u{7}",
            "a\nb",
            "\r\n",
            "a/../../../../etc/passwd",
            "/etc/shadow",
            "/proc/self/mem",
            "/proc/self/root/etc/passwd",
            "/dev/zero",
            "out/passwd",
            "loop",
            "loop/x",
            "fifo",
            "dir",
            "dir/.",
            "dir//b.rs",
            "binary",
            "a.txt/x",
            "one",
            "(a*)*$",
            "[",
            "(?=x)",
            "a{1000}{1000}{1000}",
            "**/*{a,b",
            "{{{{{{{{",
            "null",
            "1e309",
        ];
        match self.dice.below(2000) {
            0 => "é".repeat(512 * 1024),
            1 => "x/".repeat(3000),
            2 => "n".repeat(256),
            3..300 => {
                let length = self.dice.below(40);
                let any = |dice: &mut Dice| char::from_u32(dice.throw() as u32 % 0x11_0000);
                (0..length).filter_map(|_| any(&mut self.dice)).collect()
            }
            _ => (*self.dice.pick(&KNOWN)).to_owned(),
        }
    }
}
