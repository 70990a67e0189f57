//! Slips of a model: other names and other types than a schema asks for, where only one thing can be
//! meant. They are put right before arguments are checked, so that a slip costs no turn. Everything
//! else stays an error.

use std::borrow::Cow;

use serde_json::Value;

use crate::schema::{EXACT, Kind, Presence, Property, Schema};
use crate::{Payload, ToolSpec};

/// One tool's table of slips. It stands beside the tool's spec; the schema names none of them.
///
/// Names are written in lower case without `_` and `-`, and compared so: `filepath` stands for
/// `file_path` and `filePath` too.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slips {
    /// For each argument, other names that mean the same. They hold in nested objects too.
    pub names: &'static [(&'static str, &'static [&'static str])],
    /// For each argument with a list of words, other words that mean one of them, as given and as meant.
    pub words: &'static [(&'static str, &'static [(&'static str, &'static str)])],
    /// Arguments whose text may be given as a number, or as a list of texts, which are joined by blanks.
    pub texts: &'static [&'static str],
    /// Arguments whose text may be one of several, given as a list: its JSON is the text then.
    pub lists: &'static [&'static str],
    /// Names that are given true or false and are no argument, and what they ask for. A single letter
    /// stands for itself: `-l` and `-L` ask for different things.
    pub flags: &'static [(&'static str, Asks)],
    /// Names that mean something else than any argument, and what to give instead: the end of the
    /// sentence "unknown argument x; ".
    pub remedies: &'static [(&'static str, &'static str)],
}

/// What a flag asks for that is no argument.
#[derive(Clone, Copy, Debug)]
pub enum Asks {
    /// At this value, what is the case anyway: it is dropped. At the other one it is refused, and the
    /// text says why, as in [`Slips::remedies`].
    Given(bool, &'static str),
    /// If true, this word of that argument; if false, nothing.
    Word(&'static str, &'static str),
    /// If true, that argument at this value; if false, at the other one.
    Argument(&'static str, bool),
}

impl Slips {
    /// No slips.
    pub const NONE: Self =
        Self { names: &[], words: &[], texts: &[], lists: &[], flags: &[], remedies: &[] };

    /// Which of `known` a name means; each argument is known by its own name too.
    pub(crate) fn meant<'a>(
        &self,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Option<&'a str> {
        let name = folded(name);
        known.into_iter().find(|argument| {
            let mut others = self.names.iter().filter(|(meant, _)| meant == argument);
            folded(argument) == name || others.any(|(_, others)| others.contains(&name.as_str()))
        })
    }

    /// The word of an argument that another word means.
    fn word(&self, argument: &str, given: &str) -> Option<&'static str> {
        let given = folded(given);
        let (_, words) = self.words.iter().find(|(name, _)| *name == argument)?;
        words.iter().find(|(other, _)| *other == given).map(|(_, meant)| *meant)
    }

    /// The flag of this name, and whether it is set; none where the value is neither true nor false.
    fn flag(&self, name: &str, value: &Value) -> Option<(Asks, bool)> {
        let is_set = match value {
            Value::Bool(is_set) => *is_set,
            other => meant(&Kind::Boolean, other)?.as_bool()?,
        };
        let bare = name.replace(['_', '-'], "");
        let name = if bare.chars().nth(1).is_none() { bare } else { bare.to_lowercase() };
        let (_, flag) = self.flags.iter().find(|(other, _)| *other == name)?;
        Some((*flag, is_set))
    }

    /// What to give instead of an argument of this name with this value.
    pub(crate) fn remedy(&self, name: &str, value: &Value) -> Option<Cow<'static, str>> {
        match self.flag(name, value) {
            Some((Asks::Given(_, remedy), _)) => return Some(remedy.into()),
            Some((Asks::Word(argument, _) | Asks::Argument(argument, _), _)) => {
                return Some(format!("it contradicts {argument}: give one of them").into());
            }
            None => {}
        }
        let name = folded(name);
        self.remedies.iter().find(|(other, _)| *other == name).map(|(_, remedy)| (*remedy).into())
    }
}

fn folded(name: &str) -> String {
    name.chars()
        .filter(|letter| !matches!(letter, '_' | '-'))
        .flat_map(char::to_lowercase)
        .collect()
}

