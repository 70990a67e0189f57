//! Arguments and results against their schema, with messages that a model can act on.

use serde_json::Value;

use crate::nearest::suggestion;
use crate::schema::{Kind, Presence, Property, Schema};
use crate::slips::Slips;
use crate::{Payload, ToolError, ToolSpec};

/// More problems than this are counted, not listed.
const MOST_LISTED: usize = 20;
/// Longest piece of a wrong value that a message repeats, in characters.
const MOST_SHOWN: usize = 40;

/// Checks the arguments of a call of a tool, with all problems in one message.
///
/// # Errors
/// `invalid_arguments`.
pub fn arguments(spec: &ToolSpec, arguments: &Payload) -> Result<(), ToolError> {
    let tool = spec.name;
    let check = Check::new(Unknown::Refused(&spec.slips));
    let Check { listed, more, .. } = check.run(&spec.input, arguments);
    let mut message = match listed.as_slice() {
        [] => return Ok(()),
        [only] => format!("invalid arguments for {tool}: {only}"),
        several => format!("invalid arguments for {tool}:\n- {}", several.join("\n- ")),
    };
    if more > 0 {
        message.push_str(&format!("\n- and {more} more"));
    }
    Err(ToolError::invalid_arguments(message).with_detail("problems", listed))
}

/// Checks a result as strictly as a host does, and more: whole numbers and their ranges too.
/// Properties that the schema does not name are let through.
///
/// # Errors
/// What does not fit, in one text.
pub fn payload(schema: &Schema, payload: &Payload) -> Result<(), String> {
    let listed = Check::new(Unknown::LetThrough).run(schema, payload).listed;
    if listed.is_empty() { Ok(()) } else { Err(listed.join("; ")) }
}

/// What a property that the schema does not name means.
#[derive(Clone, Copy)]
enum Unknown<'a> {
    /// An error, which says what such a name usually means.
    Refused(&'a Slips),
    LetThrough,
}

struct Check<'a> {
    unknown: Unknown<'a>,
    listed: Vec<String>,
    /// Problems beyond the listed ones: a list of a million wrong items is reported in twenty lines.
    more: usize,
}

impl<'a> Check<'a> {
    fn new(unknown: Unknown<'a>) -> Self {
        Self { unknown, listed: Vec::new(), more: 0 }
    }

    fn run(mut self, schema: &Schema, object: &Payload) -> Self {
        if let Kind::Object(properties) = &schema.kind {
            self.object(&FieldPath::Top, properties, object);
        }
        self
    }

    fn problem(&mut self, describe: impl FnOnce() -> String) {
        if self.listed.len() < MOST_LISTED {
            self.listed.push(describe());
        } else {
            self.more += 1;
        }
    }

    fn object(&mut self, field: &FieldPath<'_>, properties: &[Property], object: &Payload) {
        for property in properties {
            let inner = FieldPath::Property(field, property.name);
            match object.get(property.name) {
                // Left out it would be missing as well.
                None | Some(Value::Null) if property.presence == Presence::Required => {
                    self.problem(|| {
                        let wanted = wanted(&property.schema.kind);
                        format!("{} is missing: {wanted} is required", inner.path())
                    });
                }
                Some(value) => self.value(&inner, &property.schema, value),
                None => {}
            }
        }
        let Unknown::Refused(slips) = self.unknown else { return };
        for (name, value) in object {
            if properties.iter().all(|property| property.name != name) {
                let known = properties.iter().map(|property| property.name);
                let inner = FieldPath::Property(field, name);
                self.problem(|| {
                    let instead =
                        match (slips.remedy(name, value), slips.meant(name, known.clone())) {
                            (Some(remedy), _) => remedy.into_owned(),
                            (None, Some(meant)) => format!("did you mean {meant:?}?"),
                            (None, None) => suggestion(name, known),
                        };
                    let name = shorten(&inner.path().escape_default().to_string());
                    format!("unknown argument {name}; {instead}")
                });
            }
        }
    }

