use proptest::prelude::*;

use super::*;

const LIMIT: Bounds<'static> = Bounds { size: 1 << 20, should_stop: &|| false };

fn edit<'a>(old: &'a str, new: &'a str) -> Edit<'a> {
    Edit { old, new, scope: Scope::Only }
}

fn edit_all<'a>(old: &'a str, new: &'a str) -> Edit<'a> {
    Edit { old, new, scope: Scope::All }
}

fn edited(body: &[u8], encoding: Encoding, edits: &[Edit<'_>]) -> Result<Vec<u8>, EditError> {
    apply(body, encoding, edits, LIMIT).map(|edited| edited.patch.apply(body))
}

fn utf8(body: &str, edits: &[Edit<'_>]) -> Result<String, EditError> {
    edited(body.as_bytes(), Encoding::Utf8, edits).map(|new| String::from_utf8(new).unwrap())
}

fn refusal(body: &str, edits: &[Edit<'_>]) -> String {
    utf8(body, edits).unwrap_err().to_string()
}

#[test]
fn crlf_files_stay_crlf() {
    let new = utf8(
        "if (a) {\r\n\treturn 1;\r\n}\r\n",
        &[edit("if (a) {\n\treturn 1;", "if (a) {\n\treturn 2;\n\tlog();")],
    );
    assert_eq!(new.unwrap(), "if (a) {\r\n\treturn 2;\r\n\tlog();\r\n}\r\n");
}

#[test]
fn a_crlf_that_was_written_out_is_no_licence_for_lf() {
    let body = "a\r\nb\r\nc\r\n";
    let new = utf8(body, &[edit("a\r\nb", "1\n2\r\n3")]);
    assert_eq!(new.unwrap(), "1\r\n2\r\n3\r\nc\r\n");
    // Only where the endings are all that changes they are meant.
    assert_eq!(utf8(body, &[edit("a\r\nb", "a\nb")]).unwrap(), "a\nb\r\nc\r\n");
}

#[test]
fn only_matched_bytes_change_in_a_file_of_mixed_endings() {
    let body = "one\r\ntwo\nthree\rprogress\rdone\nfour\n";
    let patch =
        apply(body.as_bytes(), Encoding::Utf8, &[edit("four", "FOUR")], LIMIT).unwrap().patch;
    assert_eq!(patch.changes().len(), 1);
    assert_eq!(patch.changes()[0].old, 29..33);
}

#[test]
fn bytes_that_are_no_text_are_left_alone() {
    let body = b"x = 1\n# na\xefve caf\xe9 \xd6\xd0\n";
    let new = edited(body, Encoding::Utf8, &[edit("x = 1", "x = 2")]).unwrap();
    assert_eq!(new, b"x = 2\n# na\xefve caf\xe9 \xd6\xd0\n");
}

#[test]
fn legacy_text_is_edited_in_its_own_encoding() {
    let encoding = Encoding::Legacy(encoding_rs::WINDOWS_1252);
    let new = edited(b"caf\xe9\n", encoding, &[edit("café", "thé")]).unwrap();
    assert_eq!(new, b"th\xe9\n");
    let error = edited(b"caf\xe9\n", encoding, &[edit("café", "→")]).unwrap_err().to_string();
    assert!(error.contains("windows-1252 cannot represent '→'"), "{error}");
    let error = edited(b"caf\xe9\n", encoding, &[edit("→", "x")]).unwrap_err().to_string();
    assert!(error.contains("not found, and cannot be"), "{error}");
}

#[test]
fn utf16_is_edited_by_whole_units() {
    for encoding in [Encoding::Utf16Le, Encoding::Utf16Be] {
        let body = encoding.encode("a\r\nb\r\n").unwrap();
        let new = edited(&body, encoding, &[edit("a\nb", "a\nx\nb")]).unwrap();
        assert_eq!(encoding.decode(&new), "a\r\nx\r\nb\r\n");
    }
}

#[test]
fn there_is_one_byte_order_mark() {
    let body = b"using A;\nclass X {}\n";
    for (old, new) in [
        ("using A;", "using B;"),
        ("\u{FEFF}using A;", "\u{FEFF}using B;"),
        ("\u{FEFF}using A;", "using B;"),
        ("using A;", "\u{FEFF}using B;"),
    ] {
        let new = edited(body, Encoding::Utf8Bom, &[edit(old, new)]).unwrap();
        assert_eq!(new, b"using B;\nclass X {}\n");
        let mut doubled = body.to_vec();
        doubled.extend_from_slice(body);
        let one = edited(&doubled, Encoding::Utf8Bom, &[edit("\u{FEFF}using A;", "u")]).unwrap();
        assert!(one.starts_with(b"u\nclass X {}\nusing A;"));
    }
}

#[test]
fn edits_that_make_no_sense_are_refused() {
    assert_eq!(refusal("hey", &[edit_all("", "-")]), "old_string must not be empty");
    assert_eq!(refusal("", &[edit("", "-")]), "old_string must not be empty");
    assert!(refusal("hey", &[edit("e", "e")]).contains("nothing to change"));
    assert!(refusal("a\r\nb", &[edit("a\nb", "a\r\nb")]).contains("differ only in line endings"));
}

#[test]
fn a_string_that_stands_twice_is_ambiguous() {
    let message = refusal("aaa\nb\naaa\n", &[edit("aa", "x")]);
    assert!(message.contains("stands 4 times in the file (lines 1, 3)"), "{message}");
    let message = refusal(&"x\n".repeat(9), &[edit("x", "y")]);
    assert!(message.contains("9 times in the file (lines 1, 2, 3, 4, 5, 6, 7, 8, 9)"), "{message}");
    let message = refusal(&"x\n".repeat(300), &[edit("x", "y")]);
    assert!(message.contains("300 times in the file (lines 1, 2,") && message.contains("20, …)"));
    let message = refusal(&"x".repeat(300), &[edit("x", "y")]);
    assert!(message.contains("300 times in the file (lines 1, …)"), "{message}");
    assert_eq!(utf8("aaaa", &[edit_all("aa", "b")]).unwrap(), "bb");
}

#[test]
fn several_edits_are_made_in_order_or_not_at_all() {
    assert_eq!(utf8("a b", &[edit("a", "b b"), edit_all("b", "c")]).unwrap(), "c c c");
    let error = utf8("a b", &[edit("a", "c"), edit("a", "d")]).unwrap_err();
    assert_eq!(error.index, 1);
    assert!(error.to_string().starts_with("edits[1], after the edits before it: "));
}

#[test]
fn what_an_earlier_edit_changed_is_said_to_be_gone_by_it() {
    let body = "{\n  \"k1\": 1,\n  \"k2\": 2\n}\n";
    let rename = edit("\"k1\"", "\"first\"");
    for (edits, said) in [
        (
            vec![rename, edit("\"k1\": 1", "\"k1\": 7")],
            "edits[1], after the edits before it: old_string was not found. It stood at line 2 until \
             edits[0] of this call put this there:\n  \"first\": 1,",
        ),
        (
            vec![edit("2\n", "3\n"), rename, rename],
            "It stood at line 2 until edits[1] of this call put this there:\n  \"first\": 1,",
        ),
        (
            vec![edit("{\n  \"k1\": 1,", "{\n  \"k1\": 2,"), edit("1,", "3,")],
            "It stood at line 2 until edits[0] of this call put this there:\n  \"k1\": 2,",
        ),
        // One that an edit of the call had put there, and one that was deleted.
        (
            vec![edit("2\n", "3\n"), edit("3\n", "4\n"), edit("3\n", "5\n")],
            "It stood there until edits[1] of this call put this there:\n  \"k2\": 4",
        ),
        (
            vec![edit(",\n  \"k2\": 2", ""), edit("\"k2\"", "x")],
            "It stood at line 3 until edits[0] of this call changed it: look for what that leaves",
        ),
    ] {
        let message = refusal(body, &edits);
        assert!(message.ends_with(said), "{message}");
    }
    // The twins: what never stood there, and what is looked for as the edit before leaves it.
    let message = refusal(body, &[rename, edit("\"k3\": 2", "x")]);
    assert!(
        message.contains("Nearest is line 3") && !message.contains("of this call"),
        "{message}"
    );
    assert!(utf8(body, &[rename, edit("\"first\": 1", "\"first\": 7")]).is_ok());
}

#[test]
fn the_result_is_bounded() {
    let error =
        apply(b"aaaa", Encoding::Utf8, &[edit_all("a", "bbbb")], Bounds { size: 10, ..LIMIT })
            .unwrap_err();
    assert!(matches!(error.reason, Refusal::TooLarge { limit: 10 }), "{error}");
}

#[test]
fn a_list_of_edits_can_be_given_up() {
    let asked = std::cell::Cell::new(0);
    let should_stop = || asked.replace(asked.get() + 1) == 2;
    let bounds = Bounds { should_stop: &should_stop, ..LIMIT };
    let edits = [edit("a", "b"), edit("b", "c"), edit("c", "d")];
    let error = apply(b"a", Encoding::Utf8, &edits, bounds).unwrap_err();
    assert!(matches!((error.index, error.reason), (2, Refusal::Stopped)));
}

/// The same rules, in the plainest form, on strings with LF endings only.
fn naive(body: &str, edits: &[Edit<'_>]) -> Option<String> {
    let mut text = body.to_owned();
    for edit in edits {
        if edit.old.is_empty() || edit.old == edit.new {
            return None;
        }
        let occurrences = (0..text.len()).filter(|at| text[*at..].starts_with(edit.old)).count();
        match (edit.scope, occurrences) {
            (_, 0) => return None,
            (Scope::Only, 1) | (Scope::All, _) => text = text.replace(edit.old, edit.new),
            (Scope::Only, _) => return None,
        }
    }
    Some(text)
}

proptest! {
    #[test]
    fn edits_are_what_plain_replacing_makes(
        body in "[ab\n]{0,24}",
        edits in prop::collection::vec(("[ab\n]{0,3}", "[abc\n]{0,3}", any::<bool>()), 1..4),
    ) {
        let edits: Vec<_> = edits
            .iter()
            .map(|(old, new, all)| Edit { old, new, scope: if *all { Scope::All } else { Scope::Only } })
            .collect();
        prop_assert_eq!(utf8(&body, &edits).ok(), naive(&body, &edits));
    }

    /// With every ending CR LF the outcome is that of LF, with the endings put back.
    #[test]
    fn crlf_is_edited_like_lf(
        body in "[ab\n]{0,24}",
        old in "[ab\n]{1,3}",
        new in "[abc\n]{0,3}",
    ) {
        // Where there is no ending there is nothing to go by.
        prop_assume!(body.contains('\n'));
        let wide = utf8(&body.replace('\n', "\r\n"), &[edit(&old, &new)]).ok();
        let expected = utf8(&body, &[edit(&old, &new)]).ok();
        prop_assert_eq!(wide, expected.map(|text| text.replace('\n', "\r\n")));
    }

    #[test]
    fn any_bytes_can_be_edited_and_undone(
        body in prop::collection::vec(any::<u8>(), 0..60),
        old in "[a-c\n\r]{1,2}",
        new in "\\PC{0,4}",
        encoding in prop::sample::select(vec![
            Encoding::Utf8,
            Encoding::Utf16Le,
            Encoding::Legacy(encoding_rs::WINDOWS_1252),
            Encoding::Legacy(encoding_rs::GBK),
        ]),
    ) {
        if let Ok(made) = apply(&body, encoding, &[edit_all(&old, &new)], LIMIT) {
            let after = made.patch.apply(&body);
            prop_assert_eq!(made.patch.inverse(&body).apply(&after), body);
        }
    }
}

#[test]
fn one_edit_with_many_matches_can_be_stopped() {
    let asked = std::cell::Cell::new(0);
    let should_stop = || {
        asked.set(asked.get() + 1);
        asked.get() > 3
    };
    let bounds = Bounds { size: usize::MAX, should_stop: &should_stop };
    let body = "a".repeat(1 << 20);
    for edit in [edit_all("a", "b"), edit(&body[..1 << 19], "b")] {
        asked.set(0);
        let error = apply(body.as_bytes(), Encoding::Utf8, &[edit], bounds).unwrap_err();
        assert!(matches!(error.reason, Refusal::Stopped), "{error}");
        assert_eq!(asked.get(), 4);
    }
}

#[test]
fn counting_ends_where_it_costs_too_much() {
    let body = "a".repeat(1 << 22);
    let error = refusal(&body, &[edit(&body[..1 << 20], "b")]);
    assert!(error.contains("stands at least 64 times"), "{error}");
    let error = refusal(&"ab".repeat(5), &[edit("a", "b")]);
    assert!(error.contains("stands 5 times"), "{error}");
}
