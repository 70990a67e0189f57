use proptest::prelude::*;

use super::*;

fn shown_in_pieces<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut screen = Screen::default();
    let mut shown = Vec::new();
    for piece in pieces {
        screen.push(piece, &mut |text| shown.extend_from_slice(text));
        let edited = screen.page.edited.as_ref().map_or(0, |edited| edited.lines.len());
        assert!(screen.page.recent.len() + edited <= 3 * REACH + piece.len());
    }
    screen.finish(&mut |text| shown.extend_from_slice(text));
    String::from_utf8_lossy(&shown).into_owned()
}

fn shown(text: &str) -> String {
    shown_in_pieces([text.as_bytes()])
}

#[test]
fn colours_titles_links_and_other_controls_are_gone() {
    for (raw, expected) in [
        ("plain\ttext\n\n\n  end\n", "plain\ttext\n\n\n  end\n"),
        ("\u{1b}[1;31mred\u{1b}[0m \u{1b}[38:2::1:2:3mx", "red x"),
        ("\u{1b}]0;title\u{7}a\u{1b}]8;;http://x\u{1b}\\b\u{1b}]8;;\u{1b}\\c", "abc"),
        ("\u{1b}(Ba\u{1b}=b\u{1b}7\u{1b}[?25l\u{1b}[?1049hc", "abc"),
        ("\u{1b}Pq#0;1\u{1b}\\a\u{1b}_app\u{1b}\\b\u{1b}^pm\u{1b}\\c", "abc"),
        ("a\0b\u{7}c\u{7f}d\u{e}", "abcd"),
        ("\u{9b}31mred\u{9d}0;t\u{7}.\u{85}", "red."),
        ("für\u{a0}«gern» é\u{1b}[mß", "für\u{a0}«gern» éß"),
        ("\u{1b}[1<2xY", "Y"),
        ("\u{1b}", ""),
        ("a\u{1b}[", "a"),
    ] {
        assert_eq!(shown(raw), expected, "{raw:?}");
    }
}

#[test]
fn a_line_shows_its_last_state() {
    for (raw, expected) in [
        ("10%\r20%\r100%\n", "100%\n"),
        ("one\r\ntwo\r\r\n\r\n", "one\ntwo\n\n"),
        ("all 9 passed\r", "all 9 passed"),
        ("abc\rX\n", "Xbc\n"),
        ("50%\r\u{1b}[K\ndone", "\ndone"),
        ("50%\r\u{1b}[2Kdone", "done"),
        ("50%\u{1b}[K\n", "50%\n"),
        ("abcdef\u{1b}[3D\u{1b}[1K\n", "    ef\n"),
        ("ab\u{8}c\u{8}\u{8}\u{8}\u{8}x\n", "xc\n"),
        ("N\u{8}NA\u{8}A_\u{8}M", "NAM"),
        ("\u{1b}[10Gat ten\u{1b}[1Gx", "x        at ten"),
        ("\u{1b}[9999Cx\r\u{1b}[K", ""),
        ("größe 10%\rgröße 20%", "größe 20%"),
    ] {
        assert_eq!(shown(raw), expected, "{raw:?}");
    }
}

#[test]
fn lines_above_are_redrawn() {
    for (raw, expected) in [
        ("a 1\nb 1\n\u{1b}[2Aa 2\nb 2\n", "a 2\nb 2\n"),
        ("top\na 1\nb 1\n\u{1b}[2A\u{1b}[Ja 2\nend\n", "top\na 2\nend\n"),
        ("a\nb\nc\u{1b}[2F\u{1b}[2KA\u{1b}[2EC\n", "A\nb\nC\n"),
        ("a\nb\u{1b}[99Ax\n\u{1b}[99By", "ax\ny"),
        ("[+] 0/1\n x\n\u{1b}[1A\u{1b}[1A\u{1b}[0G[+] 1/1\n x ok\n", "[+] 1/1\n x ok\n"),
        // Where a screen begins is not known: what is there stays, and the new begins a line.
        ("kept\u{1b}[2J\u{1b}[Hnew\u{1b}[5;1Hmore", "kept\nnew\nmore"),
    ] {
        assert_eq!(shown(raw), expected, "{raw:?}");
    }
}

#[test]
fn what_never_ends_takes_no_more_than_its_line() {
    assert_eq!(shown("\u{1b}]never ended\nnext"), "\nnext");
    assert_eq!(shown("\u{1b}[12\nnext"), "\nnext");
    let long = format!("\u{1b}P{}end", "x".repeat(3 * LONGEST_SEQUENCE));
    assert!(shown(&long).ends_with("xend"));
}

#[test]
fn a_long_progress_takes_the_space_of_its_last_state() {
    let mut screen = Screen::default();
    let mut settled = 0;
    for step in 0..100_000 {
        let bar = format!("\r\u{1b}[32m{step}/100000\u{1b}[0m");
        screen.push(bar.as_bytes(), &mut |text| settled += text.len());
    }
    assert_eq!(settled, 0);
    let mut last = Vec::new();
    screen.finish(&mut |text| last.extend_from_slice(text));
    assert_eq!(last, b"99999/100000");
}

#[test]
fn plain_text_is_found_wherever_it_ends() {
    let plain = "a".repeat(200);
    for at in 0..200 {
        for control in ["\u{1b}", "\r", "\0", "\u{7f}", "\u{9b}"] {
            let text = [&plain[..at], control, &plain[at..]].concat();
            assert_eq!(plain_length(text.as_bytes()), at);
        }
        let text = [&plain[..at], "\u{a0}\t\n", &plain[at..]].concat();
        assert_eq!(plain_length(text.as_bytes()), text.len());
    }
}

fn any_output() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        3 => "[a-c é€]{0,6}",
        1 => "\u{1b}\\[[0-9;?]{0,3}[A-KmHf]",
        1 => "[\r\n\u{8}\t\0\u{9b}\u{1b}]",
        1 => "\u{1b}[\\]P][a-z]{0,3}(\u{7}|\u{1b}\\\\|\n)",
    ];
    prop::collection::vec(part, 0..30).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn pieces_make_no_difference_and_nothing_that_steers_is_left(
        text in any_output(),
        cuts in prop::collection::vec(1usize..9, 0..40),
    ) {
        let whole = shown(&text);
        prop_assert!(!whole.contains(|c: char| c.is_control() && c != '\n' && c != '\t'));
        prop_assert_eq!(&shown(&whole), &whole, "what is shown is shown as it is");
        let mut pieces = Vec::new();
        let mut rest = text.as_str();
        for cut in cuts {
            let mut end = cut.min(rest.len());
            while !rest.is_char_boundary(end) {
                end += 1;
            }
            let (piece, later) = rest.split_at(end);
            pieces.push(piece.as_bytes());
            rest = later;
        }
        pieces.push(rest.as_bytes());
        prop_assert_eq!(shown_in_pieces(pieces), whole);
    }

    #[test]
    fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        shown_in_pieces([&bytes[..]]);
    }
}