    fn value(&mut self, field: &FieldPath<'_>, schema: &Schema, value: &Value) {
        let fits = match (&schema.kind, value) {
            (Kind::Object(properties), Value::Object(object)) => {
                self.object(field, properties, object);
                true
            }
            (Kind::StringMap, Value::Object(object)) => {
                let text = Schema::new(Kind::String(&[]), "");
                for (name, item) in object {
                    self.value(&FieldPath::Property(field, name), &text, item);
                }
                true
            }
            (Kind::Boolean, Value::Bool(_)) => true,
            (Kind::String(words), Value::String(text)) => {
                if !words.is_empty() && !words.contains(&text.as_str()) {
                    self.problem(|| {
                        let suggestion = suggestion(text, words.iter().copied());
                        format!("{} cannot be {:?}; {suggestion}", field.path(), shorten(text))
                    });
                }
                true
            }
            (Kind::Number, Value::Number(_)) => true,
            (Kind::Whole { .. } | Kind::Range { .. }, Value::Number(number)) => {
                let number = number.as_i64().zip(schema.kind.range());
                number.is_some_and(|(number, range)| range.contains(&number))
            }
            (Kind::Array(items), Value::Array(list)) => {
                for (index, item) in list.iter().enumerate() {
                    self.value(&FieldPath::Item(field, index), items, item);
                }
                true
            }
            _ => false,
        };
        if !fits {
            self.problem(|| {
                let (wanted, came) = (wanted(&schema.kind), came(&schema.kind, value));
                format!("{} must be {wanted}, not {came}", field.path())
            });
        }
    }
}

/// Where in the arguments a value stands. A path is only spelt out for a problem.
enum FieldPath<'a> {
    Top,
    Property(&'a FieldPath<'a>, &'a str),
    Item(&'a FieldPath<'a>, usize),
}

impl FieldPath<'_> {
    fn path(&self) -> String {
        match self {
            FieldPath::Top => String::new(),
            FieldPath::Property(FieldPath::Top, name) => (*name).to_owned(),
            FieldPath::Property(outer, name) => format!("{}.{name}", outer.path()),
            FieldPath::Item(outer, index) => format!("{}[{index}]", outer.path()),
        }
    }
}

pub(crate) fn wanted(kind: &Kind) -> String {
    match kind {
        Kind::Object(_) | Kind::StringMap => "an object".to_owned(),
        Kind::String([]) => "a string".to_owned(),
        Kind::String(words) => format!("one of {}", words.join(", ")),
        Kind::Number => "a number".to_owned(),
        Kind::Whole { min: i64::MIN } => "a whole number".to_owned(),
        Kind::Whole { min } => format!("a whole number ≥ {min}"),
        Kind::Range { min, max } => format!("a whole number from {min} to {max}"),
        Kind::Boolean => "true or false".to_owned(),
        Kind::Array(_) => "a list".to_owned(),
    }
}

/// What was given instead, with the remedy where it is a common mistake.
fn came(kind: &Kind, value: &Value) -> String {
    match value {
        Value::Null => "null; leave it out instead".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => {
            let shown = format!("{:?}", shorten(text));
            match kind {
                Kind::Array(_) if text.trim_start().starts_with('[') => {
                    format!("the string {shown}; give the list itself, without quotes around it")
                }
                Kind::Array(_) => format!("the string {shown}; put it in [ ]"),
                Kind::Object(_) | Kind::StringMap if text.trim_start().starts_with('{') => {
                    format!("the string {shown}; give the object itself, without quotes around it")
                }
                _ => format!("the string {shown}"),
            }
        }
        Value::Array(items) => {
            format!("a list of {}{}", items.len(), remedy_for_text(kind))
        }
        Value::Object(_) if matches!(kind, Kind::Array(_)) => "an object; put it in [ ]".to_owned(),
        Value::Object(_) => format!("an object{}", remedy_for_text(kind)),
    }
}

