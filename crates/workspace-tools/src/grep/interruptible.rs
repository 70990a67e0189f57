//! A regex search that can be stopped, for patterns that are slow in the worst case: a lazy DFA as
//! long as its cache suffices, then the Pike VM.

use std::ops::Range;

use regex_automata::hybrid::{dfa, regex};
use regex_automata::nfa::thompson::{Compiler, Config, NFA, WhichCaptures};
use regex_automata::util::prefilter::Prefilter;
use regex_automata::{Input, MatchError, MatchErrorKind, MatchKind};
use regex_syntax::hir::Hir;

use super::pike_vm::{PikeVm, Stopped};

/// The capacity of each of the two DFA caches that a thread fills as it searches, in bytes. Filling
/// one takes about 10 ms, during which nothing stops the search. When it is full, the text is a
/// hard one and the Pike VM searches it.
pub(super) const TABLE: usize = 2 * 1024 * 1024;

/// An expression, compiled for both engines. Threads share it.
#[derive(Debug)]
pub(super) struct InterruptibleRegex {
    tables: regex::Regex,
    /// For the Pike VM, which needs no cache.
    nfa: NFA,
    prefilter: Option<Prefilter>,
}

/// What one thread reuses between searches.
#[derive(Debug)]
pub(super) struct Scratch {
    tables: regex::Cache,
    pike_vm: PikeVm,
}

impl InterruptibleRegex {
    /// Nothing where an automaton would be larger than `most` bytes.
    pub(super) fn new(expression: &Hir, most: usize, table: usize) -> Option<Self> {
        let compile = |config: Config| {
            let config = config.utf8(false).nfa_size_limit(Some(most));
            let config = config.which_captures(WhichCaptures::None);
            Compiler::new().configure(config).build_from_hir(expression).ok()
        };
        let nfa = compile(Config::new())?;
        let reverse = compile(Config::new().reverse(true))?;
        let prefilter = Prefilter::from_hir_prefix(MatchKind::LeftmostFirst, expression);
        let config = dfa::Config::new()
            // Where a word ends is found in a table only as long as the text is ASCII.
            .unicode_word_boundary(true)
            .cache_capacity(table)
            .skip_cache_capacity_check(true)
            .minimum_cache_clear_count(Some(0));
        let build = |config: dfa::Config, nfa: &NFA| {
            dfa::Builder::new().configure(config).build_from_nfa(nfa.clone()).ok()
        };
        let forward = config
            .clone()
            .prefilter(prefilter.clone())
            .specialize_start_states(prefilter.is_some());
        let forward = build(forward, &nfa)?;
        let reverse = build(config.match_kind(MatchKind::All), &reverse)?;
        let tables = regex::Builder::new().build_from_dfas(forward, reverse);
        Some(Self { tables, nfa, prefilter })
    }

    pub(super) fn scratch(&self) -> Scratch {
        Scratch { tables: self.tables.create_cache(), pike_vm: PikeVm::default() }
    }

    /// The leftmost match that begins at `at` or behind.
    ///
    /// # Errors
    /// When `stop` says so.
    pub(super) fn find(
        &self,
        scratch: &mut Scratch,
        haystack: &[u8],
        at: usize,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Range<usize>>, Stopped> {
        let input = Input::new(haystack).span(at..haystack.len());
        match self.tables.try_search(&mut scratch.tables, &input) {
            Ok(found) => Ok(found.map(|found| found.range())),
            Err(_) => {
                self.tables.reset_cache(&mut scratch.tables);
                self.step(scratch, &input, stop)
            }
        }
    }

    /// Where the leftmost match ends that begins at `at` or behind.
    ///
    /// # Errors
    /// When `stop` says so.
    pub(super) fn end(
        &self,
        scratch: &mut Scratch,
        haystack: &[u8],
        at: usize,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<usize>, Stopped> {
        let input = Input::new(haystack).span(at..haystack.len());
        let (forward, table) = (self.tables.forward(), scratch.tables.forward_mut());
        match forward.try_search_fwd(table, &input) {
            Ok(found) => Ok(found.map(|found| found.offset())),
            Err(_) => {
                forward.reset_cache(table);
                Ok(self.step(scratch, &input, stop)?.map(|found| found.end))
            }
        }
    }

    /// Where the leftmost match ends, in lines that no match goes over.
    ///
    /// # Errors
    /// When `stop` says so.
    pub(super) fn end_in_lines(
        &self,
        scratch: &mut Scratch,
        lines: &[u8],
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<usize>, Stopped> {
        let mut at = 0;
        loop {
            let input = Input::new(lines).span(at..lines.len());
            let (forward, table) = (self.tables.forward(), scratch.tables.forward_mut());
            let error = match forward.try_search_fwd(table, &input) {
                Ok(found) => return Ok(found.map(|found| found.offset())),
                Err(error) => error,
            };
            forward.reset_cache(table);
            // A match in a line before this one would have been reported: when its line ended
            // nothing was left to look for. A match is seen one byte late.
            let reached = reached(&error).saturating_sub(1).clamp(at, lines.len());
            let start =
                memchr::memrchr(b'\n', &lines[at..reached]).map_or(at, |feed| at + feed + 1);
            let end = memchr::memchr(b'\n', &lines[start..]);
            let line = start..end.map_or(lines.len(), |feed| start + feed);
            at = line.end + 1;
            let input = Input::new(lines).span(line);
            if let Some(found) = self.step(scratch, &input, stop)? {
                return Ok(Some(found.end));
            }
            if at > lines.len() {
                return Ok(None);
            }
            if stop() {
                return Err(Stopped);
            }
        }
    }

    fn step(
        &self,
        scratch: &mut Scratch,
        input: &Input<'_>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Range<usize>>, Stopped> {
        scratch.pike_vm.find(&self.nfa, self.prefilter.as_ref(), input, stop)
    }
}

/// How far a search came.
fn reached(error: &MatchError) -> usize {
    match error.kind() {
        MatchErrorKind::Quit { offset, .. } | MatchErrorKind::GaveUp { offset } => *offset,
        _ => 0,
    }
}
