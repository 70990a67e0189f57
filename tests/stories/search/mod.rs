//! grep and glob over the real subprocess.

mod cases;
mod names;
mod oracle;
mod pages;
mod races;
mod stops;
mod tree;

use serde_json::{Value, json};
use tool_provider::{Event, Payload};

use crate::harness::Fixture;
use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    let trials = [
        cases::trials(),
        names::trials(),
        oracle::trials(),
        pages::trials(),
        races::trials(),
        stops::trials(),
    ];
    trials.into_iter().flatten().collect()
}

/// A search: what it streamed, and its result.
struct Searched {
    events: Vec<Event>,
    result: Payload,
}

impl Searched {
    /// In the form for programs, with all hits of each file.
    async fn of(fixture: &mut Fixture, tool: &str, arguments: Value) -> Self {
        let mut arguments = arguments;
        arguments["details"] = true.into();
        if tool == "grep" {
            arguments["max_per_file"] = 1_000_000.into();
        }
        let asked = arguments.to_string();
        let (events, outcome) = fixture.call(tool, arguments).await;
        let result = outcome.unwrap_or_else(|failure| panic!("{tool} {asked}: {failure:?}"));
        Self { events, result }
    }

    /// The paths of a list of the result, each once for every hit.
    fn paths(&self, list: &str) -> Vec<String> {
        paths_in(&self.result[list])
    }

    fn notice(&self) -> &str {
        self.result.get("notice").and_then(Value::as_str).unwrap_or_default()
    }

    /// The items of a list as they were streamed.
    fn streamed(&self, list: &str) -> Value {
        let items = self.events.iter().filter_map(|event| match event {
            Event::Partial(payload) => payload[list].as_array(),
            _ => None,
        });
        json!(items.flatten().collect::<Vec<_>>())
    }
}

fn paths_in(list: &Value) -> Vec<String> {
    let items = list.as_array().unwrap_or_else(|| panic!("no list: {list}")).iter();
    items.map(|item| item.as_str().or(item["path"].as_str()).unwrap().to_owned()).collect()
}

/// The paths that grep finds a pattern in.
async fn grep(fixture: &mut Fixture, arguments: Value) -> Vec<String> {
    Searched::of(fixture, "grep", arguments).await.paths("matches")
}

/// What a model reads of a search.
async fn read(fixture: &mut Fixture, tool: &str, arguments: Value) -> Payload {
    fixture.call(tool, arguments).await.1.unwrap()
}

/// The paths that glob finds.
async fn glob(fixture: &mut Fixture, arguments: Value) -> Vec<String> {
    Searched::of(fixture, "glob", arguments).await.paths("paths")
}
