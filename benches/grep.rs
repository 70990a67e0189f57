//! What searches cost beside ripgrep's, in time and in memory.
//!
//! On a generated tree of 50,000 files and about 500 MB, warm in the cache: four searches through the
//! library, on one of the jail's own threads, beside `rg` with the same rules and the same number of
//! threads, once in the order of paths and once in any. All are run in turns, so that a busy machine
//! slows all; what counts is the ratio of the medians. Ours ends its list where the call's limit is;
//! `rg` is asked for everything (its `--max-count` counts in each file), and its output is read and
//! dropped.
//!
//! `GREP_BENCH_FILES` and `GREP_BENCH_MB` name another size, `GREP_BENCH_DIR` another folder,
//! `GREP_BENCH_ROUNDS` another number of rounds. Without `rg` its columns stay empty.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench prepares its own files, prints its figures, and stops where that fails"
)]

mod tree;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use provider_workspace::process::Secrets;
use provider_workspace::tools::event::{EmitError, Event, EventSink};
use provider_workspace::tools::{CancelToken, Context, Grep, Payload, Phase, Tool};
use provider_workspace::workspace::{RootsSpec, Session, Workspace};
use sandbox::{Commands, Jail, Mode, Policy};
use serde_json::{Value, json};
use tree::{COMMON, RARE, Shape, grow};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, mode, folder, call] = &arguments[..]
        && mode == "peak"
    {
        return peak(Path::new(folder), call);
    }
    let number = |name: &str, usual: usize| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
    };
    let shape = Shape {
        files: number("GREP_BENCH_FILES", 50_000),
        bytes: number("GREP_BENCH_MB", 500) * 1_000_000,
    };
    let rounds = number("GREP_BENCH_ROUNDS", 15);
    let place = std::env::var_os("GREP_BENCH_DIR").map(PathBuf::from);
    let place = place.unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").into());
    let folder = tempfile::tempdir_in(place).unwrap();
    grow(folder.path(), shape);
    println!(
        "{:<22} {:>10} {:>10} {:>7} {:>10} {:>7} {:>9} {:>9} {:>9} {:>7}",
        "search", "ours", "rg sorted", "ratio", "rg", "ratio", "first", "peak", "peak rg", "ratio"
    );
    let searches = [
        ("rare word", json!({"pattern": RARE, "limit": 10_000}), vec![RARE]),
        ("common word, limit 100", json!({"pattern": COMMON, "limit": 100}), vec![COMMON]),
        (
            "regex with a class",
            json!({"pattern": "z[a-z]n[^ ]{2}[a-d]+ar"}),
            vec!["z[a-z]n[^ ]{2}[a-d]+ar"],
        ),
        ("no match", json!({"pattern": "nowhere_to_be_found"}), vec!["nowhere_to_be_found"]),
    ];
    let ours = Ours::new(folder.path());
    for (name, call, rg) in searches {
        measure(name, &ours, folder.path(), &call, &rg, rounds);
    }
}

fn measure(name: &str, ours: &Ours, folder: &Path, call: &Value, rg: &[&str], rounds: usize) {
    let (mut mine, mut first, mut sorted, mut any) = (vec![], vec![], vec![], vec![]);
    for round in 0..=rounds {
        let (took, came) = ours.search(call);
        let times = (took, came, run_rg(folder, rg, true), run_rg(folder, rg, false));
        // The first round warms the cache.
        if round > 0 {
            mine.push(times.0);
            first.extend(times.1);
            sorted.extend(times.2);
            any.extend(times.3);
        }
    }
    let (mine, first) = (median(mine), median(first));
    let (sorted, any) = (median(sorted), median(any));
    let ratio = |other: Option<Duration>| match (mine, other) {
        (Some(mine), Some(other)) => format!("{:.2}", mine.as_secs_f64() / other.as_secs_f64()),
        _ => "–".to_owned(),
    };
    let own = std::env::current_exe().unwrap();
    let mut command = Command::new(own);
    command.arg("peak").arg(folder).arg(call.to_string());
    let peak = peak_of(command);
    let peak_rg = peak_of(rg_command(folder, rg, false));
    let kib = |peak: Option<u64>| {
        peak.map_or_else(|| "–".to_owned(), |kib| format!("{} MiB", kib / 1024))
    };
    let memory = match (peak, peak_rg) {
        (Some(mine), Some(other)) => format!("{:.2}", mine as f64 / other as f64),
        _ => "–".to_owned(),
    };
    println!(
        "{name:<22} {:>10} {:>10} {:>7} {:>10} {:>7} {:>9} {:>9} {:>9} {memory:>7}",
        shown(mine),
        shown(sorted),
        ratio(sorted),
        shown(any),
        ratio(any),
        shown(first),
        kib(peak),
        kib(peak_rg),
    );
}

