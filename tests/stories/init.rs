//! `init`: an agent.hcl for this directory. That a host loads it is tested in `tests/interop`.

use std::fs::{read_to_string, write};

use crate::cli::{Shell, text};
use crate::trials::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        what_is_printed_is_the_shortest_of_the_examples,
        a_file_is_written_once_and_again_by_force_alone,
        names_are_written_so_that_a_host_reads_the_same,
        what_is_no_source_and_no_name_is_refused,
        the_block_for_a_user_s_file_stands_apart,
    ]
}

fn what_is_printed_is_the_shortest_of_the_examples() {
    let shell = Shell::new();
    let output = shell.run(&["init"]);
    let example =
        read_to_string(format!("{}/examples/agent-minimal.hcl", env!("CARGO_MANIFEST_DIR")));
    // A build with a source of its own names that.
    let example = match option_env!("PROVIDER_SOURCE").filter(|source| !source.is_empty()) {
        None => example.unwrap(),
        Some(source) => example.unwrap().replace(
            "github.com/OWNER/provider-workspace\" # Replace OWNER.",
            &format!("{source}\""),
        ),
    };
    assert_eq!(text(&output.stdout), example);
    assert!(output.status.success() && output.stderr.is_empty());
}

fn a_file_is_written_once_and_again_by_force_alone() {
    let shell = Shell::new();
    let agent = shell.path().join("agent.hcl");
    assert_eq!(shell.run(&["init", "--write"]).status.code(), Some(0));
    let printed = text(&shell.run(&["init"]).stdout);
    assert_eq!(read_to_string(&agent).unwrap(), printed);

    write(&agent, "mine\n").unwrap();
    let refused = shell.run(&["init", "--write"]);
    let refusal = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        refusal.contains("agent.hcl exists already") && refusal.contains("--force"),
        "{refusal}"
    );
    assert_eq!(read_to_string(&agent).unwrap(), "mine\n");

    assert!(shell.run(&["init", "--out", "agent.hcl", "--force"]).status.success());
    assert_eq!(read_to_string(&agent).unwrap(), printed);
    assert_eq!(shell.run(&["init", "--force"]).status.code(), Some(2));
}

fn names_are_written_so_that_a_host_reads_the_same() {
    let shell = Shell::new();
    let written = |name: &str| text(&shell.run(&["init", "--root", name]).stdout);
    for (name, line) in [
        ("src", r#"  roots = ["src"]"#),
        (r#"a "b" \c"#, r#"  roots = ["a \"b\" \\c"]"#),
        ("${HOME}/%{x}/$x", r#"  roots = ["$${HOME}/%%{x}/$x"]"#),
        ("a\nb\u{1b}", r#"  roots = ["a\nb\u001b"]"#),
    ] {
        let file = written(name);
        assert!(file.lines().any(|found| found == line), "{line} is not in {file}");
    }
    let both = text(&shell.run(&["init", "--read-only-root", "/usr/include"]).stdout);
    assert!(both.contains("  roots           = []\n  read_only_roots = [\"/usr/include\"]\n"));
}

fn what_is_no_source_and_no_name_is_refused() {
    use std::os::unix::ffi::OsStrExt as _;
    let shell = Shell::new();
    let url = shell.run(&["init", "--source", "https://github.com/someone/x"]);
    let printed = text(&url.stderr);
    assert_eq!(url.status.code(), Some(2));
    assert!(printed.contains("without a scheme, such as github.com/"), "{printed}");
    for (name, reason) in [(&b"caf\xe9"[..], "not UTF-8"), ("cafe\u{301}".as_bytes(), "composes")] {
        let mut command = shell.command(&["init", "--root"]);
        let refused = command.arg(std::ffi::OsStr::from_bytes(name)).output().unwrap();
        let printed = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2));
        assert!(printed.contains(reason) && printed.contains("rename it"), "{printed}");
        assert!(refused.stdout.is_empty());
    }
}

fn the_block_for_a_user_s_file_stands_apart() {
    let shell = Shell::new();
    let printed = shell.run(&["init", "--dev"]);
    let block = text(&printed.stderr);
    assert!(!text(&printed.stdout).contains("dev_overrides"));
    assert!(block.contains("# For $XDG_CONFIG_HOME/agent/config.hcl"), "{block}");
    assert!(block.contains("dev_overrides {\n  workspace = \"/"), "{block}");
    let written = shell.run(&["init", "--dev", "--write"]);
    assert!(
        text(&written.stdout).starts_with("# For $XDG") && block.ends_with(&text(&written.stdout))
    );
}
