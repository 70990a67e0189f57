//! What a jailed call costs: `bash -c true` from the request to the report, against the same
//! program started bare, and against bubblewrap with an equal policy where it is installed.
//!
//! `cargo bench --bench spawn [-- RUNS]`, on a machine that is otherwise idle (`chrt -r 10` in
//! front keeps others away): a jailed call hands over between three processes, and on a busy
//! machine each of them queues for a processor. The variants take turns, so that noise meets all of
//! them. Everything is measured twice: with this process small, and with 2 GiB touched.
#![expect(clippy::disallowed_methods, reason = "the bare spawn is what the jail is compared with")]
#![expect(clippy::print_stdout, reason = "a benchmark's measurements go to the terminal")]

mod measurement;

use std::error::Error;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};

use measurement::{Goal, Measurement};
use sandbox::{Command, Jail, Level, Namespaces, Policy, Surroundings};

const SHELL: &str = "/bin/bash";
const TOUCHED: usize = 2 << 30;
const BWRAP: &str = "bwrap";
const BWRAP_OVERLAY: &str = "bwrap --overlay";

fn main() -> ExitCode {
    if sandbox::is_spawner_invocation() {
        return sandbox::spawner_main();
    }
    let runs = std::env::args().skip(1).find_map(|text| text.parse().ok()).unwrap_or(500);
    match measure(runs) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(runs: usize) -> Result<(), Box<dyn Error>> {
    let base = tempfile::tempdir()?;
    let root = base.path().join("root");
    std::fs::create_dir(&root)?;
    println!("building a jail, median of {runs}");
    for namespaces in [Namespaces::Never, Namespaces::Auto] {
        let mut times = Vec::new();
        let mut level = None;
        for _ in 0..runs.min(100) {
            let start = Instant::now();
            let jail = build(&root, namespaces)?;
            times.push(start.elapsed());
            level = Some(jail.enforcement().level);
        }
        let name = level.map_or_else(String::new, |level| level.to_string());
        let middle = median(&mut times).as_secs_f64() * 1e3;
        println!("  {name:<8} {middle:>7.2} ms");
        Measurement {
            name: &format!("building a jail, level {name}"),
            value: middle,
            unit: "ms",
            peer: None,
            goal: Goal::None,
        }
        .print();
    }
    calls("a small parent", base.path(), &root, runs)?;
    // A page in each holds something, so that a fork would have page tables to copy.
    let ballast = vec![1_u8; TOUCHED];
    calls("2 GiB touched", base.path(), &root, runs)?;
    std::hint::black_box(ballast);
    Ok(())
}

fn build(root: &Path, namespaces: Namespaces) -> Result<Jail, sandbox::JailError> {
    let roots = vec![root.to_owned()];
    Jail::build(&Policy { roots, namespaces, file_workers: 1, ..Policy::default() })
}

/// One way to run the shell.
type Variant<'a> = (String, Box<dyn Fn() -> Result<(), Box<dyn Error>> + 'a>);

fn calls(title: &str, base: &Path, root: &Path, runs: usize) -> Result<(), Box<dyn Error>> {
    let kernel = build(root, Namespaces::Never)?;
    let full = build(root, Namespaces::Auto)?;
    let mut variants: Vec<Variant<'_>> = vec![
        ("bare".to_owned(), Box::new(|| bare(std::process::Command::new(SHELL), root))),
        (kernel.enforcement().level.to_string(), Box::new(|| jailed(&kernel, root))),
        (read_only(&kernel), Box::new(|| discarded(&kernel, root))),
    ];
    if full.enforcement().level > kernel.enforcement().level {
        variants.push((full.enforcement().level.to_string(), Box::new(|| jailed(&full, root))));
        variants.push((read_only(&full), Box::new(|| discarded(&full, root))));
    }
    if let Some(bwrap) = installed(BWRAP) {
        if has_overlays(&bwrap)? {
            let (bwrap, layers) = (bwrap.clone(), base.join("layers"));
            let run = move || bare(layered(&bwrap, root, &layers)?, root);
            variants.push((BWRAP_OVERLAY.to_owned(), Box::new(run)));
        } else {
            println!(
                "bwrap has no --overlay here (0.11 has): shell_read is compared with bash alone"
            );
        }
        let run = move || bare(wrapped(&bwrap, root, Root::Bound), root);
        variants.push((BWRAP.to_owned(), Box::new(run)));
    }
    let mut times = vec![Vec::new(); variants.len()];
    for run in 0..runs + 10 {
        for turn in 0..variants.len() {
            let at = (run + turn) % variants.len();
            let start = Instant::now();
            variants[at].1()?;
            // The first rounds warm caches.
            if run >= 10 {
                times[at].push(start.elapsed());
            }
        }
    }
    println!("bash -c true, {title}, {runs} runs");
    let bare = median(&mut times[0].clone());
    let by_name: Vec<(String, Duration)> = variants
        .iter()
        .zip(&times)
        .map(|((name, _), times)| (name.clone(), median(&mut times.clone())))
        .collect();
    let of = |name: &str| by_name.iter().find(|(known, _)| known == name).map(|(_, time)| *time);
    let microseconds = |time: Duration| time.as_secs_f64() * 1e6;
    for ((name, _), times) in variants.iter().zip(&mut times) {
        let middle = median(times);
        if let Some(most) = most_ratio(name) {
            let print = |what: &str, peer, goal| {
                let name = &format!("{what} at level {name}, {title}");
                Measurement { name, value: microseconds(middle), unit: "µs", peer, goal }.print();
            };
            let bare = Some(("a bare one", microseconds(bare)));
            print("jailed `bash -c true`", bare, Goal::RatioAtMost(most));
            let bwrap = of(BWRAP).map(|time| ("bwrap, equal policy", microseconds(time)));
            print("the same, beside bwrap,", bwrap, Goal::None);
        }
        if let Some((level, most)) = of_read_only(name) {
            let print = |what: &str, peer: Option<(&str, Duration)>, goal| {
                let name = &format!("{what} at level {level}, {title}");
                let peer = peer.map(|(peer, time)| (peer, microseconds(time)));
                Measurement { name, value: microseconds(middle), unit: "µs", peer, goal }.print();
            };
            let bash = of(level).map(|time| ("bash at that level", time));
            print("`bash -c true` of shell_read", bash, Goal::RatioAtMost(most));
            if let Some(time) = of(BWRAP_OVERLAY) {
                print("the same, beside bwrap --overlay,", Some((BWRAP_OVERLAY, time)), Goal::None);
            }
        }
        println!(
            "  {name:<15} {:>7.0} us  p99 {:>7.0} us  {:.2} x",
            middle.as_secs_f64() * 1e6,
            times[(times.len() - 1) * 99 / 100].as_secs_f64() * 1e6,
            middle.as_secs_f64() / bare.as_secs_f64(),
        );
    }
    Ok(())
}

