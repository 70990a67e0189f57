use proptest::prelude::*;

use super::*;

fn directory() -> (tempfile::TempDir, Arc<Spool>) {
    let directory = tempfile::tempdir().unwrap();
    let spool = Arc::new(Spool::open(directory.path()).unwrap());
    (directory, spool)
}

fn transcribed(limit: usize, pieces: &[&[u8]]) -> (Output, Option<Vec<u8>>) {
    let (_directory, spool) = directory();
    let mut transcript = Transcript::new(limit, spool, &Secrets::default());
    for piece in pieces {
        transcript.push(piece);
    }
    let output = transcript.finish();
    let file = match &output.full {
        Some(FullOutput::Complete(path) | FullOutput::Beginning { path, .. }) => Some(read(path)),
        Some(FullOutput::Failed(error)) => panic!("{error}"),
        None => None,
    };
    (output, file)
}

#[expect(clippy::disallowed_methods, reason = "a test looks at what was written")]
fn read(path: &std::path::Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

#[test]
fn what_fits_is_kept_whole_and_no_file_is_made() {
    let (output, file) = transcribed(10, &[b"hello", b"\xff", b"ab"]);
    assert_eq!((output.text.as_str(), output.left_out), ("hello\u{fffd}ab", 0));
    assert!(file.is_none());
}

#[test]
fn what_does_not_fit_leaves_head_marker_and_tail() {
    let (output, file) = transcribed(10, &[b"0123456789", b"abcdefghij"]);
    assert_eq!(
        output.text,
        "01234\n[… 10 bytes left out; read_file and grep take full_output_path …]\nfghij"
    );
    assert_eq!(output.left_out, 10);
    assert_eq!(file.unwrap(), b"0123456789abcdefghij");
}

#[test]
fn cuts_fall_between_lines_where_a_line_ends_near() {
    let lines: Vec<u8> = (0..100).flat_map(|n| format!("line {n:02}\n").into_bytes()).collect();
    let (output, _) = transcribed(100, &[&lines]);
    let kept: Vec<&str> = output.text.lines().collect();
    assert_eq!(kept[0], "line 00");
    assert!(kept.iter().all(|line| line.len() == 7 || line.starts_with('[')), "{kept:?}");
    assert_eq!(*kept.last().unwrap(), "line 99");
}

#[test]
fn few_bytes_that_need_much_text_are_cut_and_kept_in_the_file() {
    let (output, file) = transcribed(12, &[b"\xff\xff\xff\xff\xff\xff\xff\xff"]);
    assert_eq!(
        output.text,
        "\u{fffd}\u{fffd}\n[… 4 bytes left out; read_file and grep take full_output_path …]\n\u{fffd}\u{fffd}"
    );
    assert_eq!(file.unwrap(), [0xff; 8]);
}

#[test]
fn a_limit_of_nothing_keeps_only_the_count() {
    let (output, file) = transcribed(0, &[b"abc"]);
    assert_eq!(output.text, "[… 3 bytes left out; read_file and grep take full_output_path …]\n");
    assert_eq!(file.unwrap(), b"abc");
}

#[test]
fn memory_stays_bounded_while_the_file_takes_everything_up_to_its_limit() {
    let (_directory, spool) = directory();
    let mut transcript = Transcript::new(1000, spool, &Secrets::default());
    let piece = vec![b'x'; 64 * 1024];
    for _ in 0..1100 {
        transcript.push(&piece);
        let Transcript { screen, excerpt, .. } = &transcript;
        assert!(excerpt.head.capacity() + excerpt.tail.capacity() < 8000, "{}", excerpt.total);
        assert!(screen.held() < 16 * 1024);
    }
    let output = transcript.finish();
    let total = 1100 * 64 * 1024;
    assert_eq!(output.left_out, total - 1000);
    let Some(FullOutput::Beginning { path, bytes }) = output.full else { panic!("{output:?}") };
    assert_eq!(bytes, crate::process::SPOOL_FILE_BYTES);
    assert_eq!(read(&path).len() as u64, bytes);
}

#[test]
fn a_file_that_cannot_be_made_is_reported_and_the_text_is_still_there() {
    let (directory, spool) = directory();
    directory.close().unwrap();
    let mut transcript = Transcript::new(4, spool, &Secrets::default());
    transcript.push(b"0123456789");
    let output = transcript.finish();
    assert!(output.text.starts_with("01\n[") && output.text.ends_with("]\n89"), "{output:?}");
    assert!(matches!(output.full, Some(FullOutput::Failed(_))));
}

/// Escape sequences, redrawn lines and backspaces take no space, and the file holds what was printed.
#[test]
fn what_a_terminal_would_not_show_in_the_end_is_no_part_of_the_text() {
    let bar: Vec<u8> =
        (0..=100).flat_map(|n| format!("\r\x1b[32m{n}%\x1b[0m").into_bytes()).collect();
    let (output, file) = transcribed(100, &[&bar, b"\n\n", b"done\r\n"]);
    assert_eq!((output.text.as_str(), output.left_out), ("100%\n\ndone\n", 0));
    assert!(file.is_none(), "nothing was left out");

    let raw = [&bar[..], &b"\nx".repeat(100)].concat();
    let (output, file) = transcribed(100, &[&raw]);
    assert!(output.text.starts_with("100%\nx\n"), "{output:?}");
    assert_eq!(file.unwrap(), raw);
}

/// A secret that only a terminal puts together is masked before it can be cut in two.
#[test]
fn a_secret_is_masked_as_it_is_shown() {
    let secrets = Secrets::new([("TOKEN", "hunter2!")]);
    for limit in [10, 30, 60, 1000] {
        let (_directory, spool) = directory();
        let mut transcript = Transcript::new(limit, spool, &secrets);
        for piece in ["xxx\rhun\x1b[1mter", "2!\x1b[m hux\u{8}nter2!\n", "xunter2!\rhunter2", "!\n"]
        {
            transcript.push(piece.as_bytes());
        }
        let output = transcript.finish();
        assert!(!output.text.contains("unter"), "{output:?}");
        assert!(limit < 1000 || output.text == "[TOKEN] [TOKEN]\n[TOKEN]\n", "{output:?}");
    }
}

proptest! {
    #[test]
    fn text_stays_within_the_limit_and_every_byte_is_accounted_for(
        limit in 0usize..60,
        pieces in proptest::collection::vec(
            prop_oneof![
                "[a-z\nä€😀]{0,12}".prop_map(String::into_bytes),
                proptest::collection::vec(prop_oneof![0x20u8..0x7f, 0xc3u8..], 0..12),
            ],
            0..12,
        ),
    ) {
        let all = pieces.concat();
        let borrowed: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
        let (output, file) = transcribed(limit, &borrowed);
        if output.left_out == 0 && file.is_none() {
            prop_assert_eq!(output.text, String::from_utf8_lossy(&all));
        } else {
            let marker = format!(
                "[… {} bytes left out; read_file and grep take full_output_path …]\n",
                output.left_out
            );
            let (head, tail) = output.text.split_once(&marker).expect("the marker");
            prop_assert!(head.len() + tail.len() <= limit + 1, "{:?}", output.text);
            prop_assert_eq!(&file.expect("a file")[..], &all[..]);
            // Where the text is valid, what is kept is exactly the ends of it.
            if let Ok(text) = std::str::from_utf8(&all) {
                let head_bytes = text.len() - tail.len() - usize::try_from(output.left_out).unwrap();
                prop_assert!(text.ends_with(tail));
                // A line feed was added where the head did not end with one.
                let kept = &text[..head_bytes];
                let added = head.strip_prefix(kept);
                prop_assert!(matches!(added, Some("" | "
")), "{:?}", output.text);
            }
        }
    }
}
