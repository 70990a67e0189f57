use super::*;

/// The diagnosis of a string whose new text is nowhere.
fn diagnose(text: &[u8], encoding: Encoding, wanted: &str) -> Diagnosis {
    super::diagnose(text, encoding, wanted, "")
}

fn diagnosis(text: &str, wanted: &str) -> String {
    diagnose(text.as_bytes(), Encoding::Utf8, wanted).to_string()
}

fn nearest(text: &str, wanted: &str) -> Region {
    diagnose(text.as_bytes(), Encoding::Utf8, wanted).nearest.expect("a place that is near")
}

fn slip(text: &str, wanted: &str) -> (Slip, Vec<usize>) {
    let found = diagnose(text.as_bytes(), Encoding::Utf8, wanted).slip.expect("a mistake");
    (found.slip, found.lines)
}

#[test]
fn tabs_for_spaces_are_named_and_shown() {
    let text = "fn main() {\n\tif a {\n\t\tb();\n\t}\n}\n";
    let region = nearest(text, "    if a {\n        b();\n    }");
    assert_eq!((region.first_line, region.last_line), (2, 4));
    assert_eq!((region.matching, region.of), (0, 3));
    assert_eq!(region.differ_in, Likeness::Only(vec![Kind::Whitespace]));
    assert_eq!(
        diagnosis(text, "    if a {\n        b();\n    }"),
        "old_string was not found. Nearest are lines 2-4, where 0 of its 3 lines match; the \
         difference is only in whitespace: line 2 begins with 1 tab, old_string's with 4 spaces \
         (→ is a tab, · a space):\
         \n  line 2: →if a {\n  old_string: ····if a {\
         \n  line 3: →→b();\n  old_string: ········b();\
         \n  line 4: →}\n  old_string: ····}"
    );
}

#[test]
fn trailing_blanks_are_shown() {
    let message = diagnosis("one\nlet a = 1;  \nthree\n", "one\nlet a = 1;\nthree");
    assert!(message.contains("Nearest are lines 1-3, where 2 of its 3 lines match"), "{message}");
    assert!(message.contains("line 2: let a = 1;··\n"), "{message}");
}

#[test]
fn unicode_forms_quotes_and_case_are_distinguished() {
    let cases = [
        ("x caf\u{E9} y", "cafe\u{301}", Kind::UnicodeForm),
        ("say \u{201C}hi\u{201D}", "say \"hi\"", Kind::Punctuation),
        ("let Value = 1;", "let value = 1;", Kind::Case),
    ];
    for (text, wanted, kind) in cases {
        let region = nearest(&format!("\n{text}\n"), wanted);
        assert_eq!(region.differ_in, Likeness::Only(vec![kind]), "{text}");
        assert_eq!(region.first_line, 2);
    }
    let message = diagnosis("x caf\u{E9} y", "cafe\u{301}");
    assert!(message.contains("caf<U+00E9>") && message.contains("cafe<U+0301>"), "{message}");
}

#[test]
fn mistakes_that_explain_it_are_named() {
    let text = "a\n\tif x {\n\t\ty(\"z\");\n\t}\n";
    assert_eq!(slip(text, "     2\t\tif x {\n     3\t\t\ty(\"z\");"), (Slip::LineNumbers, vec![2]));
    assert_eq!(slip(text, "2:\tif x {\n3:\t\ty(\"z\");"), (Slip::LineNumbers, vec![2]));
    assert_eq!(slip(text, "2:\tif x {\n3-\t\ty(\"z\");"), (Slip::LineNumbers, vec![2]));
    assert_eq!(slip(" a\n b\n", "1: a\n2: b"), (Slip::LineNumbers, vec![1]));
    assert_eq!(slip("a\nb\n", "1: a\n2: b"), (Slip::LineNumbers, vec![1]));
    assert_eq!(slip(text, "if x {\\n\\t\\ty(\\\"z\\\");"), (Slip::Escaped, vec![2]));
    assert_eq!(slip(text, "y(&quot;z&quot;);"), (Slip::HtmlEscaped, vec![3]));
    assert_eq!(slip(text, "if x {\r\n\t\ty("), (Slip::CrLf, vec![2]));
    assert_eq!(slip(text, "\n\nif x {\n\n"), (Slip::Blanks, vec![2]));
    assert_eq!(slip("s = \"a\\tb\\n\";", "a\tb\n"), (Slip::Unescaped, vec![1]));
    assert_eq!(slip("a\rb\rc", "a\nb"), (Slip::LoneCr, vec![1]));
    assert_eq!(slip("first\nlast", "last\n"), (Slip::LastNewline, vec![2]));
    assert_eq!(slip("first\r\nlast", "first\nlast\n"), (Slip::LastNewline, vec![1]));
    assert!(diagnosis("", "x").ends_with("The file is empty: write_file gives it its content"));
}

