//! Directories with something to guard, a jail around a part of them, and commands in that jail.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, PipeReader, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sandbox::{
    Command, ExitStatus, Jail, Level, Namespaces, Policy, Report, Running, StartError, Surroundings,
};
use tempfile::TempDir;

/// What the file that nobody in a jail may read holds.
pub(crate) const SECRET: &str = "the-secret-of-the-outside";

/// How long a command may take before its story has failed: far beyond what any of them needs, so
/// that a loaded machine fails none.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(240);

/// The directories of a story: a root, and an outside with a secret in it.
pub(crate) struct Directories {
    pub(crate) root: PathBuf,
    pub(crate) outside: PathBuf,
    private: PathBuf,
    home: PathBuf,
    _base: TempDir,
}

/// Directories, and a jail whose one root is theirs.
pub(crate) struct Fixture {
    pub(crate) dirs: Directories,
    pub(crate) jail: Jail,
    pub(crate) level: Level,
    /// `HOME` of commands.
    home: OsString,
}

/// A command that ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) report: Report,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A command that runs beside its story.
pub(crate) struct Call {
    pub(crate) running: Running,
    stdout: BufReader<PipeReader>,
    stderr: JoinHandle<String>,
}

impl Directories {
    pub(crate) fn new() -> Self {
        let base = tempfile::Builder::new().prefix("jail-story-").tempdir().unwrap();
        // Both the system's directory for temporary files and a root may be reached by links; the
        // stories about that make their own.
        let at = base.path().canonicalize().unwrap();
        let dirs = Self {
            root: at.join("root"),
            outside: at.join("outside"),
            private: at.join("private"),
            home: at.join("home"),
            _base: base,
        };
        for directory in [&dirs.root, &dirs.outside, &dirs.private, &dirs.home] {
            fs::create_dir(directory).unwrap();
        }
        fs::write(dirs.secret(), SECRET).unwrap();
        fs::write(dirs.root.join("own"), "own").unwrap();
        dirs
    }

    /// The file outside that holds [`SECRET`].
    pub(crate) fn secret(&self) -> PathBuf {
        self.outside.join("secret")
    }

    /// All there is outside, down to the times of change, to be compared with itself later.
    pub(crate) fn outside_as_it_is(&self) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        let mut rest = vec![self.outside.clone()];
        while let Some(path) = rest.pop() {
            let data = path.symlink_metadata().unwrap();
            // Any change of content, mode, owner, attributes or links moves the time of change.
            let mut state = format!("{:o} {} {}", data.mode(), data.nlink(), data.size());
            state += &format!(" {}.{:09}", data.ctime(), data.ctime_nsec());
            if data.is_dir() {
                rest.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            }
            found.insert(path, state);
        }
        found
    }

    /// The usual policy: one root, no network, the defaults for the rest.
    pub(crate) fn policy(&self, level: Level) -> Policy {
        Policy {
            roots: vec![self.root.clone()],
            command_read: vec![this_program()],
            namespaces: match level {
                Level::Full => Namespaces::Auto,
                _ => Namespaces::Never,
            },
            file_workers: 2,
            private_in: Some(self.private.clone()),
            ..Policy::default()
        }
    }

    /// A home directory of the story's own, for policies that are not to see the operator's.
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }
}

impl Fixture {
    /// A jail of the usual policy.
    pub(crate) fn new(level: Level) -> Self {
        Self::with(level, |_, _| {})
    }

    /// A jail whose policy `change` has adapted.
    pub(crate) fn with(level: Level, change: impl FnOnce(&Directories, &mut Policy)) -> Self {
        let dirs = Directories::new();
        let mut policy = dirs.policy(level);
        change(&dirs, &mut policy);
        Self::of(dirs, &policy, level)
    }

    pub(crate) fn of(dirs: Directories, policy: &Policy, level: Level) -> Self {
        let jail = Jail::build(policy).unwrap();
        assert_eq!(jail.enforcement().level, level, "{:#?}", jail.enforcement());
        let of_policy = policy.home.clone().map(PathBuf::into_os_string);
        let private = jail.private().home.clone().map(|home| home.path.into_os_string());
        let home = private.or(of_policy).or_else(|| std::env::var_os("HOME")).unwrap_or_default();
        Self { dirs, jail, level, home }
    }

    /// Runs a script in the root to its end.
    pub(crate) fn bash(&self, script: &str) -> Outcome {
        self.bash_in(&self.dirs.root, script)
    }

    pub(crate) fn bash_in(&self, cwd: &Path, script: &str) -> Outcome {
        self.run(&self.command(cwd, &["/bin/bash", "-c", script]))
    }

    /// Runs a script in the root, if it can be started at all.
    pub(crate) fn try_bash(&self, script: &str) -> Option<Outcome> {
        let line = self.command(&self.dirs.root, &["/bin/bash", "-c", script]);
        let null = || OwnedFd::from(File::open("/dev/null").unwrap());
        Some(self.try_on(&line, null()).ok()?.outcome())
    }

    /// Runs a script that is to succeed, and returns what it printed.
    pub(crate) fn succeeds(&self, script: &str) -> String {
        self.bash(script).succeeded(script)
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, line: &CommandLine) -> Outcome {
        self.start(line).outcome()
    }

    /// Starts a command whose output the story reads while it runs.
    pub(crate) fn start(&self, line: &CommandLine) -> Call {
        let (stdout, out) = std::io::pipe().unwrap();
        let (stderr, err) = std::io::pipe().unwrap();
        let running = self.start_with(line, [out.into(), err.into()]).unwrap();
        Call { running, stdout: BufReader::new(stdout), stderr: collected(stderr) }
    }

