//! The programs that searches are measured against: `ripgrep` and `fd`, where they are installed.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A program that is asked the same.
pub(crate) struct Peer {
    /// As a reader of the measurements knows it, without its version.
    pub(crate) name: String,
    program: &'static str,
    arguments: Vec<String>,
    taken: Taken,
}

/// How much of its output is wanted.
#[derive(Clone, Copy)]
pub(crate) enum Taken {
    All,
    /// So many lines; then it is killed, as `head` would have it.
    First(usize),
}

/// In which order `rg` looks at files.
#[derive(Clone, Copy)]
pub(crate) enum Order {
    Path,
    Newest,
    Any,
}

/// One run of a peer.
pub(crate) struct Run {
    pub(crate) took: Duration,
    /// Until something of its output was there.
    pub(crate) first: Option<Duration>,
    pub(crate) lines: usize,
}

impl Peer {
    /// `rg` with the rules that ours has, for the lines that match.
    pub(crate) fn searching(pattern: &str, order: Order, taken: Taken) -> Self {
        Self::rg(&["-n", "--column", "--no-heading", "-e", pattern], order, taken)
    }

    /// `rg --files` with the same rules, for the files whose names match.
    pub(crate) fn listing(glob: &str, order: Order) -> Self {
        Self::rg(&["--files", "-g", glob], order, Taken::All)
    }

    fn rg(what: &[&str], order: Order, taken: Taken) -> Self {
        let sorted: &[&str] = match order {
            Order::Path => &["--sort", "path"],
            Order::Newest => &["--sortr", "modified"],
            Order::Any => &[],
        };
        let mut name = "rg".to_owned();
        for word in what.iter().filter(|word| **word == "--files").chain(sorted) {
            name = format!("{name} {word}");
        }
        if let Taken::First(lines) = taken {
            name = format!("{name}, killed after {lines} lines");
        }
        let rules = ["--no-config", "--no-require-git", "--no-ignore-global", "--hidden", "-j"];
        let mut arguments = rules.map(str::to_owned).to_vec();
        arguments.push(threads());
        arguments.extend([sorted, &["-g", "!.git"], what, &["."]].concat().iter().map(own));
        Self { name, program: "rg", arguments, taken }
    }

    /// `fd` with the same rules, under the name that it has here.
    pub(crate) fn fd(glob: &str) -> Self {
        let program = if version("fdfind").is_some() { "fdfind" } else { "fd" };
        let mut arguments = vec!["--threads".to_owned(), threads()];
        arguments.extend(["--hidden", "--exclude", ".git", "--glob", glob].iter().map(own));
        Self { name: "fd".to_owned(), program, arguments, taken: Taken::All }
    }

    /// Whether the program is there; says so where it is not.
    pub(crate) fn is_here(&self) -> bool {
        let is_here = version(self.program).is_some();
        if !is_here {
            println!("{} is not installed: nothing is compared with it", self.program);
        }
        is_here
    }

    /// Its name and its version.
    pub(crate) fn full_name(&self) -> String {
        let version = version(self.program).unwrap_or_default();
        format!("{} ({version})", self.name)
    }

    pub(crate) fn is_rg(&self) -> bool {
        self.program == "rg"
    }

    /// Runs it and drops its output.
    pub(crate) fn run(&self, directory: &Path) -> Run {
        let start = Instant::now();
        let mut child = Command::new(self.program)
            .args(&self.arguments)
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = child.stdout.take().unwrap();
        let mut buffer = vec![0; 1 << 16];
        let mut run = Run { took: Duration::ZERO, first: None, lines: 0 };
        loop {
            let count = output.read(&mut buffer).unwrap();
            if count == 0 {
                break;
            }
            run.first.get_or_insert_with(|| start.elapsed());
            run.lines += memchr::memchr_iter(b'\n', &buffer[..count]).count();
            if matches!(self.taken, Taken::First(lines) if run.lines >= lines) {
                child.kill().unwrap();
                break;
            }
        }
        child.wait().unwrap();
        run.took = start.elapsed();
        run
    }

    /// The peak of its resident memory in KiB.
    pub(crate) fn peak(&self, directory: &Path) -> Option<f64> {
        let end = match self.taken {
            Taken::All => "cat".to_owned(),
            Taken::First(lines) => format!("head -n {lines}"),
        };
        peak(self.program, &self.arguments, directory, &end)
    }
}

/// The peak of a process's resident memory in KiB, as its parent sees it; its output goes to `end`.
/// Nothing where GNU time is not there to be that parent.
pub(crate) fn peak(
    program: &str,
    arguments: &[String],
    directory: &Path,
    end: &str,
) -> Option<f64> {
    // A child of this process would begin with this process's own peak.
    let script = format!("{{ /usr/bin/time -f %M \"$@\" | {end} >/dev/null; }} 2>&1");
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &script, "sh", program]).args(arguments).current_dir(directory);
    let output = shell.stdin(Stdio::null()).output().ok()?;
    String::from_utf8_lossy(&output.stdout).lines().last()?.trim().parse().ok()
}

/// What a program says that it is; nothing where it is not installed.
fn version(program: &str) -> Option<String> {
    let output = Command::new(program).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let words: Vec<&str> = text.lines().next()?.split_whitespace().take(2).collect();
    Some(words.join(" "))
}

/// As many as ours takes.
fn threads() -> String {
    std::thread::available_parallelism().unwrap().get().min(8).to_string()
}

fn own(word: &&str) -> String {
    (*word).to_owned()
}
