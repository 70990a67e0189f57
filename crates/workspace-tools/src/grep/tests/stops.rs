//! A search that is stopped, or runs out of time.

use super::*;

#[test]
fn a_cancelled_search_has_no_result_and_one_out_of_time_what_it_found() {
    let fixture = Fixture::new(&[("a", b"needle\n"), ("b", b"hay\n")]);
    let deadline = Some(Instant::now());
    let error = fixture.call_until(json!({"pattern": "none"}), deadline).expect_err("time is up");
    assert_eq!(error.category(), Category::Timeout);
    assert!(error.is_retryable() && error.hint().is_some());
    fixture.cancel.cancel();
    let error = fixture.call(json!({"pattern": "needle"})).expect_err("cancelled");
    assert_eq!(error.category(), Category::Cancelled);
}

/// A sink whose first hit ends the call's time or cancels it.
struct EndingSink<'a> {
    cancel: Option<&'a CancelToken>,
    until: Instant,
}

impl EventSink for EndingSink<'_> {
    fn emit_until(&self, event: Event, _: Option<Instant>) -> Result<(), EmitError> {
        if matches!(event, Event::Partial(_)) {
            match self.cancel {
                Some(cancel) => cancel.cancel(),
                None => {
                    while Instant::now() < self.until {
                        std::thread::yield_now();
                    }
                }
            }
        }
        Ok(())
    }
}

#[test]
fn a_search_ends_in_the_middle_of_a_huge_file() {
    let fixture = Fixture::new(&[("a", b"needle\n")]);
    // Sparse: all NUL, but behind a first line, so it takes long only where NULs are no end.
    let endless = fs::File::create(fixture.root.join("b")).unwrap();
    let text = b"some hay, and more of it, line after line\n".repeat(1 << 20);
    std::io::Write::write_all(&mut &endless, &text).unwrap();
    let Value::Object(arguments) = json!({"pattern": "needle"}) else { unreachable!() };
    for cancel in [None, Some(CancelToken::new())] {
        let until = Instant::now() + Duration::from_millis(300);
        let sink = EndingSink { cancel: cancel.as_ref(), until };
        let (phase, token) = (Phase::default(), cancel.clone().unwrap_or_default());
        let context = Context {
            state: &fixture.files,
            session_id: "",
            working_directory: None,
            sink: &sink,
            cancel: &token,
            deadline: cancel.is_none().then_some(until),
            phase: &phase,
            secrets: &Secrets::default(),
        };
        let outcome = Grep::default().run(&arguments, &context);
        match cancel {
            // It may have been quick enough all the same.
            None => assert_eq!(outcome.unwrap()["hits"], "a\n1:needle"),
            Some(_) => assert_eq!(outcome.unwrap_err().category(), Category::Cancelled),
        }
    }
}

/// Patterns for which all engines but the slowest give up in a text of a and b, and take many minutes
/// for the one here.
const ENDLESS: [(&str, bool); 2] =
    [("[ab]*a[ab]{5000}[cd]|needle", false), ("[ab\\n]*a[ab\\n]{5000}[cd]|needle", true)];

#[test]
fn a_search_ends_in_the_middle_of_a_line() {
    let mut text = b"needle\n".to_vec();
    text.extend(noise(4 * 1024 * 1024));
    let fixture = Fixture::new(&[("a", b"needle\n"), ("b", &text)]);
    for (pattern, multiline) in ENDLESS {
        for mode in ["content", "files", "count"] {
            let arguments = json!({"pattern": pattern, "multiline": multiline, "mode": mode});
            let deadline = Instant::now() + Duration::from_millis(500);
            match fixture.call_until(arguments, Some(deadline)) {
                // One hit is enough of a file; on a busy machine time is up before the second one.
                Ok(result) if result.get("files") == Some(&json!(["a", "b"])) => {}
                Ok(result) => {
                    assert!(notice(&result).starts_with("Partial: time was up"), "{result:?}");
                }
                // On a machine that is too busy for the first file.
                Err(error) => assert_eq!(error.category(), Category::Timeout, "{error}"),
            }
        }
    }
}

#[test]
fn what_was_found_before_a_stop_is_reported() {
    let mut text = b"needle one\nneedle two\n".to_vec();
    text.extend(noise(4 * 1024 * 1024));
    for (pattern, multiline) in ENDLESS {
        let wanted = arguments::Wanted {
            pattern,
            ignore_case: false,
            fixed_strings: false,
            word: false,
            multiline,
        };
        let local = matcher::Local::new(&wanted.compile_here().unwrap());
        let (stop, asked) = (tree::Stop::default(), std::cell::Cell::new(0));
        let is_stopped = || {
            asked.set(asked.get() + 1);
            if asked.get() > 10 {
                stop.set();
            }
            stop.is_set()
        };
        let stoppable = local.until(&is_stopped);
        let lines = if multiline { Lines::Many } else { Lines::One };
        let limits = SearchLimits {
            mode: arguments::Mode::Content,
            lines,
            skip: 0,
            want: 100,
            most_per_file: usize::MAX,
        };
        let secrets = Secrets::default();
        let mut collector = collect::Collector::new(&stoppable, limits, &secrets, &stop);
        let ending = grep_matcher::Matcher::line_terminator(&stoppable).unwrap_or_default();
        let mut searcher = grep_searcher::SearcherBuilder::new()
            .multi_line(multiline)
            .line_terminator(ending)
            .build();
        let _ = searcher.search_slice(&stoppable, &text, &mut collector);
        assert!(stop.is_set(), "{pattern}");
        let (hits, _) = collector.finish();
        let found: Vec<_> = hits.kept.iter().map(|hit| (hit.line, &*hit.snippet.text)).collect();
        assert_eq!(found, [(1, "needle one"), (2, "needle two")], "{pattern}");
    }
}

#[test]
fn a_pattern_that_takes_long_to_compile_does_not_hold_a_call_up() {
    let fixture = Fixture::new(&[("a", b"needle\n")]);
    let pattern = "[\\p{L}&&k]".repeat(1300);
    let arguments = json!({"pattern": pattern, "ignore_case": true});
    let deadline = Instant::now() + Duration::from_millis(5);
    let error = fixture.call_until(arguments.clone(), Some(deadline)).unwrap_err();
    assert_eq!(error.category(), Category::Timeout);
    assert!(error.message().contains("compiled"), "{error}");
    fixture.cancel.cancel();
    assert_eq!(fixture.call(arguments).unwrap_err().category(), Category::Cancelled);
}