/// Puts the slips in a call's arguments right. What was taken for what goes to the debug log.
pub(crate) fn put_right(spec: &ToolSpec, arguments: &mut Payload) {
    let mut correction = Correction { slips: &spec.slips, accepted: Vec::new() };
    if let Kind::Object(properties) = &spec.input.kind {
        correction.object(properties, arguments);
    }
    if !correction.accepted.is_empty() {
        let accepted = correction.accepted.join(", ");
        tracing::debug!(tool = spec.name, accepted, "arguments were taken for what they mean");
    }
}

struct Correction<'a> {
    slips: &'a Slips,
    accepted: Vec<String>,
}

impl Correction<'_> {
    fn object(&mut self, properties: &[Property], object: &mut Payload) {
        self.rename(properties, object);
        for property in properties {
            let Some(value) = object.get_mut(property.name) else { continue };
            if value.is_null() && property.presence != Presence::Required {
                object.remove(property.name);
                self.accepted.push(format!("null as no {}", property.name));
            } else {
                self.value(property.name, &property.schema, value);
            }
        }
        self.flags(properties, object);
    }

    /// Takes flags that are no argument for what they ask for, unless an argument says otherwise.
    fn flags(&mut self, properties: &[Property], object: &mut Payload) {
        let is_known = |name: &str| properties.iter().any(|property| property.name == name);
        let unknown = object.iter().filter(|(name, _)| !is_known(name.as_str()));
        let flags: Vec<(String, Asks, bool)> = unknown
            .filter_map(|(name, value)| {
                let (flag, is_set) = self.slips.flag(name, value)?;
                Some((name.clone(), flag, is_set))
            })
            .collect();
        for (name, flag, is_set) in flags {
            let asked: Option<(&str, Value)> = match flag {
                Asks::Given(given, _) if given == is_set => None,
                Asks::Given(..) => continue,
                Asks::Word(argument, word) => is_set.then(|| (argument, word.into())),
                Asks::Argument(argument, value) => Some((argument, (value == is_set).into())),
            };
            if let Some((argument, value)) = asked {
                if !is_known(argument) || object.get(argument).is_some_and(|said| *said != value) {
                    continue;
                }
                object.insert(argument.to_owned(), value);
            }
            object.remove(&name);
            self.accepted.push(format!("{name} as what it asks for"));
        }
    }

    /// Gives an argument that is absent the value of the one other name that means it.
    fn rename(&mut self, properties: &[Property], object: &mut Payload) {
        let is_known = |name: &str| properties.iter().any(|property| property.name == name);
        let unknown: Vec<String> = object
            .iter()
            .filter(|(name, value)| {
                !is_known(name.as_str()) && self.slips.flag(name, value).is_none()
            })
            .map(|(name, _)| name.clone())
            .collect();
        if unknown.is_empty() {
            return;
        }
        let known = || properties.iter().map(|property| property.name);
        for target in known().filter(|name| !object.contains_key(*name)).collect::<Vec<_>>() {
            let mut meant =
                unknown.iter().filter(|name| self.slips.meant(name, known()) == Some(target));
            if let (Some(name), None) = (meant.next(), meant.next())
                && let Some(value) = object.remove(name)
            {
                object.insert(target.to_owned(), value);
                self.accepted.push(format!("{name} as {target}"));
            }
        }
    }

    fn value(&mut self, name: &'static str, schema: &Schema, value: &mut Value) {
        let word = match (&schema.kind, value.as_str()) {
            (Kind::String(words), Some(given)) if !words.contains(&given) => {
                self.slips.word(name, given).map(Value::from)
            }
            (Kind::String(_), None) if self.slips.texts.contains(&name) => as_text(value),
            (Kind::String(_), None) if self.slips.lists.contains(&name) => as_list(value),
            _ => None,
        };
        if let Some(meant) = word.or_else(|| meant(&schema.kind, value)) {
            *value = meant;
            self.accepted.push(format!("{name} as what it means"));
        }
        match (&schema.kind, value) {
            (Kind::Object(properties), Value::Object(object)) => self.object(properties, object),
            (Kind::Array(items), Value::Array(list)) => {
                for item in list {
                    self.value(name, items, item);
                }
            }
            _ => {}
        }
    }
}

/// The text that a number or a list of texts spells.
fn as_text(value: &Value) -> Option<Value> {
    match value {
        Value::Number(number) => Some(number.to_string().into()),
        Value::Array(items) => {
            let words: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
            words.map(|words| words.join(" ").into())
        }
        _ => None,
    }
}

