use super::{AgentFile, Problem};
use std::path::Path;

const WHOLE: &str = r#"required_providers {
  workspace = {
    source  = "github.com/someone/provider-workspace"
    version = "~> 0.1"
  }
}
provider "workspace" {
  roots = ["/"]
}
agent_profile "default" {
  model {
    primary {
      provider = "m"
      id       = "n"
    }
  }
  tools = ["workspace.*"]
}
"#;

/// The problems of a file, as `line: text`.
fn problems(text: &str) -> Vec<String> {
    let file = AgentFile::check(Path::new("agent.hcl"), text.as_bytes());
    file.problems.iter().map(|Problem { line, text }| format!("{line}: {text}")).collect()
}

#[test]
fn a_whole_file_loads() {
    assert_eq!(problems(WHOLE), [""; 0]);
}

#[test]
fn what_will_not_load_is_reported_with_its_line_and_what_would_be_right() {
    for (from, to, line, part) in [
        ("required_providers {\n  workspace", "required_providers {\n  shop", 1, ""),
        ("/someone/provider-workspace", "/someone/x", 1, ""),
        ("github.com/", "https://github.com/", 3, "source: \"https://github.com/someone"),
        ("    version = \"~> 0.1\"\n", "", 2, "workspace in required_providers has no version"),
        ("provider \"workspace\"", "providers \"workspace\"", 7, "did you mean \"provider\"?"),
        ("provider \"workspace\"", "provider", 7, "such as provider \"workspace\""),
        ("  tools = [\"workspace.*\"]\n", "", 10, "no agent_profile names a tool of \"workspace\""),
        ("workspace.*", "other.*", 10, "add tools = [\"workspace.*\"]"),
        ("workspace.*", "workspace", 17, "write \"workspace.*\""),
        ("workspace.*", "workspace.raed_file", 17, "did you mean \"read_file\"?"),
        (
            "    primary {\n      provider = \"m\"\n      id       = \"n\"\n    }\n",
            "",
            11,
            "no primary",
        ),
        ("      id       = \"n\"\n", "", 12, "primary has no id"),
        ("[\"/\"]", "[\n    \"/\",\n    \"/no/such\",\n  ]", 10, "\"/no/such\" does not exist"),
        ("  roots = [\"/\"]\n", "", 7, "roots: required"),
        (
            "roots = [\"/\"]",
            "roots = [\"/\"]\n  netwrok = \"deny\"",
            9,
            "did you mean \"network\"?",
        ),
        ("roots = [\"/\"]", "roots = [\"/\"]\n  limits {\n  }", 9, "write limits = {"),
        (
            "roots = [\"/\"]",
            "roots = [\"/\"]\n  limits = {\n    x = 1\n  }",
            10,
            "limits.x: unknown",
        ),
        (
            "primary {\n      provider = \"m\"\n      id       = \"n\"\n    }",
            "primary { provider = \"m\", id = \"n\" }",
            12,
            "one argument only",
        ),
    ] {
        let text = WHOLE.replacen(from, to, 1);
        assert_ne!(text, WHOLE, "{from}");
        let found = problems(&text);
        let is_reported =
            |problem: &String| problem.starts_with(&format!("{line}: ")) && problem.contains(part);
        // Two of them only change who we are.
        assert!(found.iter().any(is_reported) || part.is_empty(), "{from} → {to}: {found:#?}");
    }
    for (more, part) in [
        (
            "provider \"workspace\" {\n}\n",
            "19: duplicate block: provider \"workspace\" is on line 7 already",
        ),
        ("settings \"x\" {\n}\n", "19: settings takes no name"),
        ("tools = []\n", "19: tools = … stands in no block"),
        (
            "provider \"other\" {\n}\n",
            "19: provider \"other\" is not in required_providers, so a host",
        ),
        (
            "policy \"p\" {\n  match = {}\n  action = \"alow\"\n}\n",
            "21: action = \"alow\" is not known; did you mean",
        ),
        (
            "policy \"p\" {\n  match = { tool = \"x\" }\n  action = \"ask\"\n}\n",
            "20: match passes over tool",
        ),
    ] {
        let found = problems(&format!("{WHOLE}{more}"));
        assert!(found.len() == 1 && found[0].starts_with(part), "{more}: {found:#?}");
    }
}

#[test]
fn a_provider_without_an_entry_and_a_file_without_us_are_reported() {
    let start = WHOLE.find("provider \"workspace\"").unwrap();
    let found = problems(&WHOLE[start..]);
    assert!(
        found.len() == 1
            && found[0]
                .contains("add workspace = { source = \"github.com/OWNER/provider-workspace\""),
        "{found:#?}"
    );
    let found = problems("settings {\n}\n");
    assert!(found.len() == 1 && found[0].contains("provider-workspace init"), "{found:#?}");
}

#[test]
fn it_is_known_under_another_name_by_its_source() {
    let renamed = WHOLE
        .replace("  workspace = {", "  files = {")
        .replace("provider \"workspace\"", "provider \"files\"")
        .replace("workspace.*", "files.grep");
    assert_eq!(problems(&renamed), [""; 0]);
    assert_eq!(problems(&WHOLE.replace("provider-workspace", "elsewhere")), [""; 0]);
}

#[test]
fn what_only_the_host_can_evaluate_is_no_problem() {
    let text = WHOLE
        .replace("[\"/\"]", "[env(\"SRC\")]\n  shell = env(\"SHELL\")\n  env = { A = env(\"A\") }\n  limits = { open_files = n }\n  secret_env = [\"ONLY_THE_HOST_HAS_IT\"]\n  environment {\n    ONLY_THE_HOST_HAS_IT = env(\"X\")\n  }")
        .replace("[\"workspace.*\"]", "[for tool in x : tool]");
    assert_eq!(problems(&text), [""; 0]);
    assert_eq!(problems(&WHOLE.replace("[\"/\"]", "env(\"SRC\")")), [""; 0]);
}
