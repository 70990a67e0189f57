//! What a provider says of itself: Describe and GetSchema.

use super::super::checks::Check;
use super::super::session::Session;
use super::super::shapes;
use super::super::trial::{DATA_SOURCE, INTERACTIVE, RESOURCE, Trial};
use crate::observe::{ObservedAttribute, ObservedSchema, ObservedTool, Shape};

/// The number of the category TOOL.
const TOOL: i32 = 2;
/// The tool protocol's version.
const VERSION: u32 = 1;
/// A Duration's longest, by its definition, in seconds.
const LONGEST: i64 = 315_576_000_000;

/// Describe.
pub(super) async fn identity(trial: &mut Trial, session: &Session) {
    let mut observer = session.observer.clone();
    let wanted = "a producer with a name";
    let producer = match trial.within(observer.describe()).await {
        None => {
            let seen = trial.no_answer();
            return trial.report.fail(Check::Identity, seen, wanted);
        }
        Some(Err(refusal)) => {
            trial.refused("Describe", &refusal);
            return trial.report.fail(Check::Identity, refusal.to_string(), wanted);
        }
        Some(Ok(None)) => return trial.report.fail(Check::Identity, "no producer", wanted),
        Some(Ok(Some(producer))) => producer,
    };
    let problem = producer.name.is_empty().then(|| "an empty name".to_owned());
    trial.report.judge(Check::Identity, problem, wanted);
    // An empty one fits every lock file.
    if producer.source.contains("://") {
        let better = "the address of a forge without a scheme, as a lock file has it, or none";
        trial.report.remark(Check::Identity, format!("source {:?}", producer.source), better);
    }
    let problem = (!is_semantic(&producer.version)).then(|| format!("{:?}", producer.version));
    trial.report.judge(Check::SemanticVersion, problem, "MAJOR.MINOR.PATCH");
    let problem = (producer.category != TOOL || producer.protocol_version != VERSION).then(|| {
        format!("category {}, protocol_version {}", producer.category, producer.protocol_version)
    });
    trial.report.judge(Check::Category, problem, "category 2 (TOOL), protocol_version 1");
}

/// GetSchema, and every rule of what it declares.
pub(super) async fn schema(trial: &mut Trial, session: &Session) -> Option<ObservedSchema> {
    let mut observer = session.observer.clone();
    let wanted = "a list of operations";
    let schema = match trial.within(observer.schema()).await {
        None => {
            let seen = trial.no_answer();
            trial.report.fail(Check::SchemaAnswers, seen, wanted);
            return None;
        }
        Some(Err(refusal)) => {
            trial.refused("GetSchema", &refusal);
            trial.report.fail(Check::SchemaAnswers, refusal.to_string(), wanted);
            return None;
        }
        Some(Ok(schema)) => schema,
    };
    let remark = schema.tools.is_empty().then(|| "no operation".to_owned());
    trial.report.weigh(Check::SchemaAnswers, remark, "an operation that a model can call");
    let wanted = "the same answer";
    match trial.within(observer.schema()).await {
        Some(Ok(again)) if again == schema => trial.report.pass(Check::SchemaStable),
        Some(Ok(again)) if sorted(&again) == sorted(&schema) => {
            let seen = "the same operations and keys in another order, as a map's iteration gives";
            let better = "one order: the model's prompt changes with it, and its cache is lost";
            trial.report.remark(Check::SchemaStable, seen, better);
        }
        answer => {
            let fault = trial.fault_of(answer);
            let seen = fault.unwrap_or_else(|| "another answer to the same question".to_owned());
            trial.report.fail(Check::SchemaStable, seen, wanted);
        }
    }
    judge(trial, &schema);
    Some(schema)
}

