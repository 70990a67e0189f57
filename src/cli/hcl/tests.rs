//! What is HCL and what is not is compared with the host's own library in `tests/interop`.

use serde_json::json;

use super::{known, parse};

fn problem(text: &str) -> (usize, String) {
    let error = parse(text.as_bytes()).expect_err(text);
    (error.line, error.problem)
}

#[test]
fn values_are_what_they_are_and_expressions_stay_unknown() {
    let body = parse(
        r#"
        text    = "a \"b\" \\ $${x} %%{y} \u00e9\n" # a comment
        number  = -1.5e2 // another
        flag    = true
        nothing = null
        list    = [1, /* one of them */ "b",
                   env("X"), [false,],]
        object  = {
          a = 1, "b c" : 2
          (d) = 3
          e : x.y
        }
        call     = env("HOME")
        template = "${x}/y"
        sum      = 1 + 2
        choice   = a ? "b" : "c"
        every    = [for k, v in m : v if v != ""]
        map      = { for k, v in m : k => v... }
        index    = a.b[0].c[*].d.*
        long     = <<-END
          text "of any kind" {
        END
        one {}
        two "a" b { x = 1 }
    "#
        .as_bytes(),
    )
    .unwrap();
    let expected = json!({
        "text": "a \"b\" \\ ${x} %{y} é\n", "number": -150.0, "flag": true, "nothing": null,
        "list": [1.0, "b", [false]], "object": {"a": 1.0, "b c": 2.0},
    });
    assert_eq!(json!(known(&body.attributes)), expected);
    assert_eq!(body.attribute("choice").map(|attribute| attribute.line), Some(16));
    let blocks: Vec<_> =
        body.blocks.iter().map(|block| (&*block.kind, &block.labels[..])).collect();
    assert_eq!(blocks, [("one", &[][..]), ("two", &["a".to_owned(), "b".to_owned()])]);
}

#[test]
fn what_is_no_hcl_is_reported_with_its_line_and_what_would_be_right() {
    for (text, line, part) in [
        ("a {\n  b { c = 1, d = 2 }\n}\n", 2, "one argument only: write each argument on a line"),
        ("a {\n  b { c = 1 d = 2 }\n}\n", 2, "one argument only"),
        ("a { b { c = 1 } }\n", 1, "holds no other block"),
        ("a {\n  b = 1\n", 1, "\"a\" that begins here is never closed: add a }"),
        ("a = 1\n}\n", 2, "closes nothing"),
        ("a =\n", 1, "has no value"),
        ("\na = \"x\n", 2, "no closing quote"),
        ("a = \"\\x\"", 1, "\\\\ is a backslash"),
        ("a = 1\na = 2", 2, "on line 1 already"),
        ("a = [1\n2]", 2, "takes , between items"),
        ("a = {\n  b = 1 c = 2\n}", 2, "a new line between entries"),
        ("a = b c", 1, "the line ends; found \"c\""),
        ("a \"${b}\" {\n}", 1, "plain text"),
        ("a = <<X\nb\n", 1, "a line with X alone"),
        ("/* a", 1, "never closed"),
        ("a = f(1", 1, "before the end of the file"),
        ("= 1", 1, "begins with a name, not with '='"),
    ] {
        let (found, problem) = problem(text);
        assert!(found == line && problem.contains(part), "{text}: {found}: {problem}");
    }
    let error = parse(b"a = 1\nb = \"\xff\"\n").expect_err("not UTF-8");
    assert_eq!((error.line, error.problem.contains("UTF-8")), (2, true));
}

#[test]
fn what_lies_too_deep_is_refused_before_the_stack_ends() {
    for (open, close) in
        [("[", "]"), ("(", ")"), ("-", ""), ("{a=", "}"), ("\"${", "}\""), ("f(", ")")]
    {
        let nested = |levels: usize| {
            parse(format!("a = {}1{}", open.repeat(levels), close.repeat(levels)).as_bytes())
        };
        nested(40).unwrap();
        nested(100_000).expect_err(open);
    }
    parse("a {\n".repeat(100_000).as_bytes()).expect_err("blocks");
    parse("x[".repeat(100_000).as_bytes()).expect_err("indices");
}
