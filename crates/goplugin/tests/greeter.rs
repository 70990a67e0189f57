//! The program of the README: it is the one that is compiled, and it does what is said.

#![expect(clippy::unwrap_used, reason = "a test fails where its preparation fails")]

use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn the_readme_has_the_program_that_is_compiled() {
    let readme = include_str!("../README.md");
    for file in [include_str!("../examples/greeter/main.rs"), service()] {
        assert!(readme.contains(file), "README.md lacks this as it is:\n{file}");
    }
}

fn service() -> &'static str {
    let proto = include_str!("../examples/greeter/greeter.proto");
    proto.split_once("package greeter;\n\n").unwrap().1
}

#[test]
fn a_host_calls_its_plugin_and_gets_its_log() {
    let output = Command::new(example("greeter")).env_remove("GREETER_PLUGIN").output().unwrap();
    let (said, logged) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{logged}");
    assert_eq!((said.as_str(), logged.as_str()), ("Hello, world!\n", "INFO greeting\n"));
}

/// Cargo builds a package's examples with all of its tests.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let debug = test.parent().and_then(Path::parent).unwrap();
    let program = debug.join("examples").join(name);
    assert!(program.exists(), "`cargo build -p goplugin --examples` builds {}", program.display());
    program
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}
