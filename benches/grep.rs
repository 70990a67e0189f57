//! What searches cost beside ripgrep's and fd's, in time and in memory.
//!
//! On a generated tree of 50,000 files and about 500 MB, warm in the cache: searches through the
//! library, on one of the jail's own threads, without the provider and its transport, beside a
//! program with the same rules that is allowed as many threads (`rg` with `--sort` takes one all the
//! same). All are run in turns, so that a busy machine slows all; what counts is the ratio of the
//! medians. That both sides find as many is checked, not that they find the same. A peer's time is
//! that of its process, from its start to its end, because that is what a harness without a provider
//! would wait for; its output is read and dropped. Where our call has a limit, the peer is killed
//! after as many lines; only the newest files it must list to the end. Memory is that of a process
//! that does nothing but this one search.
//!
//! `GREP_BENCH_FILES` and `GREP_BENCH_MB` name another size, `GREP_BENCH_DIR` another directory,
//! `GREP_BENCH_ROUNDS` another number of rounds at most.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench prepares its own files, prints its measurements, and stops where that fails"
)]

mod measurement;
mod peers;
mod tree;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use measurement::{Goal, Measurement};
use peers::{Order, Peer, Taken};
use sandbox::{Commands, Jail, Level, Mode, Policy};
use serde_json::{Value, json};
use tool_provider::Secrets;
use tool_provider::{CancelToken, Payload, Phase, Tool};
use tool_provider::{EmitError, Event, EventSink};
use tree::{COMMON, RARE, Shape, grow};
use workspace_fs::{RootsSpec, Workspace};
use workspace_tools::{Context, Files, Glob, Grep};

const ROUNDS: usize = 11;
/// A busy machine does fewer of them: after this long a search has had enough, once it had a few.
const ENOUGH: Duration = Duration::from_secs(12);
const LEAST_ROUNDS: usize = 3;
/// Runs whose peak of memory is taken.
const PEAKS: usize = 3;
/// The most that a result lists, so that a call for all of a few hits is a call for all.
const ALL: usize = 10_000;
/// As many as a call gets that names no limit.
const FEW: usize = 100;
/// The names of one file in a thousand.
const SEVENS: &str = "*777.*";

const MOST_OF_SORTED: f64 = 1.0;
const MOST_OF_UNSORTED: f64 = 1.25;
const MOST_OF_PEAK: f64 = 1.5;
const MOST_FIRST_MS: f64 = 20.0;

/// A call, and who else is asked.
struct Search {
    name: &'static str,
    tool: &'static str,
    call: Value,
    /// With the most that ours takes of its time, where that was promised.
    peers: Vec<(Peer, Option<f64>)>,
    also: Also,
}

/// What is measured beside the time.
#[derive(Clone, Copy, PartialEq)]
enum Also {
    Nothing,
    Peak,
    PeakAndFirst,
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, mode, directory, tool, call] = &arguments[..]
        && mode == "once"
    {
        let call: Value = serde_json::from_str(call).unwrap();
        Ours::new(Path::new(directory)).search(tool, &call);
        return;
    }
    let number = |name: &str, usual: usize| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
    };
    let shape = Shape {
        files: number("GREP_BENCH_FILES", 50_000),
        bytes: number("GREP_BENCH_MB", 500) * 1_000_000,
    };
    let rounds = number("GREP_BENCH_ROUNDS", ROUNDS);
    let base = std::env::var_os("GREP_BENCH_DIR").map(PathBuf::from);
    let base = base.unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").into());
    let directory = tempfile::tempdir_in(base).unwrap();
    grow(directory.path(), shape);
    let ours = Ours::new(directory.path());
    for search in searches() {
        search.measure(&ours, directory.path(), rounds);
    }
}