/// A file's content that is JSON is easily passed as JSON instead of text.
fn remedy_for_text(kind: &Kind) -> &'static str {
    if matches!(kind, Kind::String([])) { "; write it out as one string" } else { "" }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(MOST_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn schema() -> Schema {
        let edit = Schema::object(vec![
            Property::required("old", Kind::String(&[]), ""),
            Property::optional("all", Kind::Boolean, ""),
        ]);
        Schema::object(vec![
            Property::required("path", Kind::String(&[]), ""),
            Property::optional("limit", Kind::Whole { min: 1 }, ""),
            Property::optional("mode", Kind::String(&["content", "files"]), ""),
            Property::optional("edits", Kind::Array(Box::new(edit)), ""),
            Property::optional("share", Kind::Number, ""),
            Property::optional("extra", Kind::StringMap, ""),
        ])
    }

    fn spec() -> ToolSpec {
        crate::sample::spec("t", schema())
    }

    fn problems(value: Value) -> Vec<String> {
        let Value::Object(object) = value else { panic!("arguments are an object") };
        Check::new(Unknown::Refused(&Slips::NONE)).run(&schema(), &object).listed
    }

    #[test]
    fn what_fits_passes() {
        let full = json!({"path": "a", "limit": 1, "mode": "files", "share": 0.5,
            "edits": [{"old": "x", "all": false}], "extra": {"free": "x"}});
        assert_eq!(problems(full), Vec::<String>::new());
        assert_eq!(problems(json!({"path": ""})), Vec::<String>::new());
    }

    #[test]
    fn each_slip_is_named_with_its_place_and_its_remedy() {
        let found = problems(json!({
            "pth": "a", "limit": "10", "mode": "file", "share": null, "extra": 3,
            "edits": [{"old": "x", "all": "true"}, {"al": true}],
        }));
        assert_eq!(
            found,
            [
                "path is missing: a string is required",
                r#"limit must be a whole number ≥ 1, not the string "10""#,
                r#"mode cannot be "file"; did you mean "files"?"#,
                r#"edits[0].all must be true or false, not the string "true""#,
                "edits[1].old is missing: a string is required",
                r#"unknown argument edits[1].al; did you mean "all"?"#,
                "share must be a number, not null; leave it out instead",
                "extra must be an object, not 3",
                r#"unknown argument pth; did you mean "path"?"#,
            ]
        );
        assert_eq!(
            problems(json!({"path": null, "edits": [{"old": null}]})),
            [
                "path is missing: a string is required",
                "edits[0].old is missing: a string is required",
            ]
        );
        assert_eq!(
            problems(json!({"path": "a", "cmd": "x"})),
            ["unknown argument cmd; there are: path, limit, mode, edits, share, extra"]
        );
        for number in [json!(0), json!(-1), json!(1.5), json!(1e300)] {
            let found = problems(json!({"path": "a", "limit": number}));
            assert!(found[0].starts_with("limit must be a whole number ≥ 1, not"), "{found:?}");
        }
        assert_eq!(
            problems(json!({"path": "a", "edits": "x"})),
            [r#"edits must be a list, not the string "x"; put it in [ ]"#]
        );
        for (wrong, remedy) in [
            (json!("[{\"old\": \"x\"}]"), "; give the list itself, without quotes around it"),
            (json!({"old": "x"}), "not an object; put it in [ ]"),
            (json!(["{\"old\": 1}"]), "; give the object itself, without quotes around it"),
        ] {
            let found = problems(json!({"path": "a", "edits": wrong}));
            assert!(found.len() == 1 && found[0].ends_with(remedy), "{found:?}");
        }
        assert_eq!(
            problems(json!({"path": {"a": 1}})),
            ["path must be a string, not an object; write it out as one string"]
        );
    }

    #[test]
    fn a_range_has_two_ends_and_a_map_holds_strings() {
        let schema = Schema::object(vec![
            Property::optional("share", Kind::Range { min: 0, max: 100 }, ""),
            Property::optional("names", Kind::StringMap, ""),
        ]);
        let problems = |value: Value| {
            let check = Check::new(Unknown::Refused(&Slips::NONE));
            check.run(&schema, value.as_object().unwrap()).listed
        };
        for share in [0, 100] {
            assert_eq!(problems(json!({"share": share, "names": {"a": ""}})), [""; 0]);
        }
        assert_eq!(
            problems(json!({"share": 101, "names": {"a": "b", "c": 1}})),
            [
                "share must be a whole number from 0 to 100, not 101",
                "names.c must be a string, not 1",
            ]
        );
    }

    #[test]
    fn a_flood_of_problems_stays_short() {
        let many: Vec<Value> = (0..1000).map(Value::from).collect();
        let Value::Object(object) = json!({"path": "x".repeat(9999), "edits": many}) else {
            unreachable!()
        };
        let error = arguments(&spec(), &object).expect_err("numbers are no edits");
        assert!(error.message().len() < 2000 && error.message().ends_with("and 980 more"));
    }

    #[test]
    fn a_result_may_hold_more_than_its_schema_names_but_never_null_or_less() {
        let with_more = json!({"path": "a", "tool": "t"});
        assert_eq!(payload(&schema(), with_more.as_object().unwrap()), Ok(()));
        for wrong in [json!({}), json!({"path": null}), json!({"path": "a", "limit": null})] {
            assert!(payload(&schema(), wrong.as_object().unwrap()).is_err(), "{wrong}");
        }
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,50}".prop_map(Value::from),
        ];
        let name = prop_oneof!["path|limit|mode|edits|old|all", ".{0,8}"];
        leaf.prop_recursive(3, 24, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((name.clone(), inner), 0..4)
                    .prop_map(|entries| Value::Object(entries.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_value_makes_the_check_panic(value in any_value()) {
            let mut object = Payload::new();
            object.insert("path".to_owned(), value.clone());
            object.insert("edits".to_owned(), value);
            let _ = arguments(&spec(), &object);
            let _ = payload(&schema(), &object);
        }
    }
}
