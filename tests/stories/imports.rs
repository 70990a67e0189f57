//! Imports point one way. This reads the sources and fails on one that does not.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    trials![no_module_names_one_above_it, the_check_sees_what_it_should,]
}

/// Which modules of ours each module may name.
const ALLOWED: &[(&str, &[&str])] = &[
    ("cli", &["service", "provider", "tools", "process"]),
    ("service", &["telemetry", "provider", "tools"]),
    ("telemetry", &[]),
    ("provider", &["tools", "workspace", "process"]),
    ("tools", &["contract", "workspace", "process", "text"]),
    ("process", &["contract", "text"]),
    ("contract", &[]),
    ("workspace", &["text"]),
    ("text", &[]),
];

/// Crates that only some modules may name.
const FENCED: &[(&str, &[&str])] = &[
    ("tonic", &["service", "telemetry"]),
    ("tonic_types", &["service"]),
    ("tonic_prost", &["service", "telemetry"]),
    ("prost", &["service", "telemetry"]),
    ("prost_types", &["service"]),
    ("tokio", &["cli", "service", "telemetry", "provider", "process"]),
    ("clap", &["cli"]),
    ("signal_hook", &["cli"]),
    ("cap_std", &["process"]),
    ("hyper_util", &["service", "telemetry"]),
    ("goplugin", &["cli", "service"]),
];

fn no_module_names_one_above_it() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut wrong = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for file in rust_files(&source) {
        let inside = file.strip_prefix(&source).unwrap().to_str().unwrap();
        let module = inside.split(['/', '.']).next().unwrap();
        if module == "main" || module == "lib" {
            continue;
        }
        seen.insert(module.to_owned());
        let allowed = allowed(ALLOWED, module);
        for line in code_lines(&file) {
            for named in names_after(&line, "crate::") {
                let is_module = ALLOWED.iter().any(|(known, _)| *known == named);
                if is_module && named != module && !allowed.contains(&named.as_str()) {
                    wrong.insert(format!("{inside}: {}", line.trim()));
                }
            }
            for (fenced, may) in FENCED {
                let is_named = line.contains(&format!("{fenced}::"))
                    && !line.contains(&format!("_{fenced}::"));
                if is_named && !may.contains(&module) {
                    wrong.insert(format!("{inside}: {}", line.trim()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "upward imports:\n{}", Vec::from_iter(wrong).join("\n"));
    for module in ["cli", "service", "provider", "tools", "workspace"] {
        assert!(seen.contains(module), "{module} was not looked at");
    }
}

fn the_check_sees_what_it_should() {
    assert_eq!(names_after("use crate::service::{A, B};", "crate::"), ["service"]);
    assert_eq!(
        names_after("let x = crate::tools::f(workspace_fs::text::g());", "crate::"),
        ["tools", "text"]
    );
    assert_eq!(names_after("use crate::{tools, text::x};", "crate::"), ["tools", "text"]);
    assert!(!allowed(ALLOWED, "tools").contains(&"provider"));
}

fn allowed<'a>(table: &[(&str, &'a [&'a str])], module: &str) -> &'a [&'a str] {
    let found = table.iter().find(|(known, _)| *known == module);
    found.unwrap_or_else(|| panic!("{module} is not in the house's plan")).1
}

/// The first names of the paths that follow `prefix`, also within braces.
fn names_after(line: &str, prefix: &str) -> Vec<String> {
    let mut names = Vec::new();
    for rest in line.split(prefix).skip(1) {
        let parts = match rest.strip_prefix('{') {
            Some(inner) => inner.split(',').collect(),
            None => vec![rest],
        };
        for part in parts {
            let name: String = part
                .trim()
                .chars()
                .take_while(|character| character.is_alphanumeric() || *character == '_')
                .collect();
            if !name.is_empty() {
                names.push(name);
            }
        }
    }
    names
}

fn code_lines(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap();
    let is_code = |line: &&str| !line.trim_start().starts_with("//");
    text.lines().filter(is_code).map(str::to_owned).collect()
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}
