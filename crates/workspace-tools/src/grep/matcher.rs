//! The matcher for the searcher: as fast as the plain one, and it can be stopped.
//!
//! The regex crate cannot be stopped in the middle of a piece of text. A piece costs nearly nothing
//! or, for some expressions and texts, 20 ns for each byte and each state. So the plain
//! matcher gets pieces that take some ten milliseconds in the worst case, cut at the ends of lines:
//! those of an ordinary expression are as large as the searcher's buffers. Longer pieces go to the
//! interruptible regex.

use std::cell::RefCell;
use std::sync::{Arc, OnceLock};

use grep_matcher::{ByteSet, LineMatchKind, LineTerminator, Match, Matcher, NoCaptures};
use grep_regex::RegexMatcher;
use regex_syntax::hir::{Hir, HirKind};

use super::expression::cost;
use super::interruptible::{InterruptibleRegex, Scratch};
use super::pike_vm::Stopped;

/// A pattern that was compiled.
#[derive(Clone, Debug)]
pub(super) struct Compiled {
    plain: RegexMatcher,
    sizes: Sizes,
    expression: Arc<Expression>,
}

#[derive(Debug)]
struct Expression {
    tree: Hir,
    /// Made when the first text needs it.
    interruptible: OnceLock<Option<InterruptibleRegex>>,
}

/// Sizes in bytes.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    /// The text that the plain matcher is given at most.
    piece: usize,
    /// Smaller pieces than these are not worth the cutting.
    least_piece: usize,
    automaton: usize,
    table: usize,
}

/// What a piece of text may cost in the worst case: see [`cost`]. About 40 ms.
const MOST_COST: usize = 2_000_000;
const LEAST_PIECE: usize = 1024;

impl Compiled {
    /// A pattern from the matcher and the tree that were made of it. `automaton` is how large one may
    /// be that is made of it.
    pub(super) fn new(plain: RegexMatcher, tree: Hir, automaton: usize) -> Self {
        let piece = match tree.kind() {
            // To find one literal costs the same in every text.
            HirKind::Literal(_) => usize::MAX,
            _ => MOST_COST / cost(&tree).saturating_add(4),
        };
        let sizes = Sizes {
            piece,
            least_piece: LEAST_PIECE,
            automaton,
            table: super::interruptible::TABLE,
        };
        let expression = Arc::new(Expression { tree, interruptible: OnceLock::new() });
        Self { plain, sizes, expression }
    }

    /// Whether the text between two of these is searched by itself, and cheaply.
    pub(super) fn line_terminator(&self) -> Option<LineTerminator> {
        self.plain.line_terminator()
    }
}

/// A pattern on one thread, with what it uses again. A clone has tables of its own, which no other
/// thread waits for.
pub(super) struct Local {
    compiled: Compiled,
    scratch: RefCell<Option<Scratch>>,
}

impl Local {
    pub(super) fn new(compiled: &Compiled) -> Self {
        Self { compiled: compiled.clone(), scratch: RefCell::new(None) }
    }

    /// The matcher, until `stop` says so.
    pub(super) fn until<'a>(&'a self, stop: &'a dyn Fn() -> bool) -> Stoppable<'a> {
        Stoppable { local: self, stop }
    }
}

/// A matcher that can be stopped.
pub(super) struct Stoppable<'a> {
    local: &'a Local,
    stop: &'a dyn Fn() -> bool,
}

impl Stoppable<'_> {
    fn plain(&self) -> &RegexMatcher {
        &self.local.compiled.plain
    }

    fn sizes(&self) -> Sizes {
        self.local.compiled.sizes
    }

    fn go_on(&self) -> Result<(), Stopped> {
        if (self.stop)() { Err(Stopped) } else { Ok(()) }
    }

    /// The leftmost match that begins at `at` or behind, and the one that is preferred of several.
    ///
    /// # Errors
    /// When it is stopped.
    pub(super) fn find_from(&self, haystack: &[u8], at: usize) -> Result<Option<Match>, Stopped> {
        self.go_on()?;
        if haystack.len() - at > self.sizes().piece {
            let stop = self.stop;
            let found =
                self.interruptibly(|regex, scratch| regex.find(scratch, haystack, at, stop));
            if let Some(found) = found {
                return Ok(found?.map(|found| Match::new(found.start, found.end)));
            }
        }
        Ok(self.plain().find_at(haystack, at).unwrap_or_default())
    }

    /// The same matcher, until `stop` says so.
    pub(super) fn until<'b>(&'b self, stop: &'b dyn Fn() -> bool) -> Stoppable<'b> {
        self.local.until(stop)
    }

    /// Searches in the other way. Nothing where there is none: then an automaton is too large that is
    /// no larger than the one which the plain matcher has.
    fn interruptibly<T>(
        &self,
        search: impl FnOnce(&InterruptibleRegex, &mut Scratch) -> Result<T, Stopped>,
    ) -> Option<Result<T, Stopped>> {
        let (expression, sizes) = (&self.local.compiled.expression, self.sizes());
        let make = || InterruptibleRegex::new(&expression.tree, sizes.automaton, sizes.table);
        let regex = expression.interruptible.get_or_init(make).as_ref()?;
        let mut scratch = self.local.scratch.borrow_mut();
        Some(search(regex, scratch.get_or_insert_with(|| regex.scratch())))
    }

    /// The next line that may match, in a piece that is a line or small enough.
    fn candidate(&self, lines: &[u8]) -> Result<Option<LineMatchKind>, Stopped> {
        if lines.len() > self.sizes().piece {
            let stop = self.stop;
            let end = self.interruptibly(|regex, scratch| regex.end_in_lines(scratch, lines, stop));
            if let Some(end) = end {
                return Ok(end?.map(LineMatchKind::Confirmed));
            }
        }
        Ok(self.plain().find_candidate_line(lines).unwrap_or_default())
    }
}