fn searches() -> Vec<Search> {
    let grep = |name, pattern: &str, limit, taken, also| Search {
        name,
        tool: "grep",
        call: json!({ "pattern": pattern, "limit": limit, "max_per_file": limit }),
        peers: vec![
            (Peer::searching(pattern, Order::Path, taken), Some(MOST_OF_SORTED)),
            (Peer::searching(pattern, Order::Any, taken), Some(MOST_OF_UNSORTED)),
        ],
        also,
    };
    let unsorted = Peer::listing(SEVENS, Order::Any);
    vec![
        grep("grep, rare word", RARE, ALL, Taken::All, Also::Peak),
        grep("grep, common word, limit 100", COMMON, FEW, Taken::First(FEW), Also::PeakAndFirst),
        grep("grep, regex with a class", "z[a-z]n[^ ]{2}[a-d]+ar", ALL, Taken::All, Also::Peak),
        grep("grep, no match", "nowhere_to_be_found", ALL, Taken::All, Also::Peak),
        Search {
            name: "glob, one name in 1,000",
            tool: "glob",
            call: json!({ "pattern": SEVENS, "limit": ALL }),
            peers: vec![
                (unsorted, Some(MOST_OF_UNSORTED)),
                (Peer::fd(SEVENS), Some(MOST_OF_UNSORTED)),
            ],
            also: Also::Peak,
        },
        Search {
            name: "glob, the newest 100 of all files",
            tool: "glob",
            call: json!({ "pattern": "*.*", "sort": "modified", "limit": FEW }),
            peers: vec![(Peer::listing("*.*", Order::Newest), None)],
            also: Also::Nothing,
        },
    ]
}

impl Search {
    fn measure(mut self, ours: &Ours, directory: &Path, rounds: usize) {
        self.peers.retain(|(peer, _)| peer.is_here());
        let (mut mine, mut first) = (Vec::new(), Vec::new());
        let mut others = vec![(Vec::new(), Vec::new()); self.peers.len()];
        let limit = self.call["limit"].as_u64().unwrap() as usize;
        let start = Instant::now();
        for round in 0..=rounds {
            if round > LEAST_ROUNDS && start.elapsed() > ENOUGH {
                break;
            }
            let answer = ours.search(self.tool, &self.call);
            let runs: Vec<_> = self.peers.iter().map(|(peer, _)| peer.run(directory)).collect();
            for ((peer, _), run) in self.peers.iter().zip(&runs) {
                let theirs = run.lines.min(limit);
                assert_eq!(
                    answer.found, theirs,
                    "{}: {} finds something else",
                    self.name, peer.name
                );
            }
            // The first round warms the cache.
            if round > 0 {
                mine.push(answer.took);
                first.extend(answer.first);
                for (other, run) in others.iter_mut().zip(runs) {
                    other.0.push(run.took);
                    other.1.extend(run.first);
                }
            }
        }
        let (mine, first) = (median(mine), median(first));
        let others: Vec<_> =
            others.into_iter().map(|(took, first)| (median(took), median(first))).collect();
        if self.peers.is_empty() {
            self.time(mine, None);
        }
        for ((peer, most), (took, _)) in self.peers.iter().zip(&others) {
            self.time(mine, Some((peer, *most, *took)));
        }
        if self.also == Also::PeakAndFirst {
            let peer = self.peers.last().zip(others.last());
            let peer = peer.map(|((peer, _), (_, first))| (peer.full_name(), *first));
            Measurement {
                name: &format!("{}: to the first partial_result", self.name),
                value: first,
                unit: "ms",
                peer: peer.as_ref().map(|(name, first)| (name.as_str(), *first)),
                goal: Goal::ValueAtMost(MOST_FIRST_MS),
            }
            .print();
        }
        if self.also != Also::Nothing {
            self.peak(directory);
        }
    }

    fn time(&self, mine: f64, other: Option<(&Peer, Option<f64>, f64)>) {
        let full_name = other.as_ref().map(|(peer, ..)| peer.full_name());
        let beside = other.as_ref().map(|(peer, ..)| format!(", beside {}", peer.name));
        Measurement {
            name: &format!("{}{}", self.name, beside.unwrap_or_default()),
            value: mine,
            unit: "ms",
            peer: full_name.as_deref().zip(other.as_ref().map(|(.., took)| *took)),
            goal: other.and_then(|(_, most, _)| most).map_or(Goal::None, Goal::RatioAtMost),
        }
        .print();
    }