    pub(crate) fn start_bash(&self, script: &str) -> Call {
        self.start(&self.command(&self.dirs.root, &["/bin/bash", "-c", script]))
    }

    pub(crate) fn start_with(
        &self,
        line: &CommandLine,
        [stdout, stderr]: [OwnedFd; 2],
    ) -> Result<Running, StartError> {
        self.start_on(line, [File::open("/dev/null").unwrap().into(), stdout, stderr])
    }

    /// Runs a command to its end, with a descriptor of the story's as its standard input.
    pub(crate) fn run_on(&self, line: &CommandLine, stdin: OwnedFd) -> Outcome {
        self.try_on(line, stdin).unwrap().outcome()
    }

    fn try_on(&self, line: &CommandLine, stdin: OwnedFd) -> Result<Call, StartError> {
        let (stdout, out) = std::io::pipe().unwrap();
        let (stderr, err) = std::io::pipe().unwrap();
        let running = self.start_on(line, [stdin, out.into(), err.into()])?;
        Ok(Call { running, stdout: BufReader::new(stdout), stderr: collected(stderr) })
    }

    fn start_on(
        &self,
        line: &CommandLine,
        [stdin, stdout, stderr]: [OwnedFd; 3],
    ) -> Result<Running, StartError> {
        let command = Command {
            program: PathBuf::from(&line.argv[0]),
            argv: line.argv.clone(),
            env: line.env.clone(),
            cwd: line.cwd.clone(),
            stdin,
            input: sandbox::Input::Fixed,
            stdout,
            stderr,
            limits: line.limits,
        };
        self.jail.start_in(line.surroundings, command)
    }

    /// A script in the root whose effects are discarded.
    pub(crate) fn thrown_away(&self, script: &str) -> CommandLine {
        let mut line = self.command(&self.dirs.root, &["/bin/bash", "-c", script]);
        let private = self.jail.throw_away().unwrap();
        for (name, path) in [("TMPDIR", &private.tmp), ("XDG_CACHE_HOME", &private.cache)] {
            line.env.retain(|(known, _)| known != name);
            line.env.push((name.into(), path.into()));
        }
        line.surroundings = Surroundings::ThrowAway;
        line
    }

    /// A command with the environment that a provider gives.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, cwd: &Path, argv: &[S]) -> CommandLine {
        let private = self.jail.private();
        let env = [
            ("PATH", std::env::var_os("PATH").unwrap_or_default()),
            ("HOME", self.home.clone()),
            ("LANG", "C.UTF-8".into()),
            ("TERM", "dumb".into()),
            ("TMPDIR", private.tmp.clone().into_os_string()),
            ("XDG_CACHE_HOME", private.cache.clone().into_os_string()),
            ("GIT_TERMINAL_PROMPT", "0".into()),
        ];
        CommandLine {
            argv: argv.iter().map(|word| word.as_ref().to_owned()).collect(),
            env: env.into_iter().map(|(name, value)| (name.into(), value)).collect(),
            cwd: cwd.to_owned(),
            limits: None,
            surroundings: Surroundings::Shared,
        }
    }
}

/// What to start and where.
#[derive(Clone, Debug)]
pub(crate) struct CommandLine {
    pub(crate) argv: Vec<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) cwd: PathBuf,
    pub(crate) limits: Option<sandbox::Limits>,
    pub(crate) surroundings: Surroundings,
}

impl Outcome {
    /// What was printed, by a command that is to have succeeded.
    #[track_caller]
    pub(crate) fn succeeded(self, what: &str) -> String {
        assert_eq!(self.report.status, ExitStatus::Exited(0), "{what}\n{self:#?}");
        self.stdout
    }
}

impl Call {
    /// The next line of its output, without the line's end; empty when there is none.
    pub(crate) fn line(&mut self) -> String {
        let deadline = Instant::now() + TEST_TIMEOUT;
        if self.stdout.buffer().is_empty() && !readable(self.stdout.get_ref(), deadline) {
            self.running.kill().unwrap();
            panic!("the command said nothing");
        }
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Waits for its end. What was read already is not among the output.
    pub(crate) fn outcome(self) -> Outcome {
        let stdout = collected(self.stdout);
        let report = waited(self.running);
        // Nothing of the call is left that could hold the pipes open.
        Outcome { report, stdout: stdout.join().unwrap(), stderr: self.stderr.join().unwrap() }
    }

    /// Kills it, and waits for its end.
    pub(crate) fn killed(self) -> Outcome {
        self.running.kill().unwrap();
        self.outcome()
    }
}

/// Reads all there is, beside the story, so that a command never waits for its reader.
fn collected(mut from: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Waits for a command, and kills what takes for ever.
fn waited(running: Running) -> Report {
    let in_time = readable(&running, Instant::now() + TEST_TIMEOUT);
    if !in_time {
        running.kill().unwrap();
        assert!(readable(&running, Instant::now() + TEST_TIMEOUT), "a killed command goes on");
    }
    let report = running.wait().unwrap();
    assert!(in_time, "the command took more than {TEST_TIMEOUT:?}: {report:?}");
    report
}

pub(crate) fn readable(fd: &impl AsFd, deadline: Instant) -> bool {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).unwrap();
        match poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&timeout)) {
            Err(rustix::io::Errno::INTR) => {}
            ready => return ready.unwrap() > 0,
        }
    }
}

/// The file of the running program.
pub(crate) fn this_program() -> PathBuf {
    std::env::current_exe().unwrap()
}