/// What was promised of a variant that is a level of ours.
fn most_ratio(name: &str) -> Option<f64> {
    let promised = [(Level::Kernel, 1.3), (Level::Full, 1.35)];
    promised.into_iter().find_map(|(level, most)| (name == level.to_string()).then_some(most))
}

/// The name of shell_read's variant at a jail's level.
fn read_only(jail: &Jail) -> String {
    format!("{READ_ONLY}{}", jail.enforcement().level)
}

const READ_ONLY: &str = "read ";

/// The level of such a variant, and what was promised of it beside bash.
fn of_read_only(name: &str) -> Option<(&str, f64)> {
    let level = name.strip_prefix(READ_ONLY)?;
    Some((level, if level == Level::Full.to_string() { 1.6 } else { 1.05 }))
}

/// The median, with the times left in order.
fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn bare(mut command: std::process::Command, root: &Path) -> Result<(), Box<dyn Error>> {
    let status = command
        .args(["-c", "true"])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .current_dir(root)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    if status.success() { Ok(()) } else { Err(format!("{status}").into()) }
}

fn jailed(jail: &Jail, root: &Path) -> Result<(), Box<dyn Error>> {
    in_surroundings(Surroundings::Shared, jail, root)
}

fn discarded(jail: &Jail, root: &Path) -> Result<(), Box<dyn Error>> {
    in_surroundings(Surroundings::ThrowAway, jail, root)
}

fn in_surroundings(
    surroundings: Surroundings,
    jail: &Jail,
    root: &Path,
) -> Result<(), Box<dyn Error>> {
    let null = || File::options().read(true).write(true).open("/dev/null").map(Into::into);
    let report = jail
        .start_in(
            surroundings,
            Command {
                program: SHELL.into(),
                argv: ["bash", "-c", "true"].map(OsString::from).to_vec(),
                env: vec![("PATH".into(), "/usr/bin:/bin".into())],
                cwd: root.to_owned(),
                stdin: null()?,
                input: sandbox::Input::Fixed,
                stdout: null()?,
                stderr: null()?,
                limits: None,
            },
        )?
        .wait()?;
    if report.status.shell_code() == 0 { Ok(()) } else { Err(format!("{report:?}").into()) }
}

/// What bubblewrap has at the root.
#[derive(Clone, Copy)]
enum Root<'a> {
    /// The root itself.
    Bound,
    /// A layer over it, whose upper and working directories are these.
    Layer([&'a Path; 2]),
}

/// Bubblewrap with what the full level grants and takes.
fn wrapped(bwrap: &Path, root: &Path, at_root: Root<'_>) -> std::process::Command {
    let mut command = std::process::Command::new(bwrap);
    for directory in ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/etc"] {
        command.args(["--ro-bind-try", directory, directory]);
    }
    command.args(["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]);
    match at_root {
        Root::Bound => command.arg("--bind").args([root, root]),
        Root::Layer([upper, work]) => {
            command.arg("--overlay-src").arg(root).arg("--overlay").args([upper, work, root])
        }
    };
    command.args(["--unshare-net", "--unshare-ipc", "--unshare-pid", "--die-with-parent"]);
    command.args(["--new-session", "--cap-drop", "ALL", SHELL]);
    command
}

/// Bubblewrap with a layer of the call's own, as shell_read has, whose directories are made anew.
fn layered(
    bwrap: &Path,
    root: &Path,
    layers: &Path,
) -> Result<std::process::Command, Box<dyn Error>> {
    let [upper, work] = ["upper", "work"].map(|name| layers.join(name));
    if layers.exists() {
        std::fs::remove_dir_all(layers)?;
    }
    for directory in [&upper, &work] {
        std::fs::create_dir_all(directory)?;
    }
    Ok(wrapped(bwrap, root, Root::Layer([&upper, &work])))
}

/// Whether this version of bubblewrap knows them: from 0.11 on, and not where it is set-user-ID.
fn has_overlays(bwrap: &Path) -> Result<bool, Box<dyn Error>> {
    let help = std::process::Command::new(bwrap).arg("--help").output()?;
    let text = [help.stdout, help.stderr].concat();
    Ok(String::from_utf8_lossy(&text).contains("--overlay "))
}

fn installed(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|directory| directory.join(program)).find(|file| file.exists())
}