#[test]
fn a_forgotten_line_is_shown() {
    let text = "start\nfirst line\nsecond line\nthird line\nfourth line\nend\n";
    let region = nearest(text, "first line\nthird line\nfourth line");
    assert_eq!((region.first_line, region.last_line), (2, 5));
    assert_eq!((region.matching, region.of), (3, 3));
    assert_eq!(
        region.differences,
        [Difference::OnlyInFile { line: 3, file: "second line".to_owned() }]
    );
    let region = nearest(text, "first line\nsecond line\ninvented\nthird line");
    assert_eq!(region.differences, [Difference::OnlyInWanted { wanted: "invented".to_owned() }]);
}

/// The line that differs may be any of them, and what surrounds the place may look like it too.
#[test]
fn the_tightest_place_wins_whichever_line_differs() {
    let function = |name: &str, limit: &str| {
        format!(
            "def {name}(rows):\n    for row in rows:\n        if row > {limit}:\n            yield row\n\n"
        )
    };
    let text = [function("first", "1"), function("second", "2"), function("third", "3")].concat();
    for (wanted, line, lines) in [
        (
            "def secnd(rows):\n    for row in rows:\n        if row > 2:\n            yield row\n",
            6,
            9,
        ),
        (
            "def second(rows):\n    for row in rows:\n        if row > 20:\n            yield row\n",
            8,
            9,
        ),
        (
            "def second(rows):\n    for line in rows:\n        if row > 2:\n            yield row\n",
            7,
            9,
        ),
        (
            "def third(rows):\n    for row in rows:\n        if row > 3:\n            yield line\n",
            14,
            14,
        ),
    ] {
        let region = nearest(&text, wanted);
        assert_eq!((region.last_line, region.matching, region.of), (lines, 3, 4), "{wanted}");
        let [Difference::Changed { line: differs, .. }] = &*region.differences else {
            panic!("{:?}", region.differences)
        };
        assert_eq!(*differs, line, "{wanted}");
    }
}

#[test]
fn a_change_within_a_line_is_found_and_named() {
    let text = "class A:\n    def total(self):\n        return 1\n\n    if user.admin and user.ok:\n        go()\n";
    assert_eq!(
        diagnosis(text, "def totl"),
        "old_string was not found. Nearest is line 2; the text differs:\
         \n  line 2: def total(self):\n  old_string: def totl"
    );
    let message = diagnosis(text, "    if user.admin or user.ok:\n");
    let said = "Nearest is line 5; the text differs:\n  line 5:     if user.admin and user.ok:\n";
    assert!(message.contains(said), "{message}");
    let message = diagnosis(text, "if user.owner and user.fine:");
    assert!(message.contains("Nearest is line 5; the text differs"), "{message}");
    let message =
        diagnosis(text, "        return 1\n\n    if user.admin or user.ok:\n        go()");
    assert!(message.contains("Nearest are lines 3-6, where 3 of its 4 lines match"), "{message}");
}

#[test]
fn among_many_lines_that_are_alike_the_nearest_is_found() {
    let text: String = (0..2000).map(|n| format!("value_{n} = compute(row)\n")).collect();
    assert_eq!(nearest(&text, "value_90 = compte(row").first_line, 91);
}

#[test]
fn blanks_at_the_end_of_a_line_are_shown_on_either_side() {
    for (text, wanted, said) in [
        ("a()\nb()   \n", "a()\nb()\n", "line 2 ends with 3 spaces, old_string's with no blank"),
        ("a()\nb()\n", "a()\nb()   ", "line 2 ends with no blank, old_string's with 3 spaces"),
        ("a()\nb()\n", "b()   ", "line 2 ends with no blank, old_string's with 3 spaces"),
    ] {
        let message = diagnosis(text, wanted);
        assert!(message.contains(said) && message.contains("b()···"), "{message}");
    }
}

#[test]
fn an_edit_that_was_made_before_is_recognised() {
    let text = b"one\nlet limit = 20;\nthree\n";
    let say =
        |wanted: &str, new: &str| super::diagnose(text, Encoding::Utf8, wanted, new).to_string();
    assert_eq!(
        say("let limit = 10;", "let limit = 20;"),
        "old_string was not found. new_string stands already at line 2: was this edit made before?"
    );
    let both = say("threw", "let limit = 20;");
    assert!(both.contains("old_string: threw\nnew_string stands already at line 2"), "{both}");
    assert!(!say("let limit = 10;", "three").contains("already"));
    assert!(!say("let limit = 10;", "").contains("already"));
}