/// The one text of a list, or the list of texts as JSON.
fn as_list(value: &Value) -> Option<Value> {
    match value.as_array()?.as_slice() {
        [] => None,
        [only @ Value::String(_)] => Some(only.clone()),
        items if items.iter().all(Value::is_string) => Some(value.to_string().into()),
        _ => None,
    }
}

/// The value of the kind that the schema asks for, where a value of another kind spells it out. A
/// text stays what it is where the schema asks for text.
fn meant(kind: &Kind, value: &Value) -> Option<Value> {
    match (kind, value) {
        (Kind::Whole { .. } | Kind::Range { .. }, Value::String(text)) => {
            text.trim().parse::<i64>().ok().map(Value::from)
        }
        // 2.0 is a whole number, to JSON Schema too.
        (Kind::Whole { .. } | Kind::Range { .. }, Value::Number(number)) if number.is_f64() => {
            let number = number.as_f64().filter(|number| number.fract() == 0.0)?;
            let is_exact = number.abs() <= EXACT as f64;
            is_exact.then(|| format!("{number:.0}").parse::<i64>().ok()).flatten().map(Value::from)
        }
        (Kind::Number, Value::String(text)) => {
            let number = text.trim().parse::<f64>().ok()?;
            serde_json::Number::from_f64(number).map(Value::from)
        }
        (Kind::Boolean, Value::String(text)) => {
            text.trim().to_ascii_lowercase().parse::<bool>().ok().map(Value::from)
        }
        (Kind::Array(items), Value::String(text)) => {
            let list = parsed(text).filter(Value::is_array);
            let is_text = matches!(items.kind, Kind::String(_));
            list.or_else(|| is_text.then(|| vec![value.clone()].into()))
        }
        (Kind::Array(items), Value::Object(_)) if matches!(items.kind, Kind::Object(_)) => {
            Some(vec![value.clone()].into())
        }
        (Kind::Object(_) | Kind::StringMap, Value::String(text)) => {
            parsed(text).filter(Value::is_object)
        }
        _ => None,
    }
}