fn shown(time: Option<Duration>) -> String {
    time.map_or_else(|| "–".to_owned(), |time| format!("{:.1} ms", time.as_secs_f64() * 1e3))
}

fn median(mut times: Vec<Duration>) -> Option<Duration> {
    times.sort();
    times.get(times.len() / 2).copied()
}

/// The tool on the jail's threads, as in the provider.
struct Ours {
    workspace: Arc<Workspace>,
    jail: Jail,
}

impl Ours {
    fn new(folder: &Path) -> Self {
        let root = folder.canonicalize().unwrap();
        let spec = RootsSpec { roots: vec![root.display().to_string()], ..RootsSpec::default() };
        let workspace = Arc::new(Workspace::open(&spec).unwrap());
        let policy = Policy {
            roots: vec![root],
            mode: Mode::BestEffort,
            commands: Commands::Never,
            ..Policy::default()
        };
        Self { workspace, jail: Jail::build(&policy).unwrap() }
    }

    /// How long a search takes, and how long its first partial result.
    fn search(&self, call: &Value) -> (Duration, Option<Duration>) {
        let workspace = self.workspace.clone();
        let arguments = call.as_object().unwrap().clone();
        let (say, hear) = mpsc::channel();
        let start = Instant::now();
        let job = move || {
            let first = search(&workspace, &arguments, start);
            say.send((start.elapsed(), first)).unwrap();
        };
        self.jail.submit(Box::new(job)).unwrap();
        hear.recv().unwrap()
    }
}

fn search(workspace: &Workspace, arguments: &Payload, start: Instant) -> Option<Duration> {
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
    let (session, cancel, phase) = (Session::default(), CancelToken::new(), Phase::default());
    let context = Context {
        workspace,
        session: &session,
        working_directory: None,
        sink: &sink,
        cancel: &cancel,
        deadline: None,
        phase: &phase,
        secrets: &Secrets::default(),
    };
    Grep::new().run(arguments, &context).unwrap();
    sink.1.into_inner().unwrap()
}

/// One search in a process of its own, for its memory.
fn peak(folder: &Path, call: &str) {
    let call: Value = serde_json::from_str(call).unwrap();
    Ours::new(folder).search(&call);
}

fn rg_command(folder: &Path, arguments: &[&str], is_sorted: bool) -> Command {
    let mut command = Command::new("rg");
    let threads = std::thread::available_parallelism().unwrap().min(8.try_into().unwrap());
    command.args(["--no-config", "--no-require-git", "--no-ignore-global", "--hidden", "-n"]);
    command.args(["--column", "--no-heading", "-j", &threads.to_string()]);
    if is_sorted {
        command.args(["--sort", "path"]);
    }
    command.args(["-g", "!.git"]).args(arguments).arg(".").current_dir(folder);
    command.stdin(Stdio::null());
    command
}

fn run_rg(folder: &Path, arguments: &[&str], is_sorted: bool) -> Option<Duration> {
    let start = Instant::now();
    let mut child = rg_command(folder, arguments, is_sorted).stdout(Stdio::piped()).spawn().ok()?;
    let mut output = child.stdout.take().unwrap();
    let mut room = vec![0; 1 << 16];
    while output.read(&mut room).unwrap() > 0 {}
    child.wait().unwrap();
    Some(start.elapsed())
}

/// The peak of a process's resident memory in KiB, as its parent is told.
fn peak_of(mut command: Command) -> Option<u64> {
    let mut shell = Command::new("/bin/sh");
    // The child's own word: VmHWM is gone with it, so the shell's `time` would have to be asked.
    shell.arg("-c").arg("exec /usr/bin/time -f %M \"$@\" 2>&1 >/dev/null").arg("sh");
    shell.arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        shell.current_dir(folder);
    }
    command.stdin(Stdio::null());
    let output = shell.stdin(Stdio::null()).output().ok()?;
    String::from_utf8_lossy(&output.stdout).lines().last()?.trim().parse().ok()
}