    /// The peak of memory beside that of the last `rg`, which uses as many threads.
    fn peak(&self, directory: &Path) {
        let own = std::env::current_exe().unwrap().display().to_string();
        let text = |path: &Path| path.display().to_string();
        let once =
            ["once".to_owned(), text(directory), self.tool.to_owned(), self.call.to_string()];
        let mine = median_of_peaks(|| peers::peak(&own, &once, directory, "cat"));
        let Some(mine) = mine else {
            println!("/usr/bin/time is not installed: no peak of memory is measured");
            return;
        };
        let rg = self.peers.iter().rev().find(|(peer, _)| peer.is_rg());
        let theirs = rg.and_then(|(peer, _)| {
            median_of_peaks(|| peer.peak(directory)).map(|kib| (peer.full_name(), kib))
        });
        Measurement {
            name: &format!("{}: peak memory", self.name),
            value: mine / 1024.0,
            unit: "MiB",
            peer: theirs.as_ref().map(|(name, kib)| (name.as_str(), kib / 1024.0)),
            goal: Goal::RatioAtMost(MOST_OF_PEAK),
        }
        .print();
    }
}

fn median_of_peaks(peak: impl Fn() -> Option<f64>) -> Option<f64> {
    let mut peaks = (0..PEAKS).map(|_| peak()).collect::<Option<Vec<_>>>()?;
    peaks.sort_by(f64::total_cmp);
    Some(peaks[PEAKS / 2])
}

/// In milliseconds; no number where nothing was measured.
fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times.get(times.len() / 2).map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
}

/// The tools on the jail's threads, as in the provider.
struct Ours {
    files: Arc<Files>,
    jail: Jail,
}

/// What a call gave.
struct Answer {
    took: Duration,
    /// Until its first partial result.
    first: Option<Duration>,
    found: usize,
}

impl Ours {
    fn new(directory: &Path) -> Self {
        let root = directory.canonicalize().unwrap();
        let spec = RootsSpec { roots: vec![root.display().to_string()], ..RootsSpec::default() };
        let workspace = Arc::new(Workspace::open(&spec).unwrap());
        let files = Arc::new(Files::new(workspace, Level::Off));
        let policy = Policy {
            roots: vec![root],
            mode: Mode::BestEffort,
            commands: Commands::Never,
            ..Policy::default()
        };
        Self { files, jail: Jail::build(&policy).unwrap() }
    }

    fn search(&self, tool: &str, call: &Value) -> Answer {
        let files = self.files.clone();
        let arguments = call.as_object().unwrap().clone();
        let tool: Box<dyn Tool<Files>> = match tool {
            "glob" => Box::new(Glob::default()),
            _ => Box::new(Grep::default()),
        };
        let (say, hear) = mpsc::channel();
        let start = Instant::now();
        let job = move || say.send(run(&*tool, &files, &arguments, start)).unwrap();
        self.jail.submit(Box::new(job)).unwrap();
        hear.recv().unwrap()
    }
}

fn run(tool: &dyn Tool<Files>, files: &Files, arguments: &Payload, start: Instant) -> Answer {
    struct First(Instant, Mutex<Option<Duration>>);
    impl EventSink for First {
        fn emit_until(&self, event: Event, _: Option<Instant>) -> Result<(), EmitError> {
            if matches!(event, Event::Partial(_)) {
                self.1.lock().unwrap().get_or_insert(self.0.elapsed());
            }
            Ok(())
        }
    }
    let sink = First(start, Mutex::default());
    let (cancel, phase) = (CancelToken::new(), Phase::default());
    let context = Context {
        state: files,
        session_id: "",
        working_directory: None,
        sink: &sink,
        cancel: &cancel,
        deadline: None,
        phase: &phase,
        secrets: &Secrets::default(),
    };
    let result = tool.run(arguments, &context).unwrap();
    let took = start.elapsed();
    let found = match (result.get("hits"), result.get("found")) {
        (Some(hits), _) => {
            let lines = hits.as_str().unwrap().lines();
            lines.filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).count()
        }
        (None, Some(names)) => names.as_array().unwrap().len(),
        (None, None) => 0,
    };
    Answer { took, first: sink.1.into_inner().unwrap(), found }
}