fn judge(trial: &mut Trial, schema: &ObservedSchema) {
    let report = &mut trial.report;
    let tools = &schema.tools;
    let each = |problem: &dyn Fn(&ObservedTool) -> Option<String>| -> Vec<String> {
        let named = |tool| Some(format!("{}: {}", tool_name(tool), problem(tool)?));
        tools.iter().filter_map(named).collect()
    };
    let names = tools.iter().enumerate().filter_map(|(index, tool)| {
        let is_twice = tools[..index].iter().any(|other| other.name == tool.name);
        match (tool.name.is_empty(), is_twice) {
            (true, _) => Some("an operation without a name".to_owned()),
            (_, true) => Some(format!("{} twice", tool.name)),
            _ => None,
        }
    });
    let names: Vec<_> = names.collect();
    report.judge(Check::Names, names, "a name of its own for each");
    let missing = |tool: &ObservedTool| {
        tool.description.trim().is_empty().then(|| "no description".to_owned())
    };
    report.judge(Check::Descriptions, each(&missing), "a description");
    let unknown = |tool: &ObservedTool| {
        (!(RESOURCE..=INTERACTIVE).contains(&tool.kind)).then(|| format!("kind {}", tool.kind))
    };
    report.judge(Check::Kinds, each(&unknown), "resource (1), data_source (2) or interactive (3)");
    let risky = |tool: &ObservedTool| {
        let fits = match tool.kind {
            RESOURCE => (2..=5).contains(&tool.risk),
            DATA_SOURCE | INTERACTIVE => tool.risk == 1,
            _ => (1..=5).contains(&tool.risk),
        };
        (!fits).then(|| format!("risk {} with kind {}", tool.risk, tool.kind))
    };
    let wanted = "low (2) to critical (5) for a resource, read_only (1) for any other kind";
    report.judge(Check::Risks, each(&risky), wanted);
    let mut shapes_of = |check, of: &dyn Fn(&ObservedTool) -> Option<&Shape>| {
        for tool in tools {
            let looked = shapes::look(tool_name(tool), of(tool));
            let wanted = "an object (1) whose parts are of the five types: object (1), string (2), \
                          number (3), boolean (4), array (5)";
            report.judge(check, looked.problems, wanted);
            let better = "its absence: it says nothing, or no value fits it";
            report.weigh(check, looked.remarks, better);
        }
        report.pass(check);
    };
    shapes_of(Check::InputShapes, &|tool| tool.input.as_ref());
    shapes_of(Check::OutputShapes, &|tool| tool.output.as_ref());
    let misplaced = |tool: &ObservedTool| match (tool.kind, &tool.concurrency) {
        (INTERACTIVE, Some(_)) => Some("concurrency on an interactive operation".to_owned()),
        (RESOURCE | DATA_SOURCE, None) => Some("no concurrency".to_owned()),
        _ => None,
    };
    report.judge(Check::Concurrency, each(&misplaced), "it on all but interactive operations");
    report.judge(Check::KeyFields, each(&key_fields), "names of properties of input_schema");
    let better = "key fields only where safe is true, once each";
    report.weigh(Check::KeyFields, each(&idle_key_fields), better);
    let keyless = |tool: &ObservedTool| {
        let is_keyless = matches!(&tool.concurrency, Some((true, keys)) if keys.is_empty());
        let may_conflict = tool.kind == RESOURCE && !tool.idempotent && is_keyless;
        may_conflict.then(|| "a resource, safe and without key fields".to_owned())
    };
    let better = "key_fields (or safe = false) if two calls could target the same thing: without them \
                  it is asserted that none ever do";
    report.weigh(Check::KeyFields, each(&keyless), better);
    let ends = |tool: &ObservedTool| {
        (tool.terminates_turn && tool.kind != RESOURCE).then(|| format!("kind {}", tool.kind))
    };
    report.judge(Check::TerminatesTurn, each(&ends), "terminates_turn on a resource alone");
    let timeless = |tool: &ObservedTool| {
        let (seconds, nanos) = tool.default_timeout?;
        let is_time = (0..=LONGEST).contains(&seconds)
            && (0..1_000_000_000).contains(&nanos)
            && (seconds, nanos) != (0, 0);
        (!is_time).then(|| format!("{seconds} s and {nanos} ns"))
    };
    report.judge(Check::DefaultTimeout, each(&timeless), "more than nothing");
    let unknown = schema.hook_points.iter().filter(|point| !(1..=8).contains(*point));
    let unknown: Vec<_> = unknown.map(|point| format!("hook point {point}")).collect();
    report.judge(Check::Extras, unknown, "the hook points 1 to 8");
    report.weigh(Check::Extras, extras(schema), "a name of its own and a template, each once");
}

