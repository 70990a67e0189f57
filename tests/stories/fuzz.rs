//! The fuzzers' bodies without a fuzzer: over every input of the corpus, and in the long run over
//! random bytes, and for a few seconds over inputs that are made out of the corpus. `FUZZ_SECONDS`
//! sets how many.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use proptest::prelude::{any, prop};
use proptest::test_runner::{Config, TestRunner};

#[path = "../../fuzz/bodies/mod.rs"]
mod bodies;

use crate::dice::Dice;
use crate::trials::{Need, Trial, trial};

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = trials![every_target_has_its_fuzzer, every_input_of_the_corpus_passes];
    for (name, _) in bodies::TARGETS {
        let path = format!("stories::fuzz::{name}");
        trials.push(trial(&path, &[Need::Time], move || random(name, bodies::body(name))));
    }
    trials
}

/// How long each target is tried, where `FUZZ_SECONDS` says nothing else.
const SECONDS: u64 = 2;

/// Longest input that is made.
const LONGEST: usize = 4096;

fn every_target_has_its_fuzzer() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/fuzz_targets");
    for (name, _) in bodies::TARGETS {
        assert!(directory.join(name).with_extension("rs").is_file(), "{name} has no fuzzer");
    }
    assert_eq!(std::fs::read_dir(directory).unwrap().count(), bodies::TARGETS.len());
}

fn every_input_of_the_corpus_passes() {
    for (name, body) in bodies::TARGETS {
        let corpus = corpus(name);
        assert!(corpus.len() >= 5, "{name} has hardly a corpus");
        corpus.iter().for_each(|input| attempt(name, body, input));
    }
}

fn random(name: &str, body: fn(&[u8])) {
    let config = Config { failure_persistence: None, ..Config::default() };
    TestRunner::new(config)
        .run(&prop::collection::vec(any::<u8>(), 0..400), |input| {
            body(&input);
            Ok(())
        })
        .unwrap_or_else(|failure| panic!("{name}: {failure}"));
    let corpus = corpus(name);
    let seconds = std::env::var("FUZZ_SECONDS").ok();
    let seconds = seconds.map_or(SECONDS, |text| text.parse().expect("a number of seconds"));
    let end = Instant::now() + Duration::from_secs(seconds);
    // Another way each time; a failure shows its input, which then belongs into the corpus.
    let mut dice = Dice::new(seed());
    let mut runs = 0_u64;
    while Instant::now() < end {
        attempt(name, body, &bred(&corpus, &mut dice));
        runs += 1;
    }
    eprintln!("{name}: {} inputs of the corpus, {runs} made out of them", corpus.len());
}

fn seed() -> u64 {
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    u64::from(since.subsec_nanos()) ^ since.as_secs() << 30
}

/// Runs the body and, where it panics, says with which input.
fn attempt(name: &str, body: fn(&[u8]), input: &[u8]) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| body(input))) {
        eprintln!("{name} fails with b\"{}\"", input.escape_ascii());
        std::panic::resume_unwind(panic);
    }
}

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(name);
    let entries = std::fs::read_dir(&directory).expect("the target's corpus");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an input").path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).expect("an input")).collect()
}

/// An input like those of the corpus: one of them, or two spliced, changed in a few places.
fn bred(corpus: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    let mut input = dice.pick(corpus).clone();
    if dice.once_in(3) {
        let other = dice.pick(corpus);
        let (keep, from) = (dice.below(input.len() + 1), dice.below(other.len() + 1));
        input.truncate(keep);
        input.extend_from_slice(&other[from..]);
    }
    for _ in 0..=dice.below(6) {
        change(&mut input, dice);
    }
    input.truncate(LONGEST);
    input
}

fn change(input: &mut Vec<u8>, dice: &mut Dice) {
    const REVEALING: [u8; 14] =
        [0, 1, 0x0a, 0x0d, 0x12, 0x1a, b'.', b'/', b'\\', 0x7f, 0x80, 0xc3, 0xef, 0xff];
    let at = dice.below(input.len() + 1);
    let byte = if dice.once_in(2) { dice.throw() as u8 } else { *dice.pick(&REVEALING) };
    match dice.below(5) {
        0 => input.insert(at, byte),
        1 if at < input.len() => drop(input.remove(at)),
        2 if at < input.len() => input[at] ^= 1 << dice.below(8),
        3 if at < input.len() => {
            // A piece once more, somewhere else.
            let end = at + dice.below((input.len() - at).min(32) + 1);
            let piece = input[at..end].to_vec();
            let to = dice.below(input.len() + 1);
            input.splice(to..to, piece);
        }
        _ if at < input.len() => input[at] = byte,
        _ => input.push(byte),
    }
}