fn parsed(json: &str) -> Option<Value> {
    serde_json::from_str(json).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::{sample, validate};

    const SLIPS: Slips = Slips {
        names: &[
            ("path", &["filepath", "file"]),
            ("old", &["oldstring", "search"]),
            ("edits", &["changes"]),
            ("limit", &["p"]),
        ],
        words: &[("mode", &[("fileswithmatches", "files")])],
        texts: &["keys"],
        lists: &["only"],
        flags: &[
            ("n", Asks::Given(true, "lines have their numbers")),
            ("background", Asks::Given(false, "nothing runs on")),
            ("l", Asks::Word("mode", "files")),
            ("p", Asks::Word("mode", "content")),
            ("isregex", Asks::Argument("literal", false)),
        ],
        remedies: &[("endline", "give limit, how many lines")],
    };

    fn spec() -> ToolSpec {
        let whole = Kind::Whole { min: 1 };
        let edit = Schema::object(vec![
            Property::required("old", Kind::String(&[]), ""),
            Property::optional("all", Kind::Boolean, ""),
        ]);
        let texts = Kind::Array(Box::new(Schema::new(Kind::String(&[]), "")));
        let input = Schema::object(vec![
            Property::required("path", Kind::String(&[]), ""),
            Property::optional("limit", whole, ""),
            Property::optional("mode", Kind::String(&["content", "files"]), ""),
            Property::optional("share", Kind::Number, ""),
            Property::optional("edits", Kind::Array(Box::new(edit)), ""),
            Property::optional("globs", texts, ""),
            Property::optional("env", Kind::StringMap, ""),
            Property::optional("keys", Kind::String(&[]), ""),
            Property::optional("only", Kind::String(&[]), ""),
            Property::optional("literal", Kind::Boolean, ""),
        ]);
        ToolSpec { slips: SLIPS, ..sample::spec("t", input) }
    }

    fn right(value: Value) -> Value {
        let Value::Object(mut arguments) = value else { panic!("an object") };
        put_right(&spec(), &mut arguments);
        arguments.into()
    }

    #[test]
    fn what_can_only_mean_one_thing_is_taken_for_it() {
        for (given, meant) in [
            (json!({"file_path": "a"}), json!({"path": "a"})),
            (json!({"filePath": "a", "Limit": " 5 "}), json!({"path": "a", "limit": 5})),
            (json!({"path": "a", "limit": null}), json!({"path": "a"})),
            (json!({"share": "0.5"}), json!({"share": 0.5})),
            (json!({"mode": "files_with_matches"}), json!({"mode": "files"})),
            (
                json!({"changes": "[{\"oldString\": \"5\", \"all\": \"True\"}]"}),
                json!({"edits": [{"old": "5", "all": true}]}),
            ),
            (json!({"edits": {"search": "[1]"}}), json!({"edits": [{"old": "[1]"}]})),
            (json!({"globs": "*.rs"}), json!({"globs": ["*.rs"]})),
            (json!({"globs": "[\"*.rs\", \"a\"]"}), json!({"globs": ["*.rs", "a"]})),
            (json!({"globs": "[ab].rs"}), json!({"globs": ["[ab].rs"]})),
            (json!({"env": "{\"A\": \"1\"}"}), json!({"env": {"A": "1"}})),
            (json!({"limit": 2.0}), json!({"limit": 2})),
            (json!({"only": ["*.rs"]}), json!({"only": "*.rs"})),
            (json!({"only": ["*.rs", "a"]}), json!({"only": "[\"*.rs\",\"a\"]"})),
            (json!({"-n": true, "background": "false"}), json!({})),
            (json!({"-l": true}), json!({"mode": "files"})),
            (json!({"-l": true, "mode": "files_with_matches"}), json!({"mode": "files"})),
            (json!({"-l": false, "mode": "content"}), json!({"mode": "content"})),
            (json!({"-p": true}), json!({"mode": "content"})),
            (json!({"-p": 3}), json!({"limit": 3})),
            (json!({"isRegex": true}), json!({"literal": false})),
            (json!({"is_regex": false}), json!({"literal": true})),
            (json!({"keys": 3000}), json!({"keys": "3000"})),
            (json!({"keys": ["Esc", ":wq"]}), json!({"keys": "Esc :wq"})),
        ] {
            assert_eq!(right(given.clone()), meant, "{given}");
        }
    }

    #[test]
    fn what_leaves_a_doubt_stays_as_it_is() {
        for given in [
            json!({"file": "a", "file_path": "b"}),
            json!({"path": "a", "file": "a"}),
            json!({"path": null}),
            json!({"path": 5, "limit": "five", "share": "NaN"}),
            json!({"keys": [1, "Esc"]}),
            json!({"limit": 2.5}),
            json!({"limit": 1e300}),
            json!({"only": ["a", 1]}),
            json!({"only": []}),
            json!({"only": 1}),
            json!({"-n": false, "background": true}),
            json!({"-l": true, "mode": "content"}),
            json!({"-L": true, "-N": true, "-n": 3}),
            json!({"is_regex": true, "literal": true}),
            json!({"limit": "5.5", "edits": "no list", "env": "A=1"}),
            json!({"path": "[\"a\"]", "edits": [{"old": "null", "all": "yes"}]}),
            json!({"end_line": 5, "zzz": 1, "mode": "lines"}),
        ] {
            assert_eq!(right(given.clone()), given);
        }
    }

    #[test]
    fn an_error_knows_the_name_that_was_meant_and_what_to_give_instead() {
        let spec = spec();
        let problem = |value: Value| {
            let Value::Object(arguments) = value else { panic!("an object") };
            let error = validate::arguments(&spec, &arguments).expect_err("it is unknown");
            error.message().to_owned()
        };
        let both = problem(json!({"path": "a", "file": "b"}));
        assert!(both.contains("unknown argument file; did you mean \"path\"?"), "{both}");
        let end = problem(json!({"path": "a", "end_line": 9}));
        assert!(end.contains("unknown argument end_line; give limit, how many lines"), "{end}");
        let on = problem(json!({"path": "a", "background": true}));
        assert!(on.ends_with("unknown argument background; nothing runs on"), "{on}");
        let files = problem(json!({"path": "a", "-l": true, "mode": "content"}));
        assert!(files.ends_with("argument -l; it contradicts mode: give one of them"), "{files}");
    }

    proptest! {
        #[test]
        fn text_is_never_changed(path in ".{0,20}", old in ".{0,20}") {
            let given = json!({"path": path, "edits": [{"old": old}], "globs": [old]});
            prop_assert_eq!(right(given.clone()), given);
        }

        #[test]
        fn what_is_valid_stays_as_it_is(limit in 1i64..99, all in any::<bool>()) {
            let given = json!({"path": "a", "limit": limit, "edits": [{"old": "", "all": all}]});
            prop_assert_eq!(right(given.clone()), given);
        }
    }
}
