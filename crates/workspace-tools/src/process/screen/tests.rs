use proptest::prelude::*;

use super::*;

/// Of one command, whatever it prints.
const MOST_MEMORY: usize = 224 * 1024;

/// How many characters are touched for each byte of output at most, as a mean. An erase to the left
/// costs the most: four bytes for a whole line.
const MOST_COST: usize = REACH;

fn shown_in_pieces<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut screen = Screen::default();
    let mut shown = Vec::new();
    for piece in pieces {
        screen.push(piece, &mut |text| shown.extend_from_slice(text));
        assert!(screen.held() <= MOST_MEMORY, "{}", screen.held());
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

/// Output that grew or was slow without bounds, and the like, each some 400 KB.
#[test]
fn memory_and_work_are_bounded_whatever_is_printed() {
    let wide = "x".repeat(2 * REACH - 8);
    let lines = "0123456789\n".repeat(99);
    for (begin, again) in [
        ("a\nb\u{1b}[A", "xxxxxxxxxx"),
        ("a\nb\u{1b}[A", "x\u{1b}[1K\u{1b}[D"),
        (&wide, "\u{8}x"),
        (&wide, "\u{1b}[1K"),
        (&wide, "\u{1b}[K\u{1b}[9999Cx"),
        (&wide, "\rx\u{1b}[9999G"),
        (&lines, "\u{1b}[99A\u{1b}[H"),
        (&lines, "\u{1b}[99Ax\u{1b}[99B\r\n"),
        ("", "\u{1b}[999Cx\n"),
        ("", "\u{1b}[A\u{1b}[999Cx\u{1b}[99B"),
        ("", "\n\n\n\n\u{1b}[999A\u{1b}[999Cé"),
        ("\n\n\u{1b}[2A", "\u{1b}[999Cx\u{1b}[B\u{1b}[2K"),
        (&lines, "\u{1b}[A\u{8}\u{1b}[J0123456789\u{1b}[H"),
    ] {
        let text = [begin, &again.repeat(400_000 / again.len())].concat();
        lines::COST.set(0);
        let shown = shown_in_pieces(text.as_bytes().chunks(16 * 1024));
        let cost = lines::COST.get();
        assert!(cost <= MOST_COST * text.len(), "{again:?}: {} a byte", cost / text.len());
        assert!(shown.len() <= 100 * text.len());
    }
}

#[test]
fn what_outgrows_its_line_is_kept_in_its_place() {
    let long = "x".repeat(5 * REACH);
    assert_eq!(shown(&format!("a\nb\u{1b}[A{long}\u{1b}[Eend")), format!("a{long}\nend"));
}

/// What moves a cursor, as the model takes it.
#[derive(Clone, Debug)]
enum Part {
    Text(String),
    LineFeed,
    Return,
    Backspace,
    Sequence(usize, char),
}

impl Part {
    fn spelt(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::LineFeed => "\n".to_owned(),
            Self::Return => "\r".to_owned(),
            Self::Backspace => "\u{8}".to_owned(),
            Self::Sequence(count, action) => format!("\u{1b}[{count}{action}"),
        }
    }
}

/// All of the text as a grid, which never settles anything.
fn model(parts: &[Part]) -> String {
    let mut lines = vec![Vec::new()];
    let (mut line, mut column) = (0_usize, 0_usize);
    for part in parts {
        let is_at_end = line + 1 == lines.len() && column == lines[line].len();
        let right = lines[line].len().max(500);
        match *part {
            Part::Text(ref text) => {
                for character in text.chars() {
                    if lines[line].len() <= column {
                        lines[line].resize(column + 1, ' ');
                    }
                    lines[line][column] = character;
                    column += 1;
                }
            }
            Part::LineFeed => {
                (line, column) = (line + 1, 0);
                if line == lines.len() {
                    lines.push(Vec::new());
                }
            }
            Part::Return => column = 0,
            Part::Backspace => column = column.saturating_sub(1),
            Part::Sequence(count, action) => {
                let by = count.max(1);
                match (action, count) {
                    ('B' | 'E', _) if is_at_end => continue,
                    ('A' | 'F', _) => line = line.saturating_sub(by),
                    ('B' | 'E', _) => line = (line + by).min(lines.len() - 1),
                    ('C', _) => column = (column + by).min(right),
                    ('D', _) => column = column.saturating_sub(by),
                    ('G', _) => column = (by - 1).min(right),
                    ('K', 1) => lines[line].iter_mut().take(column + 1).for_each(|c| *c = ' '),
                    ('K', 2) => lines[line].clear(),
                    ('K' | 'J', 0) => lines[line].truncate(column),
                    ('H', _) => {
                        (line, column) = (lines.len() - 1, 0);
                        if !lines[line].is_empty() {
                            lines.push(Vec::new());
                            line += 1;
                        }
                    }
                    _ => {}
                }
                match (action, count) {
                    ('E' | 'F', _) => column = 0,
                    ('J', 0) => lines.truncate(line + 1),
                    _ => {}
                }
            }
        }
    }
    lines.iter().map(|line| line.iter().collect::<String>()).collect::<Vec<_>>().join("\n")
}

fn any_part() -> impl Strategy<Value = Part> {
    let action = prop::sample::select("ABCDEFGHJK".chars().collect::<Vec<_>>());
    prop_oneof![
        4 => "[a-c é€]{1,6}".prop_map(Part::Text),
        2 => Just(Part::LineFeed),
        1 => Just(Part::Return),
        1 => Just(Part::Backspace),
        4 => (0usize..4, action).prop_map(|(count, action)| Part::Sequence(count, action)),
    ]
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
    fn a_simple_model_shows_the_same(parts in prop::collection::vec(any_part(), 0..60)) {
        let text: String = parts.iter().map(Part::spelt).collect();
        prop_assert_eq!(shown(&text), model(&parts));
    }

    #[test]
    fn any_moves_again_and_again_stay_within_the_bounds(
        parts in prop::collection::vec(any_part(), 1..12),
        far in prop::sample::select(vec![1, 99, 999]),
    ) {
        let spelt = |part: &Part| match part {
            Part::Sequence(3, action) => format!("\u{1b}[{far}{action}"),
            part => part.spelt(),
        };
        let text = parts.iter().map(spelt).collect::<String>().repeat(2000);
        lines::COST.set(0);
        shown(&text);
        prop_assert!(lines::COST.get() <= MOST_COST * text.len());
    }

    #[test]
    fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        shown_in_pieces([&bytes[..]]);
    }
}