impl Matcher for Stoppable<'_> {
    type Captures = NoCaptures;
    type Error = Stopped;

    /// Where it is stopped the text seems to end: the searcher then gives out the lines of the last
    /// match, which it holds back until it knows the next one.
    fn find_at(&self, haystack: &[u8], at: usize) -> Result<Option<Match>, Stopped> {
        Ok(self.find_from(haystack, at).unwrap_or_default())
    }

    fn shortest_match_at(&self, haystack: &[u8], at: usize) -> Result<Option<usize>, Stopped> {
        self.go_on()?;
        if haystack.len() - at > self.sizes().piece {
            let stop = self.stop;
            let end = self.interruptibly(|regex, scratch| regex.end(scratch, haystack, at, stop));
            if let Some(end) = end {
                return end;
            }
        }
        Ok(self.plain().shortest_match_at(haystack, at).unwrap_or_default())
    }

    fn find_candidate_line(&self, haystack: &[u8]) -> Result<Option<LineMatchKind>, Stopped> {
        let Sizes { piece, least_piece, .. } = self.sizes();
        let mut at = 0;
        while haystack.len() - at > piece && piece >= least_piece {
            self.go_on()?;
            let rest = &haystack[at..];
            let end = memchr::memrchr(b'\n', &rest[..piece])
                .or_else(|| memchr::memchr(b'\n', &rest[piece..]).map(|feed| piece + feed));
            let Some(end) = end.map(|feed| feed + 1) else { break };
            match self.candidate(&rest[..end])? {
                None => {}
                // An empty match in the next line, if it is one there too.
                Some(LineMatchKind::Confirmed(offset)) if offset == end => {}
                Some(found) => return Ok(Some(behind(found, at))),
            }
            at += end;
        }
        self.go_on()?;
        Ok(self.candidate(&haystack[at..])?.map(|found| behind(found, at)))
    }

    fn new_captures(&self) -> Result<NoCaptures, Stopped> {
        Ok(NoCaptures::new())
    }

    fn non_matching_bytes(&self) -> Option<&ByteSet> {
        self.plain().non_matching_bytes()
    }

    fn line_terminator(&self) -> Option<LineTerminator> {
        self.local.compiled.line_terminator()
    }
}