/// A program that has made it everywhere, and a model that makes it again.
#[test]
fn an_edit_that_was_made_at_many_places_is_recognised() {
    let say = |text: &str, wanted: &str, new: &str| {
        super::diagnose(text.as_bytes(), Encoding::Utf8, wanted, new).to_string()
    };
    let eight = format!("{{\n\n\n{}}}\n", "  \"limit\": 11,\n".repeat(8));
    assert_eq!(
        say(&eight, "\"limit\": 10", "\"limit\": 11"),
        "old_string was not found. new_string stands already at 8 places, the first at line 4: was \
         this edit made before?"
    );
    let one_line = "f(limit = 11);".repeat(3);
    assert!(say(&one_line, "limit = 10", "limit = 11").contains("already at line 1: "));
    let many = say(&"limit = 11\n".repeat(20_000), "limit = 10", "limit = 11");
    assert!(many.contains("at least 10000 places, the first at line 1"), "{many}");
    // The twin: as many lines that are near, and none that is new.
    let near = say(&eight, "\"limit\": 10", "\"limit\": 12");
    assert!(near.contains("Nearest is line 4") && !near.contains("already"), "{near}");
}

#[test]
fn a_changed_word_is_found_by_likeness() {
    let text = "alpha\n    let total = compute_sum(values, 10);\nomega\n";
    let region = nearest(text, "let total = compute_sun(values, 12);");
    assert_eq!((region.first_line, region.differ_in), (2, Likeness::Text));
    assert!(diagnose(b"alpha\nomega\n", Encoding::Utf8, "nothing like this").nearest.is_none());
}

#[test]
fn a_short_line_with_another_name_is_near() {
    let text = "fn f() {\n    let x = 1;\n    go();\n}\n";
    for wanted in ["let x = 2;", "let y = 1;", "    let x = 12;\n"] {
        let region = nearest(text, wanted);
        assert_eq!((region.first_line, region.differ_in), (2, Likeness::Text), "{wanted}");
    }
    assert!(diagnose(text.as_bytes(), Encoding::Utf8, "if x {}").nearest.is_none());
}

#[test]
fn a_place_in_a_very_long_line_is_shown_alone() {
    let text = format!("{}let  a=1;{}", "x".repeat(100_000), "y".repeat(100_000));
    let message = diagnosis(&text, "let a=1;");
    assert!(message.contains("line 1: …let··a=1;…"), "{message}");
    assert!(message.len() < 1000, "{}", message.len());
}

#[test]
fn a_character_that_stands_for_bytes_is_explained() {
    let found = diagnose(b"a \xff value\n", Encoding::Utf8, "a \u{FFFD} value");
    assert!(found.to_string().contains("It holds U+FFFD"), "{found}");
    assert_eq!(found.nearest.unwrap().first_line, 1);
}

#[test]
fn other_encodings_are_compared_as_text() {
    let text = Encoding::Utf16Le.encode("a\r\n\tÀ la carte\r\n").unwrap();
    let found = diagnose(&text, Encoding::Utf16Le, "    À la carte").nearest.unwrap();
    assert_eq!(found.first_line, 2);
    assert_eq!(found.differ_in, Likeness::Only(vec![Kind::Whitespace]));
}

#[test]
fn hostile_input_is_answered_all_the_same() {
    let same = "}\n".repeat(20_000);
    let _ = diagnose(same.as_bytes(), Encoding::Utf8, &"}\n ".repeat(5_000));
    let line = "a".repeat(200_000);
    let _ = diagnose(line.as_bytes(), Encoding::Utf8, &format!("{}b", "a".repeat(100_000)));
    for wanted in [" ", "\n", "\r\n", "\u{FEFF}", "\u{301}", "\n\n\n"] {
        let _ = diagnosis("x", wanted);
    }
}

#[test]
fn a_string_of_which_only_a_part_is_compared_says_so() {
    let lines = "the same line\n".repeat(3000);
    let message = diagnosis(&lines, &format!("{}but not this one", &lines[..lines.len() - 14]));
    assert!(message.ends_with("so it differs further on"), "{message}");
}

/// A megabyte of lines that are all a little like it.
#[test]
fn hostile_places_cost_no_more_than_others() {
    let text: String = (0..60_000).map(|n| format!("    value_{n} = {}\n", n % 7)).collect();
    let wanted: String = (0..1500).map(|n| format!("    value_{n} = {}\n", n % 5)).collect();
    let message = diagnosis(&text, &wanted);
    assert!(message.contains("of its 1500 lines match") && message.len() < 4096, "{message}");
}