/// What is declared, in an order of its own: the protocol says nothing of one.
fn sorted(schema: &ObservedSchema) -> ObservedSchema {
    let mut schema = schema.clone();
    schema.tools.sort_by(|one, other| one.name.cmp(&other.name));
    for tool in &mut schema.tools {
        for shape in [&mut tool.input, &mut tool.output].into_iter().flatten() {
            sort_shape(shape);
        }
        if let Some((_, keys)) = &mut tool.concurrency {
            keys.sort_unstable();
        }
    }
    sort_attributes(&mut schema.config);
    schema.slash_commands.sort_unstable();
    schema.hook_points.sort_unstable();
    schema
}

fn sort_shape(shape: &mut Shape) {
    shape.required.sort_unstable();
    shape.words.sort_unstable();
    shape.properties.values_mut().for_each(sort_shape);
    if let Some(items) = &mut shape.items {
        sort_shape(items);
    }
}

fn sort_attributes(attributes: &mut [ObservedAttribute]) {
    attributes.sort_by(|one, other| one.name.cmp(&other.name));
    for attribute in attributes {
        sort_attributes(&mut attribute.attributes);
    }
}

fn key_fields(tool: &ObservedTool) -> Option<String> {
    let (_, fields) = tool.concurrency.as_ref()?;
    let is_there =
        |field: &String| tool.input.as_ref().is_some_and(|of| of.properties.contains_key(field));
    let stray = fields.iter().find(|field| !is_there(field))?;
    Some(format!("key field {stray:?}, which is no argument"))
}

/// Key fields that change nothing.
fn idle_key_fields(tool: &ObservedTool) -> Option<String> {
    let (safe, fields) = tool.concurrency.as_ref()?;
    if !safe && !fields.is_empty() {
        return Some("key fields though it is not safe".to_owned());
    }
    let twice =
        fields.iter().enumerate().find(|(index, field)| fields[..*index].contains(field))?;
    Some(format!("key field {:?} twice", twice.1))
}

fn extras(schema: &ObservedSchema) -> Vec<String> {
    let mut problems = Vec::new();
    for (index, (name, template)) in schema.slash_commands.iter().enumerate() {
        if name.is_empty() || template.is_empty() {
            problems.push(format!("slash command {name:?} with template {template:?}"));
        }
        if schema.slash_commands[..index].iter().any(|(other, _)| other == name) {
            problems.push(format!("slash command {name:?} twice"));
        }
    }
    for (index, point) in schema.hook_points.iter().enumerate() {
        if schema.hook_points[..index].contains(point) {
            problems.push(format!("hook point {point} twice"));
        }
    }
    problems
}

fn tool_name(tool: &ObservedTool) -> &str {
    if tool.name.is_empty() { "(unnamed)" } else { &tool.name }
}

/// Whether a text is a semantic version: three numbers, then perhaps a pre-release and a build.
fn is_semantic(version: &str) -> bool {
    let (version, build) = version.split_once('+').unwrap_or((version, "x"));
    let (core, pre_release) = version.split_once('-').unwrap_or((version, "x"));
    let is_number = |part: &str| {
        part.parse::<u64>().is_ok()
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && (part.len() == 1 || !part.starts_with('0'))
    };
    let is_word = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    core.split('.').count() == 3
        && core.split('.').all(is_number)
        && pre_release.split('.').all(is_word)
        && build.split('.').all(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn semantic_versions_are_distinguished_from_others() {
        for version in ["0.1.0", "1.2.3-rc.1", "10.0.0+build.5", "1.0.0-a+b"] {
            assert!(is_semantic(version), "{version}");
        }
        for version in ["", "1", "1.2", "v1.2.3", "1.2.3.4", "01.2.3", "1.2.x", "1.2.3-", "1.2.+3"]
        {
            assert!(!is_semantic(version), "{version}");
        }
    }
}