/// The same place, in a text that has so many bytes before it.
fn behind(found: LineMatchKind, bytes: usize) -> LineMatchKind {
    match found {
        LineMatchKind::Confirmed(at) => LineMatchKind::Confirmed(at + bytes),
        LineMatchKind::Candidate(at) => LineMatchKind::Candidate(at + bytes),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::cell::Cell;

    use grep_searcher::{Searcher, SearcherBuilder};
    use proptest::prelude::*;

    use super::*;
    use crate::grep::arguments::Wanted;

    fn wanted(pattern: &str) -> Wanted<'_> {
        Wanted { pattern, ignore_case: false, fixed_strings: false, word: false, multiline: false }
    }

    /// Letters a and b that do not repeat.
    pub(in crate::grep) fn noise(length: usize) -> Vec<u8> {
        let mut state = 88_172_645_463_325_252_u64;
        let letter = |_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            b'a' + u8::from(state & 1 == 0)
        };
        (0..length).map(letter).collect()
    }

    fn never() -> bool {
        false
    }

    /// The numbers and texts of the lines that match.
    fn lines<M: Matcher>(matcher: M, wanted: Wanted<'_>, text: &[u8]) -> Vec<(u64, String)> {
        let mut found = Vec::new();
        let mut searcher: Searcher = SearcherBuilder::new()
            .multi_line(wanted.multiline)
            .line_terminator(matcher.line_terminator().unwrap_or_default())
            .bom_sniffing(false)
            .build();
        let sink = grep_searcher::sinks::Lossy(|number, line| {
            found.push((number, line.to_owned()));
            Ok(true)
        });
        searcher.search_slice(matcher, text, sink).unwrap();
        found
    }

    fn pattern() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            4 => proptest::sample::select(vec!["a", "b", "ab", "é", "k", "ba"]),
            2 => proptest::sample::select(vec![".", "[^a]", r"\w", r"\s", r"\W", "[ab]", r"\d", "[^é]"]),
            2 => proptest::sample::select(vec!["^", "$", r"\b", r"\B", r"\A", r"\z", ""]),
            1 => proptest::sample::select(vec![r"\r", r"\n", r"\r\n", "(?i:k)", r"(?-u:\b)", r"(?-u:\xff)"]),
        ];
        leaf.prop_map(str::to_owned).prop_recursive(4, 24, 3, |inner| {
            let repeated = proptest::sample::select(vec!["*", "+", "?", "*?", "+?", "??", "{2,3}"]);
            prop_oneof![
                3 => proptest::collection::vec(inner.clone(), 2..4).prop_map(|parts| parts.concat()),
                2 => proptest::collection::vec(inner.clone(), 2..4)
                    .prop_map(|parts| format!("(?:{})", parts.join("|"))),
                2 => (inner, repeated).prop_map(|(inner, how)| format!("({inner}){how}")),
            ]
        })
    }

    fn text() -> impl Strategy<Value = Vec<u8>> {
        let pieces: [&[u8]; 12] = [
            b"a",
            b"b",
            b"ab",
            "é".as_bytes(),
            b"\n",
            b"\n\n",
            b"\r\n",
            b"\r",
            b" ",
            b"k",
            b"1",
            b"\xff",
        ];
        proptest::collection::vec(proptest::sample::select(pieces.to_vec()), 0..40)
            .prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

        /// Whatever is cut, and whichever way a piece is searched: what is found is the same.
        #[test]
        fn the_plain_matcher_finds_the_same(
            pattern in pattern(),
            text in text(),
            (piece, least_piece, table) in (0usize..24, 0usize..24, 0usize..20_000),
            (ignore_case, word, multiline) in any::<(bool, bool, bool)>(),
        ) {
            let wanted = Wanted { ignore_case, word, multiline, ..wanted(&pattern) };
            let Ok(mut compiled) = wanted.compile_here() else { return Ok(()) };
            compiled.sizes = Sizes { piece, least_piece, table, ..compiled.sizes };
            let local = Local::new(&compiled);
            let ours = local.until(&never);
            let plain = &compiled.plain;
            prop_assert_eq!(lines(&ours, wanted, &text), lines(plain, wanted, &text));
            for at in 0..=text.len() {
                let found = ours.find_at(&text, at).unwrap();
                prop_assert_eq!(found, plain.find_at(&text, at).unwrap_or_default(), "at {}", at);
                let end = ours.shortest_match_at(&text, at).unwrap();
                prop_assert_eq!(end, found.map(|found| found.end()), "at {}", at);
            }
        }
    }

    #[test]
    fn a_stop_is_seen_in_the_middle_of_a_line() {
        let text = noise(200_000);
        for (pattern, multiline) in [
            ("[ab]*a[ab]{300}[cd]", false),
            ("[ab]*a[ab]{300}[cd]", true),
            (r"\b[ab]*a(\w|é){100}\b!", false),
            ("a([ab]|é){300}(ab|ba)c", true),
        ] {
            let compiled = Wanted { multiline, ..wanted(pattern) }.compile_here().unwrap();
            let local = Local::new(&compiled);
            let asked = Cell::new(0);
            let stop = || {
                asked.set(asked.get() + 1);
                asked.get() > 3
            };
            let matcher = local.until(&stop);
            assert_eq!(matcher.find_from(&text, 0), Err(Stopped), "{pattern}");
            assert_eq!(asked.replace(0), 4, "{pattern}");
            assert_eq!(matcher.shortest_match_at(&text, 0), Err(Stopped), "{pattern}");
            assert_eq!(asked.replace(0), 4, "{pattern}");
            assert!(matcher.find_candidate_line(&text).is_err(), "{pattern}");
            assert_eq!(asked.replace(0), 4, "{pattern}");
        }
    }

    #[test]
    fn a_stop_is_seen_between_lines() {
        let text = b"abbabaaba ab bab\n".repeat(20_000);
        let compiled = wanted("[ab ]*a[ab]{30}[cd]").compile_here().unwrap();
        let local = Local::new(&compiled);
        let asked = Cell::new(0);
        let stop = || {
            asked.set(asked.get() + 1);
            false
        };
        assert!(local.until(&stop).find_candidate_line(&text).unwrap().is_none());
        assert!(asked.get() > 3, "{}", asked.get());
    }

    #[test]
    fn usual_patterns_are_searched_for_in_large_pieces() {
        let piece = |pattern: &str| wanted(pattern).compile_here().unwrap().sizes.piece;
        assert_eq!(piece("nowhere_to_be_found"), usize::MAX);
        assert!(piece("z[a-z]n[^ ]{2}[a-d]+ar") > 64 * 1024);
        assert!(piece(r"fn \w+_error\(") > 64 * 1024);
    }
}
